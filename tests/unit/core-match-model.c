// SPDX-License-Identifier: LGPL-2.1-or-later
/* Random entries and signals, against a scan over all rules of all sets (spec §11). */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base.h"
#include "failalloc.h"
#include "item.h"
#include "kdbus.h"
#include "match.h"
#include "names.h"
#include "prop.h"

#define N_SETS	  5
#define N_SENDERS 3
#define N_NAMES	  4
#define N_RULES	  3
#define N_FIELDS  6
#define N_ENTRIES 256
#define BLOOM	  16
#define WORDS	  (BLOOM / 8)
#define ANY	  KDBUS_MATCH_ID_ANY

enum {
	ADD,
	REMOVE,
	CLEAR,
	ACQUIRE,
	RELEASE,
	USER,
	NOTE
};

static const char *const kinds[] = {
	"ADD", "REMOVE", "CLEAR", "ACQUIRE", "RELEASE", "USER", "NOTE",
};
/* The last one is malformed. */
static const char *const strings[N_NAMES] = { "a.a", "b.b", "b.bb", "b" };
static const u64 note_types[] = {
	KDBUS_ITEM_ID_ADD,	KDBUS_ITEM_ID_REMOVE,	KDBUS_ITEM_NAME_ADD,
	KDBUS_ITEM_NAME_REMOVE, KDBUS_ITEM_NAME_CHANGE,
};

/* One rule in plain words; type 0 is none. */
struct rule {
	u64 type;
	u64 id, new_id;
	/* NULL: no name bytes */
	const char *name;
	size_t n_fields;
	u64 mask[N_FIELDS][WORDS];
};

struct entry {
	u64 cookie;
	struct rule rules[N_RULES];
};

struct model_set {
	struct entry entries[N_ENTRIES];
	int n;
};

struct world {
	struct core_match_index index;
	struct core_match_set sets[N_SETS];
	struct core_names names;
	struct core_name_holder senders[N_SENDERS];
	struct model_set model[N_SETS];
	unsigned long live;
};

/* An argument is a source of small numbers. */
static u64 take(u64 *arg, u64 n)
{
	u64 value = *arg % n;

	*arg /= n;
	return value;
}

static u64 take_id(u64 *arg)
{
	static const u64 ids[] = { ANY, 0, 1, 2, 3 };

	return ids[take(arg, ARRAY_SIZE(ids))];
}

/* Few bits of few, so that fields and filters often meet. */
static void take_bits(u64 *arg, u64 words[WORDS])
{
	static const u64 patterns[] = { 0, 1, 2, 3, 4, 6, 9, 15 };
	u64 pattern = patterns[take(arg, ARRAY_SIZE(patterns))];

	words[0] = pattern & 3;
	words[1] = (pattern >> 2) << 62;
}

static void decode_rule(u64 arg, struct rule *rule)
{
	static const u64 types[] = {
		0,
		KDBUS_ITEM_BLOOM_MASK,
		KDBUS_ITEM_BLOOM_MASK,
		KDBUS_ITEM_NAME,
		KDBUS_ITEM_ID,
		KDBUS_ITEM_DST_ID,
		KDBUS_ITEM_NEGOTIATE,
		1,
		1,
		1,
		1,
	};
	static const char *const names[] = { NULL, NULL, "a.a", "b.b", "b.bb", "" };

	memset(rule, 0, sizeof(*rule));
	rule->type = types[take(&arg, ARRAY_SIZE(types))];
	if (rule->type == 1)
		rule->type = note_types[take(&arg, ARRAY_SIZE(note_types))];
	if (rule->type == KDBUS_ITEM_BLOOM_MASK) {
		rule->n_fields = 1 + take(&arg, N_FIELDS);
		for (size_t i = 0; i < rule->n_fields; i++)
			take_bits(&arg, rule->mask[i]);
	} else if (rule->type == KDBUS_ITEM_NAME) {
		/* seldom the malformed one */
		rule->name = strings[take(&arg, 13) ? take(&arg, N_NAMES - 1) : N_NAMES - 1];
	} else {
		rule->id = take_id(&arg);
		rule->new_id = take_id(&arg);
		rule->name = names[take(&arg, ARRAY_SIZE(names))];
	}
}

static void put_rule(struct core_writer *items, const struct rule *rule)
{
	struct kdbus_notify_name_change change = { .old_id = { .id = rule->id },
						   .new_id = { .id = rule->new_id } };
	size_t size = rule->name ? strlen(rule->name) + 1 : 0;
	char *payload;

	switch (rule->type) {
	case 0:
		break;
	case KDBUS_ITEM_BLOOM_MASK:
		core_put(items, rule->type, rule->mask, rule->n_fields * BLOOM);
		break;
	case KDBUS_ITEM_NAME:
		core_put_str(items, rule->type, rule->name);
		break;
	case KDBUS_ITEM_NAME_ADD:
	case KDBUS_ITEM_NAME_REMOVE:
	case KDBUS_ITEM_NAME_CHANGE:
		payload = core_writer_item(items, rule->type, sizeof(change) + size);
		memcpy(payload, &change, sizeof(change));
		if (size)
			memcpy(payload + sizeof(change), rule->name, size);
		break;
	case KDBUS_ITEM_ID_ADD:
	case KDBUS_ITEM_ID_REMOVE:
		core_put(items, rule->type, &change.old_id, sizeof(change.old_id));
		break;
	default:
		core_put_u64(items, rule->type, rule->id);
	}
}

/* The model */

static bool is_note(u64 type)
{
	for (size_t i = 0; i < ARRAY_SIZE(note_types); i++)
		if (type == note_types[i])
			return true;
	return false;
}

static bool id_fits(u64 rule, u64 id)
{
	return rule == ANY || rule == id;
}

static bool bits_fit(const struct rule *rule, const struct core_signal *signal)
{
	size_t field = signal->user.generation < rule->n_fields ? signal->user.generation :
								  rule->n_fields - 1;

	for (int bit = 0; bit < BLOOM * 8; bit++)
		if ((rule->mask[field][bit / 64] >> (bit % 64) & 1) &&
		    !(signal->user.filter[bit / 64] >> (bit % 64) & 1))
			return false;
	return true;
}

static bool owns(const struct world *world, u64 id, const char *string)
{
	const struct core_name *name = core_names_find(&world->names, string);

	return name && core_name_owner(name)->holder->id == id;
}

static bool rule_fits(const struct world *world, const struct rule *rule,
		      const struct core_signal *signal)
{
	if (rule->type == 0 || rule->type == KDBUS_ITEM_NEGOTIATE)
		return true;
	if (is_note(rule->type) ? signal->type != rule->type : signal->type != 0)
		return false;
	switch (rule->type) {
	case KDBUS_ITEM_BLOOM_MASK:
		return bits_fit(rule, signal);
	case KDBUS_ITEM_NAME:
		return owns(world, signal->user.src_id, rule->name);
	case KDBUS_ITEM_ID:
		return id_fits(rule->id, signal->user.src_id);
	case KDBUS_ITEM_DST_ID:
		return id_fits(rule->id, signal->user.dst_id);
	case KDBUS_ITEM_ID_ADD:
	case KDBUS_ITEM_ID_REMOVE:
		return id_fits(rule->id, signal->note.id);
	default:
		return id_fits(rule->id, signal->note.old_id) &&
		       id_fits(rule->new_id, signal->note.new_id) &&
		       (!rule->name || strcmp(rule->name, signal->note.name) == 0);
	}
}

static bool entry_fits(const struct world *world, const struct entry *entry,
		       const struct core_signal *signal)
{
	for (int i = 0; i < N_RULES; i++)
		if (!rule_fits(world, &entry->rules[i], signal))
			return false;
	return true;
}

static bool set_fits(const struct world *world, int who, const struct core_signal *signal)
{
	for (int i = 0; i < world->model[who].n; i++)
		if (entry_fits(world, &world->model[who].entries[i], signal))
			return true;
	return false;
}

static int model_remove(struct model_set *set, u64 cookie)
{
	int n = 0, before = set->n;

	for (int i = 0; i < set->n; i++)
		if (set->entries[i].cookie != cookie)
			set->entries[n++] = set->entries[i];
	set->n = n;
	return n == before ? -EBADSLT : 0;
}

static int model_add(struct model_set *set, const struct entry *entry, bool replace)
{
	for (int i = 0; i < N_RULES; i++)
		if (entry->rules[i].type == KDBUS_ITEM_NAME &&
		    entry->rules[i].name == strings[N_NAMES - 1])
			return -EINVAL;
	if (replace)
		model_remove(set, entry->cookie);
	if (set->n == N_ENTRIES)
		return -EMFILE;
	set->entries[set->n++] = *entry;
	return 0;
}

/* Steps */

static bool same_result(struct world *world, int who, int got, int expected,
			struct prop_report *report)
{
	if (got != expected)
		return prop_differ(report, "result %d, not %d", got, expected);
	if (world->sets[who].n_entries != world->model[who].n)
		return prop_differ(report, "set %d has %u entries, not %d", who,
				   world->sets[who].n_entries, world->model[who].n);
	return true;
}

static bool step_add(struct world *world, const struct prop_op *op, int who,
		     struct prop_report *report)
{
	u64 buffer[128];
	struct core_writer items = CORE_WRITER(buffer, sizeof(buffer));
	bool replace = op->arg[1] % 8 >= 6;
	struct entry entry = { .cookie = op->arg[1] % 3 };
	size_t size;
	int got;

	for (int i = 0; i < N_RULES; i++) {
		decode_rule(op->arg[2 + i], &entry.rules[i]);
		put_rule(&items, &entry.rules[i]);
	}
	if (core_writer_end(&items, &size))
		abort();
	got = core_match_add(&world->sets[who], entry.cookie, replace ? KDBUS_MATCH_REPLACE : 0,
			     (void *)buffer, size);
	/* Rules are a copy. */
	memset(buffer, 0xa5, sizeof(buffer));
	return same_result(world, who, got, model_add(&world->model[who], &entry, replace), report);
}

static void visit(struct core_match_set *set, void *data)
{
	struct world *world = data;

	/* The count of visits rides on the model, out of the subject's sight. */
	world->model[set - world->sets].n += 1000;
}

static bool same_receivers(struct world *world, const struct core_signal *signal,
			   struct prop_report *report)
{
	bool broadcast = signal->type || signal->user.dst_id == ANY;

	if (broadcast)
		core_match_find(&world->index, signal, visit, world);
	for (int who = 0; who < N_SETS; who++) {
		int visits = world->model[who].n / 1000;
		bool expected;

		world->model[who].n %= 1000;
		expected = set_fits(world, who, signal);
		if (core_match_test(&world->sets[who], signal) != expected)
			return prop_differ(report, "set %d: %d expected", who, expected);
		if (broadcast && visits != expected)
			return prop_differ(report, "set %d: %d visits, not %d", who, visits,
					   expected);
	}
	return true;
}

static bool step_user(struct world *world, const struct prop_op *op, int who,
		      struct prop_report *report)
{
	u64 arg = op->arg[1], filter[WORDS];
	struct core_signal signal = {
		.user = { .src_id = who + 1, .names = &world->senders[who], .filter = filter }
	};

	signal.user.dst_id = take(&arg, 3) ? ANY : take(&arg, 4);
	signal.user.generation = take(&arg, 9);
	if (signal.user.generation == 8)
		signal.user.generation = ~0ULL;
	take_bits(&arg, filter);
	return same_receivers(world, &signal, report);
}

static bool step_note(struct world *world, const struct prop_op *op, struct prop_report *report)
{
	u64 arg = op->arg[1];
	struct core_signal signal = { .type = note_types[op->arg[0] % ARRAY_SIZE(note_types)] };

	if (signal.type == KDBUS_ITEM_ID_ADD || signal.type == KDBUS_ITEM_ID_REMOVE) {
		signal.note.id = 1 + take(&arg, 3);
	} else {
		signal.note.old_id = signal.type == KDBUS_ITEM_NAME_ADD ? 0 : 1 + take(&arg, 3);
		signal.note.new_id = signal.type == KDBUS_ITEM_NAME_REMOVE ? 0 : 1 + take(&arg, 3);
		signal.note.name = strings[take(&arg, N_NAMES - 1)];
	}
	return same_receivers(world, &signal, report);
}

static void step_name(struct world *world, const struct prop_op *op)
{
	struct core_name_holder *holder = &world->senders[op->arg[0] % N_SENDERS];
	const char *name = strings[op->arg[1] % (N_NAMES - 1)];
	struct core_name_change change;
	u64 flags;
	int r;

	if (op->kind == ACQUIRE)
		r = core_names_acquire(&world->names, holder, name, KDBUS_NAME_QUEUE, &flags,
				       &change);
	else
		r = core_names_release(&world->names, holder, name, &change);
	if (!r)
		core_name_change_done(&change);
}

static bool step(void *state, const struct prop_op *op, struct prop_report *report)
{
	struct world *world = state;
	int who = op->arg[0] % N_SETS;

	switch (op->kind) {
	case ADD:
		return step_add(world, op, who, report);
	case REMOVE:
		return same_result(world, who, core_match_remove(&world->sets[who], op->arg[1] % 3),
				   model_remove(&world->model[who], op->arg[1] % 3), report);
	case CLEAR:
		core_match_clear(&world->sets[who]);
		world->model[who].n = 0;
		return same_result(world, who, 0, 0, report);
	case USER:
		return step_user(world, op, op->arg[0] % N_SENDERS, report);
	case NOTE:
		return step_note(world, op, report);
	default:
		step_name(world, op);
		return true;
	}
}

static void *setup(void)
{
	struct world *world = calloc(1, sizeof(*world));

	if (!world)
		abort();
	world->live = failalloc_live();
	core_match_index_init(&world->index, BLOOM);
	core_names_init(&world->names);
	for (int i = 0; i < N_SETS; i++)
		core_match_set_init(&world->sets[i], &world->index);
	for (int i = 0; i < N_SENDERS; i++)
		core_name_holder_init(&world->senders[i], i + 1);
	return world;
}

static bool teardown(void *state, struct prop_report *report)
{
	struct world *world = state;
	struct core_name_change change;
	unsigned long live = world->live;
	bool empty = true;

	for (int i = 0; i < N_SETS; i++)
		core_match_clear(&world->sets[i]);
	for (int i = 0; i < CORE_MATCH_KINDS; i++)
		empty = empty && RB_EMPTY_ROOT(&world->index.trees[i]);
	for (int i = 0; i < N_SENDERS; i++) {
		while (core_names_release_next(&world->names, &world->senders[i], &change))
			core_name_change_done(&change);
		core_name_holder_deinit(&world->senders[i]);
	}
	core_names_deinit(&world->names);
	free(world);
	if (!empty)
		return prop_differ(report, "the index is not empty");
	if (failalloc_live() != live)
		return prop_differ(report, "%lu allocations leaked", failalloc_live() - live);
	return true;
}

static void generate(struct prop_rng *rng, struct prop_op *op)
{
	u64 dice = prop_below(rng, 100);

	op->kind = dice < 30 ? ADD :
		   dice < 36 ? REMOVE :
		   dice < 38 ? CLEAR :
		   dice < 44 ? ACQUIRE :
		   dice < 48 ? RELEASE :
		   dice < 80 ? USER :
			       NOTE;
	op->arg[0] = prop_below(rng, 15);
	op->arg[1] = prop_below(rng, 100000000);
	if (op->kind != ADD)
		return;
	/* Long entries seldom match: most have one rule. */
	op->arg[2] = prop_random(rng);
	op->arg[3] = prop_one_in(rng, 2) ? prop_random(rng) : 0;
	op->arg[4] = prop_one_in(rng, 4) ? prop_random(rng) : 0;
}

static const struct prop_spec match_spec = {
	.symbol = "match_spec",
	.kinds = kinds,
	.n_kinds = ARRAY_SIZE(kinds),
	.seeds = 300,
	.length = 250,
	.generate = generate,
	.setup = setup,
	.step = step,
	.teardown = teardown,
};

static void searches_and_tests_find_what_a_scan_finds(void **state)
{
	prop_run(&match_spec);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(searches_and_tests_find_what_a_scan_finds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
