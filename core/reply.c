// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base.h"
#include "limits.h"
#include "reply.h"

void core_requester_init(struct core_requester *r, struct core_deadlines *deadlines)
{
	memset(r, 0, sizeof(*r));
	r->deadlines = deadlines;
	INIT_LIST_HEAD(&r->all);
	r->by_cookie = RB_ROOT;
}

void core_replier_init(struct core_replier *p)
{
	memset(p, 0, sizeof(*p));
	INIT_LIST_HEAD(&p->owed);
	p->by_name = RB_ROOT;
}

/* R's index: by cookie; equal ones stand in the order they were opened. */
static void cookie_insert(struct core_reply *slot)
{
	struct rb_root *root = &slot->requester->by_cookie;
	struct rb_node **link = &root->rb_node, *parent = NULL;

	while (*link) {
		parent = *link;
		core_step();
		if (slot->cookie < rb_entry(parent, struct core_reply, cookie_node)->cookie)
			link = &parent->rb_left;
		else
			link = &parent->rb_right;
	}
	rb_link_node(&slot->cookie_node, parent, link);
	rb_insert_color(&slot->cookie_node, root);
}

/* The youngest slot of a cookie; the older ones are before it in the tree. */
static struct core_reply *cookie_last(const struct core_requester *r, u64 cookie)
{
	struct rb_node *node = r->by_cookie.rb_node;
	struct core_reply *at, *found = NULL;

	while (node) {
		at = rb_entry(node, struct core_reply, cookie_node);
		core_step();
		if (at->cookie <= cookie) {
			if (at->cookie == cookie)
				found = at;
			node = node->rb_right;
		} else {
			node = node->rb_left;
		}
	}
	return found;
}

static struct core_reply *cookie_older(struct core_reply *slot)
{
	struct core_reply *older;

	core_step();
	older = rb_entry_safe(rb_prev(&slot->cookie_node), struct core_reply, cookie_node);
	return older && older->cookie == slot->cookie ? older : NULL;
}

/* P's second index: by name; equal ones stand in the order they came to it. */
static void name_insert(struct core_replier *p, struct core_reply *slot)
{
	struct rb_node **link = &p->by_name.rb_node, *parent = NULL;

	while (*link) {
		parent = *link;
		core_step();
		if (slot->name_id < rb_entry(parent, struct core_reply, name_node)->name_id)
			link = &parent->rb_left;
		else
			link = &parent->rb_right;
	}
	rb_link_node(&slot->name_node, parent, link);
	rb_insert_color(&slot->name_node, &p->by_name);
}

static struct core_reply *name_first(const struct core_replier *p, u64 name_id)
{
	struct rb_node *node = p->by_name.rb_node;
	struct core_reply *at, *found = NULL;

	while (node) {
		at = rb_entry(node, struct core_reply, name_node);
		core_step();
		if (at->name_id >= name_id) {
			if (at->name_id == name_id)
				found = at;
			node = node->rb_left;
		} else {
			node = node->rb_right;
		}
	}
	return found;
}

static void owe(struct core_replier *p, struct core_reply *slot)
{
	slot->replier = p;
	list_add_tail(&slot->owed, &p->owed);
	if (slot->name_id)
		name_insert(p, slot);
	slot->expected = true;
}

static void unowe(struct core_reply *slot)
{
	if (!slot->expected)
		return;
	list_del_init(&slot->owed);
	if (slot->name_id)
		rb_erase(&slot->name_node, &slot->replier->by_name);
	slot->expected = false;
}

static void deadline_insert(struct core_reply *slot)
{
	struct rb_root *root = &slot->requester->deadlines->tree;
	struct rb_node **link = &root->rb_node, *parent = NULL;
	struct core_reply *at;

	if (slot->timed || slot->deadline == U64_MAX)
		return;
	while (*link) {
		parent = *link;
		at = rb_entry(parent, struct core_reply, deadline_node);
		core_step();
		link = slot->deadline < at->deadline ? &parent->rb_left : &parent->rb_right;
	}
	rb_link_node(&slot->deadline_node, parent, link);
	rb_insert_color(&slot->deadline_node, root);
	slot->timed = true;
}

static void deadline_erase(struct core_reply *slot)
{
	if (!slot->timed)
		return;
	rb_erase(&slot->deadline_node, &slot->requester->deadlines->tree);
	slot->timed = false;
}

/* Invariants 2 and 6: the last one who needs the slot frees it. */
static void maybe_free(struct core_reply *slot)
{
	if (slot->open || slot->queued || slot->taken)
		return;
	if (slot->requester) {
		list_del(&slot->all);
		slot->requester->n--;
	}
	kfree(slot);
}

/* Out of all indexes. Does not free. */
static void *shut_slot(struct core_reply *slot)
{
	void *answer = slot->answer;

	if (slot->open) {
		rb_erase(&slot->cookie_node, &slot->requester->by_cookie);
		unowe(slot);
		deadline_erase(slot);
		slot->open = false;
	}
	slot->answer = NULL;
	return answer;
}

int core_reply_open(struct core_requester *r, struct core_replier *p,
		    const struct core_reply_args *args, struct core_reply **ret_slot)
{
	struct core_reply *slot;

	if (r->n >= CORE_CONN_MAX_REQUESTS_PENDING)
		return -EMLINK;
	slot = kzalloc(sizeof(*slot), CORE_GFP);
	if (!slot)
		return -ENOMEM;
	slot->requester = r;
	slot->cookie = args->cookie;
	slot->name_id = args->name_id;
	slot->deadline = args->deadline;
	slot->sync = args->sync;
	slot->open = true;
	list_add_tail(&slot->all, &r->all);
	r->n++;
	cookie_insert(slot);
	owe(p, slot);
	if (!slot->sync)
		deadline_insert(slot);
	*ret_slot = slot;
	return 0;
}

void core_reply_request_queued(struct core_reply *slot)
{
	slot->queued = true;
}

void core_reply_request_left(struct core_reply *slot)
{
	if (!slot)
		return;
	slot->queued = false;
	maybe_free(slot);
}

struct core_reply *core_reply_find(struct core_requester *r, struct core_replier *p, u64 cookie)
{
	struct core_reply *slot;

	for (slot = cookie_last(r, cookie); slot; slot = cookie_older(slot))
		if (slot->expected && slot->replier == p)
			return slot;
	return NULL;
}

bool core_reply_take(struct core_reply *slot)
{
	BUG_ON(!slot->open || !slot->expected);
	if (!slot->sync) {
		shut_slot(slot);
		maybe_free(slot);
		return false;
	}
	unowe(slot);
	slot->taken = true;
	return true;
}

int core_reply_settle(struct core_reply *slot, int result, void *answer)
{
	BUG_ON(!slot->taken);
	slot->taken = false;
	if (!slot->open) {
		maybe_free(slot);
		return -ECONNRESET;
	}
	slot->settled = true;
	slot->result = result;
	slot->answer = answer;
	return 0;
}

enum core_reply_event core_reply_kill(struct core_reply *slot, int error)
{
	if (!slot || !slot->open || !slot->expected)
		return CORE_REPLY_NOTHING;
	if (slot->sync) {
		unowe(slot);
		slot->settled = true;
		slot->result = error;
		return slot->interrupted ? CORE_REPLY_NOTHING : CORE_REPLY_WAKE;
	}
	shut_slot(slot);
	maybe_free(slot);
	return CORE_REPLY_DEAD;
}

void core_reply_close(struct core_reply *slot, void **ret_answer)
{
	void *answer = NULL;

	if (slot) {
		answer = shut_slot(slot);
		maybe_free(slot);
	}
	*ret_answer = answer;
}

struct core_reply *core_reply_resume(struct core_requester *r, u64 cookie)
{
	struct core_reply *slot;

	for (slot = cookie_last(r, cookie); slot; slot = cookie_older(slot)) {
		if (!slot->interrupted)
			continue;
		slot->interrupted = false;
		deadline_erase(slot);
		return slot;
	}
	return NULL;
}

void core_reply_interrupt(struct core_reply *slot)
{
	BUG_ON(!slot->open || !slot->sync);
	slot->interrupted = true;
	deadline_insert(slot);
}

bool core_reply_settled(const struct core_reply *slot)
{
	return slot->settled;
}

int core_reply_collect(struct core_reply *slot, void **ret_answer)
{
	int result = slot->result;

	BUG_ON(!slot->open || !slot->settled);
	*ret_answer = shut_slot(slot);
	maybe_free(slot);
	return result;
}

u64 core_deadlines_next(const struct core_deadlines *deadlines)
{
	struct core_reply *slot;

	slot = rb_entry_safe(rb_first(&deadlines->tree), struct core_reply, deadline_node);
	return slot ? slot->deadline : U64_MAX;
}

struct core_reply *core_deadlines_expired(const struct core_deadlines *deadlines, u64 now)
{
	struct core_reply *slot;

	slot = rb_entry_safe(rb_first(&deadlines->tree), struct core_reply, deadline_node);
	return slot && slot->deadline <= now ? slot : NULL;
}

enum core_reply_event core_reply_expire(struct core_reply *slot, void **ret_answer)
{
	bool silent = slot->sync;

	BUG_ON(!slot->open || !slot->timed);
	*ret_answer = shut_slot(slot);
	maybe_free(slot);
	return silent ? CORE_REPLY_NOTHING : CORE_REPLY_TIMEOUT;
}

struct core_reply *core_requester_first(const struct core_requester *r)
{
	if (list_empty(&r->all))
		return NULL;
	return list_first_entry(&r->all, struct core_reply, all);
}

void core_reply_orphan(struct core_reply *slot, void **ret_answer)
{
	*ret_answer = shut_slot(slot);
	list_del(&slot->all);
	slot->requester->n--;
	slot->requester = NULL;
	maybe_free(slot);
}

struct core_reply *core_replier_first(const struct core_replier *p)
{
	if (list_empty(&p->owed))
		return NULL;
	return list_first_entry(&p->owed, struct core_reply, owed);
}

void core_reply_retarget_slot(struct core_reply *slot, struct core_replier *to)
{
	if (!slot->expected || slot->replier == to)
		return;
	unowe(slot);
	owe(to, slot);
}

unsigned int core_reply_retarget(struct core_replier *from, struct core_replier *to, u64 name_id)
{
	struct core_reply *slot;
	unsigned int n = 0;

	if (from == to)
		return 0;
	while ((slot = name_first(from, name_id)) != NULL) {
		unowe(slot);
		owe(to, slot);
		n++;
	}
	return n;
}
