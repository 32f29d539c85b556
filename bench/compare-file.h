/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BENCH_COMPARE_FILE_H
#define BENCH_COMPARE_FILE_H

/**
 * DOC: files of earlier runs, as compare reads them
 */

#include "json.h"

/**
 * compare_load() - read a file that --json wrote
 *
 * Return: 0, or -EINVAL after a message: it cannot be read, is no such file, or has a schema
 *	that this version does not know; -ENOMEM.
 */
int compare_load(const char *path, struct json_value **ret);

/** compare_cell() - the cell of a row and subject, or NULL */
const struct json_value *compare_cell(const struct json_value *file, const char *row,
				      const char *subject);

/**
 * compare_samples() - the samples of a cell
 * @file: where it is from
 * @cell: the cell
 * @against: NULL, or the subject by whose sample of the same row and repetition each is divided
 * @ret_n: how many
 *
 * Return: to be freed; NULL if there are none, if one is not greater than zero, or if @against has
 *	not as many.
 */
double *compare_samples(const struct json_value *file, const struct json_value *cell,
			const char *against, size_t *ret_n);

/** compare_notes() - a line for everything but the results that is not the same in both files */
void compare_notes(const struct json_value *a, const struct json_value *b, FILE *f);

#endif
