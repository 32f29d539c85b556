/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Building D-Bus messages, in either byte order.
 *
 *	dbusp_build_begin(&b, NULL, &(struct dbusp_desc){ .type = DBUSP_SIGNAL, ... });
 *	dbusp_put_text(&b, 's', DBUSP_STR("org.example"));
 *	dbusp_open(&b, 'a', NULL);
 *	dbusp_put_fixed(&b, 'u', &(uint32_t){ 7 });
 *	dbusp_close(&b);
 *	r = dbusp_build_end(&b, &msg, &len);
 *
 * 1. What dbusp_build_end() hands out is accepted by dbusp_header_parse() and
 *    dbusp_body_check(); what would not be is refused when it is put in. Of a header that the
 *    caller vouches for nothing is looked at: it costs half of what a short message does.
 * 2. Errors stick: after the first one every call fails with the same error and
 *    dbusp_build_end() reports it, so that the calls between need no checks.
 * 3. A message is one allocation that grows by doubling: O(bytes).
 *
 * No globals: any thread, one builder at a time.
 */
#ifndef DBUSP_BUILD_H
#define DBUSP_BUILD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dbus/header.h"
#include "dbus/sig.h"
#include "dbus/str.h"

/* Where memory comes from. */
struct dbusp_alloc {
	/* As realloc(3); @size is never 0. Returns NULL if there is none, keeping @old. */
	void *(*resize)(void *userdata, void *old, size_t size);
	/* As free(3) */
	void (*release)(void *userdata, void *old);
	void *userdata;
};

/* The header of a message to build. Text with s == NULL is left out. */
struct dbusp_desc {
	uint8_t type;			/* enum dbusp_type, or any other than 0 */
	uint8_t flags;			/* enum dbusp_flag */
	bool big;			/* big endian */
	uint32_t serial;		/* not 0 */
	uint32_t reply_serial;		/* 0: left out */
	uint32_t n_fds;			/* 0: left out */
	struct dbusp_str path, interface, member, error_name, destination, sender;
	struct dbusp_str signature;	/* of the body; left out too if empty */
	bool sound;			/* the caller vouches that this makes a valid header */
};

/* A container that is open while a body is written. */
struct dbusp_open {
	const char *sig;	/* type of the next value; in an array the element type, always */
	const char *sig_end;
	size_t len_at;		/* array: where its length goes */
	size_t start;		/* array: first element */
	char kind;		/* 'a', '(', '{', 'v', or 0 for the body */
};

struct dbusp_build {
	const struct dbusp_alloc *alloc;
	uint8_t *buf;
	size_t len, size;		/* used and allocated bytes */
	size_t body;			/* where the body starts */
	int err;			/* first error, 0 so far */
	bool big;
	uint32_t n_fds;
	unsigned int depth;
	struct dbusp_open levels[DBUSP_DEPTH_MAX + 1];
};

/**
 * dbusp_build_begin() - start a message and write its header
 * @build: storage of the caller; needs no initialisation
 * @alloc: memory functions that outlive the message, or NULL for malloc
 * @desc: the header; not needed after the call, but the text of its signature until the end
 *
 * Return: 0; -EINVAL if the header would be invalid; -ENOMEM. In each case dbusp_build_end() or
 * dbusp_build_abort() must follow.
 */
int dbusp_build_begin(struct dbusp_build *build, const struct dbusp_alloc *alloc,
		      const struct dbusp_desc *desc);

/**
 * dbusp_put_fixed() - append a value of a fixed type
 * @build: a builder
 * @type: type code, must be the next in the signature
 * @value: 1, 2, 4 or 8 bytes in host byte order; a boolean is a uint32_t
 *
 * Return: 0; -EINVAL for the wrong type, a boolean above 1 or a descriptor index out of range;
 * -EMSGSIZE if the message would exceed a limit of the format; -ENOMEM.
 */
int dbusp_put_fixed(struct dbusp_build *build, char type, const void *value);

/**
 * dbusp_put_text() - append a string, object path or signature
 * @build: a builder
 * @type: 's', 'o' or 'g'; must be the next in the signature
 * @text: the text, without a NUL
 *
 * Return: as dbusp_put_fixed(); -EINVAL also for invalid text.
 */
int dbusp_put_text(struct dbusp_build *build, char type, struct dbusp_str text);

/**
 * dbusp_put_u32() - append a 'u'
 * @build: a builder
 * @value: the value
 *
 * Return: as dbusp_put_fixed().
 */
int dbusp_put_u32(struct dbusp_build *build, uint32_t value);

/**
 * dbusp_put_bool() - append a 'b'
 * @build: a builder
 * @value: the value
 *
 * Return: as dbusp_put_fixed().
 */
int dbusp_put_bool(struct dbusp_build *build, bool value);

/**
 * dbusp_put_string() - append an 's'
 * @build: a builder
 * @value: a C string
 *
 * Return: as dbusp_put_text().
 */
int dbusp_put_string(struct dbusp_build *build, const char *value);

/**
 * dbusp_put_bytes() - append an 'ay'
 * @build: a builder
 * @data: the elements
 * @len: their number
 *
 * Return: as dbusp_put_fixed().
 */
int dbusp_put_bytes(struct dbusp_build *build, const void *data, size_t len);

/**
 * dbusp_open() - begin a container
 * @build: a builder
 * @kind: 'a', '(', '{' or 'v'; must be the next in the signature
 * @type: the one complete type a variant holds, NULL for other kinds; must stay until it is closed
 *
 * Return: as dbusp_put_fixed(); -EINVAL also if @type is no single complete type or more than 64
 * containers would be open.
 */
int dbusp_open(struct dbusp_build *build, char kind, const char *type);

/**
 * dbusp_close() - end the container opened last
 * @build: a builder
 *
 * Return: 0; -EINVAL if nothing is open or values are missing; -EMSGSIZE if an array holds more
 * than 64 MiB.
 */
int dbusp_close(struct dbusp_build *build);

/**
 * dbusp_build_end() - finish the message
 * @build: a builder, used up by this call whatever it returns
 * @ret_msg: the message; the caller frees it with free() or the allocator's release
 * @ret_len: its length in bytes
 *
 * Return: 0; the first error of any call; -EINVAL if the body is incomplete.
 */
int dbusp_build_end(struct dbusp_build *build, uint8_t **ret_msg, size_t *ret_len);

/**
 * dbusp_build_abort() - drop an unfinished message
 * @build: a builder, used up by this call
 */
void dbusp_build_abort(struct dbusp_build *build);

#endif
