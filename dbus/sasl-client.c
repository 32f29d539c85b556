// SPDX-License-Identifier: LGPL-2.1-or-later
/* The client half of sasl.h. */
#include <stdio.h>

#include "dbus/sasl.h"
#include "dbus/sasl-line.h"

enum {
	START,
	WAIT_OK, /* DATA may come first, if no identity was sent */
	WAIT_AGREE,
	OVER,
	FAILED,
};

void dbusp_sasl_client_init(struct dbusp_sasl_client *client, enum dbusp_sasl_mech mech,
			    uint32_t uid, bool fds)
{
	*client = (struct dbusp_sasl_client){
		.state = START,
		.mech = mech,
		.want_fds = fds,
		.uid = uid,
	};
}

static enum dbusp_sasl_result give_up(struct dbusp_sasl_client *c, enum dbusp_why why)
{
	c->state = FAILED;
	c->why = why;
	return DBUSP_SASL_CLOSE;
}

static void put_uid(struct dbusp_sasl_out *out, uint32_t uid)
{
	char decimal[12], hex[3];
	int i;

	snprintf(decimal, sizeof(decimal), "%u", uid);
	for (i = 0; decimal[i]; i++) {
		snprintf(hex, sizeof(hex), "%02x", decimal[i]);
		dbusp_sasl_put(out, (struct dbusp_str){ hex, 2 });
	}
}

static void start(struct dbusp_sasl_client *c, struct dbusp_sasl_out *out)
{
	DBUSP_SASL_PUT(out, "\0AUTH ");
	if (c->mech == DBUSP_SASL_ANONYMOUS) {
		DBUSP_SASL_PUT(out, "ANONYMOUS");
	} else {
		DBUSP_SASL_PUT(out, "EXTERNAL");
		if (c->uid != (uint32_t)-1) {
			DBUSP_SASL_PUT(out, " ");
			put_uid(out, c->uid);
		}
	}
	DBUSP_SASL_PUT(out, "\r\n");
	c->state = WAIT_OK;
}

static enum dbusp_sasl_result begin(struct dbusp_sasl_client *c, struct dbusp_sasl_out *out)
{
	DBUSP_SASL_PUT(out, "BEGIN\r\n");
	c->state = OVER;
	return DBUSP_SASL_DONE;
}

static enum dbusp_sasl_result reply_ok(struct dbusp_sasl_client *c, struct dbusp_str guid,
				       struct dbusp_sasl_out *out)
{
	if (guid.len != DBUSP_GUID_LEN || !dbusp_sasl_is_hex(guid))
		return give_up(c, DBUSP_WHY_SASL_REPLY);
	memcpy(c->guid, guid.s, DBUSP_GUID_LEN);
	if (!c->want_fds)
		return begin(c, out);
	DBUSP_SASL_PUT(out, "NEGOTIATE_UNIX_FD\r\n");
	c->state = WAIT_AGREE;
	return DBUSP_SASL_MORE;
}

static enum dbusp_sasl_result reply(struct dbusp_sasl_client *c, struct dbusp_str line,
				    struct dbusp_sasl_out *out)
{
	const struct dbusp_str name = dbusp_sasl_word(&line);
	const bool is_error = dbusp_str_eq(name, DBUSP_STR("ERROR"));

	if (c->state == WAIT_AGREE) {
		c->fds = dbusp_str_eq(name, DBUSP_STR("AGREE_UNIX_FD"));
		return c->fds || is_error ? begin(c, out) : give_up(c, DBUSP_WHY_SASL_REPLY);
	}
	if (dbusp_str_eq(name, DBUSP_STR("OK")))
		return reply_ok(c, line, out);
	if (dbusp_str_eq(name, DBUSP_STR("DATA")) && !line.len) {
		DBUSP_SASL_PUT(out, "DATA\r\n");
		return DBUSP_SASL_MORE;
	}
	if (dbusp_str_eq(name, DBUSP_STR("REJECTED")))
		return give_up(c, DBUSP_WHY_SASL_REJECTED);
	return give_up(c, DBUSP_WHY_SASL_REPLY);
}

/* One line. False: nothing more can be done with this input. */
static bool advance(struct dbusp_sasl_client *c, const char *in, size_t len, size_t *consumed,
		    struct dbusp_sasl_out *out, enum dbusp_sasl_result *ret)
{
	int n = dbusp_sasl_line(in, len, &c->scanned);

	if (n < 0) {
		if (len >= DBUSP_SASL_LINE_MAX)
			*ret = give_up(c, DBUSP_WHY_SASL_LINE_LONG);
		return false;
	}
	c->scanned = 0;
	*consumed += n + 2;
	*ret = reply(c, (struct dbusp_str){ in, n }, out);
	return *ret == DBUSP_SASL_MORE;
}

enum dbusp_sasl_result dbusp_sasl_client_step(struct dbusp_sasl_client *client, const void *in,
					      size_t in_len, size_t *ret_consumed, void *out,
					      size_t out_size, size_t *ret_written)
{
	struct dbusp_sasl_out o = { .buf = out, .size = out_size };
	enum dbusp_sasl_result r = DBUSP_SASL_MORE;
	size_t consumed = 0;

	if (client->state == START && o.size >= DBUSP_SASL_REPLY_MAX)
		start(client, &o);
	while (client->state != START && client->state < OVER &&
	       o.size - o.len >= DBUSP_SASL_REPLY_MAX) {
		if (!advance(client, (const char *)in + consumed, in_len - consumed, &consumed, &o,
			     &r))
			break;
	}
	if (client->state >= OVER)
		r = client->state == OVER ? DBUSP_SASL_DONE : DBUSP_SASL_CLOSE;
	*ret_consumed = consumed;
	*ret_written = o.len;
	return r;
}
