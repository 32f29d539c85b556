/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BENCH_PLOT_H
#define BENCH_PLOT_H

/**
 * DOC: a picture of a report, drawn by gnuplot
 *
 * Which picture follows from the rows: lines over the size where every row has
 * one, the distribution of single transactions for latency, points side by
 * side otherwise. Times and rates are on logarithmic axes always.
 */

#include "report.h"

/** plot_available() - is gnuplot there? */
bool plot_available(void);

/** plot_report() - draw @r into the SVG file @path; 0 or -EIO after a message */
int plot_report(const struct report *r, const char *path);

#endif
