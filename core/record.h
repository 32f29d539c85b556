/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef CORE_RECORD_H
#define CORE_RECORD_H

#include "meta.h"

/*
 * What the bus itself writes into a pool besides messages: notifications, answers about
 * connections and the bus, listings, and the items HELLO returns (spec §6.4, §6.8 to
 * §6.10, §10.8, §12).
 *
 * 1. For each kind there is a function that tells the size and one that writes exactly
 *    that much; the size is a multiple of 8.
 * 2. Padding is zero: no byte of the bus's own memory reaches a pool by accident.
 *
 * Pure functions of their arguments: any thread, no allocation; for the lock rule of
 * metadata see meta.h.
 */

/**
 * struct core_notice - a notification
 * @type:         item type, KDBUS_ITEM_NAME_ADD to KDBUS_ITEM_REPLY_DEAD
 * @old_id:       NAME_...: owner before, all zero for NAME_ADD
 * @new_id:       NAME_...: owner after, all zero for NAME_REMOVE; ID_...: the connection
 * @name:         NAME_...: the name
 * @dst_id:       REPLY_...: the requester
 * @cookie_reply: REPLY_...: cookie of its call
 *
 * Members that do not belong to @type are not looked at.
 */
struct core_notice {
	u64 type;
	struct kdbus_notify_id_change old_id;
	struct kdbus_notify_id_change new_id;
	const char *name;
	u64 dst_id;
	u64 cookie_reply;
};

/**
 * core_notice_is_reply() - is it told to a requester rather than to all that want it?
 * @notice: notification
 */
static inline bool core_notice_is_reply(const struct core_notice *notice)
{
	return notice->type == KDBUS_ITEM_REPLY_TIMEOUT || notice->type == KDBUS_ITEM_REPLY_DEAD;
}

/**
 * core_notice_size() - bytes of a notification; size of the message and of its slice
 * @notice: notification
 */
size_t core_notice_size(const struct core_notice *notice);

/**
 * core_notice_write() - write a notification
 * @notice:    notification
 * @timestamp: when it was generated, and its number on the bus
 * @dst:       memory, a multiple of 8
 * @size:      its bytes
 *
 * Return: 0, or -EMSGSIZE if @size is less than core_notice_size().
 */
int core_notice_write(const struct core_notice *notice, const struct kdbus_timestamp *timestamp,
		      void *dst, size_t size);

/**
 * struct core_info - an answer to CONN_INFO or BUS_CREATOR_INFO
 * @id:       id of the connection or the bus
 * @flags:    HELLO flags of the connection or flags of the bus
 * @bus_name: full name of the bus in an answer about its creator; else NULL
 * @meta:     metadata
 * @mask:     kinds to show
 */
struct core_info {
	u64 id;
	u64 flags;
	const char *bus_name;
	const struct core_meta *meta;
	u64 mask;
};

/**
 * core_info_size() - bytes of an answer
 * @info: answer
 */
size_t core_info_size(const struct core_info *info);

/**
 * core_info_write() - write an answer
 * @info: answer
 * @dst:  memory, a multiple of 8
 * @size: its bytes
 *
 * Return: 0, or -EMSGSIZE if @size is less than core_info_size().
 */
int core_info_write(const struct core_info *info, void *dst, size_t size);

/**
 * struct core_listed - a record of a listing
 * @id:         id of the connection
 * @flags:      its HELLO flags
 * @name:       name the record is about, or NULL for the connection as such
 * @name_flags: enum kdbus_name_flags
 */
struct core_listed {
	u64 id;
	u64 flags;
	const char *name;
	u64 name_flags;
};

/**
 * core_listed_size() - bytes of a record
 * @listed: record
 */
size_t core_listed_size(const struct core_listed *listed);

/**
 * core_listed_write() - write a record
 * @listed: record
 * @dst:    memory, a multiple of 8
 * @size:   its bytes
 *
 * Return: 0, or -EMSGSIZE if @size is less than core_listed_size().
 */
int core_listed_write(const struct core_listed *listed, void *dst, size_t size);

/* Bytes of the items that HELLO returns. */
#define CORE_HELLO_ITEMS_SIZE CORE_ITEM_SPACE(sizeof(struct kdbus_bloom_parameter))

/**
 * core_hello_items_write() - write the items that HELLO returns
 * @bloom: bloom filter parameters of the bus
 * @dst:   memory, a multiple of 8
 * @size:  its bytes
 *
 * Return: 0, or -EMSGSIZE if @size is less than CORE_HELLO_ITEMS_SIZE.
 */
int core_hello_items_write(const struct kdbus_bloom_parameter *bloom, void *dst, size_t size);

#endif
