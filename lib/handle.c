// SPDX-License-Identifier: LGPL-2.1-or-later
/* Handles: choosing the engine, and what every call checks first. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include "engine.h"

static pthread_once_t process_once = PTHREAD_ONCE_INIT;
static int *process_word;

static void make_process_word(void)
{
	size_t size = (size_t)sysconf(_SC_PAGESIZE);
	int *word = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (word == MAP_FAILED)
		return;
	if (madvise(word, size, MADV_WIPEONFORK) < 0) {
		munmap(word, size);
		return;
	}
	*word = 1;
	process_word = word;
}

/* A child that opens handles of its own: they are its own, those it inherited stay dead. */
static const volatile int *this_process(void)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	const volatile int *word;

	pthread_once(&process_once, make_process_word);
	pthread_mutex_lock(&lock);
	if (process_word && !*process_word)
		make_process_word();
	word = process_word;
	pthread_mutex_unlock(&lock);
	return word;
}

static const struct engine *const engines[] = { &engine_user, &engine_kernel };

static int open_with(const char *wanted, const char *path, struct libkdbus **ret)
{
	int r = -EOPNOTSUPP;
	size_t i;

	for (i = 0; i < sizeof(engines) / sizeof(*engines); i++) {
		if (wanted && strcmp(wanted, engines[i]->name))
			continue;
		r = engines[i]->open(path, ret);
		if (r != -EOPNOTSUPP)
			break;
	}
	return r;
}

int libkdbus_open(const char *path, unsigned int flags, struct libkdbus **ret)
{
	const char *wanted = secure_getenv("KDBUS_ENGINE");
	const volatile int *process = this_process();
	struct libkdbus *h;
	int r;

	if (!path || !ret || flags)
		return -EINVAL;
	if (!process)
		return -ENOMEM;
	r = open_with(wanted && *wanted ? wanted : NULL, path, &h);
	if (r < 0)
		return r;
	h->process = process;
	*ret = h;
	return 0;
}

struct libkdbus *libkdbus_close(struct libkdbus *h)
{
	if (h)
		h->engine->close(h, !*h->process);
	return NULL;
}

int libkdbus_command(struct libkdbus *h, unsigned int cmd, void *arg)
{
	if (!h)
		return -EINVAL;
	return *h->process ? h->engine->command(h, cmd, arg) : -ECHILD;
}

int libkdbus_fd(struct libkdbus *h)
{
	if (!h)
		return -EINVAL;
	return *h->process ? h->engine->fd(h) : -ECHILD;
}

int libkdbus_wait(struct libkdbus *h, uint64_t deadline_ns, int cancel_fd)
{
	if (!h)
		return -EINVAL;
	return *h->process ? h->engine->wait(h, deadline_ns, cancel_fd) : -ECHILD;
}

const void *libkdbus_pool(struct libkdbus *h, size_t *ret_size)
{
	return h && *h->process ? h->engine->pool(h, ret_size) : NULL;
}

int libkdbus_payload(struct libkdbus *h, const struct kdbus_msg *msg, const struct kdbus_item *item,
		     const void **ret_address, size_t *ret_size)
{
	if (!h || !msg || !item || !ret_address || !ret_size)
		return -EINVAL;
	return *h->process ? h->engine->payload(h, msg, item, ret_address, ret_size) : -ECHILD;
}

const struct libkdbus_identity *libkdbus_identity(struct libkdbus *h)
{
	return h && *h->process ? h->engine->identity(h) : NULL;
}
