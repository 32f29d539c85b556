// SPDX-License-Identifier: LGPL-2.1-or-later
/* The rules of dbus-daemon(1), "<policy>" and "<deny>", one by one, and what a decision costs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/classic/policy-internal.h"
#include "dbus/header.h"

unsigned long policy_looks;

#define RULE(...) ((struct policy_rule){ .max_fds = UINT32_MAX, .file = "f", __VA_ARGS__ })

/* As the configuration has them: the default for replies follows from the element */
#define ALLOW(kind_, ...) RULE(.kind = kind_, .allow = true, .requested_reply = true, __VA_ARGS__)
#define DENY(kind_, ...)  RULE(.kind = kind_, __VA_ARGS__)

static struct policy *policy;

static int setup(void **state)
{
	policy = policy_new();
	return policy ? 0 : -1;
}

static int teardown(void **state)
{
	policy_unref(policy);
	return 0;
}

static void add(enum policy_context context, uint32_t id, struct policy_rule rule)
{
	static unsigned int line;

	if (!rule.line)
		rule.line = ++line;
	assert_int_equal(policy_add(policy, context, id, &rule), 0);
}

static void add_default(struct policy_rule rule)
{
	add(POLICY_DEFAULT, 0, rule);
}

static struct policy_view *view_of(uid_t uid)
{
	struct policy_view *view;

	assert_int_equal(policy_view_make(policy, uid, &uid, 1, false, &view), 0);
	return view;
}

static bool may_own(uid_t uid, const char *name)
{
	struct policy_view *view = view_of(uid);
	bool allowed = policy_may_own(view, name).allowed;

	policy_view_unref(view);
	return allowed;
}

static bool may_send(struct policy_msg m, const char *to)
{
	struct policy_view *view = view_of(1);
	const struct policy_peer peer = policy_peer_of(to);
	bool allowed = policy_may_send(view, &m, to ? &peer : NULL).allowed;

	policy_view_unref(view);
	return allowed;
}

static bool may_receive(struct policy_msg m, const char *from)
{
	struct policy_view *view = view_of(1);
	const struct policy_peer peer = policy_peer_of(from);
	bool allowed = policy_may_receive(view, &m, &peer).allowed;

	policy_view_unref(view);
	return allowed;
}

#define MSG(type_, ...) ((struct policy_msg){ .type = type_, __VA_ARGS__ })
#define CALL(...)	MSG(DBUSP_METHOD_CALL, __VA_ARGS__)

static void test_nothing_is_allowed_without_a_rule(void **state)
{
	assert_false(may_own(0, "a.b"));
	assert_false(may_send(CALL(), "a.b"));
	assert_false(may_receive(CALL(), "a.b"));
}

static void test_the_last_rule_that_matches_decides(void **state)
{
	add_default(ALLOW(POLICY_OWN));
	add_default(DENY(POLICY_OWN, .name = "a.b"));
	add_default(ALLOW(POLICY_OWN, .name = "a.b"));
	add_default(DENY(POLICY_OWN, .name = "a.c"));
	assert_true(may_own(1, "a.b"));
	assert_false(may_own(1, "a.c"));
	assert_true(may_own(1, "a.d"));
}

static void test_contexts_apply_in_their_order(void **state)
{
	add(POLICY_MANDATORY, 0, DENY(POLICY_OWN, .name = "a.mandatory"));
	add(POLICY_NOT_AT_CONSOLE, 0, ALLOW(POLICY_OWN, .name = "a.console"));
	add(POLICY_USER, 1, DENY(POLICY_OWN, .name = "a.console"));
	add(POLICY_USER, 1, ALLOW(POLICY_OWN, .name = "a.user"));
	add(POLICY_USER, 1, ALLOW(POLICY_OWN, .name = "a.mandatory"));
	add(POLICY_GROUP, 1, DENY(POLICY_OWN, .name = "a.user"));
	add(POLICY_GROUP, 1, ALLOW(POLICY_OWN, .name = "a.group"));
	add_default(DENY(POLICY_OWN, .name = "a.group"));
	assert_true(may_own(1, "a.group"));
	assert_true(may_own(1, "a.user"));
	assert_true(may_own(1, "a.console"));
	assert_false(may_own(1, "a.mandatory"));
	/* another user, and another group */
	assert_false(may_own(2, "a.group"));
	assert_false(may_own(2, "a.user"));
	assert_true(may_own(2, "a.console"));
}

static void test_prefixes_are_whole_elements(void **state)
{
	add_default(ALLOW(POLICY_OWN, .name = "a.b", .prefix = true));
	add_default(ALLOW(POLICY_SEND, .name = "a.b", .prefix = true));
	assert_true(may_own(1, "a.b"));
	assert_true(may_own(1, "a.b.c.d"));
	assert_false(may_own(1, "a.bc"));
	assert_false(may_own(1, "a"));
	assert_true(may_send(CALL(), "a.b.c"));
	assert_false(may_send(CALL(), "a.bc"));
	assert_false(may_send(CALL(), NULL));
}

/* "the interface field in messages is optional" */
static void test_messages_without_interface(void **state)
{
	add_default(ALLOW(POLICY_SEND));
	add_default(DENY(POLICY_SEND, .interface = "i.denied"));
	assert_false(may_send(CALL(.interface = DBUSP_STR("i.denied")), "a.b"));
	assert_true(may_send(CALL(.interface = DBUSP_STR("i.other")), "a.b"));
	assert_false(may_send(CALL(), "a.b"));
	add_default(ALLOW(POLICY_SEND, .interface = "i.allowed", .name = "c.d"));
	assert_true(may_send(CALL(.interface = DBUSP_STR("i.allowed")), "c.d"));
	assert_false(may_send(CALL(), "c.d"));
}

static const char *next_of_two(const struct policy_peer *peer, void **cursor)
{
	const char *const *names = *cursor ? *cursor : peer->arg;

	if (!*names)
		return NULL;
	*cursor = (void *)(names + 1);
	return *names;
}

/* "sending to A is denied, sending to B or C will not work either" */
static void test_any_name_of_the_receiver_counts(void **state)
{
	static const char *const names[] = { ":1.1", "a.a", "b.b", NULL };
	const struct policy_peer peer = { next_of_two, names };
	struct policy_view *view;
	struct policy_msg m = CALL();

	add_default(ALLOW(POLICY_SEND));
	add_default(DENY(POLICY_SEND, .name = "b.b"));
	view = view_of(1);
	assert_false(policy_may_send(view, &m, &peer).allowed);
	assert_true(may_send(CALL(), "a.a"));
	policy_view_unref(view);
}

static void test_requested_replies(void **state)
{
	const struct policy_msg wanted = MSG(DBUSP_METHOD_RETURN, .reply = true,
					     .requested_reply = true);
	const struct policy_msg unwanted = MSG(DBUSP_METHOD_RETURN, .reply = true);

	add_default(ALLOW(POLICY_SEND, .type = DBUSP_METHOD_RETURN));
	assert_true(may_send(wanted, "a.b"));
	assert_false(may_send(unwanted, "a.b"));
	add_default(RULE(.kind = POLICY_SEND, .allow = true, .name = "a.b"));
	assert_true(may_send(unwanted, "a.b"));
	/* a deny is about those nobody asked for, unless it says otherwise */
	add_default(DENY(POLICY_SEND, .name = "a.b"));
	assert_true(may_send(wanted, "a.b"));
	assert_false(may_send(unwanted, "a.b"));
	add_default(DENY(POLICY_SEND, .name = "a.b", .requested_reply = true));
	assert_false(may_send(wanted, "a.b"));
}

static void test_eavesdropping(void **state)
{
	add_default(ALLOW(POLICY_RECEIVE));
	assert_true(may_receive(CALL(), "a.b"));
	assert_false(may_receive(CALL(.eavesdropping = true), "a.b"));
	add_default(ALLOW(POLICY_RECEIVE, .name = "a.b", .eavesdrop = true));
	assert_true(may_receive(CALL(.eavesdropping = true), "a.b"));
	add_default(DENY(POLICY_RECEIVE, .name = "a.b", .eavesdrop = true));
	assert_false(may_receive(CALL(.eavesdropping = true), "a.b"));
	assert_true(may_receive(CALL(), "a.b"));
}

static void test_broadcasts_and_descriptors(void **state)
{
	add_default(ALLOW(POLICY_SEND));
	add_default(DENY(POLICY_SEND, .broadcast = POLICY_TRUE));
	add_default(DENY(POLICY_SEND, .min_fds = 2));
	assert_false(may_send(MSG(DBUSP_SIGNAL, .broadcast = true), NULL));
	assert_true(may_send(MSG(DBUSP_SIGNAL), "a.b"));
	assert_true(may_send(CALL(.n_fds = 1), "a.b"));
	assert_false(may_send(CALL(.n_fds = 2), "a.b"));
}

/* policy.h, rule 6 */
static void test_a_rule_about_everything_has_others_forgotten(void **state)
{
	const struct policy_msg wanted = MSG(DBUSP_METHOD_RETURN, .reply = true,
					     .requested_reply = true);

	add_default(ALLOW(POLICY_SEND));
	assert_true(may_send(wanted, "a.b"));
	add_default(DENY(POLICY_SEND));
	assert_false(may_send(wanted, "a.b"));
}

static void test_a_view_that_always_says_the_same_knows(void **state)
{
	struct policy_view *view;
	bool allowed;

	add_default(ALLOW(POLICY_SEND, .eavesdrop = true));
	add_default(ALLOW(POLICY_RECEIVE, .eavesdrop = true));
	add_default(ALLOW(POLICY_OWN));
	view = view_of(1);
	assert_true(policy_view_is_constant(view, POLICY_SEND, &allowed) && allowed);
	assert_true(policy_view_is_constant(view, POLICY_RECEIVE, &allowed) && allowed);
	assert_true(policy_view_is_constant(view, POLICY_OWN, &allowed) && allowed);
	policy_looks = 0;
	assert_true(may_send(CALL(.interface = DBUSP_STR("i.a")), "a.b"));
	assert_int_equal(policy_looks, 0);
	policy_view_unref(view);
}

static void test_equal_sections_share_a_view(void **state)
{
	struct policy_view *one, *two, *three;

	add(POLICY_USER, 3, ALLOW(POLICY_OWN));
	one = view_of(1);
	two = view_of(2);
	three = view_of(3);
	assert_ptr_equal(one, two);
	assert_ptr_not_equal(one, three);
	policy_view_unref(one);
	policy_view_unref(two);
	policy_view_unref(three);
}

static void test_who_may_connect(void **state)
{
	const gid_t gids[] = { 5, 6 };

	assert_true(policy_may_connect(policy, 1, gids, 2, true).allowed);
	assert_false(policy_may_connect(policy, 1, gids, 2, false).allowed);
	add(POLICY_MANDATORY, 0, DENY(POLICY_CONNECT_USER, .id = 2));
	add_default(ALLOW(POLICY_CONNECT_USER, .id = POLICY_EVERYBODY));
	add_default(DENY(POLICY_CONNECT_GROUP, .id = 6));
	add_default(ALLOW(POLICY_CONNECT_USER, .id = 2));
	assert_true(policy_may_connect(policy, 1, gids, 1, false).allowed);
	assert_false(policy_may_connect(policy, 1, gids, 2, false).allowed);
	assert_false(policy_may_connect(policy, 2, gids, 1, true).allowed);
}

static void test_a_denial_names_its_rule(void **state)
{
	struct policy_view *view;
	struct policy_verdict v;

	add_default(ALLOW(POLICY_OWN));
	add_default(DENY(POLICY_OWN, .name = "a.b", .line = 77));
	view = view_of(1);
	v = policy_may_own(view, "a.b");
	assert_false(v.allowed);
	assert_int_equal(v.rule->line, 77);
	assert_string_equal(v.rule->file, "f");
	policy_view_unref(view);
}

/* ---- cost ---- */

/* The rules of many services: what packages install on a system bus */
static void add_services(unsigned int n)
{
	char name[64], interface[64], member[64];
	unsigned int i;

	add_default(DENY(POLICY_SEND, .type = DBUSP_METHOD_CALL));
	add_default(DENY(POLICY_OWN));
	for (i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "org.example.Service%u", i);
		snprintf(interface, sizeof(interface), "org.example.Interface%u", i);
		snprintf(member, sizeof(member), "Member%u", i);
		add_default(ALLOW(POLICY_SEND, .name = name));
		add_default(ALLOW(POLICY_OWN, .name = name, .prefix = i % 2));
		add_default(DENY(POLICY_SEND, .name = name, .interface = interface,
				 .member = member));
		add_default(ALLOW(POLICY_SEND, .interface = interface, .name = name, .path = "/"));
		add_default(DENY(POLICY_SEND, .name = name, .prefix = true, .member = member,
				 .path = "/x"));
	}
}

static unsigned long cost_with(unsigned int n)
{
	const struct policy_peer peer = policy_peer_of("org.example.Service7");
	struct policy_view *view;
	unsigned long cost;
	struct policy_msg m = CALL(.path = DBUSP_STR("/"), .member = DBUSP_STR("Member8"),
				   .interface = DBUSP_STR("org.example.Interface7"));

	policy_unref(policy);
	policy = policy_new();
	assert_non_null(policy);
	add_services(n);
	view = view_of(1);
	policy_looks = 0;
	assert_true(policy_may_send(view, &m, &peer).allowed);
	assert_true(policy_may_own(view, "org.example.Service7").allowed);
	assert_false(policy_may_own(view, "org.example.Nobody").allowed);
	cost = policy_looks;
	policy_view_unref(view);
	return cost;
}

/* Hash tables are at most half full: some looks more or less are chance, growth is not. */
static void test_rules_that_do_not_concern_a_message_cost_nothing(void **state)
{
	const unsigned long few = cost_with(10), more = cost_with(1000), many = cost_with(20000);

	assert_true(few > 0);
	assert_true(more <= 3 * few);
	assert_true(many <= 3 * few);
}

#define test(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(test_nothing_is_allowed_without_a_rule),
		test(test_the_last_rule_that_matches_decides),
		test(test_contexts_apply_in_their_order),
		test(test_prefixes_are_whole_elements),
		test(test_messages_without_interface),
		test(test_any_name_of_the_receiver_counts),
		test(test_requested_replies),
		test(test_eavesdropping),
		test(test_broadcasts_and_descriptors),
		test(test_a_rule_about_everything_has_others_forgotten),
		test(test_a_view_that_always_says_the_same_knows),
		test(test_equal_sections_share_a_view),
		test(test_who_may_connect),
		test(test_a_denial_names_its_rule),
		test(test_rules_that_do_not_concern_a_message_cost_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
