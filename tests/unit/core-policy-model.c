// SPDX-License-Identifier: LGPL-2.1-or-later
/* Random uploads of policy, against a list that is scanned (spec §9.3, §9.4). */
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
#include "policy.h"
#include "prop.h"

#define N_OWNERS   3
#define N_RECORDS  3
#define N_ACCESSES 3

enum {
	UPLOAD,
	CLEAR
};

static const char *const kinds[] = { "UPLOAD", "CLEAR" };
/* The last one is malformed. */
static const char *const keys[] = {
	"a.b", "a.c", "a.b.c", "a.*", "a.b.*", "a.b.c.*", "aa.b", "a..b",
};
static const char *const names[] = { "a.b", "a.c", "a.b.c", "a.b.d", "a.b.c.d", "aa.b", "b.a" };
static const u32 groups[] = { 2, 5 };
static const struct core_cred creds[] = {
	{ .euid = 1, .egid = 1, .groups = groups, .n_groups = 2 },
	{ .euid = 2, .egid = 3 },
	{ .euid = 3, .egid = 2, .groups = groups + 1, .n_groups = 1 },
};

struct record {
	const char *key;
	int n_accesses;
	struct kdbus_policy_access accesses[N_ACCESSES];
};

struct upload {
	int n_records;
	struct record records[N_RECORDS];
};

struct world {
	struct core_policy policy;
	struct core_policy_owner owners[N_OWNERS];
	struct upload model[N_OWNERS];
	unsigned long live;
};

/* An argument is a source of small numbers. */
static u64 take(u64 *arg, u64 n)
{
	u64 value = *arg % n;

	*arg /= n;
	return value;
}

static void decode(const struct prop_op *op, struct upload *upload)
{
	memset(upload, 0, sizeof(*upload));
	upload->n_records = op->arg[1] % (N_RECORDS + 1);
	for (int i = 0; i < upload->n_records; i++) {
		struct record *record = &upload->records[i];
		u64 arg = op->arg[2 + i];

		/* seldom the malformed one, or a level that does not exist */
		record->key =
			keys[take(&arg, take(&arg, 16) ? ARRAY_SIZE(keys) - 1 : ARRAY_SIZE(keys))];
		record->n_accesses = take(&arg, N_ACCESSES + 1);
		for (int j = 0; j < record->n_accesses; j++)
			record->accesses[j] = (struct kdbus_policy_access){
				.type = 1 + take(&arg, 3),
				.access = take(&arg, 20) ? take(&arg, 3) : 3,
				.id = take(&arg, 6),
			};
	}
}

/* The model */

static struct record *model_find(struct world *world, const char *key, size_t len, int not_of)
{
	for (int i = 0; i < N_OWNERS; i++)
		for (int j = 0; i != not_of && j < world->model[i].n_records; j++) {
			struct record *record = &world->model[i].records[j];

			if (strlen(record->key) == len && memcmp(record->key, key, len) == 0)
				return record;
		}
	return NULL;
}

static int model_check_record(const struct upload *upload, int n)
{
	const struct record *record = &upload->records[n];

	if (strcmp(record->key, "a..b") == 0)
		return -EINVAL;
	for (int i = 0; i < n; i++)
		if (strcmp(upload->records[i].key, record->key) == 0)
			return -EEXIST;
	for (int i = 0; i < record->n_accesses; i++)
		if (record->accesses[i].access > KDBUS_POLICY_OWN)
			return -EINVAL;
	return 0;
}

static int model_upload(struct world *world, int who, const struct upload *upload)
{
	int r;

	for (int i = 0; i < upload->n_records; i++) {
		r = model_check_record(upload, i);
		if (r < 0)
			return r;
	}
	for (int i = 0; i < upload->n_records; i++)
		if (model_find(world, upload->records[i].key, strlen(upload->records[i].key), who))
			return -EEXIST;
	world->model[who] = *upload;
	return 0;
}

static bool in_groups(const struct core_cred *cred, u64 gid)
{
	for (size_t i = 0; i < cred->n_groups; i++)
		if (cred->groups[i] == gid)
			return true;
	return cred->egid == gid;
}

static int model_level(struct world *world, const struct core_cred *cred, const char *name)
{
	struct record *record = model_find(world, name, strlen(name), -1);
	char wildcard[16];
	int level = CORE_POLICY_NONE;

	if (!record) {
		snprintf(wildcard, sizeof(wildcard), "%.*s.*", (int)(strrchr(name, '.') - name),
			 name);
		record = model_find(world, wildcard, strlen(wildcard), -1);
	}
	for (int i = 0; record && i < record->n_accesses; i++) {
		const struct kdbus_policy_access *access = &record->accesses[i];

		if ((access->type == KDBUS_POLICY_ACCESS_WORLD ||
		     (access->type == KDBUS_POLICY_ACCESS_USER && access->id == cred->euid) ||
		     (access->type == KDBUS_POLICY_ACCESS_GROUP && in_groups(cred, access->id))) &&
		    (int)access->access > level)
			level = access->access;
	}
	return level;
}

/* Steps */

static int subject_upload(struct world *world, int who, const struct upload *upload)
{
	u64 buffer[128];
	struct core_writer items = CORE_WRITER(buffer, sizeof(buffer));
	struct core_policy_set *set;
	size_t size;
	int r;

	for (int i = 0; i < upload->n_records; i++) {
		core_put_str(&items, KDBUS_ITEM_NAME, upload->records[i].key);
		for (int j = 0; j < upload->records[i].n_accesses; j++)
			core_put(&items, KDBUS_ITEM_POLICY_ACCESS, &upload->records[i].accesses[j],
				 sizeof(upload->records[i].accesses[j]));
	}
	if (core_writer_end(&items, &size))
		abort();
	r = core_policy_parse((void *)buffer, size, 0, NULL, NULL, &set);
	if (r < 0)
		return r;
	r = core_policy_replace(&world->policy, &world->owners[who], set);
	if (r < 0)
		core_policy_set_free(set);
	return r;
}

static bool same_levels(struct world *world, struct prop_report *report)
{
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		for (size_t j = 0; j < ARRAY_SIZE(creds); j++) {
			int got = core_policy_level(&world->policy, &creds[j], names[i]);
			int expected = model_level(world, &creds[j], names[i]);

			if (got != expected)
				return prop_differ(report, "'%s' for %u: %d, not %d", names[i],
						   creds[j].euid, got, expected);
		}
	return true;
}

static bool step(void *state, const struct prop_op *op, struct prop_report *report)
{
	struct world *world = state;
	int who = op->arg[0] % N_OWNERS, got, expected;
	struct upload upload;

	if (op->kind == CLEAR) {
		core_policy_clear(&world->policy, &world->owners[who]);
		world->model[who].n_records = 0;
		return same_levels(world, report);
	}
	decode(op, &upload);
	got = subject_upload(world, who, &upload);
	expected = model_upload(world, who, &upload);
	if (got != expected)
		return prop_differ(report, "result %d, not %d", got, expected);
	return same_levels(world, report);
}

static void *setup(void)
{
	struct world *world = calloc(1, sizeof(*world));

	if (!world)
		abort();
	world->live = failalloc_live();
	core_policy_init(&world->policy);
	for (int i = 0; i < N_OWNERS; i++)
		core_policy_owner_init(&world->owners[i]);
	return world;
}

static bool teardown(void *state, struct prop_report *report)
{
	struct world *world = state;
	unsigned long live = world->live;
	bool empty;

	for (int i = 0; i < N_OWNERS; i++)
		core_policy_clear(&world->policy, &world->owners[i]);
	empty = RB_EMPTY_ROOT(&world->policy.records);
	free(world);
	if (!empty)
		return prop_differ(report, "the database is not empty");
	if (failalloc_live() != live)
		return prop_differ(report, "%lu allocations leaked", failalloc_live() - live);
	return true;
}

static void generate(struct prop_rng *rng, struct prop_op *op)
{
	op->kind = prop_one_in(rng, 8) ? CLEAR : UPLOAD;
	op->arg[0] = prop_below(rng, N_OWNERS);
	if (op->kind == CLEAR)
		return;
	op->arg[1] = prop_below(rng, N_RECORDS + 1);
	for (int i = 0; i < N_RECORDS; i++)
		op->arg[2 + i] = prop_random(rng);
}

static const struct prop_spec policy_spec = {
	.symbol = "policy_spec",
	.kinds = kinds,
	.n_kinds = ARRAY_SIZE(kinds),
	.seeds = 200,
	.length = 100,
	.generate = generate,
	.setup = setup,
	.step = step,
	.teardown = teardown,
};

static void the_database_behaves_like_the_model(void **state)
{
	prop_run(&policy_spec);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_database_behaves_like_the_model),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
