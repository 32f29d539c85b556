// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Two unprivileged users on one bus, in the same namespaces and in different ones: messages go both
 * ways, through the daemon and directly, and nothing else crosses the boundary (design rules 2, 5
 * and 17). Each side keeps every file it gets hold of and tries to change it (grab.h).
 *
 * Linked with the inside of the library, to get at buffers and lanes.
 */
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "fixture.h"
#include "grab.h"
#include "user/user.h"

#define USER_A	   20001
#define USER_B	   20002
#define OVERFLOWN  65534 /* how an id without mapping reads */
#define ROUNDS	   60 /* from then on */
#define BIG	   (200u << 10) /* travels in a buffer */

static const struct access both_names[] = {
	{ .name = "com.example.a" },
	{ NULL, KDBUS_POLICY_ACCESS_WORLD, KDBUS_POLICY_OWN, 0 },
	{ .name = "com.example.b" },
	{ NULL, KDBUS_POLICY_ACCESS_WORLD, KDBUS_POLICY_OWN, 0 },
};

/* One of the two */
struct side {
	const struct fixture *f;
	struct companion other; /* the way to the other one, past the bus */
	int end_of_other; /* of that way; open here, it would hide that the other one ended */
	unsigned int id;
	unsigned int sees_uid; /* of the other */
	bool sees_pid;
	bool begins;
	bool equal; /* in authority: payload may be read in place */
	bool enters; /* namespaces of its own */
	struct libkdbus *h;
	uint64_t peer; /* its connection */
	pid_t peer_pid;
	uint64_t peer_pool;
	unsigned int direct, relayed, in_place;
	unsigned char *payload;
};

static unsigned char pattern(unsigned int round, size_t i)
{
	return (unsigned char)(round * 31 + i * 7 + (i >> 9));
}

static size_t size_of_round(unsigned int round)
{
	return round % 4 == 3 ? BIG : 16 + (size_t)round % 7 * 400;
}

static const char *name_of(bool first)
{
	return first ? both_names[0].name : both_names[2].name;
}

/* ---- messages ---- */

static void send_round(struct side *s, unsigned int round)
{
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC), memfd = fixture_memfd();
	struct letter l = { .cookie = round + 1,
			    .data = s->payload,
			    .size = size_of_round(round) };
	size_t i;

	if (round & 1)
		l.dst = s->peer;
	else
		l.name = name_of(!s->begins);
	if (round % 8 == 5) {
		l.fds = &null;
		l.n_fds = 1;
	}
	if (round % 8 == 6) {
		l.memfds = &memfd;
		l.n_memfds = 1;
	}
	for (i = 0; i < l.size; i++)
		s->payload[i] = pattern(round, i);
	assert_int_equal(fixture_send(s->h, &l), 0);
	close(null);
	close(memfd);
}

static bool came_directly(const struct kdbus_msg *msg)
{
	const struct kdbus_item *item = fixture_item(msg, KDBUS_ITEM_TIMESTAMP);

	assert_non_null(item);
	return item->timestamp.seqnum == 0;
}

/* Who it is from is what the daemon has seen, whichever way it came. */
static void check_sender(const struct side *s, const struct kdbus_msg *msg)
{
	const struct kdbus_item *creds = fixture_item(msg, KDBUS_ITEM_CREDS);
	const struct kdbus_item *pids = fixture_item(msg, KDBUS_ITEM_PIDS);

	assert_int_equal(msg->src_id, s->peer);
	assert_non_null(creds);
	assert_int_equal(creds->creds.uid, s->sees_uid);
	assert_int_equal(creds->creds.euid, s->sees_uid);
	assert_int_equal(creds->creds.gid, s->sees_uid);
	assert_non_null(pids);
	assert_int_equal(pids->pids.pid != 0, s->sees_pid);
}

static const unsigned char *payload_of(struct side *s, const struct kdbus_msg *msg, size_t *ret)
{
	const struct kdbus_item *item = fixture_item(msg, KDBUS_ITEM_PAYLOAD_OFF);
	const void *data;

	assert_non_null(item);
	assert_int_equal(libkdbus_payload(s->h, msg, item, &data, ret), 0);
	return data;
}

static bool in_pool(struct side *s, const void *data)
{
	size_t size;
	const char *pool = libkdbus_pool(s->h, &size);

	return (const char *)data >= pool && (const char *)data < pool + size;
}

/* All buffers that this side can write: to the daemon, and to the other one. */
static void scribble_in(struct lane_channel *ch)
{
	unsigned int i;

	for (i = 0; i < LANE_BULK_MAX; i++)
		if (ch->out[i].map)
			memset(ch->out[i].map, 0xee, ch->out[i].size);
}

static void scribble(struct side *s)
{
	struct user *u = to_user(s->h);
	struct peer *p = peer_find(u, s->peer);

	scribble_in(&u->daemon.channel);
	if (p)
		scribble_in(&p->channel);
}

/* The other side changes its buffers now, between RECV and the first look at the payload. */
static void check_big(struct side *s, const unsigned char *data, bool direct)
{
	companion_tell(&s->other, 1);
	assert_int_equal(companion_hear(&s->other), 1);
	if (s->equal && direct && !in_pool(s, data)) {
		/* Such a message is read where its sender can still change it. */
		assert_int_equal(data[0], 0xee);
		s->in_place++;
		return;
	}
	if (direct)
		assert_true(in_pool(s, data));
	assert_int_not_equal(data[0], data[1]);
}

static void receive_round(struct side *s, unsigned int round)
{
	const struct kdbus_msg *msg = fixture_await(s->h);
	const struct kdbus_item *item;
	bool direct = came_directly(msg);
	const unsigned char *data;
	size_t size, i;

	assert_int_equal(msg->cookie, round + 1);
	check_sender(s, msg);
	data = payload_of(s, msg, &size);
	assert_int_equal(size, size_of_round(round));
	if (size == BIG)
		check_big(s, data, direct);
	for (i = 0; i < size && (size != BIG || in_pool(s, data) || !direct); i++)
		if (data[i] != pattern(round, i))
			fail_msg("round %u: byte %zu is not what was sent", round, i);
	item = fixture_item(msg, KDBUS_ITEM_FDS);
	assert_int_equal(item != NULL, round % 8 == 5);
	if (item)
		close(item->fds[0]);
	s->direct += direct;
	s->relayed += !direct;
	libkdbus_done(s->h, msg);
}

/* What the receiver of a big message wants: see check_big(). */
static void scribble_when_told(struct side *s, unsigned int round)
{
	if (size_of_round(round) != BIG)
		return;
	assert_int_equal(companion_hear(&s->other), 1);
	scribble(s);
	companion_tell(&s->other, 1);
}

/* One message each way. Returns whether both sides have had direct ones. */
static bool play_round(struct side *s, unsigned int round)
{
	if (s->begins) {
		send_round(s, round);
		scribble_when_told(s, round);
		receive_round(s, round);
	} else {
		receive_round(s, round);
		send_round(s, round);
		scribble_when_told(s, round);
	}
	companion_tell(&s->other, s->direct > 0);
	return companion_hear(&s->other) && s->direct;
}

static void play(struct side *s)
{
	unsigned int round, left = ROUNDS;

	/* The daemon may put the introduction off, for seconds at most. */
	for (round = 0; left; round++)
		if (play_round(s, round))
			left--;
	assert_true(s->relayed > 0);
	assert_int_equal(s->in_place > 0, s->equal);
}

/* ---- attacks ---- */

/* The one file that others may write is had by those of equal authority alone (lane/alarm.h). */
static const char *attack_file(const struct side *s, const struct grabbed *file)
{
	if (!s->equal || !strstr(file->name, "kdbus-alarm"))
		return grab_attack(file);
	return grab_resize(file);
}

static unsigned int attack_files(const struct side *s)
{
	const struct grabbed *files;
	unsigned int n, i, foreign = 0;
	const char *possible;

	files = grab_files(&n);
	for (i = 0; i < n; i++) {
		assert_int_not_equal(files[i].inode, s->peer_pool);
		if (files[i].own)
			continue;
		foreign++;
		possible = attack_file(s, &files[i]);
		if (possible)
			fail_msg("%s: it is possible to %s", files[i].name, possible);
	}
	return foreign;
}

static void assert_not_writable(const void *map, size_t size)
{
	assert_non_null(map);
	assert_int_equal(mprotect((void *)map, size, PROT_READ | PROT_WRITE), -1);
	assert_int_equal(errno, EACCES);
}

/* Of the mappings that the library has made itself. */
static void attack_maps(struct side *s)
{
	struct user *u = to_user(s->h);
	struct peer *p = peer_find(u, s->peer);
	unsigned int i, buffers = 0;

	assert_non_null(p);
	assert_not_writable(u->page, sizeof(*u->page));
	assert_not_writable(u->daemon.channel.peer, u->daemon.channel.peer_size);
	assert_not_writable(p->channel.peer, p->channel.peer_size);
	for (i = 0; i < LANE_BULK_MAX; i++)
		if (p->channel.in[i].map) {
			assert_not_writable(p->channel.in[i].map, p->channel.in[i].size);
			buffers++;
		}
	assert_true(buffers > 0);
}

/* What the kernel keeps apart, as long as nothing of ours opens it up. */
static void attack_process(const struct side *s)
{
	const char *const files[] = { "fd", "mem", "maps", "map_files" };
	struct iovec local = { s->payload, 8 }, remote = { s->payload, 8 };
	char path[64];
	unsigned int i;

	for (i = 0; i < sizeof(files) / sizeof(*files); i++) {
		snprintf(path, sizeof(path), "/proc/%d/%s/", s->peer_pid, files[i]);
		if (i == 1 || i == 2)
			path[strlen(path) - 1] = '\0';
		assert_int_equal(open(path, O_RDONLY | O_CLOEXEC), -1);
	}
	assert_int_equal(process_vm_readv(s->peer_pid, &local, 1, &remote, 1, 0), -1);
	assert_int_equal(process_vm_writev(s->peer_pid, &local, 1, &remote, 1, 0), -1);
}

/* The nodes belong to others: nothing can be put in their place, or taken away. */
static void attack_domain(const struct side *s)
{
	assert_int_equal(unlink(FIXTURE_CONTROL), -1);
	assert_int_equal(unlink(s->f->path), -1);
	assert_int_equal(rename(s->f->path, "mine"), -1);
	assert_int_equal(mkdir("mine", 0755), -1);
	assert_int_equal(chmod(s->f->path, 0666), -1);
	assert_int_equal(symlink("/", "mine"), -1);
}

static void attack(struct side *s)
{
	/* The daemon's lane and page, the other's lane and a buffer at least. */
	assert_true(attack_files(s) >= 4);
	attack_maps(s);
	attack_domain(s);
	if (s->sees_pid && !s->equal)
		attack_process(s);
}

/* ---- the two ---- */

static uint64_t pool_inode(struct side *s)
{
	struct stat st;

	assert_int_equal(fstat(to_user(s->h)->pool_fd, &st), 0);
	return st.st_ino;
}

static void get_acquainted(struct side *s)
{
	s->h = fixture_connect(s->f);
	assert_int_equal(libkdbus_acquire(s->h, name_of(s->begins), 0, NULL), 0);
	companion_tell(&s->other, fixture_id(s->h));
	companion_tell(&s->other, (uint64_t)getpid());
	companion_tell(&s->other, pool_inode(s));
	s->peer = companion_hear(&s->other);
	s->peer_pid = (pid_t)companion_hear(&s->other);
	s->peer_pool = companion_hear(&s->other);
	s->payload = malloc(BIG);
	assert_non_null(s->payload);
}

static int take_part(struct side *s)
{
	grab_forget();
	get_acquainted(s);
	play(s);
	companion_meet(&s->other);
	attack(s);
	companion_meet(&s->other);
	/* Whatever the other has tried, all goes on. */
	play_round(s, 3);
	play_round(s, 4);
	companion_meet(&s->other);
	libkdbus_close(s->h);
	free(s->payload);
	return 0;
}

static bool write_map(const char *path, unsigned int id)
{
	char map[32];
	int fd = open(path, O_WRONLY | O_CLOEXEC), n = snprintf(map, sizeof(map), "0 %u 1", id);
	bool ok = fd >= 0 && write(fd, map, (size_t)n) == n;

	if (fd >= 0)
		close(fd);
	return ok;
}

/* As root of a user namespace of its own, the first process of a pid namespace. */
static int take_part_inside(struct side *s)
{
	int fd, status;
	pid_t pid;

	/* After a change of user /proc/self belongs to root until exec, or until this. */
	if (prctl(PR_SET_DUMPABLE, 1) < 0 ||
	    unshare(CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS) < 0)
		return 77;
	fd = open("/proc/self/setgroups", O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, "deny", 4) != 4 || !write_map("/proc/self/uid_map", s->id) ||
	    !write_map("/proc/self/gid_map", s->id))
		return 77;
	close(fd);
	pid = fork();
	if (pid == 0)
		_exit(take_part(s));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int run_side(struct companion *self, void *arg)
{
	struct side *s = arg;

	(void)self;
	close(s->end_of_other);
	return s->enters ? take_part_inside(s) : take_part(s);
}

static void play_together(void **state, struct side *a, struct side *b)
{
	struct companion first, second;
	struct libkdbus *holders[2];
	int pair[2], r, ra, rb, i;

	FIXTURE_NEEDS_ROOT();
	a->f = b->f = *state;
	a->begins = true;
	for (i = 0; i < 2; i++) {
		holders[i] = fixture_special(*state, KDBUS_HELLO_POLICY_HOLDER, &both_names[2 * i],
					     2, &r);
		assert_int_equal(r, 0);
	}
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	a->other.sock = b->end_of_other = pair[0];
	b->other.sock = a->end_of_other = pair[1];
	companion_start(&first, a->id, run_side, a);
	companion_start(&second, b->id, run_side, b);
	/* If one ends early the other one hears it. */
	close(pair[0]);
	close(pair[1]);
	rb = companion_end(&second);
	ra = companion_end(&first);
	libkdbus_close(holders[0]);
	libkdbus_close(holders[1]);
	if (rb == 77) {
		print_message("# skipped: no user, pid and mount namespaces for ordinary users\n");
		return;
	}
	assert_int_equal(ra, 0);
	assert_int_equal(rb, 0);
}

static void two_users(void **state)
{
	struct side a = { .id = USER_A, .sees_uid = USER_B, .sees_pid = true };
	struct side b = { .id = USER_B, .sees_uid = USER_A, .sees_pid = true };

	play_together(state, &a, &b);
}

/* The same with nothing between the two: what is copied above is read in place here. */
static void one_user(void **state)
{
	struct side a = { .id = USER_A, .sees_uid = USER_A, .sees_pid = true, .equal = true };
	struct side b = a;

	play_together(state, &a, &b);
}

static void two_users_in_two_namespaces(void **state)
{
	struct side a = { .id = USER_A, .sees_uid = USER_B, .sees_pid = true };
	struct side b = { .id = USER_B, .sees_uid = OVERFLOWN, .enters = true };

	play_together(state, &a, &b);
}

/* Root inside is the same user outside: equal ids, unequal authority. */
static void one_user_in_two_namespaces(void **state)
{
	struct side a = { .id = USER_A, .sees_uid = USER_A, .sees_pid = true };
	struct side b = { .id = USER_A, .sees_uid = 0, .enters = true };

	play_together(state, &a, &b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FIXTURE_TEST(two_users),
		FIXTURE_TEST(one_user),
		FIXTURE_TEST(two_users_in_two_namespaces),
		FIXTURE_TEST(one_user_in_two_namespaces),
	};

	return FIXTURE_RUN(tests);
}
