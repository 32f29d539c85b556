// SPDX-License-Identifier: GPL-2.0-only
#include <linux/compat.h>
#include <linux/module.h>
#include <linux/poll.h>
#include <linux/slab.h>

#include "arg.h"
#include "creds.h"
#include "endpoint.h"
#include "handle.h"
#include "life.h"
#include "peer.h"
#include "pool-file.h"

/**
 * struct handle - an open file
 * @lock:   commands that change @state
 * @state:  what it has become; stored with release, read with acquire
 * @domain: its domain
 * @ep:     endpoint file: the endpoint, with a reference
 * @bus:    bus owner: the bus
 * @own:    endpoint owner: the endpoint made
 * @conn:   connection
 */
struct handle {
	struct mutex lock;
	enum core_handle state;
	struct kbus_domain *domain;
	struct kbus_endpoint *ep;
	union {
		struct kbus_bus *bus;
		struct kbus_endpoint *own;
		struct kbus_conn *conn;
	};
};

static int open_handle(struct inode *inode, struct file *file)
{
	struct handle *handle = kzalloc(sizeof(*handle), GFP_KERNEL_ACCOUNT);
	struct kbus_endpoint *ep = inode->i_private;

	if (!handle)
		return -ENOMEM;
	if (ep && READ_ONCE(ep->core->dead)) {
		kfree(handle);
		return -ESHUTDOWN;
	}
	mutex_init(&handle->lock);
	handle->domain = inode->i_sb->s_fs_info;
	handle->state = ep ? CORE_HANDLE_ENDPOINT : CORE_HANDLE_CONTROL;
	if (ep)
		handle->ep = kbus_endpoint_get(ep);
	file->private_data = handle;
	return 0;
}

static int release_handle(struct inode *inode, struct file *file)
{
	struct handle *handle = file->private_data;

	switch (handle->state) {
	case CORE_HANDLE_BUS_OWNER:
		kbus_bus_end(handle->bus);
		kbus_bus_put(handle->bus);
		break;
	case CORE_HANDLE_EP_OWNER:
		kbus_endpoint_end(handle->own);
		kbus_endpoint_put(handle->own);
		break;
	case CORE_HANDLE_CONNECTED:
		kbus_conn_end(handle->conn);
		break;
	default:
		break;
	}
	kbus_endpoint_put(handle->ep);
	mutex_destroy(&handle->lock);
	kfree(handle);
	return 0;
}

/* What a state stands for is read after it. */
static enum core_handle state_of(const struct handle *handle)
{
	/* pairs with the release in set_up() */
	return smp_load_acquire(&handle->state);
}

static bool is_dead(const struct handle *handle, enum core_handle state)
{
	switch (state) {
	case CORE_HANDLE_ENDPOINT:
		return READ_ONCE(handle->ep->core->dead) ||
		       READ_ONCE(handle->ep->bus->core.dead);
	case CORE_HANDLE_EP_OWNER:
		return READ_ONCE(handle->own->core->dead);
	case CORE_HANDLE_CONNECTED:
		return !kbus_conn_alive(handle->conn);
	default:
		return false;
	}
}

static bool is_bus_owner(const struct file *file, const struct handle *handle)
{
	struct core_opener opener;

	kbus_opener(file, handle->domain, &opener);
	return core_policy_bus_owner(handle->ep->core->custom, opener.cap_ipc_owner,
				     opener.cred.euid, handle->ep->bus->core.uid);
}

static int become(struct file *file, struct handle *handle, struct kbus_arg *arg,
		  enum core_handle *ret_state)
{
	int r;

	switch (arg->args.cmd) {
	case CORE_CMD_BUS_MAKE:
		*ret_state = CORE_HANDLE_BUS_OWNER;
		return kbus_bus_make(handle->domain, arg, &handle->bus);
	case CORE_CMD_ENDPOINT_MAKE:
		*ret_state = CORE_HANDLE_EP_OWNER;
		return kbus_endpoint_make(handle->ep->bus, arg, &handle->own);
	default:
		*ret_state = CORE_HANDLE_CONNECTED;
		r = kbus_arg_probe(arg);
		if (!r)
			r = kbus_conn_hello(handle->ep, file, arg, &handle->conn);
		return r;
	}
}

/* BUS_MAKE, ENDPOINT_MAKE, HELLO */
static int set_up(struct file *file, enum core_cmd cmd, void __user *user)
{
	struct handle *handle = file->private_data;
	enum core_handle state;
	struct kbus_arg arg;
	int r;

	mutex_lock(&handle->lock);
	r = core_cmd_check_handle(cmd, handle->state, is_dead(handle, handle->state));
	if (r)
		goto unlock;
	if (cmd == CORE_CMD_ENDPOINT_MAKE && !is_bus_owner(file, handle)) {
		r = -EPERM;
		goto unlock;
	}
	r = kbus_arg_read(&arg, cmd, user);
	if (!r && !arg.args.negotiate) {
		r = become(file, handle, &arg, &state);
		if (!r) /* pairs with the acquire in state_of() */
			smp_store_release(&handle->state, state);
		if (!r && cmd == CORE_CMD_HELLO)
			r = kbus_arg_write(&arg);
	}
	r = kbus_arg_end(&arg, r);
unlock:
	mutex_unlock(&handle->lock);
	return r;
}

static int update_endpoint(struct kbus_endpoint *ep, void __user *user)
{
	struct kbus_arg arg;
	int r;

	r = kbus_arg_read(&arg, CORE_CMD_ENDPOINT_UPDATE, user);
	if (!r && !arg.args.negotiate)
		r = kbus_endpoint_update(ep, &arg);
	return kbus_arg_end(&arg, r);
}

static long ioctl(struct file *file, unsigned int nr, unsigned long address)
{
	struct handle *handle = file->private_data;
	enum core_handle state = state_of(handle);
	void __user *user = (void __user *)address;
	enum core_cmd cmd;
	int r;

	r = core_cmd_lookup(nr, &cmd);
	if (!r)
		r = core_cmd_check_handle(cmd, state, is_dead(handle, state));
	if (r)
		return r;
	switch (cmd) {
	case CORE_CMD_BUS_MAKE:
	case CORE_CMD_ENDPOINT_MAKE:
	case CORE_CMD_HELLO:
		return set_up(file, cmd, user);
	case CORE_CMD_ENDPOINT_UPDATE:
		return update_endpoint(handle->own, user);
	default:
		return kbus_peer_command(handle->conn, file, cmd, user);
	}
}

static __poll_t poll(struct file *file, poll_table *table)
{
	struct handle *handle = file->private_data;

	if (state_of(handle) != CORE_HANDLE_CONNECTED)
		return EPOLLERR | EPOLLHUP;
	return kbus_conn_poll(handle->conn, file, table);
}

static int mmap(struct file *file, struct vm_area_struct *vma)
{
	struct handle *handle = file->private_data;

	if (state_of(handle) != CORE_HANDLE_CONNECTED)
		return -EBADFD;
	return kbus_pool_mmap(handle->conn->pool, handle->conn->core.inbox.pool.size, vma);
}

static void show_fdinfo(struct seq_file *seq, struct file *file)
{
	struct handle *handle = file->private_data;

	if (state_of(handle) == CORE_HANDLE_CONNECTED)
		kbus_conn_show(handle->conn, seq);
}

const struct file_operations kbus_control_fops = {
	.owner = THIS_MODULE,
	.open = open_handle,
	.release = release_handle,
	.unlocked_ioctl = ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.poll = poll,
	.mmap = mmap,
	.llseek = noop_llseek,
};

const struct file_operations kbus_endpoint_fops = {
	.owner = THIS_MODULE,
	.open = open_handle,
	.release = release_handle,
	.unlocked_ioctl = ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.poll = poll,
	.mmap = mmap,
	.llseek = noop_llseek,
	.show_fdinfo = show_fdinfo,
};

bool kbus_handle_is(const struct file *file)
{
	return file->f_op == &kbus_control_fops || file->f_op == &kbus_endpoint_fops;
}
