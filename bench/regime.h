/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BENCH_REGIME_H
#define BENCH_REGIME_H

/**
 * DOC: what was measured on
 */

#include "json.h"
#include "options.h"

struct regime {
	char cpu[128];
	char kernel[192];
	bool virtual_machine;
	unsigned int cpus_online;
	unsigned int cpus_usable;
	unsigned long memory_mib;
	double load[3];
	char time[32];
};

/** regime_read() - look at the machine as it is now */
void regime_read(struct regime *r);

/** regime_print() - one paragraph for people, pinning and hogs included */
void regime_print(const struct regime *r, const struct options *o, FILE *f);

/** regime_json() - member "machine" */
void regime_json(const struct regime *r, struct json *j);

#endif
