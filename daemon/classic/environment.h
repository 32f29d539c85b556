/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef CLASSIC_ENVIRONMENT_H
#define CLASSIC_ENVIRONMENT_H

/*
 * environment.h - the variables that activated services get
 *
 * It begins as the daemon's own; UpdateActivationEnvironment changes it. Variables are kept as
 * "NAME=value", without repetitions; looking one up is linear.
 *
 * D-Bus specification, "org.freedesktop.DBus.UpdateActivationEnvironment".
 */

#include <stdbool.h>
#include <stddef.h>

/**
 * struct environment - a list of variables
 * @items: "NAME=value" and, after the last, a NULL, as execve(2) takes it; NULL: there is none
 * @n:     how many
 */
struct environment {
	char **items;
	size_t n;
};

/**
 * environment_copy() - begin with a list
 * @env:   to be filled in
 * @items: "NAME=value" and a NULL at the end, copied; NULL: none
 *
 * Return: 0; -ENOMEM.
 */
int environment_copy(struct environment *env, char *const *items);
void environment_deinit(struct environment *env);

/**
 * environment_set() - set a variable
 * @env:   the list
 * @name:  not empty, without '='
 * @value: its value
 *
 * Return: 0; -EINVAL for a name that is none; -ENOMEM. After a failure the list is as before.
 */
int environment_set(struct environment *env, const char *name, const char *value);
/* All of @env into another list, or nothing. Return: 0; -ENOMEM. */
int environment_merge(struct environment *into, const struct environment *env);
void environment_unset(struct environment *env, const char *name);

/* The value; NULL: not set. Valid until the list changes. */
const char *environment_get(const struct environment *env, const char *name);

#endif
