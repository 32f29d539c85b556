// SPDX-License-Identifier: GPL-2.0-only
#include <linux/hrtimer.h>
#include <linux/poll.h>
#include <linux/sched/signal.h>

#include "files.h"
#include "host.h"
#include "life.h"
#include "route.h"
#include "send.h"

/* What a look has found: nothing yet, or an end. */
enum { GO_ON = 1 };

static int install(struct core_conn *conn, struct core_entry *core, void *data)
{
	struct kbus_entry *entry = container_of(core, struct kbus_entry, core);

	return entry->files ? kbus_files_install(entry->files, kbus_conn_of(conn),
						 core->slice->offset, data) : 0;
}

static int collect(struct kbus_conn *conn, struct core_reply *slot,
		   struct kdbus_msg_info *ret_info)
{
	u64 flags = 0;
	int r;

	r = core_send_collect(&conn->core, slot, install, &flags, ret_info);
	if (!r)
		ret_info->return_flags = flags;
	return r;
}

/*
 * An outcome, if there is one; else a signal leaves the slot behind for the restarted
 * call. The slot of a dead connection is gone.
 */
static int look(struct kbus_conn *conn, struct core_reply *slot, bool cancelled,
		struct kdbus_msg_info *ret_info)
{
	struct kbus_bus *bus = conn->ep->bus;
	int r = GO_ON;

	down_read(&bus->lock);
	mutex_lock(&conn->lock);
	if (!kbus_conn_alive(conn)) {
		r = -ECONNRESET;
	} else if (core_reply_settled(slot)) {
		r = collect(conn, slot, ret_info);
	} else if (!cancelled && signal_pending(current)) {
		core_reply_interrupt(slot);
		kbus_conn_arm(conn);
		r = -ERESTARTSYS;
	}
	mutex_unlock(&conn->lock);
	up_read(&bus->lock);
	return r;
}

/* With the bus for itself: the slot is tied to its replier, whoever that is by now. */
static int give_up(struct kbus_conn *conn, struct core_reply *slot, int error,
		   struct kdbus_msg_info *ret_info)
{
	struct kbus_bus *bus = conn->ep->bus;
	int r = error;

	down_write(&bus->lock);
	if (!kbus_conn_alive(conn))
		r = -ECONNRESET;
	else if (core_reply_settled(slot))
		r = collect(conn, slot, ret_info);
	else
		core_send_give_up(&conn->core, slot);
	up_write(&bus->lock);
	return r;
}

static bool is_cancelled(struct file *cancel, poll_table *table)
{
	return cancel && (vfs_poll(cancel, table) & EPOLLIN);
}

static void sleep(struct poll_wqueues *queues, const ktime_t *expires)
{
	set_current_state(TASK_INTERRUPTIBLE);
	if (!queues->triggered)
		schedule_hrtimeout_range((ktime_t *)expires, 0, HRTIMER_MODE_ABS);
	__set_current_state(TASK_RUNNING);
	/* pairs with the barrier of the waker, which sets it before it looks at our state */
	smp_store_mb(queues->triggered, 0);
}

static int wait(struct kbus_conn *conn, struct core_reply *slot, u64 deadline,
		struct file *cancel, struct poll_wqueues *queues, struct kdbus_msg_info *ret_info)
{
	/* what a ktime_t cannot say is as good as never */
	ktime_t expires = ns_to_ktime(min_t(u64, deadline, KTIME_MAX));
	bool cancelled;
	int r;

	for (;;) {
		cancelled = is_cancelled(cancel, &queues->pt);
		queues->pt._qproc = NULL;
		/* without a place in every queue, nobody would wake us */
		if (queues->error)
			return give_up(conn, slot, queues->error, ret_info);
		r = look(conn, slot, cancelled, ret_info);
		if (r != GO_ON)
			return r;
		if (cancelled)
			return give_up(conn, slot, -ECANCELED, ret_info);
		if (ktime_get_ns() >= deadline)
			return give_up(conn, slot, -ETIMEDOUT, ret_info);
		sleep(queues, deadline < KTIME_MAX ? &expires : NULL);
	}
}

int kbus_wait(struct kbus_conn *conn, struct file *file, struct core_reply *slot, u64 deadline,
	      struct file *cancel, struct kdbus_msg_info *ret_info)
{
	struct poll_wqueues queues;
	int r;

	poll_initwait(&queues);
	poll_wait(file, &conn->wait, &queues.pt);
	r = wait(conn, slot, deadline, cancel, &queues, ret_info);
	poll_freewait(&queues);
	return r;
}
