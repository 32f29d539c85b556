/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * lane.h - shared-memory lanes: the protocol, and how a program uses it
 *
 * A *lane* is a one-way ring of records in a memfd that its writer made, owns and pays for and
 * that its reader maps read-only. A *channel* is the two lanes between two connections and one
 * SOCK_SEQPACKET socketpair, which carries doorbells, descriptors and hang-up. This file is the
 * specification of both: with it a second implementation can be written. The functions are in
 * channel.h (one channel), look.h (many channels, in order), wait.h (spinning and sleeping),
 * alarm.h (one word to sleep on for many lanes), bulk.h (large payloads), page.h (the daemon's
 * page), memfd.h (making and checking memfds) and ops.h (the system calls, which the caller hands
 * in).
 *
 * The 18 rules
 * ------------
 * Code and tests cite them as "rule N".
 *
 * Memory
 *  1. Every shared word has one writer, and nobody reads back what he wrote: each side keeps the
 *     master of its words in private memory and only stores copies. The one exception is the alarm
 *     word (alarm.h), which counts up and tells nothing.
 *  2. The writer maps its memfd, then seals it FUTURE_WRITE, SHRINK, GROW, SEAL. The reader checks
 *     seals, then file system, then size, before it maps. The daemon's page likewise.
 *  3. Cursors are 32-bit and free-running; none goes back or is reset. A peer's cursor counts only
 *     within [what I last saw, what I published] and published minus consumed, less what was
 *     skipped, never exceeds the ring. Anything else breaks the format: the channel is lost, and
 *     only that.
 *  4. A record is copied out, its fields are read once from the copy, the consumer cursor is
 *     stored, and only then does the application see it (at most once).
 *  5. Who the sender is and what it may send comes from the introduction, never from a record.
 *
 * Wake-ups
 *  6. Publish: descriptors first (through the socket), write the record, store the cursor
 *     (release), full fence, read the reader's state; wake the futex if it waits there, ring if it
 *     is armed with a number not yet rung (EAGAIN from the socket counts as rung). Stamp to ring is
 *     one critical section.
 *  7. Sleep: drain the doorbells, arm with a new number, full fence, look, in that order; asleep
 *     only if that look found nothing at all. Waiting for space is the same pair, roles swapped.
 *  8. The descriptor is readable unless every lane is armed and empty: the first doorbell of a busy
 *     period stays in the socket until the look that finds nothing; where there was none, the
 *     reader rings an eventfd of its own.
 *  9. No sleep depends on a peer's good will; nothing is declared dead or late before a last look.
 *
 * Order
 * 10. A look reads the clock (T), then takes up every lane once (the daemon's first, introductions
 *     in it included; armed ones by one non-waiting epoll) and snapshots the cursors. It delivers,
 *     whole, in stamp order, what is stamped before T; the rest waits for the next look. Only the
 *     reply to a synchronous call overtakes.
 * 11. A stamp is CLOCK_MONOTONIC in ns, taken in the section of rule 6, greater than any the sender
 *     has sent or been delivered. One ahead of the reader's clock counts as the moment it was first
 *     seen; one that goes back counts as the one before it in its lane.
 * 12. The daemon works in rounds: take requests, publish into all receivers' lanes, commit (one
 *     store of the round's number in its page), ring, advance its consumer cursors. A record of an
 *     uncommitted round is not there yet.
 * 13. Until the daemon's cursor has passed everything a client sent through it, the client sends
 *     everything through the daemon. Generations are stored before the commit that follows.
 * 14. Taking up the record of a peer's end cuts its lane: what is in it by then counts as stamped
 *     no later than that record, nothing after it counts.
 * 15. A live reader that stops reading stores CLOSING, fences, takes what is there, stores its last
 *     cursor, then CLOSED, and rings. A sender that meets CLOSING in rule 6 waits for CLOSED or
 *     OPEN (bounded). After CLOSED, or the reader's end, the consumer cursor is final: what lies
 *     beyond goes back to its sender. At the bound the message stays in the lane, and the lane
 *     counts as full until the word changes.
 * 16. A record that does not fit yet holds back what is stamped later; no lane is skipped.
 *
 * Limits
 * 17. Permission is enforced by the receiver, record by record.
 * 18. In flight per lane: LANE_MSGS_MAX messages, LANE_MSGS_REPLIES more that are kept for replies,
 *     LANE_FDS_MAX passed descriptors and as many payload memfds. A peer that rings a number it was
 *     not asked for loses the channel.
 *
 * Memory layout
 * -------------
 * A lane's file is struct lane_head followed at once by the ring, whose size is a power of two; the
 * file's size is LANE_HEAD_SIZE + ring, rounded up to a page. So a lane whose ring is used from its
 * start touches one page. Position of cursor c in the ring: c & (ring - 1). Everything is in host
 * byte order: both ends run on one machine. All cursors are multiples of LANE_ALIGN.
 *
 * Let A and B be the ends of a channel. A's file (written by A, read by B) holds:
 *
 *  word        A's role  meaning
 *  published   writer    end of the last record A wrote
 *  bell        writer    counts up when records begin to count (after the daemon's commit), and
 *                        once more before a wake; the word B's futex sleeps on for records
 *  skip        writer    at this cursor, if it is no multiple of the ring, the reader goes on at
 *                        the next multiple; stored before published
 *  consumed    reader    how far A has read B's lane; the word B's futex sleeps on for space
 *  state       reader    LANE_POLLING, LANE_FUTEX, LANE_ALARM or LANE_ARMED (low bits), and the
 *                        number n
 *  reading     reader    LANE_OPEN, LANE_CLOSING or LANE_CLOSED (low bits), and a change count
 *  space       writer    like state, for A's wait until B has consumed up to...
 *  want        writer    ...this cursor; stored before space
 *  returned[i] reader    how many uses of B's bulk buffer i A has handed back
 *  alarm       both      LANE_ALARM_GIVEN: A's alarm word is in B's socket; LANE_ALARM_TAKEN: A
 *                        has mapped B's. Bits that are set once
 *
 * A side that has no lane of its own yet is seen by its peer as consumed 0, OPEN, not waiting for
 * space, and LANE_ARMED with number LANE_FIRST_NUMBER: the first record rings the socket. It must
 * make its lane and pass it (LANE_SOCK_LANE) before it takes up its first record.
 *
 * Barriers, each with its partner
 * -------------------------------
 *  B1 published: store-release by the writer after the record  ~ load-acquire by the reader before
 *     it copies. (The record is complete.)
 *  B2 consumed: store-release by the reader after the copy     ~ load-acquire by the writer before
 *     it overwrites. (The copy is complete.)
 * The futex: the reader loads the bell, stores FUTEX with a new number n, fences, looks, and
 * sleeps while the bell has the value loaded. The writer wakes once per number, after it has
 * counted the bell up again: a writer that has read n has changed the bell since the reader loaded
 * it, so one wake for n is enough. (With the bell loaded after storing n it is not: the wake for n
 * may come before the load.) The alarm is the same with one word for all lanes: the reader loads
 * it, stores ALARM with a new number in every lane, fences, looks, and sleeps while it has that
 * value; the writer counts the word up, and wakes.
 *
 *  B3 full fence between published/bell and the load of the peer's state and reading
 *                                                              ~ full fence between state (armed or
 *     futex) and the look.  (No lost wake-up, rules 6 and 7.)
 *  B4 full fence between consumed (or returned[i]) and the load of the peer's space
 *                                                              ~ full fence between want, space and
 *     the look at consumed (or returned). (No lost wake-up for space. Who waits for a bulk buffer
 *     wants a cursor that is passed already, so that the next consume or return rings.)
 *  B5 full fence between CLOSING and the last look             ~ B3's fence in the writer.
 *     (A record is taken by the last look, or its writer sees CLOSING, or both.)
 *  B6 reading: store-release of CLOSED after the last consumed ~ load-acquire by the writer before
 *     it reads the final consumed.
 *  B7 committed in the page: store-release after all lanes' published
 *                                                              ~ load-acquire before the load of
 *     published. (A committed round is seen whole, rule 12.) The bell is stored after it.
 *  B8 returned[i]: store-release after the last access         ~ load-acquire before reuse.
 *  B9 lfence (or isb, or a full fence) between reading T and the first load of committed and
 *     published                                                ~ B3's fence in the writer, which
 *     has published before it causes anything. (A cause of what is stamped before T is seen.)
 *
 * Records
 * -------
 * struct lane_env (64 bytes), then `length` bytes, then padding to LANE_ALIGN with any content.
 * size = LANE_ALIGN + length rounded up to LANE_ALIGN. No record wraps: if one does not fit before
 * the end of the ring, a LANE_REC_PAD fills the rest; a pad always ends exactly at the end of the
 * ring. A writer that finds its ring empty (the reader's cursor is the published one) may go back
 * to the start by `skip` instead of writing on: what is skipped takes no room, so a quiet lane
 * stays within its first page and yet has all of its ring for a burst. A writer that comes to put
 * something at the cursor that skip still names, 4 GiB later, stores 0 there first.
 * Limits: size at most a
 * quarter of the ring (pads excepted); records without LANE_F_REPLY leave a quarter of the ring
 * free, which is kept for replies, as is LANE_MSGS_REPLIES of the number in flight; everything
 * leaves LANE_ALIGN bytes free, kept for the END record, which is one envelope, comes once and is
 * the last.
 *
 * Descriptors of a record travel in one LANE_SOCK_FDS message that is sent before the record is
 * published and bears the record's fd_seq; a writer's fd_seq grows by one per such message. The
 * reader takes or closes the descriptors of every record it takes. Messages without a record (the
 * writer died, or lies) are closed with the channel; more of them than may be in flight break the
 * format, as does a record whose message has not come or has another number of descriptors. So a
 * writer can only break its own channel by them. What the descriptors are is the programs' matter:
 * lane_memfd_check_payload() says how a memfd of anybody's is checked.
 * A writer that wants to send again what comes back keeps copies of the descriptors until the
 * reader's cursor has passed the record, for the socket's end takes those that were sent with it.
 *
 * Socket messages
 * ---------------
 * struct lane_sock, exactly LANE_SOCK_SIZE bytes, with the descriptors the type calls for and no
 * others. A message that is truncated, of another version, size or type, with non-zero reserved
 * fields or with the wrong number of descriptors breaks the format; its descriptors are closed.
 * Types from LANE_SOCK_PROGRAM on are longer messages of the two programs (the commands between
 * client and daemon) that share the socket: they begin with version and type likewise, and are
 * handed to the program if it said it wants any.
 *
 * How a program uses it
 * ---------------------
 * One thread at a time per channel and per look: the caller locks. All functions take the system
 * calls from a struct lane_ops (ops.h); lib/ and daemon/ pass &lane_linux_ops.
 *
 * Setting up (client to daemon). The client makes a socketpair or takes its bus socket, then
 *	lane_channel_init(ch, &lane_linux_ops, sock, LANE_PEER_IS_DAEMON);
 *	lane_channel_make(ch, LANE_RING_DEFAULT, &fd);	its own lane; pass fd (HELLO), then close it
 *	lane_channel_attach(ch, peer_fd);		the daemon's lane, from HELLO's answer
 * An introduction: the sender makes its lane and hands the fd to the daemon; the daemon makes the
 * socketpair and gives one end and the fd to the peer, then the other end to the sender. The peer
 * calls init and attach, later make and lane_channel_pass() when it first has something to say or
 * to consume. The sender gets the peer's lane by the LANE_SOCK_LANE message, which the channel
 * takes up by itself.
 *
 * Sending (client; lock the connection from the stamp to the ring):
 *	r = lane_put(ch, &put, &body);		-EAGAIN: full, see lane_space_arm()
 *	... write put.length bytes to body ...
 *	r = lane_put_fds(ch, fds, n);		only if put.fds + put.memfds > 0
 *	lane_keep_fds(ch, copies);		so that they can be sent again
 *	lane_publish(ch, lane_clock_stamp(clock, ops), 0);
 *	r = lane_ring(ch);			LANE_E_CLOSING: see lane_closing_wait()
 * Sending (daemon, one round): lane_put() + lane_publish(ch, stamp, round) for all receivers, then
 * lane_page_commit(page, round), then lane_ring() for each of them, then lane_consume() for each
 * client it took requests from. A stamp of its own for each request: lane_clock_stamp().
 *
 * Receiving (client): one struct lane_look per connection, with the daemon's channel and all peers:
 *	r = lane_look_next(look, LANE_LOOK_ARM, &ev);	-EAGAIN: all armed and empty, may sleep
 *	ev.type LANE_EV_RECORD: allocate ev.rec.length bytes (none left: return EXFULL and call
 *	again later; it returns the same record), then lane_look_take(look, &ev, body) and, if
 *	ev.rec.fds + ev.rec.memfds, lane_look_fds(). Validate body. Only then give it out.
 *	ev.type LANE_EV_OVER, LANE_EV_BROKEN: the channel's lane ended; lane_look_remove().
 * look->epoll is the connection's pollable descriptor (rule 8). Introductions, ends of peers and
 * withdrawals are records of the daemon's lane of type LANE_REC_INTRO and LANE_REC_GONE; the look
 * reports them to look->taken_up() when it takes the daemon's lane up, before it takes up the
 * peers' lanes, so that the new channel is in the same look (rule 10) and the old one cut (14).
 * Receiving (daemon): lane_peek(), lane_take() per channel, lane_consume() at the end of the round;
 * lane_arm() before it sleeps in epoll, lane_unarm() when a channel became readable.
 *
 * Synchronous call: lane_snapshot() and lane_scan() over the reply lane and the daemon's,
 * lane_pluck() the reply, and lane_wait() (wait.h) in between; first lane_look_touch() both, so
 * that the next look takes them up and arms them again (rule 8). Large payloads: bulk.h.
 *
 * End of a channel. An idle one: lane_ask_end(); the peer sees ch->asked_end, calls lane_end() and
 * lane_ring(), and asks likewise; when lane_over(), deinit. To stop reading (withdrawal, BYEBYE):
 * lane_closing_start(), take up everything, lane_closing_finish(); the sender, told by
 * LANE_E_CLOSING or -ESHUTDOWN, calls lane_closing_wait(), and lane_take_back() until -ENOENT.
 */
#ifndef LANE_LANE_H
#define LANE_LANE_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LANE_MAGIC 0x656e616c7362646bULL /* "kdbslane" */
#define LANE_VERSION 1

#define LANE_ALIGN 64u
#define LANE_HEAD_SIZE 512u
#define LANE_RING_MIN (16u << 10)
#define LANE_RING_DEFAULT (256u << 10)
#define LANE_RING_MAX (4u << 20)

#define LANE_MSGS_MAX 256u /* records in flight per lane */
#define LANE_MSGS_REPLIES 64u /* and so many more with LANE_F_REPLY */
#define LANE_FLIGHTS_MAX (LANE_MSGS_MAX + LANE_MSGS_REPLIES)
#define LANE_FDS_MAX 16u /* passed descriptors in flight, and as many payload memfds */
#define LANE_BULK_MAX 8u /* bulk buffers per lane */
#define LANE_BULK_INDEX(bulk) ((bulk) & 15u) /* 1..LANE_BULK_MAX */
#define LANE_BULK_GEN(bulk) ((bulk) >> 4) /* 0 for the first buffer of that index */
#define LANE_BULK_MIN (64u << 10)
#define LANE_BULK_SIZE_MAX (4u << 20) /* holds the 2 MiB of vectors and the 32 KiB image */

/* struct lane_head.state and .space: mode in the low bits, number above */
#define LANE_MODE_MASK 3u
#define LANE_POLLING 0u /* awake: neither ring nor wake */
#define LANE_FUTEX 1u /* asleep on the futex word */
#define LANE_ARMED 2u /* ring the socket once for this number */
#define LANE_ALARM 3u /* asleep on its alarm word, which the peer has; not of space */
#define LANE_NUMBER_SHIFT 2
#define LANE_FIRST_NUMBER 1u

/* struct lane_head.reading: value in the low bits, a change count above */
#define LANE_OPEN 0u
#define LANE_CLOSING 1u
#define LANE_CLOSED 2u

/* struct lane_head.alarm */
#define LANE_ALARM_GIVEN 1u
#define LANE_ALARM_TAKEN 2u

/**
 * struct lane_head - start of a lane's file; see the table above
 *
 * Words that change together share a cache line; words of different rhythm do not.
 */
struct lane_head {
	uint64_t magic; /* LANE_MAGIC */
	uint32_t version; /* LANE_VERSION */
	uint32_t ring; /* bytes, a power of two, LANE_RING_MIN..LANE_RING_MAX */
	uint32_t alarm;
	uint32_t reserved0[11]; /* 0 */

	uint32_t published;
	uint32_t bell;
	uint32_t skip;
	uint32_t reserved1[13];

	uint32_t consumed;
	uint32_t reserved2[15];

	uint32_t state;
	uint32_t reading;
	uint32_t reserved3[14];

	uint32_t space;
	uint32_t want;
	uint32_t reserved4[14];

	uint32_t returned[LANE_BULK_MAX];
	uint32_t reserved5[8];

	uint32_t reserved6[32];
};

static_assert(sizeof(struct lane_head) == LANE_HEAD_SIZE, "lane head");
static_assert(offsetof(struct lane_head, alarm) == 16, "alarm");
static_assert(offsetof(struct lane_head, published) == 64, "published");
static_assert(offsetof(struct lane_head, bell) == 68, "bell");
static_assert(offsetof(struct lane_head, skip) == 72, "skip");
static_assert(offsetof(struct lane_head, consumed) == 128, "consumed");
static_assert(offsetof(struct lane_head, state) == 192, "state");
static_assert(offsetof(struct lane_head, reading) == 196, "reading");
static_assert(offsetof(struct lane_head, space) == 256, "space");
static_assert(offsetof(struct lane_head, want) == 260, "want");
static_assert(offsetof(struct lane_head, returned) == 320, "returned");
static_assert(LANE_HEAD_SIZE % LANE_ALIGN == 0, "the ring is aligned like its records");

/**
 * enum lane_rec_type - what a record is
 *
 * INTRO and GONE are allowed in the daemon's lane only. Types from LANE_REC_PROGRAM on belong to
 * the programs; lane/ checks their envelope and passes them through.
 */
enum lane_rec_type {
	LANE_REC_PAD = 1, /* skip to the end of the ring */
	LANE_REC_END = 2, /* the writer's last record; length 0 */
	LANE_REC_MSG = 3, /* struct kdbus_msg, items; payload behind it or in a bulk buffer */
	LANE_REC_INTRO = 4, /* the daemon introduces peer `subject` */
	LANE_REC_GONE = 5, /* peer `subject` has ended, or its introduction was withdrawn */
	LANE_REC_PROGRAM = 16,
};

/* struct lane_env.flags */
#define LANE_F_REPLY 0x0001u /* may use the part of the ring kept for replies */
#define LANE_F_ALL (LANE_F_REPLY)

/**
 * struct lane_env - envelope of a record
 * @size:	whole record with envelope and padding, multiple of LANE_ALIGN
 * @type:	enum lane_rec_type, or the program's
 * @flags:	LANE_F_*
 * @stamp:	CLOCK_MONOTONIC ns, rule 11
 * @round:	the daemon's round, rule 12; 0 in lanes between clients
 * @length:	bytes behind the envelope
 * @fds:	passed descriptors that come with it, at most LANE_FDS_MAX
 * @memfds:	payload memfds that come with it, behind the fds, at most LANE_FDS_MAX
 * @fd_seq:	number of the LANE_SOCK_FDS message with them; 0 without descriptors
 * @bulk:	bulk buffer that holds the payload, index and generation; 0 for none
 * @bulk_use:	use number of that buffer (bulk.h)
 * @bulk_size:	bytes of payload at the buffer's start
 * @subject:	peer id (INTRO, GONE), cookie_reply (MSG that is a reply), or the program's: a hint,
 *		for which the body is the authority
 *
 * PAD and END have all fields but size, type, stamp and round zero.
 */
struct lane_env {
	uint32_t size;
	uint16_t type;
	uint16_t flags;
	uint64_t stamp;
	uint64_t round;
	uint32_t length;
	uint16_t fds;
	uint16_t memfds;
	uint32_t fd_seq;
	uint32_t bulk;
	uint32_t bulk_use;
	uint32_t bulk_size;
	uint64_t subject;
	uint64_t reserved; /* 0 */
};

static_assert(sizeof(struct lane_env) == LANE_ALIGN, "envelope");
static_assert(offsetof(struct lane_env, stamp) == 8, "stamp");
static_assert(offsetof(struct lane_env, length) == 24, "length");
static_assert(offsetof(struct lane_env, fd_seq) == 32, "fd_seq");
static_assert(offsetof(struct lane_env, subject) == 48, "subject");

/**
 * enum lane_sock_type - messages on a channel's socket
 */
enum lane_sock_type {
	LANE_SOCK_BELL = 1, /* value: the number of state that is rung */
	LANE_SOCK_SPACE = 2, /* value: the number of space that is rung */
	LANE_SOCK_FDS = 3, /* value: fd_seq, count: descriptors with it */
	LANE_SOCK_LANE = 4, /* one descriptor: the sender's lane */
	LANE_SOCK_BULK = 5, /* one descriptor; value: index and generation as in lane_env.bulk */
	LANE_SOCK_CLOSED = 6, /* reading has become CLOSED or OPEN again */
	LANE_SOCK_ASK_END = 7, /* the reader asks the writer to end its lane */
	LANE_SOCK_ALARM = 8, /* one descriptor: the sender's alarm word; at most once */
	LANE_SOCK_PROGRAM = 16, /* from here on: the programs' own, any size, see channel.h */
};

struct lane_sock {
	uint16_t version; /* LANE_VERSION */
	uint16_t type;
	uint32_t count;
	uint32_t value;
	uint32_t reserved; /* 0 */
};

#define LANE_SOCK_SIZE sizeof(struct lane_sock)
static_assert(LANE_SOCK_SIZE == 16, "socket message");

/* Documented outcomes (positive, handled on the spot, never passed on) */
#define LANE_E_CLOSING 1 /* the reader is closing: wait for its last cursor */

/* Largest record without and with envelope for a ring of @ring bytes */
static inline uint32_t lane_record_max(uint32_t ring)
{
	return ring / 4;
}

static inline uint32_t lane_body_max(uint32_t ring)
{
	return lane_record_max(ring) - LANE_ALIGN;
}

/*
 * Bytes of payload above which a program uses a bulk buffer: one such record, with its pad, always
 * fits the part kept for replies.
 */
static inline uint32_t lane_share(uint32_t ring)
{
	return ring / 8 - LANE_ALIGN;
}

#endif
