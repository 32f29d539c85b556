// SPDX-License-Identifier: LGPL-2.1-or-later
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "environment.h"

/* Where @name is, or env->n. */
static size_t find(const struct environment *env, const char *name)
{
	size_t len = strlen(name), i;

	for (i = 0; i < env->n; i++) {
		if (!strncmp(env->items[i], name, len) && env->items[i][len] == '=')
			break;
	}
	return i;
}

/* Room for one more, and the NULL. */
static int grow(struct environment *env)
{
	char **items = realloc(env->items, (env->n + 2) * sizeof(*items));

	if (!items)
		return -ENOMEM;
	env->items = items;
	env->items[env->n] = NULL;
	return 0;
}

int environment_set(struct environment *env, const char *name, const char *value)
{
	size_t at = find(env, name);
	char *item;

	if (!*name || strchr(name, '='))
		return -EINVAL;
	if (asprintf(&item, "%s=%s", name, value) < 0)
		return -ENOMEM;
	if (at < env->n) {
		free(env->items[at]);
		env->items[at] = item;
		return 0;
	}
	if (grow(env) < 0) {
		free(item);
		return -ENOMEM;
	}
	env->items[env->n++] = item;
	env->items[env->n] = NULL;
	return 0;
}

void environment_unset(struct environment *env, const char *name)
{
	size_t at = find(env, name);

	if (at == env->n)
		return;
	free(env->items[at]);
	memmove(env->items + at, env->items + at + 1, (env->n - at) * sizeof(*env->items));
	env->n--;
}

const char *environment_get(const struct environment *env, const char *name)
{
	size_t at = find(env, name);

	return at < env->n ? env->items[at] + strlen(name) + 1 : NULL;
}

int environment_copy(struct environment *env, char *const *items)
{
	const char *equals;
	char *name;
	int r;

	*env = (struct environment){ 0 };
	r = grow(env);
	for (; r == 0 && items && *items; items++) {
		equals = strchr(*items, '=');
		/* What is no variable is of no use to anybody. */
		if (!equals || equals == *items)
			continue;
		name = strndup(*items, (size_t)(equals - *items));
		r = name ? environment_set(env, name, equals + 1) : -ENOMEM;
		free(name);
	}
	if (r < 0)
		environment_deinit(env);
	return r;
}

int environment_merge(struct environment *into, const struct environment *env)
{
	struct environment merged;
	int r = environment_copy(&merged, into->items);
	char *equals;
	size_t i;

	for (i = 0; r == 0 && i < env->n; i++) {
		equals = strchr(env->items[i], '=');
		*equals = '\0';
		r = environment_set(&merged, env->items[i], equals + 1);
		*equals = '=';
	}
	if (r < 0) {
		environment_deinit(&merged);
		return r;
	}
	environment_deinit(into);
	*into = merged;
	return 0;
}

void environment_deinit(struct environment *env)
{
	size_t i;

	for (i = 0; i < env->n; i++)
		free(env->items[i]);
	free(env->items);
	*env = (struct environment){ 0 };
}
