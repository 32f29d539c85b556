/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef TESTS_LINGERING_H
#define TESTS_LINGERING_H

/*
 * lingering.h - a file that takes for ever to close: a socket with something to say to a reader
 * that does not listen
 */

/**
 * struct lingering - both ends
 * @fd:		its last close() waits until all that was written has been read, or the reader has
 *		gone
 * @reader:	the other end
 */
struct lingering {
	int fd;
	int reader;
};

/**
 * lingering_make() - make one
 *
 * Return: 0; -1: there is no loopback interface, and both ends are -1.
 */
int lingering_make(struct lingering *l);

/**
 * lingering_release() - let it go by reading, until it is closed, and close the reader
 *
 * Return: 0; -1: it came to another end.
 */
int lingering_release(struct lingering *l);

#endif
