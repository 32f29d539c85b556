/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BENCH_USAGE_H
#define BENCH_USAGE_H

/**
 * DOC: what a process has used
 *
 * CPU time in nanoseconds and context switches (voluntary and not), of the
 * calling process by getrusage(2), of another by its CPU clock and /proc.
 */

#include <stdint.h>
#include <sys/types.h>
#include <time.h>

struct usage {
	double cpu_ns;
	double switches;
};

/** usage_now_ns() - CLOCK_MONOTONIC in nanoseconds */
uint64_t usage_now_ns(void);

/** usage_self() - of the calling process, or with @thread of the calling thread alone */
struct usage usage_self(int thread);

/** usage_of() - of process @pid; zero if it is gone */
struct usage usage_of(pid_t pid);

/** usage_of_thread() - of another thread of this process: its CPU clock and id */
struct usage usage_of_thread(clockid_t clock, pid_t tid);

/** usage_minus() - what was used between @before and @after */
struct usage usage_minus(struct usage after, struct usage before);

/**
 * usage_memory() - resident memory and open descriptors of a process
 * @pid: process
 * @ret_kib: VmRSS in KiB
 * @ret_fds: entries of /proc/PID/fd
 *
 * Return: 0 or a negative errno of reading /proc.
 */
int usage_memory(pid_t pid, uint64_t *ret_kib, uint64_t *ret_fds);

#endif
