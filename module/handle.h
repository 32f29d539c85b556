/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MODULE_HANDLE_H
#define MODULE_HANDLE_H

#include <linux/fs.h>

/*
 * Open files of kdbusfs: what they have become, and which commands they take (spec §1.4,
 * §3.6).
 *
 *  1. A file becomes an owner or a connection once and for all; until then it is nothing.
 *  2. Commands that make it one exclude each other; commands of a connection do not.
 */

extern const struct file_operations kbus_control_fops;
extern const struct file_operations kbus_endpoint_fops;

/**
 * kbus_handle_is() - whether a file is one of kdbusfs
 * @file: any file
 */
bool kbus_handle_is(const struct file *file);

#endif
