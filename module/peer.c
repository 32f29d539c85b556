// SPDX-License-Identifier: GPL-2.0-only
#include "peer.h"

static int execute(struct kbus_conn *conn, struct file *file, struct kbus_arg *arg)
{
	switch (arg->args.cmd) {
	case CORE_CMD_UPDATE:
		return kbus_peer_update(conn, arg);
	case CORE_CMD_BYEBYE:
		return kbus_peer_byebye(conn);
	case CORE_CMD_FREE:
		return kbus_peer_free(conn, arg);
	case CORE_CMD_CONN_INFO:
		return kbus_peer_conn_info(conn, arg);
	case CORE_CMD_BUS_CREATOR_INFO:
		return kbus_peer_creator_info(conn, arg);
	case CORE_CMD_LIST:
		return kbus_peer_list(conn, arg);
	case CORE_CMD_SEND:
		return kbus_peer_send(conn, file, arg);
	case CORE_CMD_RECV:
		return kbus_peer_recv(conn, arg);
	case CORE_CMD_NAME_ACQUIRE:
		return kbus_peer_name_acquire(conn, arg);
	case CORE_CMD_NAME_RELEASE:
		return kbus_peer_name_release(conn, arg);
	case CORE_CMD_MATCH_ADD:
		return kbus_peer_match_add(conn, arg);
	case CORE_CMD_MATCH_REMOVE:
		return kbus_peer_match_remove(conn, arg);
	default:
		return -EBADFD;
	}
}

int kbus_peer_command(struct kbus_conn *conn, struct file *file, enum core_cmd cmd,
		      void __user *user)
{
	struct kbus_arg arg core_uninitialized;
	int r;

	r = core_cmd_check_kind(cmd, conn->core.kind);
	if (r)
		return r;
	r = kbus_arg_read(&arg, cmd, user);
	/* SEND goes on to the message, which tells its flags as well */
	if (!r && (!arg.args.negotiate || cmd == CORE_CMD_SEND))
		r = execute(conn, file, &arg);
	return kbus_arg_end(&arg, r);
}
