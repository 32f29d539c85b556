// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Addresses: whatever is accepted can be taken apart, and put together again from its parts with
 * the same meaning. Input: a list of addresses.
 */
#include <errno.h>

#include "dbus/address.h"
#include "fuzz.h"

/* A value unescaped and escaped again reads back as the same. */
static void check_value(struct dbusp_str key, struct dbusp_str escaped)
{
	char *text = malloc(64 + key.len + 3 * escaped.len), *value, *again;
	struct dbusp_address a = { .transport = DBUSP_STR("x") }, b;
	struct dbusp_str list;
	size_t len, again_len, n;
	char *name;

	FUZZ_CHECK(text);
	name = malloc(key.len + 1);
	value = malloc(escaped.len + 1);
	again = malloc(escaped.len + 1);
	FUZZ_CHECK(name && value && again);
	memcpy(name, key.s, key.len);
	name[key.len] = 0;
	n = sprintf(text, "x:%s=", name);
	memcpy(text + n, escaped.s, escaped.len);
	a.pairs = (struct dbusp_str){ text + 2, n - 2 + escaped.len };
	if (strlen(name) == key.len) {
		FUZZ_CHECK(dbusp_address_get(&a, name, value, escaped.len + 1, &len) == 0);
		FUZZ_CHECK(len && len <= escaped.len);
		n += dbusp_address_escape(value, len, text + n, 1 + 3 * len);
		list = (struct dbusp_str){ text, n };
		FUZZ_CHECK(dbusp_address_next(&list, &b, NULL) == 0 && !list.len);
		FUZZ_CHECK(dbusp_address_get(&b, name, again, len + 1, &again_len) == 0);
		FUZZ_CHECK(again_len == len && !memcmp(value, again, len));
	}
	free(name);
	free(value);
	free(again);
	free(text);
}

static void check_entry(const struct dbusp_address *a)
{
	struct dbusp_str pairs = a->pairs, key, value;
	enum dbusp_unix_kind kind;
	char buf[108], guid[33];
	size_t len;
	int r;

	while (dbusp_address_pair(&pairs, &key, &value)) {
		FUZZ_CHECK(key.len && value.len);
		check_value(key, value);
	}
	r = dbusp_address_unix(a, &kind, buf, sizeof(buf), &len, NULL);
	FUZZ_CHECK(r == 0 || r == -EINVAL || r == -ENOBUFS);
	FUZZ_CHECK(r || (len < sizeof(buf) && !buf[len] && kind <= DBUSP_UNIX_RUNTIME));
	r = dbusp_address_guid(a, guid, NULL);
	FUZZ_CHECK(r == -ENOENT || r == -EINVAL || (r == 0 && strlen(guid) == 32));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz_copy(data, size);
	struct dbusp_str list = { text, size };
	struct dbusp_address a;
	size_t left;
	int verdict = dbusp_address_check(list, NULL), r;

	FUZZ_CHECK(verdict == 0 || verdict == -EINVAL);
	do {
		left = list.len;
		r = dbusp_address_next(&list, &a, NULL);
		FUZZ_CHECK(r == 0 ? list.len < left : list.len == left);
		if (r == 0)
			check_entry(&a);
	} while (r == 0 && list.len);
	FUZZ_CHECK(r == verdict);
	free(text);
	return 0;
}
