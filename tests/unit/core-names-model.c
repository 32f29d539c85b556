// SPDX-License-Identifier: LGPL-2.1-or-later
/* Random requests for names, against a model made of arrays (spec §10). */
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
#include "kdbus.h"
#include "names.h"
#include "prop.h"

#define N_NAMES 5
#define N_HOLDERS 6

#define STORED (KDBUS_NAME_ALLOW_REPLACEMENT | KDBUS_NAME_QUEUE)
#define ANY_REQUEST (KDBUS_NAME_REPLACE_EXISTING | STORED)

enum { ACQUIRE, ATTACH, RELEASE, DISCONNECT };

static const char *const kinds[] = { "ACQUIRE", "ATTACH", "RELEASE", "DISCONNECT" };
/* The last one is malformed. */
static const char *const strings[N_NAMES] = { "b.b", "a.a", "c.c", "a.aa", "a" };

struct model_name {
	int queue[N_HOLDERS];
	int n_queue;
	int activator;
	u64 id;
};

struct model {
	struct model_name names[N_NAMES];
	u64 flags[N_HOLDERS][N_NAMES];
	/* the names of a holder, in the order in which it asked */
	int order[N_HOLDERS][N_NAMES];
	int n_order[N_HOLDERS];
	u64 used_ids;
};

/* What a call came to, as far as it can be seen. */
struct outcome {
	int result, moves;
	u64 return_flags;
	u64 type;
	int old_holder, new_holder;
	u64 old_flags, new_flags;
	char name[8];
};

struct world {
	struct core_names names;
	struct core_name_holder holders[N_HOLDERS];
	struct model model;
	unsigned long live;
};

static int model_owner(const struct model_name *name)
{
	return name->n_queue ? name->queue[0] : name->activator;
}

static bool model_has(const struct model *model, int who, int name)
{
	for (int i = 0; i < model->n_order[who]; i++)
		if (model->order[who][i] == name)
			return true;
	return false;
}

static void model_insert(struct model_name *name, int at, int who)
{
	for (int i = name->n_queue++; i > at; i--)
		name->queue[i] = name->queue[i - 1];
	name->queue[at] = who;
}

static void model_remove(struct model_name *name, int who)
{
	int n = 0;

	for (int i = 0; i < name->n_queue; i++)
		if (name->queue[i] != who)
			name->queue[n++] = name->queue[i];
	name->n_queue = n;
	if (name->activator == who)
		name->activator = -1;
}

static void model_append_order(struct model *model, int who, int name)
{
	if (!model_has(model, who, name))
		model->order[who][model->n_order[who]++] = name;
}

static void model_forget_order(struct model *model, int who, int name)
{
	int n = 0;

	for (int i = 0; i < model->n_order[who]; i++)
		if (model->order[who][i] != name)
			model->order[who][n++] = model->order[who][i];
	model->n_order[who] = n;
	model->flags[who][name] = 0;
}

/* The state bits follow from the queue alone. */
static u64 model_flags(const struct model *model, int who, int n)
{
	const struct model_name *name = &model->names[n];
	u64 flags = model->flags[who][n] & STORED;

	if (name->activator == who)
		flags |= KDBUS_NAME_ACTIVATOR;
	return flags | (model_owner(name) == who ? KDBUS_NAME_PRIMARY : KDBUS_NAME_IN_QUEUE);
}

static bool model_activates(const struct model *model, int who)
{
	for (int n = 0; n < N_NAMES; n++)
		if (model->names[n].activator == who)
			return true;
	return false;
}

/* Fill in what follows from who owned the name before and who owns it now. */
static void model_compare_owners(const struct model *model, int n, int old, u64 old_flags,
				 struct outcome *outcome)
{
	int now = model_owner(&model->names[n]);

	if (old == now)
		return;
	outcome->type = old < 0 ? KDBUS_ITEM_NAME_ADD :
			now < 0 ? KDBUS_ITEM_NAME_REMOVE :
				  KDBUS_ITEM_NAME_CHANGE;
	outcome->old_holder = old;
	outcome->old_flags = old < 0 ? 0 : old_flags;
	outcome->new_holder = now;
	outcome->new_flags = now < 0 ? 0 : model_flags(model, now, n);
	outcome->moves = outcome->type == KDBUS_ITEM_NAME_CHANGE &&
			 ((outcome->old_flags | outcome->new_flags) & KDBUS_NAME_ACTIVATOR);
	snprintf(outcome->name, sizeof(outcome->name), "%s", strings[n]);
}

/* §10.3, once syntax and limit are out of the way. */
static void model_acquire_row(struct model *model, int who, int n, u64 flags,
			      struct outcome *outcome)
{
	struct model_name *name = &model->names[n];
	int old = model_owner(name);
	u64 old_flags = old < 0 ? 0 : model_flags(model, old, n);
	bool had = model_has(model, who, n);

	outcome->return_flags = flags & STORED;
	if (old == who) {
		model->flags[who][n] = flags & STORED;
		outcome->return_flags = model_flags(model, who, n);
		return;
	}
	if (!name->n_queue || ((old_flags & KDBUS_NAME_ALLOW_REPLACEMENT) &&
			       (flags & KDBUS_NAME_REPLACE_EXISTING))) {
		model_remove(name, who);
		if (name->n_queue && !(old_flags & KDBUS_NAME_QUEUE)) {
			model_remove(name, old);
			model_forget_order(model, old, n);
		}
		model_insert(name, 0, who);
	} else if (flags & KDBUS_NAME_QUEUE) {
		if (!had)
			model_insert(name, name->n_queue, who);
	} else if (had) {
		model_remove(name, who);
		model_forget_order(model, who, n);
		return;
	} else {
		outcome->result = -EEXIST;
		return;
	}
	model_append_order(model, who, n);
	model->flags[who][n] = flags & STORED;
	outcome->return_flags = model_flags(model, who, n);
	if (!had || model_owner(name) == who)
		outcome->return_flags |= KDBUS_NAME_ACQUIRED;
	model_compare_owners(model, n, old, old_flags, outcome);
}

static void model_acquire(struct model *model, int who, int n, u64 flags, struct outcome *outcome)
{
	if ((flags & ~ANY_REQUEST) || n == N_NAMES - 1)
		outcome->result = -EINVAL;
	else if (model_activates(model, who))
		outcome->result = -EOPNOTSUPP;
	else
		model_acquire_row(model, who, n, flags, outcome);
}

static void model_attach(struct model *model, int who, int n, struct outcome *outcome)
{
	int old = model_owner(&model->names[n]);

	if (n == N_NAMES - 1 || model->n_order[who]) {
		outcome->result = -EINVAL;
	} else if (model->names[n].activator >= 0) {
		outcome->result = -EEXIST;
	} else {
		model->names[n].activator = who;
		model_append_order(model, who, n);
		model_compare_owners(model, n, old, 0, outcome);
	}
}

static void model_release(struct model *model, int who, int n, struct outcome *outcome)
{
	int old = model_owner(&model->names[n]);
	u64 old_flags = old < 0 ? 0 : model_flags(model, old, n);

	if (old < 0) {
		outcome->result = -ESRCH;
	} else if (!model_has(model, who, n)) {
		outcome->result = -EADDRINUSE;
	} else {
		model_remove(&model->names[n], who);
		model_forget_order(model, who, n);
		model_compare_owners(model, n, old, old_flags, outcome);
	}
}

static struct outcome no_outcome(void)
{
	struct outcome outcome;

	memset(&outcome, 0, sizeof(outcome));
	outcome.old_holder = -1;
	outcome.new_holder = -1;
	return outcome;
}

static int index_of(const struct world *world, const struct core_name_holder *holder)
{
	return holder ? holder - world->holders : -1;
}

static void take_change(struct world *world, struct core_name_change *change,
			struct outcome *outcome)
{
	outcome->type = change->type;
	outcome->old_holder = index_of(world, change->old_holder);
	outcome->new_holder = index_of(world, change->new_holder);
	outcome->old_flags = change->old_flags;
	outcome->new_flags = change->new_flags;
	/* A hand-over between anybody else than the two owners would be wrong: say -1. */
	if (change->move_from || change->move_to)
		outcome->moves = change->move_from == change->old_holder &&
						 change->move_to == change->new_holder ?
					 1 :
					 -1;
	if (change->name)
		snprintf(outcome->name, sizeof(outcome->name), "%s", change->name);
	core_name_change_done(change);
}

static void subject(struct world *world, const struct prop_op *op, int who, int n,
		    struct outcome *outcome)
{
	struct core_name_holder *holder = &world->holders[who];
	struct core_name_change change;

	switch (op->kind) {
	case ACQUIRE:
		outcome->result = core_names_acquire(&world->names, holder, strings[n], op->arg[2],
						     &outcome->return_flags, &change);
		break;
	case ATTACH:
		outcome->result =
			core_names_attach_activator(&world->names, holder, strings[n], &change);
		break;
	case RELEASE:
		outcome->result = core_names_release(&world->names, holder, strings[n], &change);
		break;
	default:
		outcome->result = core_names_release_next(&world->names, holder, &change) - 1;
	}
	if (!outcome->result)
		take_change(world, &change, outcome);
}

static void model(struct model *model, const struct prop_op *op, int who, int n,
		  struct outcome *outcome)
{
	switch (op->kind) {
	case ACQUIRE:
		model_acquire(model, who, n, op->arg[2], outcome);
		break;
	case ATTACH:
		model_attach(model, who, n, outcome);
		break;
	case RELEASE:
		model_release(model, who, n, outcome);
		break;
	default:
		if (model->n_order[who])
			model_release(model, who, model->order[who][0], outcome);
		else
			outcome->result = -1;
	}
}

static bool same_outcome(const struct outcome *a, const struct outcome *b,
			 struct prop_report *report)
{
	if (!memcmp(a, b, sizeof(*a)))
		return true;
	return prop_differ(report,
			   "result %d/%d return flags %llx/%llx type %llx/%llx old %d/%d flags "
			   "%llx/%llx new %d/%d flags %llx/%llx moves %d/%d name '%s'/'%s'",
			   a->result, b->result, a->return_flags, b->return_flags, a->type, b->type,
			   a->old_holder, b->old_holder, a->old_flags, b->old_flags, a->new_holder,
			   b->new_holder, a->new_flags, b->new_flags, a->moves, b->moves, a->name,
			   b->name);
}

/* Invariant 6: the id stays while the name exists and is new when the name is. */
static bool same_id(struct model *model, struct model_name *name, u64 id,
		    struct prop_report *report)
{
	if (name->id ? id != name->id : id <= model->used_ids)
		return prop_differ(report, "id %llu, was %llu, newest %llu", id, name->id,
				   model->used_ids);
	name->id = id;
	if (id > model->used_ids)
		model->used_ids = id;
	return true;
}

static bool same_name(struct world *world, int n, struct prop_report *report)
{
	struct model_name *expected = &world->model.names[n];
	struct core_name *name = core_names_find(&world->names, strings[n]);
	struct core_name_record *record;
	int at = 0;

	if (model_owner(expected) < 0) {
		expected->id = 0;
		return !name || prop_differ(report, "'%s' exists", strings[n]);
	}
	if (!name)
		return prop_differ(report, "'%s' does not exist", strings[n]);
	core_name_for_each_queued(record, name)
		if (at >= expected->n_queue ||
		    index_of(world, record->holder) != expected->queue[at++])
			return prop_differ(report, "queue of '%s'", strings[n]);
	if (at != expected->n_queue)
		return prop_differ(report, "queue of '%s' is too short", strings[n]);
	if (index_of(world, name->activator ? name->activator->holder : NULL) !=
	    expected->activator)
		return prop_differ(report, "activator of '%s'", strings[n]);
	if (index_of(world, core_name_owner(name)->holder) != model_owner(expected))
		return prop_differ(report, "owner of '%s'", strings[n]);
	return same_id(&world->model, expected, name->id, report);
}

static bool same_holder(struct world *world, int who, struct prop_report *report)
{
	struct core_name_holder *holder = &world->holders[who];
	struct core_name_record *record;
	int at = 0;

	if (holder->count != world->model.n_order[who])
		return prop_differ(report, "holder %d has %u names", who, holder->count);
	core_name_holder_for_each(record, holder) {
		int n = world->model.order[who][at++];

		if (strcmp(record->name->name, strings[n]))
			return prop_differ(report, "holder %d: '%s', not '%s'", who,
					   record->name->name, strings[n]);
		if (record->flags != model_flags(&world->model, who, n))
			return prop_differ(report, "holder %d: '%s' has flags %llx, not %llx", who,
					   strings[n], record->flags,
					   model_flags(&world->model, who, n));
		if (core_name_holder_find(holder, strings[n]) != record)
			return prop_differ(report, "holder %d: '%s' not found", who, strings[n]);
	}
	return true;
}

static void *setup(void)
{
	struct world *world = calloc(1, sizeof(*world));

	if (!world)
		abort();
	world->live = failalloc_live();
	core_names_init(&world->names);
	for (int i = 0; i < N_HOLDERS; i++)
		core_name_holder_init(&world->holders[i], i + 1);
	for (int i = 0; i < N_NAMES; i++)
		world->model.names[i].activator = -1;
	return world;
}

static bool step(void *state, const struct prop_op *op, struct prop_report *report)
{
	struct world *world = state;
	struct outcome got = no_outcome(), expected = no_outcome();
	int who = op->arg[0] % N_HOLDERS, n = op->arg[1] % N_NAMES;

	subject(world, op, who, n, &got);
	model(&world->model, op, who, n, &expected);
	if (!same_outcome(&got, &expected, report))
		return false;
	for (n = 0; n < N_NAMES; n++)
		if (!same_name(world, n, report))
			return false;
	for (who = 0; who < N_HOLDERS; who++)
		if (!same_holder(world, who, report))
			return false;
	return true;
}

static bool teardown(void *state, struct prop_report *report)
{
	struct world *world = state;
	struct core_name_change change;
	unsigned long live = world->live;

	for (int i = 0; i < N_HOLDERS; i++) {
		while (core_names_release_next(&world->names, &world->holders[i], &change))
			core_name_change_done(&change);
		core_name_holder_deinit(&world->holders[i]);
	}
	core_names_deinit(&world->names);
	free(world);
	if (failalloc_live() != live)
		return prop_differ(report, "%lu allocations leaked", failalloc_live() - live);
	return true;
}

static void generate(struct prop_rng *rng, struct prop_op *op)
{
	u64 dice = prop_below(rng, 20);

	op->kind = dice < 12 ? ACQUIRE : dice < 14 ? ATTACH : dice < 18 ? RELEASE : DISCONNECT;
	op->arg[0] = prop_below(rng, N_HOLDERS);
	op->arg[1] = prop_below(rng, N_NAMES * 4) % (prop_one_in(rng, 10) ? N_NAMES : N_NAMES - 1);
	if (op->kind == ACQUIRE)
		op->arg[2] = prop_one_in(rng, 40) ? prop_random(rng) : prop_below(rng, 8);
}

static const struct prop_spec names_spec = {
	.symbol = "names_spec",
	.kinds = kinds,
	.n_kinds = ARRAY_SIZE(kinds),
	.seeds = 300,
	.length = 200,
	.generate = generate,
	.setup = setup,
	.step = step,
	.teardown = teardown,
};

static void the_registry_behaves_like_the_model(void **state)
{
	prop_run(&names_spec);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_registry_behaves_like_the_model),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
