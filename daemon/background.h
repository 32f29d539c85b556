/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef DAEMON_BACKGROUND_H
#define DAEMON_BACKGROUND_H

/*
 * background.h - what a process does to become a daemon of the system
 *
 * 1. In the background: the process that was started waits until the bus serves, its address is
 *    printed and its pid file written, and ends with the status of the bus if that could not start.
 *    So whoever starts it sees the errors, and can use the bus when the command returns.
 * 2. What fails has been logged.
 */

#include <stdbool.h>
#include <sys/types.h>

/**
 * background_start() - go on in a child, without a terminal and in /
 * @keep_umask: leave the umask as it is; otherwise it is 022
 *
 * Before there are threads. Standard input is /dev/null from here on.
 *
 * Return: a descriptor for background_ready(); negative errno.
 */
int background_start(bool keep_umask);

/**
 * background_ready() - the bus serves: let the parent end; nothing goes to a terminal any more
 * @fd: from background_start(); -1: not in the background, nothing is done
 */
void background_ready(int fd);

/**
 * pidfile_check() - is the way free for a pid file?
 * @path: where; NULL: nowhere
 *
 * Return: 0; -EEXIST.
 */
int pidfile_check(const char *path);

/* Return: 0; -EEXIST and other errors of open(2) and write(2). */
int pidfile_write(const char *path);

/**
 * privileges_drop() - become another user
 * @uid, @gid: who, without other groups
 * @others: the daemon goes on to make sockets for others: it keeps the capabilities it needs to put
 *	them in place (CAP_CHOWN, CAP_FOWNER, CAP_DAC_OVERRIDE); otherwise it keeps none
 *
 * Return: 0; -EPERM.
 */
int privileges_drop(uid_t uid, gid_t gid, bool others);

#endif
