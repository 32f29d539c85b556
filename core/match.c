// SPDX-License-Identifier: LGPL-2.1-or-later
/* Sets and searches (spec §6.13, §11). */
#include "base.h"
#include "kdbus.h"

#include "bloom.h"
#include "match-entry.h"
#include "match-index.h"
#include "match.h"
#include "names.h"

void core_match_index_init(struct core_match_index *index, size_t bloom_size)
{
	unsigned int kind;

	index->bloom_size = bloom_size;
	memset(index->serial, 0, sizeof(index->serial));
	for (kind = 0; kind < CORE_MATCH_KINDS; kind++)
		index->trees[kind] = RB_ROOT;
}

/* Sets */

void core_match_set_init(struct core_match_set *set, struct core_match_index *index)
{
	set->index = index;
	INIT_LIST_HEAD(&set->entries);
	set->n_entries = 0;
	memset(set->serial, 0, sizeof(set->serial));
}

static void entry_unfile(struct core_match_index *index, struct core_match_entry *entry)
{
	while (entry->n_slots > 0)
		core_match_index_take(index, &entry->slots[--entry->n_slots]);
}

static int entry_file(struct core_match_index *index, struct core_match_entry *entry)
{
	struct core_match_key keys[CORE_MATCH_KEYS_MAX];
	unsigned int n_keys = core_match_entry_keys(entry, keys), i;
	int r;

	for (i = 0; i < n_keys; i++) {
		entry->slots[i].entry = entry;
		r = core_match_index_file(index, &keys[i], &entry->slots[i]);
		if (r < 0) {
			entry_unfile(index, entry);
			return r;
		}
		entry->n_slots++;
	}
	return 0;
}

static void entry_remove(struct core_match_entry *entry)
{
	entry_unfile(entry->set->index, entry);
	list_del(&entry->link);
	entry->set->n_entries--;
	kfree(entry);
}

static unsigned int count_cookie(const struct core_match_set *set, u64 cookie)
{
	const struct core_match_entry *entry;
	unsigned int n = 0;

	list_for_each_entry(entry, &set->entries, link)
		if (entry->cookie == cookie)
			n++;
	return n;
}

static void remove_cookie(struct core_match_set *set, u64 cookie)
{
	struct core_match_entry *entry, *next;

	list_for_each_entry_safe(entry, next, &set->entries, link)
		if (entry->cookie == cookie)
			entry_remove(entry);
}

int core_match_add(struct core_match_set *set, u64 cookie, u64 flags,
		   const struct kdbus_item *items, size_t size)
{
	bool replace = flags & KDBUS_MATCH_REPLACE;
	struct core_match_entry *entry;
	int r;

	r = core_match_entry_new(set, cookie, items, size, &entry);
	if (r < 0)
		return r;
	if (set->n_entries - (replace ? count_cookie(set, cookie) : 0) >= CORE_MATCH_MAX) {
		kfree(entry);
		return -EMFILE;
	}
	r = entry_file(set->index, entry);
	if (r < 0) {
		kfree(entry);
		return r;
	}
	/* Nothing can fail from here on: now the old entries may go. */
	if (replace)
		remove_cookie(set, cookie);
	list_add_tail(&entry->link, &set->entries);
	set->n_entries++;
	return 0;
}

int core_match_remove(struct core_match_set *set, u64 cookie)
{
	if (count_cookie(set, cookie) == 0)
		return -EBADSLT;
	remove_cookie(set, cookie);
	return 0;
}

void core_match_clear(struct core_match_set *set)
{
	struct core_match_entry *entry, *next;

	list_for_each_entry_safe(entry, next, &set->entries, link)
		entry_remove(entry);
}

bool core_match_test(const struct core_match_set *set, const struct core_signal *signal)
{
	const struct core_match_entry *entry;

	list_for_each_entry(entry, &set->entries, link) {
		core_step();
		if (core_match_entry_passes(entry, signal))
			return true;
	}
	return false;
}

/* Searches */

struct search {
	struct core_match_index *index;
	unsigned int lane;
	const struct core_signal *signal;
	void (*visit)(struct core_match_set *set, void *data);
	void *data;
};

static void search_bucket(const struct search *search, const struct core_match_bucket *bucket)
{
	const struct core_match_slot *slot;
	unsigned int lane = search->lane;

	list_for_each_entry(slot, &bucket->slots, link) {
		struct core_match_set *set = slot->entry->set;

		core_step();
		if (set->serial[lane] == search->index->serial[lane] ||
		    !core_match_entry_passes(slot->entry, search->signal))
			continue;
		set->serial[lane] = search->index->serial[lane];
		search->visit(set, search->data);
	}
}

static void search_key(const struct search *search, struct core_match_key key)
{
	const struct core_match_bucket *bucket = core_match_index_find(search->index, &key);

	if (bucket)
		search_bucket(search, bucket);
}

/*
 * The bits of the filter and the bits that entries are filed under are two
 * sorted sequences, and each leaps to the other's next: the cost is that of the
 * shorter one. The last bit, past the end, is in every filter.
 */
static void search_bits(const struct search *search, enum core_match_kind kind, u64 generation)
{
	size_t n_words = search->index->bloom_size / sizeof(u64), n_bits = n_words * 64;
	struct core_match_key key = { .kind = kind, .a = generation };
	const struct core_match_bucket *bucket;

	for (; key.b <= n_bits; key.b++) {
		key.b = core_bloom_next_bit(search->signal->user.filter, 1, n_words, key.b);
		bucket = core_match_index_ceil(search->index, &key);
		if (!bucket || bucket->key.a != generation)
			return;
		if (bucket->key.b == key.b)
			search_bucket(search, bucket);
		else
			key.b = bucket->key.b - 1;
	}
}

static void search_bloom(const struct search *search)
{
	const u64 last = CORE_MATCH_KEYS_MAX - 1;
	u64 generation = search->signal->user.generation, from;

	if (generation < last)
		search_bits(search, CORE_MATCH_BLOOM, generation);
	for (from = 0; from <= min(generation, last); from++)
		search_bits(search, CORE_MATCH_BLOOM_TAIL, from);
}

static void search_user(const struct search *search)
{
	const struct core_signal *signal = search->signal;
	const struct core_name_record *record;

	search_key(search, (struct core_match_key){ .kind = CORE_MATCH_USER });
	search_key(search,
		   (struct core_match_key){ .kind = CORE_MATCH_SRC_ID, .a = signal->user.src_id });
	search_bloom(search);
	if (!signal->user.names || RB_EMPTY_ROOT(&search->index->trees[CORE_MATCH_NAME]))
		return;
	core_name_holder_for_each(record, signal->user.names) {
		core_step();
		if (core_name_record_owns(record))
			search_key(search, (struct core_match_key){ .kind = CORE_MATCH_NAME,
								    .name = record->name->name });
	}
}

static void search_note(const struct search *search)
{
	const struct core_signal *signal = search->signal;
	struct core_match_key key = { .kind = CORE_MATCH_NOTE, .a = signal->type };

	search_key(search, key);
	if (signal->type == KDBUS_ITEM_ID_ADD || signal->type == KDBUS_ITEM_ID_REMOVE) {
		key.kind = CORE_MATCH_NOTE_NEW;
		key.b = signal->note.id;
		search_key(search, key);
		return;
	}
	key.kind = CORE_MATCH_NOTE_OLD;
	key.b = signal->note.old_id;
	search_key(search, key);
	key.kind = CORE_MATCH_NOTE_NEW;
	key.b = signal->note.new_id;
	search_key(search, key);
	key = (struct core_match_key){ .kind = CORE_MATCH_NOTE_NAME,
				       .a = signal->type,
				       .name = signal->note.name };
	search_key(search, key);
}

void core_match_find_lane(struct core_match_index *index, unsigned int lane,
			  const struct core_signal *signal,
			  void (*visit)(struct core_match_set *set, void *data), void *data)
{
	const struct search search = {
		.index = index, .lane = lane, .signal = signal, .visit = visit, .data = data
	};

	index->serial[lane]++;
	search_key(&search, (struct core_match_key){ .kind = CORE_MATCH_ALL });
	if (signal->type == 0)
		search_user(&search);
	else
		search_note(&search);
}

void core_match_find(struct core_match_index *index, const struct core_signal *signal,
		     void (*visit)(struct core_match_set *set, void *data), void *data)
{
	core_match_find_lane(index, 0, signal, visit, data);
}
