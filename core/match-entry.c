// SPDX-License-Identifier: LGPL-2.1-or-later
/* Entries: checking rules, testing them (spec §6.13, §11). */
#include "base.h"
#include "kdbus.h"

#include "bloom.h"
#include "item.h"
#include "match-entry.h"
#include "names.h"
#include "syntax.h"

/* A NAME_... rule of exactly this payload leaves the name open. */
#define NAME_CHANGE_BARE sizeof(struct kdbus_notify_name_change)

/* Making an entry */

static int rule_check(const struct core_match_index *index, const struct kdbus_item *item)
{
	size_t payload = core_item_payload_size(item);

	switch (item->type) {
	case KDBUS_ITEM_BLOOM_MASK:
		return payload == 0 || payload % index->bloom_size ? -EDOM : 0;
	case KDBUS_ITEM_NAME:
		return core_name_valid(core_item_str(item)) ? 0 : -EINVAL;
	default:
		return 0;
	}
}

static enum core_match_group rule_group(const struct kdbus_item *item)
{
	switch (item->type) {
	case KDBUS_ITEM_NEGOTIATE:
		return CORE_MATCH_GROUP_ALL;
	case KDBUS_ITEM_BLOOM_MASK:
	case KDBUS_ITEM_NAME:
	case KDBUS_ITEM_ID:
	case KDBUS_ITEM_DST_ID:
		return CORE_MATCH_GROUP_USER;
	case KDBUS_ITEM_ID_ADD:
	case KDBUS_ITEM_ID_REMOVE:
		return CORE_MATCH_GROUP_KERNEL;
	case KDBUS_ITEM_NAME_ADD:
	case KDBUS_ITEM_NAME_REMOVE:
	case KDBUS_ITEM_NAME_CHANGE:
		/* One byte more is the empty string, and no name is empty. */
		return core_item_payload_size(item) == NAME_CHANGE_BARE + 1 ?
			       CORE_MATCH_GROUP_NONE :
			       CORE_MATCH_GROUP_KERNEL;
	default:
		return CORE_MATCH_GROUP_NONE;
	}
}

/* Rules of two groups, or of two types of notification, exclude each other. */
static void entry_classify(struct core_match_entry *entry)
{
	const struct kdbus_item *item;

	entry->group = CORE_MATCH_GROUP_ALL;
	entry->type = 0;
	core_item_for_each(item, entry->items, entry->size) {
		enum core_match_group group = rule_group(item);

		if (group == CORE_MATCH_GROUP_ALL)
			continue;
		if (entry->group == CORE_MATCH_GROUP_ALL) {
			entry->group = group;
			if (group == CORE_MATCH_GROUP_KERNEL)
				entry->type = item->type;
		}
		if (group != entry->group ||
		    (group == CORE_MATCH_GROUP_KERNEL && item->type != entry->type))
			entry->group = CORE_MATCH_GROUP_NONE;
		if (entry->group == CORE_MATCH_GROUP_NONE)
			return;
	}
}

int core_match_entry_new(struct core_match_set *set, u64 cookie, const struct kdbus_item *items,
			 size_t size, struct core_match_entry **ret_entry)
{
	struct core_match_entry *entry;
	const struct kdbus_item *item;
	int r;

	core_item_for_each(item, items, size) {
		r = rule_check(set->index, item);
		if (r < 0)
			return r;
	}
	entry = kmalloc(offsetof(struct core_match_entry, items) + size, CORE_GFP);
	if (!entry)
		return -ENOMEM;
	entry->set = set;
	entry->cookie = cookie;
	entry->n_slots = 0;
	entry->size = size;
	memcpy(entry->items, items, size);
	entry_classify(entry);
	*ret_entry = entry;
	return 0;
}

/* Testing */

static bool is_or_any(u64 rule, u64 id)
{
	return rule == KDBUS_MATCH_ID_ANY || rule == id;
}

static bool mask_holds(const struct core_match_index *index, const struct kdbus_item *item,
		       const struct core_signal *signal)
{
	size_t n_words = index->bloom_size / sizeof(u64);
	size_t n_fields = core_item_payload_size(item) / index->bloom_size;
	const u64 *field = core_bloom_field(core_item_payload(item), n_fields, n_words,
					    signal->user.generation);

	return core_bloom_passes(signal->user.filter, field, n_words);
}

static bool sender_owns(const struct core_name_holder *names, const char *name)
{
	const struct core_name_record *record = names ? core_name_holder_find(names, name) : NULL;

	return record && core_name_record_owns(record);
}

static bool name_change_holds(const struct kdbus_item *item, const struct core_signal *signal)
{
	const struct kdbus_notify_name_change *change = core_item_payload(item);

	return is_or_any(change->old_id.id, signal->note.old_id) &&
	       is_or_any(change->new_id.id, signal->note.new_id) &&
	       (core_item_payload_size(item) == NAME_CHANGE_BARE ||
		strcmp(change->name, signal->note.name) == 0);
}

static bool rule_holds(const struct core_match_index *index, const struct kdbus_item *item,
		       const struct core_signal *signal)
{
	switch (item->type) {
	case KDBUS_ITEM_NEGOTIATE:
		return true;
	case KDBUS_ITEM_BLOOM_MASK:
		return mask_holds(index, item, signal);
	case KDBUS_ITEM_NAME:
		return sender_owns(signal->user.names, core_item_str(item));
	case KDBUS_ITEM_ID:
		return is_or_any(core_item_u64(item), signal->user.src_id);
	case KDBUS_ITEM_DST_ID:
		return is_or_any(core_item_u64(item), signal->user.dst_id);
	case KDBUS_ITEM_ID_ADD:
	case KDBUS_ITEM_ID_REMOVE:
		return is_or_any(item->id_change.id, signal->note.id);
	case KDBUS_ITEM_NAME_ADD:
	case KDBUS_ITEM_NAME_REMOVE:
	case KDBUS_ITEM_NAME_CHANGE:
		return name_change_holds(item, signal);
	default:
		return false;
	}
}

/* From here on the rules can read the half of the signal they are about. */
static bool is_about(const struct core_match_entry *entry, const struct core_signal *signal)
{
	switch (entry->group) {
	case CORE_MATCH_GROUP_ALL:
		return true;
	case CORE_MATCH_GROUP_USER:
		return signal->type == 0;
	case CORE_MATCH_GROUP_KERNEL:
		return signal->type == entry->type;
	default:
		return false;
	}
}

bool core_match_entry_passes(const struct core_match_entry *entry, const struct core_signal *signal)
{
	const struct kdbus_item *item;

	if (!is_about(entry, signal))
		return false;
	core_item_for_each(item, entry->items, entry->size) {
		if (!rule_holds(entry->set->index, item, signal))
			return false;
	}
	return true;
}
