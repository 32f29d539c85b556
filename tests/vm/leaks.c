// SPDX-License-Identifier: LGPL-2.1-or-later
#include "leaks.h"

#include <ctype.h>
#include <fcntl.h>
#include <glob.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define KMEMLEAK "/sys/kernel/debug/kmemleak"
#define TRACES	 "/sys/kernel/debug/slab/kmalloc-*/alloc_traces"
#define SHRINK	 "/sys/kernel/slab/kmalloc-*/shrink"
#define MODULE	 "[kdbus]"

/* A record: "  COUNT FUNCTION age=...", and the stack below it, further to the right. */
struct record {
	char head[256];
	char frame[256];
	long count;
};

static bool starts_record(const char *line, long *ret_count)
{
	return strstr(line, " age=") && sscanf(line, "%ld", ret_count) == 1;
}

static void end_record(struct record *record, bool print, long *total)
{
	if (*record->frame) {
		*total += record->count;
		if (print)
			printf("  leak: %s    %s", record->head, record->frame);
	}
	memset(record, 0, sizeof(*record));
}

/* What the kernel notes about its slabs on behalf of control groups stays with the slabs. */
static bool is_of_groups(const char *line)
{
	return strstr(line, " memcg_") || strstr(line, " alloc_slab_obj_exts");
}

static void look_at(const char *path, bool print, long *total)
{
	struct record record = { .count = 0 };
	FILE *file = fopen(path, "re");
	bool skip = false;
	char line[256];
	long count;

	while (file && fgets(line, sizeof(line), file)) {
		if (starts_record(line, &count)) {
			end_record(&record, print, total);
			strcpy(record.head, line);
			record.count = count;
			skip = is_of_groups(line);
		}
		if (!skip && !*record.frame && strstr(line, MODULE))
			strcpy(record.frame, line);
	}
	end_record(&record, print, total);
	if (file)
		fclose(file);
}

/* KASAN keeps what was freed for a while, each CPU for itself; a cache that shrinks has it back. */
static void empty_quarantine(void)
{
	glob_t files;
	int fd;

	if (glob(SHRINK, 0, NULL, &files))
		return;
	for (size_t i = 0; i < files.gl_pathc; i++) {
		fd = open(files.gl_pathv[i], O_WRONLY | O_CLOEXEC);
		if (fd >= 0 && write(fd, "1", 1) != 1)
			perror(files.gl_pathv[i]);
		close(fd);
	}
	globfree(&files);
}

static long count_live(bool print)
{
	glob_t files;
	long total = 0;

	empty_quarantine();
	if (glob(TRACES, 0, NULL, &files))
		return -1;
	for (size_t i = 0; i < files.gl_pathc; i++)
		look_at(files.gl_pathv[i], print, &total);
	globfree(&files);
	return total;
}

/* The kernel remembers names of files that are gone, until it needs the memory. */
static void drop_caches(void)
{
	int fd = open("/proc/sys/vm/drop_caches", O_WRONLY | O_CLOEXEC);

	if (fd >= 0 && write(fd, "2", 1) != 1)
		perror("drop_caches");
	close(fd);
}

long leaks_live(void)
{
	drop_caches();
	return count_live(false);
}

void leaks_print(void)
{
	count_live(true);
}

long leaks_shmem_kib(void)
{
	/* counters are kept per CPU; this folds them */
	int fd = open("/proc/sys/vm/stat_refresh", O_WRONLY | O_CLOEXEC);
	bool folded = fd >= 0 && write(fd, "1", 1) == 1;
	char line[128];
	long kib = -1;
	FILE *file;

	close(fd);
	file = fopen("/proc/meminfo", "re");
	while (folded && file && fgets(line, sizeof(line), file))
		if (sscanf(line, "Shmem: %ld kB", &kib) == 1)
			break;
	if (file)
		fclose(file);
	return kib;
}

static bool tell_kmemleak(const char *command)
{
	int fd = open(KMEMLEAK, O_WRONLY | O_CLOEXEC);
	bool told = fd >= 0 && write(fd, command, strlen(command)) == (ssize_t)strlen(command);

	close(fd);
	return told;
}

void leaks_start(void)
{
	if (tell_kmemleak("scan"))
		tell_kmemleak("clear");
}

int leaks_unreferenced(void)
{
	char line[256];
	FILE *file;
	int n = 0;

	/* what a register points to at the first look is only found missing at the second */
	for (int i = 0; i < 2; i++)
		if (!tell_kmemleak("scan"))
			return 0;
	file = fopen(KMEMLEAK, "re");
	while (file && fgets(line, sizeof(line), file)) {
		n += !strncmp(line, "unreferenced object", 19);
		printf("  %s", line);
	}
	if (file)
		fclose(file);
	return n;
}
