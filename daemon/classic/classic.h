/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef CLASSIC_CLASSIC_H
#define CLASSIC_CLASSIC_H

/*
 * classic.h - the front-end for programs that speak D-Bus over a stream socket
 *
 * 1. A classic peer is a connection of the bus like a native one: core has its id, its names and
 *    its place in the notifications. What it sends to a classic peer never enters core, though: it
 *    goes from the buffer it was received in to the receiver's socket.
 * 2. The daemon works in rounds (daemon/daemon.h). In a round each readable peer is received from
 *    once, its messages are checked, routed and appended to the queues of their receivers; at the
 *    end each receiver gets all of it with one sendmsg(). What lies in the buffers of the round is
 *    valid until then: output.c copies only what a socket did not take.
 * 3. Everything a peer sends is acted on in order, calls to the driver included. Its answers and
 *    signals are queued in the order in which they are caused.
 * 4. A peer is never ended while something walks over peers: it is *doomed*, and buried when the
 *    round ends. Nothing is sent to a doomed peer.
 * 5. What it costs is the receiver's: a unicast that finds its queue full is refused to the sender,
 *    a broadcast that does ends the receiver. A peer that does not read its answers is not read
 *    from.
 * 6. Unique names are ":1.N", N being the connection id minus a constant of the bus; the first
 *    connection is ":1.0". The ids are core's, so native peers have such names, too.
 * 7. One thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/client.h"
#include "config.h"
#include "dbus/args.h"
#include "dbus/hash.h"
#include "dbus/header.h"
#include "dbus/known.h"
#include "dbus/sasl.h"
#include "dbus/str.h"
#include "policy.h"
#include "timer.h"

#define CLASSIC_DRIVER	    "org.freedesktop.DBus"
#define CLASSIC_DRIVER_PATH "/org/freedesktop/DBus"
#define CLASSIC_HEADERS	    32
#define CLASSIC_UNIQUE_MAX  24 /* ":1.18446744073709551615" and a NUL */

struct activations;
struct auth;
struct carrier;
struct classic;
struct cpeer;
struct dbusp_match;
struct link_to_module;
struct listener;
struct matches;
struct oblock;
struct partial;
struct replies;
struct rule;
struct seg;
struct services;
struct timer;
struct watch;

/**
 * struct cbuf - memory of a message that does not fit the buffers of a round; counted
 * @size:	bytes of the message
 * @room:	bytes there are
 * @next:	while nobody uses it (buffers.c)
 * @age:	how old those that are kept were when it was given back
 */
struct cbuf {
	unsigned int refs;
	unsigned int age;
	size_t size;
	size_t room;
	struct cbuf *next;
	unsigned char data[];
};

struct cbuf *cbuf_new(size_t size);
struct cbuf *cbuf_ref(struct cbuf *buf);
struct cbuf *cbuf_unref(struct cbuf *buf);
/* Is something kept to be used again? */
bool cbuf_kept(void);
/* Free of that what nobody has used since the last call. Returns whether something is left. */
bool cbuf_age(void);
/* Free all of it. */
void cbuf_trim(void);

/**
 * struct cfds - descriptors that travel with a message; counted, the last one closes them
 */
struct cfds {
	unsigned int refs;
	unsigned int n;
	struct reaper *reaper;
	int fds[];
};

struct cfds *cfds_new(struct reaper *reaper, const int *fds, unsigned int n);
struct cfds *cfds_ref(struct cfds *fds);
struct cfds *cfds_unref(struct cfds *fds);

/**
 * struct cmsg - a message on its way: on the stack of who routes it
 * @from:	sender; NULL: the driver
 * @header:	parsed and checked, as it came
 * @raw:	the message as it came
 * @body:	its checked body, header.frame.body_len bytes
 * @buf:	where @body lies, if not in the buffers of the round
 * @fds:	descriptors, header.n_fds of them; NULL: none
 * @sender:	unique name that it is delivered with
 * @head:	header with @sender in it, made by cmsg_head(); NULL: not yet
 * @head_len:	its bytes
 * @joined:	@body lies behind @head as well
 * @filled:	classic.out_fills when @head was made; another one: it is no longer there
 * @args_ready:	@args was initialised
 * @policy_ready: @policy was
 * @policy:	what the policy may ask about it (access.c)
 */
struct cmsg {
	struct peer *from;
	struct dbusp_header header;
	const unsigned char *raw;
	const unsigned char *body;
	struct cbuf *buf;
	struct cfds *fds;
	struct dbusp_str sender;
	const unsigned char *head;
	uint32_t head_len;
	uint64_t filled;
	bool joined;
	bool args_ready;
	bool policy_ready;
	struct dbusp_args args;
	struct policy_msg policy;
};

static inline bool cmsg_is_signal(const struct cmsg *m)
{
	return m->header.frame.type == DBUSP_SIGNAL;
}

static inline bool cmsg_wants_reply(const struct cmsg *m)
{
	return m->header.frame.type == DBUSP_METHOD_CALL &&
	       !(m->header.frame.flags & DBUSP_NO_REPLY_EXPECTED);
}

enum cpeer_state {
	CPEER_AUTH, /* SASL goes on */
	CPEER_NEW, /* authenticated; Hello is to come */
	CPEER_ACTIVE, /* on the bus */
	CPEER_MONITOR, /* BecomeMonitor: has no name any more, receives everything that matches */
	CPEER_DOOMED, /* to be buried at the end of the round */
};

/**
 * struct cpeer - a classic connection, from accept() on
 * @source:	its socket in epoll
 * @classic:	whose
 * @listener:	where it came in
 * @fd:		socket
 * @events:	what epoll waits for
 * @state:	see there
 * @was:	@state before it was doomed
 * @fds_ok:	it negotiated descriptors
 * @deaf:	it reads no more; what it sent before is still taken
 * @ended:	it has closed its end, and all it sent was taken
 * @unread:	it is being read (reading.h): nothing is taken from it
 * @anonymous:	it did not say who it is
 * @roomy:	its socket takes as much as the kernel lets it
 * @usual:	bytes of its last message
 * @name:	unique name, once active
 * @name_len:	its bytes
 * @uid, @gid, @pid: from the socket, of the moment of connect(); pid 0 and ids -1: unknown
 * @entry:	in classic.peers, or classic.doomed
 * @sasl:	until Hello
 * @in:		a message of which the beginning is there (input.c)
 * @out, @out_last: queue: blocks that wait (output.c)
 * @round, @round_last: queue: what was added in this round, behind @out
 * @out_bytes, @out_fds: what is in both
 * @out_charged: bytes of @out on the account of its uid
 * @dirty_entry: in classic.dirty: something is to be sent
 * @rules:	its match rules (match.c)
 * @n_rules:	how many, duplicates counted
 * @visited:	last search that found it
 * @calls:	struct call it made and waits for (reply.c)
 * @n_calls:	how many
 * @link:	what it has on a bus of the module (module/module.h)
 */
struct cpeer {
	PEER;
	struct source source;
	struct classic *classic;
	struct listener *listener;
	int fd;
	uint32_t events;
	uint32_t usual;
	uint8_t state;
	uint8_t was;
	bool fds_ok;
	bool deaf;
	bool ended;
	bool unread;
	bool anonymous;
	bool roomy;
	uint8_t name_len;
	char name[CLASSIC_UNIQUE_MAX];
	uid_t uid;
	gid_t gid;
	pid_t pid;
	struct list_head entry;
	struct auth *sasl;
	struct partial *in;
	struct oblock *out, *out_last;
	struct seg *round, *round_last;
	size_t out_bytes;
	size_t out_charged;
	unsigned int out_fds;
	struct list_head dirty_entry;
	struct rule *rules;
	unsigned int n_rules;
	uint64_t visited;
	struct rb_root calls;
	unsigned int n_calls;
	struct link_to_module *link;
};

/* Of a connection that is known to be classic */
static inline struct cpeer *cpeer_of(const struct core_conn *conn)
{
	return container_of((struct core_conn *)conn, struct cpeer, conn);
}

/* NULL: a native one */
static inline struct cpeer *classic_peer(const struct peer *p)
{
	return p->kind == PEER_CLASSIC ? cpeer_of(&p->conn) : NULL;
}

static inline struct dbusp_str cpeer_name(const struct cpeer *c)
{
	return (struct dbusp_str){ c->name, c->name_len };
}

/**
 * struct classic - the front-end of a bus
 * @daemon, @bus: whose
 * @carrier, @carrier_data: what the bus does for it (carrier.h)
 * @config:	configuration; never NULL once started
 * @services:	what can be activated (service-file.h)
 * @activations: what is being started, and the messages that wait for it (activate.h)
 * @systemd_activation: services that name a unit are started by systemd
 * @hash_key:	of the tables that clients fill
 * @monitors:	struct monitor.entry (monitor.h)
 * @listeners:	struct listener.entry
 * @address:	all addresses it listens at, each with its guid, separated by ';'
 * @guid:	32 hex digits, of the bus
 * @peers:	struct cpeer.entry of those alive
 * @doomed:	the others
 * @n_incomplete, @n_active: peers before and after Hello
 * @dirty:	peers with something to be sent in this round
 * @in:		where is received; @in_used bytes are in use in this round (input.c)
 * @out:	headers and small messages; @out_used bytes are in use in this round (output.c)
 * @out_fills:	how often it was emptied
 * @out_large:	a header that does not fit it; gone when it is emptied
 * @segs:	what is to be sent, @n_segs in use in this round
 * @undelivered: struct undelivered.entry (undelivered.h)
 * @matches:	all match rules (match.c)
 * @replies:	calls without a reply (reply.c)
 * @search:	number of the last search for receivers
 * @serial:	last serial of the driver
 * @driving:	call of the bus that is being carried out, unless it was refused
 * @timer:	for everything that ends by time (timer.c)
 * @aging:	set while buffers are kept: they get older (classic.c)
 * @watch:	directories of the configuration (watch.c); NULL: they cannot be watched
 * @known:	what the policy says about a user, for the next of his (access.c)
 * @msg:	the message of a peer that is being routed
 * @headers:	of messages that came, to know them again (input.c)
 */
struct classic {
	struct daemon *daemon;
	struct bus *bus;
	const struct carrier *carrier;
	void *carrier_data;
	struct config *config;
	struct services *services;
	struct activations *activations;
	bool systemd_activation;
	struct dbusp_hash_key hash_key;
	struct list_head monitors;
	struct list_head listeners;
	char *address;
	char guid[DBUSP_GUID_LEN + 1];
	struct list_head peers;
	struct list_head doomed;
	unsigned int n_incomplete;
	unsigned int n_active;
	struct list_head dirty;
	unsigned char *in;
	size_t in_used;
	unsigned char *out;
	size_t out_used;
	uint64_t out_fills;
	struct cbuf *out_large;
	struct seg *segs;
	unsigned int n_segs;
	struct list_head undelivered;
	struct matches *matches;
	struct replies *replies;
	uint64_t search;
	uint32_t serial;
	const struct cmsg *driving;
	struct timer *timer;
	struct timeout aging;
	struct watch *watch;
	struct {
		struct policy *policy;
		struct policy_view *view;
		uid_t uid;
	} known;
	struct cmsg msg;
	struct dbusp_known headers[CLASSIC_HEADERS];
};

static inline const struct config_limits *classic_limits(const struct classic *k)
{
	return &k->config->limits;
}

/* ---- classic.c: start and end ---- */

/**
 * classic_start() - serve a bus to classic peers
 * @bus:	the bus; has none yet
 * @config:	what to listen at and all the rest; a reference is taken
 * @carrier:	what carries it
 * @systemd_activation: services that name a unit are started by systemd
 *
 * Return: 0, and bus->classic is set; negative errno, after a line in the log.
 */
int classic_start(struct bus *bus, struct config *config, const struct carrier *carrier,
		  bool systemd_activation);

/**
 * classic_stop() - end it: all peers, all sockets
 * @bus:	with or without a front-end
 */
void classic_stop(struct bus *bus);

/* At the beginning of a round: see what the bus has for it. */
void classic_look(struct classic *k);
/* Before the commit of a round: bury the doomed, which may doom more. */
void classic_bury(struct classic *k);
/* After it: send what was queued. */
void classic_end_round(struct classic *k);

/* ---- listen.c ---- */

int listen_start(struct classic *k);
void listen_stop(struct classic *k);

/* ---- cpeer.c: from accept() to the grave ---- */

void cpeer_accept(struct classic *k, struct listener *listener, int fd);
/* Why goes to the log; NULL for an end that is nobody's fault. */
void cpeer_doom(struct cpeer *c, const char *format, ...) __attribute__((format(printf, 2, 3)));
void cpeer_bury(struct cpeer *c);
/* Have epoll wait for what there is to wait for. */
void cpeer_watch(struct cpeer *c);
/* What native peers want to know of it is known. */
void cpeer_was_read(struct cpeer *c);
void cpeer_log(const struct cpeer *c, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/**
 * cpeer_join() - Hello: become a connection of the bus
 * @c:	authenticated
 *
 * Return: 0; -ENOMEM and what the bus says.
 */
int cpeer_join(struct cpeer *c);
/* Become nobody on the bus: at the end, or to be a monitor. */
void cpeer_leave(struct cpeer *c);

static inline bool cpeer_alive(const struct cpeer *c)
{
	return c->state != CPEER_DOOMED;
}

/* ---- auth.c ---- */

int auth_begin(struct cpeer *c);
void auth_free(struct cpeer *c);
/**
 * auth_take() - go on with received bytes
 * @ret_consumed: how many belonged to it; the rest are messages if the state is CPEER_NEW now
 */
void auth_take(struct cpeer *c, const unsigned char *data, size_t size, size_t *ret_consumed);

/* ---- input.c ---- */

void input_ready(struct cpeer *c);
void input_free(struct cpeer *c);

/* ---- output.c ---- */

/**
 * output_room() - memory that is valid until the round ends
 * @size:	at most OUTPUT_ROOM_MAX
 *
 * May send what was queued so far. Return: the memory, right behind what was taken before.
 */
#define OUTPUT_ROOM_MAX (64U << 10)
unsigned char *output_room(struct classic *k, size_t size);

/**
 * cmsg_head() - make the header that a message is delivered with
 *
 * Return: 0; -EMSGSIZE: it would be too large with its sender; -ENOMEM.
 */
int cmsg_head(struct classic *k, struct cmsg *m);
/* The same, unless it has one that is still there. */
int cmsg_head_kept(struct classic *k, struct cmsg *m);

/**
 * output_add() - queue a message
 * @to:	receiver, alive, that may have the descriptors
 * @m:	message with a head
 *
 * No limit is checked: see output_full(). Return: 0; -ENOMEM.
 */
int output_add(struct cpeer *to, struct cmsg *m);

/* Has it as much waiting as a receiver may have? If so, what limit is it, and how much; or NULL */
const char *output_limit(const struct cpeer *to, long *ret_max);
bool output_full(const struct cpeer *to);
/* Does so much of its own wait for it that nothing more is to be read from it? */
bool output_stalls(const struct cpeer *c);
void output_flush(struct cpeer *to);
/* Send what was queued by now, for all: their buffers are as good as new then. */
void classic_flush(struct classic *k);
/* The socket has room. */
void output_ready(struct cpeer *to);
void output_free(struct cpeer *c);

/* ---- route.c ---- */

/* A complete, valid message of a peer. */
void route_message(struct cpeer *c, struct cmsg *m);
/**
 * route_to() - deliver a message to the peer it is addressed to
 * @from:	sender
 * @to:		receiver, of either kind
 * @m:		message, its sender filled in
 *
 * Errors go to the sender, if it is one who wants them. For messages that waited for @to, too.
 */
void route_to(struct cpeer *from, struct peer *to, struct cmsg *m);
/* Tell the caller why reply_expect() refused its call. */
void route_refuse_call(struct cpeer *from, const struct cmsg *m, int error);
/* A signal to everybody whose rules say so; @m->from NULL: of the driver. Natives included. */
void route_broadcast(struct classic *k, struct cmsg *m);
/* A call of the bus was carried out: those who eavesdrop see it. */
void route_eavesdrop(struct cpeer *from, struct cmsg *m);
/* The same for classic receivers only */
void route_to_matches(struct classic *k, struct cmsg *m);
/* roster.c: unique name of a peer, in a buffer of CLASSIC_UNIQUE_MAX bytes */
struct dbusp_str unique_name(const struct peer *p, char *buf);
/* What follows ":1." of a unique name, as an id of core; 0: it is none */
uint64_t unique_id(const struct classic *k, struct dbusp_str name);

/* ---- reply.c: who waits for what ---- */

int replies_init(struct classic *k);
void replies_free(struct classic *k);
/**
 * reply_expect() - a call is on its way
 *
 * Return: 0; -EEXIST: the caller waits for a reply to this serial already; -EMLINK: it has too many
 * calls; -ENOMEM.
 */
int reply_expect(struct cpeer *caller, struct peer *callee, uint32_t serial);
/* It was not sent after all. */
void reply_forget(struct cpeer *caller, uint32_t serial);
/* Does @caller wait for this from @callee? */
bool reply_is_expected(struct cpeer *caller, const struct peer *callee, uint32_t serial);
/* Does it wait for a reply to this of any native peer? */
bool reply_awaits_native(struct cpeer *caller, uint32_t serial);
/* Does @caller wait for this from @callee, and does no longer? */
bool reply_take(struct cpeer *caller, const struct peer *callee, uint32_t serial);
/* What was to come from @from comes from @to. */
void replies_move(struct peer *from, struct peer *to);
/* @p has gone: who waits for it gets NoReply, and what it waited for is forgotten. */
void replies_end(struct classic *k, struct peer *p);

/* ---- match.c: rules ---- */

int matches_init(struct classic *k);
void matches_free(struct classic *k);
void matches_end(struct cpeer *c);
/**
 * match_add() - AddMatch
 *
 * Return: 0; -ENOMEM.
 */
int match_add(struct cpeer *c, const struct dbusp_match *rule);
/**
 * match_remove() - RemoveMatch
 *
 * Return: 0; -ENOENT: it has no such rule.
 */
int match_remove(struct cpeer *c, const struct dbusp_match *rule);
/* Has anybody rules? */
bool match_any(const struct classic *k);
/* Does anybody eavesdrop? */
bool match_any_eavesdrops(const struct classic *k);
/**
 * match_find() - visit each peer with a rule that matches, once
 * @m:		message
 * @to:		who it is addressed to; NULL: nobody, and all rules are looked at, else only those
 *		that eavesdrop
 * @visit:	must not add or remove rules
 */
void match_find(struct classic *k, struct cmsg *m, const struct peer *to,
		void (*visit)(struct cpeer *c, struct cmsg *m));

/**
 * match_shows() - does a monitor's rule match?
 * @rule:	as if it said eavesdrop='true'
 * @m:		message
 * @to:		who it is addressed to; NULL: the bus or nobody
 */
bool match_shows(struct classic *k, const struct dbusp_match *rule, struct cmsg *m,
		 const struct peer *to);

/* Every rule of a peer, and how often it has added it */
void match_each(const struct cpeer *c,
		void (*visit)(const struct dbusp_match *rule, unsigned int count, void *data),
		void *data);

#endif
