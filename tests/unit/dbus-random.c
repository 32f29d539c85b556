// SPDX-License-Identifier: LGPL-2.1-or-later
#include "dbus-random.h"

#include <assert.h>
#include <stdio.h>

/* xorshift64* */
uint64_t random_next(uint64_t *state)
{
	uint64_t x = *state;

	x ^= x >> 12;
	x ^= x << 25;
	x ^= x >> 27;
	*state = x;
	return x * 0x2545f4914f6cdd1dULL;
}

uint32_t random_below(uint64_t *state, uint32_t n)
{
	return (random_next(state) >> 32) % n;
}

static char basic_type(uint64_t *rng)
{
	return "ybnqiuxtdsog"[random_below(rng, 12)];
}

/* Appends a complete type to @sig. */
static void random_type(uint64_t *rng, char *sig, unsigned int depth)
{
	const unsigned int pick = random_below(rng, 10);
	size_t len = strlen(sig);
	unsigned int i, n;

	if (depth >= 5 || len > 100 || pick < 5) {
		sig[len] = basic_type(rng);
		sig[len + 1] = 0;
	} else if (pick < 6) {
		strcat(sig, "v");
	} else if (pick < 8) {
		strcat(sig, "a");
		random_type(rng, sig, depth + 1);
	} else if (pick < 9) {
		sprintf(sig + len, "a{%c", basic_type(rng));
		random_type(rng, sig, depth + 2);
		strcat(sig, "}");
	} else {
		strcat(sig, "(");
		n = 1 + random_below(rng, 3);
		for (i = 0; i < n; i++)
			random_type(rng, sig, depth + 1);
		strcat(sig, ")");
	}
}

static void random_text(uint64_t *rng, char type, char *out)
{
	static const char *const pieces[] = {
		"a", "Zz", "longer piece of text", "\xc3\xa4", "\xe2\x82\xac", "\xf0\x9f\x92\xa9",
		"'", "\x7f", "\x01", ".",
	};
	unsigned int i, n = random_below(rng, 6);

	strcpy(out, "");
	if (type == 'g') {
		for (i = 0; i < n; i++)
			random_type(rng, out, 2);
	} else if (type == 's') {
		for (i = 0; i < n; i++)
			strcat(out, pieces[random_below(rng, 10)]);
	} else {
		for (i = 0; i < n; i++)
			sprintf(out + strlen(out), "/%c%u", 'a' + i, random_below(rng, 1000));
		if (!n)
			strcpy(out, "/");
	}
}

static uint64_t random_fixed(uint64_t *rng, char type)
{
	uint64_t v = random_next(rng);

	if (type == 'b')
		return v & 1;
	/* any double but NaN, whose bits nobody promises to keep */
	if (type == 'd')
		return v & ~(1ULL << 62);
	return dbusp_type_size(type) < 8 ? v & ((1ULL << 8 * dbusp_type_size(type)) - 1) : v;
}

static void tell_value(uint64_t *rng, const char *sig, unsigned int depth,
		       const struct listener *to);

static void tell_inside(uint64_t *rng, char kind, const char *inside, unsigned int depth,
			const struct listener *to)
{
	unsigned int n = kind == 'a' ? random_below(rng, depth > 8 ? 2 : 4) : 1;
	const char *p;

	to->open(to->userdata, kind, inside);
	for (; n; n--) {
		for (p = inside; *p; p += dbusp_sig_span(p))
			tell_value(rng, p, depth + 1, to);
	}
	to->close(to->userdata);
}

static void tell_value(uint64_t *rng, const char *sig, unsigned int depth,
		       const struct listener *to)
{
	const size_t span = dbusp_sig_span(sig);
	char buf[512] = "";

	if (dbusp_type_size(*sig)) {
		to->fixed(to->userdata, *sig, random_fixed(rng, *sig));
	} else if (dbusp_type_basic(*sig)) {
		random_text(rng, *sig, buf);
		to->text(to->userdata, *sig, buf);
	} else if (*sig == 'v') {
		random_type(rng, buf, depth > 10 ? 5 : 2);
		tell_inside(rng, 'v', buf, depth, to);
	} else {
		memcpy(buf, sig + 1, span - 1);
		if (*sig != 'a')
			buf[span - 2] = 0;
		tell_inside(rng, *sig, buf, depth, to);
	}
}

void random_describe(uint64_t seed, struct random_message *ret)
{
	uint64_t rng = (seed + 1) * 0x9e3779b97f4a7c15ULL;
	struct dbusp_desc *d = &ret->desc;
	unsigned int i, n;

	*ret = (struct random_message){ .sig = "" };
	random_next(&rng);
	for (i = 0, n = random_below(&rng, 5); i < n; i++)
		random_type(&rng, ret->sig, 0);
	d->type = 1 + random_below(&rng, 4);
	d->flags = random_below(&rng, 8);
	d->serial = 1 + random_below(&rng, 1000);
	d->path = DBUSP_STR("/org/example/Object");
	d->member = DBUSP_STR("Member");
	if (d->type == DBUSP_SIGNAL || random_below(&rng, 2))
		d->interface = DBUSP_STR("org.example.Interface");
	if (d->type == DBUSP_ERROR)
		d->error_name = DBUSP_STR("org.example.Error.Failed");
	if (d->type == DBUSP_ERROR || d->type == DBUSP_METHOD_RETURN)
		d->reply_serial = 1 + random_below(&rng, 1000);
	if (random_below(&rng, 2))
		d->destination = DBUSP_STR("org.example-1.Name");
	if (random_below(&rng, 2))
		d->sender = DBUSP_STR(":1.42");
	d->signature = dbusp_str(ret->sig);
	ret->body_seed = random_next(&rng);
}

void random_tell(const struct random_message *m, const struct listener *to)
{
	uint64_t rng = m->body_seed;
	const char *p;

	for (p = m->sig; *p; p += dbusp_sig_span(p))
		tell_value(&rng, p, 0, to);
}

static void put_fixed(void *userdata, char type, uint64_t value)
{
	const uint32_t v4 = value;
	const uint16_t v2 = value;
	const uint8_t v1 = value;
	const size_t size = dbusp_type_size(type);

	dbusp_put_fixed(userdata, type, size == 8 ? (void *)&value : size == 4 ? (void *)&v4 :
			size == 2 ? (void *)&v2 : (void *)&v1);
}

static void put_text(void *userdata, char type, const char *value)
{
	dbusp_put_text(userdata, type, dbusp_str(value));
}

static void put_open(void *userdata, char kind, const char *inside)
{
	dbusp_open(userdata, kind, kind == 'v' ? inside : NULL);
}

static void put_close(void *userdata)
{
	dbusp_close(userdata);
}

uint8_t *random_marshal(const struct random_message *m, bool big, size_t *ret_len)
{
	struct dbusp_desc desc = m->desc;
	struct dbusp_build build;
	uint8_t *msg = NULL;
	int r;
	const struct listener writer = {
		.fixed = put_fixed,
		.text = put_text,
		.open = put_open,
		.close = put_close,
		.userdata = &build,
	};

	desc.big = big;
	desc.signature = dbusp_str(m->sig);
	dbusp_build_begin(&build, NULL, &desc);
	random_tell(m, &writer);
	r = dbusp_build_end(&build, &msg, ret_len);
	assert(r == 0);
	return r < 0 ? NULL : msg;
}
