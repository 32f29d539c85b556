// SPDX-License-Identifier: LGPL-2.1-or-later
/* The hooks of lane/ as real memory and random delays: see delays.h. */
#include <sched.h>
#include <stdlib.h>
#include <time.h>

#include "delays.h"

#define EPOCH	   512 /* points with the same preference */
#define POINTS	   6
#define PAUSE_NS   40000
#define SUSPEND_NS 1500000

static _Thread_local uint64_t state;
static _Thread_local unsigned int points, preferred;
static enum lane_breach broken;

static unsigned int draw(unsigned int n)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (unsigned int)(state >> 33) % n;
}

static uint64_t from_environment(const char *name)
{
	const char *text = getenv(name);

	return text ? strtoull(text, NULL, 10) : 0;
}

/* The main thread of a daemon, which nobody calls into. */
static void __attribute__((constructor)) start(void)
{
	delays_seed(from_environment("KDBUS_TEST_SEED"));
	delays_break((enum lane_breach)from_environment("KDBUS_TEST_BREACH"));
}

void delays_seed(uint64_t seed)
{
	state = seed * 0x9e3779b97f4a7c15ULL;
	points = 0;
}

void delays_break(enum lane_breach breach)
{
	broken = breach;
}

static void sleep_for(unsigned int ns)
{
	const struct timespec ts = { .tv_nsec = ns };

	nanosleep(&ts, NULL);
}

void lane_hook_yield(int point)
{
	unsigned int rarely;

	if (!state)
		return;
	if (points++ % EPOCH == 0)
		preferred = draw(POINTS);
	rarely = (unsigned int)point == preferred ? 32 : 256;
	if (draw(rarely))
		return;
	switch (draw(16)) {
	case 0:
		sleep_for(draw(SUSPEND_NS));
		break;
	case 1:
	case 2:
	case 3:
		sleep_for(draw(PAUSE_NS));
		break;
	default:
		sched_yield();
	}
}

bool lane_hook_broken(enum lane_breach breach)
{
	return breach == broken;
}

uint32_t lane_hook_load(const uint32_t *word)
{
	return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

void lane_hook_store(void *word, uint64_t value, unsigned int size)
{
	if (size == sizeof(uint64_t))
		__atomic_store_n((uint64_t *)word, value, __ATOMIC_RELEASE);
	else
		__atomic_store_n((uint32_t *)word, (uint32_t)value, __ATOMIC_RELEASE);
}

void lane_hook_fence(void)
{
#ifdef __SANITIZE_THREAD__
	static uint32_t dummy; /* it knows no fences: lane/atomic.h */

	__atomic_fetch_add(&dummy, 0, __ATOMIC_SEQ_CST);
#else
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

void lane_hook_copy(const void *from, size_t size)
{
	(void)from;
	(void)size;
}
