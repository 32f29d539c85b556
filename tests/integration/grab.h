/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef TESTS_INTEGRATION_GRAB_H
#define TESTS_INTEGRATION_GRAB_H

/*
 * grab.h - a client that keeps every file it gets hold of, and tries to change them
 *
 * Linked with --wrap for mmap and memfd_create: every file that the library maps is kept open, by
 * inode, and so is known which of them this process has made itself.
 */

#include <stdbool.h>
#include <sys/types.h>

struct grabbed {
	int fd;
	ino_t inode;
	bool own;
	char name[64]; /* as /proc shows it */
};

/* The files kept so far; their number in @ret_n. */
const struct grabbed *grab_files(unsigned int *ret_n);

/* Drop all of them: another process of the same program begins. */
void grab_forget(void);

/*
 * Try everything that could change the contents or the size of a file: writing, writable mappings,
 * truncation, holes, further seals, through the descriptor and through one opened anew in /proc.
 * Return: NULL, or what was possible.
 */
const char *grab_attack(const struct grabbed *file);

/* The same for its size and seals alone. */
const char *grab_resize(const struct grabbed *file);

#endif
