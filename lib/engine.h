/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef LIB_ENGINE_H
#define LIB_ENGINE_H

/*
 * engine.h - what lies behind a handle
 *
 * 1. An engine embeds struct libkdbus as the first member of its own handle.
 * 2. handle.c has checked the arguments and the process (no forked child gets
 *    past it, but to close) before it calls an engine.
 * 3. An engine is thread-safe in all but close, as libkdbus.h promises.
 */

#include "libkdbus.h"

/**
 * struct engine - one implementation of the command set
 * @open: open @path; -EOPNOTSUPP if it is not a node of this engine
 * @command: any command; @arg is checked by the engine (ABI 3.2)
 * @fd: the pollable descriptor, or -EBADFD while not connected
 * @pool: the receive pool, or NULL
 * @wait: as libkdbus_wait()
 * @payload: as libkdbus_payload()
 * @identity: as libkdbus_identity()
 * @close: end it; @forked: in a forked child, where the handle's work is not ours: release what
 *	the process itself holds, tell nobody
 */
struct engine {
	const char *name;
	int (*open)(const char *path, struct libkdbus **ret);
	int (*command)(struct libkdbus *h, unsigned int cmd, void *arg);
	int (*fd)(struct libkdbus *h);
	const void *(*pool)(struct libkdbus *h, size_t *ret_size);
	int (*wait)(struct libkdbus *h, uint64_t deadline_ns, int cancel_fd);
	int (*payload)(struct libkdbus *h, const struct kdbus_msg *msg,
		       const struct kdbus_item *item, const void **ret_address, size_t *ret_size);
	const struct libkdbus_identity *(*identity)(struct libkdbus *h);
	void (*close)(struct libkdbus *h, int forked);
};

/**
 * struct libkdbus - the common part of a handle
 * @engine: never changes
 * @process: one word in a page that fork wipes (MADV_WIPEONFORK): non-zero in the process that
 *	opened the handle, zero in its children. Cheaper than getpid() for every command
 */
struct libkdbus {
	const struct engine *engine;
	const volatile int *process;
};

extern const struct engine engine_user;
extern const struct engine engine_kernel;

#endif
