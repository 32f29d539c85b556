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
#include <unistd.h>

#include "payload.h"
#include "plot.h"

enum {
	OPT_REPEAT = 256,
	OPT_QUICK,
	OPT_BUSY,
	OPT_PIN,
	OPT_JSON,
	OPT_PLOT,
	OPT_ENGINE,
	OPT_KDBUSD,
	OPT_CORRUPT,
	OPT_SIZES,
	OPT_COUNT,
	OPT_THREADS,
	OPT_SECONDS,
	OPT_OUTPUT,
	OPT_THRESHOLD,
	OPT_ONLY,
	OPT_AGAINST,
};

static const struct option long_options[] = {
	{ "repeat", required_argument, NULL, OPT_REPEAT },
	{ "quick", no_argument, NULL, OPT_QUICK },
	{ "busy", required_argument, NULL, OPT_BUSY },
	{ "pin", required_argument, NULL, OPT_PIN },
	{ "json", required_argument, NULL, OPT_JSON },
	{ "plot", required_argument, NULL, OPT_PLOT },
	{ "engine", required_argument, NULL, OPT_ENGINE },
	{ "kdbusd", required_argument, NULL, OPT_KDBUSD },
	{ "corrupt", required_argument, NULL, OPT_CORRUPT },
	{ "sizes", required_argument, NULL, OPT_SIZES },
	{ "count", required_argument, NULL, OPT_COUNT },
	{ "threads", no_argument, NULL, OPT_THREADS },
	{ "seconds", required_argument, NULL, OPT_SECONDS },
	{ "output", required_argument, NULL, OPT_OUTPUT },
	{ "threshold", required_argument, NULL, OPT_THRESHOLD },
	{ "only", required_argument, NULL, OPT_ONLY },
	{ "against", required_argument, NULL, OPT_AGAINST },
	{ NULL, 0, NULL, 0 },
};

/* The subcommands that know an option. */
static const unsigned int needs[] = {
	[OPT_REPEAT - 256] = OPTION_COMMON,
	[OPT_QUICK - 256] = OPTION_COMMON,
	[OPT_BUSY - 256] = OPTION_COMMON,
	[OPT_PIN - 256] = OPTION_PIN,
	[OPT_JSON - 256] = OPTION_COMMON,
	[OPT_PLOT - 256] = OPTION_COMMON,
	[OPT_ENGINE - 256] = OPTION_COMMON,
	[OPT_KDBUSD - 256] = OPTION_COMMON | OPTION_OUTPUT,
	[OPT_CORRUPT - 256] = OPTION_COMMON,
	[OPT_SIZES - 256] = OPTION_SIZES,
	[OPT_COUNT - 256] = OPTION_COUNT,
	[OPT_THREADS - 256] = OPTION_THREADS,
	[OPT_SECONDS - 256] = OPTION_SECONDS,
	[OPT_OUTPUT - 256] = OPTION_OUTPUT,
	[OPT_THRESHOLD - 256] = OPTION_THRESHOLD,
	[OPT_AGAINST - 256] = OPTION_THRESHOLD,
	[OPT_ONLY - 256] = OPTION_COMMON,
};

bool options_wants(const struct options *o, const char *subject)
{
	size_t n = strlen(subject);
	const char *at = o->only;

	if (!at)
		return true;
	for (; (at = strstr(at, subject)); at++)
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
	char *copy = strdup(value), *save = NULL, *part;
	unsigned int n = 0;
	int r = copy ? 0 : -ENOMEM;

	for (part = copy ? strtok_r(copy, ",", &save) : NULL; part && r == 0;
	     part = strtok_r(NULL, ",", &save))
		r = n == OPTIONS_LIST_MAX ? bad(option, value, good) :
					    number(option, part, min, max, good, &ret[n++]);
	free(copy);
	if (r == 0 && n == 0)
		r = bad(option, value, good);
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

static int engine(const char *value)
{
	if (!strcmp(value, "user"))
		return 0;
	fprintf(stderr, "kdbus-bench: --engine: no engine '%s' in this build; there is: user\n",
		value);
	return -EINVAL;
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
		return engine(value);
	case OPT_THRESHOLD:
		return threshold(value, o);
	case OPT_SIZES:
		return list("sizes", value, 1, PAYLOAD_MAX, "1,64,4k,1M", o->sizes, &o->n_sizes);
	default:
		return take_number(c, value, o);
	}
}

static const char *long_name(int c)
{
	const struct option *o;

	for (o = long_options; o->name; o++)
		if (o->val == c)
			return o->name;
	return "?";
}

/* Better now than after a long run. An empty file stays behind if the run fails. */
static int check_writable(const char *option, const char *path)
{
	int fd;

	if (!path)
		return 0;
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
	if (fd < 0) {
		fprintf(stderr, "kdbus-bench: --%s: cannot write %s: %m\n", option, path);
		return -EINVAL;
	}
	close(fd);
	return 0;
}

int options_parse(const char *name, unsigned int allowed, int argc, char **argv,
		  struct options *ret)
{
	struct options o = { .threshold = 1.05, .argc = argc, .argv = argv };
	int c, r = 0;

	optind = 1;
	opterr = 0;
	while (r == 0 && (c = getopt_long(argc, argv, ":", long_options, NULL)) != -1) {
		if (c == '?' || c == ':') {
			fprintf(stderr, "kdbus-bench: %s: %s; try: kdbus-bench --help\n",
				argv[optind - 1],
				c == ':' ? "a value is missing" : "no such option");
			return -EINVAL;
		}
		if (!(needs[c - 256] & allowed)) {
			fprintf(stderr,
				"kdbus-bench: %s has no option --%s; try: kdbus-bench "
				"--help\n",
				name, long_name(c));
			return -EINVAL;
		}
		r = take(c, optarg, &o);
	}
	if (r == 0)
		r = check_writable("json", o.json);
	if (r == 0)
		r = check_writable("plot", o.plot);
	if (r == 0 && o.plot && !plot_available()) {
		fprintf(stderr,
			"kdbus-bench: --plot needs gnuplot; the package gnuplot-nox brings it\n");
		r = -EINVAL;
	}
	if (r < 0)
		return -EINVAL;
	if (!o.repeat)
		o.repeat = o.quick ? 3 : 7;
	o.arguments = argv + optind;
	o.n_arguments = argc - optind;
	*ret = o;
	return 0;
}
