// SPDX-License-Identifier: LGPL-2.1-or-later
#include "compare-file.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define SCHEMA "kdbus-bench/1"

/* ---- reading ---- */

static int read_text(const char *path, char **ret)
{
	FILE *f = fopen(path, "re");
	struct stat st;
	char *text;
	size_t n;

	if (!f || fstat(fileno(f), &st) < 0 || !S_ISREG(st.st_mode)) {
		fprintf(stderr, "kdbus-bench: compare: cannot read %s: %s\n", path,
			f ? "no regular file" : strerror(errno));
		if (f)
			fclose(f);
		return -EINVAL;
	}
	text = malloc((size_t)st.st_size + 1);
	n = text ? fread(text, 1, (size_t)st.st_size, f) : 0;
	fclose(f);
	if (!text)
		return -ENOMEM;
	text[n] = '\0';
	*ret = text;
	return 0;
}

static int check_schema(const char *path, const struct json_value *v)
{
	const char *schema = json_text(v, "schema");

	if (!schema || strncmp(schema, "kdbus-bench/", 12) || !json_text(v, "subcommand") ||
	    !json_member(v, "cells"))
		fprintf(stderr, "kdbus-bench: compare: %s was not written by kdbus-bench --json\n",
			path);
	else if (strcmp(schema, SCHEMA))
		fprintf(stderr,
			"kdbus-bench: compare: %s has schema %s, this version reads %s; measure "
			"both with one version\n",
			path, schema, SCHEMA);
	else
		return 0;
	return -EINVAL;
}

int compare_load(const char *path, struct json_value **ret)
{
	struct json_value *v = NULL;
	char *text;
	int r = read_text(path, &text);

	if (r < 0)
		return r;
	r = json_parse(text, &v);
	free(text);
	if (r != -ENOMEM)
		r = check_schema(path, v);
	if (r < 0) {
		json_free(v);
		return r;
	}
	*ret = v;
	return 0;
}

const struct json_value *compare_cell(const struct json_value *file, const char *row,
				      const char *subject)
{
	const struct json_value *c;
	const char *r, *s;

	for (c = json_member(file, "cells")->child; c; c = c->next) {
		r = json_text(c, "row");
		s = json_text(c, "subject");
		if (r && s && !strcmp(r, row) && !strcmp(s, subject))
			return c;
	}
	return NULL;
}

static double *plain_samples(const struct json_value *cell, size_t *ret_n)
{
	const struct json_value *list = json_member(cell, "samples"), *v;
	double *numbers;
	size_t n = 0;

	for (v = list ? list->child : NULL; v; v = v->next, n++)
		if (v->type != JSON_NUMBER || !(v->number > 0) || !isfinite(v->number))
			return NULL;
	if (n == 0)
		return NULL;
	numbers = malloc(n * sizeof(*numbers));
	*ret_n = n;
	for (n = 0, v = list->child; v && numbers; v = v->next)
		numbers[n++] = v->number;
	return numbers;
}

/*
 * Samples of all subjects with one number were taken next to each other: divided by those of a
 * subject that nobody has changed, they tell less of what the machine was busy with.
 */
double *compare_samples(const struct json_value *file, const struct json_value *cell,
			const char *against, size_t *ret_n)
{
	const struct json_value *other =
		against ? compare_cell(file, json_text(cell, "row"), against) : NULL;
	double *numbers = plain_samples(cell, ret_n), *base;
	size_t i, n = 0;

	if (!against || !numbers)
		return numbers;
	base = other && other != cell ? plain_samples(other, &n) : NULL;
	if (!base || n != *ret_n) {
		free(numbers);
		numbers = NULL;
	}
	for (i = 0; numbers && i < n; i++)
		numbers[i] /= base[i];
	free(base);
	return numbers;
}

/* ---- what else is different ---- */

static void put_value(const struct json_value *v, FILE *f)
{
	const struct json_value *child;

	if (!v)
		fputs("nothing", f);
	else if (v->type == JSON_STRING)
		fprintf(f, "'%s'", v->string);
	else if (v->type == JSON_NUMBER)
		fprintf(f, "%.10g", v->number);
	else if (v->type == JSON_BOOLEAN)
		fputs(v->number != 0 ? "yes" : "no", f);
	else if (v->type == JSON_NULL || !v->child)
		fputs("none", f);
	else
		for (child = v->child; child; child = child->next) {
			put_value(child, f);
			if (child->next)
				putc(' ', f);
		}
}

static bool same(const struct json_value *a, const struct json_value *b)
{
	if (!a || !b)
		return a == b;
	if (a->type != b->type || a->number != b->number)
		return false;
	if (a->type == JSON_STRING && strcmp(a->string, b->string))
		return false;
	for (a = a->child, b = b->child; a && b; a = a->next, b = b->next)
		if (!same(a, b))
			return false;
	return a == b;
}

static void note(const char *what, const struct json_value *a, const struct json_value *b, FILE *f)
{
	if (same(a, b))
		return;
	fprintf(f, "note: %s: ", what);
	put_value(a, f);
	fputs(" in A, ", f);
	put_value(b, f);
	fputs(" in B\n", f);
}

/* Always different, and no reason for a note. */
static bool is_noise(const char *key)
{
	return !strcmp(key, "load") || !strcmp(key, "time") || !strcmp(key, "command_line");
}

static void note_members(const char *group, const struct json_value *a, const struct json_value *b,
			 FILE *f)
{
	const struct json_value *v;
	char what[80];

	a = json_member(a, group);
	b = json_member(b, group);
	for (v = a ? a->child : NULL; v; v = v->next) {
		snprintf(what, sizeof(what), "%s, %s", group, v->key);
		if (v->key && !is_noise(v->key))
			note(what, v, json_member(b, v->key), f);
	}
	for (v = b ? b->child : NULL; v; v = v->next) {
		snprintf(what, sizeof(what), "%s, %s", group, v->key);
		if (v->key && !is_noise(v->key) && !json_member(a, v->key))
			note(what, NULL, v, f);
	}
}

static const struct json_value *find_peer(const struct json_value *file, const char *subject)
{
	const struct json_value *peers = json_member(file, "peers"), *p;
	const char *name;

	for (p = peers ? peers->child : NULL; p; p = p->next) {
		name = json_text(p, "subject");
		if (name && !strcmp(name, subject))
			return p;
	}
	return NULL;
}

static void note_peers(const struct json_value *a, const struct json_value *b, FILE *f)
{
	const struct json_value *peers = json_member(a, "peers"), *p, *other;
	const char *name;
	char what[80];

	for (p = peers ? peers->child : NULL; p; p = p->next) {
		name = json_text(p, "subject");
		other = name ? find_peer(b, name) : NULL;
		if (!other)
			continue;
		snprintf(what, sizeof(what), "version of %s", name);
		note(what, json_member(p, "version"), json_member(other, "version"), f);
		snprintf(what, sizeof(what), "%s measured", name);
		note(what, json_member(p, "measured"), json_member(other, "measured"), f);
	}
}

/* The load of the last minute for each CPU. */
static double load(const struct json_value *file)
{
	const struct json_value *machine = json_member(file, "machine");
	const struct json_value *list = json_member(machine, "load");
	const struct json_value *cpus = json_member(machine, "cpus_usable");

	if (!list || !list->child || !cpus || cpus->number < 1)
		return 0;
	return list->child->number / cpus->number;
}

void compare_notes(const struct json_value *a, const struct json_value *b, FILE *f)
{
	static const char *const own[] = { "version", "libraries", "compiler" };
	double x = load(a), y = load(b);
	size_t i;

	note_members("machine", a, b, f);
	note_members("options", a, b, f);
	for (i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		note(own[i], json_member(a, own[i]), json_member(b, own[i]), f);
	note_peers(a, b, f);
	if (x > 0.5 || y > 0.5)
		fprintf(f,
			"note: other work ran when these were measured: %.2f processes for each "
			"CPU in A, %.2f in B;\n      see --against\n",
			x, y);
}
