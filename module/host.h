/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MODULE_HOST_H
#define MODULE_HOST_H

#include "deliver.h"
#include "files.h"
#include "layout.h"
#include "object.h"

/*
 * What core/ asks of the kernel engine: entries, their content, waking.
 */

/**
 * struct kbus_entry - a message in an inbox
 * @core:   entry
 * @layout: of its image
 * @files:  its descriptors, with a reference, or NULL
 */
struct kbus_entry {
	struct core_entry core;
	struct core_layout layout;
	struct kbus_files *files;
};

extern const struct core_host_ops kbus_host_ops;

#endif
