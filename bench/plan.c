// SPDX-License-Identifier: LGPL-2.1-or-later
#include "plan.h"

#include <stdio.h>
#include <string.h>

int plan_run(const struct plan *plan, const struct options *o)
{
	struct report report;
	struct set set;
	int r = set_check_only(plan->subjects, plan->n_subjects, o);

	if (r < 0)
		return r;
	report_init(&report, plan->name, o);
	set_note_limits(plan->subjects, plan->columns, plan->n_columns, plan->rows, plan->n_rows,
			&report);
	r = set_start(&set, plan->subjects, plan->n_subjects, o, &report);
	if (r == 0) {
		r = set_measure(&set, plan->columns, plan->n_columns, plan->rows, plan->n_rows,
				&report);
		set_stop(&set);
	}
	if (r == 0) {
		plan->print(&report);
		report_details(&report, stdout);
		report_missing(&report, stdout);
		r = report_files(&report);
	}
	report_clear(&report);
	return r;
}

void plan_sizes(struct options *o, const uint64_t *defaults, unsigned int n)
{
	if (o->n_sizes)
		return;
	memcpy(o->sizes, defaults, n * sizeof(*defaults));
	o->n_sizes = n;
}

void plan_cell(double value, int width, int decimals)
{
	if (value > 0)
		printf(" %*.*f", width, decimals, value);
	else
		printf(" %*s", width, "-");
}
