/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef DAEMON_DAEMON_H
#define DAEMON_DAEMON_H

/*
 * daemon.h - kdbusd: the user engine's half that all clients share
 *
 * 1. One thread runs everything but what a client can make wait: its descriptors are closed
 *    elsewhere (reaper.c), and what /proc says of it is read there (reading.h). It never blocks on
 *    a client: sockets do not block, and what a client holds is never waited for.
 * 2. The thread works in rounds (design rule 12; round.c): take what clients sent, publish into
 *    the lanes of receivers, commit, ring, answer requests, advance the cursors of those it took
 *    from.
 * 3. Nothing a client writes is believed: records and requests are copied out, then checked.
 * 4. An expelled client is disconnected at the end of the round, never in the middle of something
 *    that walks over clients.
 * 5. Object graph: daemon > bus > endpoint > client. A handle (one socket) is a client from accept
 *    to hang-up, whatever it becomes.
 */

#include <linux/limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "account.h"
#include "base.h"

#include "bus.h"
#include "lane/channel.h"
#include "conn.h"
#include "lib/control.h"
#include "lane/page.h"
#include "lane/wait.h"
#include "lib/wire.h"

struct classic;
struct client;
struct creds;
struct kernel_bus;

/* What an epoll event leads to */
struct source {
	void (*ready)(struct source *source, u32 events);
};

/**
 * struct node - a socket in the domain directory
 * @source:	its listener in epoll
 * @fd:		listening socket
 * @daemon:	whose
 * @ep:		endpoint it leads to; NULL: the control node
 * @path:	where it is
 * @bound:	we made the socket, and remove it
 */
struct node {
	struct source source;
	int fd;
	struct daemon *daemon;
	struct endpoint *ep;
	char *path;
	bool bound;
};

/**
 * struct endpoint - an endpoint with its node
 */
struct endpoint {
	struct core_endpoint *core; /* own, or that of the bus */
	struct core_endpoint own;
	struct bus *bus;
	struct node node;
	struct list_head entry;
	struct client *owner; /* NULL for the default endpoint */
	unsigned int refs; /* handles opened on it */
};

/**
 * struct bus - a bus with its directory
 * @classic:	its front-end for classic peers; NULL: it has none
 * @wanted:	kinds of CREDS_LATE that a connection has wanted with messages
 * @n_native:	native connections
 * @kernel:	the bus of the module that this is a copy of; NULL: it is this daemon's own
 */
struct bus {
	struct core_bus core;
	struct daemon *daemon;
	struct endpoint def;
	struct list_head endpoints; /* custom */
	struct client *owner; /* NULL: the daemon's own bus */
	struct creds *creator;
	char *dir;
	struct classic *classic;
	u64 wanted;
	unsigned int n_native;
	const struct kernel_bus *kernel;
	struct list_head entry;
};

struct reaper;

struct daemon {
	struct core_domain core;
	char *dir;
	int epoll;
	bool stop;
	int error;
	struct node control;
	struct list_head buses;
	struct list_head clients;
	struct list_head doomed;
	struct list_head hot; /* clients whose lanes are polled */
	struct list_head dirty; /* clients with something published in this round */
	struct list_head taken; /* clients whose lanes were taken from */
	struct list_head answered; /* clients that get an answer */
	struct list_head settled; /* clients in front of whose lane nothing waits any more */
	struct list_head blocked; /* clients with an overflow */
	struct list_head launches; /* programs that run (classic/launch.c) */
	struct lane_page_owner page;
	int page_fd;
	u64 round;
	struct lane_clock clock;
	struct lane_ops lane_ops;
	struct lane_spin spin; /* only yields (lane/wait.h, 2) */
	struct reaper *reaper;
	struct readers *readers;
	unsigned int fd_limit;
	u64 last_intro;
	rlim_t inherited_fd_limit; /* the soft limit we were started with; services get it */
	unsigned char *datagram;
	unsigned char *record;
	struct rb_root accounts;
	struct classic *classic; /* front-end of one of the buses, or NULL */
	int receiving; /* socket that is received from, or -1 (fds.c) */
	int null_fd; /* closed to make room when accept() finds no descriptor left */
};

/* main loop (round.c) */
int daemon_run(struct daemon *d);
int daemon_watch(struct daemon *d, int fd, u32 events, struct source *source);
void daemon_unwatch(struct daemon *d, int fd);
u64 daemon_now(struct daemon *d);

/* domain.c, node.c */
int domain_start(struct daemon *d, const char *dir, const char *bus_name, u64 bus_flags);
void domain_stop(struct daemon *d);
int node_open(struct node *node, struct daemon *d, struct endpoint *ep, const char *path,
	      mode_t mode, uid_t uid, gid_t gid);
int node_adopt(struct node *node, struct daemon *d, struct endpoint *ep, const char *path, int fd);
int node_open_or_adopt(struct node *node, struct daemon *d, struct endpoint *ep, const char *path,
		       mode_t mode, uid_t uid, gid_t gid);
void node_close(struct node *node);
/*
 * The next client at a socket: its descriptor; -ECONNABORTED: it has gone, or was refused as there
 * are no descriptors left; another error: there is none now.
 */
int node_accept(struct daemon *d, int listening, const char *where);
/* One without nodes: a copy of another. */
int bus_copy(struct daemon *d, const char *name, struct bus **ret_bus);
int bus_make(struct daemon *d, const struct core_bus_make *make, const struct creds *creds,
	     struct client *owner, struct bus **ret_bus);
void bus_end(struct bus *bus);
int endpoint_make(struct bus *bus, const char *name, u64 flags, struct client *owner,
		  struct endpoint **ret_ep);
void endpoint_end(struct endpoint *ep);

/* reaper.c */
int reaper_start(unsigned int fd_limit, struct reaper **ret);
struct reaper *reaper_stop(struct reaper *reaper);
/* @fd came from a client of @uid, or from where @as came from: see lib/closer.h */
void reaper_note(struct reaper *reaper, int fd, uid_t uid);
void reaper_note_same(struct reaper *reaper, int fd, int as);
/* The highest number that was noted, since it was forgotten */
int reaper_highest(const struct reaper *reaper);
void reaper_forget_highest(struct reaper *reaper);
/* A copy of one, or negative errno */
int reaper_dup(struct reaper *reaper, int fd);
void reaper_close(struct reaper *reaper, int fd);
/* The same of a client's own: it hears of it at once. */
void reaper_close_socket(struct reaper *reaper, int fd);

/* log.c: on stderr only, unless it is said otherwise */
void log_open(const char *program, bool to_stderr, bool to_syslog);
void log_close(void);
void log_line(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* What clients of @uid bring about: bounded (log-limit.h) */
void log_about(uid_t uid, const char *format, ...) __attribute__((format(printf, 2, 3)));
void log_client(const struct client *c, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/**
 * struct log_rate - what keeps one source of lines from filling the log
 * @since:	when this period began
 * @n:		lines in it
 * @left_out:	those that were not written
 */
struct log_rate {
	u64 since;
	unsigned int n;
	unsigned long left_out;
};

/* For what others can cause as often as they like: some lines a period, and how many more. */
void log_sparingly(struct log_rate *rate, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* notify.c: the service manager */
void service_notify(const char *state);
int service_listen_fds(void);

#define SERVICE_FDS_START 3

#endif
