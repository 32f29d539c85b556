// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fuzz.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/mman.h>

#define PAGE	4096
#define PAYLOAD 300000

int fuzz_fds[FUZZ_FDS];
struct fuzz_memory *fuzz_memory[FUZZ_THREADS];

static int sealed, plain_file, event, event_is_set;
static uint8_t payload_bytes[PAYLOAD];

static const struct {
	unsigned long nr;
	size_t fixed;
} commands[FUZZ_COMMANDS] = {
	{ KDBUS_CMD_BUS_MAKE, sizeof(struct kdbus_cmd) },
	{ KDBUS_CMD_ENDPOINT_MAKE, sizeof(struct kdbus_cmd) },
	{ KDBUS_CMD_ENDPOINT_UPDATE, sizeof(struct kdbus_cmd) },
	{ KDBUS_CMD_HELLO, sizeof(struct kdbus_cmd_hello) },
	{ KDBUS_CMD_UPDATE, sizeof(struct kdbus_cmd) },
	{ KDBUS_CMD_BYEBYE, sizeof(struct kdbus_cmd) },
	{ KDBUS_CMD_FREE, sizeof(struct kdbus_cmd_free) },
	{ KDBUS_CMD_CONN_INFO, sizeof(struct kdbus_cmd_info) },
	{ KDBUS_CMD_BUS_CREATOR_INFO, sizeof(struct kdbus_cmd_info) },
	{ KDBUS_CMD_LIST, sizeof(struct kdbus_cmd_list) },
	{ KDBUS_CMD_SEND, sizeof(struct kdbus_cmd_send) },
	{ KDBUS_CMD_RECV, sizeof(struct kdbus_cmd_recv) },
	{ KDBUS_CMD_NAME_ACQUIRE, sizeof(struct kdbus_cmd) },
	{ KDBUS_CMD_NAME_RELEASE, sizeof(struct kdbus_cmd) },
	{ KDBUS_CMD_MATCH_ADD, sizeof(struct kdbus_cmd_match) },
	{ KDBUS_CMD_MATCH_REMOVE, sizeof(struct kdbus_cmd_match) },
};

enum {
	BUS_MAKE,
	ENDPOINT_MAKE,
	ENDPOINT_UPDATE,
	HELLO,
	UPDATE,
	BYEBYE,
	FREE,
	CONN_INFO,
	CREATOR_INFO,
	LIST,
	SEND,
	RECV,
	NAME_ACQUIRE,
	NAME_RELEASE,
	MATCH_ADD,
	MATCH_REMOVE,
};

/* ---- chance ---- */

static uint64_t next(struct fuzz *f)
{
	uint64_t z = f->chance += 0x9e3779b97f4a7c15;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
	return z ^ (z >> 31);
}

unsigned int fuzz_below(struct fuzz *f, unsigned int n)
{
	return (next(f) >> 32) % n;
}

/* A number that somebody may have forgotten */
uint64_t fuzz_value(struct fuzz *f)
{
	static const uint64_t values[] = {
		0,	    1,		7,	    8,		15,	    16,	  17,
		24,	    63,		64,	    255,	4095,	    4096, 32760,
		32768,	    32769,	1ULL << 20, 2ULL << 20, 1ULL << 31, ~0U,  1ULL << 32,
		1ULL << 47, 1ULL << 62, 1ULL << 63, ~0ULL - 7,	~0ULL,
	};

	switch (fuzz_below(f, 4)) {
	case 0:
		return next(f);
	case 1:
		return fuzz_below(f, 1024);
	default:
		return values[fuzz_below(f, sizeof(values) / sizeof(values[0]))];
	}
}

int fuzz_fd(struct fuzz *f)
{
	return fuzz_fds[fuzz_below(f, FUZZ_FDS)];
}

static uint64_t some_id(struct fuzz *f)
{
	return fuzz_below(f, 16) ? fuzz_world->ids[fuzz_below(f, FUZZ_IDS)] : fuzz_value(f);
}

static const char *some_name(struct fuzz *f)
{
	static const char *const names[] = { "a.a", "a.b", "a.c", "a.a", "a.*", "a", "" };

	return names[fuzz_below(f, fuzz_below(f, 8) ? 4 : 7)];
}

static int some_file(struct fuzz *f)
{
	switch (fuzz_below(f, 6)) {
	case 0:
		return fuzz_fd(f);
	case 1:
		return (int)fuzz_value(f);
	case 2:
		return event;
	default:
		return plain_file;
	}
}

/* ---- memory ---- */

struct fuzz_memory *fuzz_memory_make(void)
{
	size_t size = (sizeof(struct fuzz_memory) + PAGE - 1) / PAGE * PAGE;
	char *at =
		mmap(NULL, size + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(at != MAP_FAILED);
	EQ(mprotect(at + size, PAGE, PROT_NONE), 0);
	return (struct fuzz_memory *)(at + size - sizeof(struct fuzz_memory));
}

void fuzz_open_files(void)
{
	sealed = sealed_memfd(payload_bytes, 10000);
	plain_file = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
	event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	event_is_set = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
}

/* ---- items ---- */

static void put_payload(struct fuzz *f, struct buf *b)
{
	static const uint64_t sizes[] = { 1, 8, 64, 500, 5000, PAYLOAD };
	struct kdbus_vec vec = { .size = sizes[fuzz_below(f, 6)],
				 .address = (uintptr_t)payload_bytes };
	struct kdbus_memfd memfd = { .size = 10000, .fd = sealed };

	if (!fuzz_below(f, 4)) {
		if (!fuzz_below(f, 8))
			memfd.fd = some_file(f);
		memfd.start = fuzz_below(f, 4) ? 0 : fuzz_value(f);
		put(b, KDBUS_ITEM_PAYLOAD_MEMFD, &memfd, sizeof(memfd));
		return;
	}
	if (!fuzz_below(f, 16))
		vec.address = fuzz_below(f, 2) ? 0 : fuzz_value(f);
	put(b, KDBUS_ITEM_PAYLOAD_VEC, &vec, sizeof(vec));
}

static void put_files(struct fuzz *f, struct buf *b)
{
	unsigned int n = 1 + fuzz_below(f, fuzz_below(f, 8) ? 3 : 20);
	int *fds = put(b, KDBUS_ITEM_FDS, NULL, n * sizeof(int));

	while (n--)
		fds[n] = fuzz_below(f, 8) ? plain_file : some_file(f);
}

static void put_rule(struct fuzz *f, struct buf *b)
{
	struct {
		struct kdbus_notify_id_change ids[2];
		char name[8];
	} change = { { { ANY, 0 }, { ANY, 0 } }, "a.a" };
	uint64_t mask[2 * BLOOM / 8] = { 0 }, any = fuzz_below(f, 2) ? ANY : some_id(f);

	switch (fuzz_below(f, 6)) {
	case 0:
		put(b, KDBUS_ITEM_NAME_ADD + fuzz_below(f, 3), &change, 36);
		break;
	case 1:
		put(b, KDBUS_ITEM_ID_ADD + fuzz_below(f, 2), change.ids, 16);
		break;
	case 2:
		put(b, KDBUS_ITEM_BLOOM_MASK, mask, (1 + fuzz_below(f, 2)) * BLOOM);
		break;
	case 3:
		put_str(b, KDBUS_ITEM_NAME, some_name(f));
		break;
	case 4:
		put(b, KDBUS_ITEM_DST_ID, &any, 8);
		break;
	default:
		put(b, KDBUS_ITEM_ID, &any, 8);
	}
}

static void put_policy(struct fuzz *f, struct buf *b)
{
	put_str(b, KDBUS_ITEM_NAME, some_name(f));
	for (unsigned int n = fuzz_below(f, 4); n; n--)
		put_access(b, 1 + fuzz_below(f, 3), fuzz_below(f, 2), fuzz_below(f, 3));
}

/* Of any type, with anything in it */
static void put_any(struct fuzz *f, struct buf *b)
{
	static const uint64_t bases[] = { 0, 0x1000, 0x2000, 0x8000 };
	uint64_t type = bases[fuzz_below(f, 4)] + fuzz_below(f, 18), *words;
	size_t size = fuzz_below(f, fuzz_below(f, 8) ? 72 : 2000);

	words = put(b, type, NULL, size);
	for (size_t i = 0; i < size / 8; i++)
		words[i] = fuzz_value(f);
}

/* ---- commands ---- */

static void make_message(struct fuzz *f, struct buf *m, __u64 *ret_flags)
{
	uint8_t filter[BLOOM] = { 0 };
	uint64_t dst = some_id(f);
	bool broadcast = !fuzz_below(f, 6), by_name = !fuzz_below(f, 4);

	*ret_flags = 0;
	msg_buf(m, broadcast ? KDBUS_DST_ID_BROADCAST : by_name ? 0 : dst, fuzz_below(f, 5));
	m->msg.priority = (int64_t)fuzz_below(f, 5) - 2;
	if (broadcast) {
		m->msg.flags = KDBUS_MSG_SIGNAL;
		put_filter(m, filter, fuzz_below(f, 3));
	} else if (!fuzz_below(f, 3)) {
		m->msg.flags = KDBUS_MSG_EXPECT_REPLY;
		m->msg.timeout_ns = now_ns() + fuzz_below(f, 10) * 1000000;
		if (fuzz_below(f, 2))
			*ret_flags = KDBUS_SEND_SYNC_REPLY;
	} else if (fuzz_below(f, 2)) {
		m->msg.cookie_reply = fuzz_below(f, 5);
	}
	if (by_name)
		put_str(m, KDBUS_ITEM_DST_NAME, some_name(f));
	for (unsigned int n = fuzz_below(f, 4); n; n--)
		put_payload(f, m);
	if (!broadcast && !fuzz_below(f, 4))
		put_files(f, m);
}

static void make_hello(struct fuzz *f, struct buf *b)
{
	static const uint64_t kinds[] = {
		0, 0, 0, 0, KDBUS_HELLO_ACTIVATOR, KDBUS_HELLO_POLICY_HOLDER, KDBUS_HELLO_MONITOR
	};
	uint64_t kind = kinds[fuzz_below(f, 7)];

	b->hello.flags = kind | fuzz_below(f, 2);
	b->hello.attach_flags_send = fuzz_below(f, 2) ? ALL : fuzz_value(f);
	b->hello.attach_flags_recv = fuzz_below(f, 2) ? ALL : fuzz_value(f);
	b->hello.pool_size = (uint64_t)PAGE << fuzz_below(f, 13);
	if (kind == KDBUS_HELLO_ACTIVATOR || kind == KDBUS_HELLO_POLICY_HOLDER)
		put_policy(f, b);
	if (!fuzz_below(f, 4))
		put_str(b, KDBUS_ITEM_CONN_DESCRIPTION, "fuzz");
}

static void make_bus_make(struct fuzz *f, struct buf *b)
{
	struct kdbus_bloom_parameter bloom = { BLOOM, 1 };
	char name[32];

	snprintf(name, sizeof(name), "0-fuzz-%u", fuzz_below(f, 3));
	b->cmd.flags = fuzz_below(f, 4);
	put_str(b, KDBUS_ITEM_MAKE_NAME, name);
	put(b, KDBUS_ITEM_BLOOM_PARAMETER, &bloom, sizeof(bloom));
	if (fuzz_below(f, 2))
		put_u64(b, KDBUS_ITEM_ATTACH_FLAGS_SEND, fuzz_below(f, 2) ? ALL : 0);
}

static void make_endpoint(struct fuzz *f, struct buf *b)
{
	char name[32];

	snprintf(name, sizeof(name), "0-fuzz-%u", fuzz_below(f, 3));
	b->cmd.flags = fuzz_below(f, 4);
	put_str(b, KDBUS_ITEM_MAKE_NAME, name);
}

static void make_send(struct fuzz *f, struct buf *b)
{
	make_message(f, &f->message, &b->send.flags);
	if (b->send.flags && fuzz_below(f, 2)) {
		int fd = fuzz_below(f, 2) ? event : event_is_set;

		put(b, KDBUS_ITEM_CANCEL_FD, fuzz_below(f, 8) ? &fd : &fuzz_fds[0], sizeof(fd));
	}
}

static void make_update(struct fuzz *f, struct buf *b)
{
	if (fuzz_below(f, 2))
		put_policy(f, b);
	else
		put_u64(b, KDBUS_ITEM_ATTACH_FLAGS_SEND + fuzz_below(f, 2),
			fuzz_below(f, 2) ? ALL : next(f) & ALL);
}

static void make(struct fuzz *f, struct buf *b, unsigned int which)
{
	start(b, commands[which].fixed);
	switch (which) {
	case BUS_MAKE:
		make_bus_make(f, b);
		break;
	case ENDPOINT_MAKE:
		make_endpoint(f, b);
		break;
	case ENDPOINT_UPDATE:
		put_policy(f, b);
		break;
	case HELLO:
		make_hello(f, b);
		break;
	case UPDATE:
		make_update(f, b);
		break;
	case FREE:
		b->free.offset = fuzz_below(f, 64) * 8;
		break;
	case CONN_INFO:
		b->info.id = some_id(f);
		b->info.attach_flags = fuzz_below(f, 2) ? ALL : fuzz_value(f);
		if (!fuzz_below(f, 3)) {
			b->info.id = 0;
			put_str(b, KDBUS_ITEM_NAME, some_name(f));
		}
		break;
	case CREATOR_INFO:
		b->info.attach_flags = ALL;
		break;
	case LIST:
		b->list.flags = fuzz_below(f, 16);
		break;
	case SEND:
		make_send(f, b);
		break;
	case RECV:
		b->recv.flags = fuzz_below(f, 8) ? 0 : fuzz_below(f, 8);
		break;
	case NAME_ACQUIRE:
		b->cmd.flags = fuzz_below(f, 8);
		put_str(b, KDBUS_ITEM_NAME, some_name(f));
		break;
	case NAME_RELEASE:
		put_str(b, KDBUS_ITEM_NAME, some_name(f));
		break;
	case MATCH_ADD:
		b->match.flags = fuzz_below(f, 2);
		b->match.cookie = fuzz_below(f, 5);
		put_rule(f, b);
		break;
	case MATCH_REMOVE:
		b->match.cookie = fuzz_below(f, 5);
		break;
	}
}

/* ---- spoiling ---- */

static void spoil(struct fuzz *f, struct buf *b)
{
	uint64_t size = b->cmd.size < sizeof(*b) ? b->cmd.size : sizeof(*b);
	unsigned int words = size / 8 ? (unsigned int)(size / 8) : 1;

	switch (fuzz_below(f, 6)) {
	case 0:
		b->words[fuzz_below(f, words)] = fuzz_value(f);
		break;
	case 1:
		b->words[fuzz_below(f, words)] ^= 1ULL << fuzz_below(f, 64);
		break;
	case 2:
		b->cmd.size += fuzz_below(f, 33) - 16;
		break;
	case 3:
		b->cmd.flags = fuzz_value(f);
		break;
	case 4:
		b->cmd.flags |= KDBUS_FLAG_NEGOTIATE;
		break;
	default:
		if (size + 2100 < sizeof(*b))
			put_any(f, b);
	}
}

/* Put it @where; or where its end, or nothing at all, is behind it. */
static void *place(struct fuzz *f, const struct buf *b, struct buf *where, bool well)
{
	size_t size = b->cmd.size < sizeof(*b) ? b->cmd.size : sizeof(*b);
	char *at = (char *)where;

	switch (well ? 2 : fuzz_below(f, 16)) {
	case 0:
		return (void *)(uintptr_t)fuzz_value(f);
	case 1:
		/* a message that lies there is lost */
		at = (char *)(&f->memory->message + 1) - size;
		break;
	case 2:
		break;
	case 3:
		at += fuzz_below(f, 8);
		size -= size < 8 ? size : 8;
		break;
	}
	memcpy(at, b, size);
	return at;
}

/* What was added is removed sometimes; removing at random seldom finds something. */
static void undo(struct fuzz *f, int fd, unsigned int which, struct buf *b)
{
	unsigned int other = which == NAME_ACQUIRE ? NAME_RELEASE : MATCH_REMOVE;

	if (fuzz_below(f, 3))
		return;
	b->cmd.flags = 0;
	if (other == MATCH_REMOVE)
		b->cmd.size = commands[other].fixed;
	if (cmd(fd, commands[other].nr, b) == 0)
		__atomic_add_fetch(&fuzz_world->good[other], 1, __ATOMIC_SEQ_CST);
}

/* The offset in a result is freed most often, or the pool is full soon. */
static void finish(struct fuzz *f, int fd, unsigned int which, struct buf *b)
{
	struct kdbus_cmd_free c = { .size = sizeof(c) };

	if (which == NAME_ACQUIRE || which == MATCH_ADD) {
		undo(f, fd, which, b);
		return;
	}

	if (which == RECV)
		c.offset = b->recv.msg.offset;
	else if (which == LIST)
		c.offset = b->list.offset;
	else if (which == CONN_INFO || which == CREATOR_INFO)
		c.offset = b->info.offset;
	else if (which == SEND && b->send.reply.msg_size)
		c.offset = b->send.reply.offset;
	else if (which == HELLO)
		fuzz_world->ids[f->id] = b->hello.id;
	else
		return;
	if (fuzz_below(f, 32) && cmd(fd, KDBUS_CMD_FREE, &c) == 0)
		__atomic_add_fetch(&fuzz_world->good[FREE], 1, __ATOMIC_SEQ_CST);
}

static void run(struct fuzz *f, int fd, unsigned int which)
{
	bool well = fuzz_below(f, 3);
	struct buf *b = &f->command;
	unsigned long nr = commands[which].nr;
	void *at;

	make(f, b, which);
	for (unsigned int n = well ? 0 : 1 + fuzz_below(f, 3); n; n--)
		spoil(f, which == SEND && fuzz_below(f, 4) ? &f->message : b);
	if (which == SEND)
		b->send.msg_address = (uintptr_t)place(f, &f->message, &f->memory->message, well);
	at = place(f, b, &f->memory->command, well);
	if (!well && !fuzz_below(f, 32))
		nr = fuzz_value(f);
	__atomic_add_fetch(&fuzz_world->commands, 1, __ATOMIC_SEQ_CST);
	if (cmd(fd, nr, at))
		return;
	__atomic_add_fetch(&fuzz_world->done, 1, __ATOMIC_SEQ_CST);
	if (!well)
		return;
	__atomic_add_fetch(&fuzz_world->good[which], 1, __ATOMIC_SEQ_CST);
	finish(f, fd, which, &f->memory->command);
}

void fuzz_command(struct fuzz *f)
{
	/* messages are what it is about */
	static const unsigned int often[] = { SEND, SEND, SEND, SEND, RECV, RECV, RECV, FREE };
	unsigned int which = fuzz_below(f, 2) ? often[fuzz_below(f, 8)] :
						fuzz_below(f, FUZZ_COMMANDS);
	int fd = fuzz_fd(f);

	/* it ends the connection */
	if (which == BYEBYE && fuzz_below(f, 8))
		which = RECV;
	/* these need a descriptor that has not been used */
	if (which == BUS_MAKE || which == ENDPOINT_MAKE || which == HELLO) {
		int *slot = &fuzz_fds[fuzz_below(f, FUZZ_FDS)];

		if (*slot > 2)
			close(*slot);
		fd = *slot =
			open(which == BUS_MAKE ? ROOT "/control" : bus_path, O_RDWR | O_CLOEXEC);
	}
	run(f, fd, which);
}

void fuzz_connect(struct fuzz *f)
{
	int *slot = &fuzz_fds[fuzz_below(f, FUZZ_FDS)], fd = open(bus_path, O_RDWR | O_CLOEXEC);
	struct kdbus_cmd_hello hello = { .size = sizeof(hello),
					 .flags = KDBUS_HELLO_ACCEPT_FD,
					 .attach_flags_send = ALL,
					 .attach_flags_recv = ALL,
					 .pool_size = 1 << 20 };

	if (cmd(fd, KDBUS_CMD_HELLO, &hello) == 0)
		fuzz_world->ids[f->id] = hello.id;
	if (*slot > 2)
		close(*slot);
	*slot = fd;
}
