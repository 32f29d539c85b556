// SPDX-License-Identifier: LGPL-2.1-or-later
#include "usage.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

uint64_t usage_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ULL + (uint64_t)ts.tv_nsec;
}

static double clock_value(clockid_t clock)
{
	struct timespec ts;

	if (clock_gettime(clock, &ts) < 0)
		return 0;
	return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

struct usage usage_self(int thread)
{
	struct rusage ru;

	getrusage(thread ? RUSAGE_THREAD : RUSAGE_SELF, &ru);
	return (struct usage){
		.cpu_ns = clock_value(thread ? CLOCK_THREAD_CPUTIME_ID : CLOCK_PROCESS_CPUTIME_ID),
		.switches = (double)(ru.ru_nvcsw + ru.ru_nivcsw),
	};
}

/* The sum of the numbers behind the lines of /proc/.../status that begin with one of the keys. */
static double status_sum(const char *path, const char *key1, const char *key2)
{
	FILE *f = fopen(path, "re");
	unsigned long long n;
	double sum = 0;
	char line[128];

	if (!f)
		return 0;
	while (fgets(line, sizeof(line), f)) {
		if (strncmp(line, key1, strlen(key1)) && strncmp(line, key2, strlen(key2)))
			continue;
		if (sscanf(strchr(line, ':') + 1, "%llu", &n) == 1)
			sum += (double)n;
	}
	fclose(f);
	return sum;
}

static double task_switches(const char *task)
{
	char path[320];

	snprintf(path, sizeof(path), "%s/status", task);
	return status_sum(path, "voluntary_ctxt_switches:", "nonvoluntary_ctxt_switches:");
}

static double process_switches(pid_t pid)
{
	struct dirent *entry;
	char path[32], task[300];
	double sum = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	dir = opendir(path);
	if (!dir)
		return 0;
	while ((entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(task, sizeof(task), "%s/%s", path, entry->d_name);
		sum += task_switches(task);
	}
	closedir(dir);
	return sum;
}

struct usage usage_of(pid_t pid)
{
	struct usage u = { 0 };
	clockid_t clock;

	if (pid <= 0 || clock_getcpuclockid(pid, &clock) != 0)
		return u;
	u.cpu_ns = clock_value(clock);
	u.switches = process_switches(pid);
	return u;
}

struct usage usage_of_thread(clockid_t clock, pid_t tid)
{
	char task[64];

	snprintf(task, sizeof(task), "/proc/self/task/%d", (int)tid);
	return (struct usage){ .cpu_ns = clock_value(clock), .switches = task_switches(task) };
}

struct usage usage_minus(struct usage after, struct usage before)
{
	return (struct usage){ .cpu_ns = after.cpu_ns - before.cpu_ns,
			       .switches = after.switches - before.switches };
}

int usage_memory(pid_t pid, uint64_t *ret_kib, uint64_t *ret_fds)
{
	struct dirent *entry;
	uint64_t fds = 0;
	char path[64];
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	dir = opendir(path);
	if (!dir)
		return -errno;
	while ((entry = readdir(dir)))
		fds += entry->d_name[0] != '.';
	closedir(dir);
	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	*ret_kib = (uint64_t)status_sum(path, "VmRSS:", "VmRSS:");
	*ret_fds = fds;
	return 0;
}
