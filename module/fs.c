// SPDX-License-Identifier: GPL-2.0-only
#include <linux/dcache.h>
#include <linux/fs_context.h>
#include <linux/kobject.h>
#include <linux/module.h>
#include <linux/pagemap.h>
#include <linux/slab.h>
#include <linux/sysfs.h>

#include "compat/compat.h"
#include "endpoint.h"
#include "fs.h"
#include "handle.h"
#include "host.h"

#define KBUS_MAGIC 0x44427573

static void evict_inode(struct inode *inode)
{
	truncate_inode_pages_final(&inode->i_data);
	clear_inode(inode);
	kbus_endpoint_put(inode->i_private);
}

static const struct super_operations super_ops = {
	.statfs = simple_statfs,
	.drop_inode = generic_delete_inode,
	.evict_inode = evict_inode,
};

static struct inode *new_node(struct super_block *sb, umode_t mode, kuid_t uid, kgid_t gid)
{
	struct inode *inode = new_inode(sb);

	if (!inode)
		return NULL;
	inode->i_ino = get_next_ino();
	inode->i_mode = mode;
	inode->i_uid = uid;
	inode->i_gid = gid;
	compat_inode_times(inode);
	if (S_ISDIR(mode)) {
		inode->i_op = &simple_dir_inode_operations;
		inode->i_fop = &simple_dir_operations;
		set_nlink(inode, 2);
	}
	return inode;
}

/* A lookup that found nothing may still have its dentry around: it must not hide ours. */
static void forget_negative(struct dentry *parent, const struct qstr *name)
{
	struct dentry *old = d_lookup(parent, name);

	if (!old)
		return;
	d_drop(old);
	dput(old);
}

/* Takes over @inode. The dentry stays pinned until kbus_fs_remove(). */
static int add_node(struct dentry *parent, const char *name, struct inode *inode,
		    struct dentry **ret_dentry)
{
	struct dentry *dentry;

	inode_lock(d_inode(parent));
	dentry = d_alloc_name(parent, name);
	if (dentry) {
		forget_negative(parent, &dentry->d_name);
		d_add(dentry, inode);
	}
	inode_unlock(d_inode(parent));
	if (!dentry) {
		iput(inode);
		return -ENOMEM;
	}
	*ret_dentry = dentry;
	return 0;
}

static umode_t access_mode(u64 flags, umode_t bits)
{
	umode_t mode = bits << 6;

	if (flags & (KDBUS_MAKE_ACCESS_GROUP | KDBUS_MAKE_ACCESS_WORLD))
		mode |= bits << 3;
	if (flags & KDBUS_MAKE_ACCESS_WORLD)
		mode |= bits;
	return mode;
}

int kbus_fs_add_bus(struct kbus_bus *bus, struct dentry **ret_dir)
{
	struct super_block *sb = kbus_domain_of(bus->core.domain)->sb;
	struct inode *inode;

	inode = new_node(sb, S_IFDIR | access_mode(bus->core.flags, 5), current_euid(),
			 current_egid());
	if (!inode)
		return -ENOMEM;
	return add_node(sb->s_root, bus->core.name, inode, ret_dir);
}

int kbus_fs_add_endpoint(struct kbus_endpoint *ep, struct dentry **ret_dentry)
{
	struct super_block *sb = kbus_domain_of(ep->bus->core.domain)->sb;
	struct inode *inode;

	inode = new_node(sb, S_IFREG | access_mode(ep->core->flags, 6), current_euid(),
			 current_egid());
	if (!inode)
		return -ENOMEM;
	inode->i_fop = &kbus_endpoint_fops;
	inode->i_private = kbus_endpoint_get(ep);
	return add_node(ep->bus->dir, ep->core->name, inode, ret_dentry);
}

void kbus_fs_remove(struct dentry *dentry)
{
	struct inode *root = d_inode(dentry->d_sb->s_root);

	simple_recursive_removal(dentry, NULL);
	/* a directory reports two links, however many are in it */
	inode_lock(root);
	set_nlink(root, 2);
	inode_unlock(root);
}

/*
 * Root of the user namespace that mounted, for whom the kernel refuses to open a file of
 * an owner without a number there; of the initial one, if that is who mounted.
 */
static kuid_t root_uid(const struct super_block *sb)
{
	kuid_t uid = make_kuid(sb->s_user_ns, 0);

	return uid_valid(uid) ? uid : GLOBAL_ROOT_UID;
}

static kgid_t root_gid(const struct super_block *sb)
{
	kgid_t gid = make_kgid(sb->s_user_ns, 0);

	return gid_valid(gid) ? gid : GLOBAL_ROOT_GID;
}

static int add_control(struct super_block *sb)
{
	struct dentry *control;
	struct inode *inode;

	inode = new_node(sb, S_IFREG | 0666, root_uid(sb), root_gid(sb));
	if (!inode)
		return -ENOMEM;
	inode->i_fop = &kbus_control_fops;
	return add_node(sb->s_root, "control", inode, &control);
}

static int fill_super(struct super_block *sb, struct fs_context *fc)
{
	struct kbus_domain *domain;
	struct inode *inode;

	sb->s_maxbytes = MAX_LFS_FILESIZE;
	sb->s_blocksize = PAGE_SIZE;
	sb->s_blocksize_bits = PAGE_SHIFT;
	sb->s_magic = KBUS_MAGIC;
	sb->s_op = &super_ops;
	sb->s_time_gran = 1;
	sb->s_iflags |= SB_I_NOEXEC | SB_I_NODEV;
	inode = new_node(sb, S_IFDIR | 0555, root_uid(sb), root_gid(sb));
	if (!inode)
		return -ENOMEM;
	sb->s_root = d_make_root(inode);
	if (!sb->s_root)
		return -ENOMEM;
	domain = kzalloc(sizeof(*domain), GFP_KERNEL_ACCOUNT);
	if (!domain)
		return -ENOMEM;
	core_domain_init(&domain->core, &kbus_host_ops);
	mutex_init(&domain->lock);
	domain->sb = sb;
	sb->s_fs_info = domain;
	return add_control(sb);
}

static int get_tree(struct fs_context *fc)
{
	return get_tree_nodev(fc, fill_super);
}

static const struct fs_context_operations context_ops = {
	.get_tree = get_tree,
};

static int init_context(struct fs_context *fc)
{
	fc->ops = &context_ops;
	return 0;
}

static void kill_super(struct super_block *sb)
{
	struct kbus_domain *domain = sb->s_fs_info;

	kill_litter_super(sb);
	if (!domain)
		return;
	core_domain_deinit(&domain->core);
	mutex_destroy(&domain->lock);
	kfree(domain);
}

static struct file_system_type fs_type = {
	.owner = THIS_MODULE,
	.name = KBUILD_MODNAME "fs",
	.init_fs_context = init_context,
	.kill_sb = kill_super,
	.fs_flags = FS_USERNS_MOUNT,
};

int kbus_fs_register(void)
{
	int r;

	r = sysfs_create_mount_point(fs_kobj, KBUILD_MODNAME);
	if (r)
		return r;
	r = register_filesystem(&fs_type);
	if (r)
		sysfs_remove_mount_point(fs_kobj, KBUILD_MODNAME);
	return r;
}

void kbus_fs_unregister(void)
{
	unregister_filesystem(&fs_type);
	sysfs_remove_mount_point(fs_kobj, KBUILD_MODNAME);
}
