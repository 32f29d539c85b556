/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A client of a classic bus that speaks bytes: it can send whatever it likes, and sees exactly what
 * the bus sends. The address of the bus is in DBUS_ADDRESS, one that a path or abstract socket
 * leads to. What a test waits for must come; if it does not, PEER_PATIENCE_MS ends it.
 */
#ifndef TESTS_CLASSIC_PEER_H
#define TESTS_CLASSIC_PEER_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "dbus/body.h"
#include "dbus/build.h"
#include "dbus/header.h"

#define PEER_PATIENCE_MS 300000
#define PEER_FDS_MAX 64

#define DBUS "org.freedesktop.DBus"
#define DBUS_PATH "/org/freedesktop/DBus"
#define ERROR_NAME(x) DBUS ".Error." x

/* A client; received bytes and descriptors that nobody has looked at yet are in it. */
struct peer {
	int fd;
	uint32_t serial;	/* last one sent */
	char name[64];		/* unique name, after peer_hello() */
	uint8_t *buf;
	size_t len, size;
	int fds[PEER_FDS_MAX];
	unsigned int n_fds;
	bool ended;
};

/* A received message. */
struct got {
	uint8_t *msg;
	struct dbusp_header h;
	int fds[PEER_FDS_MAX];
	unsigned int n_fds;
	struct dbusp_reader body;
};

/* A connected socket, nothing sent. */
void peer_open(struct peer *p);
/* ... authenticated, descriptors agreed on or not. */
void peer_auth(struct peer *p, bool fds);
/* ... and with a name; Hello's reply and NameAcquired are taken. */
void peer_hello(struct peer *p);
/* All of the above, with descriptors. */
void peer_join(struct peer *p);
/* Its name stays readable. */
void peer_close(struct peer *p);

void peer_write(struct peer *p, const void *data, size_t len);
void peer_write_fds(struct peer *p, const void *data, size_t len, const int *fds,
		    unsigned int n_fds);
/* As much as the bus takes at once; false once it has hung up. */
bool peer_try_write(struct peer *p, const void *data, size_t len, size_t *ret_written);

/* @sig: of the arguments that follow; y, u, b as int, s, o, g as C string, h as index */
size_t peer_build(uint8_t **ret, const struct dbusp_desc *desc, va_list args);
/* Returns the serial, chosen here if desc->serial is 0. */
uint32_t peer_send(struct peer *p, struct dbusp_desc desc, ...);
uint32_t peer_call(struct peer *p, const char *destination, const char *path,
		   const char *interface, const char *member, const char *sig, ...);
/* A call of the bus itself. */
uint32_t peer_driver(struct peer *p, const char *member, const char *sig, ...);
uint32_t peer_signal(struct peer *p, const char *destination, const char *path,
		     const char *interface, const char *member, const char *sig, ...);
uint32_t peer_return(struct peer *p, const struct got *call, const char *sig, ...);

/* The next message, whatever it is; false: the bus hung up. */
bool peer_next(struct peer *p, struct got *g);
void got_free(struct got *g);
const char *got_string(struct got *g); /* reads an 's', 'o' or 'g'; valid until the next call */
uint32_t got_u32(struct got *g); /* a 'u' or 'b' */

/* The next message is this, and nothing else comes before it. */
void want_return(struct peer *p, uint32_t serial, struct got *g);
void want_done(struct peer *p, uint32_t serial);
void want_u32(struct peer *p, uint32_t serial, uint32_t value);
void want_string(struct peer *p, uint32_t serial, const char *value);
void want_error(struct peer *p, uint32_t serial, const char *name);
/* As want_error(), and its text is @text. */
void want_error_text(struct peer *p, uint32_t serial, const char *name, const char *text);
void want_signal(struct peer *p, const char *sender, const char *member, struct got *g);
/* A signal of the bus with up to three strings, NULL from the first unused one on. */
void want_driver_signal(struct peer *p, const char *member, const char *a, const char *b,
			  const char *c);
void want_call(struct peer *p, const char *member, struct got *g);
/* Nothing comes: the answer to a ping of the bus is the next message. */
void want_nothing(struct peer *p);
/* The bus hangs up, sending nothing before. */
void want_end(struct peer *p);

/* Is the bus under test the reference? For what is deliberately different. */
bool bus_is_reference(void);

#define WITH(p)                                                                                    \
	struct peer p;                                                                             \
	peer_join(&p)

#endif
