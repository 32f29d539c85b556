// SPDX-License-Identifier: LGPL-2.1-or-later
#include "regime.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

static void read_cpuinfo(struct regime *r)
{
	FILE *f = fopen("/proc/cpuinfo", "re");
	char line[4096], *value;

	if (!f)
		return;
	while (fgets(line, sizeof(line), f)) {
		value = strchr(line, ':');
		if (!value)
			continue;
		value[strcspn(value, "\n")] = '\0';
		if (!strncmp(line, "model name", 10) && value[1])
			snprintf(r->cpu, sizeof(r->cpu), "%.120s", value + 2);
		if (!strncmp(line, "flags", 5))
			r->virtual_machine = strstr(value, " hypervisor");
	}
	fclose(f);
}

void regime_read(struct regime *r)
{
	struct utsname u;
	cpu_set_t usable;
	time_t now = time(NULL);
	struct tm tm;

	memset(r, 0, sizeof(*r));
	snprintf(r->cpu, sizeof(r->cpu), "unknown CPU");
	read_cpuinfo(r);
	uname(&u);
	snprintf(r->kernel, sizeof(r->kernel), "%s %s", u.release, u.machine);
	CPU_ZERO(&usable);
	sched_getaffinity(0, sizeof(usable), &usable);
	r->cpus_usable = (unsigned int)CPU_COUNT(&usable);
	r->cpus_online = (unsigned int)sysconf(_SC_NPROCESSORS_ONLN);
	r->memory_mib = (unsigned long)sysconf(_SC_PHYS_PAGES) /
			(unsigned long)((1 << 20) / sysconf(_SC_PAGESIZE));
	if (getloadavg(r->load, 3) < 0)
		memset(r->load, 0, sizeof(r->load));
	gmtime_r(&now, &tm);
	strftime(r->time, sizeof(r->time), "%Y-%m-%dT%H:%M:%SZ", &tm);
}

static void print_pinning(const struct options *o, FILE *f)
{
	unsigned int i;

	if (o->placed) {
		fputs("pinned as said below", f);
		return;
	}
	if (!o->n_cpus) {
		fputs("not pinned: the scheduler places processes", f);
		return;
	}
	fputs("pinned to CPU ", f);
	for (i = 0; i < o->n_cpus; i++)
		fprintf(f, "%s%d", i ? "," : "", o->cpus[i]);
	fputs(" (client, server, daemon)", f);
}

void regime_print(const struct regime *r, const struct options *o, FILE *f)
{
	fprintf(f, "machine: %s%s, %u of %u CPUs usable, %lu MiB; Linux %s\n", r->cpu,
		r->virtual_machine ? " (virtual machine)" : "", r->cpus_usable, r->cpus_online,
		r->memory_mib, r->kernel);
	fprintf(f, "regime:  load %.2f %.2f %.2f; ", r->load[0], r->load[1], r->load[2]);
	print_pinning(o, f);
	if (o->busy)
		fprintf(f, "; %u CPU hogs", o->busy);
	fprintf(f, "; %u repetitions, interleaved\n", o->repeat);
	if (r->load[0] > 0.5 * r->cpus_usable && !o->busy)
		fputs("         The machine is busy with other work: do not trust these numbers.\n",
		      f);
	fputs("versions: kdbus " KDBUS_VERSION BENCH_CLIENTS "; built by " BENCH_COMPILER "\n", f);
}

void regime_json(const struct regime *r, struct json *j)
{
	int i;

	json_open(j, "machine", '{');
	json_string(j, "cpu", r->cpu);
	json_boolean(j, "virtual", r->virtual_machine);
	json_string(j, "kernel", r->kernel);
	json_integer(j, "cpus_online", r->cpus_online);
	json_integer(j, "cpus_usable", r->cpus_usable);
	json_integer(j, "memory_mib", r->memory_mib);
	json_open(j, "load", '[');
	for (i = 0; i < 3; i++)
		json_number(j, NULL, r->load[i]);
	json_close(j, ']');
	json_string(j, "time", r->time);
	json_close(j, '}');
}
