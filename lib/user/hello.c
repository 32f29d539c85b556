// SPDX-License-Identifier: LGPL-2.1-or-later
/* HELLO: from a handle to a connection with lanes, pool and descriptor. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "user.h"

/*
 * Two mappings of one memory: the library writes, the application reads, and the seal keeps it from
 * making its mapping writable. Its name is what shows up in the maps of the process, as the ABI
 * says (14.1).
 */
static int make_pool(struct user *u, size_t size, const char *description)
{
	char name[16 + CORE_SYSNAME_MAX_LEN + 1];
	void *map;
	int r;

	snprintf(name, sizeof(name), "kdbus-conn%s%s", description ? ":" : "",
		 description ? description : "");
	u->pool_fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (u->pool_fd < 0)
		return -errno;
	if (ftruncate(u->pool_fd, (off_t)size) < 0)
		return errno == EFBIG ? -EINVAL : -errno;
	map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, u->pool_fd, 0);
	if (map == MAP_FAILED)
		return -errno;
	u->memory = map;
	madvise(map, size, MADV_DONTFORK);
	if (fcntl(u->pool_fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE | F_SEAL_SHRINK | F_SEAL_GROW) < 0)
		return -errno;
	map = mmap(NULL, size, PROT_READ, MAP_SHARED, u->pool_fd, 0);
	if (map == MAP_FAILED)
		return -errno;
	u->memory_ro = map;
	r = core_pool_init(&u->pool, size);
	return r;
}

static void drop_pool(struct user *u)
{
	size_t size = u->pool.size;

	core_pool_deinit(&u->pool);
	if (u->memory)
		munmap(u->memory, size);
	if (u->memory_ro)
		munmap((void *)u->memory_ro, size);
	if (u->pool_fd >= 0)
		close(u->pool_fd);
	u->memory = NULL;
	u->memory_ro = NULL;
	u->pool_fd = -1;
}

static int watch(struct user *u, int fd)
{
	return lane_linux_ops.watch(&lane_linux_ops, u->epoll, fd, NULL);
}

static int make_events(struct user *u)
{
	int r;

	u->epoll = epoll_create1(EPOLL_CLOEXEC);
	u->look_event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	u->own_event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	u->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (u->epoll < 0 || u->look_event < 0 || u->own_event < 0 || u->timer < 0)
		return -errno;
	r = watch(u, u->own_event);
	return r < 0 ? r : watch(u, u->timer);
}

static void drop_events(struct user *u)
{
	int *fds[] = { &u->epoll, &u->look_event, &u->own_event, &u->timer };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(fds); i++) {
		if (*fds[i] >= 0)
			close(*fds[i]);
		*fds[i] = -1;
	}
}

/* With the lanes of both sides: take part in the bus. */
static int start_lanes(struct user *u, struct answer *a)
{
	const struct lane_page *page;
	int r;

	if (a->n_fds != 2)
		return -EPROTO;
	r = lane_channel_attach(&u->daemon.channel, a->fds[0]);
	if (r < 0)
		return r;
	r = lane_page_map(a->fds[1], &page);
	if (r < 0)
		return r;
	u->page = page;
	r = lane_look_init(&u->look, &u->lane_ops, u->epoll, u->look_event, page, &u->clock);
	if (r < 0)
		return r;
	u->look.taken_up = peer_taken_up;
	u->look.user = u;
	u->daemon.source = (struct lane_source){ .ch = &u->daemon.channel, .user = &u->daemon };
	r = lane_look_add(&u->look, &u->daemon.source);
	u->daemon.looked = r == 0;
	return r;
}

static int learn(struct user *u, const struct kdbus_cmd_hello *cmd, const struct answer *a)
{
	const struct ctl_welcome *welcome = a->extra;
	const struct kdbus_item *item = (const void *)(welcome + 1);

	if (a->arg_size < sizeof(*cmd) || a->extra_size < sizeof(*welcome) + CORE_HELLO_ITEMS_SIZE)
		return -EPROTO;
	if (item->type != KDBUS_ITEM_BLOOM_PARAMETER ||
	    core_bloom_parameter_check(&item->bloom_parameter) < 0)
		return -EPROTO;
	u->identity.id = cmd->id;
	u->identity.bus_flags = cmd->bus_flags;
	memcpy(u->identity.bus_id, cmd->id128, sizeof(u->identity.bus_id));
	u->identity.bloom = item->bloom_parameter;
	u->conn_flags = welcome->conn_flags;
	u->kind = core_kind(welcome->conn_flags);
	u->may_go_direct = welcome->flags & CTL_WELCOME_DIRECT;
	return 0;
}

/* To see what the way through the daemon costs, or whether a fault lies beside it. */
static u64 features(void)
{
	const char *text = secure_getenv("KDBUS_DIRECT");

	return text && !strcmp(text, "0") ? 0 : CTL_FEATURE_DIRECT;
}

/*
 * Bound to one CPU, this process may still have peers on others: it begins without spinning, and
 * the probes find out (lane/wait.h).
 */
static void start_spin(struct user *u)
{
	unsigned int usable = lane_linux_cpus();
	/* To find out takes reading a file. */
	long online = usable < 2 && lane_linux_spin_ns() ? sysconf(_SC_NPROCESSORS_ONLN) : 0;

	if (online < 2) {
		lane_spin_init(&u->spin, lane_linux_spin_ns(), usable);
		return;
	}
	lane_spin_init(&u->spin, lane_linux_spin_ns(), (unsigned int)online);
	u->spin.budget_ns = 0;
}

/* The daemon has let us in. What fails from here on ends the connection. */
static int begin(struct user *u, struct kdbus_cmd_hello *cmd, struct answer *a)
{
	const struct kdbus_cmd_hello *said = a->arg;
	u64 offset = 0;
	int r = learn(u, said, a);

	if (r == 0)
		r = start_lanes(u, a);
	if (r == 0)
		r = user_pool_answer(u, (const char *)a->extra + sizeof(struct ctl_welcome),
				     CORE_HELLO_ITEMS_SIZE, &offset);
	if (r < 0) {
		user_disconnect(u);
		return r == -EPROTO ? -ECONNRESET : r;
	}
	u->connected = true;
	u->handle = CORE_HANDLE_CONNECTED;
	start_spin(u);
	cmd->bus_flags = said->bus_flags;
	cmd->id = said->id;
	cmd->offset = offset;
	cmd->items_size = CORE_HELLO_ITEMS_SIZE;
	memcpy(cmd->id128, said->id128, sizeof(cmd->id128));
	return 0;
}

static int prepare(struct user *u, const struct kdbus_cmd_hello *cmd, const struct core_args *args,
		   int *ret_lane_fd)
{
	long page = sysconf(_SC_PAGESIZE);
	int r = make_events(u);

	/* A size that is wrong is for the daemon to refuse, in the order of its checks. */
	if (r == 0 && cmd->pool_size && cmd->pool_size % (u64)page == 0)
		r = make_pool(u, cmd->pool_size, core_args_str(args, KDBUS_ITEM_CONN_DESCRIPTION));
	if (r == 0)
		r = lane_channel_make(&u->daemon.channel, LANE_RING_DEFAULT, ret_lane_fd);
	return r == -EEXIST ? -EBADFD : r;
}

static void undo(struct user *u)
{
	drop_events(u);
	drop_pool(u);
}

/*
 * A refused HELLO leaves the handle as it was; its lane is of no use to the next one, which makes
 * another. So the channel is set up anew on the same socket.
 */
static void renew_channel(struct user *u)
{
	struct lane_channel *ch = &u->daemon.channel;
	int sock = ch->sock;

	/* or else it would be shut down, for us as well */
	ch->sock = -1;
	lane_channel_deinit(ch);
	user_channel_start(u, sock);
}

int user_hello(struct user *u, void *copy, const struct core_args *args, void *arg)
{
	struct kdbus_cmd_hello *cmd = copy;
	struct ctl_hello hello = { .features = features() };
	struct answer a = { 0 };
	int lane_fd = -1, r;

	r = prepare(u, cmd, args, &lane_fd);
	hello.monotonic_ns = user_now();
	if (r == 0)
		r = user_request(u, KDBUS_CMD_HELLO, copy, cmd->size, &hello, lane_fd, &a);
	if (lane_fd >= 0)
		close(lane_fd);
	if (r == 0)
		r = a.error;
	user_lock(u);
	if (r == 0)
		r = core_attach_mask(cmd->attach_flags_recv, &u->attach_recv);
	if (r == 0)
		r = begin(u, arg, &a);
	if (r < 0 && !u->connected && !u->dead) {
		undo(u);
		renew_channel(u);
	}
	user_unlock(u);
	user_answer_clear(&a);
	return r;
}

void user_hello_undo(struct user *u)
{
	undo(u);
}
