/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MODULE_FS_H
#define MODULE_FS_H

#include "object.h"

/*
 * kdbusfs: one domain per mount, nodes for control, buses and endpoints (spec §1.1).
 *
 *  1. Nodes come and go with their objects; programs cannot make or remove any.
 *  2. A node that is removed is gone for lookups at once; open files go on.
 *
 * Locks: the functions that make or remove nodes need domain.lock.
 */

/**
 * kbus_fs_register() - make the file system known, and its mount point
 *
 * Return: 0 or negative errno.
 */
int kbus_fs_register(void);

/**
 * kbus_fs_unregister() - the opposite; no mount is left
 */
void kbus_fs_unregister(void);

/**
 * kbus_fs_add_bus() - make the directory of a bus
 * @bus:     bus; its flags say who may enter
 * @ret_dir: directory
 *
 * It belongs to the caller's effective ids. Return: 0; -ENOMEM.
 */
int kbus_fs_add_bus(struct kbus_bus *bus, struct dentry **ret_dir);

/**
 * kbus_fs_add_endpoint() - make the file of an endpoint
 * @ep:         endpoint; its flags say who may open it
 * @ret_dentry: file, which keeps a reference to @ep
 *
 * It belongs to the caller's effective ids. Return: 0; -ENOMEM.
 */
int kbus_fs_add_endpoint(struct kbus_endpoint *ep, struct dentry **ret_dentry);

/**
 * kbus_fs_remove() - remove a node and all below it
 * @dentry: from one of the above
 */
void kbus_fs_remove(struct dentry *dentry);

#endif
