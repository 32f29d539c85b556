// SPDX-License-Identifier: LGPL-2.1-or-later
#include "json.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH_MAX  64
#define STRING_MAX 4096

/* ---- writing ---- */

static void quote(FILE *f, const char *s)
{
	fputc('"', f);
	for (; *s; s++) {
		if (*s == '"' || *s == '\\')
			fprintf(f, "\\%c", *s);
		else if ((unsigned char)*s < 0x20)
			fprintf(f, "\\u%04x", (unsigned int)(unsigned char)*s);
		else
			fputc(*s, f);
	}
	fputc('"', f);
}

/* Deep values stay on one line: nobody reads a histogram one counter a line. */
static void begin(struct json *j, const char *key)
{
	if (j->comma)
		fputs(j->depth > 3 ? ", " : ",", j->file);
	if (j->depth > 0 && j->depth <= 3)
		fprintf(j->file, "\n%*s", 2 * j->depth, "");
	if (key) {
		quote(j->file, key);
		fputs(": ", j->file);
	}
	j->comma = true;
}

void json_open(struct json *j, const char *key, char bracket)
{
	begin(j, key);
	fputc(bracket, j->file);
	j->depth++;
	j->comma = false;
}

void json_close(struct json *j, char bracket)
{
	j->depth--;
	if (j->depth < 3)
		fprintf(j->file, "\n%*s", 2 * j->depth, "");
	fputc(bracket, j->file);
	j->comma = true;
	if (j->depth == 0)
		fputc('\n', j->file);
}

void json_string(struct json *j, const char *key, const char *value)
{
	begin(j, key);
	quote(j->file, value);
}

void json_number(struct json *j, const char *key, double value)
{
	begin(j, key);
	if (isfinite(value))
		fprintf(j->file, "%.9g", value);
	else
		fputs("null", j->file);
}

void json_integer(struct json *j, const char *key, uint64_t value)
{
	begin(j, key);
	fprintf(j->file, "%llu", (unsigned long long)value);
}

void json_boolean(struct json *j, const char *key, bool value)
{
	begin(j, key);
	fputs(value ? "true" : "false", j->file);
}

/* ---- reading ---- */

struct parser {
	const char *at;
	int depth;
};

static void skip_space(struct parser *p)
{
	while (*p->at == ' ' || *p->at == '\t' || *p->at == '\n' || *p->at == '\r')
		p->at++;
}

/* What \u stands for is kept only where it is ASCII; this program writes no other. */
static int parse_escape(struct parser *p, char *ret)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	const char *found = *p->at ? strchr(from, *p->at) : NULL;
	unsigned int code;

	if (found) {
		p->at++;
		*ret = to[found - from];
		return 0;
	}
	if (*p->at != 'u' || sscanf(p->at + 1, "%4x", &code) != 1 || strnlen(p->at, 5) < 5)
		return -EBADMSG;
	p->at += 5;
	*ret = code < 0x80 ? (char)code : '?';
	return 0;
}

static int parse_string(struct parser *p, char **ret)
{
	char s[STRING_MAX];
	size_t n = 0;
	int r = 0;

	if (*p->at++ != '"')
		return -EBADMSG;
	while (r == 0 && *p->at != '"') {
		if (*p->at == '\0' || n >= sizeof(s) - 1) {
			r = -EBADMSG;
		} else if (*p->at == '\\') {
			p->at++;
			r = parse_escape(p, &s[n++]);
		} else {
			s[n++] = *p->at++;
		}
	}
	if (r < 0)
		return r;
	p->at++;
	s[n] = '\0';
	*ret = strdup(s);
	return *ret ? 0 : -ENOMEM;
}

static int parse_value(struct parser *p, struct json_value *v);

static int parse_member(struct parser *p, bool object, struct json_value *v)
{
	int r;

	skip_space(p);
	if (object) {
		r = parse_string(p, &v->key);
		if (r < 0)
			return r;
		skip_space(p);
		if (*p->at++ != ':')
			return -EBADMSG;
	}
	return parse_value(p, v);
}

static int parse_members(struct parser *p, struct json_value *v)
{
	bool object = v->type == JSON_OBJECT;
	struct json_value **tail = &v->child;
	int r;

	p->at++;
	skip_space(p);
	if (*p->at == (object ? '}' : ']')) {
		p->at++;
		return 0;
	}
	for (;;) {
		*tail = calloc(1, sizeof(**tail));
		if (!*tail)
			return -ENOMEM;
		r = parse_member(p, object, *tail);
		if (r < 0)
			return r;
		tail = &(*tail)->next;
		skip_space(p);
		if (*p->at == (object ? '}' : ']')) {
			p->at++;
			return 0;
		}
		if (*p->at++ != ',')
			return -EBADMSG;
	}
}

static bool parse_word(struct parser *p, const char *word)
{
	size_t n = strlen(word);

	if (strncmp(p->at, word, n))
		return false;
	p->at += n;
	return true;
}

static int parse_scalar(struct parser *p, struct json_value *v)
{
	char *end;

	if (parse_word(p, "null"))
		return 0;
	v->type = JSON_BOOLEAN;
	v->number = 1;
	if (parse_word(p, "true"))
		return 0;
	v->number = 0;
	if (parse_word(p, "false"))
		return 0;
	v->type = JSON_NUMBER;
	if (*p->at != '-' && !isdigit((unsigned char)*p->at))
		return -EBADMSG;
	v->number = strtod(p->at, &end);
	if (end == p->at)
		return -EBADMSG;
	p->at = end;
	return 0;
}

static int parse_value(struct parser *p, struct json_value *v)
{
	int r;

	skip_space(p);
	if (*p->at == '"') {
		v->type = JSON_STRING;
		return parse_string(p, &v->string);
	}
	if (*p->at != '{' && *p->at != '[')
		return parse_scalar(p, v);
	if (++p->depth > DEPTH_MAX)
		return -EBADMSG;
	v->type = *p->at == '{' ? JSON_OBJECT : JSON_ARRAY;
	r = parse_members(p, v);
	p->depth--;
	return r;
}

int json_parse(const char *text, struct json_value **ret)
{
	struct parser p = { .at = text };
	struct json_value *v = calloc(1, sizeof(*v));
	int r;

	if (!v)
		return -ENOMEM;
	r = parse_value(&p, v);
	if (r == 0)
		skip_space(&p);
	/* After an error the cursor may be behind the end. */
	if (r == 0 && *p.at)
		r = -EBADMSG;
	if (r < 0) {
		json_free(v);
		return r;
	}
	*ret = v;
	return 0;
}

void json_free(struct json_value *v)
{
	struct json_value *next;

	for (; v; v = next) {
		next = v->next;
		json_free(v->child);
		free(v->key);
		free(v->string);
		free(v);
	}
}

const struct json_value *json_member(const struct json_value *v, const char *key)
{
	const struct json_value *m;

	if (!v || v->type != JSON_OBJECT)
		return NULL;
	for (m = v->child; m; m = m->next)
		if (!strcmp(m->key, key))
			return m;
	return NULL;
}

const char *json_text(const struct json_value *v, const char *key)
{
	const struct json_value *m = json_member(v, key);

	return m && m->type == JSON_STRING ? m->string : NULL;
}
