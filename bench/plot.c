// SPDX-License-Identifier: LGPL-2.1-or-later
#include "plot.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "child.h"

#define SERIES_MAX 64

static const char preamble[] =
	"set terminal svg size 960,600 font 'sans-serif,14' background 'white'\n"
	"set grid xtics ytics lt 1 lc rgb '#dddddd'\n"
	"set key outside right top\n"
	"set pointsize 0.6\n"
	"set linetype 4 lc rgb '#d95f02'\nset linetype 5 lc rgb '#8c510a'\n"
	"set logscale y\n";

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

static void put_value(const struct report *r, const struct cell *c, FILE *f)
{
	double low = c->samples[0], high = low, median = cell_median(c);
	unsigned int i;

	for (i = 1; i < c->n; i++) {
		low = c->samples[i] < low ? c->samples[i] : low;
		high = c->samples[i] > high ? c->samples[i] : high;
	}
	if (as_rate(r))
		fprintf(f, "%g %g %g\n", 1e9 / median, 1e9 / high, 1e9 / low);
	else
		fprintf(f, "%g %g %g\n", median / 1000, low / 1000, high / 1000);
}

struct series {
	char names[SERIES_MAX][96];
	unsigned int n;
};

static unsigned int find_series(struct series *s, const char *name)
{
	unsigned int i;

	for (i = 0; i < s->n; i++)
		if (!strcmp(s->names[i], name))
			return i;
	if (s->n < SERIES_MAX)
		snprintf(s->names[s->n++], sizeof(s->names[0]), "%s", name);
	return s->n - 1;
}

static void name_series(const struct cell *c, bool sized, char *name, size_t size, uint64_t *ret_x)
{
	char rest[32] = "";

	if (sized)
		split_row(c->row, ret_x, rest, sizeof(rest));
	snprintf(name, size, "%s%s", c->subject, rest);
}

static void put_sized_series(const struct report *r, const char *series, FILE *f)
{
	char name[96];
	unsigned int i;
	uint64_t x = 0;

	for (i = 0; i < r->n_cells; i++) {
		if (!is_timed(r->cells[i]))
			continue;
		name_series(r->cells[i], true, name, sizeof(name), &x);
		if (strcmp(name, series))
			continue;
		fprintf(f, "%llu ", (unsigned long long)x);
		put_value(r, r->cells[i], f);
	}
}

/* gnuplot does not like a range without extent. */
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
	if (low == high)
		fprintf(f, "set xrange [%g:%g]\n", (double)low / 2, (double)low * 2);
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
	char name[96];
	unsigned int i;
	uint64_t x = 0;

	s->n = 0;
	for (i = 0; i < r->n_cells; i++) {
		if (!is_timed(r->cells[i]))
			continue;
		name_series(r->cells[i], sized, name, sizeof(name), &x);
		find_series(s, name);
	}
}

static void plot_command(const struct series *s, FILE *f)
{
	unsigned int i;

	for (i = 0; i < s->n; i++)
		fprintf(f, "%s$d%u using 1:2:3:4 with yerrorlines lw 2 pt 7 title '%s'",
			i ? ", \\\n" : "plot ", i, s->names[i]);
	fputc('\n', f);
}

static void draw_lines(const struct report *r, FILE *f)
{
	struct series s;
	unsigned int i;

	collect(r, true, &s);
	for (i = 0; i < s.n; i++) {
		fprintf(f, "$d%u << EOD\n", i);
		put_sized_series(r, s.names[i], f);
		fputs("EOD\n", f);
	}
	put_x_range(r, f);
	fprintf(f, "set logscale x 2\nset format x '%%.0b %%B'\nset xlabel '%s'\n", x_label(r));
	plot_command(&s, f);
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
		if (!is_timed(r->cells[i]) || strcmp(r->cells[i]->subject, s->names[n]))
			continue;
		fprintf(f, "%g ", row_number(r, i) + 0.6 * (n + 0.5) / s->n - 0.3);
		put_value(r, r->cells[i], f);
	}
}

static void draw_points(const struct report *r, FILE *f)
{
	const char *comma = "";
	struct series s;
	unsigned int i;

	collect(r, false, &s);
	for (i = 0; i < s.n; i++) {
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
	for (i = 0; i < s.n; i++)
		fprintf(f, "%s$d%u using 1:2:3:4 with yerrorbars lw 2 pt 7 title '%s'",
			i ? ", \\\n" : "plot ", i, s.names[i]);
	fputc('\n', f);
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
		fprintf(f, "%s$d%u using 1:2 with steps lw 2 title '%s'", i ? ", \\\n" : "plot ", i,
			r->cells[i]->subject);
	fputc('\n', f);
}

/* ---- all ---- */

/* gnuplot's single quotes take everything but single quotes. */
static void put_quoted(const char *s, FILE *f)
{
	for (; *s; s++)
		fputc(*s == '\'' ? '"' : *s, f);
}

static void draw(const struct report *r, const char *path, FILE *f)
{
	fputs(preamble, f);
	fputs("set output '", f);
	put_quoted(path, f);
	fprintf(f, "'\nset title \"kdbus-bench %s: ", r->name);
	put_quoted(r->regime.cpu, f);
	fprintf(f, ", %u CPUs, Linux ", r->regime.cpus_usable);
	put_quoted(r->regime.kernel, f);
	fputs("\" noenhanced\n", f);
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

/* The script goes into a file without a name, which gnuplot gets as its input. */
static int draw_and_run(const struct report *r, const char *path, int script)
{
	char *argv[] = { (char *)"gnuplot", NULL };
	FILE *f = fdopen(dup(script), "w");

	if (!f)
		return -errno;
	draw(r, path, f);
	if (fclose(f) == EOF || lseek(script, 0, SEEK_SET) < 0)
		return -EIO;
	return child_run(argv, script, -1, false);
}

int plot_report(const struct report *r, const char *path)
{
	int script = memfd_create("plot", MFD_CLOEXEC);
	int e = script < 0 ? -errno : draw_and_run(r, path, script);

	if (script >= 0)
		close(script);
	if (e == 0)
		return 0;
	fprintf(stderr, "kdbus-bench: --plot: gnuplot could not draw %s\n", path);
	return -EIO;
}
