// SPDX-License-Identifier: LGPL-2.1-or-later
#include "hist.h"

#include <string.h>

void hist_clear(struct hist *h)
{
	memset(h, 0, sizeof(*h));
}

unsigned int hist_index(uint64_t ns)
{
	unsigned int shift;

	if (ns > HIST_MAX)
		ns = HIST_MAX;
	if (ns < 2 * HIST_HALF)
		return (unsigned int)ns;
	shift = 63 - (unsigned int)__builtin_clzll(ns) - 10;
	return shift * HIST_HALF + (unsigned int)(ns >> shift);
}

uint64_t hist_highest(unsigned int index)
{
	unsigned int shift = index < 2 * HIST_HALF ? 0 : index / HIST_HALF - 1;
	uint64_t low = (uint64_t)(index - shift * HIST_HALF) << shift;

	return low + (1ULL << shift) - 1;
}

void hist_add(struct hist *h, uint64_t ns)
{
	if (h->total == 0 || ns < h->min)
		h->min = ns;
	if (ns > h->max)
		h->max = ns;
	h->total++;
	h->sum += (double)ns;
	h->counts[hist_index(ns)]++;
}

void hist_merge(struct hist *to, const struct hist *from)
{
	unsigned int i;

	if (from->total == 0)
		return;
	if (to->total == 0 || from->min < to->min)
		to->min = from->min;
	if (from->max > to->max)
		to->max = from->max;
	to->total += from->total;
	to->sum += from->sum;
	for (i = 0; i < HIST_SIZE; i++)
		to->counts[i] += from->counts[i];
}

uint64_t hist_percentile(const struct hist *h, double percent)
{
	uint64_t seen = 0, wanted = (uint64_t)(percent / 100 * (double)h->total + 0.5);
	unsigned int i;

	if (h->total == 0)
		return 0;
	if (wanted < 1)
		wanted = 1;
	for (i = 0; i < HIST_SIZE; i++) {
		seen += h->counts[i];
		if (seen >= wanted)
			break;
	}
	/* Rule 2, but never more than was ever counted. */
	return i < HIST_SIZE && hist_highest(i) < h->max ? hist_highest(i) : h->max;
}
