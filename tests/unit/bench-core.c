// SPDX-License-Identifier: LGPL-2.1-or-later
/* What kdbus-bench computes: histogram, statistics, JSON, the check of payloads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hist.h"
#include "json.h"
#include "payload.h"
#include "stats.h"

/* ---- histogram ---- */

static void value_error_below_bound(void **state)
{
	uint64_t v, high;

	for (v = 1; v < HIST_MAX / 2; v += 1 + v / 777) {
		high = hist_highest(hist_index(v));
		assert_true(high >= v);
		assert_true(high - v <= v / 1024);
		assert_true(v < 2048 ? high == v : true);
	}
}

static void counters_are_contiguous(void **state)
{
	unsigned int i;

	for (i = 0; i + 1 < HIST_SIZE; i++) {
		assert_int_equal(hist_index(hist_highest(i)), i);
		assert_int_equal(hist_index(hist_highest(i) + 1), i + 1);
	}
	assert_int_equal(hist_index(UINT64_MAX), HIST_SIZE - 1);
}

static void percentiles_of_a_known_series(void **state)
{
	struct hist *h = calloc(2, sizeof(*h));
	uint64_t v;

	assert_non_null(h);
	assert_int_equal(hist_percentile(h, 50), 0);
	for (v = 1; v <= 1000; v++)
		hist_add(&h[v % 2], v);
	hist_merge(&h[0], &h[1]);
	assert_int_equal(h->total, 1000);
	assert_int_equal(h->min, 1);
	assert_int_equal(h->max, 1000);
	assert_int_equal(hist_percentile(h, 50), 500);
	assert_int_equal(hist_percentile(h, 99), 990);
	assert_int_equal(hist_percentile(h, 99.9), 999);
	assert_int_equal(hist_percentile(h, 100), 1000);
	free(h);
}

/* ---- statistics ---- */

static void mean_median_deviation(void **state)
{
	const double v[] = { 4, 1, 3, 2 };

	assert_true(stats_mean(v, 4) == 2.5);
	assert_true(stats_median(v, 4) == 2.5);
	assert_true(stats_median(v, 3) == 3);
	/* standard deviation sqrt(5/3), of the mean half of it */
	assert_true(fabs(stats_deviation(v, 4) - 100 * sqrt(5.0 / 3) / 2 / 2.5) < 1e-9);
	assert_true(stats_deviation(v, 1) == 0);
}

static void paired_ratio_ignores_common_drift(void **state)
{
	const double a[] = { 1, 2, 4, 8, 16 }, b[] = { 3, 6, 12, 24, 48 };
	const double c[] = { 2.9, 6.2, 11.8, 24.5, 47 };
	struct stats_ratio q = stats_paired(a, b, 5);

	assert_true(fabs(q.ratio - 3) < 1e-9 && q.high - q.low < 1e-9);
	q = stats_paired(a, c, 5);
	assert_true(q.low < 3 && q.high > 3 && q.low > 2.8 && q.high < 3.2);
}

/* Closed forms for one and two degrees of freedom, tables for more. */
static void student_tails(void **state)
{
	static const struct {
		double t, df, p;
	} known[] = {
		{ 2.775945, 4, 0.025 },	  { 2.178813, 12, 0.025 }, { 4.317791, 12, 0.0005 },
		{ 1.959964, 1e9, 0.025 }, { 12.92398, 3, 0.0005 }, { 1.960439, 5000, 0.025 }
	};
	double t;
	size_t i;

	for (i = 0; i < 40; i++) {
		t = 0.001 * pow(1.7, (double)i);
		assert_true(fabs(stats_student(t, 1) / (atan(1 / t) / M_PI) - 1) < 1e-9);
		assert_true(fabs(stats_student(t, 2) - 1 / (2 + t * t + t * sqrt(2 + t * t))) <
			    1e-12);
		assert_true(fabs(stats_student(-t, 3) + stats_student(t, 3) - 1) < 1e-12);
	}
	for (i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		assert_true(fabs(stats_student(known[i].t, known[i].df) / known[i].p - 1) < 1e-3);
		assert_true(fabs(stats_student_quantile(known[i].p, known[i].df) - known[i].t) <
			    1e-3);
	}
}

static void trimmed_mean_bears_an_outlier(void **state)
{
	const double v[] = { 5, 1, 2, 3, 4, 6, 1000 }, few[] = { 1, 2, 6 };
	struct stats_estimate e;

	assert_int_equal(stats_trimmed(v, 7, &e), 0);
	/* Winsorized: 2 2 3 4 5 6 6, sum of squares 18, divided by 5 * 4. */
	assert_true(e.mean == 4 && e.df == 4 && fabs(e.error2 - 18.0 / 20) < 1e-12);
	assert_int_equal(stats_trimmed(few, 3, &e), 0);
	assert_true(e.mean == 3 && e.df == 2 && fabs(e.error2 - 14.0 / 6) < 1e-12);
	assert_int_equal(stats_trimmed(few, 1, &e), 0);
	assert_true(e.mean == 1 && e.df == 0);
}

/* ---- JSON ---- */

static void json_reads_what_it_wrote(void **state)
{
	char *text = NULL;
	size_t size = 0;
	struct json j = { .file = open_memstream(&text, &size) };
	struct json_value *v;

	json_open(&j, NULL, '{');
	json_string(&j, "te\"xt", "a\\b\n\"c\"");
	json_open(&j, "list", '[');
	json_number(&j, NULL, 1.5);
	json_integer(&j, NULL, 7);
	json_boolean(&j, NULL, true);
	json_close(&j, ']');
	json_number(&j, "nothing", NAN);
	json_close(&j, '}');
	fclose(j.file);
	assert_int_equal(json_parse(text, &v), 0);
	assert_string_equal(json_text(v, "te\"xt"), "a\\b\n\"c\"");
	assert_true(json_member(v, "list")->child->number == 1.5);
	assert_true(json_member(v, "list")->child->next->number == 7);
	assert_int_equal(json_member(v, "list")->child->next->next->type, JSON_BOOLEAN);
	assert_int_equal(json_member(v, "nothing")->type, JSON_NULL);
	json_free(v);
	free(text);
}

static void json_refuses_what_is_none(void **state)
{
	static const char *const bad[] = { "",		"{",	 "[1,]", "{\"a\" 1}",
					   "nul",	"[1] 2", "\"x",	 "{\"a\":}",
					   "\"\\u00\"", "\"\\",	 "[" };
	struct json_value *v;
	char deep[101];
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(json_parse(bad[i], &v), -EBADMSG);
	memset(deep, '[', 100);
	deep[100] = '\0';
	assert_int_equal(json_parse(deep, &v), -EBADMSG);
}

/* ---- payload ---- */

static void each_wrong_byte_is_found(void **state)
{
	struct payload in, out;
	unsigned char *data;
	char error[160];
	size_t i;

	assert_int_equal(payload_init(&in, 0), 0);
	assert_int_equal(payload_init(&out, 0), 0);
	for (i = 0; i < 300; i++) {
		data = payload_next(&out);
		data[i] ^= 1;
		assert_int_equal(payload_check(&in, data, 300, 300, error, sizeof(error)),
				 -EBADMSG);
		data[i] ^= 1;
		assert_int_equal(payload_check(&in, data, 300, 300, error, sizeof(error)), 0);
	}
	payload_clear(&in);
	payload_clear(&out);
}

static void lost_doubled_and_cut_messages_are_found(void **state)
{
	struct payload in, out;
	char error[160];

	assert_int_equal(payload_init(&in, 0), 0);
	assert_int_equal(payload_init(&out, 0), 0);
	assert_int_equal(payload_check(&in, payload_next(&out), 1, 1, error, sizeof(error)), 0);
	assert_int_equal(payload_check(&in, out.data, 1, 1, error, sizeof(error)), -EBADMSG);
	assert_int_equal(payload_check(&in, payload_next(&out), 63, 64, error, sizeof(error)),
			 -EBADMSG);
	payload_next(&out);
	assert_int_equal(payload_check(&in, out.data, 64, 64, error, sizeof(error)), -EBADMSG);
	payload_clear(&in);
	payload_clear(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(value_error_below_bound),
		cmocka_unit_test(counters_are_contiguous),
		cmocka_unit_test(percentiles_of_a_known_series),
		cmocka_unit_test(mean_median_deviation),
		cmocka_unit_test(paired_ratio_ignores_common_drift),
		cmocka_unit_test(student_tails),
		cmocka_unit_test(trimmed_mean_bears_an_outlier),
		cmocka_unit_test(json_reads_what_it_wrote),
		cmocka_unit_test(json_refuses_what_is_none),
		cmocka_unit_test(each_wrong_byte_is_found),
		cmocka_unit_test(lost_doubled_and_cut_messages_are_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
