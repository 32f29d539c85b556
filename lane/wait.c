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
		.yield_credit_ns = LANE_YIELD_CREDIT_NS,
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

bool lane_yield_due(const struct lane_spin *spin, uint64_t now)
{
	return spin->max_ns && now >= spin->yield_after;
}

void lane_yield_end(struct lane_spin *spin, bool won, uint64_t now, uint64_t spent_ns)
{
	uint64_t cost = !won			      ? LANE_YIELD_COST_NS :
			spent_ns < LANE_YIELD_LOSS_NS ? spent_ns :
							LANE_YIELD_LOSS_NS;

	if (won && spent_ns <= LANE_YIELD_MAX_NS) {
		if (spin->yield_credit_ns < LANE_YIELD_CREDIT_NS)
			spin->yield_credit_ns += LANE_YIELD_COST_NS;
		else
			spin->yield_rests = 0;
		return;
	}
	if (cost <= spin->yield_credit_ns) {
		spin->yield_credit_ns -= (uint32_t)cost;
		return;
	}
	spin->yield_after =
		now + ((cost - spin->yield_credit_ns) * LANE_YIELD_REST << spin->yield_rests);
	spin->yield_credit_ns = 0;
	if (spin->yield_rests < LANE_YIELD_RESTS_MAX)
		spin->yield_rests++;
}

/* All say POLLING, so a peer that runs meanwhile need not wake anybody. */
static int yield(struct lane_spin *spin, const struct lane_ops *ops,
		 struct lane_channel *const *chs, unsigned int n, lane_ready_fn ready, void *arg,
		 uint64_t start)
{
	uint64_t now;
	unsigned int i;
	int r = 0;

	for (i = 0; !r && i < LANE_YIELDS; i++) {
		LANE_YIELD(LANE_AT_CALL);
		ops->yield(ops);
		if (any_news(chs, n))
			r = ready(arg);
	}
	if (!r)
		r = ready(arg);
	now = ops->now(ops);
	lane_yield_end(spin, r != 0, now, now - start);
	return r;
}

static void unarm_all(struct lane_channel *const *chs, unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n; i++) {
		lane_unarm(chs[i]);
		lane_alarm_look(chs[i]);
	}
}

int lane_yield(struct lane_spin *spin, const struct lane_ops *ops, struct lane_channel *const *chs,
	       unsigned int n, lane_ready_fn ready, void *arg)
{
	uint64_t start = ops->now(ops);

	if (!lane_yield_due(spin, start))
		return 0;
	unarm_all(chs, n);
	return yield(spin, ops, chs, n, ready, arg, start);
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
	int r;

	if (!n || n > LANE_WORDS_MAX)
		return -EINVAL;
	unarm_all(chs, n);
	r = spin_for(spin, ops, chs, n, ready, arg, deadline);
	if (r || !all_attached(chs, n))
		return r;
	now = ops->now(ops);
	if (lane_yield_due(spin, now)) {
		r = yield(spin, ops, chs, n, ready, arg, now);
		if (r || !all_attached(chs, n))
			return r;
		now = ops->now(ops);
	}
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
