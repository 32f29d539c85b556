/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef CORE_MSG_H
#define CORE_MSG_H

#include "cmd.h"

/*
 * Messages as a sender hands them in: what must hold before a message is routed
 * (spec §6.14 steps 1 and 3 to 6, §7.2).
 *
 * 1. The order of checks is that of spec §6.14: core_msg_check_size() on the first word,
 *    the host's copy, core_cmd_check_copy(), core_msg_parse(); then the host resolves
 *    CANCEL_FD; then core_msg_check(). Descriptors are taken after that.
 * 2. Nothing here looks at the state of the bus or follows an address.
 * 3. struct core_msg points into the host's private copy and lives as long as it.
 * 4. Message flags and items are negotiated only together with the command: a
 *    NEGOTIATE item in a message that is to be sent is -EINVAL in its place among the
 *    items, and the host writes nothing back into such a message.
 *
 * Pure functions of their arguments: any thread, no lock, no allocation.
 */

/**
 * enum core_route - how a message goes on (spec §6.14)
 * @CORE_ROUTE_BROADCAST: to all that want it (§7.9)
 * @CORE_ROUTE_SYNC_CALL: to one, the sender waits for the reply (§7.8)
 * @CORE_ROUTE_UNICAST:   to one: plain message, call, or signal if KDBUS_MSG_SIGNAL
 *                        (§7.5, §7.6)
 * @CORE_ROUTE_REPLY:     to one who has a reply slot open (§7.7)
 */
enum core_route {
	CORE_ROUTE_BROADCAST,
	CORE_ROUTE_SYNC_CALL,
	CORE_ROUTE_UNICAST,
	CORE_ROUTE_REPLY,
};

/**
 * struct core_msg - a parsed message
 * @msg:       the message; its flags word without KDBUS_FLAG_NEGOTIATE
 * @list:      its items
 * @negotiate: the host writes @supported to the flags word of the caller's message
 * @supported: all message flags
 * @end:       bytes of header and items without padding after the last
 * @fds:       FDS item, or NULL
 * @bloom:     BLOOM_FILTER item, or NULL
 * @dst_name:  name the message is addressed to, or NULL
 *
 * The rest is set by core_msg_check():
 *
 * @route:     how the message goes on
 * @n_fds:     descriptors in @fds
 * @n_memfds:  PAYLOAD_MEMFD items
 * @n_vecs:    PAYLOAD_VEC items
 * @vec_size:  sum of their sizes, zero vectors included
 */
struct core_msg {
	struct kdbus_msg *msg;
	struct core_items list;
	bool negotiate;
	u64 supported;
	size_t end;
	const struct kdbus_item *fds;
	const struct kdbus_item *bloom;
	const char *dst_name;
	enum core_route route;
	u32 n_fds;
	u32 n_memfds;
	u32 n_vecs;
	u64 vec_size;
};

/**
 * core_msg_check_size() - check the first word of a message
 * @size: first word, as read from the caller
 *
 * Return: 0, or -EINVAL (below 64) or -EMSGSIZE (above CORE_CMD_MAX_SIZE) (spec §6.14
 * step 1).
 */
int core_msg_check_size(u64 size);

/**
 * core_msg_parse() - check flags and items of a message
 * @msg:       private copy, accepted by core_cmd_check_copy()
 * @size:      its bytes
 * @negotiate: the command negotiates
 * @ret:       parsed message
 *
 * If the command negotiates, the host copies the NEGOTIATE item of the message back to
 * the caller, and that was all.
 *
 * Return: 0, or -EINVAL (unknown flag, KDBUS_FLAG_NEGOTIATE on the message alone, bad
 * list), -EBADF (negative memfd) (spec §6.14 step 1).
 */
int core_msg_parse(struct kdbus_msg *msg, size_t size, bool negotiate, struct core_msg *ret);

/**
 * struct core_msg_facts - what the checks of a message depend on besides it
 * @id:         id of the sender
 * @sync:       the command has KDBUS_SEND_SYNC_REPLY
 * @bloom_size: bytes of a bloom filter on this bus
 * @range_ok:   whether an address range can be the sender's memory; NULL if any range
 *              that does not wrap can
 */
struct core_msg_facts {
	u64 id;
	bool sync;
	u64 bloom_size;
	bool (*range_ok)(u64 address, u64 size);
};

/**
 * core_msg_check() - check a message that is to be sent
 * @m:     parsed message; its numbers and route are set on success
 * @facts: facts
 *
 * Return: 0 or, in the order of spec §6.14 steps 3 to 6,
 *  -EINVAL       sender id, payload type, call without deadline, SYNC_REPLY without
 *                EXPECT_REPLY, signal that is a reply, bad destination name, NEGOTIATE
 *  -EBADMSG      broadcast that is no signal or has a destination name; signal without
 *                bloom filter or filter without signal
 *  -ENOTUNIQ     broadcast or signal with reply semantics, broadcast with descriptors
 *  -EMSGSIZE     too many bytes in vectors; a memfd range that wraps
 *  -EFAULT       a vector that cannot be memory; bloom filter not a multiple of 8
 *  -E2BIG        too many memfds
 *  -EMFILE       too many descriptors
 *  -EDOM         bloom filter of another size than the bus has
 *  -EDESTADDRREQ neither id nor name
 */
int core_msg_check(struct core_msg *m, const struct core_msg_facts *facts);

/**
 * core_msg_fd() - where the number of a descriptor stands in a message
 * @m: parsed message
 * @i: index: the entries of the FDS item first, then the memfds in item order
 *
 * This is the order in which descriptors are installed at the receiver (spec §7.11). The
 * offset is the same in the delivered image.
 *
 * Return: offset of the int from the start of the message, or 0 if there is no such
 * descriptor.
 */
size_t core_msg_fd(const struct core_msg *m, u32 i);

#endif
