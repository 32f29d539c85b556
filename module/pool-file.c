// SPDX-License-Identifier: GPL-2.0-only
#include <linux/fs.h>
#include <linux/falloc.h>
#include <linux/highmem.h>
#include <linux/instrumented.h>
#include <linux/memcontrol.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/pagemap.h>
#include <linux/sched/mm.h>
#include <linux/shmem_fs.h>
#include <linux/uaccess.h>

#include "compat/compat.h"
#include "limits.h"
#include "pool-file.h"

struct file *kbus_pool_make(const char *description, u64 size)
{
	char name[sizeof(KBUILD_MODNAME "-conn:") + CORE_SYSNAME_MAX_LEN];
	struct file *file;

	if (size > MAX_LFS_FILESIZE)
		return ERR_PTR(-EINVAL);
	snprintf(name, sizeof(name), KBUILD_MODNAME "-conn%s%s", *description ? ":" : "",
		 description);
	file = shmem_file_setup(name, size, 0);
	/* no memory for an inode is no space for shmem */
	if (IS_ERR(file))
		return PTR_ERR(file) == -ENOSPC ? ERR_PTR(-ENOMEM) : file;
	/* the bus's own file: what a security module thinks of the sender is no matter */
	file_inode(file)->i_flags |= S_PRIVATE;
	/* shmem has no use for the field */
	file->private_data = get_mem_cgroup_from_mm(current->mm);
	return file;
}

void kbus_pool_close(struct file *pool)
{
	if (!pool)
		return;
	mem_cgroup_put(pool->private_data);
	fput(pool);
}

struct mem_cgroup *kbus_pool_memcg(const struct file *pool)
{
	return pool->private_data;
}

/* A group that has no memory left loses the message, and no process. */
static struct page *get_page_at(struct file *pool, size_t offset)
{
	gfp_t gfp = mapping_gfp_mask(pool->f_mapping) | __GFP_RETRY_MAYFAIL | __GFP_NOWARN;
	struct mem_cgroup *old = set_active_memcg(kbus_pool_memcg(pool));
	struct page *page;

	page = shmem_read_mapping_page_gfp(pool->f_mapping, offset >> PAGE_SHIFT, gfp);
	set_active_memcg(old);
	return page;
}

void kbus_pool_mark_drop(struct kbus_pool_mark *mark)
{
	if (mark->page)
		put_page(mark->page);
	mark->page = NULL;
}

static void finish(struct kbus_pool_pen *pen)
{
	kunmap_local(pen->at);
	flush_dcache_page(pen->page);
	set_page_dirty(pen->page);
}

void kbus_pool_pen_end(struct kbus_pool_pen *pen)
{
	if (!pen->page)
		return;
	finish(pen);
	if (pen->mark) {
		kbus_pool_mark_drop(pen->mark);
		pen->mark->page = pen->page;
		pen->mark->index = pen->index;
	} else {
		put_page(pen->page);
	}
	pen->page = NULL;
}

/* The marked page, if it is that one, and still the pool's. */
static struct page *take_mark(struct kbus_pool_pen *pen, pgoff_t index)
{
	struct page *page = pen->mark ? pen->mark->page : NULL;

	if (!page || pen->mark->index != index || READ_ONCE(page->mapping) != pen->pool->f_mapping)
		return NULL;
	pen->mark->page = NULL;
	return page;
}

static int turn_to(struct kbus_pool_pen *pen, size_t offset)
{
	pgoff_t index = offset >> PAGE_SHIFT;
	struct page *page;

	if (pen->page && pen->index == index)
		return 0;
	if (pen->page) {
		finish(pen);
		put_page(pen->page);
		pen->page = NULL;
	}
	page = take_mark(pen, index);
	if (!page) {
		page = get_page_at(pen->pool, offset);
		if (IS_ERR(page))
			return PTR_ERR(page);
		mark_page_accessed(page);
	}
	pen->page = page;
	pen->index = index;
	pen->at = kmap_local_page(page);
	return 0;
}

void *kbus_pool_pen_room(struct kbus_pool_pen *pen, size_t offset, size_t size)
{
	int r;

	if (size > PAGE_SIZE - offset_in_page(offset))
		return NULL;
	r = turn_to(pen, offset);
	return r ? ERR_PTR(r) : pen->at + offset_in_page(offset);
}

/* The part of @size bytes at @offset that lies in the first page. */
static size_t in_page(size_t offset, size_t size)
{
	return min_t(size_t, size, PAGE_SIZE - offset_in_page(offset));
}

int kbus_pool_pen_write(struct kbus_pool_pen *pen, size_t offset, const void *src, size_t size)
{
	size_t n;
	int r;

	for (; size; size -= n, offset += n) {
		n = in_page(offset, size);
		r = turn_to(pen, offset);
		if (r)
			return r;
		if (src) {
			memcpy(pen->at + offset_in_page(offset), src, n);
			src += n;
		} else {
			memset(pen->at + offset_in_page(offset), 0, n);
		}
	}
	return 0;
}

int kbus_pool_pen_gather(struct kbus_pool_pen *pen, size_t offset, const void __user *user,
			 size_t size)
{
	size_t n, left;
	void *at;
	int r;

	for (; size; size -= n, offset += n, user += n) {
		n = in_page(offset, size);
		r = turn_to(pen, offset);
		if (r)
			return r;
		at = pen->at + offset_in_page(offset);
		instrument_copy_from_user_before(at, user, n);
		pagefault_disable();
		left = raw_copy_from_user(at, user, n);
		pagefault_enable();
		instrument_copy_from_user_after(at, user, n, left);
		if (left)
			return -EFAULT;
	}
	return 0;
}

int kbus_pool_write(struct file *pool, size_t offset, const void *src, size_t size)
{
	struct kbus_pool_pen pen = KBUS_POOL_PEN(pool, NULL);
	int r;

	r = kbus_pool_pen_write(&pen, offset, src, size);
	kbus_pool_pen_end(&pen);
	return r;
}

int kbus_pool_copy(struct file *from, size_t from_offset, struct file *to, size_t to_offset,
		   size_t size)
{
	struct page *page;
	size_t n;
	char *src;
	int r = 0;

	for (; size && !r; size -= n, from_offset += n, to_offset += n) {
		n = in_page(from_offset, size);
		page = get_page_at(from, from_offset);
		if (IS_ERR(page))
			return PTR_ERR(page);
		src = kmap_local_page(page) + offset_in_page(from_offset);
		r = kbus_pool_write(to, to_offset, src, n);
		kunmap_local(src);
		put_page(page);
	}
	return r;
}

void kbus_pool_give_back(struct file *pool, size_t offset, size_t size)
{
	size_t start = round_up(offset, PAGE_SIZE), end = round_up(offset + size, PAGE_SIZE);

	/* if it fails, they stay: nothing but memory depends on it */
	if (start < end)
		vfs_fallocate(pool, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, start, end - start);
}

int kbus_pool_mmap(struct file *pool, size_t size, struct vm_area_struct *vma)
{
	if (vma->vm_flags & VM_WRITE)
		return -EPERM;
	if (vma->vm_end - vma->vm_start > PAGE_ALIGN(size))
		return -EFAULT;
	compat_vma_read_only(vma);
	vma_set_file(vma, pool);
	return pool->f_op->mmap(pool, vma);
}
