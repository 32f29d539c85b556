// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The queues of receivers (daemon/classic/output.h): whatever the socket takes at a time, each gets
 * all bytes in order, and the descriptors of a message with its first byte.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon/classic/output.h"
#include "daemon/classic/undelivered.h"
#include "dbus/build.h"

#define N_PEERS	 3
#define ROUNDS	 60
#define MESSAGES 12 /* at most, in a round */

/* ---- what output.c needs of the rest ---- */

void cpeer_watch(struct cpeer *c)
{
	c->events = EPOLLIN | (c->out ? EPOLLOUT : 0);
}

void cpeer_doom(struct cpeer *c, const char *format, ...)
{
	fail_msg("doomed: %s", format);
}

void cpeer_log(const struct cpeer *c, const char *format, ...)
{
	fail_msg("logged: %s", format);
}

void undelivered_note(struct cpeer *to, const unsigned char *data, size_t len)
{
	fail();
}

bool undelivered_answer(struct classic *k)
{
	return false;
}

void reaper_close(struct reaper *reaper, int fd)
{
	close(fd);
}

/* ---- peers with a reader at the other end ---- */

struct reader {
	struct cpeer peer;
	struct account account;
	int sock;
	unsigned char *expected; /* bytes that were queued */
	size_t n_expected, size;
	size_t n_read;
	size_t fd_at[4096]; /* where descriptors belong, and how many */
	unsigned int fd_n[4096];
	unsigned int n_fds, next_fd;
};

struct fixture {
	struct classic k;
	struct config config;
	struct reader readers[N_PEERS];
	unsigned int random;
};

static unsigned int pick(struct fixture *f, unsigned int n)
{
	f->random = f->random * 1103515245 + 12345;
	return (f->random >> 16) % n;
}

static void open_reader(struct fixture *f, struct reader *r)
{
	int sv[2], small = 4096;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, sv), 0);
	assert_int_equal(setsockopt(sv[0], SOL_SOCKET, SO_SNDBUF, &small, sizeof(small)), 0);
	r->peer.kind = PEER_CLASSIC;
	r->peer.classic = &f->k;
	r->peer.state = CPEER_ACTIVE;
	r->peer.fd = sv[0];
	r->peer.events = EPOLLIN;
	r->peer.account = &r->account;
	INIT_LIST_HEAD(&r->peer.dirty_entry);
	r->sock = sv[1];
	r->size = 1 << 20;
	r->expected = malloc(r->size);
}

static void set_up(struct fixture *f, unsigned int seed)
{
	unsigned int i;

	memset(f, 0, sizeof(*f));
	f->random = seed;
	f->k.config = &f->config;
	f->config.limits.max_outgoing_bytes = 1 << 30;
	f->config.limits.max_outgoing_unix_fds = 1 << 20;
	INIT_LIST_HEAD(&f->k.dirty);
	f->k.out = malloc(OUTPUT_SIZE);
	f->k.in = malloc(1 << 20);
	f->k.segs = calloc(OUTPUT_SEGS, sizeof(*f->k.segs));
	for (i = 0; i < N_PEERS; i++)
		open_reader(f, &f->readers[i]);
}

static void tear_down(struct fixture *f)
{
	unsigned int i;

	for (i = 0; i < N_PEERS; i++) {
		output_free(&f->readers[i].peer);
		assert_int_equal(f->readers[i].account.bytes, 0);
		close(f->readers[i].peer.fd);
		close(f->readers[i].sock);
		free(f->readers[i].expected);
	}
	free(f->k.out);
	free(f->k.in);
	free(f->k.segs);
	cbuf_trim();
}

/* ---- messages ---- */

static struct cfds *some_fds(unsigned int n)
{
	int fds[8];
	unsigned int i;

	for (i = 0; i < n; i++) {
		fds[i] = open("/dev/null", O_RDONLY | O_CLOEXEC);
		assert_true(fds[i] >= 0);
	}
	return n ? cfds_new(NULL, fds, n) : NULL;
}

static void remember(struct reader *r, const struct cmsg *m)
{
	size_t body = m->header.frame.body_len;

	while (r->n_expected + m->head_len + body > r->size) {
		r->size *= 2;
		r->expected = realloc(r->expected, r->size);
	}
	if (m->fds) {
		r->fd_at[r->n_fds] = r->n_expected;
		r->fd_n[r->n_fds++] = m->fds->n;
	}
	memcpy(r->expected + r->n_expected, m->head, m->head_len);
	memcpy(r->expected + r->n_expected + m->head_len, m->body, body);
	r->n_expected += m->head_len + body;
}

/* As received: in the buffer of the round, or, large, in one of its own */
static void place(struct fixture *f, struct cmsg *m, const uint8_t *msg, size_t len)
{
	unsigned char *at;

	if (len > 32768) {
		m->buf = cbuf_new(len);
		at = m->buf->data;
	} else {
		assert_true(f->k.in_used + len < 1 << 20);
		at = f->k.in + f->k.in_used;
		f->k.in_used += len;
	}
	memcpy(at, msg, len);
	m->raw = at;
	assert_int_equal(dbusp_header_parse(&m->header, at, len, DBUSP_MESSAGE_MAX, NULL), 0);
	m->body = at + m->header.frame.header_len;
}

static void queue_message(struct fixture *f, unsigned int serial)
{
	static const size_t sizes[] = { 0, 1, 7, 300, 2000, 2100, 20000, 100000 };
	size_t size = sizes[pick(f, 8)], len;
	struct dbusp_desc desc = { .type = DBUSP_SIGNAL,
				   .serial = serial,
				   .path = DBUSP_STR("/a"),
				   .interface = DBUSP_STR("a.b"),
				   .member = DBUSP_STR("M"),
				   .n_fds = pick(f, 4) ? 0 : 1 + pick(f, 5),
				   .signature = DBUSP_STR("ay") };
	struct cmsg m = { .sender = DBUSP_STR(":1.5") };
	unsigned int to = 1 + pick(f, (1 << N_PEERS) - 1), i;
	struct dbusp_build b;
	uint8_t *msg, *body = malloc(size + 1);

	for (i = 0; i < size; i++)
		body[i] = (uint8_t)pick(f, 256);
	dbusp_build_begin(&b, NULL, &desc);
	dbusp_put_bytes(&b, body, size);
	assert_int_equal(dbusp_build_end(&b, &msg, &len), 0);
	place(f, &m, msg, len);
	m.fds = some_fds(desc.n_fds);
	assert_int_equal(cmsg_head(&f->k, &m), 0);
	for (i = 0; i < N_PEERS; i++) {
		if (!(to & 1U << i))
			continue;
		assert_int_equal(output_add(&f->readers[i].peer, &m), 0);
		remember(&f->readers[i], &m);
	}
	cfds_unref(m.fds);
	cbuf_unref(m.buf);
	free(msg);
	free(body);
}

/* ---- reading ---- */

static void check_fds(struct reader *r, struct msghdr *msg, size_t n)
{
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(msg);
	unsigned int n_fds, i;
	int fds[8];

	assert_false(msg->msg_flags & MSG_CTRUNC);
	if (!cmsg) {
		/* None belong to what was read. */
		assert_true(r->next_fd == r->n_fds || r->fd_at[r->next_fd] >= r->n_read + n);
		return;
	}
	n_fds = (unsigned int)((cmsg->cmsg_len - CMSG_LEN(0)) / sizeof(int));
	assert_true(r->next_fd < r->n_fds);
	assert_int_equal(n_fds, r->fd_n[r->next_fd]);
	assert_in_range(r->fd_at[r->next_fd], r->n_read, r->n_read + n - 1);
	memcpy(fds, CMSG_DATA(cmsg), n_fds * sizeof(int));
	for (i = 0; i < n_fds; i++)
		assert_int_equal(close(fds[i]), 0);
	r->next_fd++;
}

/* Returns whether there was anything. */
static bool read_some(struct reader *r, size_t max)
{
	static unsigned char buf[1 << 17];
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(8 * sizeof(int))];
	} control;
	struct iovec iov = { buf, max };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = &control,
			      .msg_controllen = sizeof(control) };
	ssize_t n = recvmsg(r->sock, &msg, MSG_DONTWAIT);

	if (n < 0) {
		assert_int_equal(errno, EAGAIN);
		return false;
	}
	assert_true(r->n_read + (size_t)n <= r->n_expected);
	assert_memory_equal(buf, r->expected + r->n_read, n);
	check_fds(r, &msg, (size_t)n);
	r->n_read += (size_t)n;
	return true;
}

static void read_all(struct reader *r)
{
	while (r->n_read < r->n_expected) {
		while (read_some(r, 1 << 17))
			;
		if (r->peer.events & EPOLLOUT)
			output_ready(&r->peer);
	}
	assert_null(r->peer.out);
	assert_int_equal(r->peer.out_bytes, 0);
	assert_int_equal(r->peer.out_fds, 0);
	assert_false(r->peer.events & EPOLLOUT);
	assert_int_equal(r->next_fd, r->n_fds);
}

static void test_all_bytes_in_order(void **state)
{
	static struct fixture f;
	unsigned int seed, round, n, i, serial = 1;

	for (seed = 0; seed < 10; seed++) {
		set_up(&f, seed);
		for (round = 0; round < ROUNDS; round++) {
			for (n = pick(&f, MESSAGES); n; n--)
				queue_message(&f, serial++);
			classic_flush(&f.k);
			for (i = 0; i < N_PEERS; i++) {
				if (!pick(&f, 3))
					read_some(&f.readers[i], 1 + pick(&f, 5000));
				if (f.readers[i].peer.events & EPOLLOUT && pick(&f, 2))
					output_ready(&f.readers[i].peer);
			}
		}
		for (i = 0; i < N_PEERS; i++)
			read_all(&f.readers[i]);
		tear_down(&f);
	}
}

/* What was queued and not read is given back with the peer: memory, charges, descriptors. */
static void test_end_in_the_middle(void **state)
{
	static struct fixture f;
	unsigned int seed, n;
	int before = dup(0), after;

	close(before);
	for (seed = 0; seed < 20; seed++) {
		set_up(&f, seed);
		for (n = 0; n < 40; n++)
			queue_message(&f, n + 1);
		classic_flush(&f.k);
		for (n = 0; n < 5; n++)
			queue_message(&f, n + 1);
		tear_down(&f);
	}
	after = dup(0);
	close(after);
	assert_int_equal(before, after);
}

/* Several messages of one sender to one receiver are one piece of memory. */
static void test_neighbours_are_one_piece(void **state)
{
	static struct fixture f;
	struct dbusp_desc desc = { .type = DBUSP_SIGNAL,
				   .serial = 1,
				   .path = DBUSP_STR("/a"),
				   .interface = DBUSP_STR("a.b"),
				   .member = DBUSP_STR("M"),
				   .signature = DBUSP_STR("s") };
	struct dbusp_build b;
	struct cmsg m;
	uint8_t *msg;
	size_t len;
	int i;

	set_up(&f, 1);
	dbusp_build_begin(&b, NULL, &desc);
	dbusp_put_string(&b, "of odd length!");
	assert_int_equal(dbusp_build_end(&b, &msg, &len), 0);
	for (i = 0; i < 16; i++) {
		m = (struct cmsg){ .sender = DBUSP_STR(":1.5") };
		place(&f, &m, msg, len);
		assert_int_equal(cmsg_head(&f.k, &m), 0);
		output_add(&f.readers[0].peer, &m);
		output_add(&f.readers[1].peer, &m);
		remember(&f.readers[0], &m);
		remember(&f.readers[1], &m);
	}
	assert_int_equal(f.k.n_segs, 2);
	classic_flush(&f.k);
	read_all(&f.readers[0]);
	read_all(&f.readers[1]);
	free(msg);
	tear_down(&f);
}

/* A peer has half of what the others of its user leave. */
/* What waits in many small pieces costs their heads, too. */
static void test_pieces_cost_what_they_occupy(void **state)
{
	static struct fixture f;
	const struct oblock *b;
	unsigned char *at;
	struct cpeer *c;
	unsigned int i;
	size_t n = 0;

	set_up(&f, 1);
	c = &f.readers[0].peer;
	for (i = 0; i < 20000; i++) {
		at = output_room(&f.k, 8);
		memset(at, 'x', 8);
		output_add_raw(c, at, 8, NULL);
		classic_flush(&f.k);
	}
	for (b = c->out; b; b = b->next)
		n++;
	assert_true(n > 1000);
	assert_true(f.readers[0].account.bytes >= n * sizeof(struct oblock));
	tear_down(&f);
}

static void test_share(void **state)
{
	static struct fixture f;
	struct account account = { 0 };
	struct cpeer *a, *b;

	set_up(&f, 1);
	a = &f.readers[0].peer;
	b = &f.readers[1].peer;
	a->account = &account;
	b->account = &account;
	a->out = (struct oblock *)&f; /* something waits */
	b->out = (struct oblock *)&f;
	account.bytes = a->out_charged = ACCOUNT_BYTES_MAX / 2;
	assert_false(output_full(a));
	assert_false(output_full(b));
	account.bytes = a->out_charged += 8;
	assert_true(output_full(a));
	assert_false(output_full(b));
	b->out_charged = ACCOUNT_BYTES_MAX / 4;
	account.bytes += b->out_charged;
	assert_true(output_full(b));
	a->out = NULL;
	assert_false(output_full(a)); /* nothing waits: one more is always taken */
	b->out = NULL;
	a->out_charged = b->out_charged = 0;
	a->account = &f.readers[0].account;
	b->account = &f.readers[1].account;
	tear_down(&f);
}

/* ---- large buffers that are kept ---- */

#define BOUND (16UL << 20) /* of all of them */

static struct cbuf *touch(struct cbuf *b)
{
	assert_non_null(b);
	memset(b->data, 1, b->size);
	return b;
}

/* The next message of about the same size gets the same memory, large as it may be. */
static void test_large_buffers_are_used_again(void **state)
{
	static const size_t sizes[] = { 40000, 1 << 20, (2 << 20) + 200, (4 << 20) + 200,
					15 << 20 };
	struct cbuf *a, *b;
	unsigned int i;

	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		a = touch(cbuf_new(sizes[i]));
		cbuf_unref(a);
		assert_true(cbuf_kept());
		b = cbuf_new(sizes[i] - 100);
		assert_ptr_equal(a, b);
		assert_int_equal(b->size, sizes[i] - 100);
		assert_int_equal(b->refs, 1);
		assert_false(cbuf_kept());
		cbuf_unref(b);
		cbuf_trim();
		assert_false(cbuf_kept());
	}
}

/* For a small message no large one is taken, for it could hold that for long. */
static void test_large_buffers_are_not_wasted(void **state)
{
	struct cbuf *a, *b;

	cbuf_unref(touch(cbuf_new(4 << 20)));
	a = cbuf_new(40000);
	assert_true(cbuf_kept());
	b = cbuf_new(1000);
	assert_true(cbuf_kept());
	cbuf_unref(a);
	cbuf_unref(b);
	cbuf_trim();
}

/* What is kept has an end in bytes: the last ones stay, and none that is larger than all may be. */
static void test_kept_buffers_are_bounded(void **state)
{
	struct cbuf *bufs[6];
	unsigned int i;

	for (i = 0; i < 6; i++)
		bufs[i] = touch(cbuf_new(4 << 20));
	for (i = 0; i < 6; i++)
		cbuf_unref(bufs[i]);
	for (i = 0; cbuf_kept(); i++)
		bufs[i] = cbuf_new(4 << 20);
	assert_int_equal(i, BOUND / (4 << 20));
	while (i--)
		free(bufs[i]);
	cbuf_unref(cbuf_new(BOUND + 1));
	assert_false(cbuf_kept());
}

/* Who is wanted stays; who is not is gone by the second look after it was given back. */
static void test_kept_buffers_grow_old(void **state)
{
	struct cbuf *wanted, *other;
	unsigned int i;

	wanted = touch(cbuf_new(2 << 20));
	other = touch(cbuf_new(200000));
	cbuf_unref(other);
	cbuf_unref(wanted);
	for (i = 0; i < 5; i++) {
		assert_true(cbuf_age());
		assert_ptr_equal(cbuf_new(2 << 20), wanted);
		/* The other one: until the first look it is as young as this one. */
		assert_int_equal(cbuf_kept(), i == 0);
		cbuf_unref(wanted);
	}
	assert_true(cbuf_age());
	assert_false(cbuf_age());
	assert_false(cbuf_kept());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_bytes_in_order),
		cmocka_unit_test(test_end_in_the_middle),
		cmocka_unit_test(test_neighbours_are_one_piece),
		cmocka_unit_test(test_pieces_cost_what_they_occupy),
		cmocka_unit_test(test_share),
		cmocka_unit_test(test_large_buffers_are_used_again),
		cmocka_unit_test(test_large_buffers_are_not_wasted),
		cmocka_unit_test(test_kept_buffers_are_bounded),
		cmocka_unit_test(test_kept_buffers_grow_old),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
