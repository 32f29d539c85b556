// SPDX-License-Identifier: LGPL-2.1-or-later
#include <errno.h>
#include <string.h>

#include "atomic.h"
#include "memfd.h"
#include "page.h"

int lane_page_make(struct lane_page_owner *owner, uint32_t salt, int *ret_fd)
{
	void *map;
	int r;

	r = lane_memfd_make("kdbus-page", sizeof(struct lane_page), ret_fd, &map);
	if (r < 0)
		return r;
	memset(owner, 0, sizeof(*owner));
	owner->shared = map;
	owner->salt = salt;
	owner->shared->salt = salt;
	owner->shared->version = LANE_PAGE_VERSION;
	owner->shared->magic = LANE_PAGE_MAGIC;
	return 0;
}

void lane_page_deinit(struct lane_page_owner *owner)
{
	if (!owner)
		return;
	lane_memfd_unmap(owner->shared, lane_memfd_round(sizeof(struct lane_page)));
	owner->shared = NULL;
}

void lane_page_commit(struct lane_page_owner *owner, uint64_t round)
{
	owner->committed = round;
	word64_store(&owner->shared->committed, round); /* B7 */
}

void lane_page_policy_changed(struct lane_page_owner *owner)
{
	word64_store(&owner->shared->policy, ++owner->policy);
}

void lane_page_monitors_changed(struct lane_page_owner *owner, bool attached)
{
	owner->monitors += (owner->monitors & 1) == attached ? 2 : 1;
	word64_store(&owner->shared->monitors, owner->monitors);
}

void lane_page_name_changed(struct lane_page_owner *owner, const char *name)
{
	uint32_t i = lane_page_hash(owner->salt, name) % LANE_PAGE_NAMES;

	word64_store(&owner->shared->names[i], ++owner->names[i]);
}

void lane_page_set_waiting(struct lane_page_owner *owner, uint64_t id, bool waiting)
{
	uint32_t *n = &owner->waiting[id % LANE_PAGE_WAITING];

	*n += waiting ? 1 : -1;
	word_store(&owner->shared->waiting[id % LANE_PAGE_WAITING], *n);
}

bool lane_page_waiting(const struct lane_page *page, uint64_t id)
{
	return word_load(&page->waiting[id % LANE_PAGE_WAITING]);
}

int lane_page_map(int fd, const struct lane_page **ret_page)
{
	const struct lane_page *page;
	const void *map;
	size_t size;
	int r;

	r = lane_memfd_map_shared(fd, sizeof(*page), sizeof(*page), &map, &size);
	if (r < 0)
		return r;
	page = map;
	if (page->magic != LANE_PAGE_MAGIC || page->version != LANE_PAGE_VERSION) {
		lane_memfd_unmap(map, size);
		return -EPROTO;
	}
	*ret_page = page;
	return 0;
}

void lane_page_unmap(const struct lane_page *page)
{
	lane_memfd_unmap(page, lane_memfd_round(sizeof(*page)));
}

uint64_t lane_page_committed(const struct lane_page *page)
{
	return word64_load(&page->committed); /* B7 */
}

static uint64_t name_gen(const struct lane_page *page, const char *name, uint32_t slot)
{
	return name ? word64_load(&page->names[slot]) : 0;
}

void lane_page_gens(const struct lane_page *page, const char *name, struct lane_page_gens *ret)
{
	ret->slot = name ? lane_page_hash(page->salt, name) % LANE_PAGE_NAMES : 0;
	ret->policy = word64_load(&page->policy);
	ret->monitors = word64_load(&page->monitors);
	ret->name = name_gen(page, name, ret->slot);
}

bool lane_page_same(const struct lane_page *page, const char *name,
		    const struct lane_page_gens *gens)
{
	if (LANE_BROKEN(LANE_NAMES_FOR_EVER))
		return true;
	return word64_load(&page->policy) == gens->policy &&
	       word64_load(&page->monitors) == gens->monitors &&
	       name_gen(page, name, gens->slot) == gens->name;
}

bool lane_page_monitored(const struct lane_page *page)
{
	return word64_load(&page->monitors) & 1;
}

/* FNV-1a, from a salt; a collision costs its victims a question, nothing else. */
uint32_t lane_page_hash(uint32_t salt, const char *name)
{
	uint32_t hash = 2166136261u ^ salt;

	while (*name)
		hash = (hash ^ (unsigned char)*name++) * 16777619u;
	return hash ^ hash >> 16;
}
