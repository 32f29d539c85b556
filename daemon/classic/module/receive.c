// SPDX-License-Identifier: LGPL-2.1-or-later
/* From native peers to classic ones on a bus of the module. Rules: module.h. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "daemon/classic/access.h"
#include "daemon/classic/driver.h"
#include "daemon/classic/incoming.h"
#include "module.h"

/* A message in a pool as a source */
struct pooled {
	struct incoming_source source;
	const struct kdbus_msg *msg;
};

#define each_item(item, msg) kconn_items(item, msg, (msg)->items, (msg)->size)

/* ---- payload ---- */

static u64 payload_size(const struct kdbus_msg *msg)
{
	const struct kdbus_item *item;
	u64 size = 0;

	each_item(item, msg) {
		if (item->type == KDBUS_ITEM_PAYLOAD_OFF)
			size += item->vec.size;
		else if (item->type == KDBUS_ITEM_PAYLOAD_MEMFD)
			size += item->memfd.size;
		if (size > DBUSP_MESSAGE_MAX)
			return ~0ULL;
	}
	return size;
}

static int read_item(const struct kdbus_msg *msg, const struct kdbus_item *item, u64 at,
		     unsigned char *to, size_t size)
{
	if (item->type == KDBUS_ITEM_PAYLOAD_MEMFD)
		return incoming_read_memfd(item->memfd.fd, item->memfd.start + at, to, size);
	if (item->vec.offset == ~0ULL)
		memset(to, 0, size);
	else
		memcpy(to, (const unsigned char *)msg + item->vec.offset + at, size);
	return 0;
}

static int read_payload(const struct incoming_source *source, size_t at, void *to, size_t size)
{
	const struct kdbus_msg *msg = container_of(source, const struct pooled, source)->msg;
	const struct kdbus_item *item;
	unsigned char *dst = to;
	u64 begin = 0, n;
	size_t part;
	int r;

	each_item(item, msg) {
		if (item->type != KDBUS_ITEM_PAYLOAD_OFF && item->type != KDBUS_ITEM_PAYLOAD_MEMFD)
			continue;
		n = item->type == KDBUS_ITEM_PAYLOAD_OFF ? item->vec.size : item->memfd.size;
		if (size && at < begin + n) {
			part = (size_t)min_t(u64, size, begin + n - at);
			r = read_item(msg, item, at - begin, dst, part);
			if (r < 0)
				return r;
			dst += part;
			at += part;
			size -= part;
		}
		begin += n;
	}
	return size ? -EBADMSG : 0;
}

/* ---- descriptors ---- */

static const struct kdbus_item *fds_of(const struct kdbus_msg *msg)
{
	const struct kdbus_item *item;

	each_item(item, msg)
		if (item->type == KDBUS_ITEM_FDS)
			return item;
	return NULL;
}

static unsigned int count_fds(const struct kdbus_item *item)
{
	return item ? (unsigned int)((item->size - offsetof(struct kdbus_item, fds)) /
				     sizeof(int)) :
		      0;
}

static int take_fds(struct incoming *in, struct arrival *a)
{
	const struct kdbus_item *item = fds_of(a->msg);
	unsigned int n = count_fds(item);

	if (a->incomplete)
		return -EMFILE;
	if (!n)
		return 0;
	in->m.fds = cfds_new(in->classic->daemon->reaper, item->fds, n);
	if (!in->m.fds)
		return -ENOMEM;
	a->taken = true;
	return 0;
}

/* Those of an application may block when they are closed; memfds do not. */
void module_discard(struct module *m, const struct arrival *a)
{
	const struct kdbus_item *item, *fds = fds_of(a->msg);
	unsigned int i;

	for (i = 0; !a->taken && i < count_fds(fds); i++)
		if (fds->fds[i] >= 0)
			reaper_close(m->classic->daemon->reaper, fds->fds[i]);
	each_item(item, a->msg)
		if (item->type == KDBUS_ITEM_PAYLOAD_MEMFD && item->memfd.fd >= 0)
			close(item->memfd.fd);
	kconn_free(&a->inlet->conn, a->msg);
}

static struct pooled source_of(const struct kdbus_msg *msg)
{
	return (struct pooled){ .source = { .read = read_payload,
					    .msg = msg,
					    .size = payload_size(msg),
					    .n_fds = count_fds(fds_of(msg)) },
				.msg = msg };
}

/* ---- for one ---- */

/* Its sender has sent it: he is told what has become of his call. */
static void refuse(struct module *m, struct cpeer *to, const struct kdbus_msg *msg, int error)
{
	const char *name = DBUS_ERROR("Failed"), *text = "The message cannot be delivered";

	if (error == -EPERM) {
		name = DBUS_ERROR("AccessDenied");
		text = "The policy of the bus does not allow this message";
	} else if (error == -ECOMM || error == -EMFILE) {
		name = DBUS_ERROR("NotSupported");
		text = "The receiver does not take these Unix file descriptors";
	} else if (error == -EBADMSG) {
		name = DBUS_ERROR("InconsistentMessage");
		text = "The message is not a D-Bus message, or not what it is said to be";
	} else if (error == -ENOBUFS || error == -EMSGSIZE) {
		name = DBUS_ERROR("LimitsExceeded");
		text = "The message queue of the receiver is full, or the message too large for it";
	} else if (error == -ENOMEM) {
		name = DBUS_ERROR("NoMemory");
		text = "Memory allocation failure";
	}
	module_refuse(m, to, msg, name, text);
	log_sparingly(&m->complaints, "a message of connection %llu to %s is not delivered: %s",
		      (unsigned long long)msg->src_id, to->name, text);
}

/* The outcome of a call that the module says is over. */
static void call_ended(struct cpeer *c, const struct kdbus_msg *msg)
{
	uint32_t serial = (uint32_t)msg->cookie_reply;
	bool late = msg->items[0].type == KDBUS_ITEM_REPLY_TIMEOUT;

	if (!reply_awaits_native(c, serial))
		return;
	reply_forget(c, serial);
	driver_error_serial(c, serial, DBUS_ERROR("NoReply"),
			    late ? "Message did not receive a reply (timeout by message bus)" :
				   "Message recipient disconnected from message bus without "
				   "replying");
}

static int deliver(struct cpeer *to, struct peer *from, struct arrival *a)
{
	const struct pooled source = source_of(a->msg);
	struct incoming in;
	int r = incoming_begin(&in, to->classic, from, &source.source);

	if (r == 0)
		r = incoming_admit(&in, to);
	if (r == 0)
		r = incoming_body(&in, &source.source);
	if (r == 0)
		r = take_fds(&in, a);
	if (r == 0)
		r = incoming_deliver(&in, to);
	incoming_end(&in);
	return r;
}

/*
 * A reply that cannot be delivered is none: nothing more will come. Who sent it has sent it as far
 * as the module is concerned.
 */
static void fail_reply(struct cpeer *to, const struct kdbus_msg *msg)
{
	uint32_t serial = (uint32_t)msg->cookie_reply;

	if (!msg->cookie_reply || !reply_awaits_native(to, serial))
		return;
	reply_forget(to, serial);
	driver_error_serial(to, serial, DBUS_ERROR("NoReply"), "The reply cannot be delivered");
}

void module_receive(struct module *m, struct cpeer *to, struct arrival *a)
{
	const struct kdbus_msg *msg = a->msg;
	struct peer *from;
	int r;

	if (!cpeer_alive(to))
		return;
	if (!msg->src_id) {
		call_ended(to, msg);
		return;
	}
	from = mirror_find(m, msg->src_id);
	if (from)
		mirror_learn(from, msg);
	r = from ? deliver(to, from, a) : -ESRCH;
	if (r == 0)
		return;
	if (msg->flags & KDBUS_MSG_EXPECT_REPLY)
		refuse(m, to, msg, r);
	else
		fail_reply(to, msg);
}

/* ---- for all ---- */

void module_hear_broadcast(struct module *m, struct arrival *a)
{
	const struct pooled source = source_of(a->msg);
	struct peer *from = mirror_find(m, a->msg->src_id);
	struct incoming in;
	int r;

	if (!from || from->kind != PEER_REMOTE)
		return;
	mirror_learn(from, a->msg);
	r = incoming_begin(&in, m->classic, from, &source.source);
	if (r == 0)
		r = incoming_body(&in, &source.source);
	if (r == 0)
		route_to_matches(m->classic, &in.m);
	else
		log_sparingly(
			&m->complaints,
			"a broadcast of connection %llu is not delivered to classic peers: %s",
			(unsigned long long)a->msg->src_id, strerror(-r));
	incoming_end(&in);
}

/* ---- for one that is still to be started ---- */

static bool has_memfd(const struct kdbus_msg *msg)
{
	const struct kdbus_item *item;

	each_item(item, msg)
		if (item->type == KDBUS_ITEM_PAYLOAD_MEMFD)
			return true;
	return false;
}

int module_may_start(struct module *m, const struct kdbus_msg *msg, struct peer **ret_from)
{
	const struct pooled source = source_of(msg);
	struct peer *from = mirror_find(m, msg->src_id);
	struct incoming in;
	int r;

	*ret_from = from;
	if (!from)
		return -ESRCH;
	mirror_learn(from, msg);
	/* Its memfds are not there before it is received: all of it would have to be allowed. */
	if (has_memfd(msg))
		return access_may_send_anything(m->classic, from) ? 0 : -EPERM;
	r = incoming_begin(&in, m->classic, from, &source.source);
	if (r == 0 && !access_may_pass(from, NULL, &in.m))
		r = -EPERM;
	incoming_end(&in);
	return r;
}
