// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base.h"
#include "list.h"

typedef void (*emit_fn)(void *data, const struct core_listed *record);

static bool selected(const struct core_name_record *record, u64 flags)
{
	if (record->flags & KDBUS_NAME_ACTIVATOR)
		return flags & KDBUS_LIST_ACTIVATORS;
	if (record->flags & KDBUS_NAME_IN_QUEUE)
		return flags & KDBUS_LIST_QUEUED;
	return flags & KDBUS_LIST_NAMES;
}

static void list_conn(const struct core_conn *conn, const struct core_policy_view *view, u64 flags,
		      emit_fn emit, void *data)
{
	struct core_listed listed = { .id = conn->id, .flags = conn->flags };
	const struct core_name_record *record;
	bool any = false;

	core_name_holder_for_each(record, &conn->names) {
		core_step();
		if (!selected(record, flags))
			continue;
		any = true;
		listed.name = record->name->name;
		listed.name_flags = record->flags;
		if (core_policy_may_see_name(view, listed.name))
			emit(data, &listed);
	}
	if (any || !(flags & KDBUS_LIST_UNIQUE))
		return;
	listed.name = NULL;
	listed.name_flags = 0;
	emit(data, &listed);
}

void core_list(const struct core_conn *asker, const struct core_cred *cred, u64 flags,
	       void (*emit)(void *data, const struct core_listed *record), void *data)
{
	struct core_policy_view view;
	const struct core_conn *conn;

	core_conn_view(asker, cred, &view);
	list_for_each_entry(conn, &asker->bus->all, bus_entry)
		list_conn(conn, &view, flags, emit, data);
}

static void count(void *data, const struct core_listed *record)
{
	*(size_t *)data += core_listed_size(record);
}

size_t core_list_size(const struct core_conn *asker, const struct core_cred *cred, u64 flags)
{
	size_t size = 0;

	core_list(asker, cred, flags, count, &size);
	return size;
}

struct list_writer {
	char *dst;
	size_t size;
	int error;
};

static void write_record(void *data, const struct core_listed *record)
{
	struct list_writer *w = data;
	size_t size = core_listed_size(record);

	if (!w->error)
		w->error = core_listed_write(record, w->dst, w->size);
	if (w->error)
		return;
	w->dst += size;
	w->size -= size;
}

int core_list_write(const struct core_conn *asker, const struct core_cred *cred, u64 flags,
		    void *dst, size_t size)
{
	struct list_writer w = { .dst = dst, .size = size };

	core_list(asker, cred, flags, write_record, &w);
	return w.error;
}

static int find_by_name(const struct core_conn *asker, const struct core_policy_view *view,
			const struct core_info_query *query, struct core_conn **ret_conn)
{
	struct core_name_holder *holder;
	struct core_name *name;

	name = core_names_find(&asker->bus->names, query->name);
	if (!name || !core_policy_may_see_name(view, query->name))
		return -ESRCH;
	holder = core_name_owner(name)->holder;
	if (query->id && holder->id != query->id)
		return -ESRCH;
	*ret_conn = container_of(holder, struct core_conn, names);
	return 0;
}

int core_info_find(const struct core_conn *asker, const struct core_cred *cred,
		   const struct core_info_query *query, struct core_conn **ret_conn)
{
	struct core_policy_view view;
	struct core_conn *conn;

	core_conn_view(asker, cred, &view);
	if (query->name)
		return find_by_name(asker, &view, query, ret_conn);
	conn = core_bus_find_conn(asker->bus, query->id);
	if (!conn || !core_policy_may_see(&view, &conn->names))
		return -ENXIO;
	*ret_conn = conn;
	return 0;
}
