// SPDX-License-Identifier: LGPL-2.1-or-later
#include "log-limit.h"

static unsigned int left_out(const struct log_count *c)
{
	return c->used && c->lines > LOG_LINES ? c->lines - LOG_LINES : 0;
}

static bool is_over(const struct log_count *c, u64 now)
{
	return now - c->since >= LOG_SPAN_NS;
}

/* The one of @uid, else a place for it */
static struct log_count *place_of(struct log_limit *l, uid_t uid)
{
	struct log_count *place = &l->counts[0], *c;

	for (c = l->counts; c < l->counts + LOG_UIDS; c++) {
		if (c->used && c->uid == uid)
			return c;
		if (place->used && (!c->used || c->since < place->since))
			place = c;
	}
	return place;
}

bool log_limit_take(struct log_limit *l, uid_t uid, u64 now, struct log_left_out *ret_forgotten)
{
	struct log_count *c = place_of(l, uid);

	*ret_forgotten = (struct log_left_out){ 0 };
	if (c->used && c->uid != uid)
		*ret_forgotten = (struct log_left_out){ c->uid, left_out(c) };
	if (!c->used || c->uid != uid || is_over(c, now))
		*c = (struct log_count){ .uid = uid, .used = true, .since = now };
	if (c->lines < ~0U)
		c->lines++;
	return c->lines <= LOG_LINES;
}

bool log_limit_told(struct log_limit *l, u64 now, struct log_left_out *ret)
{
	struct log_count *c;

	for (c = l->counts; c < l->counts + LOG_UIDS; c++) {
		if (!left_out(c) || !is_over(c, now))
			continue;
		*ret = (struct log_left_out){ c->uid, left_out(c) };
		c->used = false;
		return true;
	}
	return false;
}
