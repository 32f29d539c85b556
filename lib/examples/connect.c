// SPDX-License-Identifier: LGPL-2.1-or-later
/* Find the user's own bus, connect to it, and say what it is. */
#include <stdio.h>
#include <stdlib.h>

#include <libkdbus.h>

int main(void)
{
	const struct libkdbus_options options = {
		.flags = KDBUS_HELLO_ACCEPT_FD,
		.attach_recv = KDBUS_ATTACH_CREDS,
		.pool_size = 1 << 20,
		.description = "example",
	};
	const struct libkdbus_identity *self;
	struct libkdbus *h;
	char sentence[256];
	size_t size;
	char *path;
	int r;

	r = libkdbus_bus_path(NULL, &path);
	if (r < 0) {
		fprintf(stderr, "no bus: neither KDBUS_DOMAIN nor XDG_RUNTIME_DIR is set\n");
		return 1;
	}
	r = libkdbus_connect(path, &options, &h);
	if (r < 0)
		fprintf(stderr, "%s\n", libkdbus_open_error(path, r, sentence, sizeof(sentence)));
	free(path);
	if (r < 0)
		return 1;
	self = libkdbus_identity(h);
	libkdbus_pool(h, &size);
	printf("connected: %s, bloom filters of %llu bytes, a pool of %zu bytes\n",
	       self->id ? "an id of our own" : "no id", (unsigned long long)self->bloom.size, size);
	libkdbus_close(h);
	return 0;
}
