/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef LIB_USER_USER_H
#define LIB_USER_USER_H

/*
 * user.h - the user engine: kdbusd for commands, lanes for data
 *
 * 1. One mutex (struct user.lock) guards a handle. It is never held while a thread sleeps for
 *    long: the short futex sleep of a synchronous call ends when somebody else wants the lock.
 * 2. What a record brings is first taken into a slice of the pool, then checked, and only then
 *    queued, settled as a reply or dropped. A record of a peer that fails the check costs that
 *    peer its channel.
 * 3. Records are taken up in the order of the look, except the verdict on a message just sent and
 *    the reply to a synchronous call, which are picked out of their lanes.
 * 4. A call has one outcome; core/reply.h keeps it. Repliers are peers: a slot is opened once the
 *    peer is known, which for a relayed call is when the verdict is taken up.
 * 5. A message for a peer goes into the direct lane only if that lane is open, the peer's
 *    permissions allow it, the generations it was resolved under still stand, and the daemon has
 *    consumed all that was sent through it (design rule 13). Else it goes through the daemon.
 * 6. Peers live as long as they are known to the daemon, have slots of ours or hold buffers that a
 *    message in our pool refers to.
 */

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base.h"

#include "lane/alarm.h"
#include "lane/bulk.h"
#include "lane/channel.h"
#include "check.h"
#include "../control.h"
#include "../engine.h"
#include "limits.h"
#include "lane/look.h"
#include "pool.h"
#include "queue.h"
#include "record.h"
#include "reply.h"
#include "lane/wait.h"
#include "../wire.h"

struct user;

/**
 * struct peer - another connection we have to do with
 * @node:	in user.peers, by id
 * @id:		connection id; 0 is the daemon itself, which is not in the tree
 * @state:	how messages to it go
 * @channel:	valid unless PEER_RELAYED or PEER_ASKED
 * @source:	its place in the look
 * @looked:	@source is in the look
 * @intro:	CTL_INTRO_* while introduced
 * @conn_flags:	its HELLO flags, as far as known
 * @meta:	metadata items the daemon vouches for, without TIMESTAMP
 * @replier:	our calls it has to answer
 * @again_ns:	no introduction is asked for before that time
 * @over:	the daemon has said that it is gone; that record's turn may not have come
 * @reply_waits: number of the call to which its reply waits for room in the daemon
 * @handed_back: the daemon has been given what it did not take
 * @withdrawn:	the daemon has ended the introduction, and forgotten it
 * @number:	of its introduction
 * @used:	user.activity when a message last went over its channel
 * @asking:	we have asked for the end of the channel
 * @detached:	it is not in the tree any more, only its channel and buffers matter (idle.c)
 * @sent:	relayed messages it took that could have gone directly
 * @held:	messages in our pool that lie in its buffers, plus one while it is known
 */
struct peer {
	struct rb_node node;
	u64 id;
	enum peer_state {
		PEER_RELAYED,
		PEER_ASKED,
		PEER_DIRECT,
		PEER_ENDING,
		PEER_DEAD,
	} state;
	struct lane_channel channel;
	struct lane_source source;
	bool looked;
	struct list_head looked_entry; /* in user.looked while @looked */
	struct list_head keeping_entry; /* in user.keeping while copies of descriptors are kept */
	bool stuck; /* still closing when a SEND gave up waiting for that */
	u64 intro;
	u64 conn_flags;
	void *meta;
	size_t meta_size;
	struct core_replier replier;
	u64 again_ns;
	bool over;
	u64 reply_waits;
	bool handed_back;
	bool withdrawn;
	u64 number;
	u64 used;
	bool asking;
	bool detached;
	struct list_head detached_entry; /* in user.detached while @detached */
	unsigned int sent;
	unsigned int held;
};

/**
 * struct message - something in the pool that came as a message
 * @entry:	in user.queue until received
 * @node:	in user.messages, by offset, while it has something to be released with the slice
 * @slice:	where it lies
 * @size:	bytes of its image: what msg_info reports
 * @peer:	whose buffer holds the payload, or NULL
 * @bulk:	number of that buffer, 0: none
 * @bulk_use:	its use
 * @fds:	received descriptors: entries of the FDS item, then payload memfds
 * @maps:	mappings of memfds, one per memfd
 * @owed:	it is a call: who waits for our reply
 */
struct message {
	struct core_queue_entry entry;
	struct rb_node node;
	bool kept;
	struct core_slice *slice;
	size_t size;
	struct peer *peer;
	u32 bulk;
	u32 bulk_use;
	u32 n_fds;
	u32 n_memfds;
	int *fds;
	struct message_map {
		void *address;
		size_t size;
	} * maps;
	struct owed *owed;
};

/**
 * struct owed - a call we have received and may answer
 */
struct owed {
	struct rb_node node;
	u64 requester;
	u64 cookie;
	u64 seq;
	u64 deadline;
	bool sync;
};

/**
 * struct resolved - where a name leads, as the daemon told us
 */
struct resolved {
	struct rb_node node;
	u64 id;
	u64 name_id;
	struct lane_page_gens gens;
	char name[];
};

/*
 * A thread that waits for something another thread may take up: see user_wake_waiters(). What a
 * sleeper relies on in a channel, the armed number of its lane or of its wish for room, any other
 * thread may use up; who does so wakes it when he lets go of the lock (lock.c).
 */
struct waiter {
	struct list_head link;
	int eventfd;
	bool woken;
	struct waiter_channel {
		const struct lane_channel *ch;
		bool room; /* it waits for room to write, else for something to read */
		u32 state;
		u32 space;
		u32 last_space;
	} watched[2];
};

/* The answer to the request under way */
struct answer {
	bool done;
	u32 serial;
	int error;
	const void *arg;
	size_t arg_size;
	void *extra;
	size_t extra_size;
	int fds[LANE_SOCK_FDS_MAX];
	unsigned int n_fds;
	void *data;
};

/*
 * The verdict on the relayed message under way; a call's slot is opened the moment it is taken up
 */
struct verdict {
	bool done;
	u64 tag;
	struct ctl_verdict said;
	struct core_reply_args *call;
	struct core_reply *slot;
	u32 end; /* of its record */
};

struct user {
	struct libkdbus base;
	struct list_head link; /* in the list of all handles */
	pthread_mutex_t lock;
	atomic_uint contenders;
	_Atomic(const u32 *) sleeping_on;
	struct lane_alarm alarm; /* made when a thread first sleeps on several lanes */
	_Atomic(u32 *) alarm_word; /* of it, for those without the lock */
	bool no_alarm; /* it could not be made */

	/* Written with the lock, and read without it where one of them alone decides. */
	_Atomic(enum core_handle) handle;
	_Atomic(enum core_kind) kind;
	atomic_bool connected;
	atomic_bool dead;
	bool leaving; /* a BYEBYE is under way */

	pthread_mutex_t request_lock;
	u32 serial;
	struct answer *answer;
	unsigned char *datagram; /* received into */
	unsigned char *request; /* sent from, under request_lock */

	struct lane_ops lane_ops;
	struct peer daemon;
	struct lane_clock clock;
	const struct lane_page *page;
	struct lane_look look;
	int epoll;
	int look_event;
	int own_event;
	bool own_event_set;
	unsigned int quiet; /* the events are brought up to date later */
	int timer;
	u64 timer_at;
	struct lane_spin spin;

	struct libkdbus_identity identity;
	u64 conn_flags;
	u64 attach_recv;
	bool may_go_direct;
	u32 intro_seq; /* fd_seq of the last introduction taken up */

	int pool_fd;
	unsigned char *memory;
	const void *memory_ro;
	struct core_pool pool;
	struct core_queue queue;
	struct rb_root messages;
	u64 lost;
	u64 waiting; /* an activator's messages in the daemon */

	struct rb_root peers;
	unsigned int n_peers;
	unsigned int sweep_at;
	u64 activity; /* messages sent and taken */
	struct list_head detached;
	struct list_head looked;
	unsigned int n_looked;
	struct list_head keeping;
	struct rb_root names;
	unsigned int n_names;
	struct rb_root owed;
	u64 owed_seq;
	struct core_requester requester;
	struct core_deadlines deadlines;

	pthread_mutex_t send_lock;
	u64 tag;
	struct verdict *verdict;
	struct list_head waiters;
	struct waiter spare[4];

	uint64_t scratch[2 * CORE_CMD_MAX_SIZE / sizeof(uint64_t)];
};

static inline struct user *to_user(struct libkdbus *h)
{
	return (struct user *)h;
}

static inline bool peer_is_daemon(const struct user *u, const struct peer *p)
{
	return p == &u->daemon;
}

/* The lock (lock.c). user_lock() makes a thread that sleeps with the lock held give way. */
void user_lock(struct user *u);
void user_unlock(struct user *u);
void user_waiter_init(struct user *u, struct waiter *w);
void user_waiter_watch(struct waiter *w, const struct lane_channel *ch, bool room);
bool user_others_read(const struct user *u);
void user_waiter_done(struct user *u, struct waiter *w);
void user_wake_waiters(struct user *u);
u64 user_now(void);

/* Requests (request.c). Called without the lock; the answer's memory is the caller's to clear. */
int user_request(struct user *u, u32 nr, const void *arg, size_t arg_size,
		 const struct ctl_hello *hello, int fd, struct answer *ret);
void user_answer_clear(struct answer *answer);
int user_on_message(struct lane_channel *ch, const void *data, size_t size, int *fds,
		    unsigned int n_fds);

/* Files of others (drop.c), which take no lock of a handle. -1 is fine. */
void user_drop_fd(int fd);
void user_drop_resume(void); /* of what a forked child has inherited */
struct lane_ops user_lane_ops(void);

/* Commands (command.c, hello.c) */
int user_command(struct libkdbus *h, unsigned int cmd, void *arg);
int user_hello(struct user *u, void *copy, const struct core_args *args, void *arg);
void user_hello_undo(struct user *u);
void user_channel_start(struct user *u, int sock);
int user_pool_answer(struct user *u, const void *data, size_t size, u64 *ret_offset);
void user_disconnect(struct user *u);
int user_byebye(struct user *u, void *copy, size_t size, void *arg);

/* Receiving (receive.c, arrive.c): from lanes into the queue. Need the lock. */
int user_pump(struct user *u, int mode);
int user_pump_one(struct user *u, int mode);
int user_take_record(struct user *u, struct peer *p, const struct lane_env *env, u64 stamp,
		     int (*take)(struct user *u, struct peer *p, void *body, void *arg), void *arg);
void user_notify_reply(struct user *u, u64 type, u64 cookie);
void user_take_refused(struct user *u, u64 from, const struct ctl_refused *refused);
bool user_refuses_sync(struct user *u, u64 from, const struct ctl_refused *refused);
void user_update_events(struct user *u);
void user_expire(struct user *u);

/* Messages in the pool (message.c). Need the lock. */
struct message *message_new(struct user *u, size_t size, int *ret_error);
void message_discard(struct user *u, struct message *m);
void message_publish(struct user *u, struct message *m);
int message_free(struct user *u, u64 offset);
void message_free_all(struct user *u);
int message_payload(struct user *u, const struct kdbus_msg *msg, const struct kdbus_item *item,
		    const void **ret_address, size_t *ret_size);
u64 message_install_fds(struct user *u, struct message *m, bool accept);

/* RECV (recv.c) */
void user_refuse_unread(struct user *u);
int user_recv(struct user *u, struct kdbus_cmd_recv *cmd, const struct core_args *args);

/* Peers (peer.c, introduce.c, peer-end.c). Need the lock. */
struct peer *peer_find(struct user *u, u64 id);
struct peer *peer_get(struct user *u, u64 id);
void peer_put(struct user *u, struct peer *p);
bool peer_has_channel(const struct peer *p);
int peer_set_meta(struct peer *p, const void *meta, size_t size);
void peer_leave_look(struct user *u, struct peer *p);
void peer_drop_channel(struct user *u, struct peer *p);
void peer_retire(struct user *u, struct peer *p);
void peer_taken_up(struct lane_look *look, const struct lane_env *rec, uint64_t stamp,
		   const void *body);
int peer_introduced(struct user *u, const struct lane_env *env, const struct ctl_intro *intro);
void peer_gone(struct user *u, const struct ctl_gone *gone);
void peer_foresee_gone(struct user *u, u32 pos, const struct lane_env *env);
void peer_foresee_intro(struct user *u, u32 pos, const struct lane_env *env);
void peer_scan_gone(struct user *u);
void peer_moved(struct user *u, const struct ctl_moved *moved);
void peer_ahead(struct user *u, const struct ctl_ahead *ahead);
void peer_not_introduced(struct user *u, const struct ctl_no_intro *said);
int peer_new_meta(struct user *u, const struct ctl_peer *update, size_t size);
void peer_over(struct user *u, struct peer *p);
void peer_closed(struct user *u, struct peer *p);
int peer_unstick(struct user *u, struct peer *p);
void peer_ask(struct user *u, struct peer *p);
void peer_end(struct user *u, struct peer *p);
struct peer *peer_new(u64 id);
bool peer_is_gone(struct user *u, u64 id);
bool peer_refuses_fds(struct user *u, u64 id);
int user_take_answer(struct user *u, struct answer *a, struct kdbus_msg_info *ret);
bool user_is_handle_fd(int fd);
bool peer_usable(struct user *u, struct peer *p);
int peer_own_lane(struct user *u, struct peer *p);
void peer_free_all(struct user *u);
int peer_refuse(struct user *u, u64 requester, u64 cookie, int error, bool sync);

/* Idle and old channels (idle.c). Need the lock. */
void idle_tick(struct user *u, struct peer *p);
void idle_asked(struct user *u, struct peer *p);
void idle_tell(struct user *u, struct peer *p);
bool idle_agreed(const struct peer *p);
struct peer *idle_detach(struct user *u, struct peer *p);
struct peer *idle_find(struct user *u, u64 id, u64 number);

/* Ends of lanes (closing.c). Need the lock, closing_all() excepted. */
void closing_resend(struct user *u, struct peer *p);
void closing_hand_back(struct user *u, u64 id, struct peer *p);
void closing_stop_reading(struct user *u, struct peer *p);
void closing_all(struct user *u);
void user_close_forked(struct user *u);
void user_enter_send(struct user *u);
int user_send_datagram(struct user *u, const void *data, size_t size, const int *fds,
		       unsigned int n_fds);

/* Names (resolve.c) */
const struct resolved *resolve_find(struct user *u, const char *name);
void resolve_learn(struct user *u, const char *name, const struct lane_page_gens *gens,
		   const struct ctl_verdict *verdict);
void resolve_clear(struct user *u);

/* Calls we owe a reply (owed.c) */
struct owed *owed_add(struct user *u, const struct kdbus_msg *msg, bool sync);
struct owed *owed_find(struct user *u, u64 requester, u64 cookie);
void owed_remove(struct user *u, struct owed *o);
void owed_attach(struct user *u, struct owed *o);
void owed_detach(struct user *u, struct owed *o);
void owed_free(struct owed *o);
void owed_forget(struct user *u, u64 requester);
void owed_clear(struct user *u);
bool owed_any(struct user *u, u64 requester);

/* SEND (send.c, relay.c, direct.c, call.c) */

/**
 * struct outgoing - a message on its way out
 * @wire:	checked, with its layout
 * @fds:	descriptors of the FDS item, then memfds; the application's
 * @n_fds:	how many of the first
 * @n_memfds:	how many of the second
 * @sync:	the caller waits for a reply
 * @to_sync:	it is the reply to a caller who waits in SEND
 * @cancel_fd:	gives up the wait, or -1
 * @deadline:	of a call, CLOCK_MONOTONIC ns
 * @since:	cursor in the daemon's lane: what stands before it is older than the call
 */
struct outgoing {
	struct wire wire;
	int fds[CORE_MSG_MAX_FDS + CORE_MSG_MAX_MEMFD_ITEMS];
	u32 n_fds;
	u32 n_memfds;
	bool sync;
	bool to_sync;
	int cancel_fd;
	u64 deadline;
	u32 since;
};

int relay_check_way(struct user *u, struct peer *p);
bool relay_jammed(struct lane_channel *ch);
int relay_send(struct user *u, struct outgoing *out, struct core_reply **ret_slot);
void relay_again(struct user *u, const struct lane_back *back);
int direct_send(struct user *u, struct outgoing *out, struct peer *p, u64 name_id,
		struct core_reply **ret_slot);
int lane_write(struct user *u, struct lane_channel *ch, const struct outgoing *out,
	       struct lane_put *put, const void *head, size_t head_size, int *kept);
void direct_release_fds(struct user *u);
int call_wait(struct user *u, struct outgoing *out, struct core_reply *slot,
	      struct kdbus_msg_info *ret);

/* A lane so full that what is waited for may find no room: what is in it goes into the pool. */
#define CROWDED_RING	4 /* a part of it */
#define CROWDED_RECORDS 8
#define CROWDED_BULK	4 /* there are few large buffers */

/* Waiting with the lock (sleep.c) */
typedef bool (*user_ready_fn)(struct user *u, void *arg);
int user_sleep(struct user *u, struct peer *also, user_ready_fn ready, void *arg, u64 deadline,
	       int cancel_fd);
int user_wait(struct libkdbus *h, uint64_t deadline_ns, int cancel_fd);
void user_give_cpu(struct user *u);
int user_await_space(struct user *u, struct peer *p, const struct lane_put *put, u64 deadline);
void user_take_verdict(struct user *u, const struct ctl_verdict *said, u32 end);
int user_pick(struct user *u, struct peer *p, const struct lane_env *env, u32 pos);
int user_send(struct user *u, struct kdbus_cmd_send *cmd, const struct core_args *args, void *arg);

#endif
