/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Native peers that talk to classic ones: D-Bus messages over libkdbus. */
#ifndef TESTS_CLASSIC_NATIVE_H
#define TESTS_CLASSIC_NATIVE_H

#include "peer.h"

#include <libkdbus.h>

/* Endpoint they connect to */
extern const char *native_path;

struct libkdbus *native_join(void);
/* Find out which id has which unique name; the two below do so if nobody has. */
void native_learn_names(void);
/* Its unique name as classic peers know it */
const char *native_name(struct libkdbus *h, char *buf, size_t size);
/* The connection id of a classic peer */
uint64_t native_id_of(const struct peer *p);
/* When a test has waited long enough */
uint64_t native_deadline(void);

/* A D-Bus message with a string, and its length; desc.n_fds: with one descriptor as well */
uint8_t *native_message(struct dbusp_desc desc, const char *text, size_t *ret_len);

struct native_send {
	uint64_t dst_id;
	const char *dst_name;
	uint64_t flags;
	uint64_t cookie, cookie_reply;
	const int *fds;
	size_t n_fds;
	bool memfd;
};

int native_send(struct libkdbus *h, const struct native_send *s, const void *data, size_t len);
/* The next message, whatever it is */
const struct kdbus_msg *native_next(struct libkdbus *h);
/* The next message of a peer: what the bus itself tells is passed over. */
const struct kdbus_msg *native_next_said(struct libkdbus *h);
/* Its payload as a D-Bus message; returns the string in it. */
const char *native_text(struct libkdbus *h, const struct kdbus_msg *msg,
			struct dbusp_header *ret_header);
void native_reply(struct libkdbus *h, const struct kdbus_msg *call, uint64_t cookie,
		  const char *text);

#endif
