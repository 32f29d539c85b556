// SPDX-License-Identifier: LGPL-2.1-or-later
#include "options.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "payload.h"
#include "plot.h"

#define REPEAT	     7
#define REPEAT_QUICK 3

enum {
	OPT_REPEAT = 256,
	OPT_QUICK,
	OPT_PIN,
	OPT_BUSY,
	OPT_ONLY,
	OPT_JSON,
	OPT_PLOT,
	OPT_ENGINE,
	OPT_KDBUSD,
	OPT_CORRUPT,
	OPT_SIZES,
	OPT_COUNT,
	OPT_SECONDS,
	OPT_THREADS,
	OPT_OUTPUT,
	OPT_AGAINST,
	OPT_THRESHOLD,
	OPT_HELP,
	OPT_VERSION,
	OPT_END,
};
#define N_OPTIONS (OPT_END - OPT_REPEAT)

#define ALWAYS (~0U)

/* In the order of OPT_*: name, argument, the subcommands that know it, what it does. */
static const struct {
	const char *name;
	const char *argument;
	unsigned int needs;
	const char *text;
} table[N_OPTIONS] = {
	{ "repeat", "N", OPTION_COMMON,
	  "repetitions of each measurement (7; 3 with --quick, and less\n"
	  "than 7 only with it)" },
	{ "quick", NULL, OPTION_COMMON, "take less than 20 seconds" },
	{ "pin", "CPU,...", OPTION_PIN, "bind client, server and daemon to these CPUs" },
	{ "busy", "N", OPTION_COMMON, "with N competing processes that burn CPU" },
	{ "only", "A,...", OPTION_COMMON,
	  "measure these subjects and no others; names as in the tables" },
	{ "json", "FILE", OPTION_COMMON | OPTION_JSON,
	  "write all that was measured (schema: bench/README.md)" },
	{ "plot", "F.svg", OPTION_COMMON, "draw the table, with gnuplot" },
	{ "engine", "E", OPTION_COMMON,
	  "the engine libkdbus uses: user or kernel (default: KDBUS_ENGINE, else user)" },
	{ "kdbusd", "PATH", OPTION_COMMON | OPTION_OUTPUT,
	  "the daemon to start (default: KDBUSD, else next to this program)" },
	{ "corrupt", "N", OPTION_COMMON, "damage request N on purpose: the run must fail" },
	{ "sizes", "N,...", OPTION_SIZES,
	  "payload sizes in bytes, k and M for 1024 and 1048576; for scale\n"
	  "numbers of pairs, for fanout of receivers" },
	{ "count", "N", OPTION_COUNT, "transactions in a repetition" },
	{ "seconds", "N", OPTION_SECONDS, "how long for each subject: its repetitions" },
	{ "threads", NULL, OPTION_THREADS, "two threads of one process instead of two processes" },
	{ "output", "DIR", OPTION_OUTPUT, "where to write; made if it is not there" },
	{ "against", "S", OPTION_THRESHOLD, "compare ratios to subject S, which nobody changed" },
	{ "threshold", "P", OPTION_THRESHOLD, "slower by less than P percent is no news (5)" },
	{ "help", NULL, ALWAYS, "show this help" },
	{ "version", NULL, ALWAYS, "show the version" },
};

static void make_long_options(struct option *to)
{
	unsigned int i;

	for (i = 0; i < N_OPTIONS; i++)
		to[i] = (struct option){
			.name = table[i].name,
			.has_arg = table[i].argument ? required_argument : no_argument,
			.val = OPT_REPEAT + (int)i,
		};
	to[i] = (struct option){ .name = NULL };
}

void options_help(unsigned int allowed, FILE *f)
{
	const char *text, *end;
	char head[32];
	unsigned int i;

	for (i = 0; i < N_OPTIONS; i++) {
		if (!(table[i].needs & allowed))
			continue;
		snprintf(head, sizeof(head), "--%s%s%s", table[i].name,
			 table[i].argument ? " " : "", table[i].argument ? table[i].argument : "");
		for (text = table[i].text; *text; text = *end ? end + 1 : end) {
			end = strchrnul(text, '\n');
			fprintf(f, "  %-15s %.*s\n", head, (int)(end - text), text);
			head[0] = '\0';
		}
	}
}

bool options_names(const struct options *o, const char *subject)
{
	size_t n = strlen(subject);
	const char *at = o->only;

	for (; at && (at = strstr(at, subject)); at++)
		if ((at == o->only || at[-1] == ',') && (at[n] == ',' || !at[n]))
			return true;
	return false;
}

bool options_size(const char *text, uint64_t *ret)
{
	char *end;
	unsigned long long n;
	unsigned int shift = 0;

	if (!isdigit((unsigned char)*text))
		return false;
	errno = 0;
	n = strtoull(text, &end, 10);
	if (*end == 'k' || *end == 'K')
		shift = 10;
	else if (*end == 'M')
		shift = 20;
	if (errno || end[shift > 0] || n > UINT64_MAX >> shift)
		return false;
	*ret = n << shift;
	return true;
}

const char *options_format_size(uint64_t size, char *buf, size_t buf_size)
{
	const char *unit = "";

	if (size && size % (1 << 20) == 0) {
		size >>= 20;
		unit = "M";
	} else if (size && size % (1 << 10) == 0) {
		size >>= 10;
		unit = "k";
	}
	snprintf(buf, buf_size, "%llu%s", (unsigned long long)size, unit);
	return buf;
}

static int bad(const char *option, const char *value, const char *good)
{
	fprintf(stderr, "kdbus-bench: --%s: '%s' is not valid; for example: --%s %s\n", option,
		value, option, good);
	return -EINVAL;
}

static int number(const char *option, const char *value, uint64_t min, uint64_t max,
		  const char *good, uint64_t *ret)
{
	uint64_t n;

	if (!options_size(value, &n) || n < min || n > max)
		return bad(option, value, good);
	*ret = n;
	return 0;
}

static int list(const char *option, char *value, uint64_t min, uint64_t max, const char *good,
		uint64_t *ret, unsigned int *ret_n)
{
	char *copy = strdup(value), *rest = copy, *part;
	unsigned int n = 0;
	int r = copy ? 0 : -ENOMEM;

	/* strsep(3): nothing between two commas is no number. */
	while (r == 0 && (part = strsep(&rest, ",")))
		r = n == OPTIONS_LIST_MAX ? bad(option, value, good) :
					    number(option, part, min, max, good, &ret[n++]);
	free(copy);
	if (r == 0)
		*ret_n = n;
	return r;
}

static int pin(char *value, struct options *o)
{
	uint64_t cpus[OPTIONS_LIST_MAX];
	cpu_set_t usable;
	unsigned int i;
	int r = list("pin", value, 0, CPU_SETSIZE - 1, "0,1", cpus, &o->n_cpus);

	if (r < 0)
		return r;
	CPU_ZERO(&usable);
	sched_getaffinity(0, sizeof(usable), &usable);
	for (i = 0; i < o->n_cpus; i++) {
		if (!CPU_ISSET(cpus[i], &usable)) {
			fprintf(stderr, "kdbus-bench: --pin: CPU %llu is not usable here\n",
				(unsigned long long)cpus[i]);
			return -EINVAL;
		}
		o->cpus[i] = (int)cpus[i];
	}
	return 0;
}

/* The same row twice would be one with twice the repetitions. */
static int sizes(char *value, struct options *o)
{
	unsigned int i, j;
	int r = list("sizes", value, 1, PAYLOAD_MAX, "1,64,4k,1M", o->sizes, &o->n_sizes);

	for (i = 0; r == 0 && i < o->n_sizes; i++)
		for (j = 0; r == 0 && j < i; j++)
			if (o->sizes[i] == o->sizes[j]) {
				fprintf(stderr, "kdbus-bench: --sizes %s: %llu is there twice\n",
					value, (unsigned long long)o->sizes[i]);
				r = -EINVAL;
			}
	return r;
}

static int engine(const char *value, struct options *o)
{
	o->engine = value;
	if (!strcmp(value, "user") || !strcmp(value, "kernel"))
		return 0;
	fprintf(stderr, "kdbus-bench: --engine: no engine '%s'; there are: user, kernel\n", value);
	return -EINVAL;
}

static int default_engine(struct options *o)
{
	const char *value = getenv("KDBUS_ENGINE");

	return o->engine ? 0 : engine(value && *value ? value : "user", o);
}

static int threshold(const char *value, struct options *o)
{
	char *end;
	double percent = strtod(value, &end);

	if (end == value || *end || !(percent >= 0 && percent <= 1000))
		return bad("threshold", value, "5");
	o->threshold = 1 + percent / 100;
	return 0;
}

static int take_number(int c, const char *value, struct options *o)
{
	uint64_t n;
	int r;

	switch (c) {
	case OPT_REPEAT:
		r = number("repeat", value, 1, 1000, "7", &n);
		o->repeat = r < 0 ? 0 : (unsigned int)n;
		return r;
	case OPT_BUSY:
		r = number("busy", value, 0, 256, "2", &n);
		o->busy = r < 0 ? 0 : (unsigned int)n;
		return r;
	case OPT_COUNT:
		return number("count", value, 1, 100000000, "1000", &o->count);
	case OPT_CORRUPT:
		return number("corrupt", value, 1, UINT32_MAX, "100", &o->corrupt);
	default:
		r = number("seconds", value, 1, 86400, "10", &n);
		o->seconds = r < 0 ? 0 : (unsigned int)n;
		return r;
	}
}

static int take(int c, char *value, struct options *o)
{
	switch (c) {
	case OPT_HELP:
		o->help = true;
		return 0;
	case OPT_VERSION:
		o->version = true;
		return 0;
	case OPT_QUICK:
		o->quick = true;
		return 0;
	case OPT_THREADS:
		o->threads = true;
		return 0;
	case OPT_PIN:
		return pin(value, o);
	case OPT_JSON:
		o->json = value;
		return 0;
	case OPT_PLOT:
		o->plot = value;
		return 0;
	case OPT_OUTPUT:
		o->output = value;
		return 0;
	case OPT_KDBUSD:
		o->kdbusd = value;
		return 0;
	case OPT_ONLY:
		o->only = value;
		return 0;
	case OPT_AGAINST:
		o->against = value;
		return 0;
	case OPT_ENGINE:
		return engine(value, o);
	case OPT_THRESHOLD:
		return threshold(value, o);
	case OPT_SIZES:
		return sizes(value, o);
	default:
		return take_number(c, value, o);
	}
}

/* Better now than after a long run. An empty file stays behind if the run fails. */
static int check_writable(const char *option, const char *path, struct stat *ret)
{
	int fd;

	if (!path)
		return 0;
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
	if (fd < 0 || fstat(fd, ret) < 0) {
		fprintf(stderr, "kdbus-bench: --%s: cannot write %s: %m\n", option, path);
		if (fd >= 0)
			close(fd);
		return -EINVAL;
	}
	close(fd);
	return 0;
}

static int check_files(const struct options *o)
{
	struct stat json, plot;
	int r = check_writable("json", o->json, &json);

	if (r == 0)
		r = check_writable("plot", o->plot, &plot);
	if (r < 0 || !o->plot)
		return r;
	if (o->json && json.st_dev == plot.st_dev && json.st_ino == plot.st_ino &&
	    S_ISREG(json.st_mode)) {
		fprintf(stderr, "kdbus-bench: --json and --plot: %s and %s are the same file\n",
			o->json, o->plot);
		return -EINVAL;
	}
	if (!plot_available()) {
		fprintf(stderr,
			"kdbus-bench: --plot needs gnuplot; the package gnuplot-nox brings it\n");
		return -EINVAL;
	}
	return 0;
}

/* A program without a slash is looked for in PATH, by who runs it. */
static int check_kdbusd(const struct options *o)
{
	const char *path = o->kdbusd ? o->kdbusd : getenv("KDBUSD");
	struct stat st;
	int error = 0;

	if (!path || (*path && !strchr(path, '/')))
		return 0;
	if (stat(path, &st) < 0 || access(path, X_OK) < 0)
		error = errno;
	else if (!S_ISREG(st.st_mode))
		error = EACCES;
	if (!error)
		return 0;
	fprintf(stderr,
		"kdbus-bench: %s: cannot run '%s': %s; for example: --kdbusd "
		"build/daemon/kdbusd\n",
		o->kdbusd ? "--kdbusd" : "KDBUSD", path, strerror(error));
	return -EINVAL;
}

/* The repetitions that a statement about a difference needs (stats and judge). */
static int check_repeat(struct options *o)
{
	unsigned int given = o->seconds ? o->seconds : o->repeat;

	if (o->seconds && o->repeat) {
		fprintf(stderr, "kdbus-bench: --seconds and --repeat: the seconds are the "
				"repetitions; give one of both\n");
		return -EINVAL;
	}
	if (given && given < REPEAT && !o->quick) {
		fprintf(stderr, "kdbus-bench: --%s %u: less than %d only with --quick\n",
			o->seconds ? "seconds" : "repeat", given, REPEAT);
		return -EINVAL;
	}
	o->repeat = given ? given : o->quick ? REPEAT_QUICK : REPEAT;
	return 0;
}

static int check_all(struct options *o, unsigned int allowed)
{
	int r = check_repeat(o);

	if (r == 0)
		r = default_engine(o);
	if (r == 0 && allowed & (OPTION_COMMON | OPTION_OUTPUT))
		r = check_kdbusd(o);
	return r == 0 ? check_files(o) : r;
}

static int refuse(int c, unsigned int allowed, const char *name, const char *what)
{
	/* A value for an option that has none comes as a known one that is not understood. */
	int known = c == '?' && optopt >= OPT_REPEAT ? optopt : c;

	if (known >= OPT_REPEAT && !(table[known - OPT_REPEAT].needs & allowed))
		fprintf(stderr, "kdbus-bench: %s has no option --%s; try: kdbus-bench %s --help\n",
			name, table[known - OPT_REPEAT].name, name);
	else
		fprintf(stderr, "kdbus-bench: %s: %s; try: kdbus-bench %s --help\n", what,
			c == ':'	    ? "a value is missing" :
			known >= OPT_REPEAT ? "this option takes no value" :
					      "no such option",
			name);
	return -EINVAL;
}

/* What was not understood: a short option by its letter, as it may stand among others. */
static const char *culprit(char **argv, char *buf)
{
	if (!optopt || optopt >= OPT_REPEAT)
		return argv[optind - 1];
	snprintf(buf, 3, "-%c", optopt);
	return buf;
}

int options_parse(const char *name, unsigned int allowed, int argc, char **argv,
		  struct options *ret)
{
	struct options o = { .threshold = 1.05, .argc = argc, .argv = argv };
	struct option long_options[N_OPTIONS + 1];
	char letter[3];
	int c, r = 0;

	make_long_options(long_options);
	optind = 1;
	opterr = 0;
	while (r == 0 && (c = getopt_long(argc, argv, ":", long_options, NULL)) != -1) {
		if (c == '?' || c == ':' || !(table[c - OPT_REPEAT].needs & allowed))
			return refuse(c, allowed, name, culprit(argv, letter));
		r = take(c, optarg, &o);
	}
	if (r == 0 && !o.help && !o.version)
		r = check_all(&o, allowed);
	if (r < 0)
		return -EINVAL;
	o.arguments = argv + optind;
	o.n_arguments = argc - optind;
	*ret = o;
	return 0;
}
