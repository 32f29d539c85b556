// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A client that misuses what it shares with the daemon: hang-ups at each step after HELLO, records
 * and buffers that are wrong, floods on the socket, a lane it never reads. It costs the client its
 * connection, and nobody else anything. (tests/stress/hostile.c: up to HELLO.)
 */
#include <dirent.h>
#include <stdio.h>
#include <sys/socket.h>

#include "helper.h"
#include "hostile.h"

static struct user *hostile_user(struct fixture *f)
{
	return to_user(f->hostile);
}

static struct lane_channel *to_daemon(struct fixture *f)
{
	return &hostile_user(f)->daemon.channel;
}

/* Lanes, and the page as it is given to a client, are closed by a thread of the daemon, soon. */
static bool is_memfd(int dir, const char *fd)
{
	char target[64] = "";

	return readlinkat(dir, fd, target, sizeof(target) - 1) > 0 &&
	       !strncmp(target, "/memfd:", 7);
}

static unsigned int daemon_fds(struct fixture *f, bool with_memfds)
{
	unsigned int n = 0;
	struct dirent *e;
	char path[64];
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", libkdbus_daemon_pid(f->daemon));
	dir = opendir(path);
	assert_non_null(dir);
	while ((e = readdir(dir)))
		n += e->d_name[0] != '.' && (with_memfds || !is_memfd(dirfd(dir), e->d_name));
	closedir(dir);
	return n;
}

static void assert_nothing_left(struct fixture *f, unsigned int before)
{
	while (daemon_fds(f, true) > before)
		hostile_assert_served(f);
}

static void hang_up(struct fixture *f)
{
	shutdown(to_daemon(f)->sock, SHUT_RDWR);
	libkdbus_close(f->hostile);
}

/* ---- what it says ---- */

/* A record in its lane to the daemon: a message to be relayed, if @type is CTL_REC_SEND */
static void write_record(struct fixture *f, uint16_t type, uint32_t length, bool publish)
{
	struct lane_put put = { .type = type };
	struct lane_channel *ch = to_daemon(f);
	struct kdbus_msg msg = { .size = sizeof(msg),
				 .dst_id = hostile_id(f->victim),
				 .cookie = 99,
				 .payload_type = KDBUS_PAYLOAD_DBUS };
	struct ctl_send head = { .tag = 1000000 };
	unsigned char record[sizeof(head) + sizeof(msg)];
	void *body;

	memcpy(record, &head, sizeof(head));
	memcpy(record + sizeof(head), &msg, sizeof(msg));
	put.length = length;
	assert_int_equal(lane_put(ch, &put, &body), 0);
	memset(body, 0, length);
	memcpy(body, record, min((size_t)length, sizeof(record)));
	if (publish)
		lane_publish(ch, lane_clock_stamp(&hostile_user(f)->clock, &lane_linux_ops), 0);
}

#define WHOLE ((uint32_t)(sizeof(struct ctl_send) + sizeof(struct kdbus_msg)))

static void say(struct fixture *f, const void *data, size_t size, int fd)
{
	const struct lane_ops *ops = &lane_linux_ops;

	assert_int_equal(ops->send(ops, to_daemon(f)->sock, data, size, &fd, fd >= 0), 0);
}

static void ask_intro(struct fixture *f, uint64_t peer)
{
	const struct ctl_ask_intro ask = { .version = CTL_VERSION,
					   .type = CTL_ASK_INTRO,
					   .peer = peer };
	void *map;
	int fd;

	assert_int_equal(lane_memfd_make("hostile", LANE_HEAD_SIZE + LANE_RING_DEFAULT, &fd, &map),
			 0);
	say(f, &ask, sizeof(ask), fd);
	close(fd);
	lane_memfd_unmap(map, lane_memfd_round(LANE_HEAD_SIZE + LANE_RING_DEFAULT));
}

static void hand_back(struct fixture *f, uint64_t peer, uint64_t flags, uint32_t size)
{
	const struct ctl_hand_back head = { .version = CTL_VERSION,
					    .type = CTL_HAND_BACK,
					    .size = size,
					    .flags = flags,
					    .peer = peer };
	unsigned char data[sizeof(head) + 64] = { 0 };

	memcpy(data, &head, sizeof(head));
	say(f, data, sizeof(head) + min(size, 64u), -1);
}

/* ---- hang-ups ---- */

static void at_once(struct fixture *f)
{
}

static void after_asking(struct fixture *f)
{
	ask_intro(f, hostile_id(f->victim));
}

static void after_asking_for_nobody(struct fixture *f)
{
	ask_intro(f, 1234567);
	ask_intro(f, hostile_id(f->hostile));
	ask_intro(f, 0);
	ask_intro(f, UINT64_MAX);
}

static void introduced(struct fixture *f)
{
	unsigned int i;

	for (i = 0; i < 5; i++)
		assert_int_equal(hostile_send(f->hostile, f->victim, i), 0);
	assert_int_equal(hostile_drain(f->victim), 5);
}

static void in_the_middle_of_a_record(struct fixture *f)
{
	write_record(f, CTL_REC_SEND, WHOLE, false);
}

static void with_an_open_request(struct fixture *f)
{
	const struct {
		struct ctl_request head;
		struct kdbus_cmd_free arg;
	} request = { .head = { .version = CTL_VERSION,
				.type = CTL_REQUEST,
				.serial = 12345,
				.nr = (uint32_t)KDBUS_CMD_BYEBYE,
				.arg_size = sizeof(struct kdbus_cmd_free) },
		      .arg = { .size = sizeof(struct kdbus_cmd_free) } };

	say(f, &request, sizeof(request), -1);
}

static void handing_back_of_the_living(struct fixture *f)
{
	introduced(f);
	hand_back(f, hostile_id(f->victim), 0, 64);
	hand_back(f, hostile_id(f->victim), CTL_HAND_BACK_LAST, 0);
	hand_back(f, 1234567, 0, 64);
}

static void (*const steps[])(struct fixture *f) = {
	at_once,
	after_asking,
	after_asking_for_nobody,
	introduced,
	in_the_middle_of_a_record,
	with_an_open_request,
	handing_back_of_the_living,
};

/* One client after the other, and what they leave open. */
static void a_hang_up_at_any_step(void **state)
{
	struct fixture *f = *state;
	const char *bus = libkdbus_daemon_bus(f->daemon);
	unsigned int i, turn, before;

	hostile_assert_served(f);
	before = daemon_fds(f, false); /* the page, but not the hostile one */
	for (turn = 0; turn < 3; turn++)
		for (i = 0; i < ARRAY_SIZE(steps); i++) {
			steps[i](f);
			hang_up(f);
			assert_nothing_left(f, before);
			assert_int_equal(libkdbus_connect(bus, NULL, &f->hostile), 0);
		}
}

/* What is in its lane when it hangs up has been sent. */
static void the_last_record_before_a_hang_up_arrives(void **state)
{
	struct fixture *f = *state;

	write_record(f, CTL_REC_SEND, WHOLE, true);
	hang_up(f);
	assert_int_equal(hostile_await(f->victim), 99);
	hostile_assert_served(f);
	assert_int_equal(libkdbus_connect(libkdbus_daemon_bus(f->daemon), NULL, &f->hostile), 0);
}

/* ---- a dead peer, and what it had not taken ---- */

/* The hostile one is introduced to somebody, who dies: the daemon waits for what comes back. */
static uint64_t lose_a_mate(struct fixture *f)
{
	struct libkdbus *mate;
	struct peer *p;
	uint64_t id;

	assert_int_equal(libkdbus_connect(libkdbus_daemon_bus(f->daemon), NULL, &mate), 0);
	id = hostile_id(mate);
	do {
		assert_int_equal(hostile_send(f->hostile, mate, 1), 0);
		hostile_drain(mate);
		p = hostile_peer_at(f->hostile, mate);
	} while (!p || p->state != PEER_DIRECT);
	libkdbus_close(mate);
	return id;
}

static void one_that_never_hands_back(void **state)
{
	struct fixture *f = *state;

	lose_a_mate(f);
	write_record(f, CTL_REC_SEND, WHOLE, true);
	hostile_assert_served(f);
	/* Nothing newer of it passes what it has not handed back. */
	assert_int_equal(hostile_drain(f->victim), 0);
	hang_up(f);
	assert_int_equal(hostile_await(f->victim), 99);
	assert_int_equal(libkdbus_connect(libkdbus_daemon_bus(f->daemon), NULL, &f->hostile), 0);
}

static void one_that_hands_back_nonsense(void **state)
{
	static const uint32_t sizes[] = {
		0, 1, 63, 64, 65, 40000, 3000000, 0x7fffffff, UINT32_MAX
	};
	struct fixture *f = *state;
	unsigned int i;
	uint64_t id;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		id = lose_a_mate(f);
		hand_back(f, id, 0, sizes[i]);
		hang_up(f);
		hostile_assert_served(f);
		assert_int_equal(
			libkdbus_connect(libkdbus_daemon_bus(f->daemon), NULL, &f->hostile), 0);
	}
	assert_int_equal(hostile_drain(f->victim), 0);
}

/* ---- records ---- */

static void assert_expelled(struct fixture *f)
{
	struct kdbus_cmd cmd = { .size = sizeof(cmd) };

	hostile_assert_served(f);
	assert_int_equal(hostile_drain(f->victim), 0);
	assert_int_equal(libkdbus_byebye(f->hostile, &cmd), -ECONNRESET);
	libkdbus_close(f->hostile);
	assert_int_equal(libkdbus_connect(libkdbus_daemon_bus(f->daemon), NULL, &f->hostile), 0);
}

static void records_that_are_none_expel(void **state)
{
	static const struct {
		uint16_t type;
		uint32_t length;
	} wrong[] = {
		{ LANE_REC_INTRO, 64 },
		{ LANE_REC_GONE, sizeof(struct ctl_gone) },
		{ LANE_REC_MSG, sizeof(struct kdbus_msg) },
		{ CTL_REC_SEND, 0 },
		{ CTL_REC_SEND, sizeof(struct ctl_send) },
		{ CTL_REC_SEND, WHOLE - 1 },
		{ CTL_REC_VERDICT, sizeof(struct ctl_verdict) },
		{ CTL_REC_LOST, sizeof(struct ctl_lost) },
		{ CTL_REC_REFUSED, sizeof(struct ctl_refused) - 1 },
		{ 0xffff, 8 },
	};
	struct fixture *f = *state;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(wrong); i++) {
		write_record(f, wrong[i].type, wrong[i].length, true);
		lane_ring(to_daemon(f));
		assert_expelled(f);
	}
}

static void beyond_its_end(struct lane_env *env)
{
	env->bulk_size = LANE_BULK_SIZE_MAX;
}

static void never_passed(struct lane_env *env)
{
	env->bulk = LANE_BULK_MAX;
}

static void use_ahead(struct lane_env *env)
{
	env->bulk_use++;
}

static void descriptors_that_never_came(struct lane_env *env)
{
	env->fds = 1;
	env->fd_seq = 77;
}

static void of_a_round(struct lane_env *env)
{
	env->round = 1;
}

static void longer_than_published(struct lane_env *env)
{
	env->size += 4096;
	env->length += 4096;
}

/* As lane_publish() would, but for the envelope: the daemon may be looking. */
static void publish_tampered(struct lane_channel *ch, const struct lane_put *put, void *body,
			     void (*tamper)(struct lane_env *env))
{
	struct lane_env env = {
		.size = ch->put_size,
		.type = put->type,
		.stamp = user_now(),
		.length = put->length,
		.bulk = put->bulk,
		.bulk_use = put->bulk_use,
		.bulk_size = put->bulk_size,
	};

	tamper(&env);
	memcpy((char *)body - LANE_ALIGN, &env, sizeof(env));
	lane_cancel(ch);
	__atomic_store_n(&ch->own->published, ch->put_start + ch->put_size, __ATOMIC_RELEASE);
	lane_ring(ch);
}

static void a_record_used_wrongly_expels(void **state)
{
	static void (*const tampers[])(struct lane_env * env) = {
		beyond_its_end, never_passed,	       use_ahead, descriptors_that_never_came,
		of_a_round,	longer_than_published,
	};
	struct ctl_send head = { .tag = 1000000 };
	struct fixture *f = *state;
	struct kdbus_msg msg = { .size = sizeof(msg) };
	struct lane_channel *ch;
	void *body, *payload;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(tampers); i++) {
		struct lane_put put = { .type = CTL_REC_SEND, .length = WHOLE };

		ch = to_daemon(f);
		assert_int_equal(lane_bulk_get(ch, HOSTILE_SIZE, &put, &payload), 0);
		assert_int_equal(lane_put(ch, &put, &body), 0);
		memcpy(body, &head, sizeof(head));
		memcpy((char *)body + sizeof(head), &msg, sizeof(msg));
		publish_tampered(ch, &put, body, tampers[i]);
		assert_expelled(f);
	}
}

/* ---- floods ---- */

static void a_flood_of_bells_expels(void **state)
{
	struct fixture *f = *state;
	unsigned int i;

	for (i = 0; i < 20000; i++) {
		hostile_say(to_daemon(f), (uint16_t)(LANE_SOCK_BELL + i % 2), i, -1);
		if (i % 2000 == 0)
			hostile_assert_served(f);
	}
	assert_expelled(f);
}

static void give_all(struct fixture *f, uint16_t type, uint32_t value)
{
	const char *name;
	unsigned int i;
	int fd;

	for (i = 0; i < HOSTILE_FILES; i++) {
		fd = hostile_file(i, &name);
		if (fd < 0)
			continue;
		hostile_say(to_daemon(f), type, value, fd);
		close(fd);
		assert_expelled(f);
	}
}

static void files_that_are_no_buffers_expel(void **state)
{
	give_all(*state, LANE_SOCK_BULK, 8);
}

static void files_that_are_no_alarms_expel(void **state)
{
	give_all(*state, LANE_SOCK_ALARM, 0);
}

/* The daemon counts up a word that its client takes away, and draws no conclusion from it. */
static void an_alarm_is_written_whatever_becomes_of_it(void **state)
{
	const struct lane_sock msg = { .version = LANE_VERSION, .type = LANE_SOCK_ALARM,
				       .count = 1 };
	struct fixture *f = *state;
	struct lane_alarm alarm;

	assert_int_equal(lane_alarm_make(&alarm), 0);
	assert_int_equal(lane_alarm_give(to_daemon(f), &alarm), 0);
	hostile_assert_served(f);
	assert_true(lane_alarm_works(to_daemon(f)));
	lane_await_alarm(to_daemon(f));
	assert_int_equal(fallocate(alarm.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096),
			 0);
	assert_int_equal(hostile_send(f->victim, f->hostile, 1), 0);
	hostile_assert_served(f);
	assert_int_equal(*alarm.word, 1);
	assert_int_equal(hostile_drain(f->hostile), 1);
	/* Only one is ever given. */
	assert_int_equal(lane_linux_ops.send(&lane_linux_ops, to_daemon(f)->sock, &msg,
					     sizeof(msg), &alarm.fd, 1), 0);
	assert_expelled(f);
	lane_alarm_deinit(&alarm);
}

/* ---- a lane that is never read ---- */

#define BROADCASTS 3000

static void broadcast(struct libkdbus *h, uint64_t cookie)
{
	static const unsigned char data[2000];
	struct kdbus_cmd_send cmd = { .size = sizeof(cmd) };
	struct libkdbus_builder b;
	struct kdbus_msg *msg;
	void *built;

	libkdbus_build(&b, sizeof(*msg), NULL, 0);
	libkdbus_build_item(&b, KDBUS_ITEM_BLOOM_FILTER, NULL,
			    sizeof(struct kdbus_bloom_filter) + libkdbus_identity(h)->bloom.size);
	libkdbus_build_vec(&b, data, sizeof(data));
	assert_int_equal(libkdbus_build_end(&b, &built), 0);
	msg = built;
	msg->dst_id = KDBUS_DST_ID_BROADCAST;
	msg->flags = KDBUS_MSG_SIGNAL;
	msg->cookie = cookie;
	msg->payload_type = KDBUS_PAYLOAD_DBUS;
	cmd.msg_address = (uintptr_t)msg;
	assert_int_equal(libkdbus_send(h, &cmd), 0);
	libkdbus_build_clear(&b);
}

/* In order; what did not come is counted. */
static void what_one_never_reads_is_counted_as_lost(void **state)
{
	struct kdbus_cmd_recv cmd;
	struct fixture *f = *state;
	uint64_t last = 0, got = 0, lost = 0, cookie;
	const struct kdbus_msg *msg;
	int r;

	assert_int_equal(helper_match_all(f->hostile), 0);
	for (cookie = 1; cookie <= BROADCASTS; cookie++) {
		broadcast(f->honest, cookie);
		if (cookie % 500 == 0)
			hostile_assert_served(f);
	}
	do {
		cmd = (struct kdbus_cmd_recv){ .size = sizeof(cmd) };
		r = libkdbus_recv(f->hostile, &cmd);
		lost += cmd.dropped_msgs;
		if (r == -EAGAIN && got + lost < BROADCASTS)
			libkdbus_wait(f->hostile, user_now() + 1000000, -1);
		if (r < 0)
			continue;
		msg = (const void *)((const char *)libkdbus_pool(f->hostile, NULL) +
				     cmd.msg.offset);
		assert_true(msg->cookie > last);
		last = msg->cookie;
		got++;
		libkdbus_done(f->hostile, msg);
	} while (got + lost < BROADCASTS);
	assert_true(got > 0 && lost > 0);
	assert_int_equal(got + lost, BROADCASTS);
	hostile_assert_served(f);
}

#define CONNECTED(fn) cmocka_unit_test_setup_teardown(fn, hostile_connect, hostile_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CONNECTED(a_hang_up_at_any_step),
		CONNECTED(the_last_record_before_a_hang_up_arrives),
		CONNECTED(one_that_never_hands_back),
		CONNECTED(one_that_hands_back_nonsense),
		CONNECTED(records_that_are_none_expel),
		CONNECTED(a_record_used_wrongly_expels),
		CONNECTED(a_flood_of_bells_expels),
		CONNECTED(files_that_are_no_buffers_expel),
		CONNECTED(files_that_are_no_alarms_expel),
		CONNECTED(an_alarm_is_written_whatever_becomes_of_it),
		CONNECTED(what_one_never_reads_is_counted_as_lost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
