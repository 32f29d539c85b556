// SPDX-License-Identifier: LGPL-2.1-or-later
#include "dbus/bloom.h"

#include <stdio.h>

#define FNV_START 0xcbf29ce484222325ULL
#define FNV_PRIME 0x100000001b3ULL

static uint64_t hash_more(uint64_t h, const char *s, size_t len)
{
	while (len--)
		h = (h ^ (unsigned char)*s++) * FNV_PRIME;
	return h;
}

static uint64_t mix(uint64_t h)
{
	h ^= h >> 33;
	h *= 0xff51afd7ed558ccdULL;
	return h ^ h >> 29;
}

static void set_bits(const struct dbusp_bloom *b, uint64_t h)
{
	uint64_t n_bits = b->n_words * 64, step = mix(h) | 1, bit;
	unsigned int i;

	for (i = 0; i < b->n_hash; i++) {
		bit = (h + i * step) % n_bits;
		b->words[bit / 64] |= 1ULL << (bit % 64);
	}
}

void dbusp_bloom_add(const struct dbusp_bloom *b, const char *key, struct dbusp_str value)
{
	uint64_t h = hash_more(hash_more(FNV_START, key, strlen(key)), ":", 1);

	set_bits(b, hash_more(h, value.s, value.len));
}

/* What is longer than any rule no rule can be about. */
static void add_text(const struct dbusp_bloom *b, const char *key, struct dbusp_str text)
{
	if (text.len <= DBUSP_MATCH_TEXT_MAX)
		dbusp_bloom_add(b, key, text);
}

/* All beginnings of @text that end before a separator or, if @with, behind it; and all of it */
static void add_prefixes(const struct dbusp_bloom *b, const char *key, struct dbusp_str text,
			 char separator, bool with)
{
	uint64_t h = hash_more(hash_more(FNV_START, key, strlen(key)), ":", 1);
	uint32_t i;

	for (i = 0; i < text.len && i < DBUSP_MATCH_TEXT_MAX; i++) {
		if (text.s[i] == separator && !with)
			set_bits(b, h);
		h = hash_more(h, text.s + i, 1);
		if (text.s[i] == separator && with)
			set_bits(b, h);
	}
	if (i == text.len)
		set_bits(b, h);
}

static void add_arg(const struct dbusp_bloom *b, unsigned int i, struct dbusp_str text)
{
	char key[32];

	snprintf(key, sizeof(key), "arg%u", i);
	add_text(b, key, text);
	snprintf(key, sizeof(key), "arg%u-dot-prefix", i);
	add_prefixes(b, key, text, '.', false);
	snprintf(key, sizeof(key), "arg%u-slash-prefix", i);
	add_prefixes(b, key, text, '/', true);
}

void dbusp_bloom_filter(const struct dbusp_bloom *b, const struct dbusp_header *h,
			struct dbusp_args *args)
{
	struct dbusp_arg arg;
	unsigned int i;

	dbusp_bloom_add(b, "message-type", DBUSP_STR("signal"));
	dbusp_bloom_add(b, "interface", h->interface);
	dbusp_bloom_add(b, "member", h->member);
	add_text(b, "path", h->path);
	add_prefixes(b, "path-slash-prefix", h->path, '/', false);
	if (h->path.len)
		dbusp_bloom_add(b, "path-slash-prefix", DBUSP_STR("/"));
	for (i = 0; i < DBUSP_ARGS_MAX; i++) {
		arg = dbusp_args_get(args, i);
		if (!arg.type)
			break;
		if (arg.type == 's' || arg.type == 'o')
			add_arg(b, i, arg.text);
	}
}

/*
 * argNpath holds if either is a beginning of the other and ends in a slash. A rule that ends in one
 * is satisfied by shorter texts, too, of which nothing in it is known: it gets no bits.
 */
static void mask_arg_path(const struct dbusp_bloom *b, unsigned int i, struct dbusp_str text)
{
	char key[32];

	if (!text.len || text.s[text.len - 1] == '/')
		return;
	/* The text equals the rule's, or is a beginning of it that ends in a slash. */
	if (memchr(text.s, '/', text.len))
		return;
	snprintf(key, sizeof(key), "arg%u", i);
	dbusp_bloom_add(b, key, text);
}

static void mask_arg(const struct dbusp_bloom *b, const struct dbusp_match_arg *arg,
		     struct dbusp_str text)
{
	char key[32];

	if (arg->kind == DBUSP_ARG_PATH) {
		mask_arg_path(b, arg->index, text);
		return;
	}
	snprintf(key, sizeof(key), arg->kind == DBUSP_ARG_EQUAL ? "arg%u" : "arg%u-dot-prefix",
		 (unsigned int)arg->index);
	dbusp_bloom_add(b, key, text);
}

static void mask_text(const struct dbusp_bloom *b, const struct dbusp_match *m,
		      enum dbusp_match_key key, const char *name)
{
	if (m->keys & key)
		dbusp_bloom_add(b, name, dbusp_match_get(m, key));
}

void dbusp_bloom_mask(const struct dbusp_bloom *b, const struct dbusp_match *m)
{
	unsigned int i;

	if (m->type == DBUSP_SIGNAL)
		dbusp_bloom_add(b, "message-type", DBUSP_STR("signal"));
	mask_text(b, m, DBUSP_MATCH_INTERFACE, "interface");
	mask_text(b, m, DBUSP_MATCH_MEMBER, "member");
	mask_text(b, m, DBUSP_MATCH_PATH, "path");
	mask_text(b, m, DBUSP_MATCH_PATH_NAMESPACE, "path-slash-prefix");
	for (i = 0; i < m->n_args; i++)
		mask_arg(b, &m->args[i], dbusp_match_arg_text(m, i));
}
