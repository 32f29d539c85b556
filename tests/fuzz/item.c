// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Item lists and strings. Input: an item list. It is held against a second reading of
 * the rules; what is accepted is written anew and must come out the same.
 */
#include "fuzz.h"
#include "limits.h"
#include "syntax.h"

static bool letter(char c)
{
	return strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_-", c) && c;
}

/* Spec §10.1, element by element. */
static bool naive_name(const char *str, bool wildcard)
{
	size_t elements = 0, i, n;

	if (strlen(str) > 255)
		return false;
	for (;; str += n + 1, elements++) {
		n = strcspn(str, ".");
		if (wildcard && elements && !str[n] && n == 1 && str[0] == '*')
			return true;
		for (i = 0; i < n; i++) {
			if (!letter(str[i]) && (i == 0 || str[i] < '0' || str[i] > '9'))
				return false;
		}
		if (!n)
			return false;
		if (!str[n])
			return !wildcard && elements;
	}
}

static void check_strings(const struct kdbus_item *item)
{
	const char *str = core_item_str(item);
	size_t size = core_item_payload_size(item), len;
	int r;

	FUZZ_CHECK(core_str_valid(str, size) == (size && strnlen(str, size) == size - 1));
	if (!core_str_valid(str, size))
		return;
	FUZZ_CHECK(core_name_valid(str) == naive_name(str, false));
	FUZZ_CHECK(core_name_is_wildcard(str) == naive_name(str, true));
	FUZZ_CHECK(!core_name_valid(str) || !core_name_is_wildcard(str));

	r = core_sysname_check(str, size);
	len = strspn(str, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.");
	if (!r)
		FUZZ_CHECK(len == size - 1 && len >= 1 && len <= CORE_SYSNAME_MAX_LEN &&
			   !strchr("-.", str[0]) && !strchr("-.", str[len - 1]));
	else if (r == -ENAMETOOLONG)
		FUZZ_CHECK(size - 1 > CORE_SYSNAME_MAX_LEN);
	else
		FUZZ_CHECK(r == -EINVAL);
	if (!r)
		core_sysname_check_uid(str, 1000);
}

static void check_item(const struct kdbus_item *item)
{
	int r = core_item_validate(item);

	FUZZ_CHECK(r == 0 || r == -EINVAL || r == -EBADF || r == -ENAMETOOLONG);
	FUZZ_CHECK(r != -EBADF || item->type == KDBUS_ITEM_PAYLOAD_MEMFD);
	FUZZ_CHECK(r != -ENAMETOOLONG || item->type == KDBUS_ITEM_MAKE_NAME ||
		   item->type == KDBUS_ITEM_CONN_DESCRIPTION);
	if (!r && item->type == KDBUS_ITEM_NAME)
		FUZZ_CHECK(core_str_valid(core_item_str(item), core_item_payload_size(item)));
	check_strings(item);
}

/* Write all items again into @buf (NULL: only count); returns the bytes. */
static size_t rewrite(const void *list, size_t size, void *buf, size_t room)
{
	struct core_writer w = CORE_WRITER(buf, room);
	const struct kdbus_item *item;
	size_t written = 0;

	core_item_for_each(item, list, size)
		core_put(&w, item->type, core_item_payload(item), core_item_payload_size(item));
	FUZZ_CHECK(core_writer_end(&w, &written) == 0);
	return written;
}

static void check_rewritten(const void *list, size_t size, size_t end)
{
	const struct kdbus_item *a, *b;
	void *copy = malloc(end ? end : 1);

	FUZZ_CHECK(copy);
	FUZZ_CHECK(rewrite(list, size, NULL, 0) == end);
	FUZZ_CHECK(rewrite(list, size, copy, end) == end);
	FUZZ_CHECK(core_items_check(copy, end) == 0);
	b = copy;
	core_item_for_each(a, list, size) {
		FUZZ_CHECK(fuzz_within(b, copy, end) && a->size == b->size);
		FUZZ_CHECK(!memcmp(a, b, a->size));
		b = core_item_next(b);
	}
	free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	long end = fuzz_list_end(data, size);
	const struct kdbus_item *item;
	void *list = fuzz_copy(data, size);
	size_t last = 0;

	FUZZ_CHECK(core_items_check(list, size) == (end < 0 ? -EINVAL : 0));
	if (end >= 0) {
		core_item_for_each(item, list, size) {
			FUZZ_CHECK(fuzz_within(item, list, size));
			last = (const char *)item - (const char *)list + item->size;
			check_item(item);
		}
		FUZZ_CHECK(last == (size_t)end);
		check_rewritten(list, size, end);
	}
	free(list);
	return 0;
}
