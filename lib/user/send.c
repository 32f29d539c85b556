// SPDX-License-Identifier: LGPL-2.1-or-later
/* SEND: checks in the order of the ABI (6.14), then direct or through the daemon. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "user.h"

/* Addresses beyond this are the kernel's, wherever the program may have found them. */
#define USER_SPACE_END (1ULL << (sizeof(void *) * 8 - 1))

static bool range_ok(u64 address, u64 size)
{
	return address < USER_SPACE_END && size <= USER_SPACE_END - address;
}

/* Small ones go into @space. */
static int copy_message(const struct kdbus_cmd_send *cmd, void *space, size_t space_size,
			struct kdbus_msg **ret, u64 *ret_size)
{
	const u64 *user = (const u64 *)(uintptr_t)cmd->msg_address;
	struct kdbus_msg *copy;
	u64 size;
	int r;

	if (!user || cmd->msg_address % 8 || !range_ok(cmd->msg_address, sizeof(*copy)))
		return -EFAULT;
	size = *user;
	r = core_msg_check_size(size);
	if (r < 0)
		return r;
	copy = ALIGN(size, 8) <= space_size ? space : malloc(ALIGN(size, 8));
	if (!copy)
		return -ENOMEM;
	memcpy(copy, user, size);
	if (size % 8)
		memset((char *)copy + size, 0, 8 - size % 8);
	r = core_cmd_check_copy(copy, size);
	if (r < 0) {
		if (copy != space)
			free(copy);
		return r;
	}
	*ret = copy;
	*ret_size = size;
	return 0;
}

/* Both structures tell what they know (ABI 3.4); nothing is sent. */
static void negotiate(const struct core_msg *m, const struct kdbus_msg *copy, u64 address)
{
	struct kdbus_msg *user = (struct kdbus_msg *)(uintptr_t)address;
	const struct kdbus_item *item = m->list.negotiate;

	if (m->negotiate)
		user->flags = m->supported;
	if (item)
		memcpy((char *)user + ((const char *)item - (const char *)copy), item,
		       (size_t)item->size);
}

static int check_cancel(const struct core_args *args, int *ret_fd)
{
	const struct kdbus_item *item = core_args_get(args, KDBUS_ITEM_CANCEL_FD);
	struct stat st;
	int fd;

	*ret_fd = -1;
	if (!item)
		return 0;
	memcpy(&fd, core_item_payload(item), sizeof(fd));
	if (fd < 0 || fstat(fd, &st) < 0)
		return -EBADF;
	if (fcntl(fd, F_GETFL) & O_PATH)
		return -EBADF;
	if (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode))
		return -EINVAL;
	*ret_fd = fd;
	return 0;
}

/* ---- descriptors (ABI 7.2) ---- */

static int check_fd(int fd)
{
	struct stat st;
	int flags = fd < 0 ? -1 : fcntl(fd, F_GETFL), domain;
	socklen_t size = sizeof(domain);

	if (flags < 0 || fstat(fd, &st) < 0)
		return -EBADF;
	if (flags & O_PATH || !S_ISSOCK(st.st_mode))
		return user_is_handle_fd(fd) ? -EOPNOTSUPP : 0;
	if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 && domain == AF_UNIX)
		return -EOPNOTSUPP;
	return 0;
}

static int check_memfd(const struct kdbus_memfd *memfd)
{
	const int need = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
	int seals = fcntl(memfd->fd, F_GET_SEALS);
	struct stat st;

	/* That is also what it says of O_PATH. */
	if (seals < 0)
		return errno == EBADF ? -EBADF : -EMEDIUMTYPE;
	if ((seals & need) != need)
		return -ETXTBSY;
	if (fstat(memfd->fd, &st) < 0)
		return -EBADF;
	return memfd->start + memfd->size > (u64)st.st_size ? -EFAULT : 0;
}

static int take_fds_item(struct outgoing *out, const struct kdbus_item *item)
{
	u32 i;
	int r;

	for (i = 0; i < out->wire.m.n_fds; i++) {
		memcpy(&out->fds[i], (const int *)core_item_payload(item) + i, sizeof(int));
		r = check_fd(out->fds[i]);
		if (r < 0)
			return r;
	}
	return 0;
}

static int take_descriptors(struct outgoing *out)
{
	const struct core_msg *m = &out->wire.m;
	const struct kdbus_item *item;
	int r = 0;

	out->n_fds = m->n_fds;
	core_item_for_each(item, m->list.items, m->list.size) {
		if (item->type == KDBUS_ITEM_FDS)
			r = take_fds_item(out, item);
		if (item->type == KDBUS_ITEM_PAYLOAD_MEMFD) {
			out->fds[m->n_fds + out->n_memfds++] = item->memfd.fd;
			r = check_memfd(&item->memfd);
		}
		if (r < 0)
			return r;
	}
	return 0;
}

/* ---- where to ---- */

/*
 * A change of policy or of a name's owner may have ended introductions: the daemon has said so in
 * its lane before that command returned. One that was asked for may have come. Either is no news
 * any more if it was seen, and passed over, in the search for a verdict.
 */
static void see_news(struct user *u)
{
	const struct lane_channel *ch = &u->daemon.channel;

	if (ch->read != ch->seen || lane_news(ch))
		user_pump(u, LANE_LOOK_POLL);
}

/* The peer to send to directly, if that may be: see rule 5 of user.h. */
static struct peer *find_direct(struct user *u, const struct outgoing *out, u64 *ret_name_id)
{
	const struct core_msg *m = &out->wire.m;
	const struct resolved *known = NULL;
	struct peer *p;
	u64 id = m->msg->dst_id;

	*ret_name_id = 0;
	if (m->dst_name) {
		known = resolve_find(u, m->dst_name);
		if (!known || (id && id != known->id))
			return NULL;
		id = known->id;
		*ret_name_id = known->name_id;
	}
	if (m->route == CORE_ROUTE_BROADCAST || m->msg->flags & KDBUS_MSG_SIGNAL)
		return NULL;
	see_news(u);
	p = peer_find(u, id);
	if (!p || !peer_usable(u, p))
		return NULL;
	if (out->n_fds && !(p->intro & CTL_INTRO_EQUAL))
		return NULL;
	if (m->route == CORE_ROUTE_REPLY)
		return p;
	return p->intro & CTL_INTRO_OUT_MESSAGES ? p : NULL;
}

/* @ret_owed: the call that is answered by it; it is so once the reply is out. */
static int check_reply(struct user *u, struct outgoing *out, struct owed **ret_owed)
{
	const struct kdbus_msg *msg = out->wire.m.msg;
	u64 requester = msg->dst_id;
	const struct resolved *known;
	struct owed *o;
	bool sync;

	if (out->wire.m.route != CORE_ROUTE_REPLY)
		return 0;
	if (!requester && out->wire.m.dst_name) {
		known = resolve_find(u, out->wire.m.dst_name);
		if (!known)
			return 0;
		requester = known->id;
	}
	o = owed_find(u, requester, msg->cookie_reply);
	if (!o)
		return peer_is_gone(u, requester) ? -ENXIO : -EBADSLT;
	sync = o->sync;
	out->to_sync = sync;
	owed_detach(u, o);
	*ret_owed = o;
	if (out->n_fds && peer_refuses_fds(u, requester)) {
		if (sync)
			peer_refuse(u, requester, msg->cookie_reply, EREMOTEIO, true);
		return -ECOMM;
	}
	return 0;
}

static int check_stuck(struct user *u, const struct outgoing *out)
{
	const struct core_msg *m = &out->wire.m;
	const struct resolved *known = m->dst_name ? resolve_find(u, m->dst_name) : NULL;
	struct peer *p = peer_find(u, known ? known->id : m->msg->dst_id);

	return p ? peer_unstick(u, p) : 0;
}

/* Without room for the reply the call can be answered later. */
static void settle_owed(struct user *u, struct owed *o, int r, bool told)
{
	if (!o)
		return;
	if ((r == -ENOBUFS || r == -EXFULL) && !told && !u->dead)
		owed_attach(u, o);
	else
		owed_free(o);
}

/* With the lock, which is free while the message is relayed. */
static int dispatch(struct user *u, struct outgoing *out, struct core_reply **ret_slot)
{
	struct owed *owed = NULL;
	bool relayed = false;
	struct peer *p;
	u64 name_id;
	int r;

	user_enter_send(u);
	direct_release_fds(u);
	r = u->dead ? -ECONNRESET : check_reply(u, out, &owed);
	if (r == 0)
		r = check_stuck(u, out);
	p = r < 0 ? NULL : find_direct(u, out, &name_id);
	if (p) {
		p->held++;
		r = direct_send(u, out, p, name_id, ret_slot);
		peer_put(u, p);
	}
	if (r >= 0 && (!p || r != 0)) {
		relayed = true;
		user_unlock(u);
		r = relay_send(u, out, ret_slot);
		user_lock(u);
	}
	/* Who waits in SEND has been told by the daemon, and waits no longer (ABI 7.8). */
	settle_owed(u, owed, r, relayed && r == -ENOBUFS && out->to_sync);
	return r;
}

/* A call that a signal interrupted and that is sent again: it is still under way (ABI 7.8). */
static struct core_reply *resume(struct user *u, struct outgoing *out)
{
	out->since = u->daemon.channel.seen;
	return u->dead ? NULL : core_reply_resume(&u->requester, out->wire.m.msg->cookie);
}

static int send_call(struct user *u, struct outgoing *out, struct kdbus_msg_info *ret)
{
	struct core_reply *slot = resume(u, out);
	int r = 0;

	if (!slot && user_now() >= out->deadline)
		return -ETIMEDOUT;
	if (!slot)
		r = dispatch(u, out, &slot);
	return r < 0 ? r : call_wait(u, out, slot, ret);
}

/* Without the descriptors and the message itself: they are most of it. */
static void start_outgoing(struct outgoing *out, bool sync, u64 deadline)
{
	out->n_fds = 0;
	out->n_memfds = 0;
	out->sync = sync;
	out->to_sync = false;
	out->cancel_fd = -1;
	out->deadline = deadline;
	out->since = 0;
}

static int send_parsed(struct user *u, struct core_msg *m, const struct kdbus_cmd_send *cmd,
		       const struct core_args *args, struct kdbus_msg_info *ret)
{
	bool sync = args->flags & KDBUS_SEND_SYNC_REPLY;
	const struct core_msg_facts facts = { .id = u->identity.id,
					      .sync = sync,
					      .bloom_size = u->identity.bloom.size,
					      .range_ok = range_ok };
	struct outgoing out core_uninitialized;
	struct core_reply *slot = NULL;
	int r;

	start_outgoing(&out, sync, m->msg->timeout_ns);
	r = check_cancel(args, &out.cancel_fd);
	if (r == 0)
		r = core_msg_check(m, &facts);
	if (r < 0)
		return r;
	wire_init(&out.wire, m);
	r = take_descriptors(&out);
	if (r < 0)
		return r;
	*ret = (struct kdbus_msg_info){ .offset = u->pool.size };
	user_lock(u);
	r = sync ? send_call(u, &out, ret) : dispatch(u, &out, &slot);
	user_unlock(u);
	return r;
}

int user_send(struct user *u, struct kdbus_cmd_send *cmd, const struct core_args *args, void *arg)
{
	struct kdbus_msg_info info = { 0 };
	u64 space[64];
	struct kdbus_msg *copy;
	struct core_msg m;
	u64 size;
	int r;

	if (args->negotiate && !cmd->msg_address)
		return 0;
	r = copy_message(cmd, space, sizeof(space), &copy, &size);
	if (r < 0)
		return r;
	r = core_msg_parse(copy, size, args->negotiate, &m);
	if (r == 0 && args->negotiate)
		negotiate(&m, copy, cmd->msg_address);
	else if (r == 0)
		r = send_parsed(u, &m, cmd, args, &info);
	if (r == 0 && !args->negotiate)
		((struct kdbus_cmd_send *)arg)->reply = info;
	if ((void *)copy != space)
		free(copy);
	return r;
}
