// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Room comes back: whatever becomes of messages, replies and calls, in whatever order, a receiver
 * can be sent as much afterwards as before. (ABI 14.3, 14.4; design rule 18)
 *
 * A partner in a thread of its own does with each call what the call says. KDBUS_ROOM_SEED chooses
 * another run.
 */
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/wait.h>

#include "fixture.h"

#define SEQUENCES 6
#define STEPS	  80
#define HELD_MAX  12
#define LARGE	  (100u << 10)
#define HUGE_SIZE (2u << 20)

/* So much at most is on its way: a reply that finds no room may be lost with its call (ABI 7.7) */
#define UNDER_WAY_MAX	    6
#define BYTES_UNDER_WAY_MAX (2u << 20)

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

enum deed {
	REPLY,
	DROP,
	IGNORE,
	REPLY_LATE, /* once the next call is there */
	END,
};

struct wish {
	enum deed deed;
	unsigned int before; /* messages in front of the reply */
	unsigned int size; /* of each, and of the reply */
};

struct room {
	struct libkdbus *a, *b, *monitor;
	pthread_t partner;
	int never; /* a descriptor that is readable from the start */
	uint64_t held[HELD_MAX];
	unsigned int n_held;
	uint64_t cookie;
	unsigned int calls, outcomes; /* asynchronous ones, and what became of them */
	unsigned int under_way; /* messages at most, since there were none, */
	size_t bytes_under_way; /* and their size */
	uint64_t random;
};

static char payload[HUGE_SIZE];

static unsigned int draw(struct room *room, unsigned int n)
{
	room->random ^= room->random << 13;
	room->random ^= room->random >> 7;
	room->random ^= room->random << 17;
	return (unsigned int)(room->random >> 33) % n;
}

static int post(struct libkdbus *from, struct libkdbus *to, uint64_t reply, size_t size)
{
	const struct letter l = {
		.dst = fixture_id(to), .cookie = 1, .reply = reply, .data = payload, .size = size
	};

	return fixture_send(from, &l);
}

/* ---- the partner ---- */

/* One that finds no room at all is not sent: its caller has a deadline. */
static void answer(struct room *room, uint64_t cookie, unsigned int size)
{
	if (cookie && post(room->b, room->a, cookie, size) == -ENOBUFS)
		post(room->b, room->a, cookie, 0);
}

static void do_deed(struct room *room, const struct wish *wish, uint64_t cookie, uint64_t *late)
{
	unsigned int i;

	answer(room, *late, 0);
	*late = 0;
	if (wish->deed == REPLY_LATE)
		*late = cookie;
	if (wish->deed != REPLY && wish->deed != END)
		return;
	for (i = 0; i < wish->before; i++)
		post(room->b, room->a, 0, wish->size);
	answer(room, cookie, wish->size);
}

/* What the next call wishes; whoever wants it dropped does not get it received. */
static uint64_t next_call(struct room *room, struct wish *ret)
{
	const struct kdbus_msg *msg;
	struct kdbus_cmd_recv cmd;
	uint64_t cookie;
	size_t size;
	const void *data;

	fixture_await_queued(room->b);
	assert_int_equal(fixture_recv_flags(room->b, KDBUS_RECV_PEEK, 0, &cmd), 0);
	msg = fixture_message(room->b, cmd.msg.offset);
	cookie = msg->cookie;
	assert_int_equal(libkdbus_payload(room->b, msg, fixture_item(msg, KDBUS_ITEM_PAYLOAD_OFF),
					  &data, &size),
			 0);
	memcpy(ret, data, sizeof(*ret));
	assert_int_equal(fixture_free(room->b, cmd.msg.offset), 0);
	assert_int_equal(
		fixture_recv_flags(room->b, ret->deed == DROP ? KDBUS_RECV_DROP : 0, 0, &cmd), 0);
	if (ret->deed != DROP)
		assert_int_equal(fixture_free(room->b, cmd.msg.offset), 0);
	return cookie;
}

static void *run_partner(void *arg)
{
	struct room *room = arg;
	uint64_t cookie, late = 0;
	struct wish wish;

	do {
		cookie = next_call(room, &wish);
		do_deed(room, &wish, cookie, &late);
	} while (wish.deed != END);
	return NULL;
}

/* ---- calls ---- */

static struct letter letter_of(struct room *room, const struct wish *wish, unsigned int ms)
{
	return (struct letter){ .dst = fixture_id(room->b),
				.cookie = ++room->cookie,
				.flags = KDBUS_MSG_EXPECT_REPLY,
				.reply = fixture_deadline(ms),
				.data = wish,
				.size = sizeof(*wish) };
}

static int call(struct room *room, const struct wish *wish, unsigned int ms, int cancel_fd)
{
	const struct letter l = letter_of(room, wish, ms);
	const struct kdbus_msg *reply;
	int r = fixture_call(room->a, &l, cancel_fd, &reply);

	if (r == 0)
		assert_int_equal(libkdbus_done(room->a, reply), 0);
	return r;
}

static void call_async(struct room *room, const struct wish *wish)
{
	const struct letter l = letter_of(room, wish, wish->deed == REPLY ? 20000 : 1);
	int r = fixture_send(room->a, &l);

	assert_true(r == 0 || r == -ENOBUFS || r == -ETIMEDOUT || r == -EMLINK);
	room->calls += r == 0;
}

/* ---- messages that have come ---- */

static void account(struct room *room, const struct kdbus_msg *msg)
{
	room->outcomes += msg->cookie_reply != 0;
}

static void free_one(struct room *room, unsigned int i)
{
	assert_int_equal(fixture_free(room->a, room->held[i]), 0);
	room->held[i] = room->held[--room->n_held];
}

static bool receive(struct room *room, uint64_t flags)
{
	struct kdbus_cmd_recv cmd, peek;
	int r = fixture_recv_flags(room->a, flags | KDBUS_RECV_PEEK, 0, &peek);

	if (r == -EAGAIN)
		return false;
	assert_int_equal(r, 0);
	account(room, fixture_message(room->a, peek.msg.offset));
	assert_int_equal(fixture_free(room->a, peek.msg.offset), 0);
	if (flags || draw(room, 4)) {
		assert_int_equal(fixture_recv_flags(room->a, flags, 0, &cmd), 0);
		room->held[room->n_held++] = cmd.msg.offset;
	} else {
		assert_int_equal(fixture_recv_flags(room->a, KDBUS_RECV_DROP, 0, &cmd), 0);
	}
	if (room->n_held == HELD_MAX || draw(room, 2))
		while (room->n_held > HELD_MAX / 2)
			free_one(room, draw(room, room->n_held));
	return true;
}

/* All that is under way is here, and received. */
static void take_all(struct room *room)
{
	while (receive(room, 0) || room->outcomes < room->calls)
		if (room->outcomes < room->calls)
			assert_int_equal(libkdbus_wait(room->a, fixture_deadline(60000), -1), 0);
	assert_int_equal(room->outcomes, room->calls);
	room->under_way = 0;
	room->bytes_under_way = 0;
}

static struct wish any_wish(struct room *room)
{
	static const unsigned int sizes[] = { 0, 8, 3000, LARGE, HUGE_SIZE / 4 };
	const enum deed deed = draw(room, 2) ? REPLY : (enum deed)draw(room, END);
	const struct wish wish = { .deed = deed,
				   .before = draw(room, 3),
				   .size = sizes[draw(room, COUNT(sizes))] };
	unsigned int n = wish.before + 1;

	if (room->under_way + n > UNDER_WAY_MAX ||
	    room->bytes_under_way + n * wish.size > BYTES_UNDER_WAY_MAX)
		take_all(room);
	room->under_way += n;
	room->bytes_under_way += n * wish.size;
	return wish;
}

/* Its outcome is any; that there is one shows below. */
static void call_sync(struct room *room)
{
	struct wish wish = any_wish(room);

	/* What a caller who has given up is sent comes later than he can know. */
	if (!draw(room, 6)) {
		wish.size /= 64;
		call(room, &wish, 20000, room->never);
	} else {
		call(room, &wish, wish.deed == REPLY || wish.deed == DROP ? 20000 : 1, -1);
	}
}

static void peek(struct room *room)
{
	struct kdbus_cmd_recv cmd;

	if (fixture_recv_flags(room->a, KDBUS_RECV_PEEK, 0, &cmd) == 0 && draw(room, 2))
		assert_int_equal(fixture_free(room->a, cmd.msg.offset), 0);
}

/* A child closes what it has inherited: nothing of the parent's. */
static void fork_and_close(struct room *room)
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (!pid) {
		libkdbus_close(room->a);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void step(struct room *room)
{
	struct wish wish;

	switch (draw(room, 20)) {
	case 0 ... 5:
		call_sync(room);
		break;
	case 6 ... 7:
		wish = any_wish(room);
		call_async(room, &wish);
		break;
	case 8:
		peek(room);
		break;
	case 9:
		if (room->n_held)
			free_one(room, draw(room, room->n_held));
		break;
	case 10:
		if (!draw(room, 8))
			fork_and_close(room);
		break;
	default:
		receive(room, draw(room, 4) ? 0 : KDBUS_RECV_USE_PRIORITY);
	}
}

/* Nothing is under way any more, and nothing is kept. */
static void finish(struct room *room)
{
	const struct wish wish = { .deed = END };

	take_all(room);
	assert_int_equal(call(room, &wish, 20000, -1), 0);
	assert_int_equal(pthread_join(room->partner, NULL), 0);
	take_all(room);
	while (room->n_held)
		free_one(room, 0);
	fixture_drain(room->b);
}

/* ---- how much there is room for ---- */

struct capacity {
	unsigned int small, large, held;
};

static bool sent(struct libkdbus *from, struct libkdbus *to, size_t size)
{
	int r = post(from, to, 0, size);

	assert_true(r == 0 || r == -ENOBUFS || r == -EXFULL);
	return r == 0;
}

static unsigned int fill(struct libkdbus *from, struct libkdbus *to, size_t size)
{
	unsigned int n = 0, i;

	while (sent(from, to, size))
		n++;
	for (i = 0; i < n; i++)
		fixture_expect(to, 1);
	fixture_assert_empty(to);
	return n;
}

/* Received, and not freed before there is no room for another one */
static unsigned int hold(struct libkdbus *from, struct libkdbus *to)
{
	static uint64_t offsets[1 << 10];
	struct kdbus_cmd_recv cmd;
	unsigned int n = 0, i;

	while (n < COUNT(offsets) && sent(from, to, LARGE) && fixture_recv(to, &cmd) == 0)
		offsets[n++] = cmd.msg.offset;
	assert_in_range(n, 1, COUNT(offsets) - 1);
	for (i = 0; i < n; i++)
		assert_int_equal(fixture_free(to, offsets[i]), 0);
	/* The last one may have been accepted and found no room. */
	fixture_drain(to);
	return n;
}

static struct capacity capacity(struct libkdbus *from, struct libkdbus *to)
{
	return (struct capacity){ .small = fill(from, to, 0),
				  .large = fill(from, to, LARGE),
				  .held = hold(from, to) };
}

static void assert_same(const struct capacity *before, const struct capacity *after)
{
	assert_int_equal(after->small, before->small);
	assert_int_equal(after->large, before->large);
	assert_int_equal(after->held, before->held);
}

/* ---- tests ---- */

/* Enough for ways of their own, where there are any; a monitor keeps all on the bus. */
static void begin(struct room *room, const struct fixture *f, bool relayed)
{
	unsigned int i;
	int r;

	*room = (struct room){ .a = fixture_connect(f), .b = fixture_connect(f) };
	room->never = eventfd(1, EFD_CLOEXEC);
	if (relayed)
		room->monitor = fixture_special(f, KDBUS_HELLO_MONITOR, NULL, 0, &r);
	for (i = 0; i < 6; i++) {
		assert_int_equal(post(room->a, room->b, 0, 0), 0);
		fixture_expect(room->b, 1);
		assert_int_equal(post(room->b, room->a, 0, 0), 0);
		fixture_expect(room->a, 1);
	}
}

static void begin_partner(struct room *room)
{
	assert_int_equal(pthread_create(&room->partner, NULL, run_partner, room), 0);
}

static void end(struct room *room)
{
	close(room->never);
	libkdbus_close(room->monitor);
	libkdbus_close(room->b);
	libkdbus_close(room->a);
}

static void play(struct room *room, uint64_t seed)
{
	struct capacity to_a, to_b, now;
	unsigned int i;

	/* The first messages of a pair may go two ways. */
	capacity(room->b, room->a);
	capacity(room->a, room->b);
	to_a = capacity(room->b, room->a);
	to_b = capacity(room->a, room->b);
	room->random = seed * 0x9e3779b97f4a7c15ULL;
	begin_partner(room);
	for (i = 0; i < STEPS; i++)
		step(room);
	finish(room);
	now = capacity(room->b, room->a);
	assert_same(&to_a, &now);
	now = capacity(room->a, room->b);
	assert_same(&to_b, &now);
}

static void play_all(const struct fixture *f, bool relayed)
{
	const char *text = getenv("KDBUS_ROOM_SEED");
	unsigned long long first = text ? strtoull(text, NULL, 10) : 1, seed;
	struct room room;

	for (seed = first; seed < first + SEQUENCES; seed++) {
		print_message("# seed %llu\n", seed);
		begin(&room, f, relayed);
		play(&room, seed);
		end(&room);
	}
}

static void room_on_the_bus(void **state)
{
	play_all(*state, true);
}

static void room_on_ways_of_their_own(void **state)
{
	play_all(*state, false);
}

static void *call_plainly(void *arg)
{
	struct room *room = arg;
	const struct wish wish = { .deed = REPLY };

	return (void *)(intptr_t)call(room, &wish, 20000, -1);
}

/*
 * A reply is picked from behind a message that nobody has received. Its room is there for the next
 * one although nothing comes that would have the caller look.
 */
static void reply_from_behind(const struct fixture *f, bool relayed)
{
	struct room room;
	pthread_t caller;
	void *r;

	begin(&room, f, relayed);
	assert_int_equal(pthread_create(&caller, NULL, call_plainly, &room), 0);
	fixture_expect(room.b, 1);
	assert_int_equal(post(room.b, room.a, 0, 0), 0);
	assert_int_equal(post(room.b, room.a, 1, HUGE_SIZE), 0);
	assert_int_equal(pthread_join(caller, &r), 0);
	assert_int_equal((intptr_t)r, 0);
	assert_int_equal(post(room.b, room.a, 0, HUGE_SIZE), 0);
	fixture_expect(room.a, 1);
	fixture_expect(room.a, 1);
	fixture_assert_empty(room.a);
	end(&room);
}

static void room_of_a_reply_from_behind(void **state)
{
	reply_from_behind(*state, true);
	reply_from_behind(*state, false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FIXTURE_TEST(room_of_a_reply_from_behind),
		FIXTURE_TEST(room_on_the_bus),
		FIXTURE_TEST(room_on_ways_of_their_own),
	};

	return FIXTURE_RUN(tests);
}
