// SPDX-License-Identifier: LGPL-2.1-or-later
/* RECV (ABI 6.15, 7.10). */
#include <errno.h>
#include <string.h>

#include "user.h"

static struct message *select_message(struct user *u, const struct kdbus_cmd_recv *cmd,
				      const struct core_args *args)
{
	struct core_queue_entry *entry;

	if (args->flags & KDBUS_RECV_USE_PRIORITY)
		entry = core_queue_select(&u->queue, cmd->priority);
	else
		entry = core_queue_first(&u->queue);
	return entry ? container_of(entry, struct message, entry) : NULL;
}

/*
 * By priority all lanes have to be looked at; else until there is one. Deadlines are judged after
 * the look.
 */
static void look(struct user *u, const struct core_args *args)
{
	if (args->flags & KDBUS_RECV_USE_PRIORITY) {
		user_pump(u, LANE_LOOK_POLL);
	} else if (!u->queue.n && user_pump_one(u, LANE_LOOK_POLL) == -EAGAIN) {
		user_give_cpu(u);
		user_pump_one(u, LANE_LOOK_ARM);
	}
	user_expire(u);
}

static void report_lost(struct user *u, struct kdbus_cmd_recv *cmd)
{
	cmd->dropped_msgs = u->lost;
	cmd->return_flags = u->lost ? KDBUS_RECV_RETURN_DROPPED_MSGS : 0;
	u->lost = 0;
}

static void drop(struct user *u, struct message *m)
{
	const struct kdbus_msg *msg = (const void *)(u->memory + m->slice->offset);
	/* Whoever called may be gone, and what was owed with him. */
	struct owed *o = m->owed ? owed_find(u, msg->src_id, msg->cookie) : NULL;

	if (o) {
		peer_refuse(u, o->requester, o->cookie, EPIPE, o->sync);
		owed_remove(u, o);
	}
	message_discard(u, m);
}

/*
 * close(): calls that nobody has read are not answered. What is in the lanes still goes to whom it
 * may concern; this is not to be had back.
 */
void user_refuse_unread(struct user *u)
{
	struct core_queue_entry *entry;

	user_lock(u);
	while ((entry = core_queue_first(&u->queue)))
		drop(u, container_of(entry, struct message, entry));
	user_unlock(u);
}

static void hand_out(struct user *u, struct message *m, bool peek, struct kdbus_msg_info *ret)
{
	*ret = (struct kdbus_msg_info){ .offset = m->slice->offset, .msg_size = m->size };
	if (!peek) {
		core_queue_remove(&u->queue, &m->entry);
		ret->return_flags =
			message_install_fds(u, m, u->conn_flags & KDBUS_HELLO_ACCEPT_FD);
	}
	message_publish(u, m);
}

static int receive(struct user *u, struct kdbus_cmd_recv *cmd, const struct core_args *args)
{
	struct message *m;
	struct kdbus_msg_info info = { .offset = u->pool.size };

	u->quiet++;
	look(u, args);
	u->quiet--;
	direct_release_fds(u);
	if (u->dead && !u->queue.n)
		return -ECONNRESET;
	m = select_message(u, cmd, args);
	report_lost(u, cmd);
	if (m && args->flags & KDBUS_RECV_DROP)
		drop(u, m);
	else if (m)
		hand_out(u, m, args->flags & KDBUS_RECV_PEEK, &info);
	cmd->msg = info;
	user_update_events(u);
	return m ? 0 : -EAGAIN;
}

/*
 * An activator's messages wait in the daemon, from where they can still be handed over (ABI 10.6).
 */
static int ask_remote(struct user *u, const struct kdbus_cmd_recv *cmd, struct answer *a)
{
	struct kdbus_cmd_recv copy = *cmd;
	struct core_slice *reserve = NULL;
	size_t room;
	int r;

	/*
	 * Kept free until the answer is here: what finds no room stays where it is. The answer is
	 * laid out in a slice that is a little larger (user_take_answer()).
	 */
	user_lock(u);
	room = core_pool_room(&u->pool);
	if (room > 2 * sizeof(u64))
		core_pool_alloc(&u->pool, room, false, &reserve);
	user_unlock(u);
	copy.msg.msg_size = reserve ? room - 2 * sizeof(u64) : 0;
	r = user_request(u, KDBUS_CMD_RECV, &copy, sizeof(copy), NULL, -1, a);
	user_lock(u);
	core_pool_release(&u->pool, reserve);
	return r < 0 ? r : a->error;
}

static int receive_remote(struct user *u, struct kdbus_cmd_recv *cmd)
{
	const struct kdbus_cmd_recv *said;
	struct answer a;
	int r = ask_remote(u, cmd, &a);

	said = a.arg;
	/* Take up that nothing waits any more, or the descriptor would go on saying so. */
	user_pump_one(u, LANE_LOOK_ARM);
	if ((r == 0 || r == -EAGAIN || r == -EXFULL) && a.arg_size >= sizeof(*said)) {
		cmd->dropped_msgs = said->dropped_msgs;
		cmd->return_flags = said->return_flags;
		cmd->msg = (struct kdbus_msg_info){ .offset = u->pool.size };
		if (a.extra_size)
			r = user_take_answer(u, &a, &cmd->msg);
	}
	user_unlock(u);
	user_answer_clear(&a);
	return r;
}

int user_recv(struct user *u, struct kdbus_cmd_recv *cmd, const struct core_args *args)
{
	int r = core_check_recv(args);

	if (r < 0)
		return r;
	if (u->kind == CORE_KIND_ACTIVATOR)
		return receive_remote(u, cmd);
	user_lock(u);
	r = u->dead ? -ECONNRESET : receive(u, cmd, args);
	user_unlock(u);
	return r;
}
