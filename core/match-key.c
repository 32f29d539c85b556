// SPDX-License-Identifier: LGPL-2.1-or-later
/* Choosing what an entry is filed under (match.h, invariants 4 and 5). */
#include "base.h"
#include "kdbus.h"

#include "bloom.h"
#include "item.h"
#include "match-entry.h"

/*
 * How many bits of a mask compete for being the key. More would spread entries
 * no better, and a mask of all ones would make MATCH_ADD expensive.
 */
#define BIT_CANDIDATES 64

/*
 * A given sender is a rare property of a signal, a given bit one that every few
 * filters have: a bucket of entries of one sender may be that much fuller.
 */
#define SENDER_ADVANTAGE 16

struct choice {
	unsigned int n_keys;
	size_t crowd; /* entries in the fullest of the buckets */
	struct core_match_key keys[CORE_MATCH_KEYS_MAX];
};

static struct choice choice_of(const struct core_match_index *index, struct core_match_key key)
{
	struct choice choice = { .n_keys = 1, .crowd = core_match_index_crowd(index, &key) };

	choice.keys[0] = key;
	return choice;
}

/* The least crowded bit common to some fields, or the one past the last. */
static size_t choose_bit(const struct core_match_index *index, struct core_match_key *key,
			 const u64 *fields, size_t n_fields)
{
	size_t n_words = index->bloom_size / sizeof(u64), n_bits = n_words * 64;
	size_t bit = core_bloom_next_bit(fields, n_fields, n_words, 0);
	size_t best = SIZE_MAX, best_bit = n_bits;
	unsigned int i;

	for (i = 0; i < BIT_CANDIDATES && bit < n_bits && best > 0; i++) {
		size_t crowd;

		key->b = bit;
		crowd = core_match_index_crowd(index, key);
		if (crowd < best) {
			best = crowd;
			best_bit = bit;
		}
		bit = core_bloom_next_bit(fields, n_fields, n_words, bit + 1);
	}
	key->b = best_bit;
	return best_bit < n_bits ? best : core_match_index_crowd(index, key);
}

/*
 * One key per generation; the last is for all generations from its own on, and
 * if the mask has more fields than an entry has keys, it is a bit of all of the
 * remaining fields.
 */
static struct choice choose_bits(const struct core_match_index *index,
				 const struct kdbus_item *item)
{
	size_t n_fields = core_item_payload_size(item) / index->bloom_size;
	size_t n_words = index->bloom_size / sizeof(u64);
	const u64 *mask = core_item_payload(item);
	struct choice choice = { 0 };
	unsigned int i;

	choice.n_keys = min_t(size_t, n_fields, CORE_MATCH_KEYS_MAX);
	for (i = 0; i < choice.n_keys; i++) {
		bool tail = i + 1 == choice.n_keys;
		struct core_match_key *key = &choice.keys[i];
		size_t crowd;

		key->kind = tail ? CORE_MATCH_BLOOM_TAIL : CORE_MATCH_BLOOM;
		key->a = i;
		crowd = choose_bit(index, key, mask + i * n_words, tail ? n_fields - i : 1);
		choice.crowd = max(choice.crowd, crowd);
	}
	return choice;
}

static bool mask_is_empty(const struct core_match_index *index, const struct kdbus_item *item)
{
	size_t n_words = core_item_payload_size(item) / sizeof(u64);

	return core_bloom_next_bit(core_item_payload(item), 1, n_words, 0) == n_words * 64;
}

static void choose_less_crowded(struct choice *best, struct choice other)
{
	if (best->n_keys == 0 || other.crowd < best->crowd)
		*best = other;
}

/* Neither the one nor the other if no rule tells user signals apart. */
static void survey_user_rules(const struct core_match_entry *entry, struct choice *sender,
			      struct choice *bits)
{
	const struct core_match_index *index = entry->set->index;
	struct core_match_key key = { 0 };
	const struct kdbus_item *item;

	core_item_for_each(item, entry->items, entry->size) {
		if (item->type == KDBUS_ITEM_ID && core_item_u64(item) != KDBUS_MATCH_ID_ANY) {
			key = (struct core_match_key){ .kind = CORE_MATCH_SRC_ID,
						       .a = core_item_u64(item) };
			choose_less_crowded(sender, choice_of(index, key));
		} else if (item->type == KDBUS_ITEM_NAME) {
			key = (struct core_match_key){ .kind = CORE_MATCH_NAME,
						       .name = core_item_str(item) };
			choose_less_crowded(sender, choice_of(index, key));
		} else if (item->type == KDBUS_ITEM_BLOOM_MASK && !mask_is_empty(index, item)) {
			choose_less_crowded(bits, choose_bits(index, item));
		}
	}
}

/* A rule for one destination is about unicast signals, which are not searched for. */
static bool wants_broadcasts(const struct core_match_entry *entry)
{
	const struct kdbus_item *item;

	core_item_for_each(item, entry->items, entry->size) {
		if (item->type == KDBUS_ITEM_DST_ID && core_item_u64(item) != KDBUS_MATCH_ID_ANY)
			return false;
	}
	return true;
}

static unsigned int user_keys(const struct core_match_entry *entry, struct core_match_key *keys)
{
	struct choice sender = { 0 }, bits = { 0 }, *best = &sender;

	if (!wants_broadcasts(entry))
		return 0;
	survey_user_rules(entry, &sender, &bits);
	if (sender.n_keys == 0 ||
	    (bits.n_keys > 0 && sender.crowd > SENDER_ADVANTAGE * (bits.crowd + 1)))
		best = &bits;
	if (best->n_keys == 0)
		*best = choice_of(entry->set->index,
				  (struct core_match_key){ .kind = CORE_MATCH_USER });
	memcpy(keys, best->keys, best->n_keys * sizeof(*keys));
	return best->n_keys;
}

static struct core_match_key note_key(const struct kdbus_item *item)
{
	const struct kdbus_notify_name_change *change = core_item_payload(item);
	struct core_match_key key = { .kind = CORE_MATCH_NOTE, .a = item->type };
	u64 old_id = KDBUS_MATCH_ID_ANY, new_id;

	if (item->type == KDBUS_ITEM_ID_ADD || item->type == KDBUS_ITEM_ID_REMOVE) {
		new_id = item->id_change.id;
	} else if (core_item_payload_size(item) > sizeof(*change)) {
		key.kind = CORE_MATCH_NOTE_NAME;
		key.name = change->name;
		return key;
	} else {
		old_id = change->old_id.id;
		new_id = change->new_id.id;
	}
	/* 0 is "nobody", which tells less than the id of somebody. */
	if (new_id != KDBUS_MATCH_ID_ANY && (new_id != 0 || old_id == KDBUS_MATCH_ID_ANY)) {
		key.kind = CORE_MATCH_NOTE_NEW;
		key.b = new_id;
	} else if (old_id != KDBUS_MATCH_ID_ANY) {
		key.kind = CORE_MATCH_NOTE_OLD;
		key.b = old_id;
	}
	return key;
}

/* All rules are about one type here: the most telling one is the key. */
static unsigned int note_keys(const struct core_match_entry *entry, struct core_match_key *keys)
{
	const struct kdbus_item *item;

	keys[0] = (struct core_match_key){ .kind = CORE_MATCH_NOTE, .a = entry->type };
	core_item_for_each(item, entry->items, entry->size) {
		struct core_match_key key;

		if (item->type == KDBUS_ITEM_NEGOTIATE)
			continue;
		key = note_key(item);
		if (key.kind > keys[0].kind)
			keys[0] = key;
	}
	return 1;
}

unsigned int core_match_entry_keys(const struct core_match_entry *entry,
				   struct core_match_key keys[CORE_MATCH_KEYS_MAX])
{
	switch (entry->group) {
	case CORE_MATCH_GROUP_ALL:
		keys[0] = (struct core_match_key){ .kind = CORE_MATCH_ALL };
		return 1;
	case CORE_MATCH_GROUP_USER:
		return user_keys(entry, keys);
	case CORE_MATCH_GROUP_KERNEL:
		return note_keys(entry, keys);
	default:
		return 0;
	}
}
