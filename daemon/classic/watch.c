// SPDX-License-Identifier: LGPL-2.1-or-later
/* Directories whose changes have the configuration read again. Rules: reload.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "reload.h"

/**
 * struct watched - a directory that is watched
 * @wd:		number of the kernel, the same for all entries of one directory
 * @path:	the directory
 * @awaited:	name in it that is waited for; NULL: every name with @suffix counts
 * @suffix:	of the files that are of interest
 * @wanted:	it still is
 */
struct watched {
	struct list_head entry;
	int wd;
	char *path;
	char *awaited;
	const char *suffix;
	bool wanted;
};

struct watch {
	struct source source;
	struct classic *classic;
	int fd;
	bool failed; /* and logged */
	struct list_head dirs;
};

#define EVENTS_FILES                                                                               \
	(IN_CLOSE_WRITE | IN_DELETE | IN_MOVED_TO | IN_MOVED_FROM | IN_CREATE | IN_DELETE_SELF |   \
	 IN_MOVE_SELF)
#define EVENTS_AWAITED (IN_CREATE | IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF)

/* ---- events ---- */

static bool has_suffix(const char *name, const char *suffix)
{
	const size_t n = strlen(name), m = strlen(suffix);

	return n >= m && !strcmp(name + n - m, suffix);
}

/*
 * A file that is made is of interest once it is written and closed; a link, symbolic or not, is
 * complete at once.
 */
static bool is_link(const char *dir, const char *name)
{
	struct stat st;
	bool link = false;
	char *path;

	if (asprintf(&path, "%s/%s", dir, name) < 0)
		return true;
	if (lstat(path, &st) == 0)
		link = S_ISLNK(st.st_mode) || st.st_nlink > 1;
	free(path);
	return link;
}

static bool concerns(const struct watched *w, const struct inotify_event *e)
{
	if (w->wd != e->wd)
		return false;
	if (e->mask & (IN_DELETE_SELF | IN_MOVE_SELF | IN_IGNORED))
		return true;
	if (!e->len)
		return false;
	if (w->awaited)
		return !strcmp(w->awaited, e->name);
	if (!has_suffix(e->name, w->suffix))
		return false;
	return !(e->mask & IN_CREATE) || is_link(w->path, e->name);
}

static void free_watched(struct watched *w)
{
	list_del(&w->entry);
	free(w->path);
	free(w->awaited);
	free(w);
}

static bool take_event(struct watch *watch, const struct inotify_event *e)
{
	bool relevant = e->mask & IN_Q_OVERFLOW;
	struct watched *w, *next;

	list_for_each_entry_safe(w, next, &watch->dirs, entry) {
		relevant |= concerns(w, e);
		if (w->wd == e->wd && e->mask & IN_IGNORED)
			free_watched(w);
	}
	return relevant;
}

static void ready(struct source *source, u32 events)
{
	struct watch *watch = container_of(source, struct watch, source);
	char buf[8192] __attribute__((aligned(__alignof__(struct inotify_event))));
	bool relevant = false;
	ssize_t n, at;

	while ((n = read(watch->fd, buf, sizeof(buf))) > 0) {
		for (at = 0; at < n;) {
			const struct inotify_event *e = (const struct inotify_event *)(buf + at);

			relevant |= take_event(watch, e);
			at += (ssize_t)(sizeof(*e) + e->len);
		}
	}
	if (relevant)
		classic_reload_quietly(watch->classic);
}

/* ---- what is watched ---- */

static struct watched *find(struct watch *watch, int wd, const char *awaited, const char *suffix)
{
	struct watched *w;

	list_for_each_entry(w, &watch->dirs, entry)
		if (w->wd == wd && !w->awaited == !awaited && !strcmp(w->suffix, suffix) &&
		    (!awaited || !strcmp(w->awaited, awaited)))
			return w;
	return NULL;
}

static int add(struct watch *watch, int wd, const char *path, const char *awaited,
	       const char *suffix, bool *ret_more)
{
	struct watched *w = find(watch, wd, awaited, suffix);

	if (w) {
		w->wanted = true;
		return 0;
	}
	w = calloc(1, sizeof(*w));
	if (!w)
		return -ENOMEM;
	w->wd = wd;
	w->suffix = suffix;
	w->wanted = true;
	w->path = strdup(path);
	w->awaited = awaited ? strdup(awaited) : NULL;
	list_add_tail(&w->entry, &watch->dirs);
	if (!w->path || (awaited && !w->awaited)) {
		free_watched(w);
		return -ENOMEM;
	}
	*ret_more = true;
	return 0;
}

/* Return: a number; -ENOENT if it is not there; -ENOSPC and the like if that cannot be watched */
static int watch_path(struct watch *watch, const char *path, u32 events)
{
	int wd = inotify_add_watch(watch->fd, path, events | IN_MASK_ADD | IN_ONLYDIR);

	if (wd >= 0)
		return wd;
	if (errno == ENOENT || errno == ENOTDIR)
		return -ENOENT;
	if (!watch->failed)
		log_line("cannot watch %s for changes: %s", path, strerror(errno));
	watch->failed = true;
	return -ENOSPC;
}

/* The directory, or the closest above it; @path is cut into pieces. */
static int watch_dir(struct watch *watch, char *path, const char *suffix, bool *ret_more)
{
	const char *awaited = NULL;
	char *slash;
	int wd;

	for (;;) {
		wd = watch_path(watch, *path ? path : "/", awaited ? EVENTS_AWAITED : EVENTS_FILES);
		if (wd >= 0)
			return add(watch, wd, *path ? path : "/", awaited, suffix, ret_more);
		slash = strrchr(path, '/');
		if (wd != -ENOENT || !slash || !*path)
			return 0;
		*slash = '\0';
		if (slash[1])
			awaited = slash + 1;
	}
}

static int want(struct watch *watch, const char *dir, const char *suffix, bool *ret_more)
{
	char *path = strdup(dir);
	int r = path ? watch_dir(watch, path, suffix, ret_more) : -ENOMEM;

	free(path);
	return r;
}

static bool others_use(const struct watch *watch, const struct watched *w)
{
	const struct watched *other;

	list_for_each_entry(other, &watch->dirs, entry)
		if (other != w && other->wd == w->wd)
			return true;
	return false;
}

static void drop_unwanted(struct watch *watch)
{
	struct watched *w, *next;

	list_for_each_entry_safe(w, next, &watch->dirs, entry) {
		if (w->wanted)
			continue;
		if (!others_use(watch, w))
			inotify_rm_watch(watch->fd, w->wd);
		free_watched(w);
	}
}

static int want_all(struct watch *watch, const struct config *config, bool *ret_more)
{
	size_t i;
	int r = 0;

	for (i = 0; i < config->conf_dirs.n && r == 0; i++)
		r = want(watch, config->conf_dirs.items[i], ".conf", ret_more);
	for (i = 0; i < config->n_servicedirs && r == 0; i++)
		if (!config->servicedirs[i].unwatched)
			r = want(watch, config->servicedirs[i].path, ".service", ret_more);
	return r;
}

static int start(struct classic *k)
{
	struct watch *watch = calloc(1, sizeof(*watch));

	if (!watch)
		return -ENOMEM;
	INIT_LIST_HEAD(&watch->dirs);
	watch->classic = k;
	watch->source.ready = ready;
	watch->fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (watch->fd < 0 || daemon_watch(k->daemon, watch->fd, EPOLLIN, &watch->source) < 0) {
		log_line("cannot watch directories for changes: %s", strerror(errno));
		if (watch->fd >= 0)
			close(watch->fd);
		free(watch);
		return 0;
	}
	k->watch = watch;
	return 0;
}

int watch_renew(struct classic *k, bool *ret_more)
{
	struct watched *w;
	int r = k->watch ? 0 : start(k);

	*ret_more = false;
	if (r < 0 || !k->watch)
		return r;
	k->watch->failed = false;
	list_for_each_entry(w, &k->watch->dirs, entry)
		w->wanted = false;
	r = want_all(k->watch, k->config, ret_more);
	if (r == 0)
		drop_unwanted(k->watch);
	return r;
}

void watch_stop(struct classic *k)
{
	struct watch *watch = k->watch;
	struct watched *w, *next;

	if (!watch)
		return;
	daemon_unwatch(k->daemon, watch->fd);
	close(watch->fd);
	list_for_each_entry_safe(w, next, &watch->dirs, entry)
		free_watched(w);
	free(watch);
	k->watch = NULL;
}
