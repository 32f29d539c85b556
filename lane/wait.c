// SPDX-License-Identifier: LGPL-2.1-or-later
#include <errno.h>

#include "alarm.h"
#include "internal.h"
#include "wait.h"

/* Looks between two readings of the clock. */
#define LOOKS 16

static inline void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield" ::: "memory");
#else
	__asm__ volatile("" ::: "memory");
#endif
}

void lane_spin_init(struct lane_spin *spin, uint32_t max_ns, unsigned int cpus)
{
	*spin = (struct lane_spin){
		.max_ns = max_ns,
		.budget_ns = max_ns / 2,
		.every = LANE_SPIN_PROBE_EVERY,
		.cpus = cpus,
	};
}

uint32_t lane_spin_begin(struct lane_spin *spin)
{
	if (spin->cpus < 2 || !spin->max_ns)
		return 0;
	if (spin->budget_ns)
		return spin->budget_ns;
	if (++spin->waits < spin->every)
		return 0;
	spin->waits = 0;
	return spin->max_ns;
}

static void lost(struct lane_spin *spin, uint64_t spent_ns)
{
	if (!spin->budget_ns) {
		/* A probe that failed: ask less and less often. */
		if (spin->every < LANE_SPIN_PROBE_RARELY)
			spin->every *= 2;
		return;
	}
	/* Much over the budget: another process ran on this CPU while it spun. */
	if (spent_ns / 4 > spin->budget_ns)
		spin->budget_ns = 0;
	else
		spin->budget_ns /= 2;
	if (spin->budget_ns < LANE_SPIN_MIN_NS)
		spin->budget_ns = 0;
}

void lane_spin_end(struct lane_spin *spin, bool won, uint64_t spent_ns)
{
	uint64_t budget;

	if (spin->cpus < 2 || !spin->max_ns)
		return;
	if (!won || spent_ns / 4 > spin->max_ns) {
		lost(spin, spent_ns);
		return;
	}
	spin->every = LANE_SPIN_PROBE_EVERY;
	budget = spin->budget_ns ? 2 * (uint64_t)spin->budget_ns : spin->max_ns;
	spin->budget_ns = budget < spin->max_ns ? (uint32_t)budget : spin->max_ns;
}

static bool any_news(struct lane_channel *const *chs, unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		if (lane_news(chs[i])) {
			lane_prefetch(chs[i]);
			return true;
		}
	return false;
}

/* What @ready looks at besides the lanes may wait until the clock is read. */
static int spin_for(struct lane_spin *spin, const struct lane_ops *ops,
		    struct lane_channel *const *chs, unsigned int n, lane_ready_fn ready,
		    void *arg, uint64_t deadline)
{
	uint64_t budget = lane_spin_begin(spin), start, now;
	unsigned int i;
	int r;

	r = ready(arg);
	if (r || !budget)
		return r;
	start = ops->now(ops);
	do {
		for (i = 0; i < LOOKS; i++) {
			relax();
			r = i == LOOKS - 1 || any_news(chs, n) ? ready(arg) : 0;
			if (r) {
				now = ops->now(ops);
				lane_spin_end(spin, true, now - start);
				return r;
			}
		}
		now = ops->now(ops);
	} while (now - start < budget && now < deadline);
	lane_spin_end(spin, false, now - start);
	return 0;
}

static bool all_attached(struct lane_channel *const *chs, unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		if (!chs[i]->peer || !chs[i]->own || chs[i]->broken)
			return false;
	return true;
}

/*
 * What to sleep on: one word for all lanes whose peers have our alarm, one more for each of the
 * others. All are loaded before the first lane says that we sleep.
 */
static unsigned int say_asleep(struct lane_channel *const *chs, unsigned int n,
			       struct lane_word *words)
{
	unsigned int i, n_words = 0;
	bool on_alarm[LANE_WORDS_MAX];

	for (i = 0; i < n; i++) {
		on_alarm[i] = lane_alarm_works(chs[i]);
		if (on_alarm[i] && !n_words)
			lane_alarm_load(chs[i]->alarm, &words[n_words++]);
	}
	for (i = 0; i < n; i++) {
		if (on_alarm[i])
			lane_await_alarm(chs[i]);
		else
			lane_futex(chs[i], &words[n_words++]);
	}
	word_fence(); /* B3 */
	return n_words;
}

/* All lanes say that we sleep before the look that decides, and POLLING after the sleep. */
static int sleep_once(const struct lane_ops *ops, struct lane_channel *const *chs, unsigned int n,
		      lane_ready_fn ready, void *arg, uint64_t timeout_ns)
{
	struct lane_word words[LANE_WORDS_MAX];
	unsigned int i, n_words = say_asleep(chs, n, words);
	int r = ready(arg);

	/* It may have taken up the end of one. */
	if (r == 0 && all_attached(chs, n)) {
		LANE_YIELD(LANE_AT_CALL);
		r = ops->sleep(ops, words, n_words, timeout_ns);
	}
	for (i = 0; i < n; i++)
		lane_unarm(chs[i]);
	return r;
}

int lane_wait(struct lane_spin *spin, const struct lane_ops *ops, struct lane_channel *const *chs,
	      unsigned int n, lane_ready_fn ready, void *arg, uint64_t deadline)
{
	uint64_t now, end;
	unsigned int i;
	int r;

	if (!n || n > LANE_WORDS_MAX)
		return -EINVAL;
	for (i = 0; i < n; i++) {
		lane_unarm(chs[i]);
		lane_alarm_look(chs[i]);
	}
	r = spin_for(spin, ops, chs, n, ready, arg, deadline);
	if (r || !all_attached(chs, n))
		return r;
	now = ops->now(ops);
	end = deadline > now && deadline - now > LANE_FUTEX_NS ? now + LANE_FUTEX_NS : deadline;
	for (; now < end && all_attached(chs, n); now = ops->now(ops)) {
		r = sleep_once(ops, chs, n, ready, arg, end - now);
		if (r == -ETIMEDOUT || r == -ENOSYS)
			break;
		if (r == 0)
			r = ready(arg);
		if (r)
			return r;
	}
	return ready(arg);
}
