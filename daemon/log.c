// SPDX-License-Identifier: LGPL-2.1-or-later
/* One line a fact, on standard error or in the system log, with who it is about. */
#include <stdarg.h>
#include <stdio.h>
#include <syslog.h>
#include <time.h>

#include "client.h"
#include "log-limit.h"

static bool on_stderr = true, in_syslog;
static struct log_limit limit;

void log_open(const char *program, bool to_stderr, bool to_syslog)
{
	on_stderr = to_stderr;
	in_syslog = to_syslog;
	if (to_syslog)
		openlog(program, LOG_PID, LOG_DAEMON);
}

/* Names of processes are in it: none is to look like the end of the line, or move a cursor. */
static void put(char *text)
{
	char *c;

	for (c = text; *c; c++)
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			*c = '?';
	if (on_stderr)
		fprintf(stderr, "kdbusd: %s\n", text);
	if (in_syslog)
		syslog(LOG_NOTICE, "%s", text);
}

void log_line(const char *format, ...)
{
	char text[512];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	put(text);
}

#define PERIOD_NS    (10 * 1000000000ULL)
#define PERIOD_LINES 20

static u64 now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (u64)ts.tv_sec * 1000000000ULL + (u64)ts.tv_nsec;
}

void log_sparingly(struct log_rate *rate, const char *format, ...)
{
	char text[512];
	u64 now = now_ns();
	va_list args;

	if (!rate->since || now - rate->since > PERIOD_NS) {
		if (rate->left_out)
			log_line("%lu lines like the next were left out", rate->left_out);
		*rate = (struct log_rate){ .since = now };
	}
	if (++rate->n > PERIOD_LINES) {
		rate->left_out++;
		return;
	}
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	put(text);
}

static void put_left_out(const struct log_left_out *out)
{
	if (out->lines)
		log_line("%u more lines about uid %u were left out", out->lines,
			 (unsigned int)out->uid);
}

static bool is_allowed(uid_t uid)
{
	struct log_left_out out;
	u64 now = now_ns();
	bool allowed;

	while (log_limit_told(&limit, now, &out))
		put_left_out(&out);
	allowed = log_limit_take(&limit, uid, now, &out);
	put_left_out(&out);
	return allowed;
}

void log_about(uid_t uid, const char *format, ...)
{
	char text[512];
	va_list args;

	if (!is_allowed(uid))
		return;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	put(text);
}

/* The end of the log: what is still to be said. */
void log_close(void)
{
	struct log_left_out out;

	while (log_limit_told(&limit, ~0ULL, &out))
		put_left_out(&out);
}

void log_client(const struct client *c, const char *format, ...)
{
	const char *comm = c->creds && c->creds->meta.pid_comm ? c->creds->meta.pid_comm : "?";
	uid_t uid = c->creds ? c->creds->core.euid : (uid_t)-1;
	char text[512], line[640];
	va_list args;

	if (!is_allowed(uid))
		return;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	snprintf(line, sizeof(line), "connection %llu (%s, pid %d, uid %d): %s",
		 c->connected ? c->conn.id : 0ULL, comm, c->creds ? (int)c->creds->pid : 0,
		 c->creds ? (int)c->creds->uid : -1, text);
	put(line);
}
