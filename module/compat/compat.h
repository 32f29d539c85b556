/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MODULE_COMPAT_H
#define MODULE_COMPAT_H

/*
 * What differs between the kernels the module is built for (6.1 to 6.12), under one name
 * each. No other file looks at the version of the kernel.
 */

#include <linux/capability.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/version.h>

/* In the assignment of a tracepoint: its string @dst is @src. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 10, 0)
#define compat_assign_str(dst, src) __assign_str(dst)
#else
#define compat_assign_str(dst, src) __assign_str(dst, src)
#endif

/* All three timestamps of a new inode are now. */
static inline void compat_inode_times(struct inode *inode)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 7, 0)
	simple_inode_init_ts(inode);
#else
	inode->i_ctime = current_time(inode);
	inode->i_mtime = inode->i_ctime;
	inode->i_atime = inode->i_ctime;
#endif
}

/* A mapping that can never be made writable. */
static inline void compat_vma_read_only(struct vm_area_struct *vma)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 3, 0)
	vm_flags_clear(vma, VM_MAYWRITE);
#else
	vma->vm_flags &= ~VM_MAYWRITE;
#endif
}

/* Install another reference to @file in the calling process. Return: number or errno. */
static inline int compat_receive_fd(struct file *file)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 7, 0)
	return receive_fd(file, NULL, O_CLOEXEC);
#else
	return receive_fd(file, O_CLOEXEC);
#endif
}

/* The executable of a process, with a reference, or NULL. */
static inline struct file *compat_exe_file(struct mm_struct *mm)
{
	struct file *file;

	rcu_read_lock();
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 7, 0)
	file = get_file_rcu(&mm->exe_file);
#else
	do {
		file = rcu_dereference(mm->exe_file);
	} while (file && !get_file_rcu(file));
#endif
	rcu_read_unlock();
	return file;
}

/* A set of capabilities as two words, the low one first. */
static inline void compat_cap_words(kernel_cap_t set, u32 *ret_words)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 3, 0)
	ret_words[0] = (u32)set.val;
	ret_words[1] = (u32)(set.val >> 32);
#else
	ret_words[0] = set.cap[0];
	ret_words[1] = set.cap[1];
#endif
}

#endif
