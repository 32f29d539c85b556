/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef CORE_LIMITS_H
#define CORE_LIMITS_H

/*
 * All limits of a bus, on one page (spec, section 2). Each names the errno of
 * whoever runs into it. Sizes are in bytes.
 */

/* commands and messages */
#define CORE_CMD_MAX_SIZE 32768		   /* EMSGSIZE: a command or a message with its items */
#define CORE_MSG_MAX_PAYLOAD_VEC_SIZE (2U << 20) /* EMSGSIZE: sum of all PAYLOAD_VEC of a message */
#define CORE_MSG_MAX_MEMFD_ITEMS 16	   /* E2BIG: PAYLOAD_MEMFD items of a message */
#define CORE_MSG_MAX_FDS 16		   /* EMFILE: descriptors in the FDS item of a message */

/* what one sending user can occupy at one receiver */
#define CORE_CONN_MAX_MSGS 256		   /* ENOBUFS: queued messages */
#define CORE_CONN_MAX_FDS_PER_USER 16	   /* EMFILE: queued descriptors */
#define CORE_CONN_MAX_QUOTA_MEMORY 0xffffffffU /* ENOBUFS: queued bytes */

/* what one connection can hold */
#define CORE_CONN_MAX_REQUESTS_PENDING 128 /* EMLINK: calls without an outcome */
#define CORE_CONN_MAX_NAMES 256		   /* E2BIG: names owned, queued for and activated */
#define CORE_MATCH_MAX 256		   /* EMFILE: match entries */

/* what one user can hold */
#define CORE_USER_MAX_CONN 1024		   /* EMFILE: connections, per domain or custom endpoint */
#define CORE_USER_MAX_BUSES 16		   /* EMFILE: buses, per domain */

/* a bus */
#define CORE_BUS_BLOOM_MIN_SIZE 8	   /* EINVAL */
#define CORE_BUS_BLOOM_MAX_SIZE 4096	   /* EINVAL */

/* strings, without the terminating NUL */
#define CORE_NAME_MAX_LEN 255		   /* EINVAL: well-known names */
#define CORE_SYSNAME_MAX_LEN 63		   /* ENAMETOOLONG: bus and endpoint names, descriptions */

#endif
