/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BENCH_JSON_H
#define BENCH_JSON_H

/**
 * DOC: writing and reading JSON
 *
 * The writer puts commas and quotes where they belong; the caller opens and
 * closes. The reader builds a tree of what it read, for files this program
 * wrote, and refuses anything that is not JSON.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct json {
	FILE *file;
	int depth;
	bool comma;
};

/* @key is NULL inside an array and at the top. */
void json_open(struct json *j, const char *key, char bracket);
void json_close(struct json *j, char bracket);
void json_string(struct json *j, const char *key, const char *value);
void json_number(struct json *j, const char *key, double value);
void json_integer(struct json *j, const char *key, uint64_t value);
void json_boolean(struct json *j, const char *key, bool value);

enum json_type {
	JSON_NULL,
	JSON_BOOLEAN,
	JSON_NUMBER,
	JSON_STRING,
	JSON_ARRAY,
	JSON_OBJECT
};

/**
 * struct json_value - one value, and its place among its siblings
 * @key: its name if it is a member of an object
 * @child: first element or member
 * @next: next sibling
 */
struct json_value {
	enum json_type type;
	char *key;
	char *string;
	double number;
	struct json_value *child;
	struct json_value *next;
};

/**
 * json_parse() - build the tree of @text
 * @text: NUL-terminated
 * @ret: to be freed with json_free()
 *
 * Return: 0, -EBADMSG if @text is no JSON or nested deeper than 64, -ENOMEM.
 */
int json_parse(const char *text, struct json_value **ret);

/** json_free() - free a tree or NULL */
void json_free(struct json_value *v);

/** json_member() - member @key of object @v, or NULL */
const struct json_value *json_member(const struct json_value *v, const char *key);

/** json_text() - the string member @key of @v, or NULL */
const char *json_text(const struct json_value *v, const char *key);

#endif
