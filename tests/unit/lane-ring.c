// SPDX-License-Identifier: LGPL-2.1-or-later
/* A lane is a queue: random operations against a plain list (rules 3, 4 and 18). */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "lane/channel.h"
#include "prop.h"

#define RING LANE_RING_MIN
#define LIST (2 * LANE_FLIGHTS_MAX)

enum { PUT, TAKE, PLUCK, CONSUME, CANCEL, END };

static const char *const kinds[] = { "PUT", "TAKE", "PLUCK", "CONSUME", "CANCEL", "END" };

struct message {
	uint64_t number;
	uint32_t length;
	bool plucked;
};

struct world {
	struct lane_channel a, b;
	struct message list[LIST]; /* sent and not yet taken, oldest first */
	unsigned int n;
	unsigned int unconsumed; /* taken, but the cursor is not stored */
	uint64_t number;
	bool ended;
};

static void generate(struct prop_rng *rng, struct prop_op *op)
{
	static const unsigned int often[] = { PUT, PUT, PUT, TAKE, TAKE, CONSUME, PLUCK, CANCEL };

	op->kind = prop_one_in(rng, 400) ? END : often[prop_below(rng, ARRAY_SIZE(often))];
	op->arg[0] = prop_one_in(rng, 3) ? prop_below(rng, RING / 4) : prop_below(rng, 300);
	op->arg[1] = prop_one_in(rng, 4);
}

static void *setup(void)
{
	struct world *w = calloc(1, sizeof(*w));
	int sv[2], fd;

	if (!w || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv) < 0)
		abort();
	lane_channel_init(&w->a, &lane_linux_ops, sv[0], 0);
	lane_channel_init(&w->b, &lane_linux_ops, sv[1], 0);
	if (lane_channel_make(&w->a, RING, &fd) < 0 || lane_channel_attach(&w->b, fd) < 0)
		abort();
	close(fd);
	if (lane_channel_make(&w->b, RING, &fd) < 0 || lane_channel_attach(&w->a, fd) < 0)
		abort();
	close(fd);
	return w;
}

static unsigned char byte_of(const struct message *m)
{
	return (unsigned char)(m->number * 31 + m->length);
}

static unsigned int flights_max(uint16_t flags)
{
	return flags & LANE_F_REPLY ? LANE_FLIGHTS_MAX : LANE_MSGS_MAX;
}

/* Refused for want of room? There must be a reason that a plain count finds, too. */
static bool refusal_is_right(const struct world *w, uint32_t length, uint16_t flags)
{
	uint32_t used = w->unconsumed * LANE_ALIGN;
	unsigned int i;

	if (w->n + w->unconsumed >= flights_max(flags))
		return true;
	for (i = 0; i < w->n; i++)
		used += LANE_ALIGN + (w->list[i].length + LANE_ALIGN - 1) / LANE_ALIGN * LANE_ALIGN;
	/* Half the ring is always to be had: a quarter is for replies, less than one a pad. */
	return used + length > RING / 2 - 3 * LANE_ALIGN || w->unconsumed;
}

static bool put(struct world *w, const struct prop_op *op, struct prop_report *report, bool drop)
{
	struct message m = { .number = w->number, .length = (uint32_t)op->arg[0] };
	struct lane_put p = { .type = LANE_REC_MSG, .length = m.length, .subject = m.number,
			      .flags = op->arg[1] ? LANE_F_REPLY : 0 };
	void *body;
	int r;

	r = lane_put(&w->a, &p, &body);
	if (m.length > RING / 4 - LANE_ALIGN)
		return r == (w->ended ? -ESHUTDOWN : -EMSGSIZE) ||
		       prop_differ(report, "too large a record: %d", r);
	if (w->ended)
		return r == -ESHUTDOWN || prop_differ(report, "put after END: %d", r);
	if (r == -EAGAIN)
		return refusal_is_right(w, m.length, p.flags) ||
		       prop_differ(report, "refused with room");
	if (r < 0)
		return prop_differ(report, "lane_put: %d", r);
	if (w->n + w->unconsumed >= flights_max(p.flags))
		return prop_differ(report, "more in flight than may be");
	memset(body, byte_of(&m), m.length);
	if (drop) {
		lane_cancel(&w->a);
		return true;
	}
	lane_publish(&w->a, 1, 0);
	lane_ring(&w->a);
	w->list[w->n++] = m;
	w->number++;
	return true;
}

static bool same(const struct message *m, const struct lane_env *env, const unsigned char *body,
		 struct prop_report *report)
{
	uint32_t i;

	if (env->subject != m->number || env->length != m->length)
		return prop_differ(report, "message %u came, %u was due",
				   (unsigned int)env->subject, (unsigned int)m->number);
	for (i = 0; i < m->length; i++)
		if (body[i] != byte_of(m))
			return prop_differ(report, "wrong byte %u", i);
	return true;
}

static void drop_taken(struct world *w)
{
	while (w->n && w->list[0].plucked)
		memmove(&w->list[0], &w->list[1], --w->n * sizeof(w->list[0]));
}

static bool take(struct world *w, struct prop_report *report)
{
	static unsigned char body[RING];
	struct lane_env env;
	uint32_t limit;
	int r;

	drop_taken(w);
	if (lane_snapshot(&w->b, &limit) < 0)
		return prop_differ(report, "lane_snapshot");
	r = lane_peek(&w->b, limit, &env);
	if (!w->n)
		return (r == -EAGAIN && w->b.ended == w->ended) ||
		       prop_differ(report, "taken from an empty lane: %d", r);
	if (r < 0 || lane_take(&w->b, body) < 0)
		return prop_differ(report, "nothing to take: %d", r);
	if (!same(&w->list[0], &env, body, report))
		return false;
	memmove(&w->list[0], &w->list[1], --w->n * sizeof(w->list[0]));
	w->unconsumed++;
	return true;
}

/* The op->arg[0]-th of those that wait is taken out of order. */
static bool pluck(struct world *w, const struct prop_op *op, struct prop_report *report)
{
	static unsigned char body[RING];
	unsigned int i, which, waiting = 0;
	struct lane_env env;
	uint32_t limit, pos;

	for (i = 0; i < w->n; i++)
		waiting += !w->list[i].plucked;
	if (!waiting || lane_snapshot(&w->b, &limit) < 0)
		return true;
	which = (unsigned int)(op->arg[0] % waiting);
	for (i = 0; w->list[i].plucked || which; i++)
		which -= !w->list[i].plucked;
	pos = w->b.read;
	while (lane_scan(&w->b, limit, &pos, &env) == 0 && env.subject != w->list[i].number)
		lane_scan_next(&pos, &env);
	if (env.subject != w->list[i].number)
		return prop_differ(report, "not found by lane_scan()");
	if (lane_pluck(&w->b, pos, &env, body) < 0)
		return w->b.n_plucked == LANE_PLUCK_MAX || prop_differ(report, "lane_pluck()");
	if (!same(&w->list[i], &env, body, report))
		return false;
	w->list[i].plucked = true;
	w->unconsumed++;
	return true;
}

static bool consume(struct world *w, struct prop_report *report)
{
	unsigned int i;
	uint32_t start;

	if (lane_consume(&w->b) < 0 || lane_reap(&w->a) < 0)
		return prop_differ(report, "lane_consume() or lane_reap()");
	drop_taken(w);
	w->unconsumed = 0;
	for (i = 0; i < w->n; i++)
		w->unconsumed += w->list[i].plucked; /* behind one that waits */
	/* Nothing else keeps its room, whether or not anything is to come. */
	if (w->a.flight_count != w->n)
		return prop_differ(report, "%u in flight, %u wait", w->a.flight_count, w->n);
	start = (int32_t)(w->a.acked - w->a.live) < 0 ? w->a.live : w->a.acked;
	if (w->a.write - start > RING)
		return prop_differ(report, "more in flight than the ring has");
	return true;
}

/* There is always room for it. */
static bool finish(struct world *w, struct prop_report *report)
{
	int r = lane_end(&w->a, 1);

	if (r != (w->ended ? -ESHUTDOWN : 0))
		return prop_differ(report, "lane_end: %d", r);
	w->ended = true;
	return true;
}

static bool step(void *state, const struct prop_op *op, struct prop_report *report)
{
	struct world *w = state;

	switch (op->kind) {
	case PUT:
	case CANCEL:
		return put(w, op, report, op->kind == CANCEL);
	case TAKE:
		return take(w, report);
	case PLUCK:
		return pluck(w, op, report);
	case CONSUME:
		return consume(w, report);
	default:
		return finish(w, report);
	}
}

static bool teardown(void *state, struct prop_report *report)
{
	struct world *w = state;
	bool ok = true;

	while (ok && (drop_taken(w), w->n))
		ok = take(w, report) && consume(w, report);
	lane_channel_deinit(&w->a);
	lane_channel_deinit(&w->b);
	free(w);
	return ok;
}

static const struct prop_spec spec = {
	.symbol = "spec",
	.kinds = kinds,
	.n_kinds = ARRAY_SIZE(kinds),
	.seeds = 60,
	.length = 1200,
	.generate = generate,
	.setup = setup,
	.step = step,
	.teardown = teardown,
};

static void a_lane_is_a_queue(void **state)
{
	prop_run(&spec);
}

static int one_put(struct world *w, uint16_t flags, uint32_t length, uint16_t fds)
{
	struct lane_put p = { .type = LANE_REC_MSG, .flags = flags, .length = length, .fds = fds };
	int fd[LANE_FDS_MAX] = { w->a.sock };
	unsigned int i;
	void *body;
	int r;

	r = lane_put(&w->a, &p, &body);
	if (r < 0)
		return r;
	for (i = 0; i < fds; i++)
		fd[i] = w->a.sock;
	if (fds)
		assert_int_equal(lane_put_fds(&w->a, fd, fds), 0);
	lane_publish(&w->a, 1, 0);
	return 0;
}

static void a_quarter_is_kept_for_replies_and_a_place_for_the_end(void **state)
{
	struct world *w = setup();
	int r;

	while ((r = one_put(w, 0, 1000, 0)) == 0)
		;
	assert_int_equal(r, -EAGAIN);
	assert_true(w->a.published <= RING / 4 * 3);
	assert_int_equal(one_put(w, LANE_F_REPLY, lane_share(RING), 0), 0);
	while ((r = one_put(w, LANE_F_REPLY, 0, 0)) == 0)
		;
	assert_int_equal(r, -EAGAIN);
	assert_int_equal(w->a.published, RING - LANE_ALIGN);
	assert_int_equal(lane_end(&w->a, 1), 0);
	lane_channel_deinit(&w->a);
	lane_channel_deinit(&w->b);
	free(w);
}

static void rule_18_limits_what_is_in_flight(void **state)
{
	struct world *w = setup();
	struct lane_env env;
	uint32_t limit;
	unsigned int i;

	for (i = 0; i < 2; i++)
		assert_int_equal(one_put(w, 0, 0, LANE_FDS_MAX / 2), 0);
	assert_int_equal(one_put(w, 0, 0, 1), -EAGAIN);
	for (i = 2; i < 180; i++)
		assert_int_equal(one_put(w, 0, 0, 0), 0);
	assert_int_equal(lane_snapshot(&w->b, &limit), 0);
	assert_int_equal(lane_peek(&w->b, limit, &env), 0);
	assert_int_equal(lane_take(&w->b, NULL), 0);
	assert_int_equal(lane_consume(&w->b), 0);
	lane_drop_fds(&w->b, &env);
	assert_false(w->b.broken);
	assert_int_equal(lane_reap(&w->a), 0);
	assert_int_equal(one_put(w, 0, 0, LANE_FDS_MAX / 2), 0);
	assert_int_equal(one_put(w, 0, 0, 1), -EAGAIN);
	lane_channel_deinit(&w->a);
	lane_channel_deinit(&w->b);
	free(w);
}

/* An idle channel costs a page at each end. */
static void a_quiet_lane_stays_within_its_first_page(void **state)
{
	struct world *w = setup();
	struct lane_env env;
	uint32_t limit, at;
	unsigned int i;

	for (i = 0; i < 500; i++) {
		assert_int_equal(one_put(w, 0, i % 600, 0), 0);
		at = w->a.put_start & (RING - 1);
		assert_true(LANE_HEAD_SIZE + at + w->a.put_size <= 4096);
		assert_int_equal(lane_snapshot(&w->b, &limit), 0);
		assert_int_equal(lane_peek(&w->b, limit, &env), 0);
		assert_int_equal(lane_take(&w->b, NULL), 0);
		assert_int_equal(lane_consume(&w->b), 0);
	}
	lane_channel_deinit(&w->a);
	lane_channel_deinit(&w->b);
	free(w);
}

/* What was skipped to get back to the start takes no room. */
static void a_burst_after_a_quiet_time_has_the_whole_ring(void **state)
{
	struct world *w = setup();
	struct lane_env env;
	uint32_t limit;
	unsigned int i, n = 0;

	for (i = 0; i < 3; i++) {
		assert_int_equal(one_put(w, 0, 1000, 0), 0);
		assert_int_equal(lane_snapshot(&w->b, &limit), 0);
		assert_int_equal(lane_peek(&w->b, limit, &env), 0);
		assert_int_equal(lane_take(&w->b, NULL), 0);
		assert_int_equal(lane_consume(&w->b), 0);
	}
	while (one_put(w, 0, 1000, 0) == 0)
		n++;
	assert_int_equal(n, (RING / 4 * 3 - LANE_ALIGN) / 1088);
	assert_int_equal(w->a.put_start & (RING - 1), (n - 1) * 1088);
	assert_int_equal(lane_snapshot(&w->b, &limit), 0);
	while (lane_peek(&w->b, limit, &env) == 0 && lane_take(&w->b, NULL) == 0)
		n--;
	assert_int_equal(n, 0);
	lane_channel_deinit(&w->a);
	lane_channel_deinit(&w->b);
	free(w);
}

static void read_on(struct lane_channel *ch, unsigned int n)
{
	struct lane_env env;
	uint32_t limit;

	assert_int_equal(lane_snapshot(ch, &limit), 0);
	while (n-- && lane_peek(ch, limit, &env) == 0)
		assert_int_equal(lane_take(ch, NULL), 0);
	assert_int_equal(lane_consume(ch), 0);
}

/* While there is much in a lane, its reader's cursor is not looked at for each record. */
static void a_burst_is_followed_by_the_first_page(void **state)
{
	struct world *w = setup();
	unsigned int i, looks = 0, n = 8;
	uint32_t at = 1, acked;

	for (i = 0; i < 4; i++)
		assert_int_equal(one_put(w, 0, 1000, 0), 0);
	for (i = 0; i < n; i++) {
		read_on(&w->b, 1);
		acked = w->a.acked;
		assert_int_equal(one_put(w, 0, 1000, 0), 0);
		looks += w->a.acked != acked;
	}
	assert_in_range(looks, 1, n / 2);
	for (i = 0; i < n && at; i++) {
		read_on(&w->b, LANE_FLIGHTS_MAX);
		assert_int_equal(one_put(w, 0, 1000, 0), 0);
		at = w->a.put_start & (RING - 1);
	}
	assert_int_equal(at, 0);
	for (i = 0; i < n; i++) {
		read_on(&w->b, LANE_FLIGHTS_MAX);
		assert_int_equal(one_put(w, 0, 1000, 0), 0);
		at = w->a.put_start & (RING - 1);
		assert_true(LANE_HEAD_SIZE + at + w->a.put_size <= 4096);
	}
	lane_channel_deinit(&w->a);
	lane_channel_deinit(&w->b);
	free(w);
}

/* A lane that is never found empty never goes back: its cursors go round twice all the same. */
static void a_busy_lane_goes_on_for_ever(void **state)
{
	const uint32_t length = lane_body_max(RING);
	struct world *w = setup();
	struct lane_env env;
	uint32_t limit, i;

	assert_int_equal(one_put(w, 0, length, 0), 0);
	for (i = 0; i < 2 * (UINT32_MAX / length); i++) {
		if (one_put(w, 0, length, 0) != 0)
			fail_msg("refused after %u records", i);
		if (lane_snapshot(&w->b, &limit) != 0 || lane_peek(&w->b, limit, &env) != 0 ||
		    lane_take(&w->b, NULL) != 0 || lane_consume(&w->b) != 0)
			fail_msg("broken after %u records", i);
	}
	lane_channel_deinit(&w->a);
	lane_channel_deinit(&w->b);
	free(w);
}

/* 4 GiB later the cursor that was skipped comes again. */
static void an_old_skip_is_not_met_again(void **state)
{
	struct world *w = setup();
	struct lane_env env;
	uint32_t limit;
	unsigned int i;

	for (i = 0; i < 5; i++) {
		assert_int_equal(one_put(w, 0, 1000, 0), 0);
		assert_int_equal(lane_snapshot(&w->b, &limit), 0);
		assert_int_equal(lane_peek(&w->b, limit, &env), 0);
		assert_int_equal(env.length, 1000);
		assert_int_equal(lane_take(&w->b, NULL), 0);
		assert_int_equal(lane_consume(&w->b), 0);
		/* All cursors of both sides, as if they had gone round. */
		if (i == 3) {
			assert_int_not_equal(w->a.skip, 0);
			w->a.write = w->a.published = w->a.acked = w->a.live = w->a.skip;
			w->b.read = w->b.consumed = w->b.floor = w->b.seen = w->a.skip;
			w->b.own->consumed = w->a.skip;
			w->a.own->published = w->a.skip;
			assert_int_equal(one_put(w, 0, 50, 0), 0);
			assert_int_equal(w->a.own->skip, 0);
			assert_int_equal(lane_snapshot(&w->b, &limit), 0);
			assert_int_equal(lane_peek(&w->b, limit, &env), 0);
			assert_int_equal(env.length, 50);
			assert_int_equal(lane_take(&w->b, NULL), 0);
			assert_int_equal(lane_consume(&w->b), 0);
		}
	}
	lane_channel_deinit(&w->a);
	lane_channel_deinit(&w->b);
	free(w);
}

/* An introduction may come while a connection that closes all its lanes is at it. */
static void a_closing_that_never_began_breaks_nothing(void **state)
{
	struct world *w = setup();

	lane_closing_cancel(&w->a);
	lane_drain(&w->b);
	assert_false(w->b.broken);
	assert_int_equal(one_put(w, 0, 10, 0), 0);
	lane_closing_finish(&w->a);
	lane_drain(&w->b);
	assert_false(w->b.broken);
	assert_true(lane_final(&w->b));
	lane_channel_deinit(&w->a);
	lane_channel_deinit(&w->b);
	free(w);
}

static void bad_arguments_are_refused(void **state)
{
	struct world *w = setup();
	struct lane_put p = { .type = LANE_REC_PAD };
	void *body;
	int fd;

	assert_int_equal(lane_put(&w->a, &p, &body), -EINVAL);
	p.type = LANE_REC_END;
	assert_int_equal(lane_put(&w->a, &p, &body), -EINVAL);
	p.type = LANE_REC_PROGRAM - 1;
	assert_int_equal(lane_put(&w->a, &p, &body), -EINVAL);
	p = (struct lane_put){ .type = LANE_REC_MSG, .flags = 0x8000 };
	assert_int_equal(lane_put(&w->a, &p, &body), -EINVAL);
	p = (struct lane_put){ .type = LANE_REC_MSG, .fds = LANE_FDS_MAX + 1 };
	assert_int_equal(lane_put(&w->a, &p, &body), -EINVAL);
	p = (struct lane_put){ .type = LANE_REC_MSG, .length = UINT32_MAX };
	assert_int_equal(lane_put(&w->a, &p, &body), -EMSGSIZE);
	assert_int_equal(lane_channel_make(&w->a, RING, &fd), -EEXIST);
	lane_channel_deinit(&w->a);
	lane_channel_init(&w->a, &lane_linux_ops, -1, 0);
	assert_int_equal(lane_channel_make(&w->a, RING / 2, &fd), -EINVAL);
	assert_int_equal(lane_channel_make(&w->a, RING + 64, &fd), -EINVAL);
	assert_int_equal(lane_put(&w->a, &p, &body), -ENOLINK);
	lane_channel_deinit(&w->b);
	lane_channel_deinit(NULL);
	free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_lane_is_a_queue),
		cmocka_unit_test(a_quarter_is_kept_for_replies_and_a_place_for_the_end),
		cmocka_unit_test(rule_18_limits_what_is_in_flight),
		cmocka_unit_test(a_quiet_lane_stays_within_its_first_page),
		cmocka_unit_test(a_burst_after_a_quiet_time_has_the_whole_ring),
		cmocka_unit_test(a_burst_is_followed_by_the_first_page),
		cmocka_unit_test(an_old_skip_is_not_met_again),
		cmocka_unit_test(a_busy_lane_goes_on_for_ever),
		cmocka_unit_test(a_closing_that_never_began_breaks_nothing),
		cmocka_unit_test(bad_arguments_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
