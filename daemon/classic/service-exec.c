// SPDX-License-Identifier: LGPL-2.1-or-later
/* The Exec line of a .service file as arguments. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "service-file.h"

/* A line being split; no word is longer than what is left of it. */
struct words {
	const char *at;
	char **argv;
	size_t n;
};

static bool is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\n';
}

/* In "", a backslash stands for itself except before these. */
static bool is_special(char c)
{
	return c == '"' || c == '\\' || c == '`' || c == '$' || c == '\n';
}

/* Appends what is quoted, from the quote on; returns where the word goes on, NULL: it is open. */
static char *quoted(struct words *w, char *to)
{
	const char quote = *w->at++;

	for (; *w->at != quote; w->at++) {
		if (quote == '"' && *w->at == '\\' && is_special(w->at[1]))
			w->at++;
		if (!*w->at)
			return NULL;
		if (*w->at != '\n' || w->at[-1] != '\\' || quote != '"')
			*to++ = *w->at;
	}
	w->at++;
	return to;
}

static const char *word(struct words *w, char *to)
{
	while (*w->at && !is_space(*w->at)) {
		if (*w->at == '\'' || *w->at == '"') {
			to = quoted(w, to);
			if (!to)
				return "Unclosed quotes in command line";
			continue;
		}
		if (*w->at == '\\' && !*++w->at)
			return "Text ended just after a '\\' character";
		if (*w->at != '\n')
			*to++ = *w->at;
		w->at++;
	}
	*to = '\0';
	return NULL;
}

static int add_word(struct words *w, const char **ret_reason)
{
	char **more = reallocarray(w->argv, w->n + 2, sizeof(*more));

	if (!more)
		return -ENOMEM;
	w->argv = more;
	more[w->n + 1] = NULL;
	more[w->n] = malloc(strlen(w->at) + 1);
	if (!more[w->n])
		return -ENOMEM;
	*ret_reason = word(w, more[w->n++]);
	return *ret_reason ? -EINVAL : 0;
}

static void skip_space(struct words *w)
{
	while (is_space(*w->at))
		w->at++;
	if (*w->at == '#')
		w->at += strcspn(w->at, "\n");
}

int service_exec_split(const char *exec, char ***ret_argv, const char **ret_reason)
{
	struct words w = { .at = exec };
	const char *reason = NULL;
	int r = 0;

	for (skip_space(&w); *w.at && r == 0; skip_space(&w))
		r = is_space(*w.at) ? 0 : add_word(&w, &reason);
	if (r == 0 && !w.n) {
		reason = "there is no program to run";
		r = -EINVAL;
	}
	if (r == 0) {
		*ret_argv = w.argv;
		return 0;
	}
	service_argv_free(w.argv);
	if (r == -EINVAL)
		*ret_reason = reason;
	return r;
}

char **service_argv_free(char **argv)
{
	size_t i;

	for (i = 0; argv && argv[i]; i++)
		free(argv[i]);
	free(argv);
	return NULL;
}
