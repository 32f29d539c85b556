// SPDX-License-Identifier: LGPL-2.1-or-later
/* Make a bus, connect to it, ask who made it. The bus ends with the handle that made it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <libkdbus.h>

static void must(int r, const char *what)
{
	if (r >= 0)
		return;
	fprintf(stderr, "%s: %s\n", what, strerror(-r));
	exit(1);
}

static struct libkdbus *make_bus(const char *name)
{
	const struct kdbus_bloom_parameter bloom = { .size = 64, .n_hash = 8 };
	struct libkdbus_builder b;
	char control[512], *domain;
	struct libkdbus *h;
	void *cmd;

	must(libkdbus_domain_path(&domain), "looking for the domain");
	snprintf(control, sizeof(control), "%s/control", domain);
	free(domain);
	must(libkdbus_open(control, 0, &h), control);
	libkdbus_build(&b, sizeof(struct kdbus_cmd), NULL, 0);
	libkdbus_build_string(&b, KDBUS_ITEM_MAKE_NAME, name);
	libkdbus_build_item(&b, KDBUS_ITEM_BLOOM_PARAMETER, &bloom, sizeof(bloom));
	must(libkdbus_build_end(&b, &cmd), "building BUS_MAKE");
	must(libkdbus_bus_make(h, cmd), "BUS_MAKE");
	libkdbus_build_clear(&b);
	return h;
}

static void show_creator(struct libkdbus *h)
{
	struct kdbus_cmd_info cmd = { .size = sizeof(cmd) };
	const struct kdbus_info *info;
	const struct kdbus_item *item;

	must(libkdbus_bus_creator_info(h, &cmd), "BUS_CREATOR_INFO");
	info = (const void *)((const char *)libkdbus_pool(h, NULL) + cmd.offset);
	item = libkdbus_item_find(info, sizeof(*info), KDBUS_ITEM_MAKE_NAME);
	printf("on the bus \"%s\" of this user\n", item ? strchr(item->str, '-') + 1 : "?");
	libkdbus_done(h, info);
}

int main(void)
{
	struct kdbus_cmd bye = { .size = sizeof(bye) };
	struct libkdbus *bus, *h;
	char name[64], *path;

	snprintf(name, sizeof(name), "%u-example", (unsigned int)geteuid());
	bus = make_bus(name);
	must(libkdbus_bus_path(name, &path), "looking for the bus");
	must(libkdbus_connect(path, NULL, &h), path);
	free(path);
	show_creator(h);
	must(libkdbus_byebye(h, &bye), "BYEBYE");
	printf("left: nothing was queued\n");
	libkdbus_close(h);
	libkdbus_close(bus);
	return 0;
}
