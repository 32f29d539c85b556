// SPDX-License-Identifier: LGPL-2.1-or-later
#include "dbus/address.h"

#include <errno.h>
#include <stdint.h>

#include "dbus/hex.h"

/* Bytes that need no escaping: [-0-9A-Za-z_/.*\] */
static bool is_plain(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
	       (c && strchr("-_/.*\\", c));
}

/* Cuts @s at the first @sep; what follows that goes to *ret_rest. */
static struct dbusp_str cut(struct dbusp_str s, char sep, struct dbusp_str *ret_rest)
{
	const char *p = s.len ? memchr(s.s, sep, s.len) : NULL;
	const uint32_t n = p ? p - s.s : s.len;
	const uint32_t used = p ? n + 1 : n;

	*ret_rest = (struct dbusp_str){ s.len ? s.s + used : s.s, s.len - used };
	return (struct dbusp_str){ s.s, n };
}

static int check_value(struct dbusp_str v, enum dbusp_why *ret_why)
{
	uint32_t i;

	if (!v.len)
		return dbusp_fail(ret_why, DBUSP_WHY_ADDRESS_VALUE, -EINVAL);
	for (i = 0; i < v.len; i++) {
		if (v.s[i] == '%') {
			if (v.len - i < 3 || dbusp_hex_digit(v.s[i + 1]) > 15 ||
			    dbusp_hex_digit(v.s[i + 2]) > 15)
				return dbusp_fail(ret_why, DBUSP_WHY_ADDRESS_ESCAPE, -EINVAL);
			i += 2;
		} else if (!is_plain(v.s[i])) {
			return dbusp_fail(ret_why, DBUSP_WHY_ADDRESS_BYTE, -EINVAL);
		}
	}
	return 0;
}

static int check_pairs(struct dbusp_str pairs, enum dbusp_why *ret_why)
{
	struct dbusp_str pair, key, value;
	int r = 0;

	while (r >= 0 && pairs.len) {
		pair = cut(pairs, ',', &pairs);
		key = cut(pair, '=', &value);
		if (!key.len || key.len == pair.len)
			return dbusp_fail(ret_why, DBUSP_WHY_ADDRESS_KEY, -EINVAL);
		r = check_value(value, ret_why);
	}
	return r;
}

int dbusp_address_next(struct dbusp_str *list, struct dbusp_address *ret,
		       enum dbusp_why *ret_why)
{
	struct dbusp_str rest, entry;
	struct dbusp_address a;
	int r;

	if (!list->len)
		return dbusp_fail(ret_why, DBUSP_WHY_ADDRESS_EMPTY, -EINVAL);
	entry = cut(*list, ';', &rest);
	a.transport = cut(entry, ':', &a.pairs);
	if (a.transport.len == entry.len)
		return dbusp_fail(ret_why, DBUSP_WHY_ADDRESS_COLON, -EINVAL);
	r = check_pairs(a.pairs, ret_why);
	if (r < 0)
		return r;
	*ret = a;
	*list = rest;
	return 0;
}

bool dbusp_address_pair(struct dbusp_str *pairs, struct dbusp_str *ret_key,
			struct dbusp_str *ret_value)
{
	if (!pairs->len)
		return false;
	*ret_key = cut(cut(*pairs, ',', pairs), '=', ret_value);
	return true;
}

int dbusp_address_check(struct dbusp_str list, enum dbusp_why *ret_why)
{
	struct dbusp_address a;
	int r;

	do
		r = dbusp_address_next(&list, &a, ret_why);
	while (r >= 0 && list.len);
	return r;
}

static bool find(const struct dbusp_address *a, const char *key, struct dbusp_str *ret)
{
	struct dbusp_str pairs = a->pairs, k;

	while (dbusp_address_pair(&pairs, &k, ret)) {
		if (dbusp_str_eq(k, dbusp_str(key)))
			return true;
	}
	return false;
}

static int unescape(struct dbusp_str v, char *buf, size_t size, size_t *ret_len)
{
	size_t n = 0;
	uint32_t i;

	for (i = 0; i < v.len; i++) {
		if (n + 1 >= size)
			return -ENOBUFS;
		buf[n] = v.s[i];
		if (v.s[i] == '%') {
			buf[n] = dbusp_hex_digit(v.s[i + 1]) << 4 | dbusp_hex_digit(v.s[i + 2]);
			i += 2;
		}
		n++;
	}
	buf[n] = 0;
	*ret_len = n;
	return 0;
}

int dbusp_address_get(const struct dbusp_address *address, const char *key, char *buf,
		      size_t size, size_t *ret_len)
{
	struct dbusp_str value;

	if (!find(address, key, &value))
		return -ENOENT;
	return unescape(value, buf, size, ret_len);
}

size_t dbusp_address_escape(const void *value, size_t len, char *buf, size_t size)
{
	static const char hex[] = "0123456789abcdef";
	const unsigned char *p = value;
	size_t i, n = 0, step;
	char out[3];

	for (i = 0; i < len; i++, n += step) {
		step = is_plain(p[i]) ? 1 : 3;
		out[0] = step == 1 ? p[i] : '%';
		out[1] = hex[p[i] >> 4];
		out[2] = hex[p[i] & 15];
		/* a byte is written whole or not at all; the first that is not ends the text */
		if (buf && n + step < size)
			memcpy(buf + n, out, step);
		else if (buf && n < size)
			buf[n] = 0;
	}
	if (buf && n < size)
		buf[n] = 0;
	return n;
}

int dbusp_address_unix(const struct dbusp_address *address, enum dbusp_unix_kind *ret_kind,
		       char *buf, size_t size, size_t *ret_len, enum dbusp_why *ret_why)
{
	static const char *const keys[] = {
		[DBUSP_UNIX_PATH] = "path",
		[DBUSP_UNIX_ABSTRACT] = "abstract",
		[DBUSP_UNIX_DIR] = "dir",
		[DBUSP_UNIX_TMPDIR] = "tmpdir",
		[DBUSP_UNIX_RUNTIME] = "runtime",
	};
	unsigned int kind, n = 0, found = 0;
	struct dbusp_str v, value = { NULL, 0 };
	int r;

	for (kind = 0; kind < sizeof(keys) / sizeof(keys[0]); kind++) {
		if (find(address, keys[kind], &v)) {
			found = kind;
			value = v;
			n++;
		}
	}
	if (n != 1)
		return dbusp_fail(ret_why, DBUSP_WHY_ADDRESS_KIND, -EINVAL);
	if (found == DBUSP_UNIX_RUNTIME && !dbusp_str_eq(value, DBUSP_STR("yes")))
		return dbusp_fail(ret_why, DBUSP_WHY_ADDRESS_RUNTIME, -EINVAL);
	r = unescape(value, buf, size, ret_len);
	if (r < 0)
		return r;
	*ret_kind = found;
	return 0;
}

int dbusp_address_guid(const struct dbusp_address *address, char ret[33],
		       enum dbusp_why *ret_why)
{
	char guid[33];
	size_t len, i;
	int r;

	r = dbusp_address_get(address, "guid", guid, sizeof(guid), &len);
	if (r == -ENOENT)
		return r;
	for (i = 0; r >= 0 && i < len; i++) {
		if (dbusp_hex_digit(guid[i]) > 15)
			r = -EINVAL;
	}
	if (r < 0 || len != 32)
		return dbusp_fail(ret_why, DBUSP_WHY_ADDRESS_GUID, -EINVAL);
	memcpy(ret, guid, sizeof(guid));
	return 0;
}
