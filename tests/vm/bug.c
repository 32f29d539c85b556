// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Bugs on purpose, linked into a kdbus.ko of its own by the test "harness" and triggered
 * through /sys/module/kdbus/parameters/bug: what runs the tests must notice each of them.
 */
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/string.h>

static int cause(const char *value, const struct kernel_param *param)
{
	if (sysfs_streq(value, "warning"))
		WARN_ON(1);
	else if (sysfs_streq(value, "leak"))
		return kmalloc(100, GFP_KERNEL) ? 0 : -ENOMEM;
	else if (sysfs_streq(value, "oops"))
		*(volatile int *)NULL = 1;
	else if (sysfs_streq(value, "hang"))
		/* many times what the kernel is told to complain about */
		schedule_timeout_uninterruptible(30 * HZ);
	else if (!sysfs_streq(value, "nothing"))
		return -EINVAL;
	return 0;
}

static const struct kernel_param_ops ops = { .set = cause };

module_param_cb(bug, &ops, NULL, 0200);
