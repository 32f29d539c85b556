// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Messages, from the sender's words to the receiver's image. Input: a byte of facts, a
 * byte for the size of the metadata, and the message without its size word.
 */
#include "fuzz.h"
#include "layout.h"
#include "limits.h"
#include "syntax.h"

static const int refusals[] = {
	-EINVAL, -EBADMSG, -ENOTUNIQ, -EMSGSIZE,     -EFAULT,
	-E2BIG,	 -EMFILE,  -EDOM,     -EDESTADDRREQ,
};

static bool known_refusal(int r)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(refusals); i++) {
		if (refusals[i] == r)
			return true;
	}
	return false;
}

static void check_header(const struct core_msg *m, const struct core_msg_facts *facts)
{
	const struct kdbus_msg *msg = m->msg;
	bool broadcast = msg->dst_id == ~0ULL;
	bool call = msg->flags & KDBUS_MSG_EXPECT_REPLY;
	bool signal = msg->flags & KDBUS_MSG_SIGNAL;

	FUZZ_CHECK(msg->payload_type);
	FUZZ_CHECK(msg->src_id == 0 || msg->src_id == facts->id);
	FUZZ_CHECK(!broadcast || (signal && !m->n_fds && !m->dst_name));
	FUZZ_CHECK(!signal || (m->bloom && !msg->cookie_reply));
	FUZZ_CHECK(!call || msg->timeout_ns);
	FUZZ_CHECK(msg->dst_id || m->dst_name);
	FUZZ_CHECK(!m->dst_name || core_name_valid(m->dst_name));
	FUZZ_CHECK(!m->bloom || core_item_payload_size(m->bloom) == 8 + facts->bloom_size);
	FUZZ_CHECK((m->route == CORE_ROUTE_BROADCAST) == broadcast);
	FUZZ_CHECK((m->route == CORE_ROUTE_SYNC_CALL) == facts->sync);
	FUZZ_CHECK((m->route == CORE_ROUTE_REPLY) == (!call && msg->cookie_reply));
}

static void check_counts(const struct core_msg *m)
{
	u64 vecs = 0, memfds = 0, total = 0, i, at;
	const struct kdbus_item *item;

	core_item_for_each(item, m->list.items, m->list.size) {
		vecs += item->type == KDBUS_ITEM_PAYLOAD_VEC;
		memfds += item->type == KDBUS_ITEM_PAYLOAD_MEMFD;
		if (item->type == KDBUS_ITEM_PAYLOAD_VEC)
			total += item->vec.size;
	}
	FUZZ_CHECK(m->n_vecs == vecs && m->n_memfds == memfds && m->vec_size == total);
	FUZZ_CHECK(total <= CORE_MSG_MAX_PAYLOAD_VEC_SIZE && memfds <= 16 && m->n_fds <= 16);
	for (i = 0; i < m->n_fds + memfds; i++) {
		at = core_msg_fd(m, i);
		FUZZ_CHECK(at >= 64 + 16 && at % 4 == 0 && at + 4 <= m->end);
	}
	FUZZ_CHECK(core_msg_fd(m, i) == 0);
}

/* Header and items of the delivered image, next to what was sent. */
static void check_image(const struct core_msg *m, const struct core_layout *layout,
			const uint8_t *image)
{
	const struct kdbus_item *sent, *got = (void *)(image + 64);
	u64 next = layout->payload_offset, logical = 0, base = layout->payload_offset;

	core_item_for_each(sent, m->list.items, m->list.size) {
		FUZZ_CHECK(fuzz_within(got, image, layout->meta_offset));
		FUZZ_CHECK(got->size == sent->size);
		if (sent->type == KDBUS_ITEM_PAYLOAD_VEC) {
			FUZZ_CHECK(got->type == KDBUS_ITEM_PAYLOAD_OFF);
			FUZZ_CHECK(got->vec.size == sent->vec.size);
			if (!sent->vec.address) {
				FUZZ_CHECK(got->vec.offset == ~0ULL);
			} else {
				FUZZ_CHECK(got->vec.offset >= next);
				FUZZ_CHECK((got->vec.offset - base - logical) % 8 == 0);
				next = got->vec.offset + got->vec.size;
				FUZZ_CHECK(next <= layout->slice_size);
			}
			logical += sent->vec.size;
		} else {
			FUZZ_CHECK(got->type == sent->type);
			if (sent->type == KDBUS_ITEM_PAYLOAD_MEMFD) {
				FUZZ_CHECK(got->memfd.fd == -1);
				FUZZ_CHECK(got->memfd.size == sent->memfd.size);
				logical += sent->memfd.size;
			} else if (sent->type != KDBUS_ITEM_FDS) {
				FUZZ_CHECK(!memcmp(got, sent, sent->size));
			}
		}
		got = core_item_next(got);
	}
}

/* layout.h invariants 1 and 5 */
static void check_pieces(const struct core_msg *m, const struct core_layout *layout)
{
	struct core_layout_cursor cursor;
	size_t at = layout->msg_size, stored = 0;
	struct core_piece piece;

	core_layout_start(&cursor, m, layout);
	while (core_layout_next(&cursor, &piece)) {
		FUZZ_CHECK(piece.offset == at && piece.size);
		at += piece.size;
		stored += piece.address ? piece.size : 0;
		FUZZ_CHECK(piece.address || piece.size < 8);
	}
	FUZZ_CHECK(at == layout->slice_size && stored <= m->vec_size);
	FUZZ_CHECK(layout->slice_size % 8 == 0 && layout->payload_offset % 8 == 0);
	FUZZ_CHECK(layout->slice_size - layout->payload_offset - layout->payload_size < 8);
}

static void deliver(const struct core_msg *m, size_t meta_size)
{
	struct core_layout layout;
	uint8_t *image;
	size_t i;

	core_layout_init(m, meta_size, &layout);
	FUZZ_CHECK(layout.msg_size == (meta_size ? layout.meta_offset + meta_size : m->end));
	image = malloc(layout.meta_offset);
	FUZZ_CHECK(image);
	core_layout_write(m, &layout, 5, image);
	FUZZ_CHECK(((struct kdbus_msg *)image)->size == layout.msg_size);
	FUZZ_CHECK(((struct kdbus_msg *)image)->src_id == 5);
	FUZZ_CHECK(core_items_check(image + 64, m->end - 64) == 0);
	for (i = m->end; i < layout.meta_offset; i++)
		FUZZ_CHECK(image[i] == 0);
	check_image(m, &layout, image);
	check_pieces(m, &layout);
	free(image);
}

static void check_parsed(struct core_msg *m, uint8_t facts, size_t meta_size)
{
	struct core_msg_facts f = { .id = 5, .sync = facts & 2, .bloom_size = 8 << (facts >> 5) };
	struct core_msg before = *m;
	int r;

	FUZZ_CHECK((long)m->list.end == fuzz_list_end((void *)m->list.items, m->list.size));
	FUZZ_CHECK(m->end == 64 + m->list.end);
	r = core_msg_check(m, &f);
	if (r) {
		FUZZ_CHECK(known_refusal(r));
		FUZZ_CHECK(m->route == before.route && m->n_fds == before.n_fds &&
			   m->n_memfds == before.n_memfds && m->n_vecs == before.n_vecs &&
			   m->vec_size == before.vec_size);
		return;
	}
	FUZZ_CHECK(!m->list.negotiate);
	check_header(m, &f);
	check_counts(m);
	deliver(m, meta_size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t facts = fuzz_byte(&data, &size);
	size_t meta_size = fuzz_byte(&data, &size);
	u64 bytes = size + 8;
	struct core_msg m;
	uint8_t *msg;
	int r;

	memset(&m, 0, sizeof(m));
	r = core_msg_check_size(bytes);
	FUZZ_CHECK(r == (bytes < 64 ? -EINVAL : bytes > CORE_CMD_MAX_SIZE ? -EMSGSIZE : 0));
	if (r)
		return 0;
	msg = malloc(bytes);
	FUZZ_CHECK(msg);
	memcpy(msg, &bytes, 8);
	memcpy(msg + 8, data, size);
	r = core_msg_parse((void *)msg, bytes, facts & 1, &m);
	FUZZ_CHECK(r == 0 || r == -EINVAL || r == -EBADF);
	if (r)
		FUZZ_CHECK(!memcmp(msg + 8, data, size));
	else if (!(facts & 1))
		check_parsed(&m, facts, meta_size);
	free(msg);
	return 0;
}
