// SPDX-License-Identifier: LGPL-2.1-or-later
/* A service takes a name, a second one queues for it, and gets it when the first lets go. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <libkdbus.h>

#define NAME "org.example.Clock"

static void must(int r, const char *what)
{
	if (r >= 0)
		return;
	fprintf(stderr, "%s: %s\n", what, strerror(-r));
	exit(1);
}

static const char *holder(struct libkdbus *h, struct libkdbus *first, struct libkdbus *second)
{
	struct kdbus_cmd_list cmd = { .size = sizeof(cmd), .flags = KDBUS_LIST_NAMES };
	const struct kdbus_item *item;
	const struct kdbus_info *info;
	const char *who = "nobody", *begin;
	uint64_t pos;

	must(libkdbus_list(h, &cmd), "LIST");
	begin = (const char *)libkdbus_pool(h, NULL) + cmd.offset;
	for (pos = 0; pos < cmd.list_size; pos += info->size) {
		info = (const void *)(begin + pos);
		item = libkdbus_item_find(info, sizeof(*info), KDBUS_ITEM_OWNED_NAME);
		if (!item || strcmp(item->name.name, NAME))
			continue;
		if (info->id == libkdbus_identity(first)->id)
			who = "the first";
		if (info->id == libkdbus_identity(second)->id)
			who = "the second";
	}
	if (cmd.list_size)
		libkdbus_done(h, begin);
	return who;
}

int main(void)
{
	struct libkdbus *first, *second;
	uint64_t flags;

	must(libkdbus_connect(NULL, NULL, &first), "connecting");
	must(libkdbus_connect(NULL, NULL, &second), "connecting");
	must(libkdbus_acquire(first, NAME, 0, &flags), "NAME_ACQUIRE");
	printf("first:  %s\n", flags & KDBUS_NAME_PRIMARY ? "owns it" : "waits");
	must(libkdbus_acquire(second, NAME, KDBUS_NAME_QUEUE, &flags), "NAME_ACQUIRE");
	printf("second: %s\n", flags & KDBUS_NAME_IN_QUEUE ? "waits" : "owns it");
	printf("owner: %s\n", holder(first, first, second));
	must(libkdbus_release(first, NAME), "NAME_RELEASE");
	printf("owner: %s\n", holder(first, first, second));
	libkdbus_close(second);
	libkdbus_close(first);
	return 0;
}
