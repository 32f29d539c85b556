// SPDX-License-Identifier: LGPL-2.1-or-later
/* The database: parsing, installing and looking up records (spec §9.3, §9.4). */
#include "base.h"
#include "kdbus.h"

#include "item.h"
#include "limits.h"
#include "policy.h"
#include "syntax.h"

struct core_policy_access {
	u32 type;
	u32 id;
	int level;
};

/*
 * What is looked up: a stem, not terminated, and whether "a.b" or "a.b.*" is
 * meant by it. Lookup thus needs no copy of the name to cut it.
 */
struct key {
	const char *stem;
	size_t len;
	bool wildcard;
};

/*
 * A record lives first in a set, where @node orders it among its siblings, then
 * in a database, where @node orders it among all. It is in its owner's list
 * only there.
 */
struct core_policy_record {
	struct rb_node node;
	struct list_head link;
	struct core_policy_owner *owner;
	struct key key;
	size_t n_accesses;
	struct core_policy_access *accesses;
	char stem[];
};

struct core_policy_set {
	struct core_policy records;
	struct list_head list;
};

static int key_compare(const struct key *a, const struct key *b)
{
	int r = memcmp(a->stem, b->stem, min(a->len, b->len));

	if (r)
		return r;
	if (a->len != b->len)
		return a->len < b->len ? -1 : 1;
	return (int)a->wildcard - (int)b->wildcard;
}

/* Where the key is, or where it would be linked. */
static struct rb_node **slot_of(struct core_policy *policy, const struct key *key,
				struct rb_node **ret_parent)
{
	struct rb_node **link = &policy->records.rb_node, *parent = NULL;

	while (*link) {
		int r = key_compare(key, &rb_entry(*link, struct core_policy_record, node)->key);

		core_step();
		if (r == 0)
			break;
		parent = *link;
		link = r < 0 ? &parent->rb_left : &parent->rb_right;
	}
	*ret_parent = parent;
	return link;
}

static struct core_policy_record *record_find(const struct core_policy *policy,
					      const struct key *key)
{
	struct rb_node *parent;
	struct rb_node *node = *slot_of((struct core_policy *)policy, key, &parent);

	return rb_entry_safe(node, struct core_policy_record, node);
}

static bool record_link(struct core_policy *policy, struct core_policy_record *record)
{
	struct rb_node *parent;
	struct rb_node **link = slot_of(policy, &record->key, &parent);

	if (*link)
		return false;
	rb_link_node(&record->node, parent, link);
	rb_insert_color(&record->node, &policy->records);
	return true;
}

/* Parsing */

static struct key key_of(const char *name)
{
	size_t len = strlen(name);
	bool wildcard = len > 2 && name[len - 1] == '*';

	return (struct key){ .stem = name, .len = wildcard ? len - 2 : len, .wildcard = wildcard };
}

static struct core_policy_record *record_new(const char *name, size_t n_accesses)
{
	struct key key = key_of(name);
	/* The accesses follow the stem, at the next multiple of 8. */
	size_t head = ALIGN(offsetof(struct core_policy_record, stem) + key.len, (size_t)8);
	struct core_policy_record *record;

	record = kmalloc(head + n_accesses * sizeof(*record->accesses), CORE_GFP);
	if (!record)
		return NULL;
	memcpy(record->stem, key.stem, key.len);
	record->owner = NULL;
	record->key =
		(struct key){ .stem = record->stem, .len = key.len, .wildcard = key.wildcard };
	record->n_accesses = 0;
	record->accesses = (void *)((char *)record + head);
	return record;
}

static int map_plain(void *data, u64 type, u64 id, u32 *ret_id)
{
	(void)data;
	(void)type;
	/* The highest 32-bit id is no id: system calls take it for "none". */
	if (id >= U32_MAX)
		return -EINVAL;
	*ret_id = (u32)id;
	return 0;
}

static int access_parse(const struct kdbus_policy_access *item, core_policy_map_id map_id,
			void *data, struct core_policy_access *ret_access)
{
	struct core_policy_access access = { .level = KDBUS_POLICY_SEE };
	int r;

	switch (item->type) {
	case KDBUS_POLICY_ACCESS_WORLD:
		break;
	case KDBUS_POLICY_ACCESS_USER:
	case KDBUS_POLICY_ACCESS_GROUP:
		r = map_id(data, item->type, item->id, &access.id);
		if (r < 0)
			return r;
		break;
	default:
		return -EINVAL;
	}
	if (item->access > KDBUS_POLICY_OWN)
		return -EINVAL;
	access.type = (u32)item->type;
	access.level = (int)item->access;
	*ret_access = access;
	return 0;
}

/* Access entries that follow @name, up to the next name. */
static size_t count_accesses(const struct kdbus_item *name, const char *end)
{
	const struct kdbus_item *item;
	size_t n = 0;

	for (item = core_item_next(name); (const char *)item < end; item = core_item_next(item)) {
		if (item->type == KDBUS_ITEM_NAME)
			break;
		if (item->type == KDBUS_ITEM_POLICY_ACCESS)
			n++;
	}
	return n;
}

static int set_add_name(struct core_policy_set *set, const struct kdbus_item *item, const char *end,
			unsigned int flags)
{
	const char *name = core_item_str(item);
	struct core_policy_record *record;

	if ((flags & CORE_POLICY_ONE_NAME) && !list_empty(&set->list))
		return -E2BIG;
	if (!core_name_valid(name) &&
	    ((flags & CORE_POLICY_NO_WILDCARD) || !core_name_is_wildcard(name)))
		return -EINVAL;
	record = record_new(name, count_accesses(item, end));
	if (!record)
		return -ENOMEM;
	if (!record_link(&set->records, record)) {
		kfree(record);
		return -EEXIST;
	}
	list_add_tail(&record->link, &set->list);
	return 0;
}

static int set_add_access(struct core_policy_set *set, const struct kdbus_item *item,
			  core_policy_map_id map_id, void *data)
{
	struct core_policy_record *record;
	int r;

	if (list_empty(&set->list))
		return -EINVAL;
	record = list_last_entry(&set->list, struct core_policy_record, link);
	r = access_parse(&item->policy_access, map_id, data, &record->accesses[record->n_accesses]);
	if (r < 0)
		return r;
	record->n_accesses++;
	return 0;
}

int core_policy_parse(const struct kdbus_item *items, size_t size, unsigned int flags,
		      core_policy_map_id map_id, void *data, struct core_policy_set **ret_set)
{
	const char *end = (const char *)items + size;
	const struct kdbus_item *item;
	struct core_policy_set *set;
	int r = 0;

	set = kmalloc(sizeof(*set), CORE_GFP);
	if (!set)
		return -ENOMEM;
	core_policy_init(&set->records);
	INIT_LIST_HEAD(&set->list);
	core_item_for_each(item, items, size) {
		if (item->type == KDBUS_ITEM_NAME)
			r = set_add_name(set, item, end, flags);
		else if (item->type == KDBUS_ITEM_POLICY_ACCESS)
			r = set_add_access(set, item, map_id ? map_id : map_plain, data);
		if (r < 0) {
			core_policy_set_free(set);
			return r;
		}
	}
	*ret_set = set;
	return 0;
}

void core_policy_set_free(struct core_policy_set *set)
{
	struct core_policy_record *record, *next;

	if (!set)
		return;
	list_for_each_entry_safe(record, next, &set->list, link)
		kfree(record);
	kfree(set);
}

/* Installing */

void core_policy_clear(struct core_policy *policy, struct core_policy_owner *owner)
{
	struct core_policy_record *record, *next;

	list_for_each_entry_safe(record, next, &owner->records, link) {
		rb_erase(&record->node, &policy->records);
		kfree(record);
	}
	INIT_LIST_HEAD(&owner->records);
}

int core_policy_replace(struct core_policy *policy, struct core_policy_owner *owner,
			struct core_policy_set *set)
{
	struct core_policy_record *record, *other;

	list_for_each_entry(record, &set->list, link) {
		other = record_find(policy, &record->key);
		if (other && other->owner != owner)
			return -EEXIST;
	}
	core_policy_clear(policy, owner);
	list_for_each_entry(record, &set->list, link) {
		record->owner = owner;
		BUG_ON(!record_link(policy, record));
	}
	list_splice_tail_init(&set->list, &owner->records);
	core_policy_set_free(set);
	return 0;
}

/* Looking up */

static bool in_groups(const struct core_cred *cred, u32 gid)
{
	size_t from = 0, to = cred->n_groups;

	if (cred->egid == gid)
		return true;
	while (from < to) {
		size_t middle = from + (to - from) / 2;

		if (cred->groups[middle] == gid)
			return true;
		if (cred->groups[middle] < gid)
			from = middle + 1;
		else
			to = middle;
	}
	return false;
}

static bool access_applies(const struct core_policy_access *access, const struct core_cred *cred)
{
	switch (access->type) {
	case KDBUS_POLICY_ACCESS_USER:
		return cred->euid == access->id;
	case KDBUS_POLICY_ACCESS_GROUP:
		return in_groups(cred, access->id);
	default:
		return true;
	}
}

static int record_level(const struct core_policy_record *record, const struct core_cred *cred)
{
	int level = CORE_POLICY_NONE;
	size_t i;

	for (i = 0; i < record->n_accesses; i++) {
		const struct core_policy_access *access = &record->accesses[i];

		if (access->level > level && access_applies(access, cred))
			level = access->level;
	}
	return level;
}

int core_policy_level(const struct core_policy *policy, const struct core_cred *cred,
		      const char *name)
{
	struct key key = { .stem = name, .len = strlen(name), .wildcard = false };
	struct core_policy_record *record;
	const char *dot;

	record = record_find(policy, &key);
	if (record)
		return record_level(record, cred);
	dot = strrchr(name, '.');
	if (!dot)
		return CORE_POLICY_NONE;
	key.len = dot - name;
	key.wildcard = true;
	record = record_find(policy, &key);
	return record ? record_level(record, cred) : CORE_POLICY_NONE;
}
