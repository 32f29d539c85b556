// SPDX-License-Identifier: GPL-2.0-only
#include <linux/file.h>
#include <linux/poll.h>

#include "life.h"
#include "peer.h"
#include "route.h"

static int get_cancel(const struct kbus_arg *arg, struct file **ret_file)
{
	const struct kdbus_item *item = core_args_get(&arg->args, KDBUS_ITEM_CANCEL_FD);
	struct file *file;

	*ret_file = NULL;
	if (!item)
		return 0;
	file = fget(*(const int *)core_item_payload(item));
	if (!file)
		return -EBADF;
	if (!file_can_poll(file)) {
		fput(file);
		return -EINVAL;
	}
	*ret_file = file;
	return 0;
}

static int send(struct kbus_conn *conn, struct file *file, struct kbus_message *message,
		struct file *cancel, struct kbus_arg *arg)
{
	struct kdbus_cmd_send *cmd = arg->copy;
	struct core_reply *slot;
	int r;

	r = kbus_message_check(message, arg->args.flags & KDBUS_SEND_SYNC_REPLY);
	if (r)
		return r;
	/*
	 * That the result cannot be told should be known before there is one; for what is
	 * no synchronous call, this is the result.
	 */
	cmd->reply = (struct kdbus_msg_info){ .offset = conn->core.inbox.pool.size };
	r = kbus_arg_write(arg);
	if (!r)
		r = kbus_route(message, &slot);
	if (r || !slot)
		return r;
	r = kbus_wait(conn, file, slot, message->msg->timeout_ns, cancel, &cmd->reply);
	return r ? r : kbus_arg_write(arg);
}

int kbus_peer_send(struct kbus_conn *conn, struct file *file, struct kbus_arg *arg)
{
	const struct kdbus_cmd_send *cmd = arg->copy;
	struct kdbus_msg __user *user = u64_to_user_ptr(cmd->msg_address);
	bool negotiate = arg->args.negotiate;
	struct kbus_message message core_uninitialized;
	struct file *cancel;
	int r;

	if (negotiate && !cmd->msg_address)
		return 0;
	r = kbus_message_read(&message, conn, user, negotiate);
	if (!r && !negotiate) {
		r = get_cancel(arg, &cancel);
		if (!r)
			r = send(conn, file, &message, cancel, arg);
		if (cancel)
			fput(cancel);
	}
	kbus_message_release(&message);
	return r;
}
