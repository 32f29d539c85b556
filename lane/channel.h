/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * channel.h - one channel: writing a lane, reading the peer's, and its end
 *
 * A struct lane_channel is one side of a channel: its own lane (mapped writable), the peer's lane
 * (mapped read-only), the socket, and the private masters of everything this side stores.
 *
 * 1. The caller's lock covers a channel for one thread at a time. Writing (lane_put to lane_ring)
 *    and reading touch different fields, but both read the socket; use one lock.
 * 2. A function that returns a negative errno changed nothing that the peer can see, except that
 *    -EPROTO (the peer broke the format) and -ECONNRESET (it hung up) are remembered in the channel
 *    (broken, hungup): every later call says the same, except that what was published before a
 *    hang-up can still be read (rule 9), and lane_take_back() always works.
 * 3. Nothing here waits, except lane_closing_wait(), which is bounded by its deadline.
 */
#ifndef LANE_CHANNEL_H
#define LANE_CHANNEL_H

#include "lane.h"
#include "ops.h"

/* lane_channel_init() flags */
#define LANE_PEER_IS_DAEMON 0x1u /* rounds, INTRO and GONE are expected from the peer */
#define LANE_ALARMS 0x2u /* each side may write the alarm word of the other (alarm.h) */

#define LANE_PLUCK_MAX 128u
#define LANE_DRAIN_MAX 128u

/**
 * struct lane_clock - stamps of one connection (rule 11), shared by all its channels
 */
struct lane_clock {
	uint64_t last; /* greatest stamp sent or delivered */
};

/**
 * struct lane_put - what lane_put() reserves; also what it writes into the envelope
 * @tag:	the caller's, returned by lane_take_back()
 */
struct lane_put {
	uint16_t type;
	uint16_t flags;
	uint32_t length;
	uint16_t fds;
	uint16_t memfds;
	uint32_t bulk;
	uint32_t bulk_use;
	uint32_t bulk_size;
	uint64_t subject;
	uint64_t tag;
};

/* One record in flight (private) */
struct lane_flight {
	uint32_t start;
	uint32_t end;
	uint16_t fds;
	uint16_t memfds;
	uint32_t bulk;
	uint64_t tag;
	int *kept; /* copies of its descriptors, or NULL */
};

/* A bulk buffer, at its writer and at its reader (private; bulk.h) */
struct lane_bulk {
	void *map;
	size_t size;
	uint32_t gen;
	uint32_t uses; /* writer: times handed over. reader: times handed back */
	bool flying; /* writer: the record of the last use is not consumed */
	bool held; /* writer: between get and publish. reader: between data and return */
};

/* A record taken out of order, and descriptors received ahead of their record (private) */
struct lane_plucked {
	uint32_t pos;
	uint32_t size;
};

struct lane_fd_batch {
	uint32_t seq;
	uint32_t count;
};

struct lane_alarm;
struct lane_channel;
struct lane_page;

/**
 * lane_message_fn - a socket message of the program (type LANE_SOCK_PROGRAM or above)
 * @fds:	descriptors that came with it; the function takes those it wants and stores -1
 *		in their place, the rest is closed
 *
 * Return: 0, or -EPROTO to break the channel.
 */
typedef int (*lane_message_fn)(struct lane_channel *ch, const void *data, size_t size, int *fds,
			       unsigned int n_fds);

/**
 * struct lane_channel - one side of a channel. All fields are private but those of the first group,
 * which the caller may set between init and first use, and the second, which it may read.
 */
struct lane_channel {
	lane_message_fn message; /* NULL: no such messages expected */
	void *message_buf; /* where they are received; at least LANE_SOCK_SIZE bytes if set */
	size_t message_buf_size;
	const struct lane_page *page; /* the daemon's, if the peer is it: rounds count by it */
	void *user;

	int sock;
	bool broken; /* the peer broke the format */
	bool hungup; /* the socket's other end is closed */
	bool ended; /* the peer's END record was taken */
	bool asked_end; /* the peer asks us to end our lane */
	bool bell_rung; /* a doorbell was drained since the last lane_arm() */
	bool closed_rung; /* the peer said that its reading word changed */

	const struct lane_ops *ops;
	unsigned int flags;

	/* own lane: shared mapping and masters of every word in it */
	struct lane_head *own;
	size_t own_size;
	uint32_t ring;
	uint32_t published;
	uint32_t bell;
	uint32_t consumed;
	uint32_t state;
	uint32_t number; /* last number of state */
	uint32_t reading;
	uint32_t space;
	uint32_t space_number;
	uint32_t alarm_bits;
	bool end_sent;

	/* writing */
	uint32_t write; /* where the next record goes: published, or behind a pad or skip */
	uint32_t skip;
	uint32_t look_at; /* from here on it is worth a look whether all has been read */
	uint32_t live; /* acked, or where a skip beyond it led to: before it nothing takes room */
	uint32_t put_start;
	uint32_t put_size;
	struct lane_put put;
	bool putting;
	uint32_t fd_seq; /* last sent */
	bool fds_sent; /* of the reservation */
	int *put_kept; /* lane_keep_fds() */
	unsigned int n_kept; /* records in flight with descriptors kept */
	uint32_t acked; /* peer's consumed as last seen */
	uint32_t rung; /* peer's state number last rung */
	uint32_t space_rung;
	uint32_t peer_reading; /* as last seen */
	struct lane_flight *flights; /* LANE_FLIGHTS_MAX, circular */
	unsigned int flight_first;
	unsigned int flight_count;
	unsigned int flight_fds;
	unsigned int flight_memfds;

	/* peer's lane */
	const struct lane_head *peer;
	size_t peer_size;
	uint32_t peer_ring;
	uint32_t seen; /* peer's published as last seen */
	uint32_t read; /* everything before is taken */
	uint32_t floor; /* what published is measured from: consumed, or where a skip led to */
	struct lane_env head; /* copy of the envelope at read, if have_head */
	bool have_head;
	uint64_t round; /* last round taken */
	uint64_t committed; /* as of the last snapshot */
	struct lane_plucked plucked[LANE_PLUCK_MAX];
	unsigned int n_plucked;

	/* socket */
	uint32_t last_bell; /* last number of state that was rung to us */
	uint32_t last_space;
	uint32_t closed_rings; /* how often the peer said that its reading word changed */
	uint32_t last_fd_seq; /* last received */
	struct lane_fd_batch batches[LANE_SOCK_FDS_MAX]; /* not yet taken, by seq */
	unsigned int n_batches;
	int fds[LANE_SOCK_FDS_MAX]; /* theirs, in the same order */
	unsigned int n_fds;

	struct lane_bulk out[LANE_BULK_MAX];
	struct lane_bulk in[LANE_BULK_MAX];

	const struct lane_alarm *alarm; /* ours, once given (alarm.h) */
	uint32_t *peer_alarm; /* theirs, mapped */
};

/* Stamps -------------------------------------------------------------------------------------- */

/**
 * lane_clock_stamp() - a new stamp: now, or one more than the last sent or delivered
 */
uint64_t lane_clock_stamp(struct lane_clock *clock, const struct lane_ops *ops);

/**
 * lane_clock_saw() - a record with @stamp (as counted by the look) was delivered
 */
void lane_clock_saw(struct lane_clock *clock, uint64_t stamp);

/* Life ---------------------------------------------------------------------------------------- */

/**
 * lane_channel_init() - start with a socket and no lane
 * @sock:	connected SOCK_SEQPACKET socket; the channel owns it from here on
 */
void lane_channel_init(struct lane_channel *ch, const struct lane_ops *ops, int sock,
		       unsigned int flags);

/**
 * lane_channel_deinit() - unmap both lanes and all bulk buffers, close the socket
 *
 * Take back first what was not consumed. NULL and half-built channels are fine.
 */
void lane_channel_deinit(struct lane_channel *ch);

/**
 * lane_channel_hang_up() - close the socket, and every descriptor that waits in the channel
 *
 * For a channel of which only bulk buffers are still in use: descriptors whose record never came
 * do not stay open with them, nor do copies of sent ones. Take back first.
 */
void lane_channel_hang_up(struct lane_channel *ch);

/**
 * lane_channel_make() - make the own lane
 * @ring:	bytes, power of two, LANE_RING_MIN..LANE_RING_MAX
 * @ret_fd:	descriptor to pass to the peer, then to be closed; the caller's
 *
 * Return: 0; -EEXIST: has one; -EINVAL: @ring; else as lane_memfd_make(), or -ENOMEM.
 */
int lane_channel_make(struct lane_channel *ch, uint32_t ring, int *ret_fd);

/**
 * lane_channel_attach() - check and map the peer's lane
 * @fd:		stays the caller's
 *
 * Return: 0; -EEXIST: has one; -EPROTO: not a lane of this version; else as
 * lane_memfd_map_shared().
 */
int lane_channel_attach(struct lane_channel *ch, int fd);

/**
 * lane_channel_pass() - make the own lane and pass it over the socket
 *
 * Return: 0, also if the peer has hung up, for what it left has to be consumed;
 * -EAGAIN: socket full, nothing made; else as lane_channel_make() or ops->send().
 */
int lane_channel_pass(struct lane_channel *ch, uint32_t ring);

/* Writing ------------------------------------------------------------------------------------- */

/**
 * lane_put() - reserve room for a record
 * @put:	copied
 * @ret_body:	put->length bytes of ring to fill; stays valid until publish or cancel
 *
 * Return: 0; -EAGAIN: no room in the ring or too many messages or descriptors in flight
 * (rule 18); -EMSGSIZE: never fits, use a bulk buffer; -EINVAL: bad type or flags, more than
 * LANE_FDS_MAX descriptors; -ESHUTDOWN: END was sent, or the reader has closed: send through the
 * daemon; -EINPROGRESS: the reader is closing, see lane_closing_wait(); -EPROTO, -ECONNRESET.
 */
int lane_put(struct lane_channel *ch, const struct lane_put *put, void **ret_body);

/**
 * lane_put_fds() - send the descriptors of the reserved record (rule 6: before it is published)
 * @fds:	put.fds passed descriptors, then put.memfds payload memfds; stay the caller's
 * @n:		put.fds + put.memfds
 *
 * The last step before lane_publish(), with the body written: once it succeeded there is no
 * lane_cancel() any more.
 *
 * Return: 0; -EINVAL: @n; else as ops->send(), -EAGAIN in particular: cancel, and try again later.
 */
int lane_put_fds(struct lane_channel *ch, const int *fds, unsigned int n);

/**
 * lane_keep_fds() - keep copies of the descriptors of the reserved record until it is consumed
 * @fds:	put.fds + put.memfds descriptors in malloc()ed memory; from lane_publish() on both
 *		are the channel's, which closes them when it learns that the reader has the record
 *		(lane_reap()), and gives them out with a record that comes back. Until then, and
 *		after lane_cancel(), they are the caller's
 */
void lane_keep_fds(struct lane_channel *ch, int *fds);

/**
 * lane_keeps_fds() - whether any are kept; lane_reap() lets go of those no longer needed
 */
bool lane_keeps_fds(const struct lane_channel *ch);

/**
 * lane_fds_fit() - whether @n more passed descriptors may be in flight now (rule 18)
 */
bool lane_fds_fit(struct lane_channel *ch, unsigned int n);

/**
 * lane_cancel() - drop the reservation
 */
void lane_cancel(struct lane_channel *ch);

/**
 * lane_publish() - write the envelope and store the cursor
 * @stamp:	from lane_clock_stamp(), in the same critical section as lane_ring()
 * @round:	the daemon's round; 0 for a client
 */
void lane_publish(struct lane_channel *ch, uint64_t stamp, uint64_t round);

/**
 * lane_ring() - the rest of rule 6: store the bell, fence, read the reader's state, wake or ring
 *
 * Return: 0; LANE_E_CLOSING: the reader was closing or closed, see lane_closing_wait(); -EPROTO,
 * -ECONNRESET: the channel is over; what was published comes back by lane_take_back() unless it
 * was taken.
 */
int lane_ring(struct lane_channel *ch);

/**
 * lane_reap() - take up the reader's cursor: free room, flights and counts
 *
 * Called by lane_put() when it needs room. Return: 0, -EPROTO.
 */
int lane_reap(struct lane_channel *ch);

/**
 * lane_oldest_tag() - tag of the oldest record that the reader has not consumed
 *
 * As of the last lane_reap(). Return: the tag; UINT64_MAX: nothing is in flight.
 */
uint64_t lane_oldest_tag(const struct lane_channel *ch);

/**
 * lane_passed() - whether the reader's cursor has passed everything published (rule 13)
 */
bool lane_passed(struct lane_channel *ch);

/**
 * lane_space_arm() - the pair of rule 7 for room: arm, fence, look
 * @put:	what lane_put() or lane_bulk_get() refused with -EAGAIN
 *
 * Return: 0: there is room now, try again; -EAGAIN: sleep until the socket is readable, then
 * lane_drain() and try again; else as lane_put(). A lane whose reader is closing counts as full.
 */
int lane_space_arm(struct lane_channel *ch, const struct lane_put *put);

/**
 * lane_space_futex() - the same for a short sleep on a futex: as lane_space_arm(), but on -EAGAIN
 * @ret_word is what to sleep on.
 */
int lane_space_futex(struct lane_channel *ch, const struct lane_put *put,
		     struct lane_word *ret_word);

/**
 * lane_passed_arm() - have the reader ring once it has consumed everything published by now
 *
 * In place of lane_space_arm(): a lane has one such wish at a time.
 *
 * Return: 0: it has; -EAGAIN: it will ring; -ENOLINK: no own lane; -EPROTO.
 */
int lane_passed_arm(struct lane_channel *ch);

/**
 * lane_space_done() - after the wait: no more rings for space are wanted
 */
void lane_space_done(struct lane_channel *ch);

/* Reading ------------------------------------------------------------------------------------- */

/**
 * lane_snapshot() - load and check the peer's cursor
 * @ret_limit:	how far lane_peek() may go
 *
 * Return: 0; -ENOLINK: the peer has passed no lane yet; -EPROTO.
 */
int lane_snapshot(struct lane_channel *ch, uint32_t *ret_limit);

/**
 * lane_news() - cheap check for spinning: has the peer published (or the daemon committed) anything
 * since the last snapshot?
 */
bool lane_news(const struct lane_channel *ch);

/**
 * lane_prefetch() - have the processor fetch what is published and not read yet
 *
 * After lane_news(). Changes nothing; what is read soon is on its way from the other processor.
 */
void lane_prefetch(const struct lane_channel *ch);

/**
 * lane_peek() - copy and check the envelope of the next record
 * @limit:	from lane_snapshot()
 * @ret:	the copy; later calls return the same copy until lane_take()
 *
 * Skips pads and plucked records. The END record is taken by itself and sets ch->ended.
 *
 * Return: 0; -EAGAIN: nothing before @limit, or ended; -EPROTO.
 */
int lane_peek(struct lane_channel *ch, uint32_t limit, struct lane_env *ret);

/**
 * lane_take() - copy the body of the peeked record out of the ring; the private cursor moves on
 * @body:	head.length bytes; may be NULL to discard
 *
 * Return: 0; -EINVAL: nothing peeked.
 */
int lane_take(struct lane_channel *ch, void *body);

/**
 * lane_consume() - store the consumer cursor, fence, ring a writer that waits for the space
 *
 * Clients: after each lane_take() and lane_pluck(); what was plucked and stands behind nothing that
 * waits is consumed with it. The daemon: at the end of a round (rule 12). Needs the own lane.
 * Return: 0; -ENOLINK: no own lane; -ECONNRESET.
 */
int lane_consume(struct lane_channel *ch);

/**
 * lane_take_fds() - the descriptors of a taken record
 * @env:	its envelope
 * @fds:	room for env->fds + env->memfds; they become the caller's. -1 stands for one that
 *		process had no room for
 *
 * Every record with descriptors needs this or lane_drop_fds(): they are kept until then.
 *
 * Return: 0; -EPROTO: they did not come, or others did.
 */
int lane_take_fds(struct lane_channel *ch, const struct lane_env *env, int *fds);

/**
 * lane_drop_fds() - close the descriptors of a taken record
 */
void lane_drop_fds(struct lane_channel *ch, const struct lane_env *env);

/**
 * lane_scan() - look at records ahead without taking them (for the reply to a synchronous call)
 * @pos:	cursor to go on from; start with ch->read
 * @ret:	envelope of the record at @pos; lane_scan_next() moves on
 *
 * Return: 0; -EAGAIN; -EPROTO. Pads and plucked records are skipped; END is -EAGAIN. A pad at the
 * front is consumed at once, so that it does not keep a reply from its room.
 */
int lane_scan(struct lane_channel *ch, uint32_t limit, uint32_t *pos, struct lane_env *ret);
void lane_scan_next(uint32_t *pos, const struct lane_env *env);

/**
 * lane_copy_body() - copy the body of a scanned record without taking it
 * @env:	as lane_scan() gave it
 */
void lane_copy_body(struct lane_channel *ch, uint32_t pos, const struct lane_env *env,
		    void *body);

/**
 * lane_pluck() - take the scanned record at @pos out of order
 *
 * At the front this is lane_take(); else the record is marked and skipped later. Its room is free
 * only when all before it is taken: a program that makes one synchronous call after the other
 * without receiving must in the end take what it passes over into a queue of its own, or the ring
 * fills with plucked replies.
 *
 * Return: 0; -ENOBUFS: LANE_PLUCK_MAX are out already (read in order first).
 */
int lane_pluck(struct lane_channel *ch, uint32_t pos, const struct lane_env *env, void *body);

/**
 * lane_channel_recv() - take one message from the socket
 *
 * Descriptors of records are kept for lane_take_fds(). Doorbells set ch->bell_rung: whoever calls
 * this outside a look says so by lane_look_touch() (rule 8).
 *
 * Return: 0: one was taken; -EAGAIN: none; -ECONNRESET: hung up; -EPROTO.
 */
int lane_channel_recv(struct lane_channel *ch);

/**
 * lane_drain() - take messages until there is none, or LANE_DRAIN_MAX
 *
 * A peer that sends faster than that keeps the socket readable, and nobody busy for ever. Outside
 * a look lane_look_touch() must follow: the number of a drained doorbell is used up.
 * Return: 0 or -EPROTO; a hang-up sets ch->hungup and is 0.
 */
int lane_drain(struct lane_channel *ch);

/**
 * lane_arm() - store ARMED with a new number, and fence: the caller looks after it (rule 7)
 * lane_unarm() - store POLLING
 * lane_armed() - whether the lane is armed; its doorbell may have been rung and drained (bell_rung)
 * lane_futex() - store FUTEX, and fence; what to sleep on if the look after it found nothing
 */
void lane_arm(struct lane_channel *ch);
void lane_unarm(struct lane_channel *ch);
bool lane_armed(const struct lane_channel *ch);

/**
 * lane_rung_out() - whether the last number was rung: the peer rings no more until there is another
 *
 * A side without a lane of its own has no other one to say. Make it before a sleep that passes over
 * what the peer rang for.
 */
bool lane_rung_out(const struct lane_channel *ch);
void lane_futex(struct lane_channel *ch, struct lane_word *ret_word);

/* The end ------------------------------------------------------------------------------------- */

/**
 * lane_end() - publish the END record: nothing is written after it. lane_ring() follows.
 *
 * There is always room for it. Return: 0; -ESHUTDOWN: already; -ENOLINK: no own lane.
 */
int lane_end(struct lane_channel *ch, uint64_t stamp);

/**
 * lane_ask_end() - ask the peer to end its lane (an idle channel)
 */
int lane_ask_end(struct lane_channel *ch);

/**
 * lane_closing_start() - rule 15, reader: store CLOSING and fence; take what is there after it
 * lane_closing_cancel() - store OPEN again and ring (BYEBYE that found something)
 * lane_closing_finish() - store the last cursor, then CLOSED, and ring
 *
 * A side without a lane of its own has taken nothing: it just hangs up.
 */
void lane_closing_start(struct lane_channel *ch);
void lane_closing_cancel(struct lane_channel *ch);
void lane_closing_finish(struct lane_channel *ch);

/**
 * lane_closing_wait() - rule 15, sender: wait until the reader's word is CLOSED or OPEN
 * @deadline:	CLOCK_MONOTONIC ns
 *
 * Takes socket messages: lane_look_touch() after it.
 *
 * Return: 0: the lane is open again, all is as usual; LANE_E_CLOSING: closed or hung up, the cursor
 * is final, take back; -ETIMEDOUT: still closing: nothing more may be sent to that peer until a
 * later call says otherwise; -EPROTO: as LANE_E_CLOSING.
 */
int lane_closing_wait(struct lane_channel *ch, uint64_t deadline);

/**
 * lane_final() - whether the peer's consumer cursor is final (CLOSED, hung up or broken)
 */
bool lane_final(struct lane_channel *ch);

/**
 * struct lane_back - a record that came back
 * @body:	env.length bytes in the own ring, valid until lane_channel_deinit()
 */
struct lane_back {
	struct lane_env env;
	uint64_t tag;
	const void *body;
	const void *bulk; /* env.bulk_size bytes, or NULL */
	int *fds; /* env.fds + env.memfds, as kept: the caller's to close and free(); or NULL */
};

/**
 * lane_take_back() - the next record that the reader did not take, oldest first
 *
 * Only when lane_final(). Return: 0; -ENOENT: no more; -EBUSY: not final yet.
 */
int lane_take_back(struct lane_channel *ch, struct lane_back *ret);

/**
 * lane_over() - whether both lanes are over, so that the socket may be closed
 *
 * Ours: END and all before it taken, or the peer closed, or never made. The peer's: END taken, or
 * we closed, or never passed.
 */
bool lane_over(struct lane_channel *ch);

#endif
