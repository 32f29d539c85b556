// SPDX-License-Identifier: GPL-2.0-only
#include <linux/dcache.h>
#include <linux/fcntl.h>
#include <linux/file.h>
#include <linux/magic.h>
#include <linux/net.h>
#include <linux/shmem_fs.h>
#include <linux/slab.h>
#include <linux/socket.h>

#include "compat/compat.h"
#include "files.h"
#include "handle.h"
#include "pool-file.h"

#define SEALS (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

/* A ring of io_uring keeps the files that are registered with it. */
static bool is_ring(const struct file *file)
{
	const struct dentry *dentry = file->f_path.dentry;

	return dentry->d_sb->s_magic == ANON_INODE_FS_MAGIC &&
	       !strcmp(dentry->d_name.name, "[io_uring]");
}

static bool may_travel(struct file *file)
{
	struct socket *sock = sock_from_file(file);

	if (kbus_handle_is(file) || is_ring(file))
		return false;
	return !sock || !sock->ops || sock->ops->family != PF_UNIX;
}

static int take_file(int fd, struct file **ret_file)
{
	struct file *file;

	if (fd < 0)
		return -EBADF;
	file = fget_raw(fd);
	if (!file)
		return -EBADF;
	if (!may_travel(file)) {
		fput(file);
		return -EOPNOTSUPP;
	}
	*ret_file = file;
	return 0;
}

static int check_memfd(const struct file *file, const struct kdbus_memfd *memfd)
{
	struct inode *inode = file_inode(file);

	/*
	 * The mapping of the inode, not of the file: a file of overlayfs may point to the
	 * mapping of the shmem file below it, and its inode is none of shmem's.
	 */
	if (!shmem_mapping(inode->i_mapping))
		return -EMEDIUMTYPE;
	if ((READ_ONCE(SHMEM_I(inode)->seals) & SEALS) != SEALS)
		return -ETXTBSY;
	/* that the sum does not wrap was checked with the message */
	if (memfd->start + memfd->size > i_size_read(inode))
		return -EFAULT;
	return 0;
}

static int take_memfd(const struct kdbus_memfd *memfd, struct file **ret_file)
{
	struct file *file = fget(memfd->fd);
	int r;

	if (!file)
		return -EBADF;
	r = check_memfd(file, memfd);
	if (r)
		fput(file);
	else
		*ret_file = file;
	return r;
}

static const int *fds_of(const struct kdbus_item *item)
{
	return core_item_payload(item);
}

/* In the order of the items, which decides what error is seen. */
static int take_all(const struct core_msg *msg, struct kbus_files *files)
{
	const struct kdbus_item *item;
	u32 i, memfd = files->n_fds;
	int r = 0;

	core_item_for_each(item, msg->list.items, msg->list.size) {
		if (item->type == KDBUS_ITEM_FDS)
			for (i = 0; !r && i < files->n_fds; i++)
				r = take_file(fds_of(item)[i], &files->file[i].file);
		else if (item->type == KDBUS_ITEM_PAYLOAD_MEMFD)
			r = take_memfd(core_item_payload(item), &files->file[memfd++].file);
		if (r)
			return r;
	}
	return 0;
}

int kbus_files_take(const struct core_msg *msg, struct kbus_files **ret_files)
{
	u32 i, n = msg->n_fds + msg->n_memfds;
	struct kbus_files *files;
	int r;

	*ret_files = NULL;
	if (!n)
		return 0;
	files = kzalloc(struct_size(files, file, n), GFP_KERNEL_ACCOUNT);
	if (!files)
		return -ENOMEM;
	refcount_set(&files->ref, 1);
	files->n_fds = msg->n_fds;
	files->n = n;
	for (i = 0; i < n; i++)
		files->file[i].offset = core_msg_fd(msg, i);
	r = take_all(msg, files);
	if (r)
		kbus_files_put(files);
	else
		*ret_files = files;
	return r;
}

struct kbus_files *kbus_files_get(struct kbus_files *files)
{
	if (files)
		refcount_inc(&files->ref);
	return files;
}

void kbus_files_put(struct kbus_files *files)
{
	u32 i;

	if (!files || !refcount_dec_and_test(&files->ref))
		return;
	for (i = 0; i < files->n; i++)
		if (files->file[i].file)
			fput(files->file[i].file);
	kfree(files);
}

int kbus_files_install(const struct kbus_files *files, struct kbus_conn *conn, size_t offset,
		       u64 *ret_flags)
{
	bool accept = conn->core.flags & KDBUS_HELLO_ACCEPT_FD;
	u32 i;
	int fd, r = 0;

	for (i = 0; !r && i < files->n; i++) {
		/* a monitor is shown that there were descriptors, and gets none */
		if (i < files->n_fds && !accept)
			continue;
		fd = compat_receive_fd(files->file[i].file);
		if (fd < 0) {
			*ret_flags |= KDBUS_RECV_RETURN_INCOMPLETE_FDS;
			continue;
		}
		r = kbus_pool_write(conn->pool, offset + files->file[i].offset, &fd, sizeof(fd));
	}
	return r;
}
