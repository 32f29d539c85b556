/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MODULE_ARG_H
#define MODULE_ARG_H

#include "cmd.h"

/*
 * The argument of a command on its way in and out (spec §3.2, §3.4, §3.5).
 *
 *  1. It is copied once; all checks and all work are done on the copy.
 *  2. Small ones, which are nearly all, live on the stack.
 *  3. From the parsing on, return_flags are written back whatever the outcome.
 */

#define KBUS_ARG_STACK 256

/**
 * struct kbus_arg - the argument of a command
 * @args:         parsed argument
 * @user:         where it is in the caller's memory
 * @copy:         private copy
 * @size:         its bytes
 * @return_flags: to be written back
 * @told_flags:   what kbus_arg_write() has written for them
 * @parsed:       core_cmd_parse() has looked at it
 * @stack:        @copy of a small one
 */
struct kbus_arg {
	struct core_args args;
	void __user *user;
	void *copy;
	size_t size;
	u64 return_flags;
	u64 told_flags;
	bool parsed;
	u64 stack[KBUS_ARG_STACK / sizeof(u64)];
};

/**
 * kbus_arg_read() - copy an argument in, check it, negotiate
 * @arg:  to be initialised; for kbus_arg_end() whatever the outcome
 * @cmd:  command
 * @user: where it is
 *
 * If arg->args.negotiate is set afterwards, the command has told its flags, and that was
 * all (SEND goes on with its message).
 *
 * Return: 0; -EFAULT, -EINVAL, -EMSGSIZE, -ENOMEM and what core_cmd_parse() returns.
 */
int kbus_arg_read(struct kbus_arg *arg, enum core_cmd cmd, void __user *user);

/**
 * kbus_arg_probe() - make sure that results can be written back, before there are any
 * @arg: argument
 *
 * Return: 0; -EFAULT.
 */
int kbus_arg_probe(struct kbus_arg *arg);

/**
 * kbus_arg_write() - write the fixed part of the copy back
 * @arg: argument
 *
 * Return: 0; -EFAULT.
 */
int kbus_arg_write(struct kbus_arg *arg);

/**
 * kbus_arg_end() - write return_flags back and free the copy
 * @arg: argument
 * @r:   outcome of the command
 *
 * Return: @r; -EFAULT.
 */
int kbus_arg_end(struct kbus_arg *arg, int r);

/**
 * kbus_arg_copy_in() - copy a structure that begins with its size
 * @user: where it is; checked to be a multiple of 8
 * @size: its first word, checked
 * @dst:  room for ALIGN(@size, 8) bytes
 *
 * Return: 0; -EFAULT; -EINVAL: the size has changed meanwhile.
 */
int kbus_arg_copy_in(const void __user *user, size_t size, void *dst);

/**
 * kbus_arg_answer_items() - write a NEGOTIATE item back
 * @list: parsed list
 * @copy: start of the structure the list is in
 * @user: where that is in the caller's memory
 *
 * Return: 0; -EFAULT.
 */
int kbus_arg_answer_items(const struct core_items *list, const void *copy, void __user *user);

#endif
