// SPDX-License-Identifier: LGPL-2.1-or-later
/* Reading a process in /proc. Rules: creds.h. */
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
#include <sys/stat.h>
#include <unistd.h>

#include "creds.h"

#define CAP_IPC_OWNER_BIT 15
#define TEXT_MAX	  65536
#define STATUS_FIRST	  4096
#define STATUS_MAX	  (STATUS_FIRST * 16 * 16)

/* The same for everybody: read once, before there are threads */
static u64 own_userns;
static u32 last_cap;

int creds_open(pid_t pid)
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
	size_t words, i;
	u64 value;
	u32 *caps;

	if (!last_cap)
		return 0;
	words = core_cap_words(last_cap);
	caps = calloc(CORE_CAP_SETS * words, sizeof(*caps));
	if (!caps)
		return -ENOMEM;
	for (i = 0; i < CORE_CAP_SETS; i++) {
		value = number(status, sets[i], 16, 0);
		caps[i * words] = (u32)value;
		if (words > 1)
			caps[i * words + 1] = (u32)(value >> 32);
	}
	c->meta.last_cap = last_cap;
	c->meta.caps = caps;
	c->meta.have |= KDBUS_ATTACH_CAPS;
	c->cap_ipc_owner = c->userns == own_userns &&
			   number(status, "CapEff", 16, 0) >> CAP_IPC_OWNER_BIT & 1;
	return 0;
}

static char *chomp(char *text)
{
	if (text)
		text[strcspn(text, "\n")] = '\0';
	return text;
}

/* Status has the name with two characters escaped. */
static void read_comm(struct creds *c, const char *status)
{
	const char *from = field(status, "Name");
	char name[64], *to = name;

	if (!from)
		return;
	from += strspn(from, " \t");
	while (*from && *from != '\n' && to < name + sizeof(name) - 1) {
		if (from[0] == '\\' && (from[1] == '\\' || from[1] == 'n')) {
			*to++ = from[1] == 'n' ? '\n' : '\\';
			from += 2;
		} else {
			*to++ = *from++;
		}
	}
	*to = '\0';
	c->meta.pid_comm = strdup(name);
	c->meta.tid_comm = c->meta.pid_comm;
	if (c->meta.pid_comm)
		c->meta.have |= KDBUS_ATTACH_PID_COMM | KDBUS_ATTACH_TID_COMM;
}

/*
 * Its root may be a file system of its own user, who would be asked: what the kernel knows of it is
 * enough.
 */
static void read_root(struct creds *c, int proc)
{
	struct statx st;

	if (statx(proc, "root", AT_STATX_DONT_SYNC, STATX_INO, &st) < 0)
		return;
	c->root_dev = (u64)st.stx_dev_major << 32 | st.stx_dev_minor;
	c->root_ino = st.stx_ino;
}

static void read_exe(struct creds *c, int proc)
{
	char path[PATH_MAX];
	ssize_t n = readlinkat(proc, "exe", path, sizeof(path) - 1);

	read_root(c, proc);
	if (n <= 0)
		return;
	path[n] = '\0';
	c->meta.exe = strdup(path);
	if (c->meta.exe)
		c->meta.have |= KDBUS_ATTACH_EXE;
}

/* Bounded to a page: it goes with every message. The last string may be cut, but ends in a NUL. */
void creds_read_cmdline(struct creds *c, int proc)
{
	size_t size;
	char *text = read_text(proc, "cmdline", 4095, &size);

	c->read |= KDBUS_ATTACH_CMDLINE;
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
	int r;

	c->userns = inode(proc, "ns/user");
	c->pidns = inode(proc, "ns/pid");
	c->mntns = inode(proc, "ns/mnt");
	if (!c->userns || c->userns == own_userns)
		return 0;
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
	proc = creds_open((pid_t)c->meta.pids.ppid);
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

static int read_who(struct creds *c, int proc)
{
	char *status = read_status(proc);
	int r;

	if (!status)
		return -ESRCH;
	r = read_ids(c, status);
	if (r == 0)
		r = read_groups(c, status);
	if (r == 0)
		r = read_places(c, proc);
	if (r == 0)
		r = read_caps(c, status);
	if (r == 0) {
		read_pids(c, status);
		read_pidns_chain(c, proc);
		read_parent(c);
		read_comm(c, status);
		read_label(c, proc);
		c->confined = number(status, "Seccomp", 10, 1) ||
			      number(status, "NoNewPrivs", 10, 1);
		c->read |= CREDS_WHO;
	}
	free(status);
	return r;
}

/* ---- whether it is the right process ---- */

static bool alive(int pidfd)
{
	struct pollfd p = { .fd = pidfd, .events = POLLIN };

	return poll(&p, 1, 0) == 0;
}

/* The field behind the name, which may hold any character, parentheses included */
#define FIELD_START 22

static u64 start_time(int proc)
{
	char *text = read_text(proc, "stat", 4096, NULL);
	char *at = text ? strrchr(text, ')') : NULL;
	u64 start = 0;
	int i;

	for (i = 2; at && i < FIELD_START; i++)
		at = strchr(at + 1, ' ');
	if (at)
		start = strtoull(at, NULL, 10);
	free(text);
	return start;
}

static int check(struct creds *c, int proc, int pidfd, uid_t euid, u64 start)
{
	if (c->read & CREDS_WHO && c->core.euid != euid)
		return -ESRCH;
	if (pidfd >= 0)
		return alive(pidfd) ? 0 : -ESRCH;
	c->start = start_time(proc);
	return c->start && (!start || c->start == start) ? 0 : -ESRCH;
}

int creds_read(struct creds *c, int proc, int pidfd, uid_t euid, u64 start, u64 want)
{
	int r = want & CREDS_WHO ? read_who(c, proc) : 0;

	if (r < 0)
		return r;
	if (want & KDBUS_ATTACH_EXE)
		read_exe(c, proc);
	if (want & KDBUS_ATTACH_CGROUP)
		read_cgroup(c, proc);
	if (want & KDBUS_ATTACH_AUDIT)
		read_audit(c, proc);
	c->read |= want & CREDS_LATE & ~(u64)KDBUS_ATTACH_CMDLINE;
	return check(c, proc, pidfd, euid, start);
}

void creds_comm(pid_t pid, char *buf, size_t size)
{
	int proc = creds_open(pid);
	char *text = proc < 0 ? NULL : chomp(read_text(proc, "comm", 64, NULL));

	snprintf(buf, size, "%s", text ? text : "?");
	free(text);
	if (proc >= 0)
		close(proc);
}

void creds_init(void)
{
	char *text = read_text(AT_FDCWD, "/proc/sys/kernel/cap_last_cap", 16, NULL);

	last_cap = text ? (u32)strtoul(text, NULL, 10) : 0;
	if (last_cap > 63)
		last_cap = 0;
	free(text);
	own_userns = inode(AT_FDCWD, "/proc/self/ns/user");
}

u64 creds_own_userns(void)
{
	return own_userns;
}

int creds_of_self(struct creds **ret)
{
	struct creds *c = creds_new(getpid());
	int proc = creds_open(getpid());
	int r = c ? -ESRCH : -ENOMEM;

	if (c && proc >= 0) {
		r = creds_read(c, proc, -1, geteuid(), 0, CREDS_WHO | CREDS_LATE);
		creds_read_cmdline(c, proc);
	}
	if (proc >= 0)
		close(proc);
	if (r < 0) {
		creds_unref(c);
		return r;
	}
	*ret = c;
	return 0;
}
