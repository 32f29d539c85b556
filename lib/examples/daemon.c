// SPDX-License-Identifier: LGPL-2.1-or-later
/* A kdbusd that nobody else uses, as tests and demonstrations want it. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <libkdbus.h>

int main(void)
{
	struct libkdbus_daemon *daemon;
	char sentence[256];
	struct libkdbus *h;
	int r = libkdbus_daemon_start(NULL, &daemon);

	if (r < 0) {
		fprintf(stderr, "cannot start kdbusd: %s; set KDBUSD to its path\n", strerror(-r));
		return 1;
	}
	r = libkdbus_connect(libkdbus_daemon_bus(daemon), NULL, &h);
	if (r < 0) {
		fprintf(stderr, "%s\n",
			libkdbus_open_error(libkdbus_daemon_bus(daemon), r, sentence,
					    sizeof(sentence)));
		libkdbus_daemon_stop(daemon);
		return 1;
	}
	printf("connected to a bus of our own\n");
	libkdbus_daemon_stop(daemon);
	r = libkdbus_acquire(h, "org.example.Late", 0, NULL);
	printf("after its end: %s\n", r == -ECONNRESET ? "ECONNRESET" : strerror(-r));
	libkdbus_close(h);
	return 0;
}
