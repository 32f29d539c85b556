// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Compiled policies against a naive evaluator: every rule in order, each condition spelled out as
 * dbus-daemon(1) describes it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/classic/policy.h"
#include "prop.h"

#define RULES_MAX 256
#define NAMES_MAX 4

struct model_rule {
	enum policy_context context;
	uint32_t id;
	struct policy_rule rule;
};

struct state {
	struct policy *policy;
	struct model_rule rules[RULES_MAX];
	unsigned int n;
};

/* Few strings, so that rules and messages meet; some occur in rules or messages alone. */
static const char *const names[] = { "a.b", "a.b.c", "a.bc", "a", ":1.5", "x.y", "b" };
static const char *const interfaces[] = { "i.a", "i.b", "a.b", "i.c" };
static const char *const members[] = { "M", "N", "O" };
static const char *const paths[] = { "/", "/a", "/a/b" };
static const char *const errors[] = { "e.a", "e.b", "i.a" };

#define PICK(array, n) ((n) % (sizeof(array) / sizeof((array)[0])))

/* One of the array, or none half of the time */
#define MAYBE(array, bits) ((bits) & 1 ? (array)[PICK(array, (bits) >> 1)] : NULL)

static u64 take(u64 *bits, unsigned int n)
{
	const u64 value = *bits & ((1ULL << n) - 1);

	*bits >>= n;
	return value;
}

/* ---- the naive evaluator ---- */

struct who {
	uid_t uid;
	gid_t gids[3];
	size_t n_gids;
	bool at_console;
};

static bool naive_applies(const struct model_rule *m, enum policy_context context, uint32_t gid,
			  const struct who *who)
{
	if (m->context != context)
		return false;
	if (context == POLICY_USER)
		return m->id == who->uid;
	if (context == POLICY_GROUP)
		return m->id == gid;
	if (context == POLICY_AT_CONSOLE)
		return who->at_console;
	return context != POLICY_NOT_AT_CONSOLE || !who->at_console;
}

static bool naive_string(const char *wanted, struct dbusp_str has, bool if_absent)
{
	if (!wanted)
		return true;
	if (!has.s)
		return if_absent;
	return strlen(wanted) == has.len && !memcmp(wanted, has.s, has.len);
}

static bool naive_name(const struct policy_rule *r, const char *const *peer)
{
	size_t n;

	if (!r->name)
		return true;
	for (; *peer; peer++) {
		n = strlen(r->name);
		if (!strcmp(r->name, *peer))
			return true;
		if (r->prefix && !strncmp(r->name, *peer, n) && (*peer)[n] == '.')
			return true;
	}
	return false;
}

static bool naive_matches(const struct policy_rule *r, const struct policy_msg *m,
			  const char *const *peer)
{
	if (r->kind == POLICY_OWN)
		return naive_name(r, peer);
	if (r->type && r->type != m->type)
		return false;
	if (r->kind == POLICY_RECEIVE && m->eavesdropping && r->allow && !r->eavesdrop)
		return false;
	if (r->kind == POLICY_RECEIVE && !m->eavesdropping && !r->allow && r->eavesdrop)
		return false;
	if (m->reply && !m->requested_reply && r->allow && r->requested_reply && !r->eavesdrop)
		return false;
	if (m->reply && m->requested_reply && !r->allow && !r->requested_reply)
		return false;
	if (r->broadcast == POLICY_TRUE && !m->broadcast)
		return false;
	if (r->broadcast == POLICY_FALSE && m->broadcast)
		return false;
	if (m->n_fds < r->min_fds || m->n_fds > r->max_fds)
		return false;
	return naive_string(r->path, m->path, true) && naive_string(r->member, m->member, true) &&
	       naive_string(r->error, m->error, true) &&
	       naive_string(r->interface, m->interface, !r->allow) && naive_name(r, peer);
}

struct naive {
	const struct policy_rule *last;
	unsigned int n;
};

/* policy.h, rule 6 */
static bool naive_forgets(const struct policy_rule *r)
{
	return !r->name && !r->path && !r->interface && !r->member && !r->error && !r->type &&
	       !r->eavesdrop && r->requested_reply == r->allow && r->broadcast == POLICY_ANY &&
	       !r->min_fds && r->max_fds == UINT32_MAX;
}

static void naive_section(const struct state *s, enum policy_context context, uint32_t gid,
			  const struct who *who, enum policy_kind kind,
			  const struct policy_msg *m, const char *const *peer, struct naive *ret)
{
	unsigned int i;

	for (i = 0; i < s->n; i++) {
		if (s->rules[i].rule.kind != kind ||
		    !naive_applies(&s->rules[i], context, gid, who))
			continue;
		if (naive_forgets(&s->rules[i].rule))
			*ret = (struct naive){ NULL, 0 };
		if (!naive_matches(&s->rules[i].rule, m, peer))
			continue;
		ret->last = &s->rules[i].rule;
		ret->n++;
	}
}

static struct naive naive_decide(const struct state *s, const struct who *who,
				 enum policy_kind kind, const struct policy_msg *m,
				 const char *const *peer)
{
	struct naive v = { NULL, 0 };
	uint32_t gid;

	naive_section(s, POLICY_DEFAULT, 0, who, kind, m, peer, &v);
	for (gid = 0; gid < 8; gid++)
		if (gid == who->gids[0] || gid == who->gids[1] || gid == who->gids[2])
			naive_section(s, POLICY_GROUP, gid, who, kind, m, peer, &v);
	naive_section(s, POLICY_USER, 0, who, kind, m, peer, &v);
	naive_section(s, POLICY_AT_CONSOLE, 0, who, kind, m, peer, &v);
	naive_section(s, POLICY_NOT_AT_CONSOLE, 0, who, kind, m, peer, &v);
	naive_section(s, POLICY_MANDATORY, 0, who, kind, m, peer, &v);
	return v;
}

/* ---- operations ---- */

enum {
	ADD_RULE,
	DECIDE,
};

static void generate(struct prop_rng *rng, struct prop_op *op)
{
	int i;

	op->kind = prop_one_in(rng, 3) ? ADD_RULE : DECIDE;
	for (i = 0; i < PROP_ARGS; i++)
		op->arg[i] = prop_random(rng);
}

static void *setup(void)
{
	struct state *s = calloc(1, sizeof(*s));

	if (!s)
		abort();
	s->policy = policy_new();
	return s;
}

static bool teardown(void *state, struct prop_report *report)
{
	struct state *s = state;

	policy_unref(s->policy);
	free(s);
	return true;
}

static void random_rule(struct policy_rule *r, u64 a, u64 b)
{
	*r = (struct policy_rule){ .max_fds = UINT32_MAX, .file = "file" };
	r->kind = (enum policy_kind)(take(&a, 4) % 3);
	r->allow = take(&a, 1);
	r->log = take(&a, 3) == 0;
	r->eavesdrop = take(&a, 1);
	r->requested_reply = take(&a, 1);
	r->name = MAYBE(names, b);
	b >>= 5;
	r->prefix = r->name && take(&a, 2) == 0;
	if (r->kind == POLICY_OWN)
		return;
	r->broadcast = (enum policy_tristate)(take(&a, 4) % 8 < 3 ? take(&a, 2) % 3 : 0);
	r->type = take(&a, 1) ? (uint8_t)take(&a, 3) % 5 : 0;
	r->interface = MAYBE(interfaces, b);
	r->member = MAYBE(members, b >> 5);
	r->path = MAYBE(paths, b >> 10);
	r->error = b >> 20 & 1 ? MAYBE(errors, b >> 15) : NULL;
	r->min_fds = take(&a, 3) == 0;
	r->max_fds = take(&a, 3) == 0 ? 1 : UINT32_MAX;
}

static bool add_rule(struct state *s, const struct prop_op *op, struct prop_report *report)
{
	struct model_rule *m = &s->rules[s->n];
	u64 a = op->arg[2];

	if (s->n == RULES_MAX)
		return true;
	m->context = (enum policy_context)(op->arg[0] % _POLICY_CONTEXT_N);
	m->id = op->arg[1] % 3;
	if (m->context != POLICY_USER && m->context != POLICY_GROUP)
		m->id = 0;
	/* every fourth says something about all, as real configurations do */
	random_rule(&m->rule, op->arg[3], take(&a, 2) ? op->arg[4] : 0);
	m->rule.line = s->n + 1;
	if (policy_add(s->policy, m->context, m->id, &m->rule) != 0)
		return prop_differ(report, "the rule was not added");
	s->n++;
	return true;
}

static const char *next_name(const struct policy_peer *peer, void **cursor)
{
	const char *const *name = *cursor ? *cursor : peer->arg;

	if (!*name)
		return NULL;
	*cursor = (void *)(name + 1);
	return *name;
}

static void random_msg(struct policy_msg *m, u64 a, u64 b)
{
	*m = (struct policy_msg){ .type = take(&a, 3) % 6 };
	m->path = dbusp_str(MAYBE(paths, b));
	m->interface = dbusp_str(MAYBE(interfaces, b >> 5));
	m->member = dbusp_str(MAYBE(members, b >> 10));
	m->error = dbusp_str(MAYBE(errors, b >> 15));
	m->reply = take(&a, 1);
	m->requested_reply = m->reply && take(&a, 1);
	m->broadcast = m->type == 4 && take(&a, 1);
	m->eavesdropping = take(&a, 2) == 0;
	m->n_fds = (uint32_t)take(&a, 2);
}

static struct policy_verdict decide(const struct policy_view *view, enum policy_kind kind,
				    struct policy_msg *m, const char *const *peer_names)
{
	const struct policy_peer peer = { next_name, peer_names };

	if (kind == POLICY_OWN)
		return policy_may_own(view, peer_names[0]);
	if (kind == POLICY_SEND)
		return policy_may_send(view, m, *peer_names ? &peer : NULL);
	return policy_may_receive(view, m, &peer);
}

/* What a view says, and what it says of itself */
struct answer {
	struct policy_verdict v;
	unsigned int n;
	bool shared;
	bool consistent;
};

static struct answer ask(const struct state *s, const struct who *who, enum policy_kind kind,
			 struct policy_msg *m, const char *const *peer)
{
	struct policy_view *view, *twin;
	struct answer a = { .shared = false };
	bool constant;

	if (policy_view_make(s->policy, who->uid, who->gids, who->n_gids, who->at_console,
			     &view) < 0)
		abort();
	if (policy_view_make(s->policy, who->uid, who->gids, who->n_gids, who->at_console,
			     &twin) < 0)
		abort();
	a.shared = view == twin;
	a.v = decide(view, kind, m, peer);
	a.consistent = !policy_view_is_constant(view, kind, &constant) || constant == a.v.allowed;
	a.n = policy_count(view, kind, m, &(struct policy_peer){ next_name, peer });
	policy_view_unref(twin);
	policy_view_unref(view);
	return a;
}

static bool check(const struct state *s, const struct who *who, enum policy_kind kind,
		  struct policy_msg *m, const char *const *peer, struct prop_report *report)
{
	const struct naive naive = naive_decide(s, who, kind, m, peer);
	const bool expect = naive.last && naive.last->allow;
	const struct answer a = ask(s, who, kind, m, peer);

	if (!a.shared || !a.consistent)
		return prop_differ(report, "shared %d, consistent %d", a.shared, a.consistent);
	if (a.v.allowed != expect)
		return prop_differ(report, "%d where %d is right", a.v.allowed, expect);
	/* what is denied, and what is to be logged, is told with the rule */
	if (naive.last && (!expect || (naive.last->log && kind == POLICY_SEND)) &&
	    (!a.v.rule || a.v.rule->line != naive.last->line))
		return prop_differ(report, "rule %u decided, not %u",
				   a.v.rule ? a.v.rule->line : 0, naive.last->line);
	if (a.n > naive.n || !a.n != !naive.n)
		return prop_differ(report, "%u rules match, not %u", a.n, naive.n);
	return true;
}

static bool step(void *state, const struct prop_op *op, struct prop_report *report)
{
	struct state *s = state;
	u64 a = op->arg[0];
	struct who who = {
		.uid = take(&a, 4) % 3,
		.gids = { take(&a, 4) % 4, take(&a, 4) % 4, 7 },
		.n_gids = 3,
		.at_console = take(&a, 1),
	};
	const char *peer[NAMES_MAX + 1] = { NULL };
	enum policy_kind kind = (enum policy_kind)(op->arg[1] % 3);
	struct policy_msg m;
	size_t n = kind == POLICY_OWN ? 1 : op->arg[4] % (NAMES_MAX + 1), i;

	if (op->kind == ADD_RULE)
		return add_rule(s, op, report);
	for (i = 0; i < n; i++)
		peer[i] = names[PICK(names, op->arg[5] >> 8 * i & 0xff)];
	random_msg(&m, op->arg[2], op->arg[3]);
	return check(s, &who, kind, &m, peer, report);
}

static const char *const kinds[] = { "ADD_RULE", "DECIDE" };

static const struct prop_spec policy_spec = {
	.symbol = "policy_spec",
	.kinds = kinds,
	.n_kinds = 2,
	.seeds = 2000,
	.length = 150,
	.generate = generate,
	.setup = setup,
	.step = step,
	.teardown = teardown,
};

static void test_compiled_views_decide_as_all_rules_in_order(void **state)
{
	prop_run(&policy_spec);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_compiled_views_decide_as_all_rules_in_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
