// SPDX-License-Identifier: LGPL-2.1-or-later
#include "plot.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "child.h"

#define SERIES_MAX 64

static const char preamble[] =
	"set terminal svg size 960,600 font 'sans-serif,14' background 'white'\n"
	"set grid xtics ytics lt 1 lc rgb '#dddddd'\n"
	"set key outside right top\n"
	"set pointsize 0.7\n"
	"set logscale y\n";

/* A subject is told by its colour, what it did (a word of the row) by dashes and marks. */
static const char *const colours[] = {
	"#1b6ca8", "#d1495b", "#2e8b57", "#e08e00", "#7b4ab5", "#6b4f2a", "#00a5b5", "#c2408f",
	"#7a7a7a", "#9aa500", "#1a1a1a", "#ff7f50", "#4b5fd6", "#a3c1ad", "#b0876b", "#e0a3c8",
};
#define N_COLOURS (sizeof(colours) / sizeof(colours[0]))
static const struct {
	int dash, mark;
} variants[] = { { 1, 7 }, { 2, 9 }, { 3, 5 }, { 4, 13 }, { 5, 11 }, { 1, 6 }, { 2, 8 }, { 3, 4 } };
#define N_VARIANTS (sizeof(variants) / sizeof(variants[0]))

/* Room beside the outermost points, as a factor. */
#define MARGIN 1.25

bool plot_available(void)
{
	char *argv[] = { (char *)"gnuplot", (char *)"--version", NULL };

	return child_run(argv, -1, -1, true) == 0;
}

/* ---- rows that have a size ---- */

/* Split "sync 4k" into 4096 and "sync"; false if no word is a size. */
static bool split_row(const char *row, uint64_t *ret_x, char *rest, size_t rest_size)
{
	char copy[32], *save = NULL, *word;
	bool found = false;

	snprintf(copy, sizeof(copy), "%s", row);
	rest[0] = '\0';
	for (word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
		if (!found && options_size(word, ret_x))
			found = true;
		else if (strcmp(word, "pair") && strcmp(word, "pairs"))
			snprintf(rest + strlen(rest), rest_size - strlen(rest), " %s", word);
	}
	return found;
}

static bool is_timed(const struct cell *c)
{
	return !strcmp(c->unit, "ns");
}

static bool all_have_sizes(const struct report *r)
{
	unsigned int i;
	char rest[32];
	uint64_t x;

	for (i = 0; i < r->n_cells; i++)
		if (is_timed(r->cells[i]) && !split_row(r->cells[i]->row, &x, rest, sizeof(rest)))
			return false;
	return true;
}

static bool as_rate(const struct report *r)
{
	return !strcmp(r->name, "chart") || !strcmp(r->name, "scale");
}

/* What is drawn of a cell: median, lowest and highest. */
struct extent {
	double middle, low, high;
};

static struct extent extent_of(const struct report *r, const struct cell *c)
{
	double low = c->samples[0], high = low, median = cell_median(c);
	unsigned int i;

	for (i = 1; i < c->n; i++) {
		low = c->samples[i] < low ? c->samples[i] : low;
		high = c->samples[i] > high ? c->samples[i] : high;
	}
	if (as_rate(r))
		return (struct extent){ 1e9 / median, 1e9 / high, 1e9 / low };
	return (struct extent){ median / 1000, low / 1000, high / 1000 };
}

static void put_value(const struct report *r, const struct cell *c, FILE *f)
{
	struct extent e = extent_of(r, c);

	fprintf(f, "%g %g %g\n", e.middle, e.low, e.high);
}

/* gnuplot would let the axes go through the outermost points, and cut them there. */
static void put_y_range(const struct report *r, FILE *f)
{
	double low = INFINITY, high = 0;
	struct extent e;
	unsigned int i;

	for (i = 0; i < r->n_cells; i++) {
		if (!is_timed(r->cells[i]))
			continue;
		e = extent_of(r, r->cells[i]);
		low = fmin(low, e.low);
		high = fmax(high, e.high);
	}
	fprintf(f, "set yrange [%g:%g]\n", low / MARGIN, high * MARGIN);
}

struct names {
	char name[SERIES_MAX][96];
	unsigned int n;
};

/* @subject and @variant: of each series, numbered in the order they come up */
struct series {
	struct names names, subjects, variants;
	unsigned int subject[SERIES_MAX];
	unsigned int variant[SERIES_MAX];
};

static unsigned int number_of(struct names *s, const char *name)
{
	unsigned int i;

	for (i = 0; i < s->n; i++)
		if (!strcmp(s->name[i], name))
			return i;
	if (s->n < SERIES_MAX)
		snprintf(s->name[s->n++], sizeof(s->name[0]), "%s", name);
	return s->n - 1;
}

static void name_series(const struct cell *c, bool sized, char *name, size_t size, char *rest,
			uint64_t *ret_x)
{
	rest[0] = '\0';
	if (sized)
		split_row(c->row, ret_x, rest, 32);
	snprintf(name, size, "%s%s", c->subject, rest);
}

static void put_style(const struct series *s, unsigned int i, FILE *f)
{
	unsigned int v = s->variant[i] % N_VARIANTS;

	fprintf(f, "lw 2 lc rgb '%s' dt %d pt %d title '%s'", colours[s->subject[i] % N_COLOURS],
		variants[v].dash, variants[v].mark, s->names.name[i]);
}

static void put_sized_series(const struct report *r, const char *series, FILE *f)
{
	char name[96], rest[32];
	unsigned int i;
	uint64_t x = 0;

	for (i = 0; i < r->n_cells; i++) {
		if (!is_timed(r->cells[i]))
			continue;
		name_series(r->cells[i], true, name, sizeof(name), rest, &x);
		if (strcmp(name, series))
			continue;
		fprintf(f, "%llu ", (unsigned long long)x);
		put_value(r, r->cells[i], f);
	}
}

static void put_x_range(const struct report *r, FILE *f)
{
	uint64_t x, low = UINT64_MAX, high = 0;
	unsigned int i;
	char rest[32];

	for (i = 0; i < r->n_cells; i++) {
		if (!is_timed(r->cells[i]) || !split_row(r->cells[i]->row, &x, rest, sizeof(rest)))
			continue;
		low = x < low ? x : low;
		high = x > high ? x : high;
	}
	fprintf(f, "set xrange [%g:%g]\n", (double)low / MARGIN, (double)high * MARGIN);
}

static const char *x_label(const struct report *r)
{
	if (!strcmp(r->name, "scale"))
		return "pairs";
	if (!strcmp(r->name, "fanout"))
		return "receivers";
	return "payload (bytes)";
}

static void collect(const struct report *r, bool sized, struct series *s)
{
	char name[96], rest[32];
	unsigned int i, n;
	uint64_t x = 0;

	memset(s, 0, sizeof(*s));
	for (i = 0; i < r->n_cells; i++) {
		if (!is_timed(r->cells[i]))
			continue;
		name_series(r->cells[i], sized, name, sizeof(name), rest, &x);
		n = number_of(&s->names, name);
		s->subject[n] = number_of(&s->subjects, r->cells[i]->subject);
		s->variant[n] = number_of(&s->variants, rest);
	}
}

static void plot_command(const struct series *s, const char *with, FILE *f)
{
	unsigned int i;

	for (i = 0; i < s->names.n; i++) {
		fprintf(f, "%s$d%u using 1:2:3:4 with %s ", i ? ", \\\n" : "plot ", i, with);
		put_style(s, i, f);
	}
	fputc('\n', f);
}

static void draw_lines(const struct report *r, FILE *f)
{
	struct series s;
	unsigned int i;

	collect(r, true, &s);
	for (i = 0; i < s.names.n; i++) {
		fprintf(f, "$d%u << EOD\n", i);
		put_sized_series(r, s.names.name[i], f);
		fputs("EOD\n", f);
	}
	put_x_range(r, f);
	fprintf(f, "set logscale x 2\nset format x '%%.0b %%B'\nset xlabel '%s'\n", x_label(r));
	put_y_range(r, f);
	plot_command(&s, "yerrorlines", f);
}

/* ---- rows that have names ---- */

static int row_number(const struct report *r, unsigned int cell)
{
	int n = 0;
	unsigned int i;

	for (i = 0; strcmp(r->cells[i]->row, r->cells[cell]->row); i++)
		n += is_timed(r->cells[i]) && report_row_begins(r, i);
	return n;
}

static unsigned int last_timed(const struct report *r)
{
	unsigned int i, last = 0;

	for (i = 0; i < r->n_cells; i++)
		if (is_timed(r->cells[i]) && report_row_begins(r, i))
			last = i;
	return last;
}

static void put_named_series(const struct report *r, const struct series *s, unsigned int n,
			     FILE *f)
{
	unsigned int i;

	for (i = 0; i < r->n_cells; i++) {
		if (!is_timed(r->cells[i]) || strcmp(r->cells[i]->subject, s->names.name[n]))
			continue;
		fprintf(f, "%g ", row_number(r, i) + 0.6 * (n + 0.5) / s->names.n - 0.3);
		put_value(r, r->cells[i], f);
	}
}

static void draw_points(const struct report *r, FILE *f)
{
	const char *comma = "";
	struct series s;
	unsigned int i;

	collect(r, false, &s);
	for (i = 0; i < s.names.n; i++) {
		fprintf(f, "$d%u << EOD\n", i);
		put_named_series(r, &s, i, f);
		fputs("EOD\n", f);
	}
	fputs("set xtics (", f);
	for (i = 0; i < r->n_cells; i++) {
		if (!is_timed(r->cells[i]) || !report_row_begins(r, i))
			continue;
		fprintf(f, "%s'%s' %d", comma, r->cells[i]->row, row_number(r, i));
		comma = ", ";
	}
	fprintf(f, ")\nset xrange [-0.5:%d.5]\n", row_number(r, last_timed(r)));
	put_y_range(r, f);
	plot_command(&s, "yerrorbars", f);
}

/* ---- distributions ---- */

static void put_distribution(const struct hist *h, FILE *f)
{
	uint64_t seen = 0;
	unsigned int i;

	for (i = 0; i < HIST_SIZE; i++) {
		if (!h->counts[i])
			continue;
		seen += h->counts[i];
		/* The axis shows how many are slower; the last one has nobody behind it. */
		if (seen < h->total)
			fprintf(f, "%g %g\n", (double)hist_highest(i) / 1000,
				(double)(h->total - seen) / (double)h->total);
	}
}

static void draw_distributions(const struct report *r, FILE *f)
{
	unsigned int i;

	for (i = 0; i < r->n_cells; i++) {
		fprintf(f, "$d%u << EOD\n", i);
		put_distribution(r->cells[i]->hist, f);
		fputs("EOD\n", f);
	}
	fputs("set logscale x\nset xlabel 'latency (usecs)'\n"
	      "set ylabel 'share of packets that took longer'\n"
	      "set ytics ('p50' 0.5, 'p90' 0.1, 'p99' 0.01, 'p99.9' 0.001, 'p99.99' 0.0001)\n",
	      f);
	for (i = 0; i < r->n_cells; i++)
		fprintf(f, "%s$d%u using 1:2 with steps lw 2 lc rgb '%s' title '%s'",
			i ? ", \\\n" : "plot ", i, colours[i % N_COLOURS], r->cells[i]->subject);
	fputc('\n', f);
}

/* ---- all ---- */

/* Between gnuplot's single quotes only they mean anything: two of them are one. */
static void put_quoted(const char *s, FILE *f)
{
	for (; *s; s++)
		fputs(*s == '\'' ? "''" : (const char[]){ *s, '\0' }, f);
}

static void draw(const struct report *r, FILE *f)
{
	fputs(preamble, f);
	fprintf(f, "set title 'kdbus-bench %s: ", r->name);
	put_quoted(r->regime.cpu, f);
	fprintf(f, ", %u CPUs, Linux ", r->regime.cpus_usable);
	put_quoted(r->regime.kernel, f);
	fputs("' noenhanced\n", f);
	fprintf(f, "set ylabel '%s'\n",
		as_rate(r) ? "transactions a second (median, min to max)" :
			     "usecs a transaction (median, min to max)");
	if (!strcmp(r->name, "latency"))
		draw_distributions(r, f);
	else if (all_have_sizes(r))
		draw_lines(r, f);
	else
		draw_points(r, f);
}

/*
 * The script goes into a file without a name, which gnuplot gets as its input; what it draws comes
 * out of its output. So no name has to be told to it, with whatever characters.
 */
static int draw_and_run(const struct report *r, int svg, int script)
{
	char *argv[] = { (char *)"gnuplot", NULL };
	FILE *f = fdopen(dup(script), "w");

	if (!f)
		return -errno;
	draw(r, f);
	if (fclose(f) == EOF || lseek(script, 0, SEEK_SET) < 0)
		return -EIO;
	return child_run(argv, script, svg, false);
}

static int write_all(int fd, const char *p, size_t n)
{
	ssize_t done;

	for (; n > 0; p += done, n -= (size_t)done) {
		done = write(fd, p, n);
		if (done < 0)
			return -errno;
	}
	return 0;
}

/* gnuplot does not look whether what it writes arrives: a full disk is found out here. */
static int copy_drawing(int from, const char *path)
{
	int to = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666), r = 0;
	char buf[4096];
	ssize_t n;

	if (to < 0 || lseek(from, 0, SEEK_SET) < 0)
		r = -errno;
	while (r == 0 && (n = read(from, buf, sizeof(buf))) != 0)
		if (n < 0)
			r = -errno;
		else
			r = write_all(to, buf, (size_t)n);
	if (to >= 0 && close(to) < 0 && r == 0)
		r = -errno;
	return r;
}

int plot_report(const struct report *r, const char *path)
{
	int script = memfd_create("plot", MFD_CLOEXEC), svg = memfd_create("svg", MFD_CLOEXEC);
	int e = script < 0 || svg < 0 ? -errno : draw_and_run(r, svg, script);

	if (e == 0)
		e = copy_drawing(svg, path);
	if (script >= 0)
		close(script);
	if (svg >= 0)
		close(svg);
	if (e == 0)
		return 0;
	fprintf(stderr, "kdbus-bench: --plot: could not draw %s: %s\n", path, strerror(-e));
	return -EIO;
}
