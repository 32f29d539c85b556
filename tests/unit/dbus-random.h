/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Random D-Bus messages, told value by value.
 *
 * A seed decides the whole message. random_tell() tells its body to a listener; telling it again
 * to another listener with the same seed gives the same values, so that one can write the body
 * and another compare what it reads.
 */
#ifndef TESTS_DBUS_RANDOM_H
#define TESTS_DBUS_RANDOM_H

#include "dbus/build.h"

uint64_t random_next(uint64_t *state);
uint32_t random_below(uint64_t *state, uint32_t n);

struct listener {
	/* A value of a fixed type, in host byte order in the low bytes of @value */
	void (*fixed)(void *userdata, char type, uint64_t value);
	void (*text)(void *userdata, char type, const char *value);
	/* A container and the signature of what is in it (an array: of one element) */
	void (*open)(void *userdata, char kind, const char *inside);
	void (*close)(void *userdata);
	void *userdata;
};

struct random_message {
	uint64_t body_seed;
	char sig[DBUSP_SIG_MAX + 1];
	struct dbusp_desc desc;
};

/* Makes up a header and a signature. Never carries descriptors. */
void random_describe(uint64_t seed, struct random_message *ret);

/* Tells the body to @to. */
void random_tell(const struct random_message *m, const struct listener *to);

/* The whole message as bytes, which the caller frees. */
uint8_t *random_marshal(const struct random_message *m, bool big, size_t *ret_len);

#endif
