/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef TESTS_VM_BUS_H
#define TESTS_VM_BUS_H

/*
 * Bare ioctl tests of kdbus.ko: no library between test and kernel.
 *
 *  1. Each test runs in a process of its own, on a bus of its own.
 *  2. Commands return 0 or a negative errno.
 *  3. A check that fails ends the test, naming file, line and values.
 */

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "kdbus.h"

#define ROOT	 "/sys/fs/kdbus"
#define POOL	 (16UL << 20)
#define BLOOM	 64
#define ALL	 _KDBUS_ATTACH_ALL
#define ANY	 KDBUS_MATCH_ID_ANY
#define ABSENT	 65534
#define NO_REPLY (~0ULL)

/* A test, and the list of them that ends with a name of NULL. */
struct test {
	const char *name;
	void (*run)(void);
};

int run_tests(const struct test *tests);

/* End the test: this kernel cannot tell. */
void skip_test(void) __attribute__((noreturn));

void check_failed(const char *file, int line, const char *what, long long a, long long b)
	__attribute__((noreturn));

#define CHECK(cond)                                                    \
	do {                                                           \
		if (!(cond))                                           \
			check_failed(__FILE__, __LINE__, #cond, 0, 0); \
	} while (0)

#define EQ(a, b)                                                                   \
	do {                                                                       \
		long long _a = (long long)(a), _b = (long long)(b);                \
		if (_a != _b)                                                      \
			check_failed(__FILE__, __LINE__, #a " == " #b, _a, _b);    \
	} while (0)

/* The bus of this test, and its path. */
extern int bus_fd;
extern char bus_dir[128];
extern char bus_path[160];

/* A command or message that is being put together. */
struct buf {
	union {
		uint64_t words[4096];
		struct kdbus_cmd cmd;
		struct kdbus_cmd_hello hello;
		struct kdbus_cmd_info info;
		struct kdbus_cmd_list list;
		struct kdbus_cmd_free free;
		struct kdbus_cmd_match match;
		struct kdbus_cmd_send send;
		struct kdbus_cmd_recv recv;
		struct kdbus_msg msg;
	};
};

void start(struct buf *b, size_t fixed);
void *put(struct buf *b, uint64_t type, const void *data, size_t size);
void put_str(struct buf *b, uint64_t type, const char *str);
void put_u64(struct buf *b, uint64_t type, uint64_t value);
void put_access(struct buf *b, uint64_t type, uint64_t id, uint64_t access);
int cmd(int fd, unsigned long nr, void *arg);

/* A connection. */
struct peer {
	int fd;
	uint64_t id;
	const char *pool;
};

int open_at(const char *path);
int try_hello(struct peer *peer, const char *path, struct buf *b);
void hello_buf(struct buf *b, uint64_t flags);
void hello_at(struct peer *peer, const char *path, uint64_t flags);
void hello(struct peer *peer);
void bye(struct peer *peer);

int make_bus(int fd, const char *name, uint64_t flags);
int acquire(struct peer *peer, const char *name, uint64_t flags, uint64_t *ret_flags);
int release(struct peer *peer, const char *name);
int match(struct peer *peer, uint64_t cookie, uint64_t flags, uint64_t type, const void *data,
	  size_t size);
void match_all(struct peer *peer);
int free_slice(struct peer *peer, uint64_t offset);

/* Messages: msg_buf() starts one with a cookie, send() sends it. */
void msg_buf(struct buf *m, uint64_t dst, uint64_t cookie);
void put_vec(struct buf *m, const void *data, size_t size);
void put_filter(struct buf *m, const uint8_t *filter, uint64_t generation);
int send_msg(struct peer *from, struct buf *m, uint64_t flags, struct kdbus_msg_info *ret_reply);
int send_plain(struct peer *from, uint64_t dst, uint64_t cookie);
int send_name(struct peer *from, const char *name, uint64_t cookie);
int send_call(struct peer *from, uint64_t dst, uint64_t cookie, uint64_t timeout_ns);
int send_reply(struct peer *from, uint64_t dst, uint64_t cookie);
int broadcast(struct peer *from, uint64_t cookie);

int recv_flags(struct peer *peer, uint64_t flags, int64_t priority, struct kdbus_cmd_recv *ret);
int recv_msg(struct peer *peer, const struct kdbus_msg **ret_msg);
void done(struct peer *peer, const struct kdbus_msg *msg);
void drain(struct peer *peer);

/* A message that must be there: its cookie, after freeing it. */
uint64_t recv_cookie(struct peer *peer);

const struct kdbus_item *find_item(const void *start, size_t fixed, size_t size, uint64_t type);
const struct kdbus_item *msg_item(const struct kdbus_msg *msg, uint64_t type);
const void *payload(const struct kdbus_item *item);
size_t payload_size(const struct kdbus_item *item);

uint64_t now_ns(void);
int sealed_memfd(const void *data, size_t size);
bool readable(int fd);

/* Run @fn with @data in a child; with all ids @id and no groups if that is not 0. */
pid_t spawn(unsigned int id, void (*fn)(void *data), void *data);
void join(pid_t pid);
void in_child(unsigned int id, void (*fn)(void *data), void *data);

#endif
