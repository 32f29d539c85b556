/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef DAEMON_LOG_LIMIT_H
#define DAEMON_LOG_LIMIT_H

/*
 * log-limit.h - how many lines of the log the clients of one uid can cause
 *
 * 1. LOG_LINES in LOG_SPAN_NS, counted from the first; more are counted, and their number is told
 *    with the next line that is about anybody, once the span is over.
 * 2. LOG_UIDS are known at a time. Another one takes the place of the one whose span began first;
 *    with what was suppressed of that, it is told at once.
 * 3. The clients of a uid are not told apart: a process can be as many as it likes. So one of them
 *    can hide what would be said of the others, for LOG_SPAN_NS; but not that there was something.
 * 4. No clock: the time is an argument. One thread.
 */

#include <sys/types.h>

#include "base.h"

#define LOG_LINES   64U
#define LOG_SPAN_NS 10000000000ULL
#define LOG_UIDS    32U

/* Lines about @uid that were left out */
struct log_left_out {
	uid_t uid;
	unsigned int lines;
};

struct log_limit {
	struct log_count {
		uid_t uid;
		bool used;
		u64 since;
		unsigned int lines;
	} counts[LOG_UIDS];
};

/**
 * log_limit_take() - a line about @uid is to be written
 *
 * Return: whether it may be.
 */
bool log_limit_take(struct log_limit *l, uid_t uid, u64 now, struct log_left_out *ret_forgotten);

/**
 * log_limit_told() - whose span is over, with lines that were left out?
 *
 * Call it until it finds none, before log_limit_take().
 *
 * Return: whether @ret was filled in; that uid begins anew.
 */
bool log_limit_told(struct log_limit *l, u64 now, struct log_left_out *ret);

#endif
