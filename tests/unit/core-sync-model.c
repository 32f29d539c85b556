// SPDX-License-Identifier: LGPL-2.1-or-later
/* Synchronous calls on a bus against a naive model: an array of all calls (spec §7.8). */
#include "core-bus-fixture.h"
#include "prop.h"

#define CONNS 3
#define CALLS 512

enum { CALL, INTERRUPT, REPLY, RECV, COLLECT, GIVE_UP, EXPIRE, CLOSE };
static const char *const kinds[] = { "CALL",	"INTERRUPT", "REPLY",  "RECV",
				     "COLLECT", "GIVE_UP",   "EXPIRE", "CLOSE" };

/* @open: somebody waits, or will come back; @queued: the request is unread. */
struct call {
	struct core_reply *slot;
	unsigned int r, p;
	u64 cookie, deadline, answer;
	bool open, interrupted, settled, queued;
	int result;
};

struct both {
	struct host host;
	struct host_conn conns[CONNS];
	struct call calls[CALLS];
	size_t n;
	u64 answers;
};

static void generate(struct prop_rng *rng, struct prop_op *op)
{
	static const unsigned int weights[] = { CALL,  CALL, CALL, CALL,    INTERRUPT, INTERRUPT,
						REPLY, REPLY, REPLY, RECV,  RECV,      COLLECT,
						COLLECT, GIVE_UP, EXPIRE, EXPIRE, CLOSE };

	op->kind = weights[prop_below(rng, ARRAY_SIZE(weights))];
	op->arg[0] = prop_below(rng, CONNS);
	op->arg[1] = prop_below(rng, CONNS);
	op->arg[2] = prop_below(rng, 3);
	op->arg[3] = prop_below(rng, 8);
	op->arg[4] = prop_one_in(rng, 4);
}

static bool same(struct prop_report *report, const char *what, long long got, long long want)
{
	return got == want || prop_differ(report, "%s: %lld instead of %lld", what, got, want);
}

/* Only the first of them takes descriptors. */
static int join_bus(struct both *b, unsigned int c)
{
	const struct host_hello hello = { .flags = c ? 0 : KDBUS_HELLO_ACCEPT_FD,
					  .pool_size = 16 << 20 };

	return host_connect(&b->host, &b->conns[c], &hello);
}

static void *setup(void)
{
	struct both *b = calloc(1, sizeof(*b));

	if (!b || host_init(&b->host))
		abort();
	for (unsigned int c = 0; c < CONNS; c++)
		if (join_bus(b, c))
			abort();
	return b;
}

static void settle(struct call *call, int result)
{
	if (!call->open || call->settled)
		return;
	call->settled = true;
	call->result = result;
}

/* The newest call from @r with this cookie that @fits. */
static struct call *newest(struct both *b, unsigned int r, u64 cookie,
			   bool (*fits)(const struct call *call, unsigned int p), unsigned int p)
{
	for (size_t i = b->n; i-- > 0;) {
		struct call *call = &b->calls[i];

		if (call->open && call->r == r && call->cookie == cookie && fits(call, p))
			return call;
	}
	return NULL;
}

static bool was_interrupted(const struct call *call, unsigned int p)
{
	return call->interrupted;
}

static bool awaits_answer(const struct call *call, unsigned int p)
{
	return call->p == p && !call->settled;
}

/* Some call whose caller waits, or NULL. */
static struct call *waiting(struct both *b, u64 which)
{
	size_t n = 0;

	for (size_t i = 0; i < b->n; i++)
		n += b->calls[i].open && !b->calls[i].interrupted;
	which = n ? which % n : 0;
	for (size_t i = 0; i < b->n; i++)
		if (b->calls[i].open && !b->calls[i].interrupted && !which--)
			return &b->calls[i];
	return NULL;
}

static bool step_call(struct both *b, const struct prop_op *op, struct prop_report *report)
{
	const unsigned int r = op->arg[0], p = op->arg[1];
	struct host_msg msg = {
		.dst_id = b->conns[p].core.id,
		.flags = KDBUS_MSG_EXPECT_REPLY,
		.cookie = op->arg[2],
		.word = op->arg[3] == 7 ? U64_MAX : b->host.now + op->arg[3],
		.sync = true,
	};
	struct call *old = newest(b, r, msg.cookie, was_interrupted, 0);
	struct core_reply *slot = NULL;
	struct call call = { .r = r, .p = p, .cookie = msg.cookie, .deadline = msg.word };
	bool late = msg.word <= b->host.now;

	if (b->n == CALLS || !msg.word)
		return true;
	if (!same(report, "SEND", host_send(&b->conns[r], &msg, &slot),
		  old || !late ? 0 : -ETIMEDOUT))
		return false;
	if (old) {
		old->interrupted = false;
		return same(report, "the slot left behind", old->slot == slot, true);
	}
	if (late)
		return true;
	call.slot = slot;
	call.open = true;
	call.queued = true;
	b->calls[b->n++] = call;
	return same(report, "a slot", !!slot, true);
}

static bool step_reply(struct both *b, const struct prop_op *op, struct prop_report *report)
{
	const unsigned int p = op->arg[0], r = op->arg[1];
	const struct host_msg msg = { .dst_id = b->conns[r].core.id, .word = op->arg[2],
				      .cookie = ++b->answers, .n_fds = op->arg[4] };
	struct call *call = newest(b, r, msg.word, awaits_answer, p);
	int want = msg.n_fds && r ? -ECOMM : 0;

	if (!msg.word)
		return true;
	if (!call)
		return same(report, "reply", host_send(&b->conns[p], &msg, NULL), -EBADSLT);
	settle(call, want ? -EREMOTEIO : 0);
	call->answer = want ? 0 : msg.cookie;
	return same(report, "reply", host_send(&b->conns[p], &msg, NULL), want);
}

static bool step_recv(struct both *b, unsigned int p, bool drop, struct prop_report *report)
{
	struct core_received received;
	const struct kdbus_msg *msg;
	struct call *call = NULL;
	int r;

	for (size_t i = 0; i < b->n && !call; i++)
		if (b->calls[i].queued && b->calls[i].p == p)
			call = &b->calls[i];
	r = host_recv(&b->conns[p], drop ? KDBUS_RECV_DROP : 0, 0, &received, &msg);
	if (!same(report, "RECV", r, call ? 0 : -EAGAIN) || !call)
		return !call;
	call->queued = false;
	if (drop) {
		settle(call, -EPIPE);
		return true;
	}
	r = same(report, "request", msg->cookie, call->cookie);
	host_free(&b->conns[p], msg);
	return r;
}

static bool collect(struct both *b, struct call *call, struct prop_report *report)
{
	struct host_conn *conn = &b->conns[call->r];
	struct kdbus_msg_info info = { 0 };
	const struct kdbus_msg *msg;
	int r;

	if (!call->settled)
		return true;
	call->open = false;
	r = core_send_collect(&conn->core, call->slot, NULL, NULL, &info);
	if (!same(report, "outcome", r, call->result) || r)
		return r == call->result;
	msg = (const void *)(conn->pool + info.offset);
	r = same(report, "answer", msg->cookie, call->answer);
	host_free(conn, msg);
	return r;
}

static void give_up(struct both *b, struct call *call)
{
	call->open = false;
	core_send_give_up(&b->conns[call->r].core, call->slot);
}

static void expire(struct both *b, u64 time)
{
	b->host.now += time;
	core_bus_expire(&b->host.bus.deadlines, b->host.now);
	for (size_t i = 0; i < b->n; i++)
		if (b->calls[i].interrupted && b->calls[i].deadline <= b->host.now)
			b->calls[i].open = b->calls[i].interrupted = false;
}

static void leave(struct both *b, unsigned int c)
{
	host_close(&b->conns[c]);
	for (size_t i = 0; i < b->n; i++) {
		struct call *call = &b->calls[i];

		if (call->p == c) {
			call->queued = false;
			settle(call, -EPIPE);
		}
		if (call->r == c)
			call->open = call->interrupted = false;
	}
	/* who comes next at this place has nothing to do with it */
	for (size_t i = 0; i < b->n; i++) {
		if (b->calls[i].p == c)
			b->calls[i].p = CONNS;
		if (b->calls[i].r == c)
			b->calls[i].r = CONNS;
	}
}

static bool step_any(struct both *b, const struct prop_op *op, struct prop_report *report)
{
	struct call *call = waiting(b, op->arg[3]);

	switch (op->kind) {
	case CALL:
		return step_call(b, op, report);
	case REPLY:
		return step_reply(b, op, report);
	case RECV:
		return step_recv(b, op->arg[0], op->arg[4], report);
	case COLLECT:
		return !call || collect(b, call, report);
	case EXPIRE:
		expire(b, op->arg[3] / 2);
		return true;
	case CLOSE:
		leave(b, op->arg[0]);
		return same(report, "HELLO", join_bus(b, op->arg[0]), 0);
	default:
		break;
	}
	if (call && op->kind == GIVE_UP) {
		give_up(b, call);
	} else if (call) {
		core_reply_interrupt(call->slot);
		call->interrupted = true;
	}
	return true;
}

/* Synchronous calls are never notified of: what is queued are requests. */
static bool compare(const struct both *b, struct prop_report *report)
{
	for (unsigned int c = 0; c < CONNS; c++) {
		const struct core_conn *conn = &b->conns[c].core;
		size_t queued = 0, pending = 0;

		for (size_t i = 0; i < b->n; i++) {
			const struct call *call = &b->calls[i];

			queued += call->queued && call->p == c;
			pending += call->r == c && (call->open || call->queued);
			if (call->open && !same(report, "settled", core_reply_settled(call->slot),
						call->settled))
				return false;
		}
		if (!same(report, "queued", conn->inbox.queue.n, queued) ||
		    !same(report, "pending", conn->calls.n, pending) ||
		    !same(report, "lost", conn->inbox.lost, 0))
			return false;
	}
	return true;
}

static bool step(void *state, const struct prop_op *op, struct prop_report *report)
{
	return step_any(state, op, report) && compare(state, report);
}

/* Read all requests and end all calls: then nothing is charged to anybody. */
static bool drain(struct both *b, struct prop_report *report)
{
	struct call *call;

	for (unsigned int c = 0; c < CONNS; c++)
		while (b->conns[c].core.inbox.queue.n)
			if (!step_recv(b, c, false, report))
				return false;
	expire(b, 100);
	while ((call = waiting(b, 0)) != NULL)
		give_up(b, call);
	for (size_t i = 0; i < b->n; i++)
		if (b->calls[i].open)
			core_send_give_up(&b->conns[b->calls[i].r].core, b->calls[i].slot);
	for (unsigned int c = 0; c < CONNS; c++)
		if (!same(report, "charged", b->conns[c].core.inbox.pool.accounted, 0))
			return false;
	return true;
}

static bool teardown(void *state, struct prop_report *report)
{
	struct both *b = state;
	bool ok = drain(b, report);

	for (unsigned int c = 0; c < CONNS; c++)
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
	.length = 200,
	.generate = generate,
	.setup = setup,
	.step = step,
	.teardown = teardown,
};

static void synchronous_calls_behave_like_the_text(void **state)
{
	prop_run(&spec);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(synchronous_calls_behave_like_the_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
