// SPDX-License-Identifier: GPL-2.0-only
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "arg.h"

#define FLAGS_OFFSET	    8
#define RETURN_FLAGS_OFFSET 16

int kbus_arg_copy_in(const void __user *user, size_t size, void *dst)
{
	memset(dst + size, 0, ALIGN(size, 8) - size);
	if (copy_from_user(dst, user, size))
		return -EFAULT;
	return core_cmd_check_copy(dst, size);
}

int kbus_arg_answer_items(const struct core_items *list, const void *copy, void __user *user)
{
	const struct kdbus_item *item = list->negotiate;

	if (!item)
		return 0;
	return copy_to_user(user + ((const char *)item - (const char *)copy), item, item->size) ?
		       -EFAULT : 0;
}

static int copy_in(struct kbus_arg *arg, enum core_cmd cmd)
{
	u64 size;
	int r;

	if (!IS_ALIGNED((unsigned long)arg->user, 8) || get_user(size, (u64 __user *)arg->user))
		return -EFAULT;
	r = core_cmd_check_size(cmd, size);
	if (r)
		return r;
	arg->size = size;
	arg->copy = arg->stack;
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
	arg->copy = NULL;
	arg->return_flags = 0;
	arg->parsed = false;
	arg->args.negotiate = false;
	r = copy_in(arg, cmd);
	if (r)
		return r;
	arg->parsed = true;
	r = core_cmd_parse(cmd, arg->copy, arg->size, &arg->args);
	if (!r)
		r = kbus_arg_answer_items(&arg->args.list, arg->copy, user);
	if (!r && arg->args.negotiate &&
	    put_user(arg->args.supported, (u64 __user *)(user + FLAGS_OFFSET)))
		r = -EFAULT;
	return r;
}

int kbus_arg_probe(const struct kbus_arg *arg)
{
	return kbus_arg_write(arg);
}

int kbus_arg_write(const struct kbus_arg *arg)
{
	size_t size = core_cmd_size(arg->args.cmd);

	/* the first two words are the caller's */
	return copy_to_user(arg->user + RETURN_FLAGS_OFFSET, arg->copy + RETURN_FLAGS_OFFSET,
			    size - RETURN_FLAGS_OFFSET) ? -EFAULT : 0;
}

int kbus_arg_end(struct kbus_arg *arg, int r)
{
	bool silent = arg->args.negotiate && !r && arg->args.cmd != CORE_CMD_SEND;

	if (arg->parsed && !silent &&
	    put_user(arg->return_flags, (u64 __user *)(arg->user + RETURN_FLAGS_OFFSET)))
		r = -EFAULT;
	if (arg->copy != arg->stack)
		kvfree(arg->copy);
	return r;
}
