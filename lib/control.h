/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef LIB_CONTROL_H
#define LIB_CONTROL_H

/*
 * control.h - what libkdbus and kdbusd say to each other
 *
 * One connect() to a node's socket is one open() of the node (ABI 1.4). The
 * socket stays the client's channel to the daemon: it carries the lane's own
 * messages (lane/lane.h, struct lane_sock) and, from type LANE_SOCK_PROGRAM
 * on, the requests and replies below. After HELLO both sides have a lane; its
 * records of the types below and LANE_REC_MSG, _INTRO and _GONE carry data.
 *
 * Rules
 *
 * 1. Numbers are in host byte order, structures are multiples of eight bytes,
 *    reserved words are zero. Either side checks every length against what it
 *    got before it looks at a field. What breaks the format ends the
 *    connection, and only that.
 * 2. A client has at most one request without a reply. A reply bears the
 *    serial of its request.
 * 3. Before the daemon acts on a request it has taken everything that client
 *    had published in its lane, and before it replies it has committed the
 *    round with all that the request caused (ABI 1.10: delivery is synchronous).
 * 4. Requests: everything but SEND, FREE and an ordinary connection's or a
 *    monitor's RECV, which are the library's own matter.
 * 5. A unicast record to the daemon is answered by a verdict, in the order of
 *    the records; a broadcast is not.
 * 6. The daemon alone says who somebody is: sender ids, credentials, names and
 *    permissions come from its records (design rule 5), never from a peer's.
 * 7. The protocol holds no state that only the daemon could know: a daemon that
 *    replaced this one could be told all of it by the clients.
 */

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "lane/lane.h"

#define CTL_VERSION 1

/* A request or reply is one datagram; more travels in a sealed memfd. */
#define CTL_DATAGRAM_MAX     (96u << 10)
#define CTL_EXTRA_INLINE_MAX (48u << 10)

/* ---- over the socket ---- */

enum ctl_sock_type {
	CTL_REQUEST = LANE_SOCK_PROGRAM, /* client: struct ctl_request */
	CTL_REPLY, /* daemon: struct ctl_reply */
	CTL_ASK_INTRO, /* client: struct ctl_ask_intro, one descriptor: the lane it will write */
	CTL_HAND_BACK, /* client: struct ctl_hand_back, the message's descriptors */
	CTL_END_INTRO, /* client: struct ctl_end_intro */
};

/**
 * struct ctl_request - a command
 * @version:	CTL_VERSION
 * @type:	CTL_REQUEST
 * @serial:	the client's number for it
 * @nr:		KDBUS_CMD_*
 * @arg_size:	bytes of the command structure with its items, behind this
 * @extra_size:	bytes behind that, at ALIGN8(arg_size): struct ctl_hello for HELLO, else 0
 *
 * RECV of an activator has in msg.msg_size how many bytes of answer its pool has room for: a
 * message that needs more stays in the queue, EXFULL.
 *
 * Descriptors: HELLO the client's lane to the daemon; all others none.
 */
struct ctl_request {
	uint16_t version;
	uint16_t type;
	uint32_t serial;
	uint32_t nr;
	uint32_t arg_size;
	uint32_t extra_size;
	uint32_t reserved;
};
static_assert(sizeof(struct ctl_request) == 24, "request");

/**
 * struct ctl_hello - what HELLO says besides the command
 * @monotonic_ns: the client's CLOCK_MONOTONIC; a client in another time namespace gets no direct
 *		lanes (design rule 11)
 * @features:	CTL_FEATURE_* of the library
 */
struct ctl_hello {
	uint64_t monotonic_ns;
	uint64_t features;
};

#define CTL_FEATURE_DIRECT 0x1u /* takes introductions */

/**
 * struct ctl_reply - the answer to a command
 * @version:	CTL_VERSION
 * @type:	CTL_REPLY
 * @serial:	of the request
 * @error:	0 or negative errno
 * @arg_size:	bytes of the command structure to write back, behind this; 0: none. The library
 *		copies out only the fields that the ABI says are written
 * @extra_size:	bytes of answer: inline at ALIGN8(arg_size), or in the memfd
 * @flags:	CTL_REPLY_*
 *
 * The answer is: HELLO struct ctl_welcome, then the item list of the HELLO slice; INFO and LIST
 * the slice; RECV on an activator struct ctl_deliver and what follows it. Descriptors: the memfd
 * first if CTL_REPLY_MEMFD; then HELLO the daemon's lane and page; RECV the message's descriptors,
 * then its payload memfds.
 */
struct ctl_reply {
	uint16_t version;
	uint16_t type;
	uint32_t serial;
	int32_t error;
	uint32_t arg_size;
	uint32_t extra_size;
	uint32_t flags;
};
static_assert(sizeof(struct ctl_reply) == 24, "reply");

#define CTL_REPLY_MEMFD 0x1u

/**
 * struct ctl_welcome - what HELLO's answer says besides the command
 * @flags:	CTL_WELCOME_*
 * @conn_flags:	the accepted connection flags
 */
struct ctl_welcome {
	uint64_t flags;
	uint64_t conn_flags;
};

#define CTL_WELCOME_DIRECT 0x1u /* may ask for introductions */

/**
 * struct ctl_ask_intro - please introduce me to a peer
 * @peer:	its connection id
 *
 * Answered in the daemon's lane by LANE_REC_INTRO or CTL_REC_NO_INTRO, never by an error: messages
 * go through the daemon until then, and after a refusal.
 */
struct ctl_ask_intro {
	uint16_t version;
	uint16_t type;
	uint32_t reserved;
	uint64_t peer;
};
static_assert(sizeof(struct ctl_ask_intro) == 16, "ask");

/**
 * struct ctl_end_intro - an idle channel was closed by agreement (lane/lane.h, end of a channel)
 * @peer:	to whom
 * @number:	of the introduction
 *
 * Both lanes are over, so nothing has to be handed back any more, and the two can be introduced
 * again. Said by the side that closes the socket; the other sees the hang-up. That both may answer
 * what the other had asked stays so.
 */
struct ctl_end_intro {
	uint16_t version;
	uint16_t type;
	uint32_t reserved;
	uint64_t peer;
	uint64_t number;
};
static_assert(sizeof(struct ctl_end_intro) == 24, "end of an introduction");

/**
 * struct ctl_hand_back - what a dead peer did not take (design rule 15, doc/lanes.md)
 * @size:	bytes of message in record form with its payload area behind this; 0 with LAST
 * @flags:	CTL_HAND_BACK_*
 * @peer:	the dead one
 * @stamp:	of the record, by the sender's own clock
 * @name_id:	internal id of the name it was addressed by, or 0
 * @fds:	descriptors of its FDS item, which come with this
 * @memfds:	its payload memfds, which come behind them
 *
 * The daemon judges a death: it says LANE_REC_GONE to all who were introduced to the peer, takes
 * nothing more from their lanes, and waits for what each hands back, oldest first, the last word
 * being LAST. It merges that by the sender's stamps with what it had relayed from the same sender
 * and the peer had not taken either, routes all of it, and goes on with the sender's lane. A
 * message too big for a datagram comes as a sealed memfd, which is the first descriptor then.
 */
struct ctl_hand_back {
	uint16_t version;
	uint16_t type;
	uint32_t size;
	uint64_t flags;
	uint64_t peer;
	uint64_t stamp;
	uint64_t name_id;
	uint32_t fds;
	uint32_t memfds;
};
static_assert(sizeof(struct ctl_hand_back) == 48, "hand back");

#define CTL_HAND_BACK_LAST  0x1u /* that was all, and nothing is behind this */
#define CTL_HAND_BACK_MEMFD 0x2u /* the message is in the memfd */

/* ---- messages in lanes ---- */

/*
 * The *record form* of a message is what SEND was given (struct kdbus_msg and its items, checked by
 * the same code), changed in the addresses and numbers that mean nothing elsewhere:
 *  - PAYLOAD_VEC: address is 0 for a run of zero bytes, else 1;
 *  - PAYLOAD_MEMFD: fd is the position of the memfd among those that come with the record;
 *  - FDS: every number is -1; the descriptors come with the record, in order;
 *  - src_id is 0.
 * The bytes of all vectors with address 1 follow as one payload area laid out by core/layout.h: at
 * ALIGN8(msg.size) from the start of the message, or at the start of the record's bulk buffer.
 *
 * In the lane between two clients a LANE_REC_MSG's body is a message in record form and its payload
 * area. Receivers check it like SEND does, and add id and metadata that the daemon vouched for.
 */

/* lane_env.subject of a LANE_REC_MSG that is a call: the caller waits in SEND. (Of a reply: its
 * cookie_reply.) */
#define CTL_SUBJECT_SYNC 1

enum ctl_rec_type {
	/* client to daemon */
	CTL_REC_SEND = LANE_REC_PROGRAM, /* struct ctl_send, then a message in record form */
	/* daemon to client */
	CTL_REC_VERDICT, /* struct ctl_verdict */
	CTL_REC_LOST, /* struct ctl_lost */
	CTL_REC_NO_INTRO, /* struct ctl_no_intro */
	CTL_REC_PEER, /* struct ctl_peer: an introduced peer's metadata changed */
	CTL_REC_MOVED, /* struct ctl_moved: calls by name have another replier now */
	CTL_REC_WAITING, /* struct ctl_waiting: to activators, whose messages wait in the daemon */
	CTL_REC_AHEAD, /* struct ctl_ahead: for synchronous calls, before what waits for room */
	/* either way, also between clients */
	CTL_REC_REFUSED, /* struct ctl_refused: a call without answer, or a reply not taken */
};

/**
 * struct ctl_send - a message to be relayed
 * @tag:	the client's number, returned in the verdict
 * @flags:	CTL_SEND_*
 * @name_id:	for a message sent again (design rule 15): name id it was addressed by, else 0
 */
struct ctl_send {
	uint64_t tag;
	uint64_t flags;
	uint64_t name_id;
};

#define CTL_SEND_SYNC  0x1u /* a synchronous call, or the reply to one */
#define CTL_SEND_AGAIN 0x2u /* came back from a direct lane, taken by nobody; gets no verdict */

/**
 * struct ctl_verdict - the daemon's answer to a relayed unicast
 * @tag:	of the record
 * @error:	0 or negative errno of SEND
 * @flags:	CTL_VERDICT_*
 * @dst_id:	the connection it went to
 * @name_id:	internal id of the name it was addressed by, or 0
 */
struct ctl_verdict {
	uint64_t tag;
	int32_t error;
	uint32_t flags;
	uint64_t dst_id;
	uint64_t name_id;
};

#define CTL_VERDICT_DIRECT 0x1u /* an introduction to dst_id may be asked for */

/**
 * struct ctl_deliver - behind a message from the daemon (LANE_REC_MSG in its lane): the last
 * bytes of the record
 * @src_id:	sender, 0 for the bus itself
 * @name_id:	internal id of the name it was addressed by, or 0
 * @meta_size:	bytes of metadata items, a multiple of 8, TIMESTAMP included, ready to be used
 * @reserved:	0
 *
 * The record begins with the metadata, then comes the message: in record form with its payload
 * area, or, from the bus itself, a finished notification without payload or further metadata. In
 * this order the payload is where the receiver needs it once the record is in a slice, and is
 * copied once.
 */
struct ctl_deliver {
	uint64_t src_id;
	uint64_t name_id;
	uint32_t meta_size;
	uint32_t reserved;
};
static_assert(sizeof(struct ctl_deliver) == 24, "deliver");

/**
 * struct ctl_lost - messages that could not be delivered
 * @count:	how many since the last such record
 */
struct ctl_lost {
	uint64_t count;
};

/**
 * struct ctl_intro - body of LANE_REC_INTRO: a peer to talk to directly
 * @peer:	its connection id
 * @flags:	CTL_INTRO_*
 * @conn_flags:	its HELLO flags
 * @number:	of this introduction; a later one of the same two has another
 * @meta_size:	bytes of metadata items that follow: what the receiver of this record wants and may
 *		see of the peer, in the order of ABI 8.4, without TIMESTAMP
 *
 * Descriptors: this side's end of the channel's socket; then, to the peer of the one who asked,
 * the lane the asker writes.
 */
struct ctl_intro {
	uint64_t peer;
	uint64_t flags;
	uint64_t conn_flags;
	uint64_t number;
	uint32_t meta_size;
	uint32_t reserved;
};
static_assert(sizeof(struct ctl_intro) == 40, "intro");

#define CTL_INTRO_ASKED	       0x01u /* you asked; without it, the lane comes with this record */
#define CTL_INTRO_IN_MESSAGES  0x02u /* the peer may send you calls and plain messages */
#define CTL_INTRO_OUT_MESSAGES 0x04u /* you may send them to it */
#define CTL_INTRO_IN_SIGNALS   0x08u /* unicast signals of the peer may reach you */
#define CTL_INTRO_OUT_SIGNALS  0x10u
#define CTL_INTRO_EQUAL	       0x20u /* equal authority: bulk buffers are read in place */

/*
 * Replies to open calls may always pass, and so may payload memfds: the receiver checks them as the
 * daemon does. Descriptors of an FDS item pass if conn_flags say so and authority is equal; other
 * ones go through the daemon, whose closing thread may have to wait for their file systems.
 */

/**
 * struct ctl_gone - body of LANE_REC_GONE
 * @peer:	connection id; sent to introduced peers and to those with relayed calls to it
 * @number:	of the introduction that is withdrawn
 * @reason:	enum ctl_gone_reason
 */
struct ctl_gone {
	uint64_t peer;
	uint64_t number;
	uint32_t reason;
	uint32_t reserved;
};

enum ctl_gone_reason {
	CTL_GONE_DEAD = 1, /* disconnected: open calls to it end as REPLY_DEAD or EPIPE */
	CTL_GONE_WITHDRAWN =
		2, /* policy, monitor, names: alive, but through the daemon from now on */
};

/**
 * struct ctl_no_intro - an introduction that was not made
 * @peer:	connection id asked for
 * @pause_ns:	do not ask again before this much time has passed
 */
struct ctl_no_intro {
	uint64_t peer;
	uint64_t pause_ns;
};

/**
 * struct ctl_peer - new metadata of an introduced peer
 * @peer:	connection id
 * @meta_size:	bytes of metadata items that follow, as in struct ctl_intro
 */
struct ctl_peer {
	uint64_t peer;
	uint32_t meta_size;
	uint32_t reserved;
};

/**
 * struct ctl_moved - hand-over (ABI 10.6): whoever called @from through the name waits for @to now
 */
struct ctl_moved {
	uint64_t name_id;
	uint64_t from;
	uint64_t to;
};

/**
 * struct ctl_ahead - what ends a call has to wait for room
 * @name_id:	as in struct ctl_moved
 * @from:	connection id
 * @to:		connection id: what waits is a struct ctl_moved. 0:
 * @cookie:	what waits is a reply of @from to the call of that number. 0: the end of @from
 *
 * It concerns synchronous calls only (doc/lanes.md).
 */
struct ctl_ahead {
	uint64_t name_id;
	uint64_t from;
	uint64_t to;
	uint64_t cookie;
};
static_assert(sizeof(struct ctl_ahead) == 32, "ahead");

/**
 * struct ctl_waiting - what an activator's descriptor has to say
 * @messages:	0: nothing waits any more
 */
struct ctl_waiting {
	uint64_t messages;
};

/**
 * struct ctl_refused - the other side of a call that will not be completed
 * @peer:	through the daemon: whom it is for (to the daemon), or from (to the client)
 * @cookie:	of the call
 * @error:	EPIPE: the receiver dropped the call unread; EREMOTEIO: the reply carried
 *		descriptors the caller does not take; or why else the reply could not be queued,
 *		which only a caller that waits in SEND is told
 * @flags:	CTL_REFUSED_*
 */
struct ctl_refused {
	uint64_t peer;
	uint64_t cookie;
	int32_t error;
	uint32_t flags;
};
static_assert(sizeof(struct ctl_refused) == 24, "refused");

#define CTL_REFUSED_SYNC 0x1u /* the caller waits in SEND: it passes what waits for room */

#endif
