/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef DAEMON_KERNEL_H
#define DAEMON_KERNEL_H

/*
 * kernel.h - a bus on the kernel engine
 *
 * 1. The bus lives in the module; the daemon only owns it, by a descriptor of the control node.
 * 2. A file system that was not there is mounted, and goes again with the daemon, except where all
 *    expect it: at KERNEL_DOMAIN it stays as long as others use it.
 * 3. What fails has been logged, with what to do about it.
 */

#include <stdbool.h>
#include <sys/types.h>

#include "base.h"

/* The customary mount point of kdbusfs, which the module makes */
#define KERNEL_DOMAIN "/sys/fs/kdbus"

/**
 * struct kernel_bus - a bus that the daemon owns
 * @fd:		the descriptor it lives by, -1: none
 * @mounted:	where the daemon has mounted kdbusfs, or NULL
 * @node:	path of the endpoint of the bus
 */
struct kernel_bus {
	int fd;
	const char *mounted;
	char *node;
};

/**
 * kernel_bus_start() - make a bus
 * @bus:	to be started; kernel_bus_stop() it, also after an error
 * @dir:	directory of the domain; must stay until the bus is stopped
 * @name:	of the bus, with the uid in front
 * @flags:	KDBUS_MAKE_*
 * @uid:	its owner: the caller, or root makes it for him
 *
 * Return: 0, or a negative errno after it has been logged: -ENODEV without the module, -EPERM if
 *	only root could mount, -EEXIST if the name is taken, or that of mkdir(2), mount(2), open(2)
 *	or BUS_MAKE.
 */
int kernel_bus_start(struct kernel_bus *bus, const char *dir, const char *name, u64 flags,
		     uid_t uid);

/**
 * kernel_bus_stop() - end the bus
 * @bus:	from kernel_bus_start()
 */
void kernel_bus_stop(struct kernel_bus *bus);

#endif
