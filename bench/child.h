/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BENCH_CHILD_H
#define BENCH_CHILD_H

/**
 * DOC: the processes a run consists of
 *
 * Rules
 *
 * 1. Every process is a child of the main one and dies with it, whatever
 *    happens to it (PR_SET_PDEATHSIG).
 * 2. SIGINT, SIGTERM, SIGHUP and SIGQUIT only make child_interrupted() true and the
 *    descriptor of child_signal_fd() readable. The main process waits for
 *    nothing without that descriptor, unwinds with -EINTR, stops its children
 *    and then dies of the signal.
 */

#include <stdbool.h>
#include <sched.h>
#include <sys/types.h>

/** child_catch_signals() - rule 2; call once, at the start */
int child_catch_signals(void);

/** child_signal_fd() - readable after a signal */
int child_signal_fd(void);

/** child_interrupted() - has a signal come? */
bool child_interrupted(void);

/** child_die_of_signal() - end the process the way the signal would have; returns if none came */
void child_die_of_signal(void);

/**
 * child_fork() - fork
 *
 * Return: in the parent the child's id or a negative errno; 0 in the child,
 *	whose signals are as in a fresh program.
 */
pid_t child_fork(void);

/** child_kill() - kill and reap a child; 0 or less is no child */
void child_kill(pid_t pid);

/** child_terminate() - end a child by SIGTERM so that it tidies up, and reap it */
void child_terminate(pid_t pid);

/**
 * child_run() - run a program to its end
 * @argv: program and arguments; the program is looked for in PATH
 * @in: its standard input, -1: nothing to read
 * @out: its standard output, -1: thrown away; standard error is thrown away if @quiet
 *
 * Return: 0 if it ended with status 0, -ENOENT if it cannot be run, -EIO if it failed, or a
 *	negative errno of fork().
 */
int child_run(char *const *argv, int in, int out, bool quiet);

/** child_wait_readable() - wait until one of two descriptors (-1: none) is readable; 0 or -EINTR */
int child_wait_readable(int fd, int other);

/** child_pin() - bind a process with all its threads to @cpu; 0 or a negative errno */
int child_pin(pid_t pid, int cpu);

/**
 * child_hogs() - start CPU hogs
 * @n: how many
 * @ret: their ids, @n of them
 *
 * Return: 0 or a negative errno; then none is left.
 */
int child_hogs(unsigned int n, pid_t *ret);

#endif
