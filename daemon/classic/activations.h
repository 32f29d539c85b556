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
 * @serial:  of his call or message
 * @start:   it is a StartServiceByName, and nothing else is held
 * @quiet:   he wants no reply
 * @message: his message, as it came
 * @fds:     with it, or NULL
 * @held:    bytes on his account
 */
struct waiter {
	struct list_head entry;
	struct cpeer *from;
	uint32_t serial;
	bool start;
	bool quiet;
	struct cbuf *message;
	struct cfds *fds;
	size_t held;
};

/**
 * struct activation - a name that is being started
 * @entry:     in activations.list
 * @name:      the name
 * @unit:      unit that provides it, or NULL
 * @by_helper: the program is the service helper, whose exit status has a meaning
 * @awaits_systemd: the request to systemd is still to be made
 * @launch:    the program, while it runs
 */
struct activation {
	struct classic *classic;
	struct list_head entry;
	char *name;
	char *unit;
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
 */
struct activations {
	struct list_head list;
	unsigned int n;
	struct environment environment;
};

/* activate.c */
void activation_fail(struct activation *a, const char *error, const char *text);
void activation_free(struct activation *a);
/* StartServiceByName of a name that nobody owns; it is answered when the time has come */
void activate_for_call(struct cpeer *from, struct cmsg *m, const struct service_file *service);

/* activate-start.c: may end the activation at once */
void activation_start(struct activation *a, const struct cpeer *by,
		      const struct service_file *service);
/* systemd is here: ask it for all that wait */
void activations_ask_systemd(struct classic *k);
/* systemd says that a unit did not start */
void activations_unit_failed(struct classic *k, const char *unit, const char *error,
			     const char *text);

#endif
