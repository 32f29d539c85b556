// SPDX-License-Identifier: LGPL-2.1-or-later
/* One typed function per command; libkdbus_command() does the work. */
#include "libkdbus.h"

#define COMMAND(name, type, nr)                            \
	int libkdbus_##name(struct libkdbus *h, type *cmd) \
	{                                                  \
		return libkdbus_command(h, nr, cmd);       \
	}

COMMAND(bus_make, struct kdbus_cmd, KDBUS_CMD_BUS_MAKE)
COMMAND(endpoint_make, struct kdbus_cmd, KDBUS_CMD_ENDPOINT_MAKE)
COMMAND(endpoint_update, struct kdbus_cmd, KDBUS_CMD_ENDPOINT_UPDATE)
COMMAND(hello, struct kdbus_cmd_hello, KDBUS_CMD_HELLO)
COMMAND(update, struct kdbus_cmd, KDBUS_CMD_UPDATE)
COMMAND(byebye, struct kdbus_cmd, KDBUS_CMD_BYEBYE)
COMMAND(free, struct kdbus_cmd_free, KDBUS_CMD_FREE)
COMMAND(conn_info, struct kdbus_cmd_info, KDBUS_CMD_CONN_INFO)
COMMAND(bus_creator_info, struct kdbus_cmd_info, KDBUS_CMD_BUS_CREATOR_INFO)
COMMAND(list, struct kdbus_cmd_list, KDBUS_CMD_LIST)
COMMAND(send, struct kdbus_cmd_send, KDBUS_CMD_SEND)
COMMAND(recv, struct kdbus_cmd_recv, KDBUS_CMD_RECV)
COMMAND(name_acquire, struct kdbus_cmd, KDBUS_CMD_NAME_ACQUIRE)
COMMAND(name_release, struct kdbus_cmd, KDBUS_CMD_NAME_RELEASE)
COMMAND(match_add, struct kdbus_cmd_match, KDBUS_CMD_MATCH_ADD)
COMMAND(match_remove, struct kdbus_cmd_match, KDBUS_CMD_MATCH_REMOVE)
