/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef TESTS_VM_FUZZ_H
#define TESTS_VM_FUZZ_H

/*
 * Random commands: fuzz-make.c makes them up, fuzz.c lets processes send them.
 *
 * A command begins as one that could be right, so that it gets far, and is then spoiled or not.
 */

#include "bus.h"

#define FUZZ_FDS      8
#define FUZZ_COMMANDS 16
#define FUZZ_THREADS  8 /* at most */
#define FUZZ_IDS      16

/* What all processes share */
struct fuzz_world {
	volatile uint64_t steps;
	uint64_t limit;
	uint64_t commands;
	uint64_t done;
	uint64_t good[FUZZ_COMMANDS];
	uint64_t ids[FUZZ_IDS];
};

extern struct fuzz_world *fuzz_world;

/* What varies in size has its room in struct buf: it may stand in the middle. */
#ifdef __clang__
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wgnu-variable-sized-type-not-at-end"
#endif

/* Where a thread puts a command; others may write to it. Nothing is behind it. */
struct fuzz_memory {
	struct buf command;
	struct buf message;
};

/* A thread, and what it makes up before it lies in memory */
struct fuzz {
	uint64_t chance;
	struct fuzz_memory *memory;
	unsigned int id; /* where it writes down that of its last connection */
	struct buf command;
	struct buf message;
};

#ifdef __clang__
#pragma clang diagnostic pop
#endif

/* What threads of a process share: descriptors, open or not, and their memory */
extern int fuzz_fds[FUZZ_FDS];
extern struct fuzz_memory *fuzz_memory[FUZZ_THREADS];

unsigned int fuzz_below(struct fuzz *f, unsigned int n);
uint64_t fuzz_value(struct fuzz *f);
int fuzz_fd(struct fuzz *f);

struct fuzz_memory *fuzz_memory_make(void);

/* What messages of this process carry */
void fuzz_open_files(void);

/* One command, of any kind */
void fuzz_command(struct fuzz *f);

/* A new connection, most likely, in place of some descriptor */
void fuzz_connect(struct fuzz *f);

#endif
