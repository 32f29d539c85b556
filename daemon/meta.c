// SPDX-License-Identifier: LGPL-2.1-or-later
/* Metadata of clients, as another client is to see it (ABI 8). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client.h"
#include "record.h"

/* What is translated for one receiver, and the memory it needs */
struct view {
	struct core_meta meta;
	u64 *groups;
	u32 *caps;
};

static void view_clear(struct view *v)
{
	free(v->groups);
	free(v->caps);
}

static void view_creds(struct view *v, const struct creds *to, const struct kdbus_creds *real)
{
	const u64 *from = (const u64 *)real;
	u64 *ids = (u64 *)&v->meta.creds;
	unsigned int i;

	for (i = 0; i < 8; i++)
		ids[i] = i < 4 ? creds_map_uid(to, (u32)from[i]) : creds_map_gid(to, (u32)from[i]);
}

static int view_groups(struct view *v, const struct creds *to, const struct core_meta *real)
{
	size_t i;

	v->groups = calloc(real->n_auxgroups + 1, sizeof(*v->groups));
	if (!v->groups)
		return -ENOMEM;
	for (i = 0; i < real->n_auxgroups; i++)
		v->groups[i] = creds_map_gid(to, (u32)real->auxgroups[i]);
	v->meta.auxgroups = v->groups;
	return 0;
}

static void view_pids(struct view *v, const struct creds *to, const struct creds *of)
{
	v->meta.pids.pid = creds_map_pid(to, of);
	v->meta.pids.tid = v->meta.pids.pid;
	v->meta.pids.ppid = creds_map_ppid(to, of);
}

/* Whether one namespace is above the other /proc does not say: what is not the same is foreign. */
static int view_caps(struct view *v, const struct creds *to, const struct creds *of)
{
	size_t words = CORE_CAP_SETS * core_cap_words(of->meta.last_cap);

	v->caps = calloc(words, sizeof(*v->caps));
	if (!v->caps)
		return -ENOMEM;
	core_meta_caps(to->userns == of->userns ? CORE_USERNS_SAME : CORE_USERNS_FOREIGN, false,
		       of->meta.last_cap, of->meta.caps, v->caps);
	v->meta.caps = v->caps;
	return 0;
}

static int view_process(struct view *v, const struct creds *to, const struct creds *of)
{
	int r = 0;

	v->meta = of->meta;
	if (of->meta.have & KDBUS_ATTACH_CREDS)
		view_creds(v, to, &of->meta.creds);
	if (of->meta.have & KDBUS_ATTACH_PIDS)
		view_pids(v, to, of);
	if (of->meta.have & KDBUS_ATTACH_AUXGROUPS)
		r = view_groups(v, to, &of->meta);
	if (r == 0 && of->meta.have & KDBUS_ATTACH_CAPS)
		r = view_caps(v, to, of);
	if (of->meta.have & KDBUS_ATTACH_AUDIT && to->userns != of->userns)
		v->meta.audit.loginuid = creds_map_uid(to, of->meta.audit.loginuid);
	/* A path means something only below the same root. */
	if (to->root_dev != of->root_dev || to->root_ino != of->root_ino)
		v->meta.have &= ~(u64)KDBUS_ATTACH_EXE;
	return r;
}

static void view_conn(struct view *v, const struct peer *of)
{
	v->meta.names = &of->conn.names;
	v->meta.have |= KDBUS_ATTACH_NAMES;
	v->meta.description = of->description;
	if (of->description)
		v->meta.have |= KDBUS_ATTACH_CONN_DESCRIPTION;
}

/* The /proc of this machine's default: everybody sees everything of a process he sees at all. */
static u64 proc_granted(struct peer *from, const struct client *to)
{
	struct core_meta_proc facts;
	const struct creds *creds;

	if (!core_meta_proc_wanted(from->conn.attach_send, to->conn.attach_recv))
		return 0;
	creds = peer_creds(from);
	if (!creds)
		return 0;
	facts.visible = creds_map_pid(to->creds, creds);
	facts.same = creds->pid == to->creds->pid;
	return core_meta_proc_granted(&facts);
}

/* As much as a record can bear, and the library keeps of an introduced peer (lib/user/peer.c) */
#define META_MAX (CORE_CMD_MAX_SIZE - 64)

/* What can be larger than that, in the order in which it is left out */
static const u64 large_items[] = { KDBUS_ATTACH_AUXGROUPS, KDBUS_ATTACH_NAMES,
				   KDBUS_ATTACH_CMDLINE };

static size_t bounded_size(const struct view *v, u64 *mask)
{
	size_t size = core_meta_size(&v->meta, *mask), i;

	for (i = 0; size > META_MAX && i < ARRAY_SIZE(large_items); i++) {
		*mask &= ~large_items[i];
		size = core_meta_size(&v->meta, *mask);
	}
	return size;
}

static int render(const struct view *v, u64 mask, struct meta_image *ret)
{
	size_t size = bounded_size(v, &mask);
	struct core_writer w;

	*ret = (struct meta_image){ 0 };
	if (!size)
		return 0;
	ret->size = ALIGN(size, (size_t)8);
	ret->data = calloc(1, ret->size);
	if (!ret->data)
		return -ENOMEM;
	w = CORE_WRITER(ret->data, ret->size);
	core_meta_put(&w, &v->meta, mask);
	core_writer_end(&w, &size);
	return 0;
}

static int message_view(struct peer *from, struct client *to, struct view *v, u64 *ret_mask)
{
	int r = 0;

	*v = (struct view){ 0 };
	*ret_mask = core_meta_for_message(from->conn.attach_send, to->conn.attach_recv,
					  proc_granted(from, to));
	if (!from->fake && *ret_mask & CORE_META_PROCESS && peer_creds(from))
		r = view_process(v, to->creds, from->creds);
	view_conn(v, from);
	return r;
}

int meta_for_message(struct peer *from, struct client *to, u64 seq, struct meta_image *ret)
{
	struct timespec ts;
	struct view v;
	u64 mask;
	int r = message_view(from, to, &v, &mask);

	if (mask & KDBUS_ATTACH_TIMESTAMP) {
		clock_gettime(CLOCK_REALTIME, &ts);
		v.meta.timestamp = (struct kdbus_timestamp){
			.seqnum = seq,
			.monotonic_ns = daemon_now(from->daemon),
			.realtime_ns = (u64)ts.tv_sec * 1000000000ULL + (u64)ts.tv_nsec,
		};
		v.meta.have |= KDBUS_ATTACH_TIMESTAMP;
	}
	if (r == 0)
		r = render(&v, mask, ret);
	view_clear(&v);
	return r;
}

/* As for a message, without the time: that the receiver adds to each. */
int meta_for_intro(struct client *from, struct client *to, struct meta_image *ret)
{
	struct view v;
	u64 mask;
	int r = message_view(&from->peer, to, &v, &mask);

	if (r == 0)
		r = render(&v, mask & ~(u64)KDBUS_ATTACH_TIMESTAMP, ret);
	view_clear(&v);
	return r;
}

static int fake_view(struct view *v, struct client *asker, const struct client *of)
{
	v->meta.have = of->fake_have;
	view_creds(v, asker->creds, &of->fake_creds);
	v->meta.pids = of->fake_pids;
	v->meta.seclabel = of->fake_label;
	return 0;
}

static int write_info(const struct core_info *info, void **ret, size_t *ret_size)
{
	size_t size = core_info_size(info);
	void *data = malloc(size);
	int r;

	if (!data)
		return -ENOMEM;
	r = core_info_write(info, data, size);
	if (r < 0) {
		free(data);
		return r;
	}
	*ret = data;
	*ret_size = size;
	return 0;
}

int meta_info(struct client *asker, struct peer *target, u64 attach, void **ret, size_t *ret_size)
{
	struct view v = { 0 };
	const struct core_info info = {
		.id = target->conn.id,
		.flags = target->conn.flags,
		.meta = &v.meta,
		.mask = core_meta_for_conn(target->conn.attach_send, attach),
	};
	int r;

	if (target->fake)
		r = fake_view(&v, asker, native_peer(target));
	else
		r = peer_creds(target) ? view_process(&v, asker->creds, target->creds) : -ENOMEM;
	view_conn(&v, target);
	if (r == 0)
		r = write_info(&info, ret, ret_size);
	view_clear(&v);
	return r;
}

int meta_creator(struct client *asker, struct bus *bus, u64 attach, void **ret, size_t *ret_size)
{
	struct view v = { 0 };
	const struct core_info info = {
		.id = bus->core.id,
		.flags = bus->core.flags,
		.bus_name = bus->core.name,
		.meta = &v.meta,
		.mask = core_meta_for_creator(bus->core.creator_mask, attach),
	};
	int r = view_process(&v, asker->creds, bus->creator);

	if (r == 0)
		r = write_info(&info, ret, ret_size);
	view_clear(&v);
	return r;
}
