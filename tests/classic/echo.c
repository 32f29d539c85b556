// SPDX-License-Identifier: LGPL-2.1-or-later
/* What all echo programs share; see echo.h. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "echo.h"

static int n_results, n_failed;

static void result(bool good, const char *what)
{
	printf("%sok %d - %s\n", good ? "" : "not ", ++n_results, what);
	fflush(stdout);
	n_failed += !good;
}

static bool same_file(int a, int b)
{
	struct stat sa, sb;

	return fstat(a, &sa) == 0 && fstat(b, &sb) == 0 && sa.st_dev == sb.st_dev &&
	       sa.st_ino == sb.st_ino;
}

static void ask_strings(const struct echo_client *client)
{
	char *big = malloc(ECHO_BIG + 1);
	bool good = true;
	int i;

	memset(big, 'x', ECHO_BIG);
	big[ECHO_BIG] = 0;
	result(client->echo("text"), "a string comes back");
	result(client->echo(""), "an empty string");
	result(client->echo("gr\xc3\xbc\xc3\x9f dich \xf0\x9f\x98\x80"), "UTF-8");
	result(client->echo(big), "a large string");
	for (i = 0; i < 200; i++)
		good &= client->echo("again");
	result(good, "two hundred calls");
	free(big);
}

static void ask_fds(const struct echo_client *client)
{
	int ends[2], back, i;
	bool good = true;

	if (pipe2(ends, O_CLOEXEC) < 0)
		exit(1);
	for (i = 0; i < 10; i++) {
		back = client->fd(ends[0]);
		good &= back >= 0 && back != ends[0] && same_file(back, ends[0]);
		close(back);
	}
	result(good, "a descriptor comes back");
	close(ends[0]);
	close(ends[1]);
}

int echo_ask(const struct echo_client *client, const char *name)
{
	client->open(name);
	ask_strings(client);
	result(client->sum(0) == 0, "an empty array");
	result(client->sum(10000) == 50005000, "an array");
	result(client->fail(), "an error comes back");
	result(client->unknown(), "an unknown method is an error");
	ask_fds(client);
	result(client->tick(4711) == 4711, "a signal");
	result(client->quit(), "the name goes with its owner");
	client->close();
	printf("1..%d\n", n_results);
	return n_failed != 0;
}

void echo_ready(void)
{
	puts("ready");
	fflush(stdout);
}

int echo_main(int argc, char **argv, int (*serve)(const char *name),
	      const struct echo_client *client)
{
	if (argc == 3 && !strcmp(argv[1], "serve"))
		return serve(argv[2]);
	if (argc == 3 && !strcmp(argv[1], "ask"))
		return echo_ask(client, argv[2]);
	fprintf(stderr, "usage: %s serve|ask NAME\n", argv[0]);
	return 2;
}
