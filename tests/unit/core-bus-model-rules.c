// SPDX-License-Identifier: LGPL-2.1-or-later
#include <assert.h>
#include <string.h>

#include "core-bus-model.h"

void m_init(struct model *m)
{
	memset(m, 0, sizeof(*m));
	for (int n = 0; n < M_NAMES; n++)
		m->names[n].activator = M_NONE;
}

/* §10.2: the head of the queue, else the activator. */
static int owner_of(const struct model *m, int name)
{
	const struct m_name *n = &m->names[name];

	return n->n ? n->queue[0] : n->activator;
}

u64 m_flags(const struct model *m, int name, int c)
{
	const struct m_name *n = &m->names[name];
	u64 state = owner_of(m, name) == c ? KDBUS_NAME_PRIMARY : KDBUS_NAME_IN_QUEUE;

	if (n->activator == c)
		return state | KDBUS_NAME_ACTIVATOR;
	return state | n->flags[c];
}

static bool owns_any(const struct model *m, int c, u64 id)
{
	return m->conns[c].used && m->conns[c].id == id;
}

/* §9.2 without any records: the owner of the bus, or the same uid. */
static bool may_talk(const struct model *m, int x, int y)
{
	return m->conns[x].uid == 1000 || m->conns[x].uid == m->conns[y].uid;
}

/* §14.4, with pools so large that only numbers count. */
static int room(const struct m_conn *to, u32 user, unsigned int fds)
{
	unsigned int msgs = 0, n_fds = 0;

	for (int i = 0; i < to->n; i++) {
		if (to->queue[i].user != user)
			continue;
		msgs++;
		n_fds += to->queue[i].fds;
	}
	if (msgs >= 256)
		return -ENOBUFS;
	return n_fds + fds > 16 ? -EMFILE : 0;
}

static int deliver(struct model *m, int to, const struct m_msg *msg)
{
	struct m_conn *conn = &m->conns[to];
	int r;

	if (msg->fds && !conn->accept_fd && conn->kind != M_MONITOR)
		return -ECOMM;
	r = room(conn, msg->user, msg->fds);
	if (r)
		return r;
	assert(conn->n < M_QUEUE);
	conn->queue[conn->n++] = *msg;
	return 0;
}

static void to_monitors(struct model *m, struct m_msg msg)
{
	msg.call = M_NONE;
	msg.name_id = 0;
	for (int c = 0; c < M_CONNS; c++)
		if (m->conns[c].used && m->conns[c].kind == M_MONITOR && deliver(m, c, &msg))
			m->conns[c].lost++;
}

/* §11 */
static bool rule_holds(const struct m_rule *rule, const struct m_msg *msg)
{
	switch (rule->kind) {
	case M_ALL:
		return true;
	case M_ID_ADD:
		return msg->type == KDBUS_ITEM_ID_ADD;
	case M_ID_REMOVE:
		return msg->type == KDBUS_ITEM_ID_REMOVE;
	case M_NAME_CHANGE:
		return msg->type == KDBUS_ITEM_NAME_CHANGE;
	default:
		return !msg->type && msg->src == rule->id;
	}
}

static bool wants(const struct m_conn *conn, const struct m_msg *msg)
{
	for (int i = 0; i < M_MATCHES; i++)
		if (conn->rules[i].used && rule_holds(&conn->rules[i], msg))
			return true;
	return false;
}

/* §12 */
static void notify(struct model *m, u64 type, u64 old_id, u64 old_flags, u64 new_id, u64 new_flags,
		   int name)
{
	const struct m_msg msg = {
		.dst = KDBUS_DST_ID_BROADCAST, .type = type, .old_id = old_id,
		.old_flags = old_flags, .new_id = new_id, .new_flags = new_flags, .name = name,
		.call = M_NONE,
	};

	m->seq++;
	to_monitors(m, msg);
	for (int c = 0; c < M_CONNS; c++)
		if (m->conns[c].used && m->conns[c].kind == M_ORDINARY &&
		    wants(&m->conns[c], &msg) && deliver(m, c, &msg))
			m->conns[c].lost++;
}

static void notify_id(struct model *m, int c, u64 type)
{
	u64 flags = m->conns[c].accept_fd ? KDBUS_HELLO_ACCEPT_FD : 0;

	if (m->conns[c].kind == M_ACTIVATOR)
		flags |= KDBUS_HELLO_ACTIVATOR;
	if (m->conns[c].kind != M_MONITOR)
		notify(m, type, 0, 0, m->conns[c].id, flags, 0);
}

static void outcome(struct model *m, int r, u64 type, u64 cookie)
{
	const struct m_msg msg = {
		.dst = m->conns[r].id, .word = cookie, .type = type, .call = M_NONE,
	};

	if (!m->conns[r].used)
		return;
	m->seq++;
	to_monitors(m, msg);
	if (deliver(m, r, &msg))
		m->conns[r].lost++;
}

static void dead(struct model *m, int call)
{
	if (call == M_NONE || m->calls[call].closed)
		return;
	m->calls[call].closed = true;
	outcome(m, m->calls[call].r, KDBUS_ITEM_REPLY_DEAD, m->calls[call].cookie);
}

static void unqueue(struct model *m, int c, int i)
{
	struct m_conn *conn = &m->conns[c];

	if (conn->queue[i].call != M_NONE)
		m->calls[conn->queue[i].call].queued = false;
	memmove(&conn->queue[i], &conn->queue[i + 1], (--conn->n - i) * sizeof(conn->queue[0]));
}

/* §10.6 */
static void hand_over(struct model *m, int from, int to, u64 name_id)
{
	struct m_conn *s = &m->conns[from];
	struct m_msg msg;
	int next;

	for (;;) {
		next = M_NONE;
		for (int i = 0; i < m->n_calls; i++)
			if (!m->calls[i].closed && m->calls[i].p == from &&
			    m->calls[i].name_id == name_id &&
			    (next == M_NONE || m->calls[i].order < m->calls[next].order))
				next = i;
		if (next == M_NONE)
			break;
		m->calls[next].p = to;
		m->calls[next].order = ++m->orders;
	}
	for (int i = 0; i < s->n;) {
		if (s->queue[i].name_id != name_id) {
			i++;
			continue;
		}
		msg = s->queue[i];
		unqueue(m, from, i);
		if (!deliver(m, to, &msg)) {
			if (msg.call != M_NONE)
				m->calls[msg.call].queued = true;
			continue;
		}
		m->conns[to].lost++;
		dead(m, msg.call);
	}
}

static void changed(struct model *m, int name, int was, u64 was_flags)
{
	int is = owner_of(m, name);
	u64 id = m->names[name].id;

	if (was == is)
		return;
	if (was != M_NONE && is != M_NONE && (m->names[name].activator == was ||
					      m->names[name].activator == is))
		hand_over(m, was, is, id);
	notify(m, was == M_NONE ? KDBUS_ITEM_NAME_ADD :
		  is == M_NONE ? KDBUS_ITEM_NAME_REMOVE : KDBUS_ITEM_NAME_CHANGE,
	       was == M_NONE ? 0 : m->conns[was].id, was_flags,
	       is == M_NONE ? 0 : m->conns[is].id, is == M_NONE ? 0 : m_flags(m, name, is), name);
}

static int position(const struct model *m, int name, int c)
{
	for (int i = 0; i < m->names[name].n; i++)
		if (m->names[name].queue[i] == c)
			return i;
	return M_NONE;
}

static void insert(struct model *m, int name, int c, int at)
{
	struct m_name *n = &m->names[name];

	memmove(&n->queue[at + 1], &n->queue[at], (n->n++ - at) * sizeof(n->queue[0]));
	n->queue[at] = c;
}

static void remove_at(struct model *m, int name, int at)
{
	struct m_name *n = &m->names[name];

	memmove(&n->queue[at], &n->queue[at + 1], (--n->n - at) * sizeof(n->queue[0]));
}

static void remember_name(struct m_conn *conn, int name)
{
	for (int i = 0; i < conn->n_names; i++)
		if (conn->names[i] == name)
			return;
	conn->names[conn->n_names++] = name;
}

static void forget_name(struct m_conn *conn, int name)
{
	int n = 0;

	for (int i = 0; i < conn->n_names; i++)
		if (conn->names[i] != name)
			conn->names[n++] = conn->names[i];
	conn->n_names = n;
}

static void new_registration(struct model *m, int name)
{
	if (!m->names[name].n && m->names[name].activator == M_NONE)
		m->names[name].id = ++m->last_name_id;
}

/* Row 4 of §10.3: to the head; the old owner second or out. */
static void replace(struct model *m, int name, int c, int was)
{
	if (position(m, name, c) != M_NONE)
		remove_at(m, name, position(m, name, c));
	insert(m, name, c, 0);
	if (m->names[name].flags[was] & KDBUS_NAME_QUEUE)
		return;
	remove_at(m, name, 1);
	forget_name(&m->conns[was], name);
}

/* §10.3 */
int m_acquire(struct model *m, int c, int name, u64 flags, u64 *ret_flags)
{
	struct m_name *n = &m->names[name];
	u64 stored = flags & (KDBUS_NAME_ALLOW_REPLACEMENT | KDBUS_NAME_QUEUE);
	int was = owner_of(m, name), at = position(m, name, c);
	u64 was_flags = was == M_NONE ? 0 : m_flags(m, name, was), acquired = 0;

	if (m->conns[c].uid != 1000)
		return -EPERM;
	*ret_flags = stored;
	if (n->n && n->queue[0] != c && at == M_NONE && !(flags & KDBUS_NAME_QUEUE) &&
	    !((flags & KDBUS_NAME_REPLACE_EXISTING) &&
	      (n->flags[n->queue[0]] & KDBUS_NAME_ALLOW_REPLACEMENT)))
		return -EEXIST;
	new_registration(m, name);
	n->flags[c] = stored;
	if (!n->n) {
		insert(m, name, c, 0);
		acquired = KDBUS_NAME_ACQUIRED;
	} else if (n->queue[0] == c) {
		acquired = 0;
	} else if ((flags & KDBUS_NAME_REPLACE_EXISTING) &&
		   (n->flags[n->queue[0]] & KDBUS_NAME_ALLOW_REPLACEMENT)) {
		replace(m, name, c, n->queue[0]);
		acquired = KDBUS_NAME_ACQUIRED;
	} else if (at == M_NONE) {
		insert(m, name, c, n->n);
		acquired = KDBUS_NAME_ACQUIRED;
	} else if (!(flags & KDBUS_NAME_QUEUE)) {
		remove_at(m, name, at);
		forget_name(&m->conns[c], name);
		return 0;
	}
	remember_name(&m->conns[c], name);
	*ret_flags = m_flags(m, name, c) | acquired;
	changed(m, name, was, was_flags);
	return 0;
}

/* §10.4 */
int m_release(struct model *m, int c, int name)
{
	struct m_name *n = &m->names[name];
	int was = owner_of(m, name), at = position(m, name, c);
	u64 was_flags;

	if (was == M_NONE)
		return -ESRCH;
	if (at == M_NONE && n->activator != c)
		return -EADDRINUSE;
	was_flags = m_flags(m, name, was);
	forget_name(&m->conns[c], name);
	if (at == M_NONE)
		n->activator = M_NONE;
	else
		remove_at(m, name, at);
	changed(m, name, was, was_flags);
	return 0;
}

int m_hello(struct model *m, int c, enum m_kind kind, u32 uid, bool accept_fd, int name, u64 id)
{
	struct m_conn *conn = &m->conns[c];

	if (kind == M_ACTIVATOR && m->names[name].activator != M_NONE)
		return -EEXIST;
	memset(conn, 0, sizeof(*conn));
	conn->used = true;
	conn->kind = kind;
	conn->uid = uid;
	conn->accept_fd = accept_fd;
	conn->id = id;
	notify_id(m, c, KDBUS_ITEM_ID_ADD);
	if (kind != M_ACTIVATOR)
		return 0;
	new_registration(m, name);
	m->names[name].activator = c;
	remember_name(conn, name);
	if (!m->names[name].n)
		changed(m, name, M_NONE, 0);
	return 0;
}

static void fail_owed(struct model *m, int p)
{
	int next;

	do {
		next = M_NONE;
		for (int i = 0; i < m->n_calls; i++)
			if (!m->calls[i].closed && m->calls[i].p == p &&
			    (next == M_NONE || m->calls[i].order < m->calls[next].order))
				next = i;
		dead(m, next);
	} while (next != M_NONE);
}

/* §1.8 */
void m_close(struct model *m, int c)
{
	struct m_conn *conn = &m->conns[c];

	/* unlinked: it is told nothing from here on */
	conn->used = false;
	memset(conn->rules, 0, sizeof(conn->rules));
	while (conn->n_names)
		m_release(m, c, conn->names[0]);
	while (conn->n) {
		int call = conn->queue[0].call;

		unqueue(m, c, 0);
		dead(m, call);
	}
	for (int i = 0; i < m->n_calls; i++)
		if (m->calls[i].r == c)
			m->calls[i].closed = true;
	fail_owed(m, c);
	notify_id(m, c, KDBUS_ITEM_ID_REMOVE);
	for (int i = 0; i < m->n_calls; i++)
		if (m->calls[i].r == c)
			m->calls[i].r = M_NONE;
}

int m_byebye(struct model *m, int c)
{
	if (m->conns[c].n)
		return -EBUSY;
	m_close(m, c);
	return 0;
}

void m_match(struct model *m, int c, int i, enum m_match kind, u64 id)
{
	m->conns[c].rules[i] = (struct m_rule){ true, i, kind, id };
}

int m_unmatch(struct model *m, int c, u64 cookie)
{
	int r = -EBADSLT;

	for (int i = 0; i < M_MATCHES; i++) {
		if (!m->conns[c].rules[i].used || m->conns[c].rules[i].cookie != cookie)
			continue;
		m->conns[c].rules[i].used = false;
		r = 0;
	}
	return r;
}

int m_pending(const struct model *m, int c)
{
	int n = 0;

	for (int i = 0; i < m->n_calls; i++)
		n += m->calls[i].r == c && (!m->calls[i].closed || m->calls[i].queued);
	return n;
}

void m_expire(struct model *m, u64 now)
{
	int due;

	do {
		due = M_NONE;
		for (int i = 0; i < m->n_calls; i++)
			if (!m->calls[i].closed && m->calls[i].deadline <= now &&
			    (due == M_NONE || m->calls[i].deadline < m->calls[due].deadline))
				due = i;
		if (due == M_NONE)
			return;
		m->calls[due].closed = true;
		outcome(m, m->calls[due].r, KDBUS_ITEM_REPLY_TIMEOUT, m->calls[due].cookie);
	} while (due != M_NONE);
}

/* §7.4 */
static int resolve(const struct model *m, u64 dst, int name, u64 flags, int *ret_to)
{
	int to = M_NONE;

	if (name != M_NONE) {
		to = owner_of(m, name);
		if (to == M_NONE)
			return -ESRCH;
		if (dst && m->conns[to].id != dst)
			return -EREMCHG;
		if (m->names[name].activator == to && (flags & KDBUS_MSG_NO_AUTO_START))
			return -EADDRNOTAVAIL;
	} else {
		for (int c = 0; c < M_CONNS; c++)
			if (owns_any(m, c, dst) && m->conns[c].kind == M_ORDINARY)
				to = c;
		if (to == M_NONE)
			return -ENXIO;
	}
	*ret_to = to;
	return 0;
}

static int send_broadcast(struct model *m, int c, const struct m_msg *msg)
{
	to_monitors(m, *msg);
	for (int to = 0; to < M_CONNS; to++)
		if (m->conns[to].used && m->conns[to].kind == M_ORDINARY &&
		    wants(&m->conns[to], msg) && may_talk(m, to, c) && deliver(m, to, msg))
			m->conns[to].lost++;
	return 0;
}

static int send_reply(struct model *m, int c, int to, const struct m_msg *msg)
{
	int call = M_NONE;

	for (int i = 0; i < m->n_calls; i++)
		if (!m->calls[i].closed && m->calls[i].r == to && m->calls[i].p == c &&
		    m->calls[i].cookie == msg->word)
			call = i;
	if (call == M_NONE)
		return -EBADSLT;
	m->calls[call].closed = true;
	to_monitors(m, *msg);
	return deliver(m, to, msg);
}

static int send_plain(struct model *m, int c, int to, u64 flags, struct m_msg *msg)
{
	int r;

	if (!may_talk(m, c, to))
		return -EPERM;
	if (flags & KDBUS_MSG_EXPECT_REPLY) {
		if (m_pending(m, c) >= 128)
			return -EMLINK;
		assert(m->n_calls < M_CALLS);
		msg->call = m->n_calls;
		m->calls[m->n_calls] = (struct m_call){ c, to, msg->cookie, msg->name_id,
							msg->word, false, true, ++m->orders };
		m->n_calls++;
	}
	to_monitors(m, *msg);
	r = deliver(m, to, msg);
	if (r && msg->call != M_NONE) {
		m->calls[msg->call].closed = true;
		m->calls[msg->call].queued = false;
	}
	return r;
}

int m_send(struct model *m, int c, int name, u64 flags, struct m_msg msg)
{
	int to, r;

	msg.src = m->conns[c].id;
	msg.user = m->conns[c].uid;
	msg.call = M_NONE;
	m->seq++;
	if (msg.dst == KDBUS_DST_ID_BROADCAST)
		return send_broadcast(m, c, &msg);
	r = resolve(m, msg.dst, name, flags, &to);
	if (r)
		return r;
	msg.name_id = name == M_NONE ? 0 : m->names[name].id;
	if (flags & KDBUS_MSG_SIGNAL) {
		to_monitors(m, msg);
		if (m->conns[to].kind == M_ORDINARY && wants(&m->conns[to], &msg) &&
		    may_talk(m, to, c) && deliver(m, to, &msg))
			m->conns[to].lost++;
		return 0;
	}
	if (!(flags & KDBUS_MSG_EXPECT_REPLY) && msg.word)
		return send_reply(m, c, to, &msg);
	return send_plain(m, c, to, flags, &msg);
}

/* §7.10 */
int m_select(const struct m_conn *conn, bool use_priority, s64 threshold)
{
	int best = 0;

	for (int i = 1; use_priority && i < conn->n; i++)
		if (conn->queue[i].priority < conn->queue[best].priority)
			best = i;
	if (!conn->n || (use_priority && conn->queue[best].priority > threshold))
		return M_NONE;
	return best;
}

void m_take(struct model *m, int c, int i, bool drop)
{
	int call = m->conns[c].queue[i].call;

	unqueue(m, c, i);
	if (drop)
		dead(m, call);
}
