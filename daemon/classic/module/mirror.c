// SPDX-License-Identifier: LGPL-2.1-or-later
/* Who is on the bus of the module, and who has which name: a copy. Rules: module.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/classic/access.h"
#include "daemon/classic/driver.h"
#include "daemon/classic/roster.h"
#include "module.h"

/* ---- connections ---- */

/* Nothing is delivered by the registries of core here. */
static int deliver(struct core_conn *to, const struct core_parcel *parcel, struct core_reply *slot)
{
	return 0;
}

static int adopt(struct core_conn *to, struct core_conn *from, struct core_entry *entry)
{
	return -ECONNRESET;
}

static void lose(struct core_conn *to)
{
}

static bool busy(const struct core_conn *conn)
{
	return false;
}

static const struct core_sink copied_sink = {
	.deliver = deliver,
	.adopt = adopt,
	.lose = lose,
	.busy = busy,
};

int mirror_link(struct module *m, struct peer *p, u64 id, enum core_kind kind)
{
	struct core_bus *bus = &m->classic->bus->core;
	const struct core_hello hello = { .flags = KDBUS_HELLO_ACCEPT_FD, .kind = kind };
	const struct core_opener opener = { 0 };
	int r;

	/* The module gives the ids. */
	bus->domain->last_id = id - 1;
	r = core_conn_init(&p->conn, &bus->def, &hello, &opener, &bus->deadlines, &copied_sink);
	if (r < 0)
		return r;
	/* ... and it limits the names. */
	p->conn.names.max = U32_MAX;
	r = core_conn_link(&p->conn);
	if (r < 0)
		core_conn_deinit(&p->conn);
	return r;
}

struct peer *mirror_find(struct module *m, u64 id)
{
	struct core_conn *conn = core_bus_find_conn(&m->classic->bus->core, id);

	return conn ? peer_of(conn) : NULL;
}

static bool is_ours(const struct peer *p)
{
	return p->kind == PEER_REMOTE && remote_of((struct peer *)p)->ours;
}

static bool is_seen(const struct peer *p)
{
	return p->conn.kind == CORE_KIND_ORDINARY && !is_ours(p);
}

int mirror_add(struct module *m, u64 id, enum core_kind kind, bool ours)
{
	char unique[CLASSIC_UNIQUE_MAX];
	struct remote *remote;
	int r;

	if (mirror_find(m, id))
		return 0;
	remote = calloc(1, sizeof(*remote));
	if (!remote)
		return -ENOMEM;
	remote->kind = PEER_REMOTE;
	remote->daemon = m->classic->daemon;
	remote->callers = RB_ROOT;
	INIT_LIST_HEAD(&remote->calling);
	INIT_LIST_HEAD(&remote->owed);
	INIT_LIST_HEAD(&remote->askers);
	remote->ours = ours;
	remote->listed = m->listing;
	r = mirror_link(m, &remote->peer, id, ours ? CORE_KIND_POLICY_HOLDER : kind);
	if (r < 0) {
		free(remote);
		return r;
	}
	list_add_tail(&remote->entry, &m->remotes);
	if (is_seen(&remote->peer))
		driver_owner_changed(m->classic, unique_name(&remote->peer, unique).s, NULL,
				     &remote->peer);
	return 0;
}

/* ---- names ---- */

static struct peer *as_owner(struct peer *p)
{
	return p && p->conn.kind == CORE_KIND_ORDINARY ? p : NULL;
}

static void give_up(struct module *m, struct peer *p, const char *name)
{
	struct core_name_change change;

	if (core_names_release(&m->classic->bus->core.names, &p->conn.names, name, &change) == 0)
		core_name_change_done(&change);
}

static int take(struct module *m, struct peer *p, const char *name)
{
	struct core_names *names = &m->classic->bus->core.names;
	struct core_name_change change;
	u64 flags;
	int r;

	if (peer_owns(p, name))
		return 0;
	if (p->conn.kind == CORE_KIND_ACTIVATOR)
		r = core_names_attach_activator(names, &p->conn.names, name, &change);
	else
		r = core_names_acquire(names, &p->conn.names, name, 0, &flags, &change);
	if (r == 0)
		core_name_change_done(&change);
	return r == -EEXIST ? 0 : r;
}

/* @now NULL: it has no owner, or an activator of ours. */
static void set_owner(struct module *m, const char *name, struct peer *now)
{
	struct classic *k = m->classic;
	struct peer *before = route_find(k, dbusp_str(name)), *was = as_owner(before), *is;

	if (now && is_ours(now))
		now = NULL;
	if (before && before != now && (was || !now))
		give_up(m, before, name);
	if (now && take(m, now, name) < 0) {
		m->lost = true;
		now = NULL;
	}
	/* What was called through an activator is for the owner now. */
	if (before && !was && as_owner(now))
		replies_move(before, now);
	if (now)
		claim_waits_no_more(m, now, name);
	is = as_owner(now);
	if (was == is)
		return;
	driver_owner_changed(k, name, was, is);
	if (is)
		activate_owned(k, name, is);
}

static void name_changed(struct module *m, const struct kdbus_notify_name_change *change)
{
	struct peer *now = change->new_id.id ? mirror_find(m, change->new_id.id) : NULL;
	struct peer *was = change->old_id.id ? mirror_find(m, change->old_id.id) : NULL;

	if (now && is_ours(now) && was && !is_ours(was))
		starter_returned(m, change->name);
	if (change->new_id.id && !now)
		m->lost = true;
	else
		set_owner(m, change->name, now);
}

/* ---- going ---- */

static void lose_names(struct module *m, struct peer *p)
{
	char name[CORE_NAME_MAX_LEN + 1];
	const char *next;
	void *at = NULL;

	while ((next = peer_next_name(p, true, &at))) {
		strcpy(name, next);
		at = NULL;
		if (p->conn.kind == CORE_KIND_ORDINARY)
			set_owner(m, name, NULL);
		else
			give_up(m, p, name);
	}
}

static void free_remote(struct remote *remote)
{
	list_del(&remote->entry);
	access_end(&remote->peer);
	creds_unref(remote->creds);
	free(remote);
}

/* At the end of all, when nobody is told anything any more */
void mirror_forget(struct module *m, struct remote *remote)
{
	struct peer *p = &remote->peer;
	const char *name;
	void *at = NULL;

	core_conn_unlink(&p->conn);
	while ((name = peer_next_name(p, true, &at))) {
		give_up(m, p, name);
		at = NULL;
	}
	p->conn.state = CORE_CONN_DEAD;
	core_conn_deinit(&p->conn);
	free_remote(remote);
}

void mirror_remove(struct module *m, struct peer *p)
{
	struct classic *k = m->classic;
	char unique[CLASSIC_UNIQUE_MAX];
	bool seen = is_seen(p);

	/* From now on nobody finds it; it has its name until everybody knows. */
	core_conn_unlink(&p->conn);
	p->waiting = NULL;
	lose_names(m, p);
	activate_end(k, p);
	if (seen)
		driver_owner_changed(k, unique_name(p, unique).s, p, NULL);
	replies_end(k, p);
	p->conn.state = CORE_CONN_DEAD;
	core_conn_deinit(&p->conn);
	if (p->kind == PEER_REMOTE)
		free_remote(remote_of(p));
}

/* ---- what the ear hears ---- */

static enum core_kind kind_of(u64 flags)
{
	if (flags & KDBUS_HELLO_ACTIVATOR)
		return CORE_KIND_ACTIVATOR;
	return flags & KDBUS_HELLO_POLICY_HOLDER ? CORE_KIND_POLICY_HOLDER : CORE_KIND_ORDINARY;
}

/* Of classic peers and of ours the daemon knows more than that. */
static void id_removed(struct module *m, u64 id)
{
	struct peer *p = mirror_find(m, id);

	if (p && p->kind == PEER_REMOTE && !is_ours(p))
		mirror_remove(m, p);
}

void mirror_hear(struct module *m, const struct kdbus_msg *msg)
{
	const struct kdbus_item *item = msg->items;

	switch (item->type) {
	case KDBUS_ITEM_ID_ADD:
		if (mirror_add(m, item->id_change.id, kind_of(item->id_change.flags), false) < 0)
			m->lost = true;
		break;
	case KDBUS_ITEM_ID_REMOVE:
		id_removed(m, item->id_change.id);
		break;
	case KDBUS_ITEM_NAME_ADD:
	case KDBUS_ITEM_NAME_CHANGE:
	case KDBUS_ITEM_NAME_REMOVE:
		name_changed(m, &item->name_change);
		break;
	}
}

/* ---- what it has missed ---- */

static const struct kdbus_item *name_of(const struct kdbus_info *info)
{
	const struct kdbus_item *item;

	kconn_items(item, info, info->items, info->size)
		if (item->type == KDBUS_ITEM_OWNED_NAME)
			return item;
	return NULL;
}

#define each_info(info, list, bytes)                                                     \
	for (info = (list); info && (const char *)info < (const char *)(list) + (bytes); \
	     info = (const void *)((const char *)info + ALIGN(info->size, 8ULL)))

#define DROPS_MAX 4096 /* what others send to the ear may never end */

/* A list with nothing left to be heard that is older than it, if the bus is ever that quiet. */
static int list(struct module *m, const struct kdbus_info **ret, u64 *ret_size)
{
	const u64 flags = KDBUS_LIST_UNIQUE | KDBUS_LIST_NAMES | KDBUS_LIST_ACTIVATORS;
	struct kconn *ear = &m->ear.conn;
	struct kconn_got got;
	unsigned int n;
	int r, tries = 8;

	for (;;) {
		for (n = 0; n < DROPS_MAX && kconn_recv(ear, KDBUS_RECV_DROP, &got) == 0; n++)
			;
		r = kconn_list(ear, flags, ret, ret_size);
		if (r < 0 || kconn_recv(ear, KDBUS_RECV_PEEK, &got) < 0)
			return r;
		kconn_free(ear, got.msg);
		if (!tries--)
			return 0;
		if (*ret)
			kconn_free(ear, *ret);
	}
}

static int compare(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

struct listed_names {
	const char **names;
	size_t n;
	char **gone;
	size_t n_gone;
};

static void find_gone(const char *name, void *data)
{
	struct listed_names *l = data;

	if (!l->n || !bsearch(&name, l->names, l->n, sizeof(name), compare))
		l->gone[l->n_gone++] = strdup(name);
}

static void drop_names(struct module *m, struct listed_names *l)
{
	size_t i;

	qsort(l->names, l->n, sizeof(*l->names), compare);
	l->gone = calloc(m->classic->bus->core.names.count + 1, sizeof(*l->gone));
	if (!l->gone) {
		m->lost = true;
		return;
	}
	roster_each_name(m->classic, find_gone, l);
	for (i = 0; i < l->n_gone; i++) {
		if (l->gone[i])
			set_owner(m, l->gone[i], NULL);
		free(l->gone[i]);
	}
	free(l->gone);
}

static void see_names(struct module *m, const struct kdbus_info *all, u64 size)
{
	struct listed_names l = { .names = calloc(size / 32 + 1, sizeof(*l.names)) };
	const struct kdbus_info *info;
	const struct kdbus_item *item;
	struct peer *p;

	if (!l.names) {
		m->lost = true;
		return;
	}
	each_info(info, all, size) {
		item = name_of(info);
		p = mirror_find(m, info->id);
		if (!item || !p || is_ours(p) || !(item->name.flags & KDBUS_NAME_PRIMARY))
			continue;
		if (p->conn.kind == CORE_KIND_ORDINARY)
			l.names[l.n++] = item->name.name;
	}
	drop_names(m, &l);
	each_info(info, all, size) {
		item = name_of(info);
		p = mirror_find(m, info->id);
		if (item && p && !is_ours(p) && item->name.flags & KDBUS_NAME_PRIMARY)
			set_owner(m, item->name.name, p);
	}
	free(l.names);
}

static void see_peers(struct module *m, const struct kdbus_info *all, u64 size)
{
	struct remote *remote, *next;
	const struct kdbus_info *info;
	struct peer *p;

	m->listing++;
	each_info(info, all, size) {
		p = mirror_find(m, info->id);
		if (!p && mirror_add(m, info->id, kind_of(info->flags), false) < 0)
			m->lost = true;
		else if (p && p->kind == PEER_REMOTE)
			remote_of(p)->listed = m->listing;
	}
	list_for_each_entry_safe(remote, next, &m->remotes, entry)
		if (!remote->ours && remote->listed != m->listing)
			mirror_remove(m, &remote->peer);
}

void mirror_renew(struct module *m)
{
	const struct kdbus_info *all;
	u64 size;
	int r;

	m->lost = false;
	r = list(m, &all, &size);
	if (r < 0) {
		m->lost = true;
		return;
	}
	see_peers(m, all, size);
	see_names(m, all, size);
	if (all)
		kconn_free(&m->ear.conn, all);
}

/* ---- who they are ---- */

static void copy_groups(struct creds *creds, const struct kdbus_item *item)
{
	size_t n = (item->size - offsetof(struct kdbus_item, data)) / sizeof(u64), i;
	u32 *groups = calloc(n + 1, sizeof(*groups));

	if (!groups)
		return;
	for (i = 0; i < n; i++)
		groups[i] = (u32)item->data64[i];
	creds->core.groups = groups;
	creds->core.n_groups = (unsigned int)n;
}

static char *copy_of(const void *data, size_t size)
{
	char *copy = malloc(size);

	return copy ? memcpy(copy, data, size) : NULL;
}

static void copy_item(struct creds *creds, const struct kdbus_item *item)
{
	size_t size = item->size - offsetof(struct kdbus_item, data);

	if (item->type == KDBUS_ITEM_CREDS) {
		creds->uid = (uid_t)item->creds.uid;
		creds->core.euid = (u32)item->creds.euid;
		creds->core.egid = (u32)item->creds.egid;
	} else if (item->type == KDBUS_ITEM_PIDS) {
		creds->pid = (pid_t)item->pids.pid;
	} else if (item->type == KDBUS_ITEM_AUXGROUPS && !creds->core.groups) {
		copy_groups(creds, item);
	} else if (item->type == KDBUS_ITEM_CMDLINE && !creds->meta.cmdline && size) {
		creds->meta.cmdline = copy_of(item->data, size);
		creds->meta.cmdline_size = creds->meta.cmdline ? size : 0;
	} else if (item->type == KDBUS_ITEM_SECLABEL && !creds->meta.seclabel) {
		creds->meta.seclabel = strdup(item->str);
	}
}

static struct creds *ask(struct kconn *ear, u64 id)
{
	const u64 wanted = KDBUS_ATTACH_CREDS | KDBUS_ATTACH_PIDS | KDBUS_ATTACH_AUXGROUPS |
			   KDBUS_ATTACH_CMDLINE | KDBUS_ATTACH_SECLABEL;
	const struct kdbus_info *info;
	const struct kdbus_item *item;
	struct creds *creds;
	bool shows = false;

	if (kconn_info(ear, id, wanted, &info) < 0)
		return NULL;
	creds = creds_new(0);
	if (creds) {
		kconn_items(item, info, info->items, info->size) {
			shows |= item->type == KDBUS_ITEM_CREDS;
			copy_item(creds, item);
		}
	}
	kconn_free(ear, info);
	return shows ? creds : creds_unref(creds);
}

/* Who it is it cannot hide from those whom it sends messages. */
void mirror_learn(struct peer *p, const struct kdbus_msg *msg)
{
	struct remote *remote = p->kind == PEER_REMOTE ? remote_of(p) : NULL;
	const struct kdbus_item *item;
	struct creds *creds;
	bool shows = false;

	if (!remote || remote->creds || remote->learnt)
		return;
	remote->learnt = true;
	if (mirror_creds(p))
		return;
	creds = creds_new(0);
	if (!creds)
		return;
	kconn_items(item, msg, msg->items, msg->size) {
		shows |= item->type == KDBUS_ITEM_CREDS;
		copy_item(creds, item);
	}
	remote->creds = shows ? creds : creds_unref(creds);
	/* What was decided of nobody in particular is for somebody now. */
	if (shows)
		access_end(p);
}

struct creds *mirror_creds(struct peer *p)
{
	struct remote *remote = remote_of(p);
	struct classic *k = container_of(p->conn.bus, struct bus, core)->classic;

	if (!remote->asked)
		remote->creds = ask(&module_of(k)->ear.conn, p->conn.id);
	remote->asked = true;
	return remote->creds;
}
