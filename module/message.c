// SPDX-License-Identifier: GPL-2.0-only
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/ktime.h>
#include <linux/uaccess.h>

#include "arg.h"
#include "layout.h"
#include "message.h"
#include "render.h"

static int make_room_for(struct kbus_message *message, size_t size)
{
	message->msg = (void *)message->head;
	if (size > sizeof(message->head))
		message->msg = kvmalloc(ALIGN(size, 8), GFP_KERNEL_ACCOUNT);
	return message->msg ? 0 : -ENOMEM;
}

static int answer_negotiation(struct kbus_message *message, struct kdbus_msg __user *user)
{
	int r;

	r = kbus_arg_answer_items(&message->core.list, message->msg, user);
	if (!r && message->core.negotiate && put_user(message->core.supported, &user->flags))
		r = -EFAULT;
	return r;
}

/* Without @core, which is parsed, and @proc, which seldom is needed. */
static void start(struct kbus_message *message, struct kbus_conn *from)
{
	message->from = from;
	message->msg = NULL;
	message->files = NULL;
	message->source = KBUS_PAYLOAD_SENDER;
	message->absent = false;
	message->payload = NULL;
	message->proc.tried = 0;
	message->timestamp.seqnum = 0;
	message->meta = NULL;
	message->meta_room = 0;
}

static void gather(struct kbus_message *message, u64 mask)
{
	if (message->from->fake)
		return;
	if (!message->proc.tried)
		memset(&message->proc, 0, sizeof(message->proc));
	kbus_proc_gather(&message->proc, mask);
}

int kbus_message_read(struct kbus_message *message, struct kbus_conn *from,
		      struct kdbus_msg __user *user, bool negotiate)
{
	u64 size;
	int r;

	start(message, from);
	if (!IS_ALIGNED((unsigned long)user, 8) || get_user(size, &user->size))
		return -EFAULT;
	r = core_msg_check_size(size);
	if (!r)
		r = make_room_for(message, size);
	if (!r)
		r = kbus_arg_copy_in(user, size, message->msg);
	if (!r)
		r = core_msg_parse(message->msg, size, negotiate, &message->core);
	if (!r && negotiate)
		r = answer_negotiation(message, user);
	return r;
}

static bool range_ok(u64 address, u64 size)
{
	return (unsigned long)address == address &&
	       access_ok((void __user *)(unsigned long)address, size);
}

/* Bytes of all vectors that have any. */
static size_t payload_size(const struct core_msg *msg)
{
	const struct kdbus_item *item;
	const struct kdbus_vec *vec;
	size_t size = 0;

	core_item_for_each(item, msg->list.items, msg->list.size) {
		vec = core_item_payload(item);
		if (item->type == KDBUS_ITEM_PAYLOAD_VEC && vec->address)
			size += vec->size;
	}
	return size;
}

static bool read_payload(const struct core_msg *msg, char *dst)
{
	const struct kdbus_item *item;
	const struct kdbus_vec *vec;

	core_item_for_each(item, msg->list.items, msg->list.size) {
		vec = core_item_payload(item);
		if (item->type != KDBUS_ITEM_PAYLOAD_VEC || !vec->address)
			continue;
		if (copy_from_user(dst, u64_to_user_ptr(vec->address), vec->size))
			return false;
		dst += vec->size;
	}
	return true;
}

int kbus_message_buffer(struct kbus_message *message)
{
	size_t size = payload_size(&message->core);

	message->payload = message->small;
	if (size > sizeof(message->small)) {
		message->payload = kvmalloc(size, GFP_KERNEL_ACCOUNT);
		if (!message->payload)
			return -ENOMEM;
	}
	message->absent = false;
	message->source = read_payload(&message->core, message->payload) ?
				  KBUS_PAYLOAD_BUFFER : KBUS_PAYLOAD_UNREADABLE;
	return 0;
}

int kbus_message_check(struct kbus_message *message, bool sync)
{
	const struct kbus_conn *from = message->from;
	const struct core_msg_facts facts = {
		.id = from->core.id,
		.sync = sync,
		.bloom_size = from->core.bus->bloom.size,
		.range_ok = range_ok,
	};
	int r;

	r = core_msg_check(&message->core, &facts);
	if (!r)
		r = kbus_files_take(&message->core, &message->files);
	if (!r && message->core.route == CORE_ROUTE_BROADCAST)
		r = kbus_message_buffer(message);
	/* the one kind that must be read from user memory, so not when it turns out wanted */
	if (!r && (READ_ONCE(from->ep->bus->wanted) & KDBUS_ATTACH_CMDLINE))
		gather(message, KDBUS_ATTACH_CMDLINE);
	return r;
}

void kbus_message_release(struct kbus_message *message)
{
	/* nearly always there is nothing, and a look is cheaper than a call */
	if (message->files)
		kbus_files_put(message->files);
	if (message->proc.tried)
		kbus_proc_release(&message->proc);
	if (message->payload && message->payload != message->small)
		kvfree(message->payload);
	if (message->msg && (void *)message->msg != message->head)
		kvfree(message->msg);
	if (message->meta)
		kvfree(message->meta);
}

static u64 mask_for(const struct kbus_message *message, const struct kbus_conn *to)
{
	u64 send = READ_ONCE(message->from->core.attach_send);
	u64 recv = READ_ONCE(to->core.attach_recv), proc = 0, mask;

	if (core_meta_proc_wanted(send, recv))
		proc = kbus_render_proc_granted(to);
	mask = core_meta_for_message(send, recv, proc);
	/* one that shows faked metadata shows nothing of the process */
	return message->from->fake ? mask & ~CORE_META_PROCESS : mask;
}

static void stamp(struct kbus_message *message, u64 seq)
{
	if (message->timestamp.seqnum)
		return;
	message->timestamp.seqnum = seq;
	message->timestamp.monotonic_ns = ktime_get_ns();
	message->timestamp.realtime_ns = ktime_get_real_ns();
}

static void add_connection(struct kbus_message *message, struct core_meta *meta)
{
	meta->have |= KDBUS_ATTACH_NAMES | KDBUS_ATTACH_TIMESTAMP;
	meta->names = &message->from->core.names;
	meta->timestamp = message->timestamp;
	if (*message->from->description)
		meta->have |= KDBUS_ATTACH_CONN_DESCRIPTION;
	meta->description = message->from->description;
}

static int make_room(struct kbus_message *message, size_t size)
{
	if (size <= message->meta_room)
		return 0;
	kvfree(message->meta);
	message->meta_room = 0;
	message->meta = kvmalloc(size, GFP_KERNEL_ACCOUNT);
	if (!message->meta)
		return -ENOMEM;
	message->meta_room = size;
	return 0;
}

static int render(struct kbus_message *message, struct kbus_conn *to, u64 mask, size_t *ret_size)
{
	static const struct kbus_proc nothing;
	struct kbus_rendered rendered;
	struct core_writer writer;
	size_t size, end;
	int r;

	kbus_render(message->proc.tried ? &message->proc : &nothing, to, mask, &rendered);
	add_connection(message, &rendered.meta);
	size = core_meta_size(&rendered.meta, mask);
	r = make_room(message, ALIGN(size, 8));
	if (!r && size) {
		writer = CORE_WRITER(message->meta, ALIGN(size, 8));
		core_meta_put(&writer, &rendered.meta, mask);
		r = core_writer_end(&writer, &end);
	}
	kbus_render_release(&rendered);
	if (!r)
		*ret_size = size;
	return r;
}

int kbus_message_describe(struct kbus_message *message, const struct core_parcel *parcel,
			  struct kbus_conn *to, size_t *ret_size)
{
	u64 mask = mask_for(message, to);

	*ret_size = 0;
	if (!mask)
		return 0;
	if (mask & KDBUS_ATTACH_TIMESTAMP)
		stamp(message, parcel->seq);
	/* the arguments were taken by kbus_message_check() */
	gather(message, mask & ~KDBUS_ATTACH_CMDLINE);
	return render(message, to, mask, ret_size);
}
