// SPDX-License-Identifier: GPL-2.0-only
#include "creds.h"
#include "life.h"
#include "peer.h"
#include "tracepoints.h"

/* The commands that change the bus: each has it for itself. */

static struct kbus_bus *lock_bus(struct kbus_conn *conn)
{
	down_write(&conn->ep->bus->lock);
	return conn->ep->bus;
}

int kbus_peer_name_acquire(struct kbus_conn *conn, struct kbus_arg *arg)
{
	struct core_cred cred;
	struct kbus_bus *bus;
	const char *name;
	int r;

	r = core_check_name_acquire(&arg->args, &name);
	if (r)
		return r;
	kbus_cred(current_cred(), &cred);
	bus = lock_bus(conn);
	r = core_conn_acquire(&conn->core, &cred, name, arg->args.flags, &arg->return_flags);
	up_write(&bus->lock);
	trace_kdbus_name(conn, name, true, arg->return_flags, r);
	return r;
}

int kbus_peer_name_release(struct kbus_conn *conn, struct kbus_arg *arg)
{
	const char *name = core_args_str(&arg->args, KDBUS_ITEM_NAME);
	struct kbus_bus *bus = lock_bus(conn);
	int r;

	r = core_conn_release(&conn->core, name);
	up_write(&bus->lock);
	trace_kdbus_name(conn, name, false, 0, r);
	return r;
}

int kbus_peer_match_add(struct kbus_conn *conn, struct kbus_arg *arg)
{
	const struct kdbus_cmd_match *cmd = arg->copy;
	struct kbus_bus *bus = lock_bus(conn);
	int r = -ECONNRESET;

	if (kbus_conn_alive(conn))
		r = core_match_add(&conn->core.matches, cmd->cookie, arg->args.flags,
				   arg->args.list.items, arg->args.list.size);
	up_write(&bus->lock);
	return r;
}

int kbus_peer_match_remove(struct kbus_conn *conn, struct kbus_arg *arg)
{
	const struct kdbus_cmd_match *cmd = arg->copy;
	struct kbus_bus *bus = lock_bus(conn);
	int r = -ECONNRESET;

	if (kbus_conn_alive(conn))
		r = core_match_remove(&conn->core.matches, cmd->cookie);
	up_write(&bus->lock);
	return r;
}

static int parse_policy(const struct core_update *update, struct kbus_arg *arg,
			struct core_policy_set **ret_set)
{
	*ret_set = NULL;
	if (!update->set_policy)
		return 0;
	return core_policy_parse(arg->args.list.items, arg->args.list.size, CORE_POLICY_ONE_NAME,
				 kbus_map_id, NULL, ret_set);
}

int kbus_peer_update(struct kbus_conn *conn, struct kbus_arg *arg)
{
	struct core_policy_set *set;
	struct core_update update;
	struct kbus_bus *bus;
	int r;

	r = core_check_update(&arg->args, conn->core.kind, &update);
	if (!r)
		r = parse_policy(&update, arg, &set);
	if (r)
		return r;
	bus = lock_bus(conn);
	r = kbus_conn_alive(conn) ? core_conn_update(&conn->core, &update, set) : -ECONNRESET;
	if (!r)
		bus->wanted |= conn->core.attach_recv;
	up_write(&bus->lock);
	if (r)
		core_policy_set_free(set);
	return r;
}

int kbus_peer_byebye(struct kbus_conn *conn)
{
	struct kbus_domain *domain = kbus_domain_of(conn->ep->bus->core.domain);
	struct kbus_bus *bus;
	int r;

	mutex_lock(&domain->lock);
	bus = lock_bus(conn);
	r = core_conn_byebye(&conn->core);
	up_write(&bus->lock);
	mutex_unlock(&domain->lock);
	return r;
}
