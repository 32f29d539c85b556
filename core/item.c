// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base.h"

#include "item.h"
#include "limits.h"
#include "syntax.h"

static_assert(offsetof(struct kdbus_item, data) == 16, "spec §5.1");

bool core_item_fits(const void *items, size_t size, size_t offset)
{
	const struct kdbus_item *item = (const void *)((const char *)items + offset);

	return size - offset >= CORE_ITEM_HEADER && item->size >= CORE_ITEM_HEADER &&
	       item->size <= size - offset;
}

int core_items_check(const void *items, size_t size)
{
	const struct kdbus_item *item;
	size_t offset = 0;

	while (offset < size) {
		if (!core_item_fits(items, size, offset))
			return -EINVAL;
		item = (const void *)((const char *)items + offset);
		offset += ALIGN((size_t)item->size, (size_t)8);
	}
	return 0;
}

static int validate_vec(const struct kdbus_item *item)
{
	const struct kdbus_vec *vec = core_item_payload(item);

	/* On 32 bit a size may be beyond what any buffer can have. */
	return vec->size == 0 || vec->size != (size_t)vec->size ? -EINVAL : 0;
}

static int validate_memfd(const struct kdbus_item *item)
{
	const struct kdbus_memfd *memfd = core_item_payload(item);

	if (memfd->size == 0)
		return -EINVAL;
	return memfd->fd < 0 ? -EBADF : 0;
}

static int validate_str(const struct kdbus_item *item)
{
	return core_str_valid(core_item_str(item), core_item_payload_size(item)) ? 0 : -EINVAL;
}

static int validate_sysname(const struct kdbus_item *item)
{
	return core_sysname_check(core_item_str(item), core_item_payload_size(item));
}

static int validate_name_change(const struct kdbus_item *item)
{
	size_t fixed = sizeof(struct kdbus_notify_name_change);
	size_t size = core_item_payload_size(item);

	if (size == fixed)
		return 0;
	return core_str_valid(core_item_str(item) + fixed, size - fixed) ? 0 : -EINVAL;
}

/*
 * One row per type a program may send: how long its payload may be (at least @min, at
 * most @max, a multiple of @unit), and what else must hold.
 */
struct payload_rule {
	u32 type;
	u32 min;
	u32 max;
	u32 unit;
	int (*check)(const struct kdbus_item *item);
};

/* No payload is as long as that: an item lies within a command. */
#define ANY CORE_CMD_MAX_SIZE

/* Those of messages are found first. */
static const struct payload_rule payload_rules[] = {
	{ KDBUS_ITEM_PAYLOAD_VEC, 16, 16, 1, validate_vec },
	{ KDBUS_ITEM_DST_NAME, 0, ANY, 1, validate_str },
	{ KDBUS_ITEM_PAYLOAD_MEMFD, 24, 24, 1, validate_memfd },
	{ KDBUS_ITEM_FDS, 0, ANY, 4, NULL },
	{ KDBUS_ITEM_NEGOTIATE, 0, ANY, 8, NULL },
	{ KDBUS_ITEM_PAYLOAD_OFF, 16, 16, 1, validate_vec },
	{ KDBUS_ITEM_CANCEL_FD, 4, 4, 1, NULL },
	{ KDBUS_ITEM_BLOOM_PARAMETER, 16, 16, 1, NULL },
	{ KDBUS_ITEM_BLOOM_FILTER, 8, ANY, 1, NULL },
	{ KDBUS_ITEM_BLOOM_MASK, 0, ANY, 1, NULL },
	{ KDBUS_ITEM_MAKE_NAME, 0, ANY, 1, validate_sysname },
	{ KDBUS_ITEM_ATTACH_FLAGS_SEND, 8, 8, 1, NULL },
	{ KDBUS_ITEM_ATTACH_FLAGS_RECV, 8, 8, 1, NULL },
	{ KDBUS_ITEM_ID, 8, 8, 1, NULL },
	{ KDBUS_ITEM_NAME, 0, ANY, 1, validate_str },
	{ KDBUS_ITEM_DST_ID, 8, 8, 1, NULL },
	{ KDBUS_ITEM_CREDS, 64, 64, 1, NULL },
	{ KDBUS_ITEM_PIDS, 24, 24, 1, NULL },
	{ KDBUS_ITEM_SECLABEL, 0, ANY, 1, validate_str },
	{ KDBUS_ITEM_CONN_DESCRIPTION, 0, ANY, 1, validate_sysname },
	{ KDBUS_ITEM_POLICY_ACCESS, 24, 24, 1, NULL },
	{ KDBUS_ITEM_NAME_ADD, 32, ANY, 1, validate_name_change },
	{ KDBUS_ITEM_NAME_REMOVE, 32, ANY, 1, validate_name_change },
	{ KDBUS_ITEM_NAME_CHANGE, 32, ANY, 1, validate_name_change },
	{ KDBUS_ITEM_ID_ADD, 16, 16, 1, NULL },
	{ KDBUS_ITEM_ID_REMOVE, 16, 16, 1, NULL },
};

int core_item_validate(const struct kdbus_item *item)
{
	size_t size = core_item_payload_size(item);
	const struct payload_rule *rule;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(payload_rules); i++) {
		rule = &payload_rules[i];
		if (rule->type != item->type)
			continue;
		if (size < rule->min || size > rule->max || size % rule->unit)
			return -EINVAL;
		return rule->check ? rule->check(item) : 0;
	}
	return 0;
}

int core_bloom_parameter_check(const struct kdbus_bloom_parameter *param)
{
	if (param->size < CORE_BUS_BLOOM_MIN_SIZE || param->size > CORE_BUS_BLOOM_MAX_SIZE)
		return -EINVAL;
	if (param->size % CORE_BUS_BLOOM_MIN_SIZE || param->n_hash < 1)
		return -EINVAL;
	return 0;
}

/* Take @size bytes at the next multiple of 8; zero the gap before them. */
static void *take(struct core_writer *w, size_t size)
{
	size_t start = ALIGN(w->pos, (size_t)8);
	char *at;

	if (w->full)
		return NULL;
	if (!w->buf) {
		w->pos = start + size;
		return NULL;
	}
	if (start > w->size || size > w->size - start) {
		w->full = true;
		return NULL;
	}
	at = w->buf + start;
	memset(w->buf + w->pos, 0, start - w->pos);
	w->pos = start + size;
	return at;
}

void *core_writer_raw(struct core_writer *w, size_t size)
{
	void *at = take(w, size);

	return at ? memset(at, 0, size) : NULL;
}

void *core_writer_item(struct core_writer *w, u64 type, size_t size)
{
	struct kdbus_item *item = take(w, CORE_ITEM_SIZE(size));

	if (!item)
		return NULL;
	item->size = CORE_ITEM_SIZE(size);
	item->type = type;
	return core_item_payload(item);
}

void core_put(struct core_writer *w, u64 type, const void *payload, size_t size)
{
	void *at = core_writer_item(w, type, size);

	if (at && size)
		memcpy(at, payload, size);
}

void core_put_str(struct core_writer *w, u64 type, const char *str)
{
	core_put(w, type, str, strlen(str) + 1);
}

void core_put_u64(struct core_writer *w, u64 type, u64 value)
{
	core_put(w, type, &value, sizeof(value));
}

void core_put_name(struct core_writer *w, u64 flags, const char *name)
{
	size_t size = strlen(name) + 1;
	char *at = core_writer_item(w, KDBUS_ITEM_OWNED_NAME, sizeof(flags) + size);

	if (!at)
		return;
	memcpy(at, &flags, sizeof(flags));
	memcpy(at + sizeof(flags), name, size);
}

int core_writer_end(struct core_writer *w, size_t *ret_size)
{
	size_t end;

	if (w->full)
		return -EMSGSIZE;
	if (w->buf) {
		end = min(ALIGN(w->pos, (size_t)8), w->size);
		memset(w->buf + w->pos, 0, end - w->pos);
	}
	*ret_size = w->pos;
	return 0;
}
