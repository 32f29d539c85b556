// SPDX-License-Identifier: LGPL-2.1-or-later
/* Who is on the bus. Rules: roster.h. */
#include "roster.h"

#include <string.h>

static uint64_t first_id(const struct classic *k)
{
	return k->bus->core.id + 1;
}

struct dbusp_str unique_name(const struct peer *p, char *buf)
{
	uint64_t n = p->conn.id - p->conn.bus->id - 1;
	char digits[CLASSIC_UNIQUE_MAX];
	size_t i = sizeof(digits), len;

	do {
		digits[--i] = (char)('0' + n % 10);
		n /= 10;
	} while (n);
	len = sizeof(digits) - i;
	memcpy(buf, ":1.", 3);
	memcpy(buf + 3, digits + i, len);
	buf[3 + len] = '\0';
	return (struct dbusp_str){ buf, (uint32_t)(3 + len) };
}

uint64_t unique_id(const struct classic *k, struct dbusp_str name)
{
	uint64_t n = 0;
	uint32_t i;

	if (name.len < 4 || name.len > 22 || memcmp(name.s, ":1.", 3) ||
	    (name.s[3] == '0' && name.len > 4))
		return 0;
	for (i = 3; i < name.len; i++) {
		if (name.s[i] < '0' || name.s[i] > '9')
			return 0;
		n = n * 10 + (uint64_t)(name.s[i] - '0');
	}
	return n + first_id(k);
}

struct peer *route_find(const struct classic *k, struct dbusp_str name)
{
	struct core_bus *bus = &k->bus->core;
	struct core_conn *conn;
	struct core_name *n;

	if (name.len && name.s[0] == ':') {
		conn = core_bus_find_conn(bus, unique_id(k, name));
		return conn && conn->kind == CORE_KIND_ORDINARY ? peer_of(conn) : NULL;
	}
	n = core_names_find(&bus->names, name.s);
	if (!n)
		return NULL;
	return peer_of(container_of(core_name_owner(n)->holder, struct core_conn, names));
}

struct peer *route_owner(const struct classic *k, struct dbusp_str name)
{
	struct peer *p = route_find(k, name);

	return p && p->conn.kind == CORE_KIND_ORDINARY ? p : NULL;
}

void roster_each_peer(const struct classic *k, void (*visit)(struct peer *p, void *data),
		      void *data)
{
	struct core_conn *conn;

	list_for_each_entry(conn, &k->bus->core.all, bus_entry)
		if (conn->kind == CORE_KIND_ORDINARY)
			visit(peer_of(conn), data);
}

void roster_each_name(const struct classic *k, void (*visit)(const char *name, void *data),
		      void *data)
{
	const struct core_name *name;
	struct rb_node *node;

	for (node = rb_first(&k->bus->core.names.tree); node; node = rb_next(node)) {
		name = rb_entry(node, struct core_name, node);
		if (!list_empty(&name->queue))
			visit(name->name, data);
	}
}

static void count(struct peer *p, void *data)
{
	++*(size_t *)data;
}

size_t roster_count(const struct classic *k)
{
	size_t n = k->bus->core.names.count;

	roster_each_peer(k, count, &n);
	return n;
}
