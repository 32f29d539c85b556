// SPDX-License-Identifier: LGPL-2.1-or-later
#include "dbus/sig.h"

#include <errno.h>

/* What a type code stands for; a row of zeroes is no type. */
struct type_info {
	uint8_t align;
	uint8_t size;	/* of fixed types */
	bool basic;
};

static const struct type_info types[128] = {
	['y'] = { 1, 1, true },
	['b'] = { 4, 4, true },
	['n'] = { 2, 2, true },
	['q'] = { 2, 2, true },
	['i'] = { 4, 4, true },
	['u'] = { 4, 4, true },
	['x'] = { 8, 8, true },
	['t'] = { 8, 8, true },
	['d'] = { 8, 8, true },
	['h'] = { 4, 4, true },
	['s'] = { 4, 0, true },
	['o'] = { 4, 0, true },
	['g'] = { 1, 0, true },
	['v'] = { 1, 0, false },
	['a'] = { 4, 0, false },
	['('] = { 8, 0, false },
	['{'] = { 8, 0, false },
};

static const struct type_info *type_info(char type)
{
	static const struct type_info none;

	return (unsigned char)type < 128 ? &types[(unsigned char)type] : &none;
}

unsigned int dbusp_type_align(char type)
{
	return type_info(type)->align;
}

unsigned int dbusp_type_size(char type)
{
	return type_info(type)->size;
}

bool dbusp_type_basic(char type)
{
	return type_info(type)->basic;
}

/* A container that is open while the signature is scanned. */
struct open_type {
	uint8_t start;	/* where its code stands */
	char code;	/* 'a', '(' or '{' */
	uint8_t fields;	/* complete types seen inside */
};

struct scan {
	struct dbusp_sigmap *map;
	struct open_type open[3 * DBUSP_SIG_DEPTH_MAX];
	unsigned int depth, arrays, structs;
};

static int open_container(struct scan *s, char code, size_t pos)
{
	if (code == '{' && (!s->depth || s->open[s->depth - 1].code != 'a'))
		return -EBADMSG;
	if (code == 'a' && ++s->arrays > DBUSP_SIG_DEPTH_MAX)
		return -EMSGSIZE;
	if (code == '(' && ++s->structs > DBUSP_SIG_DEPTH_MAX)
		return -EMSGSIZE;
	s->open[s->depth++] = (struct open_type){ .start = pos, .code = code };
	return 0;
}

/*
 * A complete type ended before @end. An array around it is complete with it, and so on outwards;
 * then the structure or dict entry around all that has one more field.
 */
static void complete(struct scan *s, size_t start, size_t end)
{
	s->map->span[start] = end - start;
	while (s->depth && s->open[s->depth - 1].code == 'a') {
		start = s->open[--s->depth].start;
		s->map->span[start] = end - start;
		s->arrays--;
	}
	if (s->depth)
		s->open[s->depth - 1].fields++;
}

static int close_container(struct scan *s, char code, size_t pos)
{
	struct open_type *top = s->depth ? &s->open[s->depth - 1] : NULL;

	if (!top || top->code != code)
		return -EBADMSG;
	if (code == '{' ? top->fields != 2 : !top->fields)
		return -EBADMSG;
	if (code == '(')
		s->structs--;
	s->depth--;
	complete(s, top->start, pos + 1);
	return 0;
}

/* The first field of a dict entry is its key: no container may start there. */
static bool at_dict_key(const struct scan *s)
{
	const struct open_type *top = s->depth ? &s->open[s->depth - 1] : NULL;

	return top && top->code == '{' && !top->fields;
}

static int scan_code(struct scan *s, char c, size_t pos)
{
	if (c == ')')
		return close_container(s, '(', pos);
	if (c == '}')
		return close_container(s, '{', pos);
	if (!dbusp_type_align(c))
		return -EBADMSG;
	if (!dbusp_type_basic(c) && at_dict_key(s))
		return -EBADMSG;
	if (c == 'a' || c == '(' || c == '{')
		return open_container(s, c, pos);
	complete(s, pos, pos + 1);
	return 0;
}

int dbusp_sig_parse(struct dbusp_sigmap *ret, const char *sig, size_t len)
{
	struct scan s;
	size_t i;
	int r;

	if (len > DBUSP_SIG_MAX)
		return -EMSGSIZE;
	s.map = ret;
	s.depth = s.arrays = s.structs = 0;
	for (i = 0; i < len; i++) {
		/* Most signatures have no container at all. */
		if (!s.depth && dbusp_type_basic(sig[i])) {
			ret->span[i] = 1;
			continue;
		}
		r = scan_code(&s, sig[i], i);
		if (r < 0)
			return r;
	}
	if (s.depth)
		return -EBADMSG;
	ret->sig = sig;
	ret->len = len;
	return 0;
}

bool dbusp_sig_valid(const char *sig, size_t len)
{
	struct dbusp_sigmap map;

	return dbusp_sig_parse(&map, sig, len) == 0;
}

bool dbusp_sig_single(const char *sig, size_t len)
{
	struct dbusp_sigmap map;

	return len && dbusp_sig_parse(&map, sig, len) == 0 && map.span[0] == len;
}

size_t dbusp_sig_span(const char *sig)
{
	size_t i = 0;
	int open = 0;

	for (;; i++) {
		if (sig[i] == '(' || sig[i] == '{')
			open++;
		if (sig[i] == ')' || sig[i] == '}')
			open--;
		if (!open && sig[i] != 'a')
			return i + 1;
	}
}
