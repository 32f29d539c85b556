// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Authentication: input in one piece and in random pieces ends the same, and nobody gets in whom
 * the configuration does not let in. Input: a byte of options, a byte for the pieces, what the
 * peer says.
 */
#include "dbus/sasl.h"
#include "fuzz.h"

enum {
	OPT_ANONYMOUS = 1,
	OPT_NO_UID = 2,
	OPT_FDS = 4,
	OPT_CLIENT = 8,
};

#define OUT_MAX (DBUSP_SASL_LINES_MAX * DBUSP_SASL_REPLY_MAX)

/* All that was said, and what came of it. */
struct outcome {
	enum dbusp_sasl_result result;
	size_t consumed, written;
	bool fds;
	uint8_t mech;
	uint8_t out[OUT_MAX];
};

static void run_server(const struct dbusp_sasl_config *config, uint32_t uid, const uint8_t *data,
		       size_t size, size_t piece, struct outcome *ret)
{
	struct dbusp_sasl_server s;
	size_t seen = 0, consumed, written;
	uint8_t *in;

	memset(ret, 0, sizeof(*ret));
	dbusp_sasl_server_init(&s, config, uid);
	do {
		seen = size - seen < piece ? size : seen + piece;
		do {
			in = fuzz_copy(data + ret->consumed, seen - ret->consumed);
			FUZZ_CHECK(OUT_MAX - ret->written >= DBUSP_SASL_REPLY_MAX);
			ret->result = dbusp_sasl_server_step(&s, in, seen - ret->consumed,
							     &consumed, ret->out + ret->written,
							     DBUSP_SASL_REPLY_MAX, &written);
			free(in);
			ret->consumed += consumed;
			ret->written += written;
			FUZZ_CHECK(ret->consumed <= seen && written <= DBUSP_SASL_REPLY_MAX);
		} while (ret->result == DBUSP_SASL_MORE && written);
	} while (ret->result == DBUSP_SASL_MORE && seen < size);
	ret->fds = s.fds;
	ret->mech = s.mech;
	FUZZ_CHECK(ret->result != DBUSP_SASL_CLOSE || s.why != DBUSP_WHY_NONE);
}

/* Whoever gets in said so, and ended with BEGIN. */
static void check_admitted(const struct dbusp_sasl_config *config, uint32_t uid,
			   const uint8_t *data, const struct outcome *o)
{
	FUZZ_CHECK(o->mech & config->mechanisms);
	FUZZ_CHECK(o->mech != DBUSP_SASL_EXTERNAL || uid != (uint32_t)-1);
	FUZZ_CHECK(!o->fds || config->fds);
	FUZZ_CHECK(o->consumed >= 8 && data[o->consumed - 1] == '\n');
	FUZZ_CHECK(memmem(data, o->consumed, "\r\nBEGIN", 7));
	FUZZ_CHECK(memmem(o->out, o->written, "OK 0123", 7));
}

static void fuzz_server(uint8_t options, size_t piece, const uint8_t *data, size_t size)
{
	static struct outcome whole, pieces;
	const uint32_t uid = options & OPT_NO_UID ? (uint32_t)-1 : 1000;
	const struct dbusp_sasl_config config = {
		.mechanisms = DBUSP_SASL_EXTERNAL |
			      (options & OPT_ANONYMOUS ? DBUSP_SASL_ANONYMOUS : 0),
		.fds = options & OPT_FDS,
		.guid = "0123456789abcdef0123456789abcdef",
	};

	run_server(&config, uid, data, size, size ? size : 1, &whole);
	run_server(&config, uid, data, size, piece, &pieces);
	FUZZ_CHECK(whole.result == pieces.result && whole.consumed == pieces.consumed);
	FUZZ_CHECK(whole.mech == pieces.mech && whole.fds == pieces.fds);
	FUZZ_CHECK(whole.written == pieces.written);
	FUZZ_CHECK(!memcmp(whole.out, pieces.out, whole.written));
	if (whole.result == DBUSP_SASL_DONE)
		check_admitted(&config, uid, data, &whole);
}

static void fuzz_client(uint8_t options, const uint8_t *data, size_t size)
{
	struct dbusp_sasl_client c;
	char out[2 * DBUSP_SASL_REPLY_MAX];
	size_t at = 0, consumed, written;
	enum dbusp_sasl_result r;

	dbusp_sasl_client_init(&c,
			       options & OPT_ANONYMOUS ? DBUSP_SASL_ANONYMOUS : DBUSP_SASL_EXTERNAL,
			       options & OPT_NO_UID ? -1 : 1000, options & OPT_FDS);
	do {
		r = dbusp_sasl_client_step(&c, data + at, size - at, &consumed, out, sizeof(out),
					   &written);
		at += consumed;
		FUZZ_CHECK(at <= size && written <= sizeof(out));
	} while (r == DBUSP_SASL_MORE && written);
	FUZZ_CHECK(r != DBUSP_SASL_DONE || strlen(c.guid) == DBUSP_GUID_LEN);
	FUZZ_CHECK(r != DBUSP_SASL_CLOSE || c.why != DBUSP_WHY_NONE);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t options = fuzz_byte(&data, &size);
	const size_t piece = 1 + fuzz_byte(&data, &size) % 64;
	uint8_t *in = fuzz_copy(data, size);

	if (options & OPT_CLIENT)
		fuzz_client(options, in, size);
	else
		fuzz_server(options, piece, in, size);
	free(in);
	return 0;
}
