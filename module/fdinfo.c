// SPDX-License-Identifier: GPL-2.0-only
#include "life.h"

static void show(struct seq_file *seq, const char *what, u64 value)
{
	seq_printf(seq, "kdbus-%s:\t%llu\n", what, value);
}

static void show_inbox(const struct kbus_conn *conn, struct seq_file *seq)
{
	const struct core_inbox *inbox = &conn->core.inbox;

	show(seq, "pool-size", inbox->pool.size);
	show(seq, "pool-used", inbox->pool.used);
	show(seq, "queued", inbox->queue.n);
	show(seq, "queued-bytes", inbox->pool.accounted);
	show(seq, "lost-unreported", inbox->lost);
	show(seq, "received", conn->received);
	show(seq, "lost", conn->lost);
}

void kbus_conn_show(struct kbus_conn *conn, struct seq_file *seq)
{
	struct kbus_bus *bus = conn->ep->bus;

	down_read(&bus->lock);
	mutex_lock(&conn->lock);
	show(seq, "id", conn->core.id);
	seq_printf(seq, "kdbus-bus:\t%s\n", bus->core.name);
	seq_printf(seq, "kdbus-endpoint:\t%s\n", conn->ep->core->name);
	seq_printf(seq, "kdbus-description:\t%s\n", conn->description);
	seq_printf(seq, "kdbus-flags:\t%#llx\n", conn->core.flags);
	show(seq, "alive", kbus_conn_alive(conn));
	show(seq, "names", conn->core.names.count);
	show(seq, "matches", conn->core.matches.n_entries);
	show(seq, "sent", atomic64_read(&conn->sent));
	if (kbus_conn_alive(conn))
		show_inbox(conn, seq);
	mutex_unlock(&conn->lock);
	up_read(&bus->lock);
}
