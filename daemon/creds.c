// SPDX-License-Identifier: LGPL-2.1-or-later
/* What is known of a process, and how others see it. Rules: creds.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "creds.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

#define OVERFLOW_ID 65534
#define UNSET_ID    0xffffffffU

struct creds *creds_new(pid_t pid)
{
	struct creds *c = calloc(1, sizeof(*c));

	if (c) {
		c->refs = 1;
		c->pid = pid;
	}
	return c;
}

int creds_pidfd(int sock)
{
	int fd = -1;
	socklen_t size = sizeof(fd);

	return getsockopt(sock, SOL_SOCKET, SO_PEERPIDFD, &fd, &size) < 0 ? -errno : fd;
}

/* ---- from the socket ---- */

static int by_value(const void *a, const void *b)
{
	u32 x = *(const u32 *)a, y = *(const u32 *)b;

	return x < y ? -1 : x > y;
}

/* The groups it had when it connected, sorted */
static int groups_of(int sock, u32 **ret, size_t *ret_n)
{
	socklen_t size = 0;
	u32 *groups;

	if (getsockopt(sock, SOL_SOCKET, SO_PEERGROUPS, NULL, &size) < 0 && errno != ERANGE)
		size = 0;
	groups = malloc(size + sizeof(*groups));
	if (!groups)
		return -ENOMEM;
	if (size && getsockopt(sock, SOL_SOCKET, SO_PEERGROUPS, groups, &size) < 0)
		size = 0;
	*ret = groups;
	*ret_n = size / sizeof(*groups);
	qsort(groups, *ret_n, sizeof(*groups), by_value);
	return 0;
}

static int show_groups(struct creds *c)
{
	u64 *shown = calloc(c->core.n_groups + 1, sizeof(*shown));
	size_t i;

	if (!shown)
		return -ENOMEM;
	for (i = 0; i < c->core.n_groups; i++)
		shown[i] = c->core.groups[i];
	c->meta.auxgroups = shown;
	c->meta.n_auxgroups = c->core.n_groups;
	c->meta.have |= KDBUS_ATTACH_AUXGROUPS;
	return 0;
}

int creds_of_socket(int sock, struct creds **ret)
{
	struct ucred peer;
	socklen_t size = sizeof(peer);
	struct creds *c;
	u32 *groups;
	u64 uid, gid;
	int r;

	if (getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0)
		return -errno;
	c = creds_new(peer.pid);
	if (!c)
		return -ENOMEM;
	uid = peer.uid;
	gid = peer.gid;
	c->uid = peer.uid;
	c->core.euid = peer.uid;
	c->core.egid = peer.gid;
	c->meta.creds = (struct kdbus_creds){ uid, uid, uid, uid, gid, gid, gid, gid };
	c->meta.pids = (struct kdbus_pids){ (u64)peer.pid, (u64)peer.pid, 0 };
	c->meta.have = KDBUS_ATTACH_CREDS | (peer.pid ? KDBUS_ATTACH_PIDS : 0);
	r = groups_of(sock, &groups, &c->core.n_groups);
	if (r == 0) {
		c->core.groups = groups;
		r = show_groups(c);
	}
	if (r < 0) {
		creds_unref(c);
		return r;
	}
	*ret = c;
	return 0;
}

/* ---- from /proc ---- */

u64 creds_lacks(const struct creds *creds, u64 want)
{
	return want & (CREDS_WHO | CREDS_LATE) & ~creds->read;
}

static void free_contents(struct creds *c)
{
	free((void *)c->core.groups);
	free((void *)c->meta.auxgroups);
	free((void *)c->meta.pid_comm);
	free((void *)c->meta.exe);
	free((void *)c->meta.cmdline);
	free((void *)c->meta.cgroup);
	free((void *)c->meta.caps);
	free((void *)c->meta.seclabel);
	free(c->uid_map.ranges);
	free(c->gid_map.ranges);
}

static const char *take(const char **from)
{
	const char *text = *from;

	*from = NULL;
	return text;
}

/* Each kind of CREDS_LATE is read once, so nothing is there to be freed. */
static void absorb_late(struct creds *to, struct creds *from)
{
	u64 fresh = from->read & CREDS_LATE;

	if (fresh & KDBUS_ATTACH_EXE) {
		to->meta.exe = take(&from->meta.exe);
		to->root_dev = from->root_dev;
		to->root_ino = from->root_ino;
	}
	if (fresh & KDBUS_ATTACH_CMDLINE) {
		to->meta.cmdline = take(&from->meta.cmdline);
		to->meta.cmdline_size = from->meta.cmdline_size;
	}
	if (fresh & KDBUS_ATTACH_CGROUP)
		to->meta.cgroup = take(&from->meta.cgroup);
	if (fresh & KDBUS_ATTACH_AUDIT)
		to->meta.audit = from->meta.audit;
	to->meta.have |= from->meta.have & fresh;
	to->read |= fresh;
}

/* The first reading makes it another one, but for who refers to it. */
static void absorb_who(struct creds *to, struct creds *from)
{
	struct creds old = *to;

	*to = *from;
	to->refs = old.refs;
	*from = old;
}

void creds_absorb(struct creds *to, struct creds *from)
{
	if (!to->start)
		to->start = from->start;
	if (from->read & CREDS_WHO && !(to->read & CREDS_WHO))
		absorb_who(to, from);
	else
		absorb_late(to, from);
	free_contents(from);
	free(from);
}

/* Its groups, as of connect(), count for policy; nobody is shown what nobody can check. */
void creds_give_up(struct creds *creds)
{
	if (!(creds->read & CREDS_WHO)) {
		creds->pid = 0;
		creds->meta.have = KDBUS_ATTACH_CREDS;
	}
	creds->read = CREDS_WHO | CREDS_LATE;
}

struct creds *creds_ref(struct creds *creds)
{
	if (creds)
		creds->refs++;
	return creds;
}

struct creds *creds_unref(struct creds *creds)
{
	if (!creds || --creds->refs)
		return NULL;
	free_contents(creds);
	free(creds);
	return NULL;
}

static bool same_text(const char *a, const char *b)
{
	return (!a && !b) || (a && b && !strcmp(a, b));
}

static bool same_caps(const struct core_meta *a, const struct core_meta *b)
{
	if (!a->caps || !b->caps || a->last_cap != b->last_cap)
		return false;
	return !memcmp(a->caps, b->caps,
		       CORE_CAP_SETS * core_cap_words(a->last_cap) * sizeof(*a->caps));
}

/*
 * Could each do to the other what a process may do to itself? Then neither can gain by changing a
 * buffer the other reads. The same uid alone proves nothing: sandboxed programs have it.
 */
bool creds_equal_authority(const struct creds *a, const struct creds *b)
{
	return a->pid && b->pid && !a->confined && !b->confined && a->userns && a->pidns &&
	       a->mntns && a->userns == b->userns && a->pidns == b->pidns && a->mntns == b->mntns &&
	       !memcmp(&a->meta.creds, &b->meta.creds, sizeof(a->meta.creds)) &&
	       same_caps(&a->meta, &b->meta) && same_text(a->meta.seclabel, b->meta.seclabel);
}

static u32 map_in(const struct id_map *map, u32 id)
{
	size_t i;

	for (i = 0; i < map->n; i++)
		if (id >= map->ranges[i].outside &&
		    id - map->ranges[i].outside < map->ranges[i].count)
			return map->ranges[i].inside + (id - map->ranges[i].outside);
	return OVERFLOW_ID;
}

static int map_out(const struct id_map *map, u64 id, u32 *ret)
{
	size_t i;

	for (i = 0; i < map->n; i++) {
		const struct id_range *r = &map->ranges[i];

		if (id >= r->inside && id - r->inside < r->count) {
			*ret = r->outside + (u32)(id - r->inside);
			return 0;
		}
	}
	return -EINVAL;
}

static bool foreign(const struct creds *c)
{
	return c->userns && c->userns != creds_own_userns();
}

u32 creds_map_uid(const struct creds *to, u32 uid)
{
	return foreign(to) && uid != UNSET_ID ? map_in(&to->uid_map, uid) : uid;
}

u32 creds_map_gid(const struct creds *to, u32 gid)
{
	return foreign(to) && gid != UNSET_ID ? map_in(&to->gid_map, gid) : gid;
}

static int unmap(const struct creds *from, const struct id_map *map, u64 id, u32 *ret)
{
	if (foreign(from))
		return map_out(map, id, ret);
	if (id >= UNSET_ID)
		return -EINVAL;
	*ret = (u32)id;
	return 0;
}

int creds_unmap_uid(const struct creds *from, u64 id, u32 *ret)
{
	return unmap(from, &from->uid_map, id, ret);
}

int creds_unmap_gid(const struct creds *from, u64 id, u32 *ret)
{
	return unmap(from, &from->gid_map, id, ret);
}

/*
 * A process has an id in each pid namespace from ours down to its own. Another one sees it by the
 * id at the other's own level, if it is in the other's namespace or below it. Returns that level,
 * or -1.
 */
static int seen_at(const struct creds *to, const struct creds *of)
{
	unsigned int level = to->n_nspid ? to->n_nspid - 1 : 0;

	if (!of->pid || !to->pidns)
		return -1;
	if (!level)
		return 0;
	if (to->n_pidns == to->n_nspid && of->n_pidns > level &&
	    of->pidns_chain[level] == to->pidns_chain[level])
		return (int)level;
	return to->pidns == of->pidns && of->n_nspid > level ? (int)level : -1;
}

u32 creds_map_pid(const struct creds *to, const struct creds *of)
{
	int level = seen_at(to, of);

	if (level <= 0)
		return level < 0 ? 0 : (u32)of->pid;
	return of->nspid[level];
}

/* The parent may be in a namespace above its child's, and not to be seen by who sees the child. */
u32 creds_map_ppid(const struct creds *to, const struct creds *of)
{
	int level = seen_at(to, of);

	if (level <= 0)
		return level < 0 ? 0 : (u32)of->meta.pids.ppid;
	return (unsigned int)level < of->n_nsppid ? of->nsppid[level] : 0;
}
