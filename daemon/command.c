// SPDX-License-Identifier: LGPL-2.1-or-later
/* Commands of the ABI, carried out with core/. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client.h"
#include "list.h"
#include "reading.h"

static int map_id(void *data, u64 type, u64 id, u32 *ret_id)
{
	const struct creds *creds = data;

	return type == KDBUS_POLICY_ACCESS_USER ? creds_unmap_uid(creds, id, ret_id) :
						  creds_unmap_gid(creds, id, ret_id);
}

int command_policy(struct client *c, const struct core_args *args, unsigned int flags,
		   struct core_policy_set **ret_set)
{
	return core_policy_parse(args->list.items, args->list.size, flags, map_id, c->creds,
				 ret_set);
}

static struct core_maker maker(const struct client *c)
{
	return (struct core_maker){ .mapped = true, .uid = c->creds->core.euid };
}

static int run_bus_make(struct client *c, const struct core_args *args)
{
	const struct core_maker m = maker(c);
	struct core_bus_make make;
	int r = core_check_bus_make(args, &m, &make);

	if (r == 0)
		r = bus_make(c->daemon, &make, c->creds, c, &c->made_bus);
	if (r < 0)
		return r;
	c->handle = CORE_HANDLE_BUS_OWNER;
	client_has_become(c);
	return 0;
}

bool command_is_owner(const struct client *c)
{
	const struct core_bus *bus = &c->ep->bus->core;

	return !c->ep->core->custom && (c->creds->core.euid == bus->uid || c->creds->cap_ipc_owner);
}

static int run_endpoint_make(struct client *c, const struct kdbus_cmd *cmd,
			     const struct core_args *args)
{
	const struct core_maker m = maker(c);
	const char *name;
	int r;

	if (!command_is_owner(c))
		return -EPERM;
	r = core_check_endpoint_make(args, &m, &name);
	if (r == 0)
		r = endpoint_make(c->ep->bus, name, cmd->flags, c, &c->made_ep);
	if (r < 0)
		return r;
	c->handle = CORE_HANDLE_EP_OWNER;
	client_has_become(c);
	return 0;
}

static int run_endpoint_update(struct client *c, const struct core_args *args)
{
	struct core_policy_set *set;
	int r;

	if (!c->made_ep)
		return -ESHUTDOWN;
	r = command_policy(c, args, 0, &set);
	if (r < 0)
		return r;
	r = core_endpoint_update(c->made_ep->core, set);
	if (r < 0) {
		core_policy_set_free(set);
		return r;
	}
	lane_page_policy_changed(&c->daemon->page);
	intro_review_bus(c->made_ep->bus);
	return 0;
}

static int run_update(struct client *c, const struct core_args *args)
{
	struct core_policy_set *set = NULL;
	struct core_update update;
	int r = core_check_update(args, c->conn.kind, &update);

	if (r == 0 && update.set_policy)
		r = command_policy(c, args, CORE_POLICY_ONE_NAME, &set);
	if (r == 0)
		r = core_conn_update(&c->conn, &update, set);
	if (r < 0) {
		core_policy_set_free(set);
		return r;
	}
	if (update.set_policy) {
		lane_page_policy_changed(&c->daemon->page);
		intro_review_bus(c->ep->bus);
	}
	c->ep->bus->wanted |= c->conn.attach_recv & CREDS_LATE;
	if (update.set_recv || update.set_send)
		intro_new_meta(c);
	return 0;
}

static int run_byebye(struct client *c)
{
	int r = core_conn_shut(&c->conn, false);

	if (r < 0)
		return r;
	client_finish_disconnect(c);
	return 0;
}

static bool ask(struct client *c, struct peer *target, u64 want)
{
	if (!reading_needed(target, want))
		return false;
	list_add_tail(&c->asking_entry, &target->askers);
	return true;
}

/* Of what its connection releases, does the question concern what has not been read? */
static bool info_waits(struct client *c, struct peer *target, u64 attach)
{
	u64 want = core_meta_for_conn(target->conn.attach_send, attach) & CORE_META_PROCESS;

	return want && !target->fake && peer_creds(target) && ask(c, target, want);
}

static int run_conn_info(struct client *c, const struct kdbus_cmd_info *cmd,
			 const struct core_args *args)
{
	struct core_info_query query;
	struct core_conn *target;
	void *data = NULL;
	size_t size = 0;
	int r = core_check_info(cmd, args, &query);

	if (r == 0)
		r = core_info_find(&c->conn, &c->creds->core, &query, &target);
	if (r == 0 && info_waits(c, peer_of(target), query.attach))
		return COMMAND_WAITS;
	if (r == 0)
		r = meta_info(c, peer_of(target), query.attach, &data, &size);
	if (r < 0)
		return r;
	r = answer_add(c, data, size);
	free(data);
	return r;
}

static int run_creator_info(struct client *c, const struct kdbus_cmd_info *cmd,
			    const struct core_args *args)
{
	struct core_info_query query;
	void *data = NULL;
	size_t size = 0;
	int r = core_check_info(cmd, args, &query);

	if (r == 0)
		r = meta_creator(c, c->ep->bus, query.attach, &data, &size);
	if (r < 0)
		return r;
	r = answer_add(c, data, size);
	free(data);
	return r;
}

static int run_list(struct client *c, const struct core_args *args)
{
	size_t size = core_list_size(&c->conn, &c->creds->core, args->flags);
	void *data = size ? malloc(size) : NULL;
	int r;

	if (!size)
		return 0;
	if (!data)
		return -ENOMEM;
	r = core_list_write(&c->conn, &c->creds->core, args->flags, data, size);
	if (r == 0)
		r = answer_add(c, data, size);
	free(data);
	return r;
}

static int run_name_acquire(struct client *c, const struct core_args *args)
{
	u64 *ret_flags = (u64 *)&((struct kdbus_cmd *)c->answer_arg)->return_flags;
	const char *name;
	int r = core_check_name_acquire(args, &name);

	return r < 0 ? r : name_acquire(&c->peer, name, args->flags, ret_flags);
}

static int run_match_add(struct client *c, const struct kdbus_cmd_match *cmd,
			 const struct core_args *args)
{
	return core_match_add(&c->conn.matches, cmd->cookie, args->flags, args->list.items,
			      args->list.size);
}

/*
 * Before HELLO is through, or a bus or an endpoint is made. What may be wanted with its messages is
 * read with it, so that none of them has to wait: whoever wants it of others is wanted it of, too.
 */
static bool who_waits(struct client *c, enum core_cmd cmd, const void *arg)
{
	u64 want = 0;

	if (c->handle != CORE_HANDLE_CONTROL && c->handle != CORE_HANDLE_ENDPOINT)
		return false;
	if (cmd == CORE_CMD_HELLO)
		want = c->ep->bus->wanted |
		       ((const struct kdbus_cmd_hello *)arg)->attach_flags_recv;
	else if (cmd == CORE_CMD_BUS_MAKE)
		want = CREDS_LATE;
	return ask(c, &c->peer, want);
}

int command_run(struct client *c, enum core_cmd cmd, void *arg, const struct core_args *args,
		const struct ctl_hello *hello)
{
	if (who_waits(c, cmd, arg))
		return COMMAND_WAITS;
	switch (cmd) {
	case CORE_CMD_BUS_MAKE:
		return run_bus_make(c, args);
	case CORE_CMD_ENDPOINT_MAKE:
		return run_endpoint_make(c, arg, args);
	case CORE_CMD_ENDPOINT_UPDATE:
		return run_endpoint_update(c, args);
	case CORE_CMD_HELLO:
		return connect_hello(c, arg, args, hello);
	case CORE_CMD_UPDATE:
		return run_update(c, args);
	case CORE_CMD_BYEBYE:
		return run_byebye(c);
	case CORE_CMD_CONN_INFO:
		return run_conn_info(c, arg, args);
	case CORE_CMD_BUS_CREATOR_INFO:
		return run_creator_info(c, arg, args);
	case CORE_CMD_LIST:
		return run_list(c, args);
	case CORE_CMD_RECV:
		return c->conn.kind == CORE_KIND_ACTIVATOR ? activator_recv(c, arg, args) :
							     -EOPNOTSUPP;
	case CORE_CMD_NAME_ACQUIRE:
		return run_name_acquire(c, args);
	case CORE_CMD_NAME_RELEASE:
		return name_release(&c->peer, core_args_str(args, KDBUS_ITEM_NAME));
	case CORE_CMD_MATCH_ADD:
		return run_match_add(c, arg, args);
	case CORE_CMD_MATCH_REMOVE:
		return core_match_remove(&c->conn.matches, ((struct kdbus_cmd_match *)arg)->cookie);
	default:
		return -EOPNOTSUPP;
	}
}
