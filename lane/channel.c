// SPDX-License-Identifier: LGPL-2.1-or-later
/* A channel's life and its socket. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "alarm.h"
#include "internal.h"
#include "memfd.h"

uint64_t lane_clock_stamp(struct lane_clock *clock, const struct lane_ops *ops)
{
	uint64_t now = ops->now(ops);

	if (LANE_BROKEN(LANE_OLD_STAMP))
		now -= now % 4000000;
	clock->last = now > clock->last ? now : clock->last + 1;
	return clock->last;
}

void lane_clock_saw(struct lane_clock *clock, uint64_t stamp)
{
	if (stamp > clock->last && !LANE_BROKEN(LANE_OLD_STAMP))
		clock->last = stamp;
}

void lane_channel_init(struct lane_channel *ch, const struct lane_ops *ops, int sock,
		       unsigned int flags)
{
	memset(ch, 0, sizeof(*ch));
	ch->ops = ops;
	ch->sock = sock;
	ch->flags = flags;
	/* What the peer takes us for until it has our lane. */
	ch->number = LANE_FIRST_NUMBER;
	ch->state = state_of(LANE_ARMED, LANE_FIRST_NUMBER);
}

void lane_channel_hang_up(struct lane_channel *ch)
{
	unsigned int i;

	for (i = 0; i < ch->n_fds; i++)
		if (ch->fds[i] >= 0)
			ch->ops->close(ch->ops, ch->fds[i]);
	ch->n_fds = 0;
	ch->n_batches = 0;
	while (ch->n_kept)
		lane_land(ch);
	if (ch->sock >= 0 && ch->ops)
		ch->ops->hang_up(ch->ops, ch->sock);
	ch->sock = -1;
	ch->hungup = true;
}

void lane_channel_deinit(struct lane_channel *ch)
{
	if (!ch)
		return;
	lane_bulk_deinit(ch);
	lane_channel_hang_up(ch);
	lane_memfd_unmap(ch->own, ch->own_size);
	lane_memfd_unmap(ch->peer, ch->peer_size);
	lane_alarm_unmap(ch->peer_alarm);
	ch->own = NULL;
	ch->peer = NULL;
	ch->peer_alarm = NULL;
	free(ch->flights);
	ch->flights = NULL;
}

static bool ring_valid(uint32_t ring)
{
	return ring >= LANE_RING_MIN && ring <= LANE_RING_MAX && !(ring & (ring - 1));
}

int lane_channel_make(struct lane_channel *ch, uint32_t ring, int *ret_fd)
{
	size_t size = lane_memfd_round((size_t)LANE_HEAD_SIZE + ring);
	struct lane_flight *flights;
	void *map;
	int r;

	if (ch->own)
		return -EEXIST;
	if (!ring_valid(ring))
		return -EINVAL;
	flights = calloc(LANE_FLIGHTS_MAX, sizeof(*flights));
	if (!flights)
		return -ENOMEM;
	r = lane_memfd_make("kdbus-lane", size, ret_fd, &map);
	if (r < 0) {
		free(flights);
		return r;
	}
	ch->flights = flights;
	ch->own = map;
	ch->own_size = size;
	ch->ring = ring;
	/* The peer sees it only after it was passed. */
	ch->own->version = LANE_VERSION;
	ch->own->ring = ring;
	ch->own->state = ch->state;
	ch->own->alarm = ch->alarm_bits;
	ch->own->magic = LANE_MAGIC;
	return 0;
}

int lane_channel_attach(struct lane_channel *ch, int fd)
{
	size_t max = (size_t)LANE_HEAD_SIZE + LANE_RING_MAX, size;
	const struct lane_head *head;
	const void *map;
	uint32_t ring;
	int r;

	if (ch->peer)
		return -EEXIST;
	r = lane_memfd_map_shared(fd, (size_t)LANE_HEAD_SIZE + LANE_RING_MIN, max, &map, &size);
	if (r < 0)
		return r;
	head = map;
	copy_once(&ring, &head->ring, sizeof(ring));
	if (head->magic != LANE_MAGIC || head->version != LANE_VERSION || !ring_valid(ring) ||
	    size != lane_memfd_round((size_t)LANE_HEAD_SIZE + ring)) {
		lane_memfd_unmap(map, size);
		return -EPROTO;
	}
	ch->peer = head;
	ch->peer_size = size;
	ch->peer_ring = ring;
	return 0;
}

/* On failure the lane is undone: nobody has seen it. */
static void unmake(struct lane_channel *ch)
{
	lane_memfd_unmap(ch->own, ch->own_size);
	ch->own = NULL;
	free(ch->flights);
	ch->flights = NULL;
}

int lane_channel_pass(struct lane_channel *ch, uint32_t ring)
{
	int fd, r;

	r = lane_channel_make(ch, ring, &fd);
	if (r < 0)
		return r;
	r = lane_send_sock(ch, LANE_SOCK_LANE, 0, &fd, 1);
	close(fd);
	/* To a peer that is gone: nobody sees it, but what the peer has left can be consumed. */
	if (r == -ECONNRESET)
		return 0;
	if (r < 0)
		unmake(ch);
	return r;
}

int lane_send_sock(struct lane_channel *ch, uint16_t type, uint32_t value, const int *fds,
		   unsigned int n_fds)
{
	struct lane_sock msg = {
		.version = LANE_VERSION,
		.type = type,
		.count = n_fds,
		.value = value,
	};
	int r;

	LANE_YIELD(LANE_AT_CALL);
	r = ch->ops->send(ch->ops, ch->sock, &msg, sizeof(msg), fds, n_fds);
	if (r == -EPIPE || r == -ECONNRESET || r == -ENOTCONN) {
		ch->hungup = true;
		return -ECONNRESET;
	}
	return r;
}

/* Descriptors of a record; they wait for it. -1 stands for what found no room in this process. */
static int receive_fds(struct lane_channel *ch, const struct lane_sock *msg, int *fds,
		       unsigned int n_fds)
{
	struct lane_fd_batch *batch = &ch->batches[ch->n_batches];
	unsigned int i;

	if (!msg->count || msg->count > LANE_SOCK_FDS_MAX ||
	    (int32_t)(msg->value - ch->last_fd_seq) <= 0)
		return -EPROTO;
	if (ch->n_batches == LANE_SOCK_FDS_MAX || ch->n_fds + msg->count > LANE_SOCK_FDS_MAX)
		return -EPROTO;
	batch->seq = msg->value;
	batch->count = msg->count;
	ch->last_fd_seq = msg->value;
	ch->n_batches++;
	for (i = 0; i < msg->count; i++) {
		ch->fds[ch->n_fds++] = i < n_fds ? fds[i] : -1;
		if (i < n_fds)
			fds[i] = -1;
	}
	return 0;
}

static int receive_bell(struct lane_channel *ch, uint32_t number)
{
	if (!was_asked(number, ch->last_bell, ch->number))
		return -EPROTO;
	ch->last_bell = number;
	ch->bell_rung = true;
	return 0;
}

static int receive_space(struct lane_channel *ch, uint32_t number)
{
	if (!was_asked(number, ch->last_space, ch->space_number))
		return -EPROTO;
	ch->last_space = number;
	return 0;
}

static int receive_ask(struct lane_channel *ch)
{
	if (ch->asked_end)
		return -EPROTO;
	ch->asked_end = true;
	return 0;
}

/* One ring for each two changes of the word: CLOSING, and OPEN or CLOSED after it. */
static int receive_closed(struct lane_channel *ch)
{
	lane_load_reading(ch);
	if (ch->broken || ++ch->closed_rings > number_of(ch->peer_reading) / 2)
		return -EPROTO;
	ch->closed_rung = true;
	return 0;
}

static unsigned int fds_of(const struct lane_sock *msg)
{
	if (msg->type == LANE_SOCK_LANE || msg->type == LANE_SOCK_BULK ||
	    msg->type == LANE_SOCK_ALARM)
		return 1;
	return msg->type == LANE_SOCK_FDS ? msg->count : 0;
}

/* Descriptors for the application, and the alarm, can be done without. */
static bool may_lack(const struct lane_sock *msg)
{
	return msg->type == LANE_SOCK_FDS || msg->type == LANE_SOCK_ALARM;
}

/* What is mapped is open besides: it is not the last of its file, closing it takes no time. */
static void close_mapped(int *fd)
{
	close(*fd);
	*fd = -1;
}

static int receive_lane(struct lane_channel *ch, int *fd)
{
	if (lane_channel_attach(ch, *fd) < 0)
		return -EPROTO;
	close_mapped(fd);
	return 0;
}

static int receive_alarm(struct lane_channel *ch, int *fds, unsigned int n_fds)
{
	int r = lane_alarm_receive(ch, n_fds ? fds[0] : -1);

	if (r == 0 && n_fds && ch->peer_alarm)
		close_mapped(fds);
	return r;
}

static int dispatch(struct lane_channel *ch, const struct lane_sock *msg, int *fds,
		    unsigned int n_fds)
{
	switch (msg->type) {
	case LANE_SOCK_BELL:
		return receive_bell(ch, msg->value);
	case LANE_SOCK_SPACE:
		return receive_space(ch, msg->value);
	case LANE_SOCK_FDS:
		return receive_fds(ch, msg, fds, n_fds);
	case LANE_SOCK_LANE:
		return msg->value ? -EPROTO : receive_lane(ch, fds);
	case LANE_SOCK_BULK:
		return lane_bulk_receive(ch, msg->value, fds[0]);
	case LANE_SOCK_CLOSED:
		return msg->value ? -EPROTO : receive_closed(ch);
	case LANE_SOCK_ASK_END:
		return msg->value ? -EPROTO : receive_ask(ch);
	case LANE_SOCK_ALARM:
		return msg->value ? -EPROTO : receive_alarm(ch, fds, n_fds);
	default:
		return -EPROTO;
	}
}

static int received(struct lane_channel *ch, const void *data, size_t size, int *fds,
		    unsigned int n_fds, bool short_of)
{
	struct lane_sock msg;

	if (size < 2 * sizeof(uint16_t))
		return -EPROTO;
	memset(&msg, 0, sizeof(msg));
	memcpy(&msg, data, size < sizeof(msg) ? size : sizeof(msg));
	if (msg.version != LANE_VERSION)
		return -EPROTO;
	if (msg.type >= LANE_SOCK_PROGRAM)
		return ch->message ? ch->message(ch, data, size, fds, n_fds) : -EPROTO;
	if (size != LANE_SOCK_SIZE || msg.reserved || msg.count != fds_of(&msg))
		return -EPROTO;
	if (n_fds > msg.count || (n_fds < msg.count && (!short_of || !may_lack(&msg))))
		return -EPROTO;
	return dispatch(ch, &msg, fds, n_fds);
}

/* Those nobody has taken */
static void close_all(struct lane_channel *ch, const int *fds, unsigned int n_fds)
{
	unsigned int i;

	for (i = 0; i < n_fds; i++)
		if (fds[i] >= 0)
			ch->ops->close(ch->ops, fds[i]);
}

int lane_channel_recv(struct lane_channel *ch)
{
	int fds[LANE_SOCK_FDS_MAX];
	struct lane_sock small = { .type = 0 };
	bool own = ch->message, short_of = false;
	void *buf = own ? ch->message_buf : &small;
	unsigned int n_fds = 0;
	ssize_t n;
	int r;

	if (ch->broken)
		return -EPROTO;
	LANE_YIELD(LANE_AT_CALL);
	n = ch->ops->recv(ch->ops, ch->sock, buf, own ? ch->message_buf_size : sizeof(small), fds,
			  &n_fds, &short_of);
	if (n == -EMSGSIZE)
		return lane_broke(ch);
	if (n == 0 || n == -ECONNRESET || n == -EPIPE || n == -ENOTCONN) {
		/* An empty message reads as the end does, and may bring files. */
		close_all(ch, fds, n_fds);
		ch->hungup = true;
		return -ECONNRESET;
	}
	if (n < 0)
		return (int)n;
	r = received(ch, buf, (size_t)n, fds, n_fds, short_of);
	close_all(ch, fds, n_fds);
	return r < 0 ? lane_broke(ch) : 0;
}

int lane_drain(struct lane_channel *ch)
{
	unsigned int i;
	int r;

	for (i = 0; i < LANE_DRAIN_MAX; i++) {
		r = lane_channel_recv(ch);
		if (r == -EPROTO)
			return r;
		if (r < 0)
			break;
	}
	return 0;
}
