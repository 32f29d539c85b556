/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The body of a D-Bus message: checking all of it, and reading values from it.
 *
 * 1. dbusp_body_check() accepts exactly the bodies that are valid for their signature: padding is
 *    zero, booleans are 0 or 1, text is valid, arrays end between elements and hold at most
 *    64 MiB, at most 64 containers are nested, descriptor indices are below the count, and no
 *    byte is left over. Duplicate keys in a dictionary pass, as the specification allows.
 * 2. The reader checks each value by the same rules as it goes, so it may run on a body that was
 *    not checked. After an error it stays where it was.
 * 3. All of it is one pass, O(bytes), without allocation, with bounded recursion.
 *
 * No I/O, no globals: any thread, one reader at a time.
 */
#ifndef DBUSP_BODY_H
#define DBUSP_BODY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dbus/header.h"
#include "dbus/sig.h"
#include "dbus/str.h"
#include "dbus/value.h"
#include "dbus/why.h"

/**
 * dbusp_body_check() - is this a valid body for this header?
 * @header: parsed header: signature, byte order, body length and number of descriptors count
 * @body: header->frame.body_len bytes; needs no alignment in memory
 * @ret_why: reason on failure, or NULL
 *
 * Return: 0; -EBADMSG if a rule is broken.
 */
int dbusp_body_check(const struct dbusp_header *header, const void *body,
		     enum dbusp_why *ret_why);

/* One open container of a reader. */
struct dbusp_level {
	const char *sig;	/* next type to read; in an array the element type, always */
	const char *sig_end;
	size_t end;		/* of the array, else of what is around */
	char kind;		/* 'a', '(', '{', 'v', or 0 for the body */
};

struct dbusp_reader {
	struct dbusp_cursor cursor;
	unsigned int depth;
	struct dbusp_level levels[DBUSP_DEPTH_MAX + 1];
};

/**
 * dbusp_reader_init() - start to read a body
 * @reader: storage of the caller
 * @header: parsed header of the message
 * @body: header->frame.body_len bytes, which must outlive the reader and what is read from it
 */
void dbusp_reader_init(struct dbusp_reader *reader, const struct dbusp_header *header,
		       const void *body);

/**
 * dbusp_reader_type() - what comes next
 * @reader: a reader
 *
 * Return: the type code of the next value ('a', '(', '{' and 'v' for containers); 0 at the end of
 * the container or body.
 */
char dbusp_reader_type(const struct dbusp_reader *reader);

/**
 * dbusp_read_fixed() - read a value of a fixed type
 * @reader: a reader
 * @type: type code that must come next
 * @ret: receives 1, 2, 4 or 8 bytes in host byte order; a boolean is a uint32_t
 *
 * Return: 0; -ENOMSG if another type comes next; -EBADMSG if the value is invalid; -EINVAL if
 * @type is not fixed.
 */
int dbusp_read_fixed(struct dbusp_reader *reader, char type, void *ret);

/**
 * dbusp_read_text() - read a string, object path or signature
 * @reader: a reader
 * @type: 's', 'o' or 'g'; must come next
 * @ret: receives the text, which lies in the body and has a NUL after it
 *
 * Return: as dbusp_read_fixed().
 */
int dbusp_read_text(struct dbusp_reader *reader, char type, struct dbusp_str *ret);

/**
 * dbusp_reader_enter() - go into the container that comes next
 * @reader: a reader
 * @kind: 'a', '(', '{' or 'v'; must come next
 *
 * Return: 0; -ENOMSG if another type comes next; -EBADMSG if the container is invalid; -EINVAL
 * if @kind is no container.
 */
int dbusp_reader_enter(struct dbusp_reader *reader, char kind);

/**
 * dbusp_reader_exit() - leave the container, over whatever is left in it
 * @reader: a reader
 *
 * Return: 0; -EBADMSG if what was left is invalid; -EINVAL outside of any container.
 */
int dbusp_reader_exit(struct dbusp_reader *reader);

/**
 * dbusp_reader_skip() - pass over the next value, whatever it is
 * @reader: a reader
 *
 * Return: 0; -ENOMSG at the end of the container; -EBADMSG if the value is invalid.
 */
int dbusp_reader_skip(struct dbusp_reader *reader);

/**
 * dbusp_reader_why() - the reason for the last -EBADMSG
 * @reader: a reader
 *
 * Return: the reason; meaningless if no call failed with -EBADMSG.
 */
enum dbusp_why dbusp_reader_why(const struct dbusp_reader *reader);

#endif
