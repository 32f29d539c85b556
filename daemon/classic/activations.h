/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef CLASSIC_ACTIVATIONS_H
#define CLASSIC_ACTIVATIONS_H

/* activations.h - the inside of activate.h, for activate*.c and driver-activation.c */

#include "activate.h"
#include "environment.h"
#include "launch.h"
#include "service-file.h"
#include "timer.h"

#define ACTIVATE_SYSTEMD "org.freedesktop.systemd1"

/* What StartServiceByName returns */
enum {
	ACTIVATE_STARTED = 1,
	ACTIVATE_RUNNING = 2,
};

/**
 * struct waiter - somebody who waits for an activation
 * @entry:   in activation.waiters, in the order in which they asked
 * @from:    who
 * @next_of_from, @link_of_from: in peer.starts of @from
 * @native:  of a native peer: what its carrier has of it
 * @serial:  of his call or message
 * @start:   it is a StartServiceByName, and nothing else is held
 * @quiet:   he wants no reply
 * @message: his message, as it came
 * @fds:     with it, or NULL
 * @held, @held_fds: bytes and descriptors that are his to bear
 */
struct waiter {
	struct list_head entry;
	struct peer *from;
	struct waiter *next_of_from, **link_of_from;
	void *native;
	uint32_t serial;
	bool start;
	bool quiet;
	struct cbuf *message;
	struct cfds *fds;
	size_t held;
	unsigned int held_fds;
};

/**
 * struct activation - a name that is being started
 * @entry:     in activations.list
 * @name:      the name
 * @unit:      unit that provides it, or NULL
 * @begun:     it was begun; else somebody waits only since this round
 * @by:        uid of who asked first: the log has no more lines for him than for others
 * @standin:   who answers native peers until the name has an owner; NULL: none waits
 * @by_helper: the program is the service helper, whose exit status has a meaning
 * @awaits_systemd: the request to systemd is still to be made
 * @launch:    the program, while it runs
 */
struct activation {
	struct classic *classic;
	struct list_head entry;
	char *name;
	char *unit;
	bool begun;
	uid_t by;
	struct peer *standin;
	bool by_helper;
	bool awaits_systemd;
	struct launch *launch;
	struct timeout timeout;
	struct list_head waiters;
};

/**
 * struct activations - all of them
 * @n:           how many
 * @environment: of the programs
 * @for_systemd: variables that systemd is still to be told of
 * @tell_systemd: ditto, even if there are none
 */
struct activations {
	struct list_head list;
	unsigned int n;
	struct environment environment;
	struct environment for_systemd;
	bool tell_systemd;
};

/* activate.c */
/*
 * The activation of a service, made if there is none. -EMLINK: too many are under way
 * (max_pending_service_starts); -ENOMEM.
 */
int activation_get(struct classic *k, const struct service_file *service, struct activation **ret);
/* Somebody waits; what @w holds was counted in. Does he, and all of his, stay within the limits? */
void waiter_add(struct activation *a, struct waiter *w, struct peer *from);
/* Which limit @bytes and @fds more would exceed, or NULL; @ret_max is what it is set to */
const char *waiter_limit(const struct classic *k, const struct peer *from, size_t bytes,
			 unsigned int fds, long *ret_max);
void activation_fail(struct activation *a, const char *error, const char *text);
void activation_free(struct activation *a);
/* StartServiceByName of a name that nobody owns; it is answered when the time has come */
void activate_for_call(struct cpeer *from, struct cmsg *m, const struct service_file *service);

/* activate-native.c; see activate.h */
void native_wait_free(struct waiter *w);
void native_wait_deliver(struct waiter *w, struct peer *owner);
void native_wait_fail(struct activation *a, struct waiter *w, const char *error, const char *text);
/* The name has an owner: what was called is he now. */
void standin_move(struct activation *a, struct peer *owner);
/* Nothing more will come of it. */
void standin_end(struct activation *a);

/* activate-start.c: may end the activation at once */
void activation_start(struct activation *a, const struct service_file *service);
/* systemd is here: ask it for all that wait */
void activations_ask_systemd(struct classic *k);
/* If it is here: the variables of UpdateActivationEnvironment. It is told once it comes else. */
void activations_tell_systemd(struct classic *k, bool waited);
/* systemd says that a unit did not start */
void activations_unit_failed(struct classic *k, const char *unit, const char *error,
			     const char *text);

#endif
