// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base.h"
#include "kdbus.h"
#include "limits.h"
#include "names.h"
#include "syntax.h"

#define STORED_FLAGS (KDBUS_NAME_ALLOW_REPLACEMENT | KDBUS_NAME_QUEUE)
#define REQUEST_FLAGS (KDBUS_NAME_REPLACE_EXISTING | STORED_FLAGS)

void core_names_init(struct core_names *names)
{
	*names = (struct core_names){ .tree = RB_ROOT };
}

void core_names_deinit(struct core_names *names)
{
	if (!names)
		return;
	BUG_ON(names->count || !RB_EMPTY_ROOT(&names->tree));
}

void core_name_holder_init(struct core_name_holder *holder, u64 id)
{
	*holder = (struct core_name_holder){ .id = id,
					     .tree = RB_ROOT,
					     .max = CORE_CONN_MAX_NAMES };
	INIT_LIST_HEAD(&holder->records);
}

void core_name_holder_deinit(struct core_name_holder *holder)
{
	if (!holder)
		return;
	BUG_ON(holder->count || !list_empty(&holder->records));
}

struct core_name *core_names_find(const struct core_names *names, const char *name)
{
	struct rb_node *node = names->tree.rb_node;

	while (node) {
		struct core_name *entry = rb_entry(node, struct core_name, node);
		int order = strcmp(name, entry->name);

		core_step();
		if (!order)
			return entry;
		node = order < 0 ? node->rb_left : node->rb_right;
	}
	return NULL;
}

struct core_name_record *core_name_holder_find(const struct core_name_holder *holder,
					       const char *name)
{
	struct rb_node *node = holder->tree.rb_node;

	while (node) {
		struct core_name_record *record =
			rb_entry(node, struct core_name_record, holder_node);
		int order = strcmp(name, record->name->name);

		core_step();
		if (!order)
			return record;
		node = order < 0 ? node->rb_left : node->rb_right;
	}
	return NULL;
}

/* NULL only while the name has no owner, which no caller from outside gets to see. */
static struct core_name_record *find_owner(const struct core_name *name)
{
	if (list_empty(&name->queue))
		return name->activator;
	return list_first_entry(&name->queue, struct core_name_record, queue_entry);
}

struct core_name_record *core_name_owner(const struct core_name *name)
{
	struct core_name_record *owner = find_owner(name);

	BUG_ON(!owner);
	return owner;
}

bool core_name_record_owns(const struct core_name_record *record)
{
	return record->flags & KDBUS_NAME_PRIMARY;
}

static struct core_name *name_new(const char *name)
{
	size_t size = strlen(name) + 1;
	struct core_name *entry = kmalloc(sizeof(*entry) + size, CORE_GFP);

	if (!entry)
		return NULL;
	*entry = (struct core_name){ .id = 0 };
	INIT_LIST_HEAD(&entry->queue);
	memcpy(entry->name, name, size);
	return entry;
}

static void name_link(struct core_names *names, struct core_name *entry)
{
	struct rb_node **link = &names->tree.rb_node, *parent = NULL;

	while (*link) {
		parent = *link;
		core_step();
		if (strcmp(entry->name, rb_entry(parent, struct core_name, node)->name) < 0)
			link = &parent->rb_left;
		else
			link = &parent->rb_right;
	}
	rb_link_node(&entry->node, parent, link);
	rb_insert_color(&entry->node, &names->tree);
	entry->id = ++names->last_id;
	names->count++;
}

static void name_unlink(struct core_names *names, struct core_name *entry)
{
	rb_erase(&entry->node, &names->tree);
	names->count--;
}

static struct core_name_record *record_new(struct core_name_holder *holder)
{
	struct core_name_record *record = kmalloc(sizeof(*record), CORE_GFP);

	if (!record)
		return NULL;
	*record = (struct core_name_record){ .holder = holder };
	INIT_LIST_HEAD(&record->queue_entry);
	INIT_LIST_HEAD(&record->holder_entry);
	return record;
}

/* Make @record its holder's claim to @name; its place at the name is up to the caller. */
static void record_link(struct core_name_record *record, struct core_name *name)
{
	struct core_name_holder *holder = record->holder;
	struct rb_node **link = &holder->tree.rb_node, *parent = NULL;
	struct core_name_record *other;

	record->name = name;
	while (*link) {
		parent = *link;
		other = rb_entry(parent, struct core_name_record, holder_node);
		core_step();
		if (strcmp(name->name, other->name->name) < 0)
			link = &parent->rb_left;
		else
			link = &parent->rb_right;
	}
	rb_link_node(&record->holder_node, parent, link);
	rb_insert_color(&record->holder_node, &holder->tree);
	list_add_tail(&record->holder_entry, &holder->records);
	holder->count++;
}

static void record_free(struct core_name_record *record)
{
	struct core_name_holder *holder = record->holder;

	if (record->name->activator == record)
		record->name->activator = NULL;
	else
		list_del_init(&record->queue_entry);
	rb_erase(&record->holder_node, &holder->tree);
	list_del_init(&record->holder_entry);
	holder->count--;
	kfree(record);
}

/* A holder's claim to a name nobody else has a claim to needs the name as well. */
static int record_and_name_new(struct core_name_holder *holder, const char *name,
			       struct core_name_record **ret_record, struct core_name **ret_name)
{
	struct core_name_record *record = record_new(holder);
	struct core_name *entry;

	if (!record)
		return -ENOMEM;
	entry = name_new(name);
	if (!entry) {
		kfree(record);
		return -ENOMEM;
	}
	*ret_record = record;
	*ret_name = entry;
	return 0;
}

static void set_stored_flags(struct core_name_record *record, u64 flags)
{
	record->flags = (record->flags & ~STORED_FLAGS) | (flags & STORED_FLAGS);
}

static void set_primary(struct core_name_record *record)
{
	record->flags = (record->flags & ~KDBUS_NAME_IN_QUEUE) | KDBUS_NAME_PRIMARY;
}

static void set_waiting(struct core_name_record *record)
{
	record->flags = (record->flags & ~KDBUS_NAME_PRIMARY) | KDBUS_NAME_IN_QUEUE;
}

static struct core_name_change no_change(void)
{
	return (struct core_name_change){ .type = 0 };
}

/* Called while @record still owns the name and is flagged so. */
static void change_from(struct core_name_change *change, const struct core_name_record *record)
{
	change->type = KDBUS_ITEM_NAME_REMOVE;
	change->old_holder = record->holder;
	change->old_flags = record->flags;
	change->name = record->name->name;
	change->name_id = record->name->id;
}

/* Whether ownership goes from an activator to another connection or back (§10.6). */
static bool is_hand_over(const struct core_name_change *change)
{
	return change->type == KDBUS_ITEM_NAME_CHANGE &&
	       ((change->old_flags ^ change->new_flags) & KDBUS_NAME_ACTIVATOR);
}

/* Called as soon as @record owns the name and is flagged so. */
static void change_to(struct core_name_change *change, const struct core_name_record *record)
{
	change->type = change->old_holder ? KDBUS_ITEM_NAME_CHANGE : KDBUS_ITEM_NAME_ADD;
	change->new_holder = record->holder;
	change->new_flags = record->flags;
	change->name = record->name->name;
	change->name_id = record->name->id;
	if (is_hand_over(change)) {
		change->move_from = change->old_holder;
		change->move_to = change->new_holder;
	}
}

/* Rows 2 and 4: @record goes to the head, in front of @old, which may have to go. */
static void replace_owner(struct core_name_record *record, struct core_name_record *old,
			  struct core_name_change *change)
{
	change_from(change, old);
	list_move(&record->queue_entry, &record->name->queue);
	set_primary(record);
	change_to(change, record);
	if (old->flags & (KDBUS_NAME_ACTIVATOR | KDBUS_NAME_QUEUE))
		set_waiting(old);
	else
		record_free(old);
}

static bool may_replace(const struct core_name_record *old, u64 flags)
{
	if (old->flags & KDBUS_NAME_ACTIVATOR)
		return true;
	return (old->flags & KDBUS_NAME_ALLOW_REPLACEMENT) && (flags & KDBUS_NAME_REPLACE_EXISTING);
}

/*
 * Rows 3, 4, 6 and 7: the holder owns the name or waits for it already.
 * Returns the state to report.
 */
static u64 acquire_again(struct core_name_record *record, u64 flags,
			 struct core_name_change *change)
{
	struct core_name_record *owner = core_name_owner(record->name);

	set_stored_flags(record, flags);
	if (record == owner)
		return record->flags;
	if (may_replace(owner, flags)) {
		replace_owner(record, owner, change);
		return record->flags | KDBUS_NAME_ACQUIRED;
	}
	if (flags & KDBUS_NAME_QUEUE)
		return record->flags;
	record_free(record);
	return flags & STORED_FLAGS;
}

/* Rows 1 and first attachment of an activator: nobody had a claim to the name. */
static int acquire_unclaimed(struct core_names *names, struct core_name_holder *holder,
			     const char *name, u64 flags, struct core_name_change *change)
{
	struct core_name_record *record;
	struct core_name *entry;
	int r;

	r = record_and_name_new(holder, name, &record, &entry);
	if (r < 0)
		return r;
	name_link(names, entry);
	record_link(record, entry);
	record->flags = flags;
	set_primary(record);
	if (flags & KDBUS_NAME_ACTIVATOR)
		entry->activator = record;
	else
		list_add(&record->queue_entry, &entry->queue);
	change_to(change, record);
	return 0;
}

/* Rows 2, 4, 5 and 8: somebody owns @entry, the holder has no claim to it yet. */
static int acquire_claimed(struct core_name *entry, struct core_name_holder *holder, u64 flags,
			   u64 *state, struct core_name_change *change)
{
	struct core_name_record *owner = core_name_owner(entry);
	bool replace = may_replace(owner, flags);
	struct core_name_record *record;

	if (!replace && !(flags & KDBUS_NAME_QUEUE)) {
		*state = flags & STORED_FLAGS;
		return -EEXIST;
	}
	record = record_new(holder);
	if (!record)
		return -ENOMEM;
	record_link(record, entry);
	set_stored_flags(record, flags);
	if (replace) {
		replace_owner(record, owner, change);
	} else {
		list_add_tail(&record->queue_entry, &entry->queue);
		set_waiting(record);
	}
	*state = record->flags | KDBUS_NAME_ACQUIRED;
	return 0;
}

static bool is_activator(const struct core_name_holder *holder)
{
	struct core_name_record *first;

	if (list_empty(&holder->records))
		return false;
	first = list_first_entry(&holder->records, struct core_name_record, holder_entry);
	return first->flags & KDBUS_NAME_ACTIVATOR;
}

int core_names_acquire(struct core_names *names, struct core_name_holder *holder, const char *name,
		       u64 flags, u64 *ret_return_flags, struct core_name_change *ret_change)
{
	struct core_name_change change = no_change();
	struct core_name_record *record;
	struct core_name *entry;
	u64 state;
	int r;

	if ((flags & ~REQUEST_FLAGS) || !core_name_valid(name))
		return -EINVAL;
	if (is_activator(holder))
		return -EOPNOTSUPP;
	record = core_name_holder_find(holder, name);
	if (record) {
		*ret_return_flags = acquire_again(record, flags, &change);
		*ret_change = change;
		return 0;
	}
	if (holder->count >= holder->max)
		return -E2BIG;
	entry = core_names_find(names, name);
	if (entry) {
		r = acquire_claimed(entry, holder, flags, &state, &change);
	} else {
		r = acquire_unclaimed(names, holder, name, flags & STORED_FLAGS, &change);
		state = change.new_flags | KDBUS_NAME_ACQUIRED;
	}
	if (!r || r == -EEXIST)
		*ret_return_flags = state;
	if (!r)
		*ret_change = change;
	return r;
}

/* §10.5: somebody owns @entry already, which the activator does not disturb. */
static int attach_behind_owner(struct core_name *entry, struct core_name_holder *holder)
{
	struct core_name_record *record;

	if (entry->activator)
		return -EEXIST;
	record = record_new(holder);
	if (!record)
		return -ENOMEM;
	record_link(record, entry);
	record->flags = KDBUS_NAME_ACTIVATOR;
	set_waiting(record);
	entry->activator = record;
	return 0;
}

int core_names_attach_activator(struct core_names *names, struct core_name_holder *holder,
				const char *name, struct core_name_change *ret_change)
{
	struct core_name_change change = no_change();
	struct core_name *entry;
	int r;

	if (holder->count || !core_name_valid(name))
		return -EINVAL;
	entry = core_names_find(names, name);
	if (entry)
		r = attach_behind_owner(entry, holder);
	else
		r = acquire_unclaimed(names, holder, name, KDBUS_NAME_ACTIVATOR, &change);
	if (!r)
		*ret_change = change;
	return r;
}

/* §10.4 */
static void release(struct core_names *names, struct core_name_record *record,
		    struct core_name_change *ret_change)
{
	struct core_name_change change = no_change();
	struct core_name *entry = record->name;
	struct core_name_record *successor;

	if (!core_name_record_owns(record)) {
		record_free(record);
		*ret_change = change;
		return;
	}
	change_from(&change, record);
	record_free(record);
	successor = find_owner(entry);
	if (successor) {
		set_primary(successor);
		change_to(&change, successor);
	} else {
		/* The caller still has to tell who is gone: the string stays. */
		name_unlink(names, entry);
		change.dead_name = entry;
	}
	*ret_change = change;
}

int core_names_release(struct core_names *names, struct core_name_holder *holder, const char *name,
		       struct core_name_change *ret_change)
{
	struct core_name_record *record = core_name_holder_find(holder, name);

	if (!record)
		return core_names_find(names, name) ? -EADDRINUSE : -ESRCH;
	release(names, record, ret_change);
	return 0;
}

bool core_names_release_next(struct core_names *names, struct core_name_holder *holder,
			     struct core_name_change *ret_change)
{
	struct core_name_record *record = list_first_entry_or_null(
		&holder->records, struct core_name_record, holder_entry);

	if (!record)
		return false;
	release(names, record, ret_change);
	return true;
}

void core_name_change_done(struct core_name_change *change)
{
	if (!change)
		return;
	kfree(change->dead_name);
	*change = no_change();
}
