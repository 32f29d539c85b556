// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Commands. Input: a byte that chooses the command, a byte of facts, and the argument
 * without its size word. Parsing goes through the steps of a host.
 */
#include "check.h"
#include "fuzz.h"
#include "limits.h"
#include "syntax.h"

static size_t count(const struct core_items *list, u64 type, const struct kdbus_item **ret_first)
{
	const struct kdbus_item *item;
	size_t n = 0;

	*ret_first = NULL;
	core_item_for_each(item, list->items, list->size) {
		if (item->type == type && !n++)
			*ret_first = item;
	}
	return n;
}

static void check_rules(const struct core_items *list, bool negotiate)
{
	const struct kdbus_item *first;
	size_t n;
	int i;

	for (i = 0; list->rules[i].type; i++) {
		n = count(list, list->rules[i].type, &first);
		FUZZ_CHECK(list->first[i] == first);
		FUZZ_CHECK(core_items_get(list, list->rules[i].type) == first);
		FUZZ_CHECK(n < 2 || (list->rules[i].flags & CORE_ITEM_MANY));
		FUZZ_CHECK(n || negotiate || !(list->rules[i].flags & CORE_ITEM_MUST));
	}
	n = count(list, KDBUS_ITEM_NEGOTIATE, &first);
	FUZZ_CHECK(n < 2 && list->negotiate == first);
}

static void check_list(const struct core_items *list, bool negotiate)
{
	const struct kdbus_item *item;
	int i;

	FUZZ_CHECK((long)list->end == fuzz_list_end((void *)list->items, list->size));
	core_item_for_each(item, list->items, list->size) {
		FUZZ_CHECK(fuzz_within(item, list->items, list->size));
		FUZZ_CHECK(core_item_validate(item) == 0);
		for (i = 0; list->rules[i].type && list->rules[i].type != item->type; i++)
			;
		FUZZ_CHECK(list->rules[i].type || item->type == KDBUS_ITEM_NEGOTIATE);
	}
	check_rules(list, negotiate);
}

static void check_hello(const struct kdbus_cmd_hello *cmd, const struct core_args *args,
			uint8_t facts)
{
	struct core_hello_facts f = { 4096, facts & 1, facts & 2 };
	struct core_hello hello;
	int r = core_check_hello(cmd, args, &f, &hello);

	FUZZ_CHECK(r == 0 || r == -EINVAL || r == -EPERM || r == -EOPNOTSUPP);
	if (r)
		return;
	FUZZ_CHECK(hello.pool_size && hello.pool_size % 4096 == 0);
	FUZZ_CHECK(!(hello.attach_send & ~0x3fffULL) && !(hello.attach_recv & ~0x3fffULL));
	FUZZ_CHECK(f.bus_owner || (hello.kind == CORE_KIND_ORDINARY && !hello.fake));
	FUZZ_CHECK(!hello.name || core_name_valid(hello.name) || core_name_is_wildcard(hello.name));
	FUZZ_CHECK(!hello.name == (hello.kind == CORE_KIND_ORDINARY ||
				   hello.kind == CORE_KIND_MONITOR));
	FUZZ_CHECK(hello.fake == (hello.creds || hello.pids || hello.seclabel));
	if (hello.creds && !core_check_fake_creds(hello.creds))
		FUZZ_CHECK(hello.creds->uid <= U32_MAX && hello.creds->fsgid <= U32_MAX);
}

static void check_make(const struct core_args *args, uint8_t facts)
{
	struct core_maker maker = { facts & 1, 1000 };
	struct core_bus_make make;
	const char *name;
	int r;

	if (args->cmd == CORE_CMD_BUS_MAKE) {
		r = core_check_bus_make(args, &maker, &make);
		name = make.name;
		FUZZ_CHECK(r || (make.bloom.size <= 4096 && make.bloom.size % 8 == 0 &&
				 make.bloom.size && make.bloom.n_hash));
	} else {
		r = core_check_endpoint_make(args, &maker, &name);
	}
	FUZZ_CHECK(r == 0 || r == -EINVAL);
	FUZZ_CHECK(r || (maker.mapped && !strncmp(name, "1000-", 5) && strlen(name) > 5));
}

static void check_rest(const void *arg, const struct core_args *args, uint8_t facts)
{
	struct core_info_query query;
	struct core_update update;
	enum core_kind kind = facts % 4;
	const char *name;
	int r;

	switch (args->cmd) {
	case CORE_CMD_UPDATE:
		r = core_check_update(args, kind, &update);
		FUZZ_CHECK(r == 0 || r == -EINVAL || r == -EOPNOTSUPP);
		FUZZ_CHECK(r || !update.set_policy || kind == CORE_KIND_POLICY_HOLDER);
		FUZZ_CHECK(r || !update.set_recv || kind != CORE_KIND_POLICY_HOLDER);
		break;
	case CORE_CMD_CONN_INFO:
	case CORE_CMD_BUS_CREATOR_INFO:
		r = core_check_info(arg, args, &query);
		FUZZ_CHECK(r == 0 || r == -EINVAL);
		FUZZ_CHECK(r || query.id || query.name || args->cmd == CORE_CMD_BUS_CREATOR_INFO);
		break;
	case CORE_CMD_RECV:
		r = core_check_recv(args);
		FUZZ_CHECK((r != 0) == ((args->flags & 6) == 6));
		break;
	case CORE_CMD_NAME_ACQUIRE:
		r = core_check_name_acquire(args, &name);
		FUZZ_CHECK(r ? r == -EINVAL : core_name_valid(name));
		break;
	default:
		break;
	}
}

static void check_accepted(void *arg, size_t size, const struct core_args *args, uint8_t facts)
{
	struct core_args again;
	unsigned int i;

	FUZZ_CHECK(!(args->flags & ~args->supported));
	FUZZ_CHECK(args->list.size == size - core_cmd_size(args->cmd));
	check_list(&args->list, args->negotiate);

	/* What was accepted is accepted, with the same result. */
	FUZZ_CHECK(core_cmd_parse(args->cmd, arg, size, &again) == 0);
	FUZZ_CHECK(again.flags == args->flags && again.negotiate == args->negotiate &&
		   again.list.end == args->list.end);
	for (i = 0; args->list.rules[i].type; i++)
		FUZZ_CHECK(again.list.first[i] == args->list.first[i]);
	if (args->negotiate)
		return;
	if (args->cmd == CORE_CMD_HELLO)
		check_hello(arg, args, facts);
	else if (args->cmd == CORE_CMD_BUS_MAKE || args->cmd == CORE_CMD_ENDPOINT_MAKE)
		check_make(args, facts);
	else
		check_rest(arg, args, facts);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	enum core_cmd cmd = fuzz_byte(&data, &size) % CORE_CMD_N;
	uint8_t facts = fuzz_byte(&data, &size);
	u64 bytes = size + 8;
	struct core_args args;
	uint8_t *arg;
	int r;

	r = core_cmd_check_size(cmd, bytes);
	FUZZ_CHECK(r == (bytes < core_cmd_size(cmd) ? -EINVAL :
			 bytes > CORE_CMD_MAX_SIZE  ? -EMSGSIZE : 0));
	if (r)
		return 0;
	arg = malloc(bytes);
	FUZZ_CHECK(arg);
	memcpy(arg, &bytes, 8);
	memcpy(arg + 8, data, size);
	FUZZ_CHECK(core_cmd_check_copy(arg, bytes) == 0);
	r = core_cmd_parse(cmd, arg, bytes, &args);
	FUZZ_CHECK(r == 0 || r == -EINVAL || r == -EBADF || r == -ENAMETOOLONG);
	if (r)
		FUZZ_CHECK(!memcmp(arg + 8, data, size));
	else
		check_accepted(arg, bytes, &args, facts);
	free(arg);
	return 0;
}
