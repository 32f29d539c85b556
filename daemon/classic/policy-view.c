// SPDX-License-Identifier: LGPL-2.1-or-later
/* The rules that apply to a connection, compiled, and decisions by them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "dbus/header.h"
#include "policy-internal.h"

/* What a message can be without looking at its strings: a decision may depend on that alone. */
#define TYPES 5 /* 0: unknown */
enum reply_state {
	NO_REPLY,
	REQUESTED,
	UNREQUESTED,
	_REPLY_STATE_N,
};

enum answer {
	LOOK,
	YES,
	NO,
};

struct class {
	uint8_t answer; /* enum answer */
	const struct policy_rule *rule; /* that says no */
};

/* A rule in the chain of a bucket, the latest first */
struct link {
	const struct policy_entry *entry;
	uint32_t order;
	uint32_t next; /* number of a link, plus 1 */
};

/* All rules of one shape that name the same strings */
struct bucket {
	uint32_t ids[_POLICY_FIELD_N];
	uint32_t shape;
	uint32_t first; /* number of a link, plus 1; 0: free */
};

struct shape {
	uint32_t mask;
	uint32_t last; /* order of the latest rule */
};

#define SHAPES_MAX 64

/**
 * struct table - the rules of one kind
 * @rules, @n:	the rules, in order, without those that a later one always overrules
 * @shapes:	the shapes that occur, that with the latest rule first
 * @n_shapes:	their number
 * @names:	some shape names a peer
 */
struct table {
	const struct policy_entry **rules;
	uint32_t n;
	struct bucket *buckets;
	uint32_t n_buckets;
	struct link *links;
	uint32_t n_links;
	struct shape shapes[SHAPES_MAX];
	unsigned int n_shapes;
	bool names;
	struct class classes[TYPES][_REPLY_STATE_N][2];
	enum answer constant;
};

struct policy_view {
	unsigned int refs;
	struct policy *policy;
	struct policy_view *next;
	struct table tables[_POLICY_KIND_N];
	unsigned char applies[]; /* one byte for each section */
};

/* ---- single rules ---- */

static bool names_strings(const struct policy_entry *e)
{
	int i;

	for (i = 0; i < _POLICY_FIELD_N; i++)
		if (e->ids[i])
			return true;
	return false;
}

/* policy.h, rule 5 */
static bool fits_reply(const struct policy_rule *rule, enum reply_state reply)
{
	if (reply == REQUESTED && !rule->allow)
		return rule->requested_reply;
	if (reply == UNREQUESTED && rule->allow)
		return !rule->requested_reply || rule->eavesdrop;
	return true;
}

static bool fits_eavesdropping(const struct policy_rule *rule, bool eavesdropping)
{
	if (rule->kind != POLICY_RECEIVE || eavesdropping == rule->eavesdrop)
		return true;
	/* eavesdrop="true" adds to what is allowed, but narrows what is denied */
	return rule->allow == rule->eavesdrop;
}

static bool fits_broadcast(const struct policy_rule *rule, bool broadcast)
{
	return rule->broadcast == POLICY_ANY || (rule->broadcast == POLICY_TRUE) == broadcast;
}

static enum reply_state reply_state(const struct policy_msg *msg)
{
	if (!msg->reply)
		return NO_REPLY;
	return msg->requested_reply ? REQUESTED : UNREQUESTED;
}

/* All but the strings */
static bool fits(const struct policy_rule *rule, const struct policy_msg *msg)
{
	return (!rule->type || rule->type == msg->type) && fits_reply(rule, reply_state(msg)) &&
	       fits_eavesdropping(rule, msg->eavesdropping) &&
	       fits_broadcast(rule, msg->broadcast) && msg->n_fds >= rule->min_fds &&
	       msg->n_fds <= rule->max_fds;
}

/* ---- classes ---- */

static bool may_fit_class(const struct policy_rule *rule, uint8_t type, enum reply_state reply,
			  bool eavesdropping)
{
	return (!rule->type || rule->type == type) && fits_reply(rule, reply) &&
	       fits_eavesdropping(rule, eavesdropping) &&
	       (type == DBUSP_SIGNAL || fits_broadcast(rule, false));
}

/* Of one that may: whatever else the message is */
static bool always_fits(const struct policy_entry *e, uint8_t type)
{
	return !names_strings(e) && !e->rule.min_fds && e->rule.max_fds == UINT32_MAX &&
	       (type != DBUSP_SIGNAL || e->rule.broadcast == POLICY_ANY);
}

/*
 * The latest rule that always fits decides, if all later ones that may fit say the same. If it says
 * no, which rule does is of interest, so there must be no others.
 */
static struct class find_class(const struct table *t, uint8_t type, enum reply_state reply,
			       bool eavesdropping)
{
	bool yes = false, no = false;
	uint32_t i;

	for (i = t->n; i-- > 0;) {
		const struct policy_rule *rule = &t->rules[i]->rule;

		if (!may_fit_class(rule, type, reply, eavesdropping))
			continue;
		if (always_fits(t->rules[i], type)) {
			if (rule->allow && !no && !rule->log)
				return (struct class){ YES, NULL };
			return (struct class){ rule->allow || yes || no ? LOOK : NO, rule };
		}
		yes |= rule->allow;
		no |= !rule->allow || rule->log;
	}
	return (struct class){ yes || no ? LOOK : NO, NULL };
}

/* The answer that all classes give, if they do */
static enum answer find_constant(const struct table *t)
{
	const struct class *class = &t->classes[0][0][0];
	size_t i;

	for (i = 1; i < sizeof(t->classes) / sizeof(*class); i++)
		if (class[i].answer != class->answer || class[i].rule != class->rule)
			return LOOK;
	return class->answer;
}

static void find_classes(struct table *t)
{
	uint8_t type;
	int reply, eavesdropping;

	for (type = 0; type < TYPES; type++)
		for (reply = 0; reply < _REPLY_STATE_N; reply++)
			for (eavesdropping = 0; eavesdropping < 2; eavesdropping++)
				t->classes[type][reply][eavesdropping] =
					find_class(t, type, (enum reply_state)reply, eavesdropping);
	t->constant = find_constant(t);
}

static const struct class *class_of(const struct table *t, const struct policy_msg *msg)
{
	return &t->classes[msg->type < TYPES ? msg->type : 0][reply_state(msg)]
			  [msg->eavesdropping];
}

/* ---- buckets ---- */

static uint32_t hash_key(const uint32_t *ids, uint32_t shape)
{
	uint32_t hash = shape * 0x9e3779b1U;
	int i;

	for (i = 0; i < _POLICY_FIELD_N; i++)
		hash = (hash ^ ids[i]) * 0x85ebca6bU ^ hash >> 13;
	return hash ^ hash >> 16;
}

/* The bucket of a key, or the free one where it belongs */
static struct bucket *find_bucket(const struct table *t, const uint32_t *ids, uint32_t shape)
{
	uint32_t i = hash_key(ids, shape) & (t->n_buckets - 1);

	for (;; i = (i + 1) & (t->n_buckets - 1)) {
		struct bucket *b = &t->buckets[i];

		POLICY_LOOK();
		if (!b->first ||
		    (b->shape == shape && !memcmp(b->ids, ids, sizeof(b->ids))))
			return b;
	}
}

static void file_under(struct table *t, uint32_t order, const uint32_t *ids, uint32_t shape)
{
	struct bucket *b = find_bucket(t, ids, shape);

	t->links[t->n_links++] = (struct link){ t->rules[order], order, b->first };
	memcpy(b->ids, ids, sizeof(b->ids));
	b->shape = shape;
	b->first = t->n_links;
}

static uint32_t shape_of(const struct policy_entry *e)
{
	uint32_t mask = e->rule.prefix ? POLICY_SHAPE_PREFIX : 0;
	int i;

	for (i = 0; i < _POLICY_FIELD_N; i++)
		mask |= e->ids[i] ? 1U << i : 0;
	return mask;
}

static uint32_t may_be_absent(const struct policy_entry *e)
{
	uint32_t mask = 1U << POLICY_PATH | 1U << POLICY_MEMBER | 1U << POLICY_ERROR;

	if (!e->rule.allow)
		mask |= 1U << POLICY_INTERFACE;
	return mask & shape_of(e);
}

/* Once for each set of fields that may be absent */
static void file_rule(struct table *t, uint32_t order)
{
	const struct policy_entry *e = t->rules[order];
	const uint32_t all = may_be_absent(e);
	uint32_t ids[_POLICY_FIELD_N], absent = all;
	int i;

	for (;; absent = (absent - 1) & all) {
		for (i = 0; i < _POLICY_FIELD_N; i++)
			ids[i] = absent & 1U << i ? POLICY_ABSENT : e->ids[i];
		file_under(t, order, ids, shape_of(e));
		if (!absent)
			break;
	}
}

static uint32_t count_links(const struct table *t)
{
	uint32_t n = 0, i;

	for (i = 0; i < t->n; i++)
		n += 1U << __builtin_popcount(may_be_absent(t->rules[i]));
	return n;
}

/* From the latest rule on: shapes come in the order of their latest rules. */
static void find_shapes(struct table *t)
{
	uint32_t i, mask;
	unsigned int k;

	for (i = t->n; i-- > 0;) {
		mask = shape_of(t->rules[i]);
		for (k = 0; k < t->n_shapes && t->shapes[k].mask != mask; k++)
			;
		if (k == t->n_shapes)
			t->shapes[t->n_shapes++] = (struct shape){ mask, i };
		t->names |= mask & POLICY_SHAPE_NAME;
	}
}

/* policy.h, rule 6: it says nothing but allow or deny */
static bool is_plain(const struct policy_rule *rule)
{
	return !rule->eavesdrop && rule->requested_reply == rule->allow;
}

/* It fits replies and eavesdroppers of all kinds. */
static bool is_absolute(const struct policy_rule *rule)
{
	if (rule->kind == POLICY_RECEIVE && rule->allow != rule->eavesdrop)
		return false;
	return rule->allow ? !rule->requested_reply || rule->eavesdrop : rule->requested_reply;
}

/* What comes before a rule that fits everything never counts. */
static void drop_overruled(struct table *t)
{
	uint32_t i;

	for (i = t->n; i-- > 0;) {
		const struct policy_rule *rule = &t->rules[i]->rule;

		if ((is_plain(rule) || is_absolute(rule)) && !rule->type &&
		    rule->broadcast == POLICY_ANY && always_fits(t->rules[i], DBUSP_SIGNAL)) {
			t->n -= i;
			memmove(t->rules, t->rules + i, t->n * sizeof(struct policy_entry *));
			return;
		}
	}
}

static int build_table(struct table *t)
{
	uint32_t i, n_links;

	drop_overruled(t);
	find_classes(t);
	if (t->constant != LOOK)
		return 0;
	n_links = count_links(t);
	for (t->n_buckets = 4; t->n_buckets < 2 * n_links; t->n_buckets *= 2)
		;
	t->buckets = calloc(t->n_buckets, sizeof(*t->buckets));
	t->links = calloc(n_links + 1, sizeof(*t->links));
	if (!t->buckets || !t->links)
		return -ENOMEM;
	find_shapes(t);
	for (i = 0; i < t->n; i++)
		file_rule(t, i);
	return 0;
}

/* ---- views ---- */

static int compare_gids(const void *a, const void *b)
{
	const gid_t x = *(const gid_t *)a, y = *(const gid_t *)b;

	return x < y ? -1 : x > y;
}

static bool section_applies(const struct policy_section *s, uid_t uid, const gid_t *gids,
			    size_t n_gids, bool at_console)
{
	size_t i;

	switch (s->context) {
	case POLICY_USER:
		return s->id == uid;
	case POLICY_GROUP:
		for (i = 0; i < n_gids; i++)
			if (gids[i] == s->id)
				return true;
		return false;
	case POLICY_AT_CONSOLE:
		return at_console;
	case POLICY_NOT_AT_CONSOLE:
		return !at_console;
	default:
		return true;
	}
}

/* Appends the rules of one section. */
static void collect_section(struct policy_view *v, uint32_t section)
{
	const struct policy *p = v->policy;
	size_t i;

	for (i = 0; i < p->n_entries; i++) {
		struct policy_entry *e = p->entries[i];

		if (e->section == section && e->rule.kind < _POLICY_KIND_N) {
			struct table *t = &v->tables[e->rule.kind];

			t->rules[t->n++] = e;
		}
	}
}

/* Each group once, though a user may be in it twice. */
static void collect_groups(struct policy_view *v, const gid_t *sorted, size_t n)
{
	const struct policy_section *s = v->policy->sections;
	uint32_t i;
	size_t k;

	for (k = 0; k < n; k++) {
		if (k && sorted[k] == sorted[k - 1])
			continue;
		for (i = 0; i < v->policy->n_sections; i++)
			if (s[i].context == POLICY_GROUP && s[i].id == sorted[k])
				collect_section(v, i);
	}
}

static int collect(struct policy_view *v, const gid_t *gids, size_t n_gids)
{
	const struct policy *p = v->policy;
	gid_t *sorted = calloc(n_gids + 1, sizeof(*sorted));
	uint32_t i;
	int context;

	if (!sorted)
		return -ENOMEM;
	if (n_gids)
		memcpy(sorted, gids, n_gids * sizeof(*gids));
	qsort(sorted, n_gids, sizeof(*sorted), compare_gids);
	for (context = 0; context < _POLICY_CONTEXT_N; context++) {
		if (context == POLICY_GROUP)
			collect_groups(v, sorted, n_gids);
		for (i = 0; i < p->n_sections; i++)
			if (v->applies[i] && (int)p->sections[i].context == context &&
			    context != POLICY_GROUP)
				collect_section(v, i);
	}
	free(sorted);
	return 0;
}

static void free_view(struct policy_view *v)
{
	int kind;

	for (kind = 0; kind < _POLICY_KIND_N; kind++) {
		free(v->tables[kind].rules);
		free(v->tables[kind].buckets);
		free(v->tables[kind].links);
	}
	policy_unref(v->policy);
	free(v);
}

static int compile(struct policy_view *v, const gid_t *gids, size_t n_gids)
{
	int kind, r;

	for (kind = 0; kind < _POLICY_KIND_N; kind++) {
		v->tables[kind].rules =
			calloc(v->policy->n_entries + 1, sizeof(struct policy_entry *));
		if (!v->tables[kind].rules)
			return -ENOMEM;
	}
	r = collect(v, gids, n_gids);
	for (kind = 0; kind < _POLICY_KIND_N && r == 0; kind++)
		r = build_table(&v->tables[kind]);
	return r;
}

static struct policy_view *find_view(struct policy *p, const unsigned char *applies)
{
	struct policy_view *v;

	for (v = p->views; v; v = v->next)
		if (!memcmp(v->applies, applies, p->n_sections))
			return v;
	return NULL;
}

int policy_view_make(struct policy *p, uid_t uid, const gid_t *gids, size_t n_gids,
		     bool at_console, struct policy_view **ret)
{
	struct policy_view *v = calloc(1, sizeof(*v) + p->n_sections), *known;
	uint32_t i;

	if (!v)
		return -ENOMEM;
	v->refs = 1;
	v->policy = policy_ref(p);
	for (i = 0; i < p->n_sections; i++)
		v->applies[i] =
			section_applies(&p->sections[i], uid, gids, n_gids, at_console);
	known = find_view(p, v->applies);
	if (!known && compile(v, gids, n_gids) < 0) {
		free_view(v);
		return -ENOMEM;
	}
	if (known) {
		free_view(v);
		*ret = policy_view_ref(known);
		return 0;
	}
	v->next = p->views;
	p->views = v;
	*ret = v;
	return 0;
}

struct policy_view *policy_view_ref(struct policy_view *view)
{
	view->refs++;
	return view;
}

struct policy_view *policy_view_unref(struct policy_view *view)
{
	struct policy_view **p;

	if (!view || --view->refs)
		return NULL;
	for (p = &view->policy->views; *p != view; p = &(*p)->next)
		;
	*p = view->next;
	free_view(view);
	return NULL;
}

bool policy_view_is_constant(const struct policy_view *view, enum policy_kind kind,
			     bool *ret_allowed)
{
	const struct table *t = &view->tables[kind];

	if (t->constant == LOOK)
		return false;
	*ret_allowed = t->constant == YES;
	return true;
}

/* ---- decisions ---- */

/* One search for the latest rule that matches */
struct search {
	const struct table *t;
	const struct policy_msg *msg;
	uint32_t ids[_POLICY_FIELD_N]; /* of the message */
	const struct link *best;
};

static void probe(struct search *s, const struct shape *shape, uint32_t name_id)
{
	uint32_t ids[_POLICY_FIELD_N], i;
	const struct bucket *b;

	if (s->best && s->best->order > shape->last)
		return;
	for (i = 0; i < _POLICY_FIELD_N; i++) {
		ids[i] = shape->mask & 1U << i ? s->ids[i] : 0;
		if (i == POLICY_NAME)
			ids[i] = shape->mask & POLICY_SHAPE_NAME ? name_id : 0;
		if (shape->mask & 1U << i && ids[i] == POLICY_UNKNOWN)
			return;
	}
	b = find_bucket(s->t, ids, shape->mask);
	for (i = b->first; i; i = s->t->links[i - 1].next) {
		const struct link *link = &s->t->links[i - 1];

		POLICY_LOOK();
		if (s->best && s->best->order >= link->order)
			return;
		if (fits(&link->entry->rule, s->msg)) {
			s->best = link;
			return;
		}
	}
}

/* Of @name_id every shape that has it as a name, or as a prefix of one; 0: those without a name */
static void probe_all(struct search *s, uint32_t name_id, uint32_t name_bits)
{
	unsigned int i;

	for (i = 0; i < s->t->n_shapes; i++) {
		const struct shape *shape = &s->t->shapes[i];

		if ((shape->mask & (POLICY_SHAPE_NAME | POLICY_SHAPE_PREFIX)) == name_bits)
			probe(s, shape, name_id);
	}
}

/* A name, and what of it ends before a dot */
static void probe_name(struct search *s, const struct policy_strings *strings, const char *name)
{
	uint32_t hash = policy_hash_start(), i, id;

	for (i = 0; name[i]; i++) {
		if (name[i] == '.' && i) {
			id = policy_string_find(strings, name, i, hash);
			if (id)
				probe_all(s, id, POLICY_SHAPE_NAME | POLICY_SHAPE_PREFIX);
		}
		hash = policy_hash_byte(hash, name[i]);
	}
	id = policy_string_find(strings, name, i, hash);
	if (!id)
		return;
	probe_all(s, id, POLICY_SHAPE_NAME | POLICY_SHAPE_PREFIX);
	probe_all(s, id, POLICY_SHAPE_NAME);
}

static struct policy_verdict search(struct search *s, const struct policy *p,
				    const struct policy_peer *peer)
{
	const char *name;
	void *cursor = NULL;

	probe_all(s, 0, 0);
	if (peer && s->t->names)
		while ((name = peer->next(peer, &cursor)))
			probe_name(s, &p->strings, name);
	if (!s->best)
		return (struct policy_verdict){ false, NULL };
	return (struct policy_verdict){ s->best->entry->rule.allow, &s->best->entry->rule };
}

static uint32_t look_up(const struct policy *p, struct dbusp_str s)
{
	return s.s ? policy_string_id(&p->strings, s.s, s.len) : POLICY_ABSENT;
}

static void look_up_all(const struct policy *p, struct policy_msg *msg)
{
	if (msg->looked_up.policy == p)
		return;
	msg->looked_up.policy = p;
	msg->looked_up.path = look_up(p, msg->path);
	msg->looked_up.interface = look_up(p, msg->interface);
	msg->looked_up.member = look_up(p, msg->member);
	msg->looked_up.error = look_up(p, msg->error);
}

static struct policy_verdict decide(const struct policy_view *view, enum policy_kind kind,
				    struct policy_msg *msg, const struct policy_peer *peer)
{
	const struct table *t = &view->tables[kind];
	const struct class *class = class_of(t, msg);
	struct search s = { .t = t, .msg = msg };

	if (class->answer != LOOK)
		return (struct policy_verdict){ class->answer == YES, class->rule };
	look_up_all(view->policy, msg);
	s.ids[POLICY_PATH] = msg->looked_up.path;
	s.ids[POLICY_INTERFACE] = msg->looked_up.interface;
	s.ids[POLICY_MEMBER] = msg->looked_up.member;
	s.ids[POLICY_ERROR] = msg->looked_up.error;
	return search(&s, view->policy, peer);
}

static const char *next_of_one(const struct policy_peer *peer, void **cursor)
{
	if (*cursor)
		return NULL;
	*cursor = (void *)peer;
	return peer->arg;
}

struct policy_peer policy_peer_of(const char *name)
{
	return (struct policy_peer){ next_of_one, name };
}

struct policy_verdict policy_may_own(const struct policy_view *view, const char *name)
{
	const struct policy_peer peer = policy_peer_of(name);
	struct policy_msg nothing = { .type = 0 };

	return decide(view, POLICY_OWN, &nothing, &peer);
}

struct policy_verdict policy_may_send(const struct policy_view *view, struct policy_msg *msg,
				      const struct policy_peer *to)
{
	return decide(view, POLICY_SEND, msg, to);
}

struct policy_verdict policy_may_receive(const struct policy_view *view, struct policy_msg *msg,
					 const struct policy_peer *from)
{
	return decide(view, POLICY_RECEIVE, msg, from);
}

/* ---- counting ---- */

static bool wants(const char *wanted, struct dbusp_str has, bool if_absent)
{
	if (!wanted)
		return true;
	return has.s ? dbusp_str_eq(dbusp_str(wanted), has) : if_absent;
}

static bool wants_name(const struct policy_rule *rule, const char *name)
{
	const size_t n = strlen(rule->name);

	if (!rule->prefix)
		return !strcmp(rule->name, name);
	return !strncmp(rule->name, name, n) && (!name[n] || name[n] == '.');
}

static bool wants_peer(const struct policy_rule *rule, const struct policy_peer *peer)
{
	const char *name;
	void *cursor = NULL;

	if (!rule->name)
		return true;
	while (peer && (name = peer->next(peer, &cursor)))
		if (wants_name(rule, name))
			return true;
	return false;
}

unsigned int policy_count(const struct policy_view *view, enum policy_kind kind,
			  const struct policy_msg *msg, const struct policy_peer *peer)
{
	const struct table *t = &view->tables[kind];
	unsigned int n = 0;
	uint32_t i;

	for (i = 0; i < t->n; i++) {
		const struct policy_rule *rule = &t->rules[i]->rule;

		n += fits(rule, msg) && wants(rule->path, msg->path, true) &&
		     wants(rule->interface, msg->interface, !rule->allow) &&
		     wants(rule->member, msg->member, true) &&
		     wants(rule->error, msg->error, true) && wants_peer(rule, peer);
	}
	return n;
}
