// SPDX-License-Identifier: LGPL-2.1-or-later
/* Reading a client's process. Rules: creds.h. */
#include <errno.h>
#include <fcntl.h>
#include <linux/limits.h>
#include <linux/nsfs.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "creds.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

#define OVERFLOW_ID	  65534
#define UNSET_ID	  0xffffffffU
#define CAP_IPC_OWNER_BIT 15
#define TEXT_MAX	  65536
#define STATUS_FIRST	  4096
#define STATUS_MAX	  (STATUS_FIRST * 16 * 16)

static int open_proc(pid_t pid)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	return open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

static ssize_t read_up_to(int fd, char *text, size_t max)
{
	size_t size = 0;
	ssize_t n = 0;

	while (size < max && (n = read(fd, text + size, max - size)) > 0)
		size += (size_t)n;
	return n < 0 ? -errno : (ssize_t)size;
}

/* A file of /proc with a NUL behind it, bounded; the caller frees it. */
static char *read_text(int proc, const char *name, size_t max, size_t *ret_size)
{
	int fd = openat(proc, name, O_RDONLY | O_CLOEXEC);
	char *text = fd < 0 ? NULL : malloc(max + 1);
	ssize_t size = text ? read_up_to(fd, text, max) : -ENOMEM;

	if (fd >= 0)
		close(fd);
	if (size < 0) {
		free(text);
		return NULL;
	}
	text[size] = '\0';
	if (ret_size)
		*ret_size = (size_t)size;
	return text;
}

/*
 * All of it or nothing: a process may have so many groups that a bounded read ends in the middle of
 * a number, which is then another group.
 */
static char *read_status(int proc)
{
	size_t max, size;
	char *text;

	for (max = STATUS_FIRST; max <= STATUS_MAX; max *= 16) {
		text = read_text(proc, "status", max, &size);
		if (!text || size < max)
			return text;
		free(text);
	}
	return NULL;
}

/* The text behind "NAME:" in a status file, or NULL */
static const char *field(const char *status, const char *name)
{
	size_t n = strlen(name);
	const char *line;

	for (line = status; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (!strncmp(line, name, n) && line[n] == ':')
			return line + n + 1;
	}
	return NULL;
}

static u64 number(const char *status, const char *name, int base, u64 missing)
{
	const char *text = field(status, name);

	return text ? strtoull(text, NULL, base) : missing;
}

/* Numbers up to the end of the line; returns how many there are, which may be more than @max. */
static size_t numbers(const char *status, const char *name, u64 *to, size_t max)
{
	const char *text = field(status, name);
	size_t n = 0;
	char *end;
	u64 value;

	while (text && *text && *text != '\n') {
		value = strtoull(text, &end, 10);
		if (end == text)
			break;
		if (n < max)
			to[n] = value;
		n++;
		text = end + strspn(end, " \t");
	}
	return n;
}

static int read_ids(struct creds *c, const char *status)
{
	u64 u[4], g[4];

	if (numbers(status, "Uid", u, 4) != 4 || numbers(status, "Gid", g, 4) != 4)
		return -ESRCH;
	c->meta.creds = (struct kdbus_creds){ u[0], u[1], u[2], u[3], g[0], g[1], g[2], g[3] };
	c->uid = (uid_t)u[0];
	c->core.euid = (u32)u[1];
	c->core.egid = (u32)g[1];
	c->meta.have |= KDBUS_ATTACH_CREDS;
	return 0;
}

static int by_value(const void *a, const void *b)
{
	u32 x = *(const u32 *)a, y = *(const u32 *)b;

	return x < y ? -1 : x > y;
}

static int read_groups(struct creds *c, const char *status)
{
	size_t n = numbers(status, "Groups", NULL, 0), i;
	u64 *shown = calloc(n + 1, sizeof(*shown));
	u32 *sorted = calloc(n + 1, sizeof(*sorted));

	if (!shown || !sorted) {
		free(shown);
		free(sorted);
		return -ENOMEM;
	}
	numbers(status, "Groups", shown, n);
	for (i = 0; i < n; i++)
		sorted[i] = (u32)shown[i];
	qsort(sorted, n, sizeof(*sorted), by_value);
	c->core.groups = sorted;
	c->core.n_groups = n;
	c->meta.auxgroups = shown;
	c->meta.n_auxgroups = n;
	c->meta.have |= KDBUS_ATTACH_AUXGROUPS;
	return 0;
}

static void read_pids(struct creds *c, const char *status)
{
	u64 ids[PIDNS_LEVELS];
	size_t n = numbers(status, "NSpid", ids, PIDNS_LEVELS), i;

	c->meta.pids =
		(struct kdbus_pids){ (u64)c->pid, (u64)c->pid, number(status, "PPid", 10, 0) };
	c->meta.have |= KDBUS_ATTACH_PIDS;
	c->n_nspid = (unsigned int)min_t(size_t, n, PIDNS_LEVELS);
	for (i = 0; i < c->n_nspid; i++)
		c->nspid[i] = (u32)ids[i];
}

static int read_caps(struct creds *c, const char *status)
{
	static const char *const sets[CORE_CAP_SETS] = { "CapInh", "CapPrm", "CapEff", "CapBnd" };
	char *text = read_text(AT_FDCWD, "/proc/sys/kernel/cap_last_cap", 16, NULL);
	u32 last = text ? (u32)strtoul(text, NULL, 10) : 0, *caps;
	size_t words, i;
	u64 value;

	free(text);
	if (!last || last > 63)
		return 0;
	words = core_cap_words(last);
	caps = calloc(CORE_CAP_SETS * words, sizeof(*caps));
	if (!caps)
		return -ENOMEM;
	for (i = 0; i < CORE_CAP_SETS; i++) {
		value = number(status, sets[i], 16, 0);
		caps[i * words] = (u32)value;
		if (words > 1)
			caps[i * words + 1] = (u32)(value >> 32);
	}
	c->meta.last_cap = last;
	c->meta.caps = caps;
	c->meta.have |= KDBUS_ATTACH_CAPS;
	c->cap_ipc_owner = number(status, "CapEff", 16, 0) >> CAP_IPC_OWNER_BIT & 1;
	return 0;
}

static char *chomp(char *text)
{
	if (text)
		text[strcspn(text, "\n")] = '\0';
	return text;
}

static void read_comm(struct creds *c, int proc)
{
	c->meta.pid_comm = chomp(read_text(proc, "comm", 64, NULL));
	c->meta.tid_comm = c->meta.pid_comm;
	if (c->meta.pid_comm)
		c->meta.have |= KDBUS_ATTACH_PID_COMM | KDBUS_ATTACH_TID_COMM;
}

static void read_exe(struct creds *c, int proc)
{
	char path[PATH_MAX];
	ssize_t n = readlinkat(proc, "exe", path, sizeof(path) - 1);

	if (n <= 0)
		return;
	path[n] = '\0';
	c->meta.exe = strdup(path);
	if (c->meta.exe)
		c->meta.have |= KDBUS_ATTACH_EXE;
}

/* Bounded to a page: it goes with every message. The last string may be cut, but ends in a NUL. */
static void read_cmdline(struct creds *c, int proc)
{
	size_t size;
	char *text = read_text(proc, "cmdline", 4095, &size);

	if (!text || !size) {
		free(text);
		return;
	}
	c->meta.cmdline = text;
	c->meta.cmdline_size = text[size - 1] ? size + 1 : size;
	c->meta.have |= KDBUS_ATTACH_CMDLINE;
}

/*
 * The first v1 hierarchy, else the unified one, else the root: the item is always there (ABI 8.3).
 */
static void read_cgroup(struct creds *c, int proc)
{
	char *text = read_text(proc, "cgroup", TEXT_MAX, NULL), *line, *save = NULL, *path;
	char *unified = NULL, *legacy = NULL;

	for (line = text ? strtok_r(text, "\n", &save) : NULL; line;
	     line = strtok_r(NULL, "\n", &save)) {
		path = strchr(line, ':');
		path = path ? strchr(path + 1, ':') : NULL;
		if (!path)
			continue;
		if (!strncmp(line, "0::", 3))
			unified = path + 1;
		else
			legacy = path + 1;
	}
	c->meta.cgroup = strdup(legacy ? legacy : unified ? unified : "/");
	free(text);
	if (c->meta.cgroup)
		c->meta.have |= KDBUS_ATTACH_CGROUP;
}

static void read_label(struct creds *c, int proc)
{
	char *text = chomp(read_text(proc, "attr/current", 4096, NULL));

	if (!text || !*text) {
		free(text);
		return;
	}
	c->meta.seclabel = text;
	c->meta.have |= KDBUS_ATTACH_SECLABEL;
}

static void read_audit(struct creds *c, int proc)
{
	char *login = read_text(proc, "loginuid", 32, NULL);
	char *session = read_text(proc, "sessionid", 32, NULL);

	if (login && session) {
		c->meta.audit.loginuid = (u32)strtoul(login, NULL, 10);
		c->meta.audit.sessionid = (u32)strtoul(session, NULL, 10);
		c->meta.have |= KDBUS_ATTACH_AUDIT;
	}
	free(login);
	free(session);
}

static u64 inode(int proc, const char *name)
{
	struct stat st;

	return fstatat(proc, name, &st, 0) < 0 ? 0 : st.st_ino;
}

static int read_map(int proc, const char *name, struct id_map *map)
{
	char *text = read_text(proc, name, TEXT_MAX, NULL), *at = text;
	struct id_range r;
	int used;

	map->ranges = calloc(ID_RANGES_MAX, sizeof(*map->ranges));
	if (!map->ranges) {
		free(text);
		return -ENOMEM;
	}
	while (at && map->n < ID_RANGES_MAX &&
	       sscanf(at, " %u %u %u%n", &r.inside, &r.outside, &r.count, &used) == 3) {
		map->ranges[map->n++] = r;
		at += used;
	}
	free(text);
	return 0;
}

static int read_places(struct creds *c, int proc)
{
	struct stat st;
	int r;

	c->userns = inode(proc, "ns/user");
	c->pidns = inode(proc, "ns/pid");
	c->mntns = inode(proc, "ns/mnt");
	if (fstatat(proc, "root", &st, 0) == 0) {
		c->root_dev = st.st_dev;
		c->root_ino = st.st_ino;
	}
	r = read_map(proc, "uid_map", &c->uid_map);
	return r < 0 ? r : read_map(proc, "gid_map", &c->gid_map);
}

/*
 * The pid namespaces that a process is in, from the daemon's own down to its own: a namespace says
 * who its parent is, but not beyond the namespace of who asks. Left out if not all can be had.
 */
static void read_pidns_chain(struct creds *c, int proc)
{
	int fd = openat(proc, "ns/pid", O_RDONLY | O_CLOEXEC), up;
	u64 chain[PIDNS_LEVELS];
	unsigned int n = 0, i;
	struct stat st;

	while (fd >= 0 && n < PIDNS_LEVELS && fstat(fd, &st) == 0) {
		chain[n++] = st.st_ino;
		up = n < c->n_nspid ? ioctl(fd, NS_GET_PARENT) : -1;
		close(fd);
		fd = up;
	}
	if (fd >= 0)
		close(fd);
	if (n != c->n_nspid)
		return;
	for (i = 0; i < n; i++)
		c->pidns_chain[i] = chain[n - 1 - i];
	c->n_pidns = n;
}

/* Whoever is in the daemon's namespace alone nobody below it sees, nor its parent. */
static void read_parent(struct creds *c)
{
	u64 ids[PIDNS_LEVELS] = { 0 };
	char *status;
	size_t i;
	int proc;

	if (c->n_nspid < 2 || !c->meta.pids.ppid)
		return;
	proc = open_proc((pid_t)c->meta.pids.ppid);
	status = proc < 0 ? NULL : read_status(proc);
	if (status)
		c->n_nsppid = (unsigned int)min_t(
			size_t, numbers(status, "NSpid", ids, PIDNS_LEVELS), PIDNS_LEVELS);
	for (i = 0; i < c->n_nsppid; i++)
		c->nsppid[i] = (u32)ids[i];
	free(status);
	if (proc >= 0)
		close(proc);
}

static int read_process(struct creds *c, int proc)
{
	char *status = read_status(proc);
	int r;

	if (!status)
		return -ESRCH;
	r = read_ids(c, status);
	if (r == 0)
		r = read_groups(c, status);
	if (r == 0)
		r = read_caps(c, status);
	if (r == 0)
		r = read_places(c, proc);
	if (r == 0) {
		read_pids(c, status);
		read_pidns_chain(c, proc);
		read_parent(c);
		c->confined = number(status, "Seccomp", 10, 1) ||
			      number(status, "NoNewPrivs", 10, 1);
		read_comm(c, proc);
		read_exe(c, proc);
		read_cmdline(c, proc);
		read_cgroup(c, proc);
		read_label(c, proc);
		read_audit(c, proc);
	}
	free(status);
	return r;
}

static u64 own_userns(void)
{
	static u64 known;

	if (!known)
		known = inode(AT_FDCWD, "/proc/self/ns/user");
	return known;
}

static bool alive(int pidfd)
{
	struct pollfd p = { .fd = pidfd, .events = POLLIN };

	return poll(&p, 1, 0) == 0;
}

static int peer_pidfd(int sock)
{
	int fd = -1;
	socklen_t size = sizeof(fd);

	return getsockopt(sock, SOL_SOCKET, SO_PEERPIDFD, &fd, &size) < 0 ? -1 : fd;
}

/* Only what the socket itself says: for a process whose /proc cannot be read. */
static void bare(struct creds *c, const struct ucred *peer)
{
	u64 uid = peer->uid, gid = peer->gid;

	c->uid = peer->uid;
	c->core.euid = peer->uid;
	c->core.egid = peer->gid;
	c->meta.creds = (struct kdbus_creds){ uid, uid, uid, uid, gid, gid, gid, gid };
	c->meta.have = KDBUS_ATTACH_CREDS;
}

static struct creds *new_creds(pid_t pid)
{
	struct creds *c = calloc(1, sizeof(*c));

	if (c) {
		c->refs = 1;
		c->pid = pid;
	}
	return c;
}

static int read_pid(struct creds *c)
{
	int proc = open_proc(c->pid), r;

	if (proc < 0)
		return -ESRCH;
	r = read_process(c, proc);
	close(proc);
	return r;
}

int creds_of_peer(int sock, struct creds **ret)
{
	struct ucred peer;
	socklen_t size = sizeof(peer);
	struct creds *c;
	int pidfd, r;

	if (getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0)
		return -errno;
	pidfd = peer_pidfd(sock);
	c = new_creds(peer.pid);
	r = c ? read_pid(c) : -ENOMEM;
	/*
	 * Its pid may be somebody else's by now, or it may have changed who it is since connect().
	 */
	if (r == 0 && ((pidfd >= 0 && !alive(pidfd)) || c->core.euid != peer.uid))
		r = -ESRCH;
	if (pidfd >= 0)
		close(pidfd);
	if (r == -ESRCH) {
		creds_unref(c);
		c = new_creds(0);
		r = c ? 0 : -ENOMEM;
		if (c)
			bare(c, &peer);
	}
	if (r < 0) {
		creds_unref(c);
		return r;
	}
	if (c->userns != own_userns())
		c->cap_ipc_owner = false;
	*ret = c;
	return 0;
}

int creds_of_self(struct creds **ret)
{
	struct creds *c = new_creds(getpid());
	int r = c ? read_pid(c) : -ENOMEM;

	if (r < 0) {
		creds_unref(c);
		return r;
	}
	*ret = c;
	return 0;
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
	free((void *)creds->core.groups);
	free((void *)creds->meta.auxgroups);
	free((void *)creds->meta.pid_comm);
	free((void *)creds->meta.exe);
	free((void *)creds->meta.cmdline);
	free((void *)creds->meta.cgroup);
	free((void *)creds->meta.caps);
	free((void *)creds->meta.seclabel);
	free(creds->uid_map.ranges);
	free(creds->gid_map.ranges);
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
	return c->userns && c->userns != own_userns();
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
