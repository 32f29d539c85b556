// SPDX-License-Identifier: GPL-2.0-only
#include <linux/fs_struct.h>
#include <linux/slab.h>

#include "creds.h"
#include "endpoint.h"
#include "life.h"
#include "notify.h"
#include "pool-file.h"
#include "record.h"
#include "tracepoints.h"

static int check(struct kbus_endpoint *ep, const struct core_opener *opener,
		 struct kbus_arg *arg, struct core_hello *ret_hello)
{
	const struct core_hello_facts facts = {
		.page_size = PAGE_SIZE,
		.custom = ep->core->custom,
		.bus_owner = core_policy_bus_owner(ep->core->custom, opener->cap_ipc_owner,
						   opener->cred.euid, ep->bus->core.uid),
	};

	return core_check_hello(arg->copy, &arg->args, &facts, ret_hello);
}

static void expire(struct work_struct *work)
{
	struct kbus_conn *conn = container_of(to_delayed_work(work), struct kbus_conn, expire);

	down_write(&conn->ep->bus->lock);
	core_bus_expire(&conn->deadlines, ktime_get_ns());
	kbus_conn_arm(conn);
	up_write(&conn->ep->bus->lock);
}

static void free_conn(struct kbus_conn *conn)
{
	kbus_pool_mark_drop(&conn->mark);
	kbus_pool_close(conn->pool);
	kfree(conn->spare);
	kbus_proc_release(&conn->proc);
	path_put(&conn->root);
	put_pid(conn->pid);
	put_pid_ns(conn->pid_ns);
	put_cred(conn->opener);
	kbus_endpoint_put(conn->ep);
	mutex_destroy(&conn->lock);
	kfree(conn);
}

static struct kbus_conn *new_conn(struct kbus_endpoint *ep, const struct file *file)
{
	struct kbus_conn *conn = kzalloc(sizeof(*conn), GFP_KERNEL_ACCOUNT);

	if (!conn)
		return NULL;
	mutex_init(&conn->lock);
	init_waitqueue_head(&conn->wait);
	INIT_DELAYED_WORK(&conn->expire, expire);
	conn->ep = kbus_endpoint_get(ep);
	conn->opener = get_cred(file->f_cred);
	conn->pid_ns = get_pid_ns(task_active_pid_ns(current));
	conn->pid = get_pid(task_tgid(current));
	get_fs_root(current->fs, &conn->root);
	return conn;
}

static int prepare(struct kbus_conn *conn, const struct core_hello *hello)
{
	if (hello->description)
		strscpy(conn->description, hello->description, sizeof(conn->description));
	conn->pool = kbus_pool_make(conn->description, hello->pool_size);
	if (IS_ERR(conn->pool)) {
		int r = PTR_ERR(conn->pool);

		conn->pool = NULL;
		return r;
	}
	conn->fake = hello->fake;
	if (hello->fake)
		return kbus_proc_fake(&conn->proc, hello);
	kbus_proc_gather(&conn->proc, CORE_META_PROCESS);
	return 0;
}

static int parse_policy(const struct core_hello *hello, struct kbus_arg *arg,
			struct core_policy_set **ret_set)
{
	unsigned int flags = CORE_POLICY_ONE_NAME;

	*ret_set = NULL;
	if (hello->kind != CORE_KIND_ACTIVATOR && hello->kind != CORE_KIND_POLICY_HOLDER)
		return 0;
	if (hello->kind == CORE_KIND_ACTIVATOR)
		flags |= CORE_POLICY_NO_WILDCARD;
	return core_policy_parse(arg->args.list.items, arg->args.list.size, flags, kbus_map_id,
				 NULL, ret_set);
}

/* What HELLO tells: all but the first three words are results or were checked. */
static int answer(struct kbus_conn *conn, struct kdbus_cmd_hello *cmd)
{
	struct core_bus *bus = conn->core.bus;
	u64 items[CORE_HELLO_ITEMS_SIZE / sizeof(u64)];
	int r;

	r = core_hello_items_write(&bus->bloom, items, sizeof(items));
	if (!r)
		r = kbus_conn_answer(conn, items, sizeof(items), &cmd->offset);
	if (r)
		return r;
	cmd->items_size = sizeof(items);
	cmd->return_flags = 0;
	cmd->bus_flags = bus->flags;
	cmd->id = conn->core.id;
	memcpy(cmd->id128, bus->id128, sizeof(cmd->id128));
	return 0;
}

static int connect_locked(struct kbus_conn *conn, struct core_connect *connect,
			  struct kdbus_cmd_hello *cmd)
{
	int r;

	r = core_conn_hello(&conn->core, conn->ep->core, connect);
	if (r)
		return r;
	connect->policy = NULL;
	conn->ep->bus->wanted |= conn->core.attach_recv;
	r = answer(conn, cmd);
	if (r) {
		core_conn_disconnect(&conn->core);
		core_conn_deinit(&conn->core);
	}
	return r;
}

static int connect(struct kbus_conn *conn, struct core_connect *connect, struct kbus_arg *arg)
{
	struct kbus_bus *bus = conn->ep->bus;
	struct kbus_domain *domain = kbus_domain_of(bus->core.domain);
	u32 fake_uid = __kuid_val(conn->proc.uid[0]);
	int r;

	if (conn->fake && connect->hello->creds && fake_uid != U32_MAX)
		connect->fake_uid = &fake_uid;
	r = parse_policy(connect->hello, arg, &connect->policy);
	if (r)
		return r;
	mutex_lock(&domain->lock);
	down_write(&bus->lock);
	r = connect_locked(conn, connect, arg->copy);
	up_write(&bus->lock);
	mutex_unlock(&domain->lock);
	if (r)
		core_policy_set_free(connect->policy);
	return r;
}

int kbus_conn_hello(struct kbus_endpoint *ep, struct file *file, struct kbus_arg *arg,
		    struct kbus_conn **ret_conn)
{
	struct core_connect args = { .sink = NULL };
	struct core_opener opener;
	struct core_hello hello;
	struct kbus_conn *conn;
	int r;

	kbus_opener(file, kbus_domain_of(ep->bus->core.domain), &opener);
	r = check(ep, &opener, arg, &hello);
	if (r)
		return r;
	conn = new_conn(ep, file);
	if (!conn)
		return -ENOMEM;
	args.hello = &hello;
	args.opener = &opener;
	args.deadlines = &conn->deadlines;
	r = prepare(conn, &hello);
	if (!r)
		r = connect(conn, &args, arg);
	if (r) {
		free_conn(conn);
		return r;
	}
	trace_kdbus_conn(conn, true);
	*ret_conn = conn;
	return 0;
}

void kbus_conn_end(struct kbus_conn *conn)
{
	struct kbus_bus *bus = conn->ep->bus;
	struct kbus_domain *domain = kbus_domain_of(bus->core.domain);

	trace_kdbus_conn(conn, false);
	mutex_lock(&domain->lock);
	down_write(&bus->lock);
	core_conn_disconnect(&conn->core);
	up_write(&bus->lock);
	mutex_unlock(&domain->lock);
	/* nobody can find it any more, and it has no calls that would arm the timer again */
	cancel_delayed_work_sync(&conn->expire);
	core_conn_deinit(&conn->core);
	free_conn(conn);
}
