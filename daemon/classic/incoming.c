// SPDX-License-Identifier: LGPL-2.1-or-later
/* Native messages made classic. Rules: incoming.h. */
#include "incoming.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "access.h"
#include "dbus/body.h"

int incoming_read_memfd(int fd, u64 start, unsigned char *to, size_t size)
{
	size_t have = 0;
	ssize_t n;

	while (have < size) {
		n = pread(fd, to + have, size - have, (off_t)(start + have));
		if (n <= 0)
			return -EBADMSG;
		have += (size_t)n;
	}
	return 0;
}

static int room(struct incoming *in)
{
	in->data = in->small;
	if (in->size <= INCOMING_SMALL)
		return 0;
	in->m.buf = cbuf_new(in->size);
	if (!in->m.buf)
		return -ENOMEM;
	in->data = in->m.buf->data;
	return 0;
}

/* What the bus says and what the message says must be the same. */
static int check(const struct incoming *in, const struct incoming_source *source)
{
	const struct kdbus_msg *msg = source->msg;
	const struct dbusp_header *h = &in->m.header;
	bool call = h->frame.type == DBUSP_METHOD_CALL;

	if (h->frame.serial != msg->cookie || h->n_fds != source->n_fds)
		return -EBADMSG;
	if (cmsg_wants_reply(&in->m) != !!(msg->flags & KDBUS_MSG_EXPECT_REPLY))
		return -EBADMSG;
	if (!call && h->reply_serial != msg->cookie_reply)
		return -EBADMSG;
	return 0;
}

static int read_header(struct incoming *in, const struct incoming_source *source)
{
	unsigned char fixed[DBUSP_FIXED_LEN];
	struct dbusp_frame frame;
	int r;

	if (source->size < sizeof(fixed) || source->size > DBUSP_MESSAGE_MAX)
		return -EBADMSG;
	r = source->read(source, 0, fixed, sizeof(fixed));
	if (r < 0)
		return r;
	if (dbusp_frame_parse(&frame, fixed, sizeof(fixed), DBUSP_MESSAGE_MAX, NULL) < 0 ||
	    frame.total_len != source->size)
		return -EBADMSG;
	in->size = frame.total_len;
	r = room(in);
	if (r < 0)
		return r;
	/* What says how long the header is must not be another when that much of it is there. */
	memcpy(in->data, fixed, sizeof(fixed));
	return source->read(source, sizeof(fixed), in->data + sizeof(fixed),
			    frame.header_len - sizeof(fixed));
}

int incoming_begin(struct incoming *in, struct classic *k, struct peer *from,
		   const struct incoming_source *source)
{
	int r;

	in->classic = k;
	in->m.from = from;
	in->m.buf = NULL;
	in->m.fds = NULL;
	in->m.head = NULL;
	in->m.joined = false;
	in->m.args_ready = false;
	in->m.policy_ready = false;
	in->m.sender = unique_name(from, in->sender);
	if (source->msg->payload_type != KDBUS_PAYLOAD_DBUS)
		return -EBADMSG;
	r = read_header(in, source);
	if (r < 0)
		return r;
	if (dbusp_header_parse(&in->m.header, in->data, in->size, DBUSP_MESSAGE_MAX, NULL) < 0)
		return -EBADMSG;
	in->m.raw = in->data;
	in->m.body = in->data + in->m.header.frame.header_len;
	return check(in, source);
}

int incoming_body(struct incoming *in, const struct incoming_source *source)
{
	size_t at = in->m.header.frame.header_len;
	int r = 0;

	if (in->size > at)
		r = source->read(source, at, in->data + at, in->size - at);
	if (r == 0 && dbusp_body_check(&in->m.header, in->m.body, NULL) < 0)
		r = -EBADMSG;
	return r == 0 ? cmsg_head(in->classic, &in->m) : r;
}

static bool is_reply(const struct cmsg *m)
{
	return m->header.frame.type == DBUSP_METHOD_RETURN || m->header.frame.type == DBUSP_ERROR;
}

int incoming_admit(struct incoming *in, struct cpeer *to)
{
	struct cmsg *m = &in->m;

	if (!access_may_pass(m->from, &to->peer, m))
		return -EPERM;
	if (m->header.n_fds && !to->fds_ok)
		return -ECOMM;
	if (is_reply(m) && !reply_is_expected(to, m->from, m->header.reply_serial))
		return -EBADSLT;
	return output_full(to) ? -ENOBUFS : 0;
}

int incoming_deliver(struct incoming *in, struct cpeer *to)
{
	if (is_reply(&in->m))
		reply_take(to, in->m.from, in->m.header.reply_serial);
	return output_add(to, &in->m);
}

void incoming_end(struct incoming *in)
{
	cfds_unref(in->m.fds);
	cbuf_unref(in->m.buf);
}
