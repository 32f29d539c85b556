/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef TESTS_STRESS_ORDER_WORKER_H
#define TESTS_STRESS_ORDER_WORKER_H

/*
 * order-worker.h - one worker of the order test (order.h): what it knows, and how its parts meet
 */

#include "order.h"

#define ENDED_MAX 64
#define HELD_MAX  24
#define NO_NAME	  NAMES

enum kind {
	PLAIN,
	CALL, /* answered with a message like any other */
	SYNC_CALL,
	REPLY,
};

struct body {
	uint32_t from;
	uint32_t kind;
	uint32_t name; /* it was sent by, or NO_NAME */
	uint32_t by_id; /* it counts in the life it was sent to */
	uint32_t broadcast; /* its number among those of its sender */
	uint32_t direct; /* it came so; set by the receiver */
	uint32_t files; /* a descriptor comes with it */
	uint32_t answers; /* the number of the call */
	uint32_t clock[SLOTS];
	uint32_t epochs[NAMES];
};

struct worker {
	struct order_shared *shared;
	struct order_slot *mine;
	unsigned int slot;
	const char *bus;
	struct libkdbus *h;
	struct libkdbus *monitor;
	struct order_life *life;
	uint32_t received; /* in this life, of what was sent to its id */
	uint32_t open; /* in this life, calls without an outcome */
	uint32_t heard[SLOTS]; /* in this life, the last broadcast of each */
	bool settled; /* this life was there when all met */
	bool lossy; /* in this life broadcasts were lost, as RECV said */
	uint32_t clock[SLOTS]; /* what this worker knows of */
	uint32_t seen[SLOTS]; /* what messages delivered to it knew of */
	struct body knew[SLOTS]; /* the message that knew of it */
	uint32_t epochs[NAMES];
	uint32_t owned[NAMES]; /* epoch in which this worker was the last owner */
	bool owner[NAMES];
	uint64_t ended[ENDED_MAX];
	unsigned int n_ended;
	const struct kdbus_msg *held[HELD_MAX]; /* received, and not given back */
	unsigned int n_held;
	size_t padding; /* of the message that is being built */
	uint64_t random;
};

extern const char *const order_names[NAMES];

unsigned int draw(struct worker *w, unsigned int n);
bool failed(const struct worker *w);
void fail(struct worker *w, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Receiving (order-check.c). The first returns whether there was anything. */
bool receive(struct worker *w);
void free_held(struct worker *w);
/* What a message knows its receiver knows from then on. */
void learn(struct worker *w, const struct body *body);
/* The body of a message, or NULL after a failure */
const struct body *body_of(struct worker *w, const struct kdbus_msg *msg);

/* Sending (order-send.c) */
void send_by_id(struct worker *w);
void send_by_name(struct worker *w);
void broadcast(struct worker *w);
void call(struct worker *w);
void call_and_wait(struct worker *w);
void answer(struct worker *w, const struct kdbus_msg *msg, const struct body *call);

/* Meeting (order-meet.c) */
void meet(struct worker *w, unsigned int point, unsigned int turn);
void settle(struct worker *w, unsigned int turn);

#endif
