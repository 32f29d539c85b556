// SPDX-License-Identifier: LGPL-2.1-or-later
/* One life of the torture test: see torture.h. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "helper.h"
#include "torture.h"

#define CALLS_MAX   64
#define REPLIES_MAX 4096
#define PAYLOAD_MAX (200u << 10)
#define FOREVER_NS  600000000000ULL /* a call that runs into this has been forgotten */

enum kind {
	PLAIN,
	CALL,
	SYNC_CALL,
	REPLY,
	SYNC_REPLY,
	SIGNAL
};

struct head {
	uint32_t life;
	uint32_t kind;
	uint64_t all;
	uint32_t unicast;
	uint32_t broadcast;
	uint32_t size;
	uint32_t by_name;
};

struct seen {
	uint64_t all[2]; /* by id, by name */
	uint32_t unicast;
	uint32_t broadcast;
	uint32_t forgone; /* replies that may have been thrown away */
};

struct reply {
	uint64_t to;
	uint64_t cookie;
	uint32_t slot;
	uint32_t kind;
};

struct worker {
	struct shared *shared;
	struct life *me;
	unsigned int life, slot;
	struct libkdbus *h;
	uint64_t all;
	uint64_t cookie;
	uint64_t calls[CALLS_MAX];
	unsigned int n_calls;
	struct reply replies[REPLIES_MAX];
	unsigned int n_replies;
	uint64_t lost, gaps;
	unsigned int random;
	struct seen seen[LIVES_MAX];
	_Alignas(8) unsigned char payload[PAYLOAD_MAX];
};

#define fail(w, ...) fail_at(w, __LINE__, __VA_ARGS__)

static void __attribute__((format(printf, 3, 4), noreturn))
fail_at(struct worker *w, int line, const char *format, ...)
{
	char text[256];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	fprintf(stderr, "# life %u (slot %u, pid %d) line %d: %s\n", w->life, w->slot, getpid(),
		line, text);
	atomic_store(&w->shared->failed, true);
	_exit(1);
}

static unsigned int draw(struct worker *w, unsigned int n)
{
	w->random = w->random * 1103515245u + 12345u;
	return (w->random >> 8) % n;
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ULL + (uint64_t)ts.tv_nsec;
}

/* ---- sending ---- */

static unsigned char pattern(uint64_t all, size_t i)
{
	return (unsigned char)(all * 7 + i * 13 + (i >> 8));
}

static void fill(struct worker *w, uint64_t all, uint32_t size)
{
	uint32_t i;

	for (i = sizeof(struct head); i < size; i++)
		w->payload[i] = pattern(all, i);
}

static uint32_t choose_size(struct worker *w)
{
	switch (draw(w, 16)) {
	case 0:
		return sizeof(struct head) + draw(w, PAYLOAD_MAX - sizeof(struct head));
	case 1:
	case 2:
		return sizeof(struct head) + draw(w, 20000);
	default:
		return sizeof(struct head) + draw(w, 300);
	}
}

struct letter {
	uint64_t dst;
	const char *name;
	uint32_t slot;
	enum kind kind;
	uint64_t reply;
};

static int sealed(struct worker *w, uint32_t size)
{
	int fd = memfd_create("torture", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0 || write(fd, w->payload, size) != (ssize_t)size || libkdbus_memfd_seal(fd) < 0)
		fail(w, "memfd: %s", strerror(errno));
	return fd;
}

static void put_payload(struct worker *w, struct libkdbus_builder *b, const struct letter *l,
			uint32_t size, int *memfd, int *passed)
{
	bool files = l->kind == PLAIN || l->kind == CALL;

	if (files && draw(w, 10) == 0) {
		*memfd = sealed(w, size);
		libkdbus_build_memfd(b, *memfd, 0, size);
	} else {
		libkdbus_build_vec(b, w->payload, size);
	}
	if (files && draw(w, 20) == 0) {
		*passed = open("/dev/null", O_RDONLY | O_CLOEXEC);
		libkdbus_build_fds(b, passed, 1);
	}
}

static void set_head(struct worker *w, const struct letter *l, uint32_t size)
{
	struct life *me = w->me;
	struct head head = { .life = w->life,
			     .kind = l->kind,
			     .all = w->all + 1,
			     .by_name = l->name != NULL,
			     .size = size };

	if (l->kind == SIGNAL)
		head.broadcast = atomic_load(&me->broadcasts) + 1;
	else
		head.unicast = atomic_load(&me->accepted[l->slot]) + 1;
	memcpy(w->payload, &head, sizeof(head));
	fill(w, head.all, size);
}

static void address(struct worker *w, const struct letter *l, struct kdbus_msg *msg)
{
	msg->dst_id = l->dst;
	msg->payload_type = KDBUS_PAYLOAD_DBUS;
	msg->cookie = ++w->cookie;
	msg->cookie_reply = l->reply;
	if (l->kind == CALL || l->kind == SYNC_CALL) {
		msg->flags = KDBUS_MSG_EXPECT_REPLY;
		msg->timeout_ns = now_ns() + FOREVER_NS;
	}
	if (l->kind == SIGNAL)
		msg->flags = KDBUS_MSG_SIGNAL;
}

static void accept_sent(struct worker *w, const struct letter *l)
{
	w->all++;
	if (l->kind == SIGNAL)
		atomic_fetch_add(&w->me->broadcasts, 1);
	else
		atomic_fetch_add(&w->me->accepted[l->slot], 1);
	if (l->kind != SIGNAL && !l->reply)
		atomic_fetch_add(&w->shared->waiting[l->slot], 1);
}

/*
 * Did the message go out, whatever became of the call? A sync call ends with EPIPE when the peer
 * has died, before or after it took the message.
 */
static bool went_out(const struct letter *l, int r)
{
	return r == 0 || (l->kind == SYNC_CALL && r == -EPIPE);
}

/* No room: for the message at the receiver, or for the reply here. */
static bool is_unsure(const struct letter *l, int r)
{
	return l->kind == SYNC_CALL && (r == -ENOBUFS || r == -EXFULL);
}

/* Returns what SEND returned. */
static int post(struct worker *w, const struct letter *l, const struct kdbus_msg **ret_reply)
{
	struct kdbus_cmd_send cmd = { .size = sizeof(cmd) };
	struct libkdbus_builder b;
	int memfd = -1, passed = -1, r;
	uint32_t size = choose_size(w);
	void *built;

	libkdbus_build(&b, sizeof(struct kdbus_msg), NULL, 0);
	set_head(w, l, size);
	if (l->name)
		libkdbus_build_string(&b, KDBUS_ITEM_DST_NAME, l->name);
	if (l->kind == SIGNAL)
		libkdbus_build_item(&b, KDBUS_ITEM_BLOOM_FILTER, NULL, sizeof(uint64_t) + 64);
	put_payload(w, &b, l, size, &memfd, &passed);
	r = libkdbus_build_end(&b, &built);
	if (r < 0)
		fail(w, "building: %d", r);
	address(w, l, built);
	cmd.msg_address = (uintptr_t)built;
	if (ret_reply)
		r = libkdbus_call(w->h, built, -1, ret_reply);
	else
		r = libkdbus_send(w->h, &cmd);
	if (went_out(l, r) || is_unsure(l, r))
		accept_sent(w, l);
	if (is_unsure(l, r))
		atomic_fetch_add(&w->me->unsure[l->slot], 1);
	libkdbus_build_clear(&b);
	if (memfd >= 0)
		close(memfd);
	if (passed >= 0)
		close(passed);
	return r;
}

/* ---- receiving ---- */

static const void *payload_of(struct worker *w, const struct kdbus_msg *msg, size_t *ret_size)
{
	const struct kdbus_item *item = NULL;
	const void *data;

	while ((item = libkdbus_item_next(msg, sizeof(*msg), item))) {
		if (item->type != KDBUS_ITEM_PAYLOAD_OFF && item->type != KDBUS_ITEM_PAYLOAD_MEMFD)
			continue;
		if (libkdbus_payload(w->h, msg, item, &data, ret_size) < 0)
			fail(w, "payload cannot be reached");
		return data;
	}
	fail(w, "a message without payload");
}

static void close_files(const struct kdbus_msg *msg)
{
	const struct kdbus_item *item = NULL;
	size_t i, n;

	while ((item = libkdbus_item_next(msg, sizeof(*msg), item))) {
		if (item->type == KDBUS_ITEM_PAYLOAD_MEMFD)
			close(item->memfd.fd);
		if (item->type != KDBUS_ITEM_FDS)
			continue;
		n = (item->size - offsetof(struct kdbus_item, fds)) / sizeof(int);
		for (i = 0; i < n; i++)
			close(item->fds[i]);
	}
}

static void check_bytes(struct worker *w, const struct head *head, const unsigned char *data,
			size_t size)
{
	size_t i;

	if (head->life >= LIVES_MAX || head->size != size)
		fail(w, "payload of life %u has %zu bytes, not %u", head->life, size, head->size);
	for (i = sizeof(*head); i < size; i++)
		if (data[i] != pattern(head->all, i))
			fail(w, "byte %zu of %zu from life %u is wrong", i, size, head->life);
}

/*
 * Only the reply to a synchronous call may overtake. What was sent to a name whose owner died
 * comes later than what was sent to its next owner otherwise: these are two destinations.
 */
static void check_order(struct worker *w, const struct head *head, bool overtakes)
{
	struct seen *s = &w->seen[head->life];
	unsigned int way = SURVIVES(w->slot) ? 0 : head->by_name & 1;

	if (!overtakes) {
		if (head->all <= s->all[way])
			fail(w, "message %llu of life %u came after %llu (kind %u, by name %u)",
			     (unsigned long long)head->all, head->life,
			     (unsigned long long)s->all[way], head->kind, way);
		s->all[way] = head->all;
	}
	if (head->kind == SIGNAL) {
		if (head->broadcast <= s->broadcast)
			fail(w, "broadcast %u of life %u came after %u", head->broadcast,
			     head->life, s->broadcast);
		w->gaps += s->broadcast ? head->broadcast - s->broadcast - 1 : 0;
		s->broadcast = head->broadcast;
	}
}

/* A reply that overtakes leaves a gap that is filled later; so unicasts are counted. */
static void check(struct worker *w, const struct kdbus_msg *msg, bool overtakes,
		  struct head *ret_head)
{
	size_t size = 0;
	const unsigned char *data = payload_of(w, msg, &size);

	if (size < sizeof(*ret_head))
		fail(w, "payload of %zu bytes", size);
	memcpy(ret_head, data, sizeof(*ret_head));
	check_bytes(w, ret_head, data, size);
	if (msg->src_id != atomic_load(&w->shared->lives[ret_head->life].id))
		fail(w, "life %u is said to be %llu", ret_head->life,
		     (unsigned long long)msg->src_id);
	check_order(w, ret_head, overtakes);
	if (ret_head->kind != SIGNAL)
		w->seen[ret_head->life].unicast++;
}

static void conclude(struct worker *w, uint64_t cookie)
{
	unsigned int i;

	for (i = 0; i < w->n_calls; i++) {
		if (w->calls[i] == cookie) {
			w->calls[i] = w->calls[--w->n_calls];
			return;
		}
	}
	fail(w, "an outcome for call %llu, which has none to come", (unsigned long long)cookie);
}

static void on_notice(struct worker *w, const struct kdbus_msg *msg)
{
	if (msg->items[0].type != KDBUS_ITEM_REPLY_DEAD)
		fail(w, "notification %llx", (unsigned long long)msg->items[0].type);
	conclude(w, msg->cookie_reply);
	atomic_fetch_add(&w->shared->dead, 1);
}

static void owe(struct worker *w, const struct kdbus_msg *msg, const struct head *head)
{
	if (w->n_replies == REPLIES_MAX)
		fail(w, "too many replies wait");
	w->replies[w->n_replies++] =
		(struct reply){ .to = msg->src_id,
				.cookie = msg->cookie,
				.slot = w->shared->lives[head->life].slot,
				.kind = head->kind == SYNC_CALL ? SYNC_REPLY : REPLY };
}

static void on_message(struct worker *w, const struct kdbus_msg *msg)
{
	struct head head;

	if (!msg->src_id) {
		on_notice(w, msg);
		return;
	}
	check(w, msg, false, &head);
	if (head.kind != SIGNAL && !msg->cookie_reply)
		atomic_fetch_sub(&w->shared->waiting[w->slot], 1);
	if (msg->flags & KDBUS_MSG_EXPECT_REPLY) {
		owe(w, msg, &head);
	} else if (msg->cookie_reply) {
		conclude(w, msg->cookie_reply);
		atomic_fetch_add(&w->shared->replied, 1);
	}
}

/* Returns whether there was a message. */
static bool receive(struct worker *w)
{
	struct kdbus_cmd_recv cmd = { .size = sizeof(cmd) };
	const struct kdbus_msg *msg;
	int r = libkdbus_recv(w->h, &cmd);

	if (r < 0 && r != -EAGAIN)
		fail(w, "RECV: %d", r);
	w->lost += cmd.dropped_msgs;
	if (r < 0)
		return false;
	msg = (const void *)((const char *)libkdbus_pool(w->h, NULL) + cmd.msg.offset);
	on_message(w, msg);
	close_files(msg);
	r = libkdbus_done(w->h, msg);
	if (r < 0)
		fail(w, "FREE: %d", r);
	return true;
}

static bool is_gone(int r)
{
	return r == -ENXIO || r == -EBADSLT || r == -ECONNRESET;
}

/* The caller may be dead by now. */
static void send_replies(struct worker *w)
{
	unsigned int i, left = 0;
	int r;

	for (i = 0; i < w->n_replies; i++) {
		const struct reply *reply = &w->replies[i];
		const struct letter l = { .dst = reply->to,
					  .slot = reply->slot,
					  .kind = reply->kind,
					  .reply = reply->cookie };

		r = post(w, &l, NULL);
		if (r == -ENOBUFS || r == -EXFULL)
			w->replies[left++] = *reply;
		else if (r == -EBADSLT && reply->kind == SYNC_REPLY)
			continue; /* for want of room the caller was told that there is no reply */
		else if (r < 0 && (SURVIVES(reply->slot) || !is_gone(r)))
			fail(w, "reply to %llu in slot %u: %d", (unsigned long long)reply->to,
			     reply->slot, r);
	}
	w->n_replies = left;
}

/* ---- what a worker does ---- */

static const char *name_of(unsigned int slot)
{
	static char name[32];

	snprintf(name, sizeof(name), "test.torture.slot%u", slot);
	return name;
}

static uint64_t id_of(const struct worker *w, unsigned int slot)
{
	return atomic_load(&w->shared->lives[atomic_load(&w->shared->current[slot])].id);
}

static unsigned int other_slot(struct worker *w)
{
	unsigned int slot = draw(w, SLOTS - 1);

	slot += slot >= w->slot;
	/* Before the others are born */
	if (atomic_load(&w->shared->phase) == PHASE_WARM)
		slot |= 1;
	return slot == w->slot ? (slot + 2) % SLOTS : slot;
}

/* Refused because there is no room, or because nobody is there: nothing was sent. */
static bool refused(const struct letter *l, int r)
{
	if (r == -ENOBUFS || r == -EMLINK || r == -EXFULL || r == -EMFILE)
		return true;
	return !SURVIVES(l->slot) && (r == -ENXIO || r == -ESRCH || r == -ECONNRESET);
}

static bool has_room(const struct worker *w, unsigned int slot)
{
	return !w->shared->one_queue || atomic_load(&w->shared->waiting[slot]) < ROOM;
}

static void send_to(struct worker *w, enum kind kind)
{
	struct letter l = { .slot = other_slot(w), .kind = kind };
	int r;

	l.dst = id_of(w, l.slot);
	if (!l.dst || !has_room(w, l.slot))
		return;
	if (draw(w, 3) == 0) {
		l.dst = 0;
		l.name = name_of(l.slot);
	}
	r = post(w, &l, NULL);
	if (r < 0 && !refused(&l, r))
		fail(w, "SEND to slot %u, kind %u: %d", l.slot, kind, r);
	if (r == 0 && kind == CALL)
		w->calls[w->n_calls++] = w->cookie;
}

static void call_sync(struct worker *w, unsigned int slot)
{
	unsigned int life = atomic_load(&w->shared->current[slot]);
	struct letter l = { .slot = slot,
			    .kind = SYNC_CALL,
			    .dst = atomic_load(&w->shared->lives[life].id) };
	const struct kdbus_msg *reply;
	struct head head;
	int r;

	if (!l.dst || !has_room(w, l.slot))
		return;
	r = post(w, &l, &reply);
	if (r < 0) {
		if (!refused(&l, r) && (r != -EPIPE || SURVIVES(l.slot)))
			fail(w, "synchronous call to slot %u: %d", l.slot, r);
		/* The reply may have been there, and had no room. */
		w->seen[life].forgone += is_unsure(&l, r);
		atomic_fetch_add(&w->shared->sync_dead, r == -EPIPE);
		return;
	}
	check(w, reply, true, &head);
	if (head.kind != SYNC_REPLY || reply->cookie_reply != w->cookie)
		fail(w, "reply of kind %u to %llu", head.kind,
		     (unsigned long long)reply->cookie_reply);
	if (libkdbus_done(w->h, reply) < 0)
		fail(w, "FREE of a reply");
	atomic_fetch_add(&w->shared->sync_replied, 1);
}

static void broadcast(struct worker *w)
{
	const struct letter l = { .dst = KDBUS_DST_ID_BROADCAST, .kind = SIGNAL };
	unsigned int slot;
	int r;

	for (slot = 0; slot < SLOTS; slot++)
		if (!has_room(w, slot))
			return;
	r = post(w, &l, NULL);
	if (r < 0 && r != -EXFULL)
		fail(w, "broadcast: %d", r);
}

static void doze(struct worker *w)
{
	int r = libkdbus_wait(w->h, now_ns() + 1000000, -1);

	if (r < 0 && r != -ETIMEDOUT)
		fail(w, "wait: %d", r);
}

static void act(struct worker *w)
{
	unsigned int what = draw(w, 100);

	if (what < 45)
		send_to(w, PLAIN);
	else if (what < 65 && w->n_calls < CALLS_MAX)
		send_to(w, CALL);
	else if (what < 80 && w->slot && id_of(w, what % w->slot))
		call_sync(w, what % w->slot);
	else if (what < 90)
		broadcast(w);
	else
		doze(w);
}

static int phase(const struct worker *w)
{
	if (atomic_load(&w->shared->failed))
		_exit(1);
	return atomic_load(&w->shared->phase);
}

static void serve(struct worker *w, unsigned int max)
{
	while (max-- && receive(w))
		;
	send_replies(w);
}

/* Go on answering until the phase is over. */
static void become_ready(struct worker *w, int in)
{
	atomic_store(&w->me->done, in);
	while (phase(w) == in) {
		serve(w, 64);
		doze(w);
	}
}

/* ---- the phases ---- */

/* Meet the other survivors directly, and do once whatever opens a descriptor for good. */
static void warm_up(struct worker *w)
{
	unsigned int i;

	for (i = 0; i < 2000; i++) {
		serve(w, 64);
		act(w);
	}
	while (w->n_calls || w->n_replies) {
		serve(w, 64);
		doze(w);
	}
	become_ready(w, PHASE_WARM);
}

static void run(struct worker *w)
{
	while (phase(w) == PHASE_RUN) {
		serve(w, 16);
		act(w);
		atomic_fetch_add(&w->me->steps, 1);
	}
}

static void quiet(struct worker *w)
{
	while (w->n_calls || w->n_replies) {
		serve(w, 64);
		doze(w);
		phase(w);
	}
	become_ready(w, PHASE_QUIET);
}

/* Everything that was accepted has come; of a life that was killed, perhaps one more. */
static bool all_here(struct worker *w, bool complain)
{
	unsigned int i, n = atomic_load(&w->shared->n_lives), sent, got, unsure;
	const struct life *l;

	for (i = 0; i < n; i++) {
		l = &w->shared->lives[i];
		sent = atomic_load(&l->accepted[w->slot]);
		unsure = atomic_load(&l->unsure[w->slot]) + w->seen[i].forgone;
		got = w->seen[i].unicast;
		if (got + unsure < sent && complain)
			fprintf(stderr, "# life %u got %u of %u from life %u\n", w->life, got, sent,
				i);
		if (got + unsure < sent)
			return false;
		if (got > sent + atomic_load(&l->over))
			fail(w, "%u messages of life %u, which sent %u", got, i, sent);
	}
	return true;
}

static void check_all(struct worker *w)
{
	unsigned int tries;

	for (tries = 0; !all_here(w, tries == 1000); tries++) {
		if (tries > 1000)
			fail(w, "messages are missing");
		serve(w, 64);
		doze(w);
	}
	if (w->gaps > w->lost)
		fail(w, "%llu broadcasts are missing, and %llu were told",
		     (unsigned long long)w->gaps, (unsigned long long)w->lost);
	atomic_fetch_add(&w->shared->lost, (unsigned int)w->lost);
}

/* Eventfds of a process are not counted: the library keeps up to four for threads to sleep on. */
static bool counts(DIR *dir, const char *name)
{
	char target[64];
	ssize_t n = readlinkat(dirfd(dir), name, target, sizeof(target) - 1);

	target[n < 0 ? 0 : n] = '\0';
	return n > 0 && strcmp(target, "anon_inode:[eventfd]") != 0;
}

unsigned int count_fds(pid_t pid)
{
	struct dirent *e;
	unsigned int n = 0;
	char path[64];
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	dir = opendir(path);
	if (!dir)
		return 0;
	while ((e = readdir(dir)))
		n += e->d_name[0] != '.' && counts(dir, e->d_name);
	closedir(dir);
	return n;
}

unsigned int resident_kb(pid_t pid, const char *what)
{
	unsigned int kb = 0;
	char path[64], line[128];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	f = fopen(path, "re");
	if (!f)
		return 0;
	while (fgets(line, sizeof(line), f))
		if (!strncmp(line, what, strlen(what)) && line[strlen(what)] == ':')
			kb = (unsigned int)strtoul(line + strlen(what) + 1, NULL, 10);
	fclose(f);
	return kb;
}

static void list_fds(void)
{
	char target[128];
	struct dirent *e;
	DIR *dir = opendir("/proc/self/fd");
	ssize_t n;

	while (dir && (e = readdir(dir))) {
		n = readlinkat(dirfd(dir), e->d_name, target, sizeof(target) - 1);
		if (n > 0)
			fprintf(stderr, "# pid %d: %s is %.*s\n", getpid(), e->d_name, (int)n,
				target);
	}
	if (dir)
		closedir(dir);
}

/* Descriptors of those that are gone are closed as soon as their end is taken up. */
static void measure_again(struct worker *w)
{
	unsigned int tries;

	for (tries = 0; tries < 100000 && count_fds(getpid()) > w->me->fds[0]; tries++) {
		serve(w, 64);
		doze(w);
	}
	w->me->fds[1] = count_fds(getpid());
	if (w->me->fds[1] > w->me->fds[0])
		list_fds();
	w->me->memory[1] = resident_kb(getpid(), "RssAnon");
	w->me->shared[1] = resident_kb(getpid(), "RssShmem");
}

/* The life before may not have been noticed to be over: then the name is waited for. */
static void be_born(struct worker *w, const char *bus)
{
	const uint64_t metadata = KDBUS_ATTACH_CREDS | KDBUS_ATTACH_NAMES;
	const struct libkdbus_options options = { .flags = KDBUS_HELLO_ACCEPT_FD,
						  .pool_size = POOL_SIZE,
						  .attach_send = _KDBUS_ATTACH_ALL,
						  .attach_recv = w->life % 2 ? metadata : 0 };
	int r = libkdbus_connect(bus, &options, &w->h);

	if (r < 0)
		fail(w, "connect: %d", r);
	r = helper_match_all(w->h);
	if (r < 0)
		fail(w, "MATCH_ADD: %d", r);
	r = libkdbus_acquire(w->h, name_of(w->slot), KDBUS_NAME_QUEUE, NULL);
	if (r < 0)
		fail(w, "NAME_ACQUIRE: %d", r);
	/* From here on it is written to. */
	atomic_store(&w->me->id, libkdbus_identity(w->h)->id);
}

static void survive_warm_up(struct worker *w)
{
	warm_up(w);
	w->me->fds[0] = count_fds(getpid());
	w->me->memory[0] = resident_kb(getpid(), "RssAnon");
	w->me->shared[0] = resident_kb(getpid(), "RssShmem");
	become_ready(w, PHASE_MEASURE);
}

int worker_run(struct shared *shared, unsigned int life, const char *bus)
{
	struct worker *w = calloc(1, sizeof(*w));

	if (!w)
		return 1;
	w->shared = shared;
	w->life = life;
	w->me = &shared->lives[life];
	w->slot = w->me->slot;
	w->random = life * 2654435761u + 1;
	be_born(w, bus);
	if (SURVIVES(w->slot))
		survive_warm_up(w);
	run(w);
	quiet(w);
	if (SURVIVES(w->slot))
		check_all(w);
	become_ready(w, PHASE_CHECK);
	if (SURVIVES(w->slot))
		measure_again(w);
	become_ready(w, PHASE_ALONE);
	libkdbus_close(w->h);
	free(w);
	return 0;
}
