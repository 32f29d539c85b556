// SPDX-License-Identifier: GPL-2.0-only
#include <linux/module.h>

#include "fs.h"

#define CREATE_TRACE_POINTS
#include "tracepoints.h"

static int __init kbus_init(void)
{
	return kbus_fs_register();
}

static void __exit kbus_exit(void)
{
	kbus_fs_unregister();
}

module_init(kbus_init);
module_exit(kbus_exit);
MODULE_LICENSE("GPL");
MODULE_AUTHOR("the kdbus project");
MODULE_DESCRIPTION("message bus with D-Bus semantics");
MODULE_VERSION("0.1.0");
MODULE_ALIAS_FS(KBUILD_MODNAME "fs");
