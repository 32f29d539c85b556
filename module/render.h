/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MODULE_RENDER_H
#define MODULE_RENDER_H

#include "object.h"

/*
 * Metadata as one receiver is to see it: ids in his namespaces (spec §8.6).
 */

/**
 * struct kbus_rendered - the memory of a rendering
 * @meta:   metadata; points into the rest and into what was rendered
 * @groups: supplementary groups, allocated
 * @page:   for the path of the executable, allocated
 * @caps:   capabilities
 */
struct kbus_rendered {
	struct core_meta meta;
	u64 *groups;
	char *page;
	u32 caps[CORE_CAP_SETS * 2];
};

/**
 * kbus_render() - render process metadata
 * @proc: metadata
 * @to:   for whom
 * @mask: kinds to render; others are left out
 * @ret:  rendering, for kbus_render_release(); names, description and timestamp are the
 *        caller's to add
 *
 * What memory is lacking for is left out.
 */
void kbus_render(const struct kbus_proc *proc, const struct kbus_conn *to, u64 mask,
		 struct kbus_rendered *ret);

/**
 * kbus_render_release() - free the memory of a rendering
 * @rendered: rendering
 */
void kbus_render_release(struct kbus_rendered *rendered);

/**
 * kbus_render_proc_granted() - kinds that a receiver could read in /proc (spec §8.1, set P)
 * @to: receiver of a message of the calling thread
 *
 * Today's kernels have no hidepid option per pid namespace, only one per mount of /proc,
 * of which there may be many; the rule goes by the default, which hides nothing.
 */
u64 kbus_render_proc_granted(const struct kbus_conn *to);

#endif
