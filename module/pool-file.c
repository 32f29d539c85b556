// SPDX-License-Identifier: GPL-2.0-only
#include <linux/highmem.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/pagemap.h>
#include <linux/shmem_fs.h>

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
	/* the bus's own file: what a security module thinks of the sender is no matter */
	if (!IS_ERR(file))
		file_inode(file)->i_flags |= S_PRIVATE;
	return file;
}

static struct page *get_page_at(struct file *pool, size_t offset)
{
	return shmem_read_mapping_page_gfp(pool->f_mapping, offset >> PAGE_SHIFT,
					   mapping_gfp_mask(pool->f_mapping));
}

static void put_written(struct page *page)
{
	flush_dcache_page(page);
	set_page_dirty(page);
	mark_page_accessed(page);
	put_page(page);
}

int kbus_pool_write(struct file *pool, size_t offset, const void *src, size_t size)
{
	struct page *page;
	size_t n;
	char *dst;

	for (; size; size -= n, offset += n) {
		n = min_t(size_t, size, PAGE_SIZE - offset_in_page(offset));
		page = get_page_at(pool, offset);
		if (IS_ERR(page))
			return PTR_ERR(page);
		dst = kmap_local_page(page) + offset_in_page(offset);
		if (src)
			memcpy(dst, src, n);
		else
			memset(dst, 0, n);
		kunmap_local(dst);
		put_written(page);
		if (src)
			src += n;
	}
	return 0;
}

int kbus_pool_copy(struct file *from, size_t from_offset, struct file *to, size_t to_offset,
		   size_t size)
{
	struct page *page;
	size_t n;
	char *src;
	int r = 0;

	for (; size && !r; size -= n, from_offset += n, to_offset += n) {
		n = min_t(size_t, size, PAGE_SIZE - offset_in_page(from_offset));
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
