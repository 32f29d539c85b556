// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Rules 10 to 13: whatever is delayed where, messages of one sender arrive in order and no effect
 * arrives before its cause, over direct lanes, relays and broadcasts mixed. Naive receivers, a
 * daemon without commit and senders without rule 13 are caught.
 *
 * Three clients, each pair with a direct channel, and a daemon. Every message carries what its
 * sender knows of: how many messages to each receiver, from each sender, were sent before it or
 * delivered to someone who sent on. A receiver that has not been delivered all of those that are
 * meant for it has seen an effect before its cause.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <cmocka.h>

#include "lane-sim.h"
#include "lane/look.h"

#define CLIENTS 3u
#define SENDS 14u
#define STEPS 400000u
#define SEEDS 300u
#define EVERYBODY CLIENTS

enum naive {
	NOTHING_NAIVE,
	ONE_PASS, /* deliver the smallest stamp found in one pass over the lanes */
	NO_T, /* a look, but what is stamped after it began counts too */
	NO_COMMIT, /* broadcast lane after lane, each counts at once */
	NO_RULE_13, /* direct while something is on its way through the daemon */
};

struct body {
	uint32_t from;
	uint32_t to;
	uint32_t seq[CLIENTS]; /* its number in the order of from to each receiver */
	uint32_t known[CLIENTS][CLIENTS]; /* receiver, sender */
};

struct world;

struct client {
	struct world *w;
	uint32_t id;
	struct lane_channel daemon; /* our end */
	struct lane_channel peers[CLIENTS];
	struct lane_source sources[CLIENTS + 1];
	struct lane_look look;
	struct lane_clock clock;
	int epoll, eventfd;
	uint32_t sent[CLIENTS];
	uint32_t delivered[CLIENTS];
	uint32_t known[CLIENTS][CLIENTS];
	unsigned int sends;
};

struct world {
	enum naive naive;
	struct client clients[CLIENTS];
	struct lane_channel ends[CLIENTS]; /* the daemon's */
	struct lane_page_owner page;
	const struct lane_page *shared;
	struct lane_clock clock;
	int epoll;
	uint64_t round;
};

static uint64_t far_future(const struct lane_ops *ops)
{
	return UINT64_MAX - 1;
}

/* Sending --------------------------------------------------------------------------------- */

static void put_body(struct lane_channel *ch, const struct body *body, struct lane_clock *clock,
		     uint64_t round)
{
	struct lane_put put = { .type = LANE_REC_MSG, .length = sizeof(*body) };
	void *place;
	int r;

	r = lane_put(ch, &put, &place);
	if (r < 0) {
		sim_fail("lane_put: %d", r);
		return;
	}
	memcpy(place, body, sizeof(*body));
	lane_publish(ch, lane_clock_stamp(clock, &sim_ops), round);
}

static void note_sent(struct client *c, struct body *body, uint32_t to)
{
	uint32_t i;

	memset(body, 0, sizeof(*body));
	body->from = c->id;
	body->to = to;
	memcpy(body->known, c->known, sizeof(c->known));
	for (i = 0; i < CLIENTS; i++)
		if (i != c->id && (to == i || to == EVERYBODY)) {
			body->seq[i] = ++c->sent[i];
			c->known[i][c->id] = c->sent[i];
		}
}

static void send_something(struct client *c)
{
	uint32_t to = (c->id + 1 + (uint32_t)sim_below(CLIENTS - 1)) % CLIENTS;
	struct lane_channel *ch = &c->daemon;
	unsigned int way = (unsigned int)sim_below(8);
	struct body body;

	if (way == 0)
		to = EVERYBODY;
	else if (way > 1 && (c->w->naive == NO_RULE_13 || lane_passed(&c->daemon)))
		ch = &c->peers[to];
	else if (way > 2)
		return; /* mostly it waits until direct is possible again */
	note_sent(c, &body, to);
	put_body(ch, &body, &c->clock, 0);
	if (lane_ring(ch) < 0)
		sim_fail("lane_ring");
	c->sends++;
}

/* Receiving ------------------------------------------------------------------------------- */

static void deliver(struct client *c, const struct body *body)
{
	uint32_t i, j;

	if (body->seq[c->id] != c->delivered[body->from] + 1)
		sim_fail("client %u: message %u of %u came after %u", c->id, body->seq[c->id],
			 body->from, c->delivered[body->from]);
	c->delivered[body->from]++;
	c->known[c->id][body->from] = c->delivered[body->from];
	for (i = 0; i < CLIENTS; i++)
		if (c->delivered[i] < body->known[c->id][i])
			sim_fail("client %u: effect from %u before cause from %u", c->id,
				 body->from, i);
	for (i = 0; i < CLIENTS; i++)
		for (j = 0; j < CLIENTS; j++) {
			uint32_t known = j == body->from && body->seq[i] ? body->seq[i]
									 : body->known[i][j];

			if (c->known[i][j] < known)
				c->known[i][j] = known;
		}
}

static int receive(struct client *c, int mode)
{
	struct lane_event ev;
	struct body body;
	int r;

	r = lane_look_next(&c->look, mode, &ev);
	if (r < 0)
		return r;
	if (ev.type != LANE_EV_RECORD || ev.rec.length != sizeof(body) ||
	    lane_look_take(&c->look, &ev, &body) < 0) {
		sim_fail("event %d", ev.type);
		return -EIO;
	}
	deliver(c, &body);
	return 0;
}

static int receive_one_pass(struct client *c)
{
	struct lane_channel *ch, *best = NULL;
	struct lane_env env, best_env = { .size = 0 };
	struct body body;
	uint32_t limit, i;

	for (i = 0; i <= CLIENTS; i++) {
		ch = i < CLIENTS ? &c->peers[i] : &c->daemon;
		if (i == c->id || lane_snapshot(ch, &limit) < 0 || lane_peek(ch, limit, &env) < 0)
			continue;
		if (!best || env.stamp < best_env.stamp) {
			best = ch;
			best_env = env;
		}
	}
	if (!best)
		return -EAGAIN;
	lane_take(best, &body);
	lane_clock_saw(&c->clock, best_env.stamp);
	lane_consume(best);
	deliver(c, &body);
	return 0;
}

static bool all_delivered(const struct client *c)
{
	uint32_t i;

	for (i = 0; i < CLIENTS; i++)
		if (c->w->clients[i].sends < SENDS ||
		    c->delivered[i] < c->w->clients[i].sent[c->id])
			return false;
	return true;
}

/* Something is on its way, so sleeping is safe if no wake-up is lost. */
static bool expecting(const struct client *c)
{
	uint32_t i;

	for (i = 0; i < CLIENTS; i++)
		if (c->delivered[i] < c->w->clients[i].sent[c->id])
			return true;
	return false;
}

static void client(void *arg)
{
	struct client *c = arg;
	bool one_pass = c->w->naive == ONE_PASS;

	while (c->sends < SENDS || !all_delivered(c)) {
		sim_yield();
		if (c->sends < SENDS && sim_below(12) == 0)
			send_something(c);
		else if (one_pass)
			receive_one_pass(c);
		else if (receive(c, sim_below(2) ? LANE_LOOK_ARM : LANE_LOOK_POLL) == -EAGAIN &&
			 c->sends == SENDS && expecting(c))
			sim_wait_readable(c->epoll);
	}
}

/* The daemon ------------------------------------------------------------------------------ */

static void forward(struct world *w, const struct body *body, unsigned int *touched)
{
	unsigned int i;

	for (i = 0; i < CLIENTS; i++) {
		if (!body->seq[i])
			continue;
		put_body(&w->ends[i], body, &w->clock, w->round);
		*touched |= 1u << i;
		if (w->naive == NO_COMMIT)
			lane_ring(&w->ends[i]);
		/* The first receiver of a broadcast may be quick. */
		if (sim_below(4) == 0)
			sim_delay(3000);
	}
}

static unsigned int take_requests(struct world *w, unsigned int *touched)
{
	struct lane_env env;
	struct body body;
	unsigned int i, n = 0;
	uint32_t limit;

	for (i = 0; i < CLIENTS; i++) {
		if (lane_snapshot(&w->ends[i], &limit) < 0)
			sim_fail("lane_snapshot");
		while (lane_peek(&w->ends[i], limit, &env) == 0) {
			lane_take(&w->ends[i], &body);
			lane_clock_saw(&w->clock, env.stamp);
			forward(w, &body, touched);
			n++;
		}
	}
	return n;
}

static unsigned int do_round(struct world *w)
{
	unsigned int touched = 0, n, i;

	w->round++;
	n = take_requests(w, &touched);
	if (!n)
		return 0;
	lane_page_commit(&w->page, w->round);
	for (i = 0; i < CLIENTS; i++)
		if (touched & 1u << i)
			lane_ring(&w->ends[i]);
	for (i = 0; i < CLIENTS; i++)
		lane_consume(&w->ends[i]);
	return n;
}

static void daemon_task(void *arg)
{
	struct world *w = arg;
	unsigned int i;

	for (;;) {
		while (do_round(w))
			;
		for (i = 0; i < CLIENTS; i++) {
			lane_drain(&w->ends[i]);
			lane_arm(&w->ends[i]);
		}
		if (!do_round(w))
			sim_wait_readable(w->epoll);
		for (i = 0; i < CLIENTS; i++)
			lane_unarm(&w->ends[i]);
	}
}

/* ----------------------------------------------------------------------------------------- */

static void add_source(struct client *c, struct lane_channel *ch, unsigned int i)
{
	c->sources[i].id = i;
	c->sources[i].ch = ch;
	assert_int_equal(lane_look_add(&c->look, &c->sources[i]), 0);
}

static void begin_client(struct world *w, unsigned int i, const struct lane_ops *ops)
{
	struct client *c = &w->clients[i];

	c->w = w;
	c->id = i;
	c->epoll = epoll_create1(EPOLL_CLOEXEC);
	c->eventfd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	assert_int_equal(lane_look_init(&c->look, ops, c->epoll, c->eventfd,
					w->naive == NO_COMMIT ? NULL : w->shared, &c->clock), 0);
	sim_channel(&c->daemon, &w->ends[i], LANE_RING_MIN * 4, LANE_PEER_IS_DAEMON, 0);
	sim_ops.watch(&sim_ops, w->epoll, w->ends[i].sock, NULL);
}

static void begin(struct world *w, uint64_t seed, const struct lane_ops *look_ops)
{
	unsigned int i, j;
	int fd;

	sim_begin(seed);
	sim_switch_one_in(1 + (unsigned int)(seed % 6));
	assert_int_equal(lane_page_make(&w->page, 7, &fd), 0);
	assert_int_equal(lane_page_map(fd, &w->shared), 0);
	close(fd);
	w->epoll = epoll_create1(EPOLL_CLOEXEC);
	for (i = 0; i < CLIENTS; i++)
		begin_client(w, i, look_ops);
	for (i = 0; i < CLIENTS; i++)
		for (j = 0; j < i; j++)
			sim_channel(&w->clients[i].peers[j], &w->clients[j].peers[i],
				    LANE_RING_MIN * 4, 0, 0);
	for (i = 0; i < CLIENTS; i++) {
		add_source(&w->clients[i], &w->clients[i].daemon, CLIENTS);
		for (j = 0; j < CLIENTS; j++)
			if (j != i)
				add_source(&w->clients[i], &w->clients[i].peers[j], j);
	}
}

static void end(struct world *w)
{
	struct client *c;
	unsigned int i, j;

	for (i = 0; i < CLIENTS; i++) {
		c = &w->clients[i];
		lane_look_deinit(&c->look);
		close(c->epoll);
		close(c->eventfd);
		sim_channel_end(&c->daemon, &w->ends[i]);
		for (j = 0; j < i; j++)
			sim_channel_end(&c->peers[j], &w->clients[j].peers[i]);
	}
	close(w->epoll);
	lane_page_unmap(w->shared);
	lane_page_deinit(&w->page);
}

static enum sim_end run(enum naive naive, uint64_t seed)
{
	static struct world w;
	struct lane_ops look_ops = sim_ops;
	enum sim_end how;
	unsigned int i;

	memset(&w, 0, sizeof(w));
	w.naive = naive;
	if (naive == NO_T)
		look_ops.now = far_future;
	begin(&w, seed, &look_ops);
	sim_background(sim_spawn(daemon_task, &w));
	for (i = 0; i < CLIENTS; i++)
		sim_spawn(client, &w.clients[i]);
	how = sim_run(STEPS);
	end(&w);
	return how;
}

static void no_effect_arrives_before_its_cause(void **state)
{
	enum sim_end how;
	uint64_t seed;

	for (seed = 0; seed < SEEDS; seed++) {
		how = run(NOTHING_NAIVE, seed);
		if (how != SIM_OVER)
			print_error("seed %u: %d %s\n", (unsigned int)seed, how, sim_why());
		assert_int_equal(how, SIM_OVER);
	}
}

static void caught(enum naive naive)
{
	unsigned int failed = 0;
	uint64_t seed;

	for (seed = 0; seed < 8 * SEEDS && !failed; seed++)
		failed += run(naive, seed) == SIM_FAILED;
	assert_true(failed > 0);
}

static void naive_smallest_stamp_of_one_pass_is_caught(void **state)
{
	caught(ONE_PASS);
}

static void naive_look_without_t_is_caught(void **state)
{
	caught(NO_T);
}

static void naive_broadcast_without_commit_is_caught(void **state)
{
	caught(NO_COMMIT);
}

static void naive_direct_before_the_daemon_has_passed_is_caught(void **state)
{
	caught(NO_RULE_13);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_effect_arrives_before_its_cause),
		cmocka_unit_test(naive_smallest_stamp_of_one_pass_is_caught),
		cmocka_unit_test(naive_look_without_t_is_caught),
		cmocka_unit_test(naive_broadcast_without_commit_is_caught),
		cmocka_unit_test(naive_direct_before_the_daemon_has_passed_is_caught),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
