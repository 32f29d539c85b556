// SPDX-License-Identifier: GPL-2.0-only
#include <linux/instrumented.h>
#include <linux/mm.h>
#include <linux/nospec.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "arg.h"

#define FLAGS_OFFSET	    8
#define RETURN_FLAGS_OFFSET 16

/* Small structures are words, whose place on the stack is known to be large enough. */
#define WORDS_MAX 32

static int words_in(u64 *dst, const u64 __user *user, size_t n)
{
	size_t size = n * sizeof(u64), left;

	if (!access_ok(user, size))
		return -EFAULT;
	barrier_nospec();
	instrument_copy_from_user_before(dst, user, size);
	left = raw_copy_from_user(dst, user, size);
	instrument_copy_from_user_after(dst, user, size, left);
	return left ? -EFAULT : 0;
}

static int words_out(u64 __user *user, const u64 *src, size_t n)
{
	size_t i;

	if (!user_write_access_begin(user, n * sizeof(u64)))
		return -EFAULT;
	for (i = 0; i + 2 <= n; i += 2) {
		unsafe_put_user(src[i], user + i, fault);
		unsafe_put_user(src[i + 1], user + i + 1, fault);
	}
	if (i < n)
		unsafe_put_user(src[i], user + i, fault);
	user_write_access_end();
	return 0;
fault:
	user_write_access_end();
	return -EFAULT;
}

int kbus_arg_copy_in(const void __user *user, size_t size, void *dst)
{
	int r;

	if (IS_ALIGNED(size, sizeof(u64)) && size <= WORDS_MAX * sizeof(u64)) {
		r = words_in(dst, user, size / sizeof(u64));
	} else {
		memset(dst + size, 0, ALIGN(size, 8) - size);
		r = copy_from_user(dst, user, size) ? -EFAULT : 0;
	}
	return r ? r : core_cmd_check_copy(dst, size);
}

int kbus_arg_answer_items(const struct core_items *list, const void *copy, void __user *user)
{
	const struct kdbus_item *item = list->negotiate;

	if (!item)
		return 0;
	return copy_to_user(user + ((const char *)item - (const char *)copy), item, item->size) ?
		       -EFAULT : 0;
}

/* Nearly all arguments are just the fixed part. */
static bool copy_fixed(struct kbus_arg *arg, enum core_cmd cmd)
{
	arg->size = core_cmd_size(cmd);
	arg->copy = arg->stack;
	return IS_ALIGNED((unsigned long)arg->user, 8) &&
	       !words_in(arg->copy, arg->user, arg->size / sizeof(u64)) &&
	       arg->stack[0] == arg->size;
}

static int copy_any(struct kbus_arg *arg, enum core_cmd cmd)
{
	u64 size;
	int r;

	if (!IS_ALIGNED((unsigned long)arg->user, 8) || get_user(size, (u64 __user *)arg->user))
		return -EFAULT;
	r = core_cmd_check_size(cmd, size);
	if (r)
		return r;
	arg->size = size;
	if (size > sizeof(arg->stack)) {
		arg->copy = kvmalloc(ALIGN(size, 8), GFP_KERNEL_ACCOUNT);
		if (!arg->copy)
			return -ENOMEM;
	}
	return kbus_arg_copy_in(arg->user, size, arg->copy);
}

int kbus_arg_read(struct kbus_arg *arg, enum core_cmd cmd, void __user *user)
{
	int r;

	arg->user = user;
	arg->return_flags = 0;
	arg->told_flags = U64_MAX;
	arg->parsed = false;
	arg->args.negotiate = false;
	r = copy_fixed(arg, cmd) ? 0 : copy_any(arg, cmd);
	if (r)
		return r;
	arg->parsed = true;
	r = core_cmd_parse(cmd, arg->copy, arg->size, &arg->args);
	if (!r && arg->args.list.negotiate)
		r = kbus_arg_answer_items(&arg->args.list, arg->copy, user);
	if (!r && arg->args.negotiate &&
	    put_user(arg->args.supported, (u64 __user *)(user + FLAGS_OFFSET)))
		r = -EFAULT;
	return r;
}

/* It is smaller than a page, so its ends lie in all the pages it is in. */
int kbus_arg_probe(struct kbus_arg *arg)
{
	size_t last = core_cmd_size(arg->args.cmd) - sizeof(u64);

	BUILD_BUG_ON(KBUS_ARG_STACK > PAGE_SIZE);
	if (put_user(arg->return_flags, (u64 __user *)(arg->user + RETURN_FLAGS_OFFSET)) ||
	    put_user(*(u64 *)(arg->copy + last), (u64 __user *)(arg->user + last)))
		return -EFAULT;
	arg->told_flags = arg->return_flags;
	return 0;
}

int kbus_arg_write(struct kbus_arg *arg)
{
	size_t size = core_cmd_size(arg->args.cmd) - RETURN_FLAGS_OFFSET;
	struct kdbus_cmd *head = arg->copy;

	head->return_flags = arg->return_flags;
	arg->told_flags = arg->return_flags;
	/* the first two words are the caller's; all fixed parts are a few words */
	return words_out(arg->user + RETURN_FLAGS_OFFSET, arg->copy + RETURN_FLAGS_OFFSET,
			 size / sizeof(u64));
}

int kbus_arg_end(struct kbus_arg *arg, int r)
{
	bool silent = arg->args.negotiate && !r && arg->args.cmd != CORE_CMD_SEND;

	if (arg->parsed && !silent && arg->told_flags != arg->return_flags &&
	    put_user(arg->return_flags, (u64 __user *)(arg->user + RETURN_FLAGS_OFFSET)))
		r = -EFAULT;
	if (arg->copy != arg->stack)
		kvfree(arg->copy);
	return r;
}
