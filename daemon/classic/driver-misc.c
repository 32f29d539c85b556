// SPDX-License-Identifier: LGPL-2.1-or-later
/* GetId, and org.freedesktop.DBus.Peer. */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "driver.h"

#define PEER_INTERFACE "org.freedesktop.DBus.Peer"

static void get_id(struct driver_call *call)
{
	struct dbusp_build b;

	driver_reply_begin(call, &b, "s");
	dbusp_put_string(&b, call->classic->guid);
	driver_reply_end(call, &b);
}

static void ping(struct driver_call *call)
{
	driver_reply(call);
}

static int read_machine_id(const char *path, char id[33])
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, id, 32);

	if (fd >= 0)
		close(fd);
	id[32] = '\0';
	return n == 32 && strspn(id, "0123456789abcdef") == 32 ? 0 : -1;
}

static void get_machine_id(struct driver_call *call)
{
	struct dbusp_build b;
	char id[33];

	if (read_machine_id("/var/lib/dbus/machine-id", id) < 0 &&
	    read_machine_id("/etc/machine-id", id) < 0) {
		driver_error(call->from, call->m, DBUS_ERROR("FileNotFound"),
			     "This machine has no /etc/machine-id");
		return;
	}
	driver_reply_begin(call, &b, "s");
	dbusp_put_string(&b, id);
	driver_reply_end(call, &b);
}

static const struct driver_method methods[] = {
	{ CLASSIC_DRIVER, "GetId", "", "s", DRIVER_ANY_PATH, get_id },
	{ PEER_INTERFACE, "Ping", "", "", DRIVER_ANY_PATH | DRIVER_NO_DESTINATION, ping },
	{ PEER_INTERFACE, "GetMachineId", "", "s", DRIVER_ANY_PATH | DRIVER_NO_DESTINATION,
	  get_machine_id },
};

const struct driver_table driver_misc = {
	.methods = methods,
	.n_methods = ARRAY_SIZE(methods),
};
