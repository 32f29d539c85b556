// SPDX-License-Identifier: LGPL-2.1-or-later
/* A whole bus against a naive model (spec §7, §10 to §13). */
#include "core-bus-fixture.h"
#include "core-bus-model.h"
#include "prop.h"

enum { HELLO, CLOSE, BYEBYE, ACQUIRE, RELEASE, MATCH, UNMATCH, SEND, BROADCAST, REPLY, RECV,
       EXPIRE };
static const char *const kinds[] = { "HELLO", "CLOSE",	   "BYEBYE", "ACQUIRE",
				     "RELEASE", "MATCH",   "UNMATCH", "SEND",
				     "BROADCAST", "REPLY", "RECV",   "EXPIRE" };
static const char *const names[M_NAMES] = { "org.example.x", "org.example.y" };

struct both {
	struct host host;
	struct host_conn conns[M_CONNS];
	struct model model;
};

static void generate(struct prop_rng *rng, struct prop_op *op)
{
	static const unsigned int weights[] = { HELLO, HELLO, HELLO, CLOSE,   BYEBYE,	 ACQUIRE,
						ACQUIRE, ACQUIRE, RELEASE, MATCH, MATCH, UNMATCH,
						SEND,  SEND,  SEND,  SEND,    SEND,	 SEND,
						BROADCAST, REPLY, REPLY, REPLY, RECV,	 RECV,
						RECV,  RECV,  EXPIRE };

	op->kind = weights[prop_below(rng, ARRAY_SIZE(weights))];
	op->arg[0] = prop_below(rng, M_CONNS);
	op->arg[1] = prop_below(rng, M_CONNS + M_NAMES + 1);
	op->arg[2] = prop_below(rng, 8);
	op->arg[3] = prop_below(rng, 8);
	op->arg[4] = prop_one_in(rng, 4) ? prop_below(rng, 12) : 0;
	op->arg[5] = prop_below(rng, 4);
}

static void *setup(void)
{
	struct both *b = calloc(1, sizeof(*b));

	if (!b || host_init(&b->host))
		abort();
	m_init(&b->model);
	return b;
}

static bool same(struct prop_report *report, const char *what, long long got, long long want)
{
	return got == want || prop_differ(report, "%s: %lld instead of %lld", what, got, want);
}

static bool step_hello(struct both *b, const struct prop_op *op, struct prop_report *report)
{
	static const enum m_kind kind_of[] = { M_ORDINARY, M_ORDINARY, M_ORDINARY, M_ORDINARY,
					       M_ORDINARY, M_ACTIVATOR, M_ACTIVATOR, M_MONITOR };
	static const u64 flags[] = { 0, KDBUS_HELLO_ACTIVATOR, KDBUS_HELLO_MONITOR };
	enum m_kind kind = kind_of[op->arg[2]];
	int c = op->arg[0], name = op->arg[5] % M_NAMES, r, want;
	bool accept_fd = op->arg[3] % 2;
	struct host_hello hello = {
		.flags = flags[kind] | (accept_fd ? KDBUS_HELLO_ACCEPT_FD : 0),
		.name = kind == M_ACTIVATOR ? names[name] : NULL,
		.pool_size = 16 << 20,
		.uid = kind == M_ORDINARY && op->arg[3] > 5 ? 2000 : 1000,
	};

	if (b->model.conns[c].used)
		return true;
	r = host_connect(&b->host, &b->conns[c], &hello);
	want = m_hello(&b->model, c, kind, hello.uid, accept_fd, name, b->host.domain.last_id);
	return same(report, "HELLO", r, want);
}

static bool step_names(struct both *b, const struct prop_op *op, struct prop_report *report)
{
	int c = op->arg[0], name = op->arg[5] % M_NAMES, r, want;
	u64 flags = 0, want_flags = 0;

	if (b->model.conns[c].kind != M_ORDINARY)
		return true;
	if (op->kind == RELEASE)
		return same(report, "NAME_RELEASE",
			    core_conn_release(&b->conns[c].core, names[name]),
			    m_release(&b->model, c, name));
	r = core_conn_acquire(&b->conns[c].core, NULL, names[name], op->arg[2], &flags);
	want = m_acquire(&b->model, c, name, op->arg[2], &want_flags);
	return same(report, "NAME_ACQUIRE", r, want) &&
	       same(report, "return flags", flags, want_flags);
}

static size_t write_rule(enum m_match kind, u64 id, void *buf, size_t size)
{
	static const struct kdbus_notify_name_change any = {
		.old_id.id = KDBUS_MATCH_ID_ANY,
		.new_id.id = KDBUS_MATCH_ID_ANY,
	};
	struct core_writer w = CORE_WRITER(buf, size);
	size_t end;

	if (kind == M_ID_ADD || kind == M_ID_REMOVE)
		core_put(&w, kind == M_ID_ADD ? KDBUS_ITEM_ID_ADD : KDBUS_ITEM_ID_REMOVE,
			 &any.old_id, sizeof(any.old_id));
	else if (kind == M_NAME_CHANGE)
		core_put(&w, KDBUS_ITEM_NAME_CHANGE, &any, 32);
	else if (kind == M_FROM)
		core_put_u64(&w, KDBUS_ITEM_ID, id);
	return core_writer_end(&w, &end) ? 0 : end;
}

static bool step_match(struct both *b, const struct prop_op *op, struct prop_report *report)
{
	int c = op->arg[0], cookie = op->arg[5];
	enum m_match kind = op->arg[2] % M_MATCH_KINDS;
	u64 id = b->model.conns[op->arg[1] % M_CONNS].id, buf[16];
	size_t size;

	if (b->model.conns[c].kind != M_ORDINARY)
		return true;
	if (op->kind == UNMATCH)
		return same(report, "MATCH_REMOVE",
			    core_match_remove(&b->conns[c].core.matches, cookie),
			    m_unmatch(&b->model, c, cookie));
	size = write_rule(kind, id, buf, sizeof(buf));
	m_match(&b->model, c, cookie, kind, id);
	return same(report, "MATCH_ADD",
		    core_match_add(&b->conns[c].core.matches, cookie, KDBUS_MATCH_REPLACE,
				   (struct kdbus_item *)buf, size), 0);
}

/* Where a message goes: a connection, maybe gone or never there, or a name. */
static void address(struct both *b, const struct prop_op *op, struct host_msg *msg, int *ret_name)
{
	unsigned int to = op->arg[1];

	*ret_name = M_NONE;
	if (to == M_CONNS + M_NAMES) {
		msg->dst_id = 12345;
	} else if (to < M_CONNS) {
		msg->dst_id = b->model.conns[to].id ? b->model.conns[to].id : 12345;
	} else {
		*ret_name = to - M_CONNS;
		msg->name = names[*ret_name];
		if (op->arg[5] == 3)
			msg->dst_id = b->model.conns[op->arg[2] % M_CONNS].id;
	}
}

static bool send_both(struct both *b, int c, struct host_msg *msg, int name,
		      struct prop_report *report)
{
	const struct m_msg m = {
		.dst = msg->dst_id, .cookie = msg->cookie, .word = msg->word,
		.fds = msg->n_fds, .priority = msg->priority,
	};

	return same(report, "SEND", host_send(&b->conns[c], msg, NULL),
		    m_send(&b->model, c, name, msg->flags, m));
}

static bool step_send(struct both *b, const struct prop_op *op, struct prop_report *report)
{
	static const u64 flags[] = { 0, KDBUS_MSG_EXPECT_REPLY, KDBUS_MSG_EXPECT_REPLY,
				     KDBUS_MSG_EXPECT_REPLY, KDBUS_MSG_NO_AUTO_START,
				     KDBUS_MSG_SIGNAL, 0, 0 };
	struct host_msg msg = {
		.cookie = op->arg[2] % 4, .n_fds = op->arg[4], .flags = flags[op->arg[3]],
		.priority = (s64)op->arg[5] - 2,
	};
	int c = op->arg[0], name;

	if (b->model.conns[c].kind != M_ORDINARY)
		return true;
	address(b, op, &msg, &name);
	if (msg.flags & KDBUS_MSG_EXPECT_REPLY)
		msg.word = op->arg[4] ? U64_MAX : b->host.now + 1 + op->arg[2];
	return send_both(b, c, &msg, name, report);
}

static bool step_broadcast(struct both *b, const struct prop_op *op, struct prop_report *report)
{
	struct host_msg msg = {
		.dst_id = KDBUS_DST_ID_BROADCAST, .flags = KDBUS_MSG_SIGNAL, .cookie = op->arg[2],
	};

	if (b->model.conns[op->arg[0]].kind != M_ORDINARY)
		return true;
	return send_both(b, op->arg[0], &msg, M_NONE, report);
}

static bool step_reply(struct both *b, const struct prop_op *op, struct prop_report *report)
{
	struct host_msg msg = { .word = op->arg[2] % 4, .n_fds = op->arg[4], .cookie = 77 };
	int c = op->arg[0], name;

	if (b->model.conns[c].kind != M_ORDINARY || !msg.word)
		return true;
	address(b, op, &msg, &name);
	return send_both(b, c, &msg, name, report);
}

static bool same_change(const struct kdbus_item *item, const struct m_msg *want,
			struct prop_report *report)
{
	const struct kdbus_notify_name_change *name = core_item_payload(item);
	const struct kdbus_notify_id_change *id = core_item_payload(item);

	if (want->type == KDBUS_ITEM_ID_ADD || want->type == KDBUS_ITEM_ID_REMOVE)
		return same(report, "id", id->id, want->new_id) &&
		       same(report, "id flags", id->flags, want->new_flags);
	if (want->type != KDBUS_ITEM_NAME_ADD && want->type != KDBUS_ITEM_NAME_REMOVE &&
	    want->type != KDBUS_ITEM_NAME_CHANGE)
		return true;
	return same(report, "old id", name->old_id.id, want->old_id) &&
	       same(report, "old flags", name->old_id.flags, want->old_flags) &&
	       same(report, "new id", name->new_id.id, want->new_id) &&
	       same(report, "new flags", name->new_id.flags, want->new_flags) &&
	       same(report, "name", strcmp(name->name, names[want->name]), 0);
}

static bool same_message(const struct kdbus_msg *msg, const struct m_msg *want,
			 struct prop_report *report)
{
	if (!same(report, "src_id", msg->src_id, want->src) ||
	    !same(report, "dst_id", msg->dst_id, want->dst) ||
	    !same(report, "cookie", msg->cookie, want->cookie) ||
	    !same(report, "word", msg->cookie_reply, want->word) ||
	    !same(report, "priority", msg->priority, want->priority))
		return false;
	if (!want->type)
		return true;
	return same(report, "type", msg->items->type, want->type) &&
	       same_change(msg->items, want, report);
}

static bool recv_both(struct both *b, int c, u64 flags, s64 threshold, struct prop_report *report)
{
	struct m_conn *conn = &b->model.conns[c];
	int at = m_select(conn, flags & KDBUS_RECV_USE_PRIORITY, threshold);
	struct core_received received;
	const struct kdbus_msg *msg;
	int r = host_recv(&b->conns[c], flags, threshold, &received, &msg);
	u64 lost = conn->lost;

	conn->lost = 0;
	if (!same(report, "RECV", r, at == M_NONE ? -EAGAIN : 0))
		return false;
	if (msg) {
		if (!same_message(msg, &conn->queue[at], report))
			return false;
		host_free(&b->conns[c], msg);
	}
	if (!r && !(flags & KDBUS_RECV_PEEK))
		m_take(&b->model, c, at, flags & KDBUS_RECV_DROP);
	return same(report, "dropped_msgs", received.dropped, lost);
}

static bool step_recv(struct both *b, const struct prop_op *op, struct prop_report *report)
{
	static const u64 flags[] = { 0, 0, 0, 0, KDBUS_RECV_USE_PRIORITY, KDBUS_RECV_USE_PRIORITY,
				     KDBUS_RECV_DROP, KDBUS_RECV_PEEK };

	return recv_both(b, op->arg[0], flags[op->arg[2]], (s64)op->arg[3] - 4, report);
}

static bool step_end(struct both *b, const struct prop_op *op, struct prop_report *report)
{
	int c = op->arg[0], r, want;

	if (op->kind == BYEBYE) {
		if (b->model.conns[c].kind != M_ORDINARY)
			return true;
		r = core_conn_byebye(&b->conns[c].core);
		want = m_byebye(&b->model, c);
		if (!same(report, "BYEBYE", r, want) || r)
			return !r || r == want;
	} else {
		m_close(&b->model, c);
	}
	host_close(&b->conns[c]);
	return true;
}

static bool step_any(struct both *b, const struct prop_op *op, struct prop_report *report)
{
	if (op->kind == HELLO)
		return step_hello(b, op, report);
	if (op->kind == EXPIRE) {
		b->host.now += op->arg[2];
		core_bus_expire(&b->host.bus.deadlines, b->host.now);
		m_expire(&b->model, b->host.now);
		return true;
	}
	if (!b->model.conns[op->arg[0]].used)
		return true;
	switch (op->kind) {
	case ACQUIRE:
	case RELEASE:
		return step_names(b, op, report);
	case MATCH:
	case UNMATCH:
		return step_match(b, op, report);
	case SEND:
		return step_send(b, op, report);
	case BROADCAST:
		return step_broadcast(b, op, report);
	case REPLY:
		return step_reply(b, op, report);
	case RECV:
		return step_recv(b, op, report);
	default:
		return step_end(b, op, report);
	}
}

static bool compare(struct both *b, struct prop_report *report)
{
	for (int c = 0; c < M_CONNS; c++) {
		const struct m_conn *want = &b->model.conns[c];
		const struct core_conn *got = &b->conns[c].core;

		if (!want->used)
			continue;
		if (!same(report, "queued", got->inbox.queue.n, want->n) ||
		    !same(report, "lost", got->inbox.lost, want->lost) ||
		    !same(report, "pending", got->calls.n, m_pending(&b->model, c)))
			return false;
	}
	return same(report, "sequence number", b->host.bus.seq, b->model.seq);
}

static bool step(void *state, const struct prop_op *op, struct prop_report *report)
{
	return step_any(state, op, report) && compare(state, report);
}

/* Read what is left everywhere, then end everybody. */
static bool teardown(void *state, struct prop_report *report)
{
	struct both *b = state;
	bool ok = true;

	for (int c = 0; ok && c < M_CONNS; c++)
		while (ok && b->model.conns[c].used && b->model.conns[c].n)
			ok = recv_both(b, c, 0, 0, report);
	for (int c = 0; c < M_CONNS; c++)
		host_close(&b->conns[c]);
	host_deinit(&b->host);
	ok = ok && same(report, "messages left", b->host.entries, 0) &&
	     same(report, "allocations left", failalloc_live(), 0);
	free(b);
	return ok;
}

static const struct prop_spec spec = {
	.symbol = "spec",
	.kinds = kinds,
	.n_kinds = ARRAY_SIZE(kinds),
	.seeds = 600,
	.length = 250,
	.generate = generate,
	.setup = setup,
	.step = step,
	.teardown = teardown,
};

static void a_bus_behaves_like_the_text(void **state)
{
	prop_run(&spec);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_bus_behaves_like_the_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
