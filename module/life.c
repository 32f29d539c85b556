// SPDX-License-Identifier: GPL-2.0-only
#include <linux/jiffies.h>

#include "life.h"
#include "pool-file.h"

__poll_t kbus_conn_poll(struct kbus_conn *conn, struct file *file, poll_table *table)
{
	__poll_t mask = EPOLLOUT | EPOLLWRNORM;

	poll_wait(file, &conn->wait, table);
	if (!kbus_conn_alive(conn))
		return EPOLLERR | EPOLLHUP;
	/* whoever changes the inbox wakes afterwards, so a look that is too early is repeated */
	if (data_race(core_inbox_readable(&conn->core.inbox)))
		mask |= EPOLLIN | EPOLLRDNORM;
	return mask;
}

void kbus_conn_arm(struct kbus_conn *conn)
{
	u64 next = core_deadlines_next(&conn->deadlines), now = ktime_get_ns();
	u64 delay = 0;

	if (next == U64_MAX)
		return;
	if (next > now)
		delay = min_t(u64, nsecs_to_jiffies64(next - now) + 1, MAX_JIFFY_OFFSET);
	mod_delayed_work(system_unbound_wq, &conn->expire, delay);
}

int kbus_conn_answer(struct kbus_conn *conn, const void *src, size_t size, u64 *ret_offset)
{
	struct core_pool *pool = &conn->core.inbox.pool;
	struct core_slice *slice;
	int r;

	r = core_pool_alloc(pool, size, false, &slice);
	if (r)
		return r;
	r = kbus_pool_write(conn->pool, slice->offset, src, size);
	if (!r) {
		*ret_offset = slice->offset;
		core_pool_publish(pool, slice);
	}
	core_pool_release(pool, slice);
	return r;
}

void kbus_conn_trim_backlog(struct kbus_conn *conn)
{
	size_t offset, size;

	if (core_pool_trim(&conn->core.inbox.pool, KBUS_POOL_KEEP, &offset, &size))
		kbus_pool_give_back(conn->pool, offset, size);
}
