/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BENCH_TRANSPORT_H
#define BENCH_TRANSPORT_H

/**
 * DOC: one way to carry a request and its reply between two processes
 *
 * A *link* is a client and a server joined by a transport: two processes, or
 * two threads of one. Whatever is measured is made of *transactions*: a
 * request, answered by a reply.
 *
 * Rules
 *
 * 1. A transport's functions run in the process of their role and return 0 or
 *    a negative errno; one that failed has said why with link_error().
 * 2. The server learns what to expect and what to answer from job in shared
 *    memory, which changes only while no transaction is open.
 * 3. Both sides check what they receive with payload_check(); what a transport
 *    sends comes from payload_next().
 * 4. Requests of a link are answered in order.
 */

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "hist.h"
#include "payload.h"
#include "usage.h"

enum role {
	ROLE_CLIENT,
	ROLE_SERVER,
	ROLE_DAEMON,
	N_ROLES
};

enum job_kind {
	JOB_COPY, /* payload in the message, as an array of bytes */
	JOB_MEMFD, /* payload in a sealed memfd, made for this message */
	JOB_STRING, /* payload in the message, as a string */
	JOB_PASS, /* payload in one sealed memfd, passed again and again */
};

/**
 * struct job - what a transaction is
 * @kind: how the request carries its payload
 * @request: bytes of payload in the request
 * @reply: bytes of payload in the reply, carried as JOB_COPY or JOB_STRING
 * @poll: the client waits for the reply in poll(2), as an event loop does, instead of in the
 *	library's synchronous call
 * @poll_server: the server does, and not the client
 * @unread: of the request's payload only the first 4 KiB are compared, of a memfd that is passed
 *	nothing: it is mapped
 */
struct job {
	enum job_kind kind;
	size_t request;
	size_t reply;
	bool poll;
	bool poll_server;
	bool unread;
};

enum order_kind {
	ORDER_PLAIN,
	ORDER_FRESH,
	ORDER_STORM,
	ORDER_HOLD,
	ORDER_FLOW
};

/**
 * struct order - what the client is to do
 * @job: which transactions
 * @count: how many; 0: as many as fit into @ns
 * @ns: duration
 * @warm_ns: first do the same for so long without counting it
 * @window: transactions in flight; 1 is one after the other
 * @kind: ORDER_PLAIN: just that. ORDER_FRESH: @count times connect, do @nth transactions, time
 *	the last of them (or the connecting, if @nth is 0), disconnect. ORDER_STORM: @count times
 *	connect, take a name, do a transaction, disconnect, all timed together; then @hold
 *	connections at once, with names, and the daemon's memory and descriptors before, with, and
 *	after them. ORDER_HOLD: connect @hold times, timed one by one, and keep the connections;
 *	then add @nth match rules to each; the daemon's memory before, then, and with the rules.
 *	ORDER_FLOW: @count requests, of which only one in @window is answered
 */

struct order {
	struct job job;
	uint64_t count;
	uint64_t ns;
	uint64_t warm_ns;
	unsigned int window;
	enum order_kind kind;
	unsigned int nth;
	unsigned int hold;
};

struct result {
	uint64_t ops;
	uint64_t ns;
	struct usage usage[N_ROLES];
	uint64_t memory_kib[3];
	uint64_t descriptors[3];
	struct hist hist;
};

/* Memory of all processes of a link. */
struct link_shared {
	struct job job;
	struct order order;
	struct result result;
	char error[256];
	_Alignas(128) volatile uint32_t word[2][32]; /* [0]: request, [1]: reply */
};

struct transport;

struct link {
	const struct transport *transport;
	const char *address; /* of the bus, "" without one */
	char service[64]; /* name the server owns there */
	char subject[64]; /* what tables call it */
	struct link_shared *shared;
	struct payload out; /* of the own process and role */
	struct payload in;
	struct payload server_out; /* of the server when it is a thread of the client */
	struct payload server_in;
	bool threads;
	unsigned int receivers; /* of a broadcast */
	bool matching; /* do they want it? */
	unsigned int received; /* own to the server: copies of the broadcasts in flight */
	unsigned int receiver; /* own to the server: whose turn it is */
	uint64_t *due; /* own to the server: number of each receiver's next broadcast */
	uint32_t sent; /* own to the client: broadcasts */
	int pass_fd; /* own to the client: what JOB_PASS passes */
	size_t pass_size;
	bool relayed; /* a third process forwards between the two */
	int fds[8]; /* made by prepare(), closed in the main process */
	int n_fds;

	/* main process */
	pid_t client, server, relay, daemon;
	int control; /* to the client */
	int life; /* end of file once the server is gone */

	/* own to the client's process */
	pthread_t thread;
	clockid_t thread_clock;
	volatile pid_t thread_id;
	int ready;
	void *state;
};

/**
 * struct transport - the functions
 * @name: short name
 * @prepare: before the processes exist: descriptors into link->fds; optional
 * @serve: answer requests until killed; calls link_ready() first
 * @relay: forward between client and server until killed; only where links may be relayed
 * @open: connect as client
 * @call: one transaction, waiting for its reply
 * @burst: @count transactions, at most @window of them open at any time; optional
 * @flow: @count requests, of which each @window-th is answered; optional
 * @close: disconnect; only for what ORDER_FRESH and ORDER_STORM may use, like the next
 * @own: take a name as client
 * @match: add a match rule as client, number @i of its kind; only for ORDER_HOLD
 */
struct transport {
	const char *name;
	int (*prepare)(struct link *l);
	int (*serve)(struct link *l);
	int (*relay)(struct link *l);
	int (*open)(struct link *l);
	int (*call)(struct link *l, const struct job *job);
	int (*burst)(struct link *l, const struct job *job, uint64_t count, unsigned int window);
	int (*flow)(struct link *l, const struct job *job, uint64_t count, unsigned int window);
	void (*close)(struct link *l);
	int (*own)(struct link *l, const char *name);
	int (*match)(struct link *l, unsigned int i);
};

/**
 * link_prepare_pair() - a connected pair of sockets if there is no bus: fds[0] is the client's end
 *
 * Return: 0 or a negative errno.
 */
int link_prepare_pair(struct link *l);

/** link_is_direct() - is there no bus in between? */
bool link_is_direct(const struct link *l);

/** link_ready() - the server serves from here on */
void link_ready(struct link *l);

/** link_error() - keep a sentence for the main process, the first one; returns @error */
__attribute__((format(printf, 3, 4))) int link_error(struct link *l, int error, const char *format,
						     ...);

/** link_check() - payload_check(), as far as the job says; link_error() says what is wrong */
int link_check(struct link *l, struct payload *p, const void *data, size_t size, size_t expected);

/** link_server_in() - the payload series the server receives */
struct payload *link_server_in(struct link *l);

/** link_server_out() - the payload series the server sends */
struct payload *link_server_out(struct link *l);

/** link_has_memfd() - do requests of this job carry a memfd? */
bool link_has_memfd(const struct job *job);

/** link_memfd() - the sealed memfd of the client's next request; or a negative errno, said */
int link_memfd(struct link *l, const struct job *job);

/** link_memfd_sent() - it is not needed any more */
void link_memfd_sent(const struct job *job, int fd);

/** link_check_mapped() - check the mapped content of a request's memfd */
int link_check_mapped(struct link *l, const struct job *job, const void *data, size_t size);

/** link_check_memfd() - the same of one that is not mapped yet */
int link_check_memfd(struct link *l, const struct job *job, int fd);

extern const struct transport transport_pipe;
extern const struct transport transport_eventfd;
extern const struct transport transport_futex;
extern const struct transport transport_spin;
extern const struct transport transport_unix;
extern const struct transport transport_stream;
extern const struct transport transport_hello;
extern const struct transport transport_user;
extern const struct transport transport_user_asleep;
extern const struct transport transport_user_relayed;
extern const struct transport transport_copy;
extern const struct transport transport_user_fanout;
extern const struct transport transport_sdbus;
extern const struct transport transport_sdbus_fanout;
extern const struct transport transport_libdbus;
extern const struct transport transport_gdbus;

#endif
