// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The index of match rules (daemon/classic/match.h): against testing every rule, and what a search
 * costs.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/classic/classic.h"
#include "daemon/classic/match.h"
#include "dbus/build.h"
#include "dbus/match.h"

#define N_PEERS	 6
#define N_RULES	 60 /* different ones in a round */
#define N_NAMES	 3
#define ROUNDS	 300
#define MESSAGES 40

unsigned long core_steps;

/* Of the front-end: ":1.N" for a connection N */
struct dbusp_str unique_name(const struct peer *p, char *buf)
{
	int n = snprintf(buf, CLASSIC_UNIQUE_MAX, ":1.%llu", (unsigned long long)p->conn.id);

	return (struct dbusp_str){ buf, (uint32_t)n };
}

struct fixture {
	struct classic k;
	struct core_names names;
	struct cpeer peers[N_PEERS];
	unsigned int random;
};

static unsigned int pick(struct fixture *f, unsigned int n)
{
	f->random = f->random * 1103515245 + 12345;
	return (f->random >> 16) % n;
}

static void set_up_with(struct fixture *f, unsigned int seed, const struct dbusp_hash_key *key)
{
	unsigned int i;

	memset(f, 0, sizeof(*f));
	f->random = seed;
	f->k.hash_key = *key;
	assert_int_equal(matches_init(&f->k), 0);
	core_names_init(&f->names);
	for (i = 0; i < N_PEERS; i++) {
		f->peers[i].kind = PEER_CLASSIC;
		f->peers[i].state = CPEER_ACTIVE;
		f->peers[i].classic = &f->k;
		f->peers[i].conn.id = i;
		core_name_holder_init(&f->peers[i].conn.names, i);
	}
}

static void set_up(struct fixture *f, unsigned int seed)
{
	const struct dbusp_hash_key key = { { seed, 0 } };

	set_up_with(f, seed, &key);
}

static void tear_down(struct fixture *f)
{
	struct core_name_change change;
	unsigned int i;

	for (i = 0; i < N_PEERS; i++) {
		matches_end(&f->peers[i]);
		assert_int_equal(f->peers[i].n_rules, 0);
		while (core_names_release_next(&f->names, &f->peers[i].conn.names, &change))
			core_name_change_done(&change);
	}
	core_names_deinit(&f->names);
	matches_free(&f->k);
}

static void own(struct fixture *f, unsigned int peer, const char *name)
{
	struct core_name_change change;
	u64 flags;

	core_names_acquire(&f->names, &f->peers[peer].conn.names, name, KDBUS_NAME_QUEUE, &flags,
			   &change);
	core_name_change_done(&change);
}

/* ---- random rules and messages over few words, so that they meet ---- */

static const char *const senders[] = { ":1.0", ":1.1", "org.a", "org.b.c", "org.freedesktop.DBus" };
static const char *const interfaces[] = { "i.a", "i.b" };
static const char *const members[] = { "M", "N" };
static const char *const paths[] = { "/", "/a", "/a/b", "/a/bc", "/ab" };
static const char *const namespaces[] = { "x", "x.y", "x.y.z" };
static const char *const args[] = { "x",  "x.y",  "x.y.z", "/",	      "/a/",
				    "/a", "/a/b", "/a/b/", "/a/bc/d", "" };

#define PICK(f, words) ((words)[pick(f, sizeof(words) / sizeof((words)[0]))])

static void add(char *text, const char *key, const char *value)
{
	if (*text)
		strcat(text, ",");
	sprintf(text + strlen(text), "%s='%s'", key, value);
}

static void random_rule(struct fixture *f, struct dbusp_match_buf *ret)
{
	static const char *const arg_keys[] = { "arg0",	    "arg0path", "arg1",
						"arg1path", "arg2",	"arg2path" };
	static const char *const types[] = { "signal", "method_call" };
	char text[512] = "";

	if (pick(f, 2))
		add(text, "type", pick(f, 5) ? types[0] : types[1]);
	if (!pick(f, 3))
		add(text, "sender", PICK(f, senders));
	if (!pick(f, 2))
		add(text, "interface", PICK(f, interfaces));
	if (!pick(f, 2))
		add(text, "member", PICK(f, members));
	if (!pick(f, 3))
		add(text, pick(f, 2) ? "path" : "path_namespace", PICK(f, paths));
	if (!pick(f, 4))
		add(text, "arg0namespace", PICK(f, namespaces));
	else if (!pick(f, 2))
		add(text, PICK(f, arg_keys), PICK(f, args));
	if (!pick(f, 5))
		add(text, pick(f, 2) ? "arg3" : "arg3path", PICK(f, args));
	if (!pick(f, 6))
		add(text, "destination", PICK(f, senders));
	if (!pick(f, 3))
		add(text, "eavesdrop", "true");
	assert_int_equal(dbusp_match_parse(ret, text, strlen(text), NULL), 0);
}

#define N_ARGS 4

/* With as many arguments as its signature says */
static void make_message(const struct dbusp_desc *desc, const char *const *arguments,
			 struct cmsg *m)
{
	struct dbusp_build b;
	uint8_t *msg;
	size_t len;
	uint32_t i;

	dbusp_build_begin(&b, NULL, desc);
	for (i = 0; i < desc->signature.len; i++)
		dbusp_put_text(&b, desc->signature.s[i], dbusp_str(arguments[i]));
	assert_int_equal(dbusp_build_end(&b, &msg, &len), 0);
	memset(m, 0, sizeof(*m));
	assert_int_equal(dbusp_header_parse(&m->header, msg, len, DBUSP_MESSAGE_MAX, NULL), 0);
	m->raw = msg;
	m->body = msg + m->header.frame.header_len;
}

/* Returns the index of the peer it is addressed to, or -1. */
static int random_message(struct fixture *f, struct cmsg *m)
{
	int to = pick(f, 3) ? -1 : (int)pick(f, N_PEERS);
	struct dbusp_desc desc = { .type = to >= 0 && pick(f, 2) ? DBUSP_METHOD_CALL : DBUSP_SIGNAL,
				   .serial = 1,
				   .interface = dbusp_str(PICK(f, interfaces)),
				   .member = dbusp_str(PICK(f, members)),
				   .path = dbusp_str(PICK(f, paths)) };
	const char *arguments[N_ARGS] = { NULL };
	char signature[N_ARGS + 1] = "";
	static char sender[CLASSIC_UNIQUE_MAX];
	char name[CLASSIC_UNIQUE_MAX];
	unsigned int n = pick(f, N_ARGS + 1), i;

	for (i = 0; i < n; i++) {
		signature[i] = pick(f, 3) ? 's' : 'o';
		arguments[i] = signature[i] == 's' ? PICK(f, args) : PICK(f, paths);
	}
	if (to >= 0)
		desc.destination = unique_name(&f->peers[to].peer, name);
	desc.signature = dbusp_str(signature);
	make_message(&desc, arguments, m);
	m->from = pick(f, 5) ? &f->peers[pick(f, N_PEERS)].peer : NULL;
	m->sender = m->from ? unique_name(m->from, sender) : DBUSP_STR("org.freedesktop.DBus");
	return to;
}

/* ---- the other opinion: every rule is tested ---- */

struct model_rule {
	unsigned int peer;
	unsigned int count;
	struct dbusp_match_buf rule;
};

struct model {
	struct fixture *f;
	struct cmsg *m;
	int to;
};

static bool owns(const struct peer *p, struct dbusp_str name)
{
	const struct core_name_record *record;
	char text[64], unique[CLASSIC_UNIQUE_MAX];

	snprintf(text, sizeof(text), "%.*s", (int)name.len, name.s);
	if (text[0] == ':')
		return !strcmp(unique_name(p, unique).s, text);
	record = core_name_holder_find(&p->conn.names, text);
	return record && core_name_record_owns(record);
}

static bool sender_is(void *data, struct dbusp_str name)
{
	const struct model *model = data;

	return model->m->from ? owns(model->m->from, name) : dbusp_str_eq(name, model->m->sender);
}

static bool destination_is(void *data, struct dbusp_str name)
{
	const struct model *model = data;

	return model->to >= 0 && owns(&model->f->peers[model->to].peer, name);
}

static unsigned int expected(struct fixture *f, const struct model_rule *rules, unsigned int n,
			     struct cmsg *m, int to)
{
	struct model model = { f, m, to };
	struct dbusp_args arguments;
	const struct dbusp_match_subject subject = { .header = &m->header,
						     .args = &arguments,
						     .sender_is = sender_is,
						     .destination_is = destination_is,
						     .userdata = &model };
	unsigned int found = 0, i;

	dbusp_args_init(&arguments, &m->header, m->body);
	for (i = 0; i < n; i++)
		if (rules[i].count && (int)rules[i].peer != to &&
		    dbusp_match_test(&rules[i].rule.match, &subject))
			found |= 1U << rules[i].peer;
	return found;
}

static unsigned int found_peers;

static void visit(struct cpeer *c, struct cmsg *m)
{
	assert_false(found_peers & 1U << c->conn.id); /* once each */
	found_peers |= 1U << c->conn.id;
}

static void check_messages(struct fixture *f, const struct model_rule *rules, unsigned int n)
{
	unsigned int i;
	struct cmsg m;
	int to;

	for (i = 0; i < MESSAGES; i++) {
		to = random_message(f, &m);
		found_peers = 0;
		match_find(&f->k, &m, to >= 0 ? &f->peers[to].peer : NULL, visit);
		assert_int_equal(found_peers, expected(f, rules, n, &m, to));
		free((void *)m.raw);
	}
}

static void random_change(struct fixture *f, struct model_rule *rule)
{
	struct cpeer *c = &f->peers[rule->peer];
	int r;

	if (pick(f, 3)) {
		assert_int_equal(match_add(c, &rule->rule.match), 0);
		rule->count++;
		return;
	}
	r = match_remove(c, &rule->rule.match);
	assert_int_equal(r, rule->count ? 0 : -ENOENT);
	rule->count -= rule->count > 0;
}

/* Rules that mean the same are one to the index: the model must not have them twice. */
static bool is_known(const struct model_rule *rules, unsigned int n, const struct model_rule *rule)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		if (rules[i].peer == rule->peer &&
		    dbusp_match_equal(&rules[i].rule.match, &rule->rule.match))
			return true;
	return false;
}

static void test_like_testing_every_rule(void **state)
{
	static struct model_rule rules[N_RULES];
	static struct fixture f;
	unsigned int round, n, i;

	for (round = 0; round < ROUNDS; round++) {
		set_up(&f, round);
		for (i = 0; i < N_NAMES; i++)
			own(&f, pick(&f, N_PEERS), pick(&f, 2) ? "org.a" : "org.b.c");
		for (n = 0, i = 0; i < N_RULES; i++) {
			rules[n].peer = pick(&f, N_PEERS);
			rules[n].count = 0;
			random_rule(&f, &rules[n].rule);
			n += !is_known(rules, n, &rules[n]);
		}
		for (i = 0; i < 3 * n; i++)
			random_change(&f, &rules[pick(&f, n)]);
		check_messages(&f, rules, n);
		matches_end(&f.peers[0]);
		for (i = 0; i < n; i++)
			if (rules[i].peer == 0)
				rules[i].count = 0;
		check_messages(&f, rules, n);
		tear_down(&f);
	}
}

/* ---- cost ---- */

static void add_text(struct cpeer *c, const char *format, ...)
{
	struct dbusp_match_buf buf;
	char text[256];
	va_list list;

	va_start(list, format);
	vsnprintf(text, sizeof(text), format, list);
	va_end(list);
	assert_int_equal(dbusp_match_parse(&buf, text, strlen(text), NULL), 0);
	assert_int_equal(match_add(c, &buf.match), 0);
}

/* Rules of every shape that name something else */
static void add_strangers(struct fixture *f, unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n; i++) {
		struct cpeer *c = &f->peers[i % N_PEERS];

		add_text(c, "interface='i.x%u'", i);
		add_text(c, "interface='i.a',member='M%u'", i);
		add_text(c, "path='/p%u'", i);
		add_text(c, "path_namespace='/a/p%u'", i);
		add_text(c, "sender=':1.%u',interface='i.a'", i + 100);
		add_text(c, "interface='i.a',arg0='y%u'", i);
		add_text(c, "interface='i.a',arg0namespace='x.n%u'", i);
		add_text(c, "interface='i.a',arg1='y%u'", i);
		add_text(c, "interface='i.a',arg0path='/q%u'", i);
		add_text(c, "interface='i.a',member='M',arg1path='/q/q%u/'", i);
		add_text(c, "path_namespace='/a',arg1path='/q%u/'", i);
		add_text(c, "member='N%u'", i);
		add_text(c, "sender='org.n%u'", i);
		add_text(c, "arg0namespace='x.n%u'", i);
		add_text(c, "path_namespace='/a',arg0namespace='x.n%u'", i);
		add_text(c, "path_namespace='/a/p%u',arg0namespace='x.y'", i);
		add_text(c, "eavesdrop='true',interface='i.a',destination='a.n%u'", i);
		add_text(c, "eavesdrop='true',destination=':1.%u'", i + 100);
		add_text(c, "eavesdrop='true',arg0='y%u'", i);
		add_text(c, "eavesdrop='true',path_namespace='/a',arg0namespace='x.n%u'", i);
		add_text(c, "eavesdrop='true',type='error',arg0='x.y',arg1='n%u'", i);
	}
}

/* @to: -1: a broadcast; else a peer to whom it goes, which another one sees */
static unsigned long cost_of_search(unsigned int strangers, int to)
{
	static const char *const arguments[] = { "x.y", "/q/r/" };
	static struct fixture f;
	struct dbusp_desc desc = { .type = DBUSP_SIGNAL,
				   .serial = 1,
				   .interface = DBUSP_STR("i.a"),
				   .member = DBUSP_STR("M"),
				   .path = DBUSP_STR("/a/b"),
				   .signature = DBUSP_STR("ss") };
	char sender[CLASSIC_UNIQUE_MAX], name[CLASSIC_UNIQUE_MAX];
	unsigned long steps;
	struct cmsg m;

	set_up(&f, 1);
	add_strangers(&f, strangers);
	if (to >= 0)
		desc.destination = unique_name(&f.peers[to].peer, name);
	add_text(&f.peers[0], to < 0 ? "interface='i.a',member='M'" :
				       "eavesdrop='true',interface='i.a',member='M'");
	make_message(&desc, arguments, &m);
	m.from = &f.peers[1].peer;
	m.sender = unique_name(m.from, sender);
	found_peers = 0;
	core_steps = 0;
	match_find(&f.k, &m, to < 0 ? NULL : &f.peers[to].peer, visit);
	steps = core_steps;
	assert_int_equal(found_peers, 1);
	free((void *)m.raw);
	tear_down(&f);
	return steps;
}

/*
 * Of 210000 rules that do not concern a message a search sees no more than chance puts in its way,
 * and twenty times the way down the tree of 30000 paths.
 */
static void test_strangers_cost_nothing(void **state)
{
	assert_true(cost_of_search(10, -1) < 60 + 20 * 2 * 15);
	assert_true(cost_of_search(10000, -1) < 60 + 20 * 2 * 15);
	assert_true(cost_of_search(10, 2) < 60);
	assert_true(cost_of_search(10000, 2) < 60);
}

/* ---- hostile messages ---- */

#define WAYS 100 /* names of the sender, and elements of a path and of an argument */

/* Rules of every shape that a broadcast may match, twice each, of which none does */
static unsigned int add_all_shapes(struct fixture *f)
{
	static const char *const parts[] = { "sender='no.one'", "interface='i.a'", "member='M'" };
	static const char *const where[] = { "", "path='/no'", "path_namespace='/no'" };
	static const char *const what[] = { "arg0='no%u'", "arg0namespace='no.n%u'", "arg1='no%u'",
					    "arg1path='/no%u'" };
	unsigned int i, j, n = 0;
	char text[256], last[32];

	for (i = 0; i < 8 * 3 * 4 * 2; i++, n++) {
		text[0] = '\0';
		for (j = 0; j < 3; j++)
			if (i >> j & 1)
				strcat(strcat(text, parts[j]), ",");
		if (*where[i / 8 % 3])
			strcat(strcat(text, where[i / 8 % 3]), ",");
		snprintf(last, sizeof(last), what[i / 24 % 4], i);
		add_text(&f->peers[i % N_PEERS], "%s%s", text, last);
	}
	return n;
}

static void fill(char *text, size_t size, const char *element)
{
	unsigned int i;

	text[0] = '\0';
	for (i = 0; i < WAYS; i++)
		strncat(text, element, size - strlen(text) - 1);
}

/* A message that has each part in many ways costs no more than a look at each rule. */
static void test_many_ways_cost_one(void **state)
{
	static struct fixture f;
	char path[4 * WAYS], namespace[4 * WAYS], name[32], sender[CLASSIC_UNIQUE_MAX];
	const char *const arguments[] = { namespace + 1, path };
	const struct dbusp_desc desc = { .type = DBUSP_SIGNAL,
					 .serial = 1,
					 .interface = DBUSP_STR("i.a"),
					 .member = DBUSP_STR("M"),
					 .path = { path, 2 * WAYS },
					 .signature = DBUSP_STR("so") };
	unsigned int n, i;
	struct cmsg m;

	set_up(&f, 1);
	fill(path, sizeof(path), "/p");
	fill(namespace, sizeof(namespace), ".x");
	n = add_all_shapes(&f);
	for (i = 0; i < WAYS; i++) {
		snprintf(name, sizeof(name), "org.n%u", i);
		own(&f, 1, name);
	}
	make_message(&desc, arguments, &m);
	m.from = &f.peers[1].peer;
	m.sender = unique_name(m.from, sender);
	found_peers = 0;
	core_steps = 0;
	match_find(&f.k, &m, NULL, visit);
	assert_int_equal(found_peers, 0);
	/* A test of a rule about a sender looks for the name among his. */
	assert_true(core_steps < 8 * n);
	free((void *)m.raw);
	tear_down(&f);
}

/* ---- hostile rules ---- */

#define STAGES	 10 /* 2^STAGES texts with one hash */
#define BLOCK	 6 /* letters of a stage */
#define FNV_SEEN (1U << 17)

static uint32_t fnv(uint32_t h, const char *s, size_t len)
{
	while (len--)
		h = (h ^ (unsigned char)*s++) * 0x01000193U;
	return h;
}

static void spell(char block[BLOCK], unsigned int n)
{
	unsigned int i;

	for (i = 0; i < BLOCK; i++, n /= 26)
		block[i] = (char)('a' + n % 26);
}

/* Two blocks that take the hash without a key from @h to the same place, which is returned. */
static uint32_t find_pair(uint32_t h, char pair[2][BLOCK])
{
	static struct {
		uint32_t h;
		unsigned int n;
	} seen[FNV_SEEN];
	unsigned int n;
	uint32_t next, at;

	memset(seen, 0, sizeof(seen));
	for (n = 1;; n++) {
		spell(pair[1], n);
		next = fnv(h, pair[1], BLOCK);
		at = (next ^ next >> 16) % FNV_SEEN;
		if (seen[at].n && seen[at].h == next)
			break;
		seen[at].h = next;
		seen[at].n = n;
	}
	spell(pair[0], seen[at].n);
	return next;
}

/* Texts that all have the same hash, were it not for the key */
static void hostile_text(char pairs[STAGES][2][BLOCK], unsigned int which, char *text)
{
	unsigned int i;

	for (i = 0; i < STAGES; i++)
		memcpy(text + i * BLOCK, pairs[i][which >> i & 1], BLOCK);
	text[STAGES * BLOCK] = '\0';
}

static void test_nobody_makes_collisions(void **state)
{
	static const struct dbusp_hash_key key = { { 0x0123456789abcdef, 0xfedcba9876543210 } };
	static char pairs[STAGES][2][BLOCK];
	static struct fixture f;
	char text[STAGES * BLOCK + 1], sender[CLASSIC_UNIQUE_MAX];
	struct dbusp_desc desc = { .type = DBUSP_SIGNAL,
				   .serial = 1,
				   .interface = DBUSP_STR("i.a"),
				   .path = DBUSP_STR("/a") };
	uint32_t h = 0x811c9dc5;
	struct cmsg m;
	unsigned int i;

	for (i = 0; i < STAGES; i++)
		h = find_pair(h, pairs[i]);
	set_up_with(&f, 1, &key);
	for (i = 0; i < 1U << STAGES; i++) {
		hostile_text(pairs, i, text);
		assert_int_equal(fnv(0x811c9dc5, text, sizeof(text) - 1), h);
		add_text(&f.peers[0], "member='%s'", text);
	}
	desc.member = dbusp_str(text);
	make_message(&desc, (const char *const[]){ NULL }, &m);
	m.from = &f.peers[1].peer;
	m.sender = unique_name(m.from, sender);
	found_peers = 0;
	core_steps = 0;
	match_find(&f.k, &m, NULL, visit);
	assert_int_equal(found_peers, 1);
	assert_true(core_steps < 30);
	free((void *)m.raw);
	tear_down(&f);
}

/* A rule takes up to 250 bytes, tables included, if it is of a usual length. */
static void test_memory_of_a_rule(void **state)
{
	static const char rule[] = "type='signal',sender='org.freedesktop.DBus',"
				   "interface='org.freedesktop.DBus',member='NameOwnerChanged',"
				   "path='/org/freedesktop/DBus',arg0='org.example.Service'";
	struct dbusp_match_buf buf;

	assert_int_equal(dbusp_match_parse(&buf, rule, sizeof(rule) - 1, NULL), 0);
	assert_true(match_memory(&buf.match) <= 250);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_like_testing_every_rule),
		cmocka_unit_test(test_strangers_cost_nothing),
		cmocka_unit_test(test_many_ways_cost_one),
		cmocka_unit_test(test_nobody_makes_collisions),
		cmocka_unit_test(test_memory_of_a_rule),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
