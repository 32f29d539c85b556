// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Activators: their messages wait in the daemon, from where they can still be handed over. What
 * lies in the pool is the record that a lane would have carried, without its tail.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "client.h"

/* Address space only: pages come with the first message that needs them. */
int activator_init(struct client *c)
{
	void *map = mmap(NULL, c->pool_size, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (map == MAP_FAILED)
		return -ENOMEM;
	c->pool = map;
	return 0;
}

void activator_clear(struct client *c)
{
	if (c->pool)
		munmap(c->pool, c->pool_size);
	c->pool = NULL;
}

static void free_stored(struct core_conn *conn, struct core_entry *entry)
{
	struct stored *s = stored_of(entry);
	unsigned int i;

	for (i = 0; i < s->n_fds; i++)
		reaper_close(client_of(conn)->daemon->reaper, s->fds[i]);
	account_drop(client_of(conn)->account, s->held);
	free(s);
}

static int copy_fds(struct reaper *reaper, struct stored *s, const struct relay *relay)
{
	int fd;

	for (; s->n_fds < relay->n_fds; s->n_fds++) {
		fd = reaper_dup(reaper, relay->fds[s->n_fds]);
		if (fd < 0)
			return fd;
		s->fds[s->n_fds] = fd;
	}
	return 0;
}

static int prepare(struct core_conn *to, const struct core_parcel *parcel, size_t *ret_size,
		   struct core_entry **ret_entry)
{
	const struct relay *relay = parcel->host;
	struct stored *s;
	struct meta_image meta;
	int r;

	if (!relay)
		return -ENOBUFS; /* activators have no matches, hence no notifications */
	r = meta_for_message(relay->from, client_of(to), parcel->seq, &meta);
	if (r < 0)
		return r;
	free(meta.data);
	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->tail =
		(struct ctl_deliver){ .src_id = relay->from->conn.id, .meta_size = (u32)meta.size };
	s->image = meta.size + relay->wire.layout.payload_offset;
	s->payload = relay->wire.layout.payload_size;
	s->sync = relay->sync;
	r = account_hold(client_of(to)->account, s->image + s->payload);
	if (r == 0) {
		s->held = s->image + s->payload;
		r = copy_fds(client_of(to)->daemon->reaper, s, relay);
	}
	if (r < 0) {
		free_stored(to, &s->entry);
		return r;
	}
	*ret_size = s->image + s->payload;
	*ret_entry = &s->entry;
	return 0;
}

static int fill(struct core_conn *to, const struct core_parcel *parcel, struct core_entry *entry)
{
	struct client *c = client_of(to);
	struct stored *s = stored_of(entry);
	const struct relay *relay = parcel->host;
	unsigned char *at = c->pool + entry->slice->offset;
	struct meta_image meta;
	int r = meta_for_message(relay->from, c, parcel->seq, &meta);

	if (r < 0)
		return r;
	if (meta.size)
		memcpy(at, meta.data, meta.size);
	free(meta.data);
	if (meta.size != s->tail.meta_size)
		return -EIO;
	wire_image(&relay->wire, at + meta.size);
	if (s->payload)
		memcpy(at + s->image, relay->payload, s->payload);
	s->tail.name_id = relay->name_id;
	return 0;
}

static int copy(struct core_conn *from, size_t from_offset, struct core_conn *to, size_t to_offset,
		size_t bytes)
{
	memcpy(client_of(to)->pool + to_offset, client_of(from)->pool + from_offset, bytes);
	return 0;
}

/* Its descriptor has to say that something waits here: that is in a record of its own. */
void activator_tell(struct client *c)
{
	struct ctl_waiting body = { .messages = c->conn.inbox.queue.n + c->conn.inbox.lost };
	const struct lane_put put = { .type = CTL_REC_WAITING, .length = sizeof(body) };

	if (!c->connected || c->conn.kind != CORE_KIND_ACTIVATOR ||
	    !body.messages == !c->told_waiting)
		return;
	if (client_put(c, &put, &body) == 0)
		c->told_waiting = body.messages;
}

static void wake(struct core_conn *conn)
{
	if (native_of(conn))
		activator_tell(client_of(conn));
}

const struct core_host_ops daemon_host_ops = {
	.prepare = prepare,
	.fill = fill,
	.copy = copy,
	.free = free_stored,
	.wake = wake,
};

/* What put_message() adds to the answer */
static size_t answer_size(struct core_entry *entry)
{
	const struct stored *s = stored_of(entry);

	return ALIGN(s->image + s->payload, (size_t)8) + sizeof(s->tail);
}

/* The message goes into the answer as a record of the daemon, tail included. */
static int put_message(struct client *c, struct core_entry *entry, bool files)
{
	struct stored *s = stored_of(entry);
	unsigned int i;
	int r, fd;

	r = answer_add(c, c->pool + entry->slice->offset, s->image + s->payload);
	if (r == 0 && (s->image + s->payload) % 8) {
		static const unsigned char zeroes[8];

		r = answer_add(c, zeroes, 8 - (s->image + s->payload) % 8);
	}
	if (r == 0)
		r = answer_add(c, &s->tail, sizeof(s->tail));
	for (i = 0; r == 0 && files && i < s->n_fds; i++) {
		fd = reaper_dup(c->daemon->reaper, s->fds[i]);
		if (fd < 0)
			return fd;
		answer_add_fd(c, fd);
	}
	return r;
}

static void refuse_call(struct client *c, struct core_entry *entry)
{
	struct stored *s = stored_of(entry);
	const struct kdbus_msg *msg =
		(const void *)(c->pool + entry->slice->offset + s->tail.meta_size);
	const struct ctl_refused body = { .peer = c->conn.id,
					  .cookie = msg->cookie,
					  .error = EPIPE,
					  .flags = s->sync ? CTL_REFUSED_SYNC : 0 };
	const struct lane_put put = { .type = CTL_REC_REFUSED,
				      .flags = s->sync ? LANE_F_REPLY : 0,
				      .length = sizeof(body) };
	struct core_conn *to = core_bus_find_conn(c->conn.bus, s->tail.src_id);

	if (msg->flags & KDBUS_MSG_EXPECT_REPLY && to && to->sink == &client_sink)
		client_put(client_of(to), &put, &body);
}

int activator_recv(struct client *c, const struct kdbus_cmd_recv *cmd, const struct core_args *args)
{
	struct kdbus_cmd_recv *out = (struct kdbus_cmd_recv *)c->answer_arg;
	struct core_received got = { 0 };
	struct core_entry *entry;
	int r = core_check_recv(args), found;

	if (r < 0)
		return r;
	found = core_recv_select(&c->conn, args->flags, cmd->priority, &entry);
	if (found == 0 && args->flags & KDBUS_RECV_DROP)
		refuse_call(c, entry);
	else if (found == 0 && answer_size(entry) > cmd->msg.msg_size)
		r = -EXFULL;
	else if (found == 0)
		r = put_message(c, entry, !(args->flags & KDBUS_RECV_PEEK));
	if (r < 0)
		return r;
	if (found == 0 && (args->flags & KDBUS_RECV_DROP || !(args->flags & KDBUS_RECV_PEEK)))
		core_recv_take(&c->conn, entry, KDBUS_RECV_DROP, &got);
	core_recv_report(&c->conn, &got);
	out->dropped_msgs = got.dropped;
	out->return_flags = got.return_flags;
	activator_tell(c);
	return found;
}
