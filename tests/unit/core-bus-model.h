/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef TESTS_UNIT_CORE_BUS_MODEL_H
#define TESTS_UNIT_CORE_BUS_MODEL_H

/*
 * A bus as naive as can be: arrays that are scanned from end to end, written from the text
 * of the specification. What it says must happen is compared with what core/ does.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base.h"
#include "kdbus.h"

#define M_CONNS	  5
#define M_NAMES	  2
#define M_QUEUE	  1024
#define M_CALLS	  512
#define M_MATCHES 4
#define M_NONE	  (-1)

enum m_kind { M_ORDINARY, M_ACTIVATOR, M_MONITOR };
enum m_match { M_ALL, M_ID_ADD, M_ID_REMOVE, M_NAME_CHANGE, M_FROM, M_MATCH_KINDS };

/* @call: index of the call it is, or M_NONE; @user: uid, 0 for the bus. */
struct m_msg {
	u64 src, dst, cookie, word, type;
	u64 old_id, old_flags, new_id, new_flags;
	int name;
	u64 name_id;
	unsigned int fds;
	u32 user;
	s64 priority;
	int call;
};

struct m_rule {
	bool used;
	u64 cookie;
	enum m_match kind;
	u64 id;
};

struct m_conn {
	bool used, accept_fd;
	enum m_kind kind;
	u32 uid;
	u64 id;
	struct m_msg queue[M_QUEUE];
	int n;
	u64 lost;
	struct m_rule rules[M_MATCHES];
	int names[M_NAMES]; /* in the order asked for */
	int n_names;
};

struct m_name {
	u64 id;
	int queue[M_CONNS];
	u64 flags[M_CONNS]; /* by connection: what it asked for last */
	int n;
	int activator;
};

struct m_call {
	int r, p;
	u64 cookie, name_id, deadline;
	bool closed, queued;
	int order;
};

struct model {
	struct m_conn conns[M_CONNS];
	struct m_name names[M_NAMES];
	struct m_call calls[M_CALLS];
	int n_calls, orders;
	u64 last_name_id, seq;
};

void m_init(struct model *m);

/* Each is the command of that name; 0 or negative errno. */
int m_hello(struct model *m, int c, enum m_kind kind, u32 uid, bool accept_fd, int name, u64 id);
int m_byebye(struct model *m, int c);
void m_close(struct model *m, int c);
int m_acquire(struct model *m, int c, int name, u64 flags, u64 *ret_flags);
int m_release(struct model *m, int c, int name);
void m_match(struct model *m, int c, int i, enum m_match kind, u64 id);
int m_unmatch(struct model *m, int c, u64 cookie);
void m_expire(struct model *m, u64 now);

/* @name: destination, or M_NONE; @msg: header as sent, src and user filled in. */
int m_send(struct model *m, int c, int name, u64 flags, struct m_msg msg);

/* @i: index in the queue; what RECV does to it. */
int m_select(const struct m_conn *conn, bool use_priority, s64 threshold);
void m_take(struct model *m, int c, int i, bool drop);

/* Slots that count against a requester. */
int m_pending(const struct model *m, int c);

/* Flags that listings and notifications show of a record. */
u64 m_flags(const struct model *m, int name, int c);

#endif
