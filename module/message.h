/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MODULE_MESSAGE_H
#define MODULE_MESSAGE_H

#include "deliver.h"
#include "files.h"
#include "object.h"

/*
 * A message while it is sent: everything that comes from the sender, taken before any
 * lock is (rule 4 of object.h).
 *
 *  1. A message is one allocation, unless it is large.
 *  2. Payload that cannot be read is no error yet: who is not there, or may not be talked
 *     to, is told first (spec §6.14, §7.5).
 *  3. What describes the sender is gathered when the first receiver wants it, once for
 *     all receivers (spec §8.2).
 */

#define KBUS_MESSAGE_PAYLOAD 256

/**
 * struct kbus_message - a message on its way
 * @core:       parsed message, in @msg
 * @from:       sender
 * @msg:        private copy
 * @image:      room for header and items as a receiver sees them
 * @files:      descriptors, or NULL
 * @payload:    the bytes of all vectors, one behind the other
 * @unreadable: they could not be read
 * @proc:       process metadata
 * @timestamp:  when it was first delivered; seqnum is 0 until then
 * @meta:       metadata items for the receiver at hand
 * @meta_room:  bytes allocated at @meta
 * @small:      @payload of a small message
 */
struct kbus_message {
	struct core_msg core;
	struct kbus_conn *from;
	struct kdbus_msg *msg;
	void *image;
	struct kbus_files *files;
	void *payload;
	bool unreadable;
	struct kbus_proc proc;
	struct kdbus_timestamp timestamp;
	void *meta;
	size_t meta_room;
	u64 small[KBUS_MESSAGE_PAYLOAD / sizeof(u64)];
};

/**
 * kbus_message_read() - copy a message in and parse it
 * @from:        sender
 * @user:        where it is
 * @negotiate:   the command negotiates: the message tells its flags, and that was all
 * @ret_message: message, for kbus_message_free()
 *
 * Return: 0 or an errno of spec §6.14 step 1.
 */
int kbus_message_read(struct kbus_conn *from, struct kdbus_msg __user *user, bool negotiate,
		      struct kbus_message **ret_message);

/**
 * kbus_message_check() - check it, and take its files and payload
 * @message: parsed message
 * @sync:    the sender waits for the reply
 *
 * Return: 0 or an errno of spec §6.14 steps 3 to 7.
 */
int kbus_message_check(struct kbus_message *message, bool sync);

/**
 * kbus_message_free() - free it
 * @message: message, or NULL
 */
void kbus_message_free(struct kbus_message *message);

/**
 * kbus_message_describe() - make the metadata items for a receiver
 * @message:  message, with @message->meta for the result
 * @parcel:   the same for core/
 * @to:       receiver
 * @ret_size: their bytes, without padding after the last; the padding is there, and zero
 *
 * Locks: bus.lock shared. Return: 0; -ENOMEM.
 */
int kbus_message_describe(struct kbus_message *message, const struct core_parcel *parcel,
			  struct kbus_conn *to, size_t *ret_size);

#endif
