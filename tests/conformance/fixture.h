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

#define FIXTURE_POOL	   (16ULL << 20)
#define FIXTURE_NOBODY	   65534
#define FIXTURE_TIMEOUT_NS 20000000000ULL /* only ends a test that hangs */

struct fixture {
	char *domain;
	char *name;
	char *dir;
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
char *fixture_control(const struct fixture *f);

/* BUS_MAKE with the default parameters; the command's return value. */
int fixture_make_bus(struct libkdbus *control, const char *name, uint64_t flags);

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

/* Matches: one entry with the items built so far; the builder is cleared. */
int fixture_match(struct libkdbus *h, uint64_t cookie, uint64_t flags, struct libkdbus_builder *b);
void fixture_match_start(struct libkdbus_builder *b);
/* One entry that catches every user signal: an ID rule of ~0 */
int fixture_match_all(struct libkdbus *h);

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
	bool bloom; /* an all-zero filter of 64 bytes, generation 0 */
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
/* The next message, waiting for it; fails the test if none comes. */
const struct kdbus_msg *fixture_await(struct libkdbus *h);
/* Nothing is there to be received */
void fixture_assert_empty(struct libkdbus *h);
const struct kdbus_item *fixture_item(const struct kdbus_msg *msg, uint64_t type);

/* An absolute deadline @ms from now */
uint64_t fixture_deadline(unsigned int ms);

/* Run @fn as uid and gid 65534 in a child process; its return value is the exit status. */
int fixture_as_nobody(int (*fn)(void *arg), void *arg);
bool fixture_can_change_user(void);

#endif
