/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tracepoints, in /sys/kernel/tracing/events/kdbus: what goes through a bus. One that is
 * off is a jump that is not taken.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM kdbus

#if !defined(MODULE_TRACEPOINTS_H) || defined(TRACE_HEADER_MULTI_READ)
#define MODULE_TRACEPOINTS_H

#include <linux/tracepoint.h>

#include "compat/compat.h"
#include "message.h"

/* A message that was sent, or why not. */
TRACE_EVENT(kdbus_send,
	TP_PROTO(const struct kbus_message *message, int result),
	TP_ARGS(message, result),
	TP_STRUCT__entry(
		__field(u64, src)
		__field(u64, dst)
		__field(u64, cookie)
		__field(u64, cookie_reply)
		__field(u64, flags)
		__field(u64, payload)
		__field(u32, fds)
		__field(int, result)
		__string(name, message->core.dst_name ? message->core.dst_name : "")
	),
	TP_fast_assign(
		__entry->src = message->from->core.id;
		__entry->dst = message->msg->dst_id;
		__entry->cookie = message->msg->cookie;
		__entry->cookie_reply = message->msg->flags & KDBUS_MSG_EXPECT_REPLY ?
						0 : message->msg->cookie_reply;
		__entry->flags = message->msg->flags;
		__entry->payload = message->core.vec_size;
		__entry->fds = message->core.n_fds + message->core.n_memfds;
		__entry->result = result;
		compat_assign_str(name, message->core.dst_name ? message->core.dst_name : "");
	),
	TP_printk(
		"src=%llu dst=%llu name=%s cookie=%llu re=%llu flags=%llx size=%llu n=%u result=%d",
		__entry->src, __entry->dst, __get_str(name), __entry->cookie,
		__entry->cookie_reply, __entry->flags, __entry->payload, __entry->fds,
		__entry->result)
);

/* A message that its receiver has taken, or looked at. */
TRACE_EVENT(kdbus_recv,
	TP_PROTO(const struct kbus_conn *conn, u64 flags, u64 offset, u64 size),
	TP_ARGS(conn, flags, offset, size),
	TP_STRUCT__entry(
		__field(u64, conn)
		__field(u64, flags)
		__field(u64, offset)
		__field(u64, size)
	),
	TP_fast_assign(
		__entry->conn = conn->core.id;
		__entry->flags = flags;
		__entry->offset = offset;
		__entry->size = size;
	),
	TP_printk("conn=%llu flags=%#llx offset=%llu size=%llu",
		  __entry->conn, __entry->flags, __entry->offset, __entry->size)
);

/* A signal, notification or copy that a connection has lost, @lost since it was told last. */
TRACE_EVENT(kdbus_drop,
	TP_PROTO(const struct kbus_conn *conn, u32 lost),
	TP_ARGS(conn, lost),
	TP_STRUCT__entry(
		__field(u64, conn)
		__field(u32, lost)
	),
	TP_fast_assign(
		__entry->conn = conn->core.id;
		__entry->lost = lost;
	),
	TP_printk("conn=%llu lost=%u", __entry->conn, __entry->lost)
);

/* A name that was asked for or given up. */
TRACE_EVENT(kdbus_name,
	TP_PROTO(const struct kbus_conn *conn, const char *name, bool acquire, u64 flags,
		 int result),
	TP_ARGS(conn, name, acquire, flags, result),
	TP_STRUCT__entry(
		__field(u64, conn)
		__field(u64, flags)
		__field(bool, acquire)
		__field(int, result)
		__string(name, name)
	),
	TP_fast_assign(
		__entry->conn = conn->core.id;
		__entry->flags = flags;
		__entry->acquire = acquire;
		__entry->result = result;
		compat_assign_str(name, name);
	),
	TP_printk("conn=%llu %s name=%s flags=%#llx result=%d", __entry->conn,
		  __entry->acquire ? "acquire" : "release", __get_str(name), __entry->flags,
		  __entry->result)
);

/* A connection that came or went. */
TRACE_EVENT(kdbus_conn,
	TP_PROTO(const struct kbus_conn *conn, bool comes),
	TP_ARGS(conn, comes),
	TP_STRUCT__entry(
		__field(u64, conn)
		__field(u64, flags)
		__field(u64, pool)
		__field(bool, comes)
	),
	TP_fast_assign(
		__entry->conn = conn->core.id;
		__entry->flags = conn->core.flags;
		__entry->pool = conn->core.inbox.pool.size;
		__entry->comes = comes;
	),
	TP_printk("conn=%llu %s flags=%#llx pool=%llu", __entry->conn,
		  __entry->comes ? "hello" : "bye", __entry->flags, __entry->pool)
);

#endif

#undef TRACE_INCLUDE_PATH
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_PATH .
#define TRACE_INCLUDE_FILE tracepoints
#include <trace/define_trace.h>
