/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MODULE_MESSAGE_H
#define MODULE_MESSAGE_H

#include "deliver.h"
#include "files.h"
#include "object.h"

/*
 * A message while it is sent: everything that comes from the sender.
 *
 *  1. Header, items and descriptors are taken before any lock is (rule 4 of object.h). A
 *     small message lives on the stack.
 *  2. Payload goes from the sender's memory straight into the pool of its one receiver.
 *     Pages that are not at hand then are not waited for under the locks: nothing has
 *     happened yet, the payload is copied to a buffer, and all is done again. So it is,
 *     before the locks, when there are several receivers: all get the same bytes.
 *  3. Payload that cannot be read is no error yet: who is not there, or may not be talked
 *     to, is told first (spec §6.14, §7.5).
 *  4. What describes the sender is gathered when the first receiver wants it, once for
 *     all receivers (spec §8.2).
 */

#define KBUS_MESSAGE_SMALL 256

/**
 * enum kbus_payload - where the payload of a message is
 * @KBUS_PAYLOAD_SENDER:     in the sender's memory
 * @KBUS_PAYLOAD_BUFFER:     in a buffer
 * @KBUS_PAYLOAD_UNREADABLE: nowhere
 */
enum kbus_payload {
	KBUS_PAYLOAD_SENDER,
	KBUS_PAYLOAD_BUFFER,
	KBUS_PAYLOAD_UNREADABLE,
};

/**
 * struct kbus_message - a message on its way
 * @core:      parsed message, in @msg
 * @from:      sender
 * @msg:       private copy
 * @files:     descriptors, or NULL
 * @source:    where the payload is
 * @absent:    it could not be taken from the sender's memory without waiting
 * @payload:   the bytes of all vectors, one behind the other, if in a buffer
 * @proc:      process metadata
 * @timestamp: when a receiver first wanted to know; seqnum is 0 until then
 * @meta:      metadata items for the receiver at hand
 * @meta_room: bytes allocated at @meta
 * @head:      @msg of a small message
 * @small:     @payload of a small message
 */
struct kbus_message {
	struct core_msg core;
	struct kbus_conn *from;
	struct kdbus_msg *msg;
	struct kbus_files *files;
	enum kbus_payload source;
	bool absent;
	void *payload;
	struct kbus_proc proc;
	struct kdbus_timestamp timestamp;
	void *meta;
	size_t meta_room;
	u64 head[KBUS_MESSAGE_SMALL / sizeof(u64)];
	u64 small[KBUS_MESSAGE_SMALL / sizeof(u64)];
};

/**
 * kbus_message_read() - copy a message in and parse it
 * @message:   to be initialised; for kbus_message_release() whatever the outcome
 * @from:      sender
 * @user:      where it is
 * @negotiate: the command negotiates: the message tells its flags, and that was all
 *
 * Return: 0 or an errno of spec §6.14 step 1.
 */
int kbus_message_read(struct kbus_message *message, struct kbus_conn *from,
		      struct kdbus_msg __user *user, bool negotiate);

/**
 * kbus_message_check() - check it, and take its files
 * @message: parsed message
 * @sync:    the sender waits for the reply
 *
 * Return: 0 or an errno of spec §6.14 steps 3 to 7.
 */
int kbus_message_check(struct kbus_message *message, bool sync);

/**
 * kbus_message_buffer() - copy the payload to a buffer
 * @message: checked message
 *
 * Locks: none. Return: 0, also if it cannot be read; -ENOMEM.
 */
int kbus_message_buffer(struct kbus_message *message);

/**
 * kbus_message_release() - give back what it holds
 * @message: message
 */
void kbus_message_release(struct kbus_message *message);

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
