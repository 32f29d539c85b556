// SPDX-License-Identifier: LGPL-2.1-or-later
/* From classic peers to native ones on a bus of the module. Rules: module.h. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/classic/driver.h"
#include "daemon/classic/outgoing.h"
#include "daemon/classic/roster.h"
#include "module.h"

#define ECHOES_MAX 64 /* of broadcasts, before the listener is relieved of them */

/* A message while it is made native */
struct sending {
	u64 image[OUTGOING_IMAGE_MAX / sizeof(u64)];
	unsigned char *payload; /* ours, or NULL */
	int memfd;
};

/* As one piece, or as a memfd if it is larger than a vector may be */
static int put_payload(struct core_writer *w, struct sending *s, const struct cmsg *m)
{
	struct kdbus_memfd memfd = { .size = outgoing_size(m) };
	struct kdbus_vec vec = { .size = memfd.size, .address = (uintptr_t)m->head };

	if (memfd.size > CORE_MSG_MAX_PAYLOAD_VEC_SIZE) {
		memfd.fd = s->memfd = outgoing_memfd(m);
		core_put(w, KDBUS_ITEM_PAYLOAD_MEMFD, &memfd, sizeof(memfd));
		return s->memfd < 0 ? s->memfd : 0;
	}
	if (!m->joined) {
		s->payload = outgoing_joined(m);
		if (!s->payload)
			return -ENOMEM;
		vec.address = (uintptr_t)s->payload;
	}
	core_put(w, KDBUS_ITEM_PAYLOAD_VEC, &vec, sizeof(vec));
	return 0;
}

/* As long as the front-end waits, so that what it gave up does not count in the module for ever. */
static void set_deadline(struct kdbus_msg *msg, const struct classic *k)
{
	const long timeout = classic_limits(k)->reply_timeout;

	if (msg->flags & KDBUS_MSG_EXPECT_REPLY && timeout > 0)
		msg->timeout_ns = daemon_now(k->daemon) + (u64)timeout * 1000000ULL;
}

/*
 * By id, and by name if it was: the message is for who the policy was asked about, and if it is
 * not his name any more nobody gets it (EREMCHG).
 */
static int fill(struct sending *s, struct classic *k, struct cmsg *m, u64 dst_id)
{
	struct core_writer w = CORE_WRITER(s->image, sizeof(s->image));
	struct kdbus_msg *msg = core_writer_raw(&w, sizeof(*msg));
	struct dbusp_str name = m->header.destination;
	size_t size;
	int r;

	memset(msg, 0, sizeof(*msg));
	outgoing_head(msg, m, dst_id);
	set_deadline(msg, k);
	r = put_payload(&w, s, m);
	if (r < 0)
		return r;
	if (dst_id == KDBUS_DST_ID_BROADCAST) {
		msg->flags |= KDBUS_MSG_SIGNAL;
		outgoing_bloom(&w, &k->bus->core, m);
	} else if (name.len && name.s[0] != ':') {
		core_put_str(&w, KDBUS_ITEM_DST_NAME, name.s);
	}
	if (m->fds)
		core_put(&w, KDBUS_ITEM_FDS, m->fds->fds, m->fds->n * sizeof(int));
	r = core_writer_end(&w, &size);
	msg->size = size;
	return r;
}

static int send_by(struct kconn *by, struct classic *k, struct cmsg *m, u64 dst_id)
{
	struct sending s = { .memfd = -1 };
	int r;

	if (m->fds && m->fds->n > CORE_MSG_MAX_FDS)
		return -EMFILE;
	r = fill(&s, k, m, dst_id);
	if (r == 0)
		r = kconn_send(by, (const struct kdbus_msg *)s.image);
	free(s.payload);
	if (s.memfd >= 0)
		close(s.memfd);
	return r;
}

/* The roster is behind: it, or the name, is not where it says. */
static bool is_stale(int error)
{
	return error == -EREMCHG || error == -ESRCH || error == -ENXIO || error == -ECONNRESET ||
	       error == -EADDRNOTAVAIL;
}

int module_send(struct cpeer *from, struct peer *to, struct cmsg *m)
{
	int r = send_by(&from->link->inlet.conn, from->classic, m, to->conn.id);

	return is_stale(r) ? -ESTALE : r;
}

void module_broadcast(struct classic *k, struct cmsg *m)
{
	struct cpeer *from = classic_peer(m->from);
	struct module *bus = module_of(k);
	int r;

	if (m->fds) {
		log_sparingly(&bus->complaints,
			      "a broadcast of %s is not delivered to native peers: it has "
			      "descriptors",
			      m->sender.s);
		return;
	}
	r = send_by(&from->link->inlet.conn, k, m, KDBUS_DST_ID_BROADCAST);
	if (r < 0)
		log_sparingly(&bus->complaints,
			      "a broadcast of %s is not delivered to native peers: %s", m->sender.s,
			      strerror(-r));
	if (++bus->echoes >= ECHOES_MAX)
		module_look(k);
}

/* ---- answers of the bus itself ---- */

int module_answer(struct peer *from, struct peer *to, struct cmsg *m)
{
	struct classic *k = container_of(to->conn.bus, struct bus, core)->classic;
	struct cpeer *c = from ? classic_peer(from) : NULL;

	m->head = m->raw;
	m->head_len = m->header.frame.header_len;
	m->joined = true;
	return send_by(c ? &c->link->inlet.conn : &module_of(k)->standin, k, m, to->conn.id);
}

void module_refuse(struct module *m, struct cpeer *by, const struct kdbus_msg *call,
		   const char *error, const char *text)
{
	struct peer *to = mirror_find(m, call->src_id);

	if (to && call->flags & KDBUS_MSG_EXPECT_REPLY && call->cookie &&
	    call->cookie <= UINT32_MAX)
		driver_error_native(m->classic, by ? &by->peer : NULL, to, (uint32_t)call->cookie,
				    error, text);
}
