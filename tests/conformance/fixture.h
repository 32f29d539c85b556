/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef TESTS_CONFORMANCE_FIXTURE_H
#define TESTS_CONFORMANCE_FIXTURE_H

/*
 * fixture.h - what every conformance test stands on (ABI 15.1)
 *
 * The tests use the command set alone, so that any engine can run them: the engine provides a
 * domain, whose directory is in KDBUS_DOMAIN, or a private kdbusd is started.
 *
 * Each test has a fresh bus "<euid>-<unique>" with bloom {64, 1}, creator mask ALL and
 * MAKE_ACCESS_WORLD; connections have ACCEPT_FD, both masks ALL and a 16 MiB pool.
 *
 * Rows of ABI 15 that cannot hold in user space; doc/compat.md says why. Where it is marked (*) the
 * tests demand all of it of an engine whose node is no socket:
 *  - byebye, match-bloom, chat: a broadcast is there when its SEND returns;
 *  - message-quota: 257th message (*), the next RECV reports the lost, back to the activator when
 *    the service releases the name (*);
 *  - sync-reply: a call interrupted by a handler with SA_RESTART goes on by itself;
 *  - connection-info, policy-priv: commands of a child on an inherited descriptor;
 *  - metadata-ns: all capabilities for the owner of a namespace below.
 *
 * The domain's directory is the working directory, and all paths are relative: other users get
 * there whatever lies above it.
 */

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <libkdbus.h>

#include "helper.h"

#define FIXTURE_CONTROL	   "control"
#define FIXTURE_POOL	   (16ULL << 20)
#define FIXTURE_NOBODY	   65534
#define FIXTURE_TIMEOUT_MS 300000 /* only ends a test that hangs */

struct fixture {
	char *name; /* of the bus, and of its directory */
	char *path; /* of the default endpoint */
	struct libkdbus *owner;
};

/* cmocka setup and teardown of a test: *state is the struct fixture */
int fixture_setup(void **state);
int fixture_teardown(void **state);
/* cmocka setup and teardown of a group: the domain */
int fixture_start(void **state);
int fixture_end(void **state);

#define FIXTURE_TEST(fn)   cmocka_unit_test_setup_teardown(fn, fixture_setup, fixture_teardown)
#define FIXTURE_RUN(tests) cmocka_run_group_tests(tests, fixture_start, fixture_end)

/* Open a node without connecting; fails the test if that fails. */
struct libkdbus *fixture_open(const char *path);

/* Whether pairs of connections may get ways of their own past the bus: the user engine. */
bool fixture_has_own_ways(const struct fixture *f);

/* BUS_MAKE with the default parameters; the command's return value. */
int fixture_make_bus(struct libkdbus *control, const char *name, uint64_t flags);

/* The other set-up commands. @access are policy records in list order; a name opens a record. */
struct access {
	const char *name;
	uint64_t type;
	uint64_t access;
	uint64_t id;
};

int fixture_make_endpoint(struct libkdbus *h, const char *name, uint64_t flags);
int fixture_update_endpoint(struct libkdbus *h, const struct access *access, size_t n);
/* A special connection; NULL and the negative errno if it is refused. */
struct libkdbus *fixture_special(const struct fixture *f, uint64_t flags,
				 const struct access *access, size_t n, int *ret_error);

/* An ordinary connection of the default kind on the bus, or on @path. */
struct libkdbus *fixture_connect(const struct fixture *f);
struct libkdbus *fixture_connect_to(const char *path, uint64_t hello_flags);
uint64_t fixture_id(struct libkdbus *h);

/* HELLO with everything to choose; the command's return value. */
int fixture_hello(struct libkdbus *h, uint64_t flags, uint64_t attach_send, uint64_t attach_recv,
		  uint64_t pool_size, const char *name);

/* FREE, and the other commands that take no more than this */
int fixture_free(struct libkdbus *h, uint64_t offset);
int fixture_byebye(struct libkdbus *h);
/* UPDATE with policy records, or with one mask */
int fixture_update_policy(struct libkdbus *h, const struct access *access, size_t n);
int fixture_update_mask(struct libkdbus *h, uint64_t type, uint64_t mask);
/* CONN_INFO by id, by name, or both; *@ret is to be freed with libkdbus_done(). */
int fixture_info(struct libkdbus *h, uint64_t id, const char *name, uint64_t attach,
		 const struct kdbus_info **ret);
/* As much of it as most tests want: the return value */
int fixture_has(struct libkdbus *h, uint64_t id, const char *name);
/* LIST; *@ret is to be freed by offset. */
int fixture_list(struct libkdbus *h, uint64_t flags, struct kdbus_cmd_list *ret);

/* Matches: one entry with the items built so far; the builder is cleared. */
int fixture_match(struct libkdbus *h, uint64_t cookie, uint64_t flags, struct libkdbus_builder *b);
void fixture_match_start(struct libkdbus_builder *b);
/* One entry for notifications about an id, or about a name */
void fixture_watch_id(struct libkdbus *h, uint64_t type, uint64_t id);
void fixture_watch_name(struct libkdbus *h, uint64_t type, const char *name);
/* One entry that catches every user signal: helper_match_all() */

/**
 * struct letter - a message to be sent; zero is a plain message without payload
 */
struct letter {
	uint64_t dst;
	const char *name;
	uint64_t flags;
	int64_t priority;
	uint64_t cookie;
	uint64_t reply; /* cookie_reply, or with EXPECT_REPLY timeout_ns */
	const void *data;
	size_t size;
	const int *fds;
	size_t n_fds;
	const int *memfds; /* 8 bytes of each */
	size_t n_memfds;
	bool bloom; /* a filter of 64 bytes: @filter, or all zero */
	const unsigned char *filter;
	uint64_t generation;
};

int fixture_send(struct libkdbus *h, const struct letter *letter);
/* As a synchronous call; the reply's message on success. */
int fixture_call(struct libkdbus *h, const struct letter *letter, int cancel_fd,
		 const struct kdbus_msg **ret_reply);
/* The default test message: 131,075 bytes, zeroes up to 8, 13 bytes, and a memfd if unicast */
int fixture_send_default(struct libkdbus *h, uint64_t dst, const char *name, uint64_t cookie);
int fixture_broadcast(struct libkdbus *h, uint64_t cookie);

/* RECV without waiting; -EAGAIN if there is nothing. */
int fixture_recv(struct libkdbus *h, struct kdbus_cmd_recv *cmd);
int fixture_recv_flags(struct libkdbus *h, uint64_t flags, int64_t priority,
		       struct kdbus_cmd_recv *cmd);
const struct kdbus_msg *fixture_message(struct libkdbus *h, uint64_t offset);
/* RECV and FREE, of as many messages as there are; their number */
unsigned int fixture_drain(struct libkdbus *h);
/* The next message, waiting for it; fails the test if none comes. */
const struct kdbus_msg *fixture_await(struct libkdbus *h);
/* The same, which must have that cookie, and is freed. */
void fixture_expect(struct libkdbus *h, uint64_t cookie);
/*
 * Wait until a message is queued, and leave it there: an engine may deliver a broadcast after SEND
 * has returned (doc/compat.md); everything else is there at once.
 */
void fixture_await_queued(struct libkdbus *h);
/* Nothing is there to be received */
void fixture_assert_empty(struct libkdbus *h);
const struct kdbus_item *fixture_item(const struct kdbus_msg *msg, uint64_t type);

/* An absolute deadline @ms from now */
uint64_t fixture_deadline(unsigned int ms);

/* A sealed memfd of 16 bytes */
int fixture_memfd(void);

/* ---- other processes ---- */

/*
 * Run @fn in a child process, as that uid and gid without groups; the result is its exit status.
 * Handles do not survive a fork: the child opens its own. What fails in it ends it.
 */
int fixture_as_user(unsigned int id, int (*fn)(void *arg), void *arg);
int fixture_as_nobody(int (*fn)(void *arg), void *arg);
bool fixture_can_change_user(void);

/**
 * struct companion - a child process that goes step by step with the test
 */
struct companion {
	pid_t pid;
	int sock;
};

/* Start @fn as user @id; it gets its own side of the companion. */
void companion_start(struct companion *c, unsigned int id,
		     int (*fn)(struct companion *self, void *arg), void *arg);
/* Both sides: wait until the other one is here as well. */
void companion_meet(struct companion *c);
/* Tell the other side a number, and hear it. */
void companion_tell(struct companion *c, uint64_t value);
uint64_t companion_hear(struct companion *c);
/* Wait for its end; the exit status. */
int companion_end(struct companion *c);

/* A test that needs to be root says so. */
#define FIXTURE_NEEDS_ROOT()                                          \
	do {                                                          \
		if (!fixture_can_change_user()) {                     \
			print_message("# needs other users: root\n"); \
			skip();                                       \
		}                                                     \
	} while (0)

#endif
