/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef DAEMON_CLIENT_H
#define DAEMON_CLIENT_H

/*
 * client.h - one handle: a socket, and after HELLO two lanes and a connection
 *
 * 1. Everything published for a client has a flight (client.flights) until the client has consumed
 *    it: it bears the charge of the sender's share (core/quota.h) and what is needed to send a
 *    message on if the client dies.
 * 2. What finds no room in the lane waits in the overflow, in order, within the same shares; it is
 *    published as soon as there is room. The sender's message counts as delivered. What ends
 *    somebody's wait in the library goes ahead of the rest (doc/lanes.md).
 * 3. Links between clients (struct link) say who has called whom through the daemon, so that the
 *    callers learn of a death or a hand-over.
 * 4. A frozen client is not taken from until it has handed back what a dead peer left (rule 15),
 *    and what is wanted with its messages has been read (reading.h).
 */

#include "creds.h"
#include "daemon.h"
#include "peer.h"
#include "quota.h"
#include "recv.h"
#include "send.h"

/**
 * struct flight - a record published and not yet consumed, or waiting to be published
 */
struct flight {
	struct list_head entry;
	u64 seq;
	u32 user;
	u32 memory;
	u32 fds;
	u64 sender;
	u64 stamp; /* the sender's own */
	bool by_name;
	bool charged;
	enum rank {
		RANK_NOTICE, /* small, ends a wait in the library */
		RANK_REPLY, /* to who waits in SEND */
		RANK_REST,
	} rank; /* what passes what in the overflow */
	/* while it waits in the overflow */
	struct lane_put put;
	unsigned char *body;
	unsigned char *bulk;
	size_t bulk_size;
	size_t tail_size;
	size_t held; /* bytes on the account of the client */
	/* also of those on their way that may have to be sent on */
	int *files;
	unsigned int n_files;
};

/**
 * struct stored - a message in an activator's inbox: its record, without tail, lies in the pool
 */
struct stored {
	struct core_entry entry;
	size_t image; /* metadata and message */
	size_t payload;
	struct ctl_deliver tail;
	size_t held; /* bytes on the account of the activator */
	bool sync;
	int fds[LANE_SOCK_FDS_MAX];
	unsigned int n_fds;
};

static inline struct stored *stored_of(struct core_entry *entry)
{
	return container_of(entry, struct stored, entry);
}

/* @caller has called @callee through the daemon. */
struct link {
	struct rb_node node; /* in callee->callers, by id of the caller */
	struct list_head entry; /* in caller->calling */
	struct peer *caller;
	struct peer *callee;
};

/* Two clients that were introduced to each other */
struct intro_side {
	struct list_head entry; /* in client.intros */
	struct rb_node node; /* in client.introduced, by id of the other */
	struct intro *intro;
	struct client *client;
};

struct intro {
	struct intro_side side[2];
	u64 flags[2]; /* CTL_INTRO_* as told to that side */
	u64 number;
};

/* A message that a dead client did not take, to be sent on (death.c) */
struct held {
	struct list_head entry;
	u64 stamp; /* the sender's own */
	u64 sender;
	size_t held; /* bytes on the account of who handed it back */
	unsigned char *body; /* message in record form, payload area behind it */
	size_t size;
	int *files;
	unsigned int n_files;
	unsigned int n_memfds;
};

/* A dead peer from which a client has to hand back */
struct awaited {
	struct list_head entry;
	u64 peer;
	unsigned int n; /* messages handed back; a lane had room for LANE_FLIGHTS_MAX */
	unsigned int n_files; /* with them; a lane had room for twice LANE_FDS_MAX */
};

/* A name that a live client gave back to its activator (names.c) */
struct released {
	struct list_head entry;
	u64 name_id;
	char name[];
};

/* A message of the socket that waits for its turn: the channel is in use while it is received */
struct post {
	struct list_head entry;
	size_t size;
	int fds[LANE_SOCK_FDS_MAX];
	unsigned int n_fds;
	u64 data[]; /* padded with zeroes */
};

struct client {
	PEER;
	struct source source;
	struct list_head entry;
	struct list_head hot_entry;
	struct list_head dirty_entry;
	struct list_head taken_entry;
	struct list_head answer_entry;
	struct list_head blocked_entry;
	struct list_head
		asking_entry; /* in peer.askers, while its request (deferred) waits there */
	struct node *node;
	struct endpoint *ep; /* opened on; NULL: control */
	struct lane_channel channel;
	bool readable; /* its socket, as far as epoll has said and nobody has looked since */
	bool hungup;
	bool doomed;
	bool begun; /* counted as such by its account */

	enum core_handle handle;
	struct bus *made_bus;
	struct endpoint *made_ep;

	bool connected;
	bool unread; /* frozen: what is wanted with its messages is being read */
	bool direct; /* may have introductions */
	struct kdbus_creds fake_creds;
	struct kdbus_pids fake_pids;
	char *fake_label;
	u64 fake_have;
	unsigned char *pool; /* of an activator */
	u64 told_waiting;

	struct core_quota quota;
	size_t accounted;
	size_t pool_size;
	struct list_head flights;
	struct list_head overflow;
	unsigned int n_control; /* small records of the daemon's own in the overflow */
	u64 seq;
	bool watched; /* rings once it has consumed what bears descriptors of ours */
	u64 lost;
	bool waits; /* so the page says: client_settle() */
	struct list_head settled_entry;

	struct list_head intros;
	struct rb_root introduced;
	unsigned int n_intros;
	struct list_head awaited; /* not empty: nothing is taken from it */
	struct list_head held; /* its own messages, in the order of their stamps */
	struct list_head leftover; /* of others, that it did not take; while it disconnects */

	struct list_head released;
	unsigned int n_released;

	struct list_head posts;
	unsigned int n_posts;
	struct post *post; /* acted on */
	struct post *deferred; /* a request, while it is frozen or waits to learn of a peer */

	/* the answer of this round: descriptors in it are ours to close */
	bool answering;
	struct ctl_reply answer;
	unsigned char *answer_arg;
	unsigned char *answer_extra;
	int answer_fds[LANE_SOCK_FDS_MAX];
	unsigned int n_answer_fds;
	bool answer_is_own; /* they are memfds of the daemon */
};

/* Of a connection that is known to be native */
static inline struct client *client_of(const struct core_conn *conn)
{
	return container_of((struct core_conn *)conn, struct client, conn);
}

/* NULL: it is a classic one */
static inline struct client *native_of(const struct core_conn *conn)
{
	return peer_of(conn)->kind == PEER_NATIVE ? client_of(conn) : NULL;
}

static inline struct client *native_peer(const struct peer *p)
{
	return native_of(&p->conn);
}

/* client.c */
struct client *client_accept(struct node *node, int sock);
/* It is a connection, or owns a bus or an endpoint. */
void client_has_become(struct client *c);
void client_expel(struct client *c, const char *format, ...) __attribute__((format(printf, 2, 3)));
void client_end(struct client *c);
void client_free(struct client *c);
bool client_work(struct client *c);
void client_heat(struct client *c);
bool client_frozen(const struct client *c);
bool client_unread(struct client *c);
void client_was_read(struct client *c);
void client_take_all(struct client *c);

/* command.c, connect.c: requests */
int client_message(struct lane_channel *ch, const void *data, size_t size, int *fds,
		   unsigned int n_fds);
bool client_act(struct client *c);
void client_free_posts(struct client *c);
/* Outcome of a command: it is run again when something has been read (client.asking_entry). */
#define COMMAND_WAITS 1
int command_run(struct client *c, enum core_cmd cmd, void *arg, const struct core_args *args,
		const struct ctl_hello *hello);
int command_policy(struct client *c, const struct core_args *args, unsigned int flags,
		   struct core_policy_set **ret_set);
bool command_is_owner(const struct client *c);
int connect_hello(struct client *c, struct kdbus_cmd_hello *cmd, const struct core_args *args,
		  const struct ctl_hello *ctl);
void client_finish_disconnect(struct client *c);
int client_start_channel(struct client *c, int sock);
int answer_add(struct client *c, const void *data, size_t size);
void answer_add_fd(struct client *c, int fd);
/* One that the daemon made, as are all others of this answer */
void answer_add_own_fd(struct client *c, int fd);
void answer_send(struct client *c);
void answer_clear(struct client *c);
void client_disconnect(struct client *c);

/* sink.c: publishing into lanes */
extern const struct core_sink client_sink;
int client_put(struct client *c, const struct lane_put *put, const void *body);
int client_put_fds(struct client *c, const struct lane_put *put, const void *body, const int *files,
		   unsigned int n_files);
void client_put_ahead(struct client *c, const struct ctl_ahead *body);
int client_put_soft(struct client *c, const struct lane_put *put, const void *body);
bool client_keeps_up(const struct client *c);
void client_reap(struct client *c);
void client_retry(struct client *c);
void client_flush(struct client *c);
void client_settle(struct client *c);
void client_drop_flights(struct client *c);

/* relay.c */
int relay_record(struct client *c, const struct lane_env *env);

/**
 * struct relay - a message on its way through the daemon; core_parcel.host of parcels with it
 * @from:	sender
 * @wire:	the message in record form, checked
 * @payload:	its payload area: ours, or in the sender's bulk buffer
 * @fds:	descriptors, FDS item first; closed by whoever made the struct
 * @name_id:	it was addressed by
 * @stamp:	the sender's own
 */
struct relay {
	struct peer *from;
	struct wire wire;
	const void *payload;
	int fds[LANE_SOCK_FDS_MAX];
	unsigned int n_fds;
	u64 name_id;
	u64 stamp;
	bool sync;
};

int relay_route(struct relay *relay, struct core_dst *ret_dst);

/* death.c: what a dead client left, and what its senders hand back (doc/lanes.md) */
void death_collect(struct client *c);
void death_begin(struct client *c);
void death_forget(struct client *c);
void death_settle(struct client *c);
int death_handed_back(struct client *c, const struct ctl_hand_back *head, size_t size);

/* links.c: who has called whom; hand-over, death */
int link_call(struct peer *caller, struct peer *callee);
bool link_exists(const struct peer *caller, const struct peer *callee);
void links_drop(struct peer *p);
void links_tell_gone(struct peer *p);
void links_note_move(struct peer *from, struct peer *to, u64 name_id);
void links_settle_move(bool happened);

/* intro.c */
int intro_ask(struct client *c, const struct ctl_ask_intro *ask, int *lane_fd);
int intro_end(struct client *c, const struct ctl_end_intro *end);
void intro_drop_all(struct client *c);
void intro_each(struct client *c, void (*fn)(struct client *other, void *data), void *data);
void intro_review(struct client *c);
void intro_review_bus(struct bus *bus);
void intro_new_meta(struct client *c);
bool intro_may(struct client *a, struct client *b);
bool intro_exists(const struct client *a, const struct client *b);

/* meta.c */
struct meta_image {
	void *data;
	size_t size; /* multiple of 8 */
};
int meta_for_message(struct peer *from, struct client *to, u64 seq, struct meta_image *ret);
int meta_for_intro(struct client *from, struct client *to, struct meta_image *ret);
int meta_info(struct client *asker, struct peer *target, u64 attach, void **ret, size_t *ret_size);
int meta_creator(struct client *asker, struct bus *bus, u64 attach, void **ret, size_t *ret_size);

/* activator.c: host operations for connections with an inbox */
extern const struct core_host_ops daemon_host_ops;
int activator_init(struct client *c);
void activator_tell(struct client *c);
int activator_recv(struct client *c, const struct kdbus_cmd_recv *cmd,
		   const struct core_args *args);
void activator_clear(struct client *c);

/* names.c */
int name_acquire(struct peer *p, const char *name, u64 flags, u64 *ret_flags);
int name_release(struct peer *p, const char *name);
void names_end(struct peer *p);
void names_forget_released(struct client *c);
void names_changed(struct bus *bus, const char *name);

#endif
