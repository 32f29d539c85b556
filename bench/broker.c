// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * dbus-broker serves nothing by itself: whoever starts it is its controller and gives it sockets
 * to listen on, over a D-Bus connection without a bus. This is a controller with one socket and a
 * policy that allows everything.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <systemd/sd-bus.h>

#include "bus.h"
#include "child.h"

/* verdict and priority of: connecting; owning names; sending; receiving */
#define BATCH  "bta(btbs)a(btssssuutt)a(btssssuutt)"
/* per uid; per range of uids or gids; SELinux contexts; AppArmor; kind of bus */
#define POLICY "a(u(" BATCH "))a(buu(" BATCH "))a(ss)bs"

static int listen_on(struct bus *b)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int r;

	if (fd < 0)
		return -errno;
	snprintf(sun.sun_path, sizeof(sun.sun_path), "%s/bus", b->directory);
	if (bind(fd, (struct sockaddr *)&sun, sizeof(sun)) < 0 || listen(fd, 4096) < 0) {
		r = -errno;
		close(fd);
		return r;
	}
	snprintf(b->address, sizeof(b->address), "unix:path=%s", sun.sun_path);
	return fd;
}

static void exec_broker(const struct bus *b, int controller)
{
	char fd[16];

	bus_log(b);
	snprintf(fd, sizeof(fd), "%d", dup(controller));
	execlp("dbus-broker", "dbus-broker", "--controller", fd, "--machine-id",
	       "0123456789abcdef0123456789abcdef", "--max-bytes", "1000000000", "--max-fds",
	       "100000", "--max-matches", "5000000", (char *)NULL);
	_exit(127);
}

static int append_policy(sd_bus_message *m)
{
	int r = sd_bus_message_open_container(m, 'v', "(" POLICY ")");

	if (r >= 0)
		r = sd_bus_message_open_container(m, 'r', POLICY);
	if (r >= 0)
		r = sd_bus_message_append(m, "a(u(" BATCH "))", 1, UINT32_MAX, 1, 1ULL, 1, 1, 1ULL,
					  1, "", 1, 1, 1ULL, "", "", "", "", 0, 0, 0ULL, UINT64_MAX,
					  1, 1, 1ULL, "", "", "", "", 0, 0, 0ULL, UINT64_MAX);
	if (r >= 0)
		r = sd_bus_message_append(m, "a(buu(" BATCH "))a(ss)bs", 0, 0, 0, "session");
	if (r >= 0)
		r = sd_bus_message_close_container(m);
	if (r >= 0)
		r = sd_bus_message_close_container(m);
	return r;
}

static int add_listener(sd_bus *bus, int fd)
{
	sd_bus_message *m, *reply = NULL;
	int r = sd_bus_message_new_method_call(bus, &m, NULL, "/org/bus1/DBus/Broker",
					       "org.bus1.DBus.Broker", "AddListener");

	if (r < 0)
		return r;
	r = sd_bus_message_append(m, "oh", "/org/bus1/DBus/Listener/0", fd);
	if (r >= 0)
		r = append_policy(m);
	if (r >= 0)
		r = sd_bus_call(bus, m, 10000000, NULL, &reply);
	sd_bus_message_unref(reply);
	sd_bus_message_unref(m);
	return r;
}

/* The connection is left open: the broker ends with it. */
static int control(struct bus *b, int fd)
{
	sd_bus *bus;
	int r = sd_bus_new(&bus);

	if (r < 0)
		return r;
	r = sd_bus_set_fd(bus, b->controller, b->controller);
	if (r >= 0)
		r = sd_bus_start(bus);
	if (r < 0) {
		sd_bus_unref(bus);
		return r;
	}
	b->controller = -1;
	b->own = bus;
	return add_listener(bus, fd);
}

int broker_start(struct bus *b)
{
	int pair[2], fd, r = bus_directory(b);

	if (r < 0)
		return r;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	b->controller = pair[0];
	b->pid = child_fork();
	if (b->pid == 0)
		exec_broker(b, pair[1]);
	close(pair[1]);
	if (b->pid < 0)
		return (int)b->pid;
	fd = listen_on(b);
	if (fd < 0)
		return fd;
	r = control(b, fd);
	close(fd);
	return r < 0 ? r : 0;
}

void broker_stop(struct bus *b)
{
	sd_bus_unref(b->own);
	b->own = NULL;
}
