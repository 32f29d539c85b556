/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef TESTS_INTEGRATION_HELD_H
#define TESTS_INTEGRATION_HELD_H

/*
 * held.h - a process on a bus that holds back its command line
 *
 * Who reads /proc/PID/cmdline needs a lock of that process's memory. The process keeps it: one of
 * its threads maps a file while another one reads it, and the file system is the test itself
 * (FUSE), which does not answer before held_release().
 */

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/**
 * struct held - such a process
 * @pid:	of it
 * @sock:	what it says and is told
 * @id:		of its connection, after held_connected()
 * @path:	of the file
 * @fuse:	what the kernel asks of the file system
 * @server:	the thread that answers
 * @opened:	how often the file was
 * @lock:	of the following
 * @given:	what is in the file may be read
 * @waits:	number of the request for it; 0: none
 */
struct held {
	pid_t pid;
	int sock;
	uint64_t id;
	char path[64];
	int fuse;
	pthread_t server;
	unsigned int opened;
	pthread_mutex_t lock;
	bool given;
	uint64_t waits;
};

/* First thing in main(): does not return in a process that held_start() has started. */
void held_main(int argc, char **argv);

/* May this process be a file system? */
bool held_is_possible(void);

void held_start(struct held *h);
/* Have it connect to a bus. */
void held_connect(struct held *h, const char *bus);
/* Have it connect; returns when it keeps the lock and has sent HELLO. */
void held_connect_holding(struct held *h, const char *bus);
/* Wait until it is connected. */
void held_connected(struct held *h);
/* Has it said anything more? Does not wait. */
bool held_has_said_something(const struct held *h);
/* Returns when it keeps the lock. */
void held_hold(struct held *h);
/* It sends @n broadcasts with cookies from 1 on. */
void held_broadcast(struct held *h, uint64_t n);
/* Wait until process @reader is at its command line. */
void held_await_reader(const struct held *h, pid_t reader);
/* It gives the lock back. */
void held_release(struct held *h);
/* Kill it. */
void held_end(struct held *h);

/* Is this its command line? */
bool held_is_command_line(const char *text, uint64_t size);

#endif
