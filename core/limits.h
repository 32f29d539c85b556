/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef CORE_LIMITS_H
#define CORE_LIMITS_H

/*
 * All limits of a bus, on one page (spec §2). Each names the errno of whoever
 * runs into it, and the file that enforces it. Sizes are in bytes.
 *
 * 1. A limit is written down here and nowhere else.
 * 2. It is checked before anything is changed.
 */

/* commands and messages (§3.2, §7.2) */
#define CORE_CMD_MAX_SIZE 32768 /* EMSGSIZE, cmd.c, msg.c: a command or a message with items */
#define CORE_MSG_MAX_PAYLOAD_VEC_SIZE (2U << 20) /* EMSGSIZE, msg.c: sum of all PAYLOAD_VEC */
#define CORE_MSG_MAX_MEMFD_ITEMS 16 /* E2BIG, msg.c: PAYLOAD_MEMFD items of a message */
#define CORE_MSG_MAX_FDS 16 /* EMFILE, msg.c: descriptors in the FDS item */

/* what one sending user can occupy at one receiver (§14.4) */
#define CORE_CONN_MAX_MSGS 256 /* ENOBUFS, quota.c: queued messages */
#define CORE_CONN_MAX_FDS_PER_USER 16 /* EMFILE, quota.c: queued descriptors */
#define CORE_CONN_MAX_QUOTA_MEMORY 0xffffffffU /* ENOBUFS, quota.c: queued bytes */

/* what one connection can hold */
#define CORE_CONN_MAX_REQUESTS_PENDING 128 /* EMLINK, reply.c: calls without an outcome (§7.7) */
#define CORE_CONN_MAX_NAMES 256 /* E2BIG, names.c: names held, queued for, activated (§10.3) */
#define CORE_MATCH_MAX 256 /* EMFILE, match.c: match entries (§6.13) */

/* what one user can hold (§1.5) */
#define CORE_USER_MAX_CONN 1024 /* EMFILE, user.c: connections, per domain or endpoint */
#define CORE_USER_MAX_BUSES 16 /* EMFILE, user.c: buses, per domain */

/* a bus (§6.1); sizes are also multiples of the minimum */
#define CORE_BUS_BLOOM_MIN_SIZE 8 /* EINVAL, item.c */
#define CORE_BUS_BLOOM_MAX_SIZE 4096 /* EINVAL, item.c */

/* strings, without the terminating NUL (§5.4, §10.1) */
#define CORE_NAME_MAX_LEN 255 /* EINVAL, syntax.c: well-known names */
#define CORE_SYSNAME_MAX_LEN 63 /* ENAMETOOLONG, syntax.c: bus and endpoint names, descriptions */

#endif
