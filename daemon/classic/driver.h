/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef CLASSIC_DRIVER_H
#define CLASSIC_DRIVER_H

/*
 * driver.h - org.freedesktop.DBus: what the bus itself answers and tells
 *
 * 1. A method is a line in a table (driver_methods[]): interface, name, signatures, where it may be
 *    called, and the function. The tables of all driver-*.c files are listed in driver.c.
 * 2. A function answers exactly once, with driver_reply() or driver_error(), or keeps what it needs
 *    to do so later (struct driver_caller). Signals that it causes before its answer are queued
 *    before it.
 * 3. Errors are answered even to a call that wants no reply, as dbus-daemon does; replies are not.
 */

#include "classic.h"
#include "dbus/body.h"
#include "dbus/build.h"

#define DBUS_ERROR(name) "org.freedesktop.DBus.Error." name

/**
 * struct driver_call - a call to the driver
 * @from:	caller; in state CPEER_NEW it has no name
 * @m:		the call
 * @args:	reader at its first argument; the signature was checked
 */
struct driver_call {
	struct classic *classic;
	struct cpeer *from;
	struct cmsg *m;
	struct dbusp_reader args;
};

enum driver_flag {
	DRIVER_ANY_PATH = 1 << 0, /* not only at /org/freedesktop/DBus */
	DRIVER_BEFORE_HELLO = 1 << 1,
	DRIVER_PRIVILEGED = 1 << 2, /* root and the user the daemon runs as */
	DRIVER_NO_DESTINATION = 1 << 3, /* also of a call without destination */
};

/**
 * struct driver_method
 * @in, @out:	signatures
 */
struct driver_method {
	const char *interface;
	const char *name;
	const char *in;
	const char *out;
	unsigned int flags;
	void (*run)(struct driver_call *call);
};

struct driver_signal {
	const char *interface;
	const char *name;
	const char *signature;
};

struct driver_property {
	const char *interface;
	const char *name;
	const char *type;
	/* Appends its value, of @type */
	void (*get)(struct classic *k, struct dbusp_build *b);
};

struct driver_table {
	const struct driver_method *methods;
	size_t n_methods;
	const struct driver_signal *signals;
	size_t n_signals;
	const struct driver_property *properties;
	size_t n_properties;
};

/* All of them, ended by one with methods == NULL */
extern const struct driver_table *const driver_tables[];
extern const struct driver_table driver_names;
extern const struct driver_table driver_matches;
extern const struct driver_table driver_creds;
extern const struct driver_table driver_misc;
extern const struct driver_table driver_activation;
extern const struct driver_table driver_properties;
extern const struct driver_table driver_stats;
extern const struct driver_table driver_config;

/* What Introspect says about a path, to be freed; NULL: no memory */
char *driver_introspection(struct dbusp_str path);

/* A call whose destination is the driver, or that has none */
void driver_call(struct cpeer *from, struct cmsg *m);

/**
 * driver_reply_begin() - start the method return to a call
 * @b:		storage
 * @signature:	of the body
 *
 * Append the body with dbusp_put_...(), then driver_reply_end().
 */
void driver_reply_begin(struct driver_call *call, struct dbusp_build *b, const char *signature);
/* Send it, unless the caller wants none. @b is used up. */
void driver_reply_end(struct driver_call *call, struct dbusp_build *b);
/* The same with descriptors, which become the message's */
void driver_reply_begin_fds(struct driver_call *call, struct dbusp_build *b, const char *signature,
			    unsigned int n_fds);
void driver_reply_end_fds(struct driver_call *call, struct dbusp_build *b, const int *fds,
			  unsigned int n_fds);
/* An empty method return */
void driver_reply(struct driver_call *call);

/**
 * driver_error() - answer a call, or any other message, by an error
 * @to:		who sent it
 * @m:		what it is about
 * @name:	error name
 */
void driver_error(struct cpeer *to, const struct cmsg *m, const char *name, const char *format,
		  ...) __attribute__((format(printf, 4, 5)));
/* One that is not sent: monitors alone learn what became of the message. */
void driver_show_error(struct cpeer *to, const struct cmsg *m, const char *name, const char *text);
/* The same when only the serial is known */
void driver_error_serial(struct cpeer *to, uint32_t serial, const char *name, const char *format,
			 ...) __attribute__((format(printf, 4, 5)));

/*
 * The same to a native peer whose call @as, known to nobody else, was to have answered. Returns a
 * negative errno if it is not delivered.
 */
int driver_error_native(struct classic *k, struct peer *as, struct peer *to, uint32_t serial,
			const char *name, const char *text);

/**
 * driver_signal_begin() - start a signal of the driver
 * @destination: unique name; s == NULL: a broadcast
 */
void driver_signal_begin(struct classic *k, struct dbusp_build *b, const char *interface,
			 const char *member, const char *signature, struct dbusp_str destination);
/* Queue it for one peer, or for all who have a rule for it */
void driver_signal_to(struct cpeer *to, struct dbusp_build *b);
void driver_signal_all(struct classic *k, struct dbusp_build *b);

/* Show a message of the bus to monitors only, or to all but them */
void driver_show(struct classic *k, struct dbusp_build *b, const struct peer *to);
void driver_signal_unseen(struct cpeer *to, struct dbusp_build *b);

/* A method return to a call of which only the serial is kept; driver_signal_to() sends it. */
void driver_return_begin(struct cpeer *to, uint32_t serial, struct dbusp_build *b,
			 const char *signature);
/* A call that wants no reply, from the bus; driver_signal_to() sends it. */
void driver_call_begin(struct classic *k, struct dbusp_build *b, const char *path,
		       const char *interface, const char *member, const char *signature,
		       struct dbusp_str destination);

/* driver-activation.c: a signal to the bus. Is it about a unit that did not start? */
bool driver_is_activation_failure(const struct cmsg *m);
/* The same, and act on it if it is systemd's */
void driver_activation_failure(struct cpeer *from, struct cmsg *m);

/* Arguments: the next one, which the signature promised */
struct dbusp_str driver_arg_string(struct driver_call *call);
uint32_t driver_arg_u32(struct driver_call *call);

/* NameOwnerChanged to all, NameLost and NameAcquired to whom they concern; NULL: nobody */
void driver_owner_changed(struct classic *k, const char *name, struct peer *before,
			  struct peer *now);

/* Is this peer root or who the daemon runs as? */
bool driver_is_privileged(const struct cpeer *c);

#endif
