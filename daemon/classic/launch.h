/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef CLASSIC_LAUNCH_H
#define CLASSIC_LAUNCH_H

/*
 * launch.h - starting a program, and learning of its end without waiting for it
 *
 * 1. The program gets descriptors 0 to 2 only, a session of its own, no blocked or ignored signals,
 *    the descriptor limit the daemon was started with, and no protection from the OOM killer that
 *    the daemon may have.
 * 2. Its end, also a failure to begin, is reported exactly once, from the main loop; unless nobody
 *    wants to know any more (launch_forget()). It is reaped in any case.
 *
 * One thread: that of the main loop.
 */

#include <sys/types.h>

struct daemon;
struct launch;

enum launch_how {
	LAUNCH_NOT_EXECUTED, /* value: errno of execve() */
	LAUNCH_EXITED,	     /* value: exit status */
	LAUNCH_KILLED,	     /* value: signal */
};

/**
 * struct launch_end - how a program ended
 * @how:   ditto
 * @value: see there
 */
struct launch_end {
	enum launch_how how;
	int value;
};

/**
 * launch_start() - start a program
 * @d:    daemon, whose main loop reports the end
 * @argv: arguments, argv[0] the program, looked for in PATH of the daemon
 * @envp: its environment
 * @done: called once with @arg; the object is gone afterwards
 * @arg:  for @done
 * @ret:  the object; the caller's until @done is called or launch_forget()
 *
 * Return: 0; -ENOMEM, -EAGAIN, -EMFILE and the like if it cannot even be tried.
 */
int launch_start(struct daemon *d, char *const *argv, char *const *envp,
		 void (*done)(void *arg, const struct launch_end *end), void *arg,
		 struct launch **ret);

/* The end is of no interest any more. NULL: nothing happens. */
void launch_forget(struct launch *launch);

/* After the main loop: no end is reported or reaped any more. The programs go on. */
void launch_abandon_all(struct daemon *d);

#endif
