// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * D-Bus messages, from the first 16 bytes to the last argument. Input: a byte of options, the
 * message.
 */
#include <errno.h>

#include "dbus/args.h"
#include "dbus/body.h"
#include "dbus/known.h"
#include "dbus/name.h"
#include "fuzz.h"

enum {
	OPT_STRIP = 1,
	OPT_SENDER = 2,
	OPT_LOW_MAX = 4,
};

static bool within(struct dbusp_str s, const uint8_t *msg, size_t len)
{
	const uint8_t *p = (const uint8_t *)s.s;

	return p >= msg && p <= msg + len && s.len < len - (p - msg) && !p[s.len];
}

/* What a header promises to whoever uses it. */
static void check_header(const struct dbusp_header *h, const uint8_t *msg)
{
	const size_t len = h->frame.header_len;

	FUZZ_CHECK(len % 8 == 0 && h->frame.total_len == len + h->frame.body_len);
	FUZZ_CHECK(h->frame.total_len <= DBUSP_MESSAGE_MAX && h->frame.serial && h->frame.type);
	FUZZ_CHECK(!h->path.s ||
		   (within(h->path, msg, len) && dbusp_path_valid(h->path.s, h->path.len)));
	FUZZ_CHECK(!h->interface.s || (within(h->interface, msg, len) &&
				       dbusp_name_is_interface(h->interface.s, h->interface.len)));
	FUZZ_CHECK(!h->member.s || (within(h->member, msg, len) &&
				    dbusp_name_is_member(h->member.s, h->member.len)));
	FUZZ_CHECK(!h->destination.s || (within(h->destination, msg, len) &&
					 dbusp_name_is_bus(h->destination.s, h->destination.len)));
	FUZZ_CHECK(!h->sender.s || within(h->sender, msg, len));
	FUZZ_CHECK(dbusp_sig_valid(h->signature.s, h->signature.len));
	FUZZ_CHECK(h->frame.type != DBUSP_METHOD_CALL || (h->path.s && h->member.s));
	FUZZ_CHECK(h->frame.type != DBUSP_SIGNAL || (h->path.s && h->interface.s && h->member.s));
	FUZZ_CHECK(h->frame.type != DBUSP_ERROR || (h->error_name.s && h->reply_serial));
	FUZZ_CHECK(h->frame.type != DBUSP_METHOD_RETURN || h->reply_serial);
}

static int read_all(struct dbusp_reader *reader)
{
	struct dbusp_str s;
	uint64_t v;
	char type;
	int r = 0;

	while (r == 0 && (type = dbusp_reader_type(reader))) {
		if (dbusp_type_size(type)) {
			r = dbusp_read_fixed(reader, type, &v);
		} else if (dbusp_type_basic(type)) {
			r = dbusp_read_text(reader, type, &s);
		} else {
			r = dbusp_reader_enter(reader, type);
			if (r == 0)
				r = read_all(reader);
			if (r == 0)
				r = dbusp_reader_exit(reader);
		}
	}
	return r;
}

/* Checker, reader and skipping agree; arguments are found in valid and broken bodies. */
static int check_body(const struct dbusp_header *h, const uint8_t *body)
{
	const int verdict = dbusp_body_check(h, body, NULL);
	struct dbusp_reader reader;
	struct dbusp_args args;
	unsigned int i;
	int r;

	dbusp_reader_init(&reader, h, body);
	r = read_all(&reader);
	if (r == 0 && reader.cursor.pos != h->frame.body_len)
		r = -EBADMSG;
	FUZZ_CHECK(r == verdict);

	dbusp_reader_init(&reader, h, body);
	do
		r = dbusp_reader_skip(&reader);
	while (r == 0);
	FUZZ_CHECK(verdict || r == -ENOMSG);

	dbusp_args_init(&args, h, body);
	for (i = DBUSP_ARGS_MAX; i; i--)
		dbusp_args_get(&args, i - 1);
	return verdict;
}

static bool same(struct dbusp_str a, struct dbusp_str b)
{
	return a.s && b.s ? dbusp_str_eq(a, b) : a.s == b.s;
}

/* A rewritten header means the same but for sender and unknown fields, and so does its body. */
static void check_rewrite(const struct dbusp_header *h, const uint8_t *msg, uint8_t options,
			  int verdict)
{
	const struct dbusp_str sender = options & OPT_SENDER ? DBUSP_STR(":1.12345") :
							       dbusp_str(NULL);
	const size_t room = dbusp_header_room(h, sender.len);
	uint8_t *work = malloc(room + h->frame.body_len);
	struct dbusp_header again;
	uint32_t len;

	FUZZ_CHECK(work);
	FUZZ_CHECK(dbusp_header_rewrite(h, msg, sender, options & OPT_STRIP, work, room, &len) ==
		   0);
	FUZZ_CHECK(len <= room);
	memcpy(work + len, msg + h->frame.header_len, h->frame.body_len);
	FUZZ_CHECK(dbusp_header_parse(&again, work, len + h->frame.body_len, DBUSP_MESSAGE_MAX,
				      NULL) == 0);
	FUZZ_CHECK(again.frame.header_len == len && again.frame.serial == h->frame.serial);
	FUZZ_CHECK(same(again.sender, sender));
	FUZZ_CHECK(again.unknown == (h->unknown && !(options & OPT_STRIP)));
	FUZZ_CHECK(same(again.path, h->path) && same(again.interface, h->interface));
	FUZZ_CHECK(same(again.member, h->member) && same(again.error_name, h->error_name));
	FUZZ_CHECK(same(again.destination, h->destination) && same(again.signature, h->signature));
	FUZZ_CHECK(again.reply_serial == h->reply_serial && again.n_fds == h->n_fds);
	FUZZ_CHECK(dbusp_body_check(&again, work + len, NULL) == verdict);
	free(work);
}

/* Whatever came before, a header that may be known is found to be what it is. */
static void check_known(const struct dbusp_frame *f, const uint8_t *msg, size_t size,
			const struct dbusp_header *expect, int verdict)
{
	static struct dbusp_known known;
	struct dbusp_header h;

	FUZZ_CHECK(dbusp_header_parse_known(&known, &h, f, msg, size, NULL) == verdict);
	if (verdict)
		return;
	FUZZ_CHECK(h.present == expect->present && h.unknown == expect->unknown);
	FUZZ_CHECK(h.reply_serial == expect->reply_serial && h.n_fds == expect->n_fds);
	FUZZ_CHECK(h.path.s == expect->path.s && h.interface.s == expect->interface.s);
	FUZZ_CHECK(h.member.s == expect->member.s && h.sender.s == expect->sender.s);
	FUZZ_CHECK(h.error_name.s == expect->error_name.s);
	FUZZ_CHECK(h.destination.s == expect->destination.s);
	FUZZ_CHECK(dbusp_str_eq(h.signature, expect->signature));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t options = fuzz_byte(&data, &size);
	const size_t max = options & OPT_LOW_MAX ? 200 : SIZE_MAX;
	uint8_t *msg = fuzz_copy(data, size);
	struct dbusp_header h;
	struct dbusp_frame f;
	int rf, rh;

	rf = dbusp_frame_parse(&f, msg, size, max, NULL);
	rh = dbusp_header_parse(&h, msg, size, max, NULL);
	FUZZ_CHECK(rf == 0 || rf == rh);
	FUZZ_CHECK(rh != -EAGAIN || size < 16 || size < f.header_len);
	if (rf == 0)
		check_known(&f, msg, size, &h, rh);
	if (rh == 0) {
		FUZZ_CHECK(rf == 0 && f.total_len == h.frame.total_len &&
			   f.serial == h.frame.serial);
		FUZZ_CHECK(f.total_len <= max);
		check_header(&h, msg);
		if (size >= f.total_len)
			check_rewrite(&h, msg, options, check_body(&h, msg + f.header_len));
	}
	free(msg);
	return 0;
}
