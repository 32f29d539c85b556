/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef TESTS_INTEGRATION_HOSTILE_H
#define TESTS_INTEGRATION_HOSTILE_H

/*
 * hostile.h - a peer that does what libkdbus never does
 *
 * Three connections in one process: the victim, an honest one, and the hostile one, which has been
 * introduced to the victim and uses the lanes behind the back of its library. The programs are
 * linked with the objects of the library, to get at them.
 */

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "lane/memfd.h"
#include "user/user.h"

#define HOSTILE_SIZE 100000u /* payload that travels in a buffer */

struct fixture {
	struct libkdbus_daemon *daemon;
	struct libkdbus *victim, *hostile, *honest;
};

/* The two are connected, not introduced; or the hostile one has asked for it, and writes first. */
int hostile_connect(void **state);
int hostile_introduce(void **state);
int hostile_tear_down(void **state);

/* The other way round: the victim has asked, the hostile one has not passed its lane yet. */
void hostile_be_introduced(struct fixture *f);

uint64_t hostile_id(struct libkdbus *h);
/* What @h knows of @other */
struct peer *hostile_peer_at(struct libkdbus *h, struct libkdbus *other);
/* The hostile one's end, and the victim's */
struct lane_channel *hostile_end(struct fixture *f);
struct lane_channel *hostile_victims_end(struct fixture *f);

/* SEND without payload, as it should be */
int hostile_send(struct libkdbus *from, struct libkdbus *to, uint64_t cookie);
/* RECV until there is nothing any more; how many messages there were */
unsigned int hostile_drain(struct libkdbus *h);
/* Wait for a message; its cookie */
uint64_t hostile_await(struct libkdbus *h);

/* Change the envelope of what has just been published. */
typedef void (*hostile_tamper_fn)(struct lane_channel *ch, struct lane_env *env);

/*
 * Publish a message in the lane to the victim, as SEND would: without payload, or with HOSTILE_SIZE
 * bytes in a buffer if @tamper is set.
 */
void hostile_publish(struct fixture *f, hostile_tamper_fn tamper);

/* A message on the socket of the channel */
void hostile_say(struct lane_channel *ch, uint16_t type, uint32_t value, int fd);

/* Files that are neither lanes nor buffers, HOSTILE_FILES of them; -1: not to be had here */
#define HOSTILE_FILES 7
int hostile_file(unsigned int which, const char **ret_name);

/* Whatever has happened: the honest one still reaches the victim, through the daemon and back. */
void hostile_assert_served(struct fixture *f);

#endif
