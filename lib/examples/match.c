// SPDX-License-Identifier: LGPL-2.1-or-later
/* Ask to be told when a name gets its first owner, and when it has none any more. */
#include <errno.h>
#include <stdint.h>
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

/* One entry with one rule: a notification of this type about NAME, whoever is concerned. */
static void watch(struct libkdbus *h, uint64_t type, uint64_t cookie)
{
	struct kdbus_notify_name_change *rule;
	struct kdbus_cmd_match *cmd;
	struct libkdbus_builder b;
	void *built;

	libkdbus_build(&b, sizeof(*cmd), NULL, 0);
	rule = libkdbus_build_item(&b, type, NULL, sizeof(*rule) + sizeof(NAME));
	if (rule) {
		rule->old_id.id = KDBUS_MATCH_ID_ANY;
		rule->new_id.id = KDBUS_MATCH_ID_ANY;
		memcpy(rule->name, NAME, sizeof(NAME));
	}
	must(libkdbus_build_end(&b, &built), "building a match");
	cmd = built;
	cmd->cookie = cookie;
	must(libkdbus_match_add(h, cmd), "MATCH_ADD");
	libkdbus_build_clear(&b);
}

static void show(const struct kdbus_msg *msg)
{
	const struct kdbus_item *item = libkdbus_item_next(msg, sizeof(*msg), NULL);

	printf("%s: %s\n", item->type == KDBUS_ITEM_NAME_ADD ? "appeared" : "vanished",
	       item->name_change.name);
}

int main(void)
{
	struct kdbus_cmd_match remove = { .size = sizeof(remove), .cookie = 1 };
	const struct kdbus_msg *msg;
	struct libkdbus *h;

	must(libkdbus_connect(NULL, NULL, &h), "connecting");
	watch(h, KDBUS_ITEM_NAME_ADD, 1);
	watch(h, KDBUS_ITEM_NAME_REMOVE, 2);
	must(libkdbus_acquire(h, NAME, 0, NULL), "NAME_ACQUIRE");
	must(libkdbus_release(h, NAME), "NAME_RELEASE");
	while (libkdbus_receive(h, &msg) == 0) {
		show(msg);
		libkdbus_done(h, msg);
	}
	must(libkdbus_match_remove(h, &remove), "MATCH_REMOVE");
	if (libkdbus_match_remove(h, &remove) == -EBADSLT)
		printf("no match with this cookie is left\n");
	libkdbus_close(h);
	return 0;
}
