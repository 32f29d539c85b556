// SPDX-License-Identifier: LGPL-2.1-or-later
/* kdbus-bench tour: the quick form of five subcommands, and a page that shows what came out. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "child.h"
#include "commands.h"
#include "plot.h"

#define PATH_SIZE      512
#define FILE_NAME_SIZE 16 /* "/latency.json" and the like */

static const struct stop {
	const char *name;
	const char *title;
	const char *text;
} stops[] = {
	{ "chart", "Transactions by payload",
	  "Calls with a payload and an empty reply, one at a time. COPY and MEMFD are libkdbus." },
	{ "rpc", "Calls with a string",
	  "What programs with libdbus, sd-bus and GDBus pay for a call, and with libkdbus." },
	{ "latency", "Latency in a poll loop", "Packets of 64 bytes, there and back." },
	{ "socket", "Next to a plain socket",
	  "The same payload both ways: over a socket, over a socket with a relay process in "
	  "between, over libkdbus." },
	{ "pipe", "The floor", "What the kernel charges for one word there and back." },
};
#define N_STOPS (sizeof(stops) / sizeof(stops[0]))

struct tour {
	const char *folder;
	const char *kdbusd;
	uint64_t count;
	bool pictures;
};

static void make_path(const struct tour *t, const char *name, const char *ending, char *buf)
{
	snprintf(buf, PATH_SIZE, "%s/%s%s", t->folder, name, ending);
}

/* ---- running ---- */

static void exec_stop(const struct tour *t, const char *name, int out)
{
	char json[PATH_SIZE], svg[PATH_SIZE], count[24];
	char *argv[16];
	int n = 0;

	make_path(t, name, ".json", json);
	make_path(t, name, ".svg", svg);
	argv[n++] = (char *)"kdbus-bench";
	argv[n++] = (char *)name;
	argv[n++] = (char *)"--quick";
	argv[n++] = (char *)"--json";
	argv[n++] = json;
	if (t->pictures) {
		argv[n++] = (char *)"--plot";
		argv[n++] = svg;
	}
	if (t->kdbusd) {
		argv[n++] = (char *)"--kdbusd";
		argv[n++] = (char *)t->kdbusd;
	}
	if (t->count) {
		snprintf(count, sizeof(count), "%llu", (unsigned long long)t->count);
		argv[n++] = (char *)"--count";
		argv[n++] = count;
	}
	argv[n] = NULL;
	dup2(out, STDOUT_FILENO);
	execv("/proc/self/exe", argv);
	_exit(127);
}

/* What the child says goes to stdout and into the file. */
static int copy_output(int from, FILE *text)
{
	char buf[4096];
	ssize_t n;
	int r;

	for (;;) {
		r = child_wait_readable(from, -1);
		if (r < 0)
			return r;
		n = read(from, buf, sizeof(buf));
		if (n <= 0)
			return n < 0 ? -errno : 0;
		fwrite(buf, 1, (size_t)n, text);
		fwrite(buf, 1, (size_t)n, stdout);
		fflush(stdout);
	}
}

static int finish(pid_t pid, int r)
{
	int status = 0;

	/* It tidies up after itself, as it would at the terminal. */
	if (r < 0)
		kill(pid, SIGINT);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (r < 0)
		return r;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -EIO;
}

static int run_stop(const struct tour *t, const char *name, FILE *text)
{
	int fds[2], r;
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	pid = child_fork();
	if (pid == 0)
		exec_stop(t, name, fds[1]);
	close(fds[1]);
	r = pid < 0 ? (int)pid : finish(pid, copy_output(fds[0], text));
	close(fds[0]);
	return r;
}

/* What did not arrive in the file was not done. */
static int close_written(FILE *f, const char *path)
{
	bool broken = ferror(f);

	if (fclose(f) == 0 && !broken)
		return 0;
	fprintf(stderr, "kdbus-bench: tour: writing %s: %m\n", path);
	return -EIO;
}

static int visit(const struct tour *t, const struct stop *stop)
{
	char path[PATH_SIZE];
	FILE *text;
	int r, e;

	make_path(t, stop->name, ".txt", path);
	text = fopen(path, "we");
	if (!text) {
		fprintf(stderr, "kdbus-bench: tour: cannot write %s: %m\n", path);
		return -EINVAL;
	}
	printf("\n==== %s: %s\n", stop->name, stop->title);
	fflush(stdout);
	r = run_stop(t, stop->name, text);
	e = close_written(text, path);
	return r < 0 ? r : e;
}

/* ---- the page ---- */

static const char page_head[] =
	"<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
	"<title>kdbus-bench</title>\n<style>\n"
	"body { font-family: sans-serif; max-width: 75em; margin: 2em auto; padding: 0 1em; }\n"
	"pre { background: #f4f4f4; padding: 1em; overflow-x: auto; font-size: 80%; }\n"
	"img { max-width: 100%; }\n"
	"</style></head><body>\n<h1>kdbus-bench</h1>\n"
	"<p>Quick runs: enough to see orders of magnitude, not enough to prove a few percent. "
	"All subjects of a picture were measured in turn, in one run. A picture shows medians, "
	"and how far the repetitions were apart.</p>\n";

static void put_escaped(FILE *from, FILE *to)
{
	int c;

	while ((c = getc(from)) != EOF) {
		if (c == '<')
			fputs("&lt;", to);
		else if (c == '&')
			fputs("&amp;", to);
		else
			putc(c, to);
	}
}

static void put_section(const struct tour *t, const struct stop *stop, FILE *page)
{
	char path[PATH_SIZE];
	FILE *text;

	fprintf(page, "<h2>%s</h2>\n<p>%s</p>\n", stop->title, stop->text);
	if (t->pictures)
		fprintf(page, "<p><img src=\"%s.svg\" alt=\"%s\"></p>\n", stop->name, stop->title);
	make_path(t, stop->name, ".txt", path);
	text = fopen(path, "re");
	fputs("<details><summary>Tables</summary><pre>\n", page);
	if (text) {
		put_escaped(text, page);
		fclose(text);
	}
	fprintf(page,
		"</pre></details>\n<p><a href=\"%s.json\">all samples and histograms</a></p>\n",
		stop->name);
}

static int write_page(const struct tour *t)
{
	char path[PATH_SIZE];
	unsigned int i;
	FILE *page;
	int r;

	make_path(t, "index", ".html", path);
	page = fopen(path, "we");
	if (!page) {
		fprintf(stderr, "kdbus-bench: tour: cannot write %s: %m\n", path);
		return -EIO;
	}
	fputs(page_head, page);
	for (i = 0; i < N_STOPS; i++)
		put_section(t, &stops[i], page);
	fputs("</body></html>\n", page);
	r = close_written(page, path);
	if (r == 0)
		printf("\nTables and pictures: %s\n", path);
	return r;
}

int command_tour(const struct options *o)
{
	struct tour t = { .folder = o->output, .kdbusd = o->kdbusd, .count = o->count };
	unsigned int i;
	int r = 0;

	if (!t.folder) {
		fprintf(stderr, "kdbus-bench: tour needs a folder to write to; for example: "
				"--output kdbus-numbers\n");
		return -EINVAL;
	}
	if (strlen(t.folder) > PATH_SIZE - FILE_NAME_SIZE) {
		fprintf(stderr, "kdbus-bench: --output: the name of the folder is too long\n");
		return -EINVAL;
	}
	if (mkdir(t.folder, 0777) < 0 && errno != EEXIST) {
		fprintf(stderr, "kdbus-bench: --output: cannot make %s: %m\n", t.folder);
		return -EINVAL;
	}
	t.pictures = plot_available();
	for (i = 0; i < N_STOPS && r == 0; i++)
		r = visit(&t, &stops[i]);
	if (r == 0)
		r = write_page(&t);
	if (r == 0 && !t.pictures)
		puts("No pictures: gnuplot is not installed; the package gnuplot-nox brings it");
	return r;
}
