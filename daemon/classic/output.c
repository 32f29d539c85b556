// SPDX-License-Identifier: LGPL-2.1-or-later
/* Queues of receivers, and emptying them into sockets. Rules: output.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "output.h"
#include "undelivered.h"

#define CONTROL_SIZE CMSG_SPACE(sizeof(int) * 253)

/* ---- buffers of the round ---- */

static void flush_all(struct classic *k)
{
	struct cpeer *c, *next;

	list_for_each_entry_safe(c, next, &k->dirty, dirty_entry)
		output_flush(c);
	k->n_segs = 0;
}

static void empty(struct classic *k)
{
	flush_all(k);
	k->out_used = 0;
	k->out_fills++;
	k->out_large = cbuf_unref(k->out_large);
}

unsigned char *output_room(struct classic *k, size_t size)
{
	unsigned char *at;

	if (k->out_used + size > OUTPUT_SIZE)
		empty(k);
	at = k->out + k->out_used;
	k->out_used += size;
	return at;
}

/* A path may be as long as a message: such a header has memory of its own, one in a round. */
static int large_head(struct classic *k, struct cmsg *m, size_t room)
{
	int r;

	empty(k);
	k->out_large = cbuf_new(room);
	if (!k->out_large)
		return -ENOMEM;
	r = dbusp_header_rewrite(&m->header, m->raw, m->sender, true, k->out_large->data, room,
				 &m->head_len);
	if (r < 0)
		return r;
	m->joined = false;
	m->head = k->out_large->data;
	m->filled = k->out_fills;
	return 0;
}

/* What the driver has built says already who sends it. */
static int own_head(struct classic *k, struct cmsg *m)
{
	size_t size = m->header.frame.total_len;

	m->head = memcpy(output_room(k, size), m->raw, size);
	m->head_len = m->header.frame.header_len;
	m->joined = true;
	m->filled = k->out_fills;
	return 0;
}

/*
 * A small body is copied behind its header: one piece instead of two, and messages that follow each
 * other lie next to each other.
 */
int cmsg_head(struct classic *k, struct cmsg *m)
{
	size_t room = dbusp_header_room(&m->header, m->sender.len), body = m->header.frame.body_len;
	bool join = body <= OUTPUT_JOIN_MAX && !m->buf;
	unsigned char *at;
	int r;

	if (!m->from && !m->buf)
		return own_head(k, m);
	if (room > OUTPUT_ROOM_MAX - OUTPUT_JOIN_MAX)
		return large_head(k, m, room);
	at = output_room(k, room + (join ? body : 0));
	r = dbusp_header_rewrite(&m->header, m->raw, m->sender, true, at, room, &m->head_len);
	if (r < 0)
		return r;
	if (join && body)
		memcpy(at + m->head_len, m->body, body);
	m->joined = join;
	m->head = at;
	m->filled = k->out_fills;
	k->out_used = (size_t)(at - k->out) + m->head_len + (join ? body : 0);
	return 0;
}

int cmsg_head_kept(struct classic *k, struct cmsg *m)
{
	return m->head && m->filled == k->out_fills ? 0 : cmsg_head(k, m);
}

/* ---- adding ---- */

static void mark_dirty(struct cpeer *to)
{
	if (list_empty(&to->dirty_entry))
		list_add_tail(&to->dirty_entry, &to->classic->dirty);
}

static struct seg *new_seg(struct cpeer *to)
{
	struct classic *k = to->classic;
	struct seg *seg = &k->segs[k->n_segs++];

	seg->next = NULL;
	if (to->round)
		to->round_last->next = seg;
	else
		to->round = seg;
	to->round_last = seg;
	return seg;
}

static void add(struct cpeer *to, const unsigned char *data, size_t len, struct cbuf *buf,
		struct cfds *fds)
{
	struct seg *last = to->round_last;

	if (to->round && !fds && !buf && !last->buf && last->data + last->len == data) {
		last->len += len;
		return;
	}
	*new_seg(to) = (struct seg){ .data = data,
				     .len = len,
				     .buf = cbuf_ref(buf),
				     .fds = cfds_ref(fds) };
}

int output_add_raw(struct cpeer *to, const unsigned char *data, size_t len, struct cfds *fds)
{
	if (to->deaf || !len)
		return 0;
	if (to->classic->n_segs == OUTPUT_SEGS)
		flush_all(to->classic);
	add(to, data, len, NULL, fds);
	to->out_bytes += len;
	to->out_fds += fds ? fds->n : 0;
	mark_dirty(to);
	return 0;
}

int output_add(struct cpeer *to, struct cmsg *m)
{
	size_t body = m->header.frame.body_len;
	int r;

	if (to->deaf)
		return 0;
	/* Something else that had to be said meanwhile took the room. */
	r = cmsg_head_kept(to->classic, m);
	if (r < 0)
		return r;
	if (to->classic->n_segs + 2 > OUTPUT_SEGS)
		flush_all(to->classic);
	add(to, m->head, m->head_len + (m->joined ? body : 0), NULL, m->fds);
	if (!m->joined && body)
		add(to, m->body, body, m->buf, NULL);
	to->out_bytes += m->head_len + body;
	to->out_fds += m->fds ? m->fds->n : 0;
	mark_dirty(to);
	return 0;
}

/*
 * Of what its uid may make the daemon hold, a peer gets half of what the others leave: one that
 * does not read cannot keep all the others of its user from having anything waiting.
 */
static bool beyond_share(const struct cpeer *c)
{
	size_t others = c->account->bytes - c->out_charged;

	return others >= ACCOUNT_BYTES_MAX || c->out_charged > (ACCOUNT_BYTES_MAX - others) / 2;
}

const char *output_limit(const struct cpeer *to, long *ret_max)
{
	const struct config_limits *limits = classic_limits(to->classic);

	*ret_max = limits->max_outgoing_bytes;
	if (to->out_bytes > (size_t)*ret_max)
		return "max_outgoing_bytes";
	*ret_max = limits->max_outgoing_unix_fds;
	if (to->out_fds > (unsigned long)*ret_max)
		return "max_outgoing_unix_fds";
	*ret_max = ACCOUNT_BYTES_MAX;
	return to->out && beyond_share(to) ? "bytes of its user" : NULL;
}

bool output_full(const struct cpeer *to)
{
	long max;

	return output_limit(to, &max);
}

/* ---- what waits ---- */

/*
 * What goes in parts wakes its reader for each: let there be as few of them as the kernel allows.
 * Only where a large message asks for it, for it is the kernel's memory that waits there.
 */
#define ROOMY_FROM (128U << 10)
#define ROOMY_SIZE (1 << 20)

static bool make_roomy(struct cpeer *c, size_t waits)
{
	const int size = ROOMY_SIZE;

	if (c->roomy || waits < ROOMY_FROM)
		return false;
	c->roomy = true;
	return setsockopt(c->fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size)) == 0;
}

static void free_block(struct cpeer *c, struct oblock *b)
{
	account_drop(c->account, b->charged);
	c->out_charged -= b->charged;
	cbuf_unref(b->buf);
	cfds_unref(b->fds);
	free(b);
}

static void free_segs(struct cpeer *c)
{
	struct seg *seg;

	for (seg = c->round; seg; seg = seg->next) {
		cbuf_unref(seg->buf);
		cfds_unref(seg->fds);
	}
	c->round = NULL;
	c->round_last = NULL;
}

void output_free(struct cpeer *c)
{
	struct oblock *b;

	while ((b = c->out)) {
		c->out = b->next;
		free_block(c, b);
	}
	c->out_last = NULL;
	free_segs(c);
	c->out_bytes = 0;
	c->out_fds = 0;
	list_del_init(&c->dirty_entry);
}

static void append(struct cpeer *c, struct oblock *b)
{
	b->next = NULL;
	if (c->out)
		c->out_last->next = b;
	else
		c->out = b;
	c->out_last = b;
}

/* How many segments go into one block: those of the round up to the next with descriptors. */
static struct seg *run_end(struct seg *seg, size_t *ret_len)
{
	*ret_len = seg->len;
	if (seg->buf)
		return seg->next;
	for (seg = seg->next; seg && !seg->buf && !seg->fds; seg = seg->next)
		*ret_len += seg->len;
	return seg;
}

static struct oblock *block_of(struct seg *seg, struct seg *end, size_t len)
{
	struct oblock *b = malloc(sizeof(*b) + (seg->buf ? 0 : len));
	size_t at = 0;

	if (!b)
		return NULL;
	*b = (struct oblock){ .data = b->own, .len = len, .buf = seg->buf, .fds = seg->fds };
	if (seg->buf) {
		b->data = seg->data;
		return b;
	}
	for (; seg != end; seg = seg->next) {
		memcpy(b->own + at, seg->data, seg->len);
		at += seg->len;
	}
	return b;
}

/* What the socket did not take outlives the round. */
static int keep(struct cpeer *c)
{
	struct oblock *b;
	struct seg *end;
	size_t len;

	while (c->round) {
		end = run_end(c->round, &len);
		b = block_of(c->round, end, len);
		if (!b) {
			/* The segments are somebody else's from the end of the round on. */
			output_free(c);
			return -ENOMEM;
		}
		/* What it occupies: of many small ones the most is not what is in them. */
		len = sizeof(*b) + (b->buf ? b->buf->room : len);
		if (account_hold(c->account, len) == 0)
			b->charged = len;
		c->out_charged += b->charged;
		append(c, b);
		c->round = end;
	}
	c->round_last = NULL;
	return 0;
}

/* ---- sending ---- */

struct batch {
	struct iovec iov[OUTPUT_IOV];
	size_t n;
	size_t bytes;
	struct cfds *fds;
};

/* Returns whether there is room for another. */
static bool batch_add(struct batch *batch, const unsigned char *data, size_t len, struct cfds *fds)
{
	if (fds && batch->n)
		return false;
	if (fds)
		batch->fds = fds;
	batch->iov[batch->n++] = (struct iovec){ (void *)data, len };
	batch->bytes += len;
	return batch->n < OUTPUT_IOV;
}

static void gather(struct cpeer *c, struct batch *batch)
{
	struct oblock *b;
	struct seg *seg;

	batch->n = 0;
	batch->bytes = 0;
	batch->fds = NULL;
	for (b = c->out; b; b = b->next)
		if (!batch_add(batch, b->data, b->len, b->fds))
			return;
	for (seg = c->round; seg; seg = seg->next)
		if (!batch_add(batch, seg->data, seg->len, seg->fds))
			return;
}

static ssize_t send_batch(int fd, struct batch *batch)
{
	union {
		struct cmsghdr align;
		char room[CONTROL_SIZE];
	} control;
	struct msghdr msg = { .msg_iov = batch->iov, .msg_iovlen = batch->n };
	struct cmsghdr *cmsg;
	size_t size;

	/* The usual case, for which the kernel need not copy a vector in. */
	if (batch->n == 1 && !batch->fds)
		return send(fd, batch->iov[0].iov_base, batch->bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (batch->fds) {
		size = sizeof(int) * batch->fds->n;
		msg.msg_control = &control;
		msg.msg_controllen = CMSG_SPACE(size);
		cmsg = CMSG_FIRSTHDR(&msg);
		cmsg->cmsg_level = SOL_SOCKET;
		cmsg->cmsg_type = SCM_RIGHTS;
		cmsg->cmsg_len = CMSG_LEN(size);
		memcpy(CMSG_DATA(cmsg), batch->fds->fds, size);
	}
	return sendmsg(fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void forget_fds(struct cpeer *c, struct cfds **fds)
{
	if (!*fds)
		return;
	c->out_fds -= (*fds)->n;
	*fds = cfds_unref(*fds);
}

static size_t advance(const unsigned char **data, size_t *len, size_t sent)
{
	size_t n = min(*len, sent);

	*data += n;
	*len -= n;
	return n;
}

/* @sent bytes have left, at least one. */
static void consume(struct cpeer *c, size_t sent)
{
	struct oblock *b;
	struct seg *seg;

	c->out_bytes -= sent;
	while (sent && (b = c->out)) {
		forget_fds(c, &b->fds);
		sent -= advance(&b->data, &b->len, sent);
		if (b->len)
			return;
		c->out = b->next;
		free_block(c, b);
	}
	while (sent && (seg = c->round)) {
		forget_fds(c, &seg->fds);
		sent -= advance(&seg->data, &seg->len, sent);
		if (seg->len)
			return;
		cbuf_unref(seg->buf);
		c->round = seg->next;
	}
}

/* Nobody reads any more. What it sent before is still read: cpeer.h. */
static void deafen(struct cpeer *c)
{
	c->deaf = true;
	output_free(c);
}

/*
 * The kernel lets a user have so many descriptors on their way and no more: rather none of this
 * message than none of anything any more.
 */
static void drop_first(struct cpeer *c)
{
	const unsigned char *data = c->out ? c->out->data : c->round->data;
	size_t len = c->out ? c->out->len : c->round->len;
	struct dbusp_frame frame;

	if (dbusp_frame_parse(&frame, data, len, DBUSP_MESSAGE_MAX, NULL) < 0) {
		deafen(c);
		return;
	}
	cpeer_log(c, "dropped a message to it: too many descriptors are on their way");
	undelivered_note(c, data, len);
	consume(c, frame.total_len);
}

static bool is_temporary(int error)
{
	return error == EAGAIN || error == ENOBUFS || error == ENOMEM;
}

/* Returns whether everything has left. */
static bool send_all(struct cpeer *c)
{
	struct batch batch;
	ssize_t n;

	while (c->out || c->round) {
		gather(c, &batch);
		n = send_batch(c->fd, &batch);
		if (n >= 0) {
			consume(c, (size_t)n);
			if ((size_t)n < batch.bytes && !make_roomy(c, batch.bytes))
				return false;
		} else if (errno == ETOOMANYREFS && batch.fds) {
			drop_first(c);
		} else if (is_temporary(errno)) {
			return false;
		} else if (errno != EINTR) {
			deafen(c);
		}
	}
	return true;
}

static void try_to_send(struct cpeer *c)
{
	if (!send_all(c) && keep(c) < 0)
		cpeer_doom(c, "no memory for what it does not read");
	else
		cpeer_watch(c);
}

void output_flush(struct cpeer *c)
{
	list_del_init(&c->dirty_entry);
	/* A socket that was full says so when it is no longer. */
	if (!(c->events & EPOLLOUT))
		try_to_send(c);
	else if (keep(c) < 0)
		cpeer_doom(c, "no memory for what it does not read");
	else
		cpeer_watch(c); /* it may have become too much to read on */
}

void output_ready(struct cpeer *c)
{
	list_del_init(&c->dirty_entry);
	try_to_send(c);
}

bool output_stalls(const struct cpeer *c)
{
	return c->out && output_full(c);
}

void classic_flush(struct classic *k)
{
	empty(k);
	/* Each drops some at most, so this ends. */
	while (undelivered_answer(k))
		empty(k);
	k->in_used = 0;
}
