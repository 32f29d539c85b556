/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The first 64 arguments of a message, as match rules look at them.
 *
 * Filled from the front and only as far as somebody asked, once per message however many rules
 * look: O(bytes before the argument asked for), no allocation. One thread at a time.
 */
#ifndef DBUSP_ARGS_H
#define DBUSP_ARGS_H

#include "dbus/header.h"
#include "dbus/sig.h"
#include "dbus/value.h"

#define DBUSP_ARGS_MAX 64

struct dbusp_arg {
	struct dbusp_str text;	/* of 's', 'o' and 'g'; s == NULL for other types */
	char type;		/* first code of its type; 0: there is no such argument */
};

struct dbusp_args {
	struct dbusp_cursor cursor;
	struct dbusp_sigmap map;
	uint8_t pos;		/* next type in map */
	uint8_t n;		/* arguments found so far */
	struct dbusp_arg args[DBUSP_ARGS_MAX];
};

/**
 * dbusp_args_init() - start to look at the arguments of a message
 * @args: storage of the caller
 * @header: parsed header
 * @body: its body, which must outlive @args; a damaged one ends the arguments at the damage
 */
void dbusp_args_init(struct dbusp_args *args, const struct dbusp_header *header,
		     const void *body);

/**
 * dbusp_args_get() - one argument
 * @args: an initialised object
 * @index: which, from 0; at most DBUSP_ARGS_MAX - 1
 *
 * Return: the argument; one with type 0 if the message has no such argument.
 */
struct dbusp_arg dbusp_args_get(struct dbusp_args *args, unsigned int index);

#endif
