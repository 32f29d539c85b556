// SPDX-License-Identifier: LGPL-2.1-or-later
/* The domain directory: the control node, buses, endpoints (ABI 1.1 to 1.3). */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "classic/classic.h"
#include "client.h"
#include "random.h"

static mode_t node_mode(u64 flags)
{
	if (flags & KDBUS_MAKE_ACCESS_WORLD)
		return 0666;
	return flags & KDBUS_MAKE_ACCESS_GROUP ? 0660 : 0600;
}

static mode_t dir_mode(u64 flags)
{
	if (flags & KDBUS_MAKE_ACCESS_WORLD)
		return 0755;
	return flags & KDBUS_MAKE_ACCESS_GROUP ? 0750 : 0700;
}

static int join(char **ret, const char *dir, const char *name)
{
	return asprintf(ret, "%s/%s", dir, name) < 0 ? -ENOMEM : 0;
}

static int open_dir(const char *path, int flags)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | flags);

	return fd < 0 ? -errno : fd;
}

/*
 * The directory of a bus is the daemon's, whoever owns the bus: in a directory of his own he could
 * put anything in the place of a node while the daemon sets its owner and mode. Where the creator
 * is somebody else all may search it, and the nodes in it decide. A directory left by a dead daemon
 * is used again.
 */
static int make_dir(const char *path, mode_t mode, uid_t uid)
{
	int fd, r = 0;

	if (mkdir(path, 0700) < 0 && errno != EEXIST)
		return -errno;
	fd = open_dir(path, O_NOFOLLOW);
	if (fd < 0)
		return fd;
	if (uid != geteuid())
		mode = 0755;
	if (geteuid() == 0 && fchown(fd, 0, 0) < 0)
		r = -errno;
	if (r == 0 && fchmod(fd, mode) < 0)
		r = -errno;
	close(fd);
	return r;
}

/* Who can write in the domain directory can replace what the daemon makes there. */
static int check_domain(const char *dir)
{
	struct stat st;
	int fd = open_dir(dir, 0), r;

	if (fd < 0)
		return fd;
	r = fstat(fd, &st) < 0 ? -errno : 0;
	close(fd);
	if (r < 0)
		return r;
	if ((st.st_uid && st.st_uid != geteuid()) ||
	    (st.st_mode & (S_IWOTH | S_ISVTX)) == S_IWOTH) {
		log_line("%s belongs to uid %u, or all may write in it", dir,
			 (unsigned int)st.st_uid);
		return -EPERM;
	}
	return 0;
}

static int listening_fd_for(const char *path)
{
	struct sockaddr_un sa;
	socklen_t size;
	static int n = -1;
	int i;

	if (n < 0)
		n = service_listen_fds();
	for (i = SERVICE_FDS_START; i < SERVICE_FDS_START + n; i++) {
		size = sizeof(sa);
		memset(&sa, 0, sizeof(sa));
		if (getsockname(i, (struct sockaddr *)&sa, &size) == 0 &&
		    sa.sun_family == AF_UNIX && !strncmp(sa.sun_path, path, sizeof(sa.sun_path)))
			return i;
	}
	return -1;
}

int node_open_or_adopt(struct node *node, struct daemon *d, struct endpoint *ep, const char *path,
		       mode_t mode, uid_t uid, gid_t gid)
{
	int fd = listening_fd_for(path);

	return fd >= 0 ? node_adopt(node, d, ep, path, fd) :
			 node_open(node, d, ep, path, mode, uid, gid);
}

/* ---- buses ---- */

static int open_bus_nodes(struct bus *bus, const struct creds *creds)
{
	struct daemon *d = bus->daemon;
	char *path = NULL;
	int r;

	r = join(&bus->dir, d->dir, bus->core.name);
	if (r == 0)
		r = make_dir(bus->dir, dir_mode(bus->core.flags), creds->core.euid);
	if (r == 0)
		r = join(&path, bus->dir, "bus");
	if (r == 0)
		r = node_open_or_adopt(&bus->def.node, d, &bus->def, path,
				       node_mode(bus->core.flags), creds->core.euid,
				       creds->core.egid);
	free(path);
	return r;
}

static void free_bus(struct bus *bus)
{
	if (bus->dir)
		rmdir(bus->dir);
	free(bus->dir);
	creds_unref(bus->creator);
	free(bus);
}

static int new_bus(struct daemon *d, const struct core_bus_make *make, const struct creds *creds,
		   struct client *owner, struct bus **ret_bus)
{
	struct bus *bus = calloc(1, sizeof(*bus));
	u8 random[16];
	int r;

	if (!bus)
		return -ENOMEM;
	bus->daemon = d;
	bus->owner = owner;
	bus->def.node.fd = -1;
	INIT_LIST_HEAD(&bus->endpoints);
	r = random_fill(random, sizeof(random));
	if (r == 0)
		r = core_bus_make(&d->core, &bus->core, make, creds->uid, creds->core.euid, random);
	if (r < 0) {
		free(bus);
		return r;
	}
	bus->creator = creds_ref((struct creds *)creds);
	bus->def.core = &bus->core.def;
	bus->def.bus = bus;
	list_add_tail(&bus->entry, &d->buses);
	*ret_bus = bus;
	return 0;
}

int bus_make(struct daemon *d, const struct core_bus_make *make, const struct creds *creds,
	     struct client *owner, struct bus **ret_bus)
{
	struct bus *bus;
	int r = new_bus(d, make, creds, owner, &bus);

	if (r < 0)
		return r;
	r = open_bus_nodes(bus, creds);
	if (r < 0) {
		bus_end(bus);
		return r == -EADDRINUSE ? -EEXIST : r;
	}
	*ret_bus = bus;
	return 0;
}

/* One that is doomed already refers to the endpoint like any other. */
static struct client *handle_on(const struct endpoint *ep)
{
	struct daemon *d = ep->bus->daemon;
	struct client *c;

	list_for_each_entry(c, &d->clients, entry)
		if (c->ep == ep)
			return c;
	list_for_each_entry(c, &d->doomed, entry)
		if (c->ep == ep)
			return c;
	return NULL;
}

/*
 * Every handle that was opened on the endpoint loses it; connections end first (ABI 1.9). The end
 * of one may doom others, so each turn begins anew.
 */
static void end_handles(struct endpoint *ep)
{
	struct client *c;

	while ((c = handle_on(ep))) {
		if (c->connected)
			client_disconnect(c);
		c->ep = NULL;
		c->node = NULL;
		client_expel(c, NULL);
	}
}

void endpoint_end(struct endpoint *ep)
{
	if (ep->core->dead && !ep->node.path)
		return;
	node_close(&ep->node);
	end_handles(ep);
	if (ep->owner) {
		core_endpoint_teardown(ep->core);
		ep->owner->made_ep = NULL;
		list_del(&ep->entry);
		free(ep);
	}
}

void bus_end(struct bus *bus)
{
	struct endpoint *ep, *next;

	classic_stop(bus);
	list_for_each_entry_safe(ep, next, &bus->endpoints, entry)
		endpoint_end(ep);
	node_close(&bus->def.node);
	end_handles(&bus->def);
	core_bus_teardown(&bus->core);
	if (bus->owner)
		bus->owner->made_bus = NULL;
	list_del(&bus->entry);
	free_bus(bus);
}

int endpoint_make(struct bus *bus, const char *name, u64 flags, struct client *owner,
		  struct endpoint **ret_ep)
{
	struct endpoint *ep = calloc(1, sizeof(*ep));
	const struct core_cred *cred = &owner->creds->core;
	char *path = NULL;
	int r;

	if (!ep)
		return -ENOMEM;
	ep->node.fd = -1;
	ep->bus = bus;
	ep->owner = owner;
	r = core_endpoint_make(&bus->core, &ep->own, name, flags);
	if (r < 0) {
		free(ep);
		return r;
	}
	ep->core = &ep->own;
	list_add_tail(&ep->entry, &bus->endpoints);
	owner->made_ep = ep;
	r = join(&path, bus->dir, name);
	if (r == 0)
		r = node_open(&ep->node, bus->daemon, ep, path, node_mode(flags), cred->euid,
			      cred->egid);
	free(path);
	if (r < 0) {
		endpoint_end(ep);
		return r == -EADDRINUSE ? -EEXIST : r;
	}
	*ret_ep = ep;
	return 0;
}

/* ---- the domain ---- */

static int make_own_bus(struct daemon *d, const char *bus_name, u64 flags, bool copy,
			struct bus **ret_bus)
{
	const struct core_bus_make make = {
		.name = bus_name,
		.flags = flags,
		.bloom = { .size = 64, .n_hash = 8 },
		.creator_mask = _KDBUS_ATTACH_ALL,
	};
	struct creds *self;
	int r = creds_of_self(&self);

	if (r < 0)
		return r;
	r = copy ? new_bus(d, &make, self, NULL, ret_bus) : bus_make(d, &make, self, NULL, ret_bus);
	creds_unref(self);
	return r;
}

int bus_copy(struct daemon *d, const char *name, struct bus **ret_bus)
{
	return make_own_bus(d, name, 0, true, ret_bus);
}

int domain_start(struct daemon *d, const char *dir, const char *bus_name, u64 bus_flags)
{
	char *path = NULL;
	struct bus *bus;
	int r;

	d->dir = strdup(dir);
	if (!d->dir)
		return -ENOMEM;
	if (mkdir(dir, 0755) < 0 && errno != EEXIST)
		return -errno;
	r = check_domain(dir);
	if (r == 0)
		r = join(&path, dir, "control");
	if (r == 0)
		r = node_open_or_adopt(&d->control, d, NULL, path, 0666, geteuid(), getegid());
	free(path);
	return r < 0 ? r : make_own_bus(d, bus_name, bus_flags, false, &bus);
}

void domain_stop(struct daemon *d)
{
	struct bus *bus, *next;

	list_for_each_entry_safe(bus, next, &d->buses, entry)
		bus_end(bus);
	node_close(&d->control);
	if (d->dir)
		rmdir(d->dir);
	free(d->dir);
	d->dir = NULL;
}
