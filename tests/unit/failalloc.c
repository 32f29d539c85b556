// SPDX-License-Identifier: LGPL-2.1-or-later
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base.h"
#include "failalloc.h"

static unsigned long live;
static unsigned long calls;
static unsigned long countdown;
static bool hit;

void *kmalloc(size_t size, gfp_t gfp)
{
	void *p;

	(void)gfp;
	calls++;
	if (countdown && !--countdown) {
		hit = true;
		return NULL;
	}
	/* malloc(0) may be NULL, which callers would take for failure. */
	p = malloc(size ? size : 1);
	if (!p)
		abort();
	memset(p, 0xa5, size);
	live++;
	return p;
}

void kfree(const void *p)
{
	if (!p)
		return;
	live--;
	free((void *)p);
}

void failalloc_arm(unsigned long nth)
{
	countdown = nth;
	hit = false;
}

bool failalloc_hit(void)
{
	return hit;
}

unsigned long failalloc_live(void)
{
	return live;
}

unsigned long failalloc_calls(void)
{
	return calls;
}

static char *dump(const struct failalloc_scenario *scenario, void *state)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	scenario->dump(state, out);
	assert_int_equal(fclose(out), 0);
	return text;
}

/* Whether the operation made at least @nth allocations. */
static bool fail_nth(const struct failalloc_scenario *scenario, unsigned long nth)
{
	unsigned long before_live = live;
	void *state = scenario->setup();
	char *before = dump(scenario, state);
	char *after;
	bool was_hit;
	int r;

	failalloc_arm(nth);
	r = scenario->act(state);
	was_hit = hit;
	failalloc_arm(0);
	if (was_hit) {
		if (r != -ENOMEM)
			fail_msg("allocation %lu failed, the operation returned %d", nth, r);
		after = dump(scenario, state);
		if (strcmp(before, after))
			fail_msg("failed allocation %lu changed the state from\n%s\nto\n%s", nth,
				 before, after);
		free(after);
		r = scenario->act(state);
	}
	if (r)
		fail_msg("the operation returned %d although there was memory", r);
	free(before);
	scenario->teardown(state);
	if (live != before_live)
		fail_msg("%ld allocations leaked after allocation %lu failed",
			 (long)(live - before_live), nth);
	return was_hit;
}

unsigned long failalloc_each(const struct failalloc_scenario *scenario)
{
	unsigned long nth = 1;

	while (fail_nth(scenario, nth))
		nth++;
	return nth - 1;
}
