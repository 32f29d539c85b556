// SPDX-License-Identifier: LGPL-2.1-or-later
/* One line a fact, on standard error, with who it is about. */
#include <stdarg.h>
#include <stdio.h>

#include "client.h"

void log_line(const char *format, ...)
{
	char text[512];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	fprintf(stderr, "kdbusd: %s\n", text);
}

void log_client(const struct client *c, const char *format, ...)
{
	const char *comm = c->creds && c->creds->meta.pid_comm ? c->creds->meta.pid_comm : "?";
	char text[512];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	fprintf(stderr, "kdbusd: connection %llu (%s, pid %d, uid %d): %s\n",
		c->connected ? c->conn.id : 0ULL, comm, c->creds ? (int)c->creds->pid : 0,
		c->creds ? (int)c->creds->uid : -1, text);
}
