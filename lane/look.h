/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * look.h - receiving from many lanes, in order (rules 7, 8, 10-12, 14, 16)
 *
 * 1. A batch is what one look found stamped before its T. It belongs to the connection, is
 *    delivered whole and in stamp order, one record per call, before the next look is taken.
 * 2. Until lane_look_take(), lane_look_next() returns the same record: what does not fit the
 *    receiver's pool yet holds back what is later (rule 16).
 * 3. look->epoll is readable unless every lane is armed and empty (rule 8). It holds the sockets
 *    of all channels and the look's own eventfd; the caller may add descriptors of its own, with a
 *    NULL data pointer.
 * 4. A lane is touched by a look only if it is polled or its socket is readable: idle channels cost
 *    nothing.
 */
#ifndef LANE_LOOK_H
#define LANE_LOOK_H

#include "channel.h"
#include "page.h"

struct lane_look;

/**
 * struct lane_source - a channel in a look; embedded by the caller. Private but id, ch and user.
 */
struct lane_source {
	uint64_t id; /* of the peer; 0 for the daemon */
	struct lane_channel *ch;
	void *user;

	unsigned int index; /* in look->active, if polled */
	bool polled; /* state is POLLING: look at it */
	bool readable; /* its socket was, when this look asked */
	bool have; /* env and stamp are those of the record at `at` */
	bool told_closed;
	bool told_asked;
	bool told; /* OVER or BROKEN was reported */
	bool told_hungup; /* it was after the socket hung up */
	bool cut; /* rule 14 */
	bool gone; /* hung up before the snapshot: nothing comes after it */
	bool skipped; /* only where rule 16 is broken on purpose */
	uint32_t limit; /* cursor snapshot of this look */
	uint32_t at;
	uint32_t taken_up; /* daemon: reported to taken_up() up to here */
	uint64_t taken_up_stamp; /* daemon: stamp as counted of the last record before that */
	uint64_t cut_stamp;
	uint64_t last; /* stamp of the last record as counted */
	uint64_t stamp; /* of the next record as counted */
	struct lane_env env;
};

enum lane_event_type {
	LANE_EV_RECORD = 1, /* rec is its envelope */
	LANE_EV_OVER, /* nothing comes any more: END or cut; again when the socket hangs up */
	LANE_EV_BROKEN, /* its peer broke the format */
	LANE_EV_ASKED, /* its peer asks for the end of our lane (an idle channel) */
	LANE_EV_CLOSED, /* it reads no more: lane_take_back(); what it sends still comes */
};

struct lane_event {
	enum lane_event_type type;
	struct lane_source *src;
	uint64_t stamp; /* as counted */
	struct lane_env rec;
};

/**
 * struct lane_look - all lanes of a connection
 * @taken_up:	called for every record of type LANE_REC_INTRO or LANE_REC_GONE when the daemon's
 *		lane is taken up, before its turn. For INTRO the callback makes the channel and
 *		calls lane_look_add(); for GONE it calls lane_look_cut(). @body: rec->length bytes.
 *		May be NULL. A record is reported only once here; it is delivered as well.
 */
struct lane_look {
	void (*taken_up)(struct lane_look *look, const struct lane_env *rec, uint64_t stamp,
			 const void *body);
	void *user;
	int epoll;
	int eventfd;

	const struct lane_ops *ops;
	const struct lane_page *page;
	struct lane_clock *clock;
	struct lane_source *daemon;
	struct lane_source **active; /* the polled ones */
	unsigned int n_active;
	unsigned int n_sources;
	unsigned int room; /* in active and, one more, in ready */
	void **ready;
	unsigned int unasked; /* looks since epoll was asked */
	uint64_t t;
	bool batch; /* a batch is being delivered */
	bool loud; /* an unread doorbell makes epoll readable */
	bool self_rung; /* the eventfd does */
};

#define LANE_LOOK_POLL 0 /* do not arm: -EAGAIN only says that this look found nothing */
#define LANE_LOOK_ARM  1 /* before a look that counts, drain and arm all; after -EAGAIN, sleep */

/**
 * lane_look_init() - an empty look
 * @epoll, @eventfd: the caller's; the look adds eventfd to epoll
 * @page:	the daemon's page, or NULL if every round counts (tests of lanes between clients)
 * @clock:	of the connection
 *
 * Return: 0, -ENOMEM, or what ops->watch() said.
 */
int lane_look_init(struct lane_look *look, const struct lane_ops *ops, int epoll, int eventfd,
		   const struct lane_page *page, struct lane_clock *clock);
void lane_look_deinit(struct lane_look *look);

/**
 * lane_look_add() - add a channel; the daemon's (LANE_PEER_IS_DAEMON) at any time, but only one
 * @src:	id, ch and user set by the caller, the rest zero; lives until lane_look_remove()
 *
 * Return: 0, -ENOMEM, -EEXIST: a second daemon, or what ops->watch() said.
 */
int lane_look_add(struct lane_look *look, struct lane_source *src);

/**
 * lane_look_remove() - take a channel out; the channel stays the caller's
 */
void lane_look_remove(struct lane_look *look, struct lane_source *src);

/**
 * lane_look_next() - the next event in order
 * @mode:	LANE_LOOK_POLL or LANE_LOOK_ARM
 *
 * Return: 0; -EAGAIN: see @mode; -ENOMEM.
 */
int lane_look_next(struct lane_look *look, int mode, struct lane_event *ret);

/**
 * lane_look_take() - take the record of the event: copy it and store the consumer cursor (rule 4)
 * @body:	rec.length bytes; NULL discards
 *
 * Return: 0; -EINVAL: not the next record any more; -ENOLINK: no own lane, make it first.
 */
int lane_look_take(struct lane_look *look, const struct lane_event *ev, void *body);

/**
 * lane_look_fds() - the descriptors of a record just taken; as lane_take_fds()
 */
int lane_look_fds(struct lane_look *look, const struct lane_event *ev, int *fds);

/**
 * lane_look_cut() - rule 14: the peer's end was taken up, with the stamp as counted
 */
void lane_look_cut(struct lane_look *look, struct lane_source *src, uint64_t stamp);

/**
 * lane_look_skip() - for tests: deliver nothing of that lane until this is called with NULL (it
 * breaks rule 16)
 */
void lane_look_skip(struct lane_look *look, struct lane_source *src);

/**
 * lane_look_touch() - a lane was polled or its doorbells were drained outside the look (a
 * synchronous call): the next looks look at it, and the descriptor says so (rule 8)
 */
void lane_look_touch(struct lane_look *look, struct lane_source *src);

/**
 * lane_look_break() - a record of this source failed the caller's validation: its channel is lost
 */
void lane_look_break(struct lane_look *look, struct lane_source *src);

#endif
