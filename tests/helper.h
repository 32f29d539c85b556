/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef TESTS_HELPER_H
#define TESTS_HELPER_H

/*
 * helper.h - what tests with processes of their own share
 */

#include <sys/types.h>

#include <libkdbus.h>

/* A match entry for broadcasts of everybody; 0 or a negative errno. */
int helper_match_all(struct libkdbus *h);

/* As fork(), but the child dies with this process. */
pid_t helper_fork(void);

/* A socket at that node of a domain, without the library; -1: it cannot be had. */
int helper_raw_connect(const char *path);

/*
 * Halt the first thread of a child, and have it go on. SIGSTOP would stop the others, too, and end
 * what they sleep in. 0; -1: it may not be traced.
 */
int helper_halt(pid_t pid);
int helper_go_on(pid_t pid);

/* End @n children for good; 0 stands for one that is over. */
void helper_kill_all(const pid_t *pids, unsigned int n);

#endif
