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

/* End @n children for good; 0 stands for one that is over. */
void helper_kill_all(const pid_t *pids, unsigned int n);

#endif
