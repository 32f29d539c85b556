// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A second and a third opinion: libdbus and GLib on the same bytes.
 *
 * What we accept, both must accept, and read the same values from it. What we refuse, libdbus must
 * refuse as well, but for these deviations:
 *
 *  - DBUSP_WHY_FD_INDEX: libdbus does not compare descriptor indices with the number of
 *    descriptors.
 *  - DBUSP_WHY_DESTINATION, DBUSP_WHY_SENDER: libdbus takes unique names without a dot (":1" and
 *    even ":"), the specification demands two elements ("Bus names").
 *  - DBUSP_WHY_TOO_DEEP: libdbus does not count an array as the 65th container if it is empty or
 *    its elements are fixed.
 *
 * And libdbus may refuse what we accept where it knows more fields than the specification: code 10
 * is an object path to it (containers). Without unknown fields it must accept.
 *
 * GLib looks less closely than either (padding, trailing bytes), so that its refusals count and
 * its consent does not.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <dbus/dbus.h>
#include <gio/gio.h>

#include "dbus-random.h"
#include "dbus/body.h"
#include "dbus/name.h"
#include "dbus/utf8.h"

static DBusMessage *libdbus_parse(const uint8_t *msg, size_t len)
{
	return dbus_message_demarshal((const char *)msg, len, NULL);
}

static enum dbusp_why our_verdict(const uint8_t *msg, size_t len, struct dbusp_header *h)
{
	enum dbusp_why why;

	if (dbusp_header_parse(h, msg, len, DBUSP_MESSAGE_MAX, &why) < 0)
		return why;
	if (h->frame.total_len != len)
		return DBUSP_WHY_TRUNCATED;
	if (dbusp_body_check(h, msg + h->frame.header_len, &why) < 0)
		return why;
	return DBUSP_WHY_NONE;
}

/* Reads with libdbus, compares with what is told. */
struct libdbus_reader {
	DBusMessageIter levels[80];
	unsigned int depth;
};

static void libdbus_fixed(void *userdata, char type, uint64_t value)
{
	struct libdbus_reader *r = userdata;
	DBusBasicValue v;
	const size_t size = dbusp_type_size(type);

	assert_int_equal(dbus_message_iter_get_arg_type(&r->levels[r->depth]), type);
	dbus_message_iter_get_basic(&r->levels[r->depth], &v);
	assert_int_equal(size == 8 ? v.u64 : size == 4 ? v.u32 : size == 2 ? v.u16 : v.byt, value);
	dbus_message_iter_next(&r->levels[r->depth]);
}

static void libdbus_text(void *userdata, char type, const char *value)
{
	struct libdbus_reader *r = userdata;
	const char *s;

	assert_int_equal(dbus_message_iter_get_arg_type(&r->levels[r->depth]), type);
	dbus_message_iter_get_basic(&r->levels[r->depth], &s);
	assert_string_equal(s, value);
	dbus_message_iter_next(&r->levels[r->depth]);
}

static void libdbus_open(void *userdata, char kind, const char *inside)
{
	struct libdbus_reader *r = userdata;
	const int type = kind == '(' ? DBUS_TYPE_STRUCT : kind == '{' ? DBUS_TYPE_DICT_ENTRY : kind;

	assert_int_equal(dbus_message_iter_get_arg_type(&r->levels[r->depth]), type);
	dbus_message_iter_recurse(&r->levels[r->depth], &r->levels[r->depth + 1]);
	r->depth++;
}

static void libdbus_close(void *userdata)
{
	struct libdbus_reader *r = userdata;

	assert_int_equal(dbus_message_iter_get_arg_type(&r->levels[r->depth]), DBUS_TYPE_INVALID);
	r->depth--;
	dbus_message_iter_next(&r->levels[r->depth]);
}

static void assert_same_text(struct dbusp_str ours, const char *theirs)
{
	assert_int_equal(!ours.s, !theirs);
	if (theirs)
		assert_string_equal(ours.s, theirs);
}

static void assert_same_header(const struct dbusp_header *h, DBusMessage *m)
{
	assert_int_equal(h->frame.type, dbus_message_get_type(m));
	assert_int_equal(h->frame.serial, dbus_message_get_serial(m));
	assert_int_equal(h->reply_serial, dbus_message_get_reply_serial(m));
	assert_same_text(h->path, dbus_message_get_path(m));
	assert_same_text(h->interface, dbus_message_get_interface(m));
	assert_same_text(h->member, dbus_message_get_member(m));
	assert_same_text(h->error_name, dbus_message_get_error_name(m));
	assert_same_text(h->destination, dbus_message_get_destination(m));
	assert_same_text(h->sender, dbus_message_get_sender(m));
	assert_same_text(h->signature, dbus_message_get_signature(m));
}

static void test_libdbus_reads_what_we_marshal(void **state)
{
	struct libdbus_reader r;
	const struct listener compare = {
		.fixed = libdbus_fixed,
		.text = libdbus_text,
		.open = libdbus_open,
		.close = libdbus_close,
		.userdata = &r,
	};
	struct random_message m;
	struct dbusp_header h;
	DBusMessage *theirs;
	uint64_t seed;
	uint8_t *msg;
	size_t len;

	for (seed = 0; seed < 3000; seed++) {
		random_describe(seed, &m);
		msg = random_marshal(&m, seed & 1, &len);
		assert_int_equal(our_verdict(msg, len, &h), DBUSP_WHY_NONE);
		theirs = libdbus_parse(msg, len);
		assert_non_null(theirs);
		assert_same_header(&h, theirs);
		r.depth = 0;
		dbus_message_iter_init(theirs, &r.levels[0]);
		random_tell(&m, &compare);
		dbus_message_unref(theirs);
		free(msg);
	}
}

/* What libdbus marshals again, we accept, and its body has the same bytes. */
static void test_we_read_what_libdbus_marshals(void **state)
{
	struct random_message m;
	struct dbusp_header ours, theirs;
	DBusMessage *copy;
	uint64_t seed;
	uint8_t *msg;
	char *again;
	int again_len;
	size_t len;

	for (seed = 0; seed < 1000; seed++) {
		random_describe(seed, &m);
		msg = random_marshal(&m, false, &len);
		assert_int_equal(our_verdict(msg, len, &ours), DBUSP_WHY_NONE);
		copy = libdbus_parse(msg, len);
		assert_non_null(copy);
		dbus_message_set_sender(copy, "org.example.A.Longer.Sender");
		assert_true(dbus_message_marshal(copy, &again, &again_len));
		assert_int_equal(our_verdict((uint8_t *)again, again_len, &theirs), DBUSP_WHY_NONE);
		assert_same_header(&theirs, copy);
		assert_int_equal(theirs.frame.body_len, ours.frame.body_len);
		assert_memory_equal(again + theirs.frame.header_len, msg + ours.frame.header_len,
				    ours.frame.body_len);
		dbus_free(again);
		dbus_message_unref(copy);
		free(msg);
	}
}

/* GLib parses into GVariants and marshals those again: the bodies must be the same bytes. */
static void test_glib_marshals_the_same_body(void **state)
{
	struct random_message m;
	struct dbusp_header h, again_h;
	GDBusMessage *theirs;
	uint64_t seed;
	uint8_t *msg;
	guchar *again;
	size_t len;
	gsize again_len;

	for (seed = 0; seed < 2000; seed++) {
		random_describe(seed, &m);
		msg = random_marshal(&m, seed & 1, &len);
		assert_int_equal(our_verdict(msg, len, &h), DBUSP_WHY_NONE);
		theirs = g_dbus_message_new_from_blob(msg, len, G_DBUS_CAPABILITY_FLAGS_NONE, NULL);
		assert_non_null(theirs);
		again = g_dbus_message_to_blob(theirs, &again_len, G_DBUS_CAPABILITY_FLAGS_NONE,
					       NULL);
		assert_non_null(again);
		assert_int_equal(our_verdict(again, again_len, &again_h), DBUSP_WHY_NONE);
		assert_int_equal(again_h.frame.big, seed & 1);
		assert_true(dbusp_str_eq(h.signature, again_h.signature));
		assert_int_equal(h.frame.body_len, again_h.frame.body_len);
		assert_memory_equal(again + again_h.frame.header_len, msg + h.frame.header_len,
				    h.frame.body_len);
		g_free(again);
		g_object_unref(theirs);
		free(msg);
	}
}

static bool known_deviation(enum dbusp_why why)
{
	return why == DBUSP_WHY_FD_INDEX || why == DBUSP_WHY_DESTINATION ||
	       why == DBUSP_WHY_SENDER || why == DBUSP_WHY_TOO_DEEP;
}

/* A change of the kind that breaks one thing at a time. */
static void damage(uint64_t *rng, uint8_t *msg, size_t len)
{
	uint8_t *at = msg + random_below(rng, len);

	switch (random_below(rng, 5)) {
	case 0:
		*at = random_below(rng, 256);
		break;
	case 1:
		*at ^= 1 << random_below(rng, 8);
		break;
	case 2:
		*at += random_below(rng, 2) ? 1 : -1;
		break;
	case 3:
		*at = "\0\1/.:a(){}vsugo\xff"[random_below(rng, 16)];
		break;
	case 4:
		msg[random_below(rng, 16)] = random_below(rng, 6);
		break;
	}
}

/* The same message without fields unknown to us, as libdbus sees it. */
static DBusMessage *libdbus_parse_stripped(const struct dbusp_header *h, const uint8_t *msg)
{
	const size_t room = dbusp_header_room(h, h->sender.len);
	uint8_t *work = malloc(room + h->frame.body_len);
	DBusMessage *m;
	uint32_t len;

	assert_int_equal(dbusp_header_rewrite(h, msg, h->sender, true, work, room, &len), 0);
	memcpy(work + len, msg + h->frame.header_len, h->frame.body_len);
	m = libdbus_parse(work, len + h->frame.body_len);
	free(work);
	return m;
}

static void compare_damaged(const uint8_t *msg, size_t len, unsigned int *accepted,
			    unsigned int *refused)
{
	struct dbusp_header h;
	enum dbusp_why why = our_verdict(msg, len, &h);
	DBusMessage *libdbus;
	GDBusMessage *glib;

	/* a message that waits for descriptors is incomplete without a socket */
	if (why == DBUSP_WHY_NONE && h.n_fds)
		return;
	libdbus = libdbus_parse(msg, len);
	if (why != DBUSP_WHY_NONE) {
		assert_true(!libdbus || known_deviation(why));
		*refused += 1;
	} else {
		if (!libdbus && h.unknown)
			libdbus = libdbus_parse_stripped(&h, msg);
		assert_non_null(libdbus);
		assert_same_header(&h, libdbus);
		*accepted += 1;
		if (h.frame.type <= DBUSP_SIGNAL) {
			glib = g_dbus_message_new_from_blob((guchar *)msg, len,
							    G_DBUS_CAPABILITY_FLAGS_NONE, NULL);
			assert_non_null(glib);
			g_object_unref(glib);
		}
	}
	if (libdbus)
		dbus_message_unref(libdbus);
}

static void test_verdicts_on_damaged_messages(void **state)
{
	unsigned int accepted = 0, refused = 0, i, n;
	uint64_t seed, rng = 4242;
	struct random_message m;
	uint8_t *msg, *work;
	size_t len;

	for (seed = 0; seed < 2500; seed++) {
		random_describe(seed, &m);
		msg = random_marshal(&m, seed & 1, &len);
		work = malloc(len);
		for (i = 0; i < 12; i++) {
			memcpy(work, msg, len);
			for (n = 1 + random_below(&rng, 2); n; n--)
				damage(&rng, work, len);
			compare_damaged(work, len, &accepted, &refused);
		}
		free(work);
		free(msg);
	}
	assert_true(accepted > 2000 && refused > 10000);
}

/* All signatures up to six bytes over the codes that matter to the grammar. */
static void test_verdicts_on_all_short_signatures(void **state)
{
	static const char codes[] = "yasv(){}";
	char sig[7];
	uint32_t n, i, x;

	for (n = 0; n < 1 << 18; n++) {
		for (i = 0, x = n; i < 6; i++, x >>= 3)
			sig[i] = codes[x & 7];
		sig[6] = 0;
		/* the same number of steps, from one byte to six */
		for (i = 6; i; i--) {
			sig[i] = 0;
			assert_int_equal(dbusp_sig_valid(sig, i),
					 !!dbus_signature_validate(sig, NULL));
			assert_int_equal(dbusp_sig_single(sig, i),
					 !!dbus_signature_validate_single(sig, NULL));
			if (i > 1 && n >> 3 * (i - 1))
				break;
		}
	}
}

/*
 * Random long signatures, nested up to and past the limits. Deviation: libdbus counts arrays that
 * directly follow each other, the specification counts all that are around a type.
 */
static void test_verdicts_on_deep_signatures(void **state)
{
	uint64_t rng = 7;
	unsigned int valid = 0;
	char sig[400];
	int n, i, depth, len, arrays;

	for (n = 0; n < 100000; n++) {
		depth = random_below(&rng, 70);
		len = arrays = 0;
		for (i = 0; i < depth; i++) {
			sig[len++] = "a(("[random_below(&rng, 3)];
			arrays += sig[len - 1] == 'a';
			if (sig[len - 1] == 'a' && random_below(&rng, 4) == 0) {
				sig[len++] = '{';
				sig[len++] = 'y';
			}
		}
		sig[len++] = 'y';
		for (i = len - 1; i >= 0; i--) {
			if (sig[i] == '(' || sig[i] == '{')
				sig[len++] = sig[i] == '(' ? ')' : '}';
		}
		sig[len] = 0;
		assert_int_equal(dbusp_sig_valid(sig, len),
				 arrays <= 32 && dbus_signature_validate(sig, NULL));
		valid += dbusp_sig_valid(sig, len);
	}
	assert_true(valid > 10000 && valid < 90000);
}

/* All strings up to six bytes over the characters that matter to names. */
static void test_verdicts_on_all_short_names(void **state)
{
	static const char chars[] = "a0-._:/ ";
	char s[7];
	uint32_t n, i, x;
	bool elements;

	for (n = 0; n < 1 << 18; n++) {
		for (i = 0, x = n; i < 6; i++, x >>= 3)
			s[i] = chars[x & 7];
		s[1 + n % 6] = 0;
		x = strlen(s);
		assert_int_equal(dbusp_path_valid(s, x), !!dbus_validate_path(s, NULL));
		assert_int_equal(dbusp_name_is_interface(s, x), !!dbus_validate_interface(s, NULL));
		assert_int_equal(dbusp_name_is_member(s, x), !!dbus_validate_member(s, NULL));
		assert_int_equal(dbusp_name_is_error(s, x), !!dbus_validate_error_name(s, NULL));
		/* unique names without two elements are the deviation */
		elements = s[0] != ':' || (s[1] != '.' && strchr(s, '.'));
		assert_int_equal(dbusp_name_is_bus(s, x),
				 elements && dbus_validate_bus_name(s, NULL));
	}
}

static void test_verdicts_on_random_utf8(void **state)
{
	static const uint8_t bytes[] =
		"a\x7f\x80\x8f\x90\x9f\xa0\xbf\xc1\xc2\xdf\xe0\xed\xef\xf0\xf4";
	unsigned int valid = 0;
	uint64_t rng = 8;
	char s[20];
	int n, i, len;

	for (n = 0; n < 500000; n++) {
		len = random_below(&rng, 5) ? 1 + random_below(&rng, 4) : random_below(&rng, 20);
		for (i = 0; i < len; i++)
			s[i] = bytes[random_below(&rng, 16)];
		s[len] = 0;
		assert_int_equal(dbusp_utf8_valid(s, len), !!dbus_validate_utf8(s, NULL));
		assert_int_equal(dbusp_utf8_valid(s, len), !!g_utf8_validate(s, len, NULL));
		valid += dbusp_utf8_valid(s, len);
	}
	assert_true(valid > 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_libdbus_reads_what_we_marshal),
		cmocka_unit_test(test_we_read_what_libdbus_marshals),
		cmocka_unit_test(test_glib_marshals_the_same_body),
		cmocka_unit_test(test_verdicts_on_damaged_messages),
		cmocka_unit_test(test_verdicts_on_all_short_signatures),
		cmocka_unit_test(test_verdicts_on_deep_signatures),
		cmocka_unit_test(test_verdicts_on_all_short_names),
		cmocka_unit_test(test_verdicts_on_random_utf8),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
