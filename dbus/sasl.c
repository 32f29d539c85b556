// SPDX-License-Identifier: LGPL-2.1-or-later
/* The server half of sasl.h. */
#include "dbus/sasl.h"

#include "dbus/sasl-line.h"
#include "dbus/utf8.h"

enum {
	WAIT_NUL,
	WAIT_AUTH,
	WAIT_DATA,
	WAIT_BEGIN,
	OVER, /* authenticated, or to be disconnected */
};

void dbusp_sasl_server_init(struct dbusp_sasl_server *server,
			    const struct dbusp_sasl_config *config, uint32_t uid)
{
	*server = (struct dbusp_sasl_server){
		.config = config,
		.have_uid = uid != (uint32_t)-1,
		.uid = uid,
		.state = WAIT_NUL,
	};
}

static enum dbusp_sasl_result close_client(struct dbusp_sasl_server *s, enum dbusp_why why)
{
	s->state = OVER;
	s->mech = DBUSP_SASL_NONE;
	s->fds = false;
	s->why = why;
	return DBUSP_SASL_CLOSE;
}

/* The list of mechanisms is the same each time, as the specification wants it. */
static enum dbusp_sasl_result reject(struct dbusp_sasl_server *s, struct dbusp_sasl_out *out,
				     enum dbusp_why why)
{
	DBUSP_SASL_PUT(out, "REJECTED");
	if (s->config->mechanisms & DBUSP_SASL_EXTERNAL)
		DBUSP_SASL_PUT(out, " EXTERNAL");
	if (s->config->mechanisms & DBUSP_SASL_ANONYMOUS)
		DBUSP_SASL_PUT(out, " ANONYMOUS");
	DBUSP_SASL_PUT(out, "\r\n");
	s->state = WAIT_AUTH;
	s->mech = DBUSP_SASL_NONE;
	s->asked = s->fds = false;
	s->why = why;
	if (++s->rejects >= DBUSP_SASL_REJECTS_MAX)
		return close_client(s, DBUSP_WHY_SASL_REJECTED);
	return DBUSP_SASL_MORE;
}

static enum dbusp_sasl_result accept(struct dbusp_sasl_server *s, struct dbusp_sasl_out *out)
{
	DBUSP_SASL_PUT(out, "OK ");
	dbusp_sasl_put(out, (struct dbusp_str){ s->config->guid, DBUSP_GUID_LEN });
	DBUSP_SASL_PUT(out, "\r\n");
	s->state = WAIT_BEGIN;
	return DBUSP_SASL_MORE;
}

/* The command is treated as if it had never come. */
static enum dbusp_sasl_result error(struct dbusp_sasl_out *out, struct dbusp_str text)
{
	DBUSP_SASL_PUT(out, "ERROR \"");
	dbusp_sasl_put(out, text);
	DBUSP_SASL_PUT(out, "\"\r\n");
	return DBUSP_SASL_MORE;
}

#define ERROR(out, literal) error(out, DBUSP_STR(literal))

/* The hex digits of a decimal user id; false if it is none or too big. */
static bool parse_uid(struct dbusp_str hex, uint32_t *ret)
{
	uint64_t uid = 0;
	size_t i;
	uint8_t c;

	for (i = 0; i < hex.len / 2; i++) {
		c = dbusp_sasl_hex_byte(hex, i);
		if (c < '0' || c > '9')
			return false;
		uid = uid * 10 + (c - '0');
		if (uid >= UINT32_MAX)
			return false;
	}
	*ret = uid;
	return true;
}

/*
 * An identity may come with AUTH or with DATA. If it comes with neither the client is asked once,
 * with an empty challenge; silence then means "whoever the socket says I am".
 */
static enum dbusp_sasl_result external(struct dbusp_sasl_server *s, struct dbusp_str hex,
				       struct dbusp_sasl_out *out)
{
	uint32_t uid;

	if (!s->have_uid)
		return reject(s, out, DBUSP_WHY_SASL_CREDENTIALS);
	if (!hex.len && !s->asked) {
		DBUSP_SASL_PUT(out, "DATA\r\n");
		s->asked = true;
		s->state = WAIT_DATA;
		return DBUSP_SASL_MORE;
	}
	if (!hex.len)
		return accept(s, out);
	if (!parse_uid(hex, &uid))
		return reject(s, out, DBUSP_WHY_SASL_IDENTITY);
	if (uid != s->uid)
		return reject(s, out, DBUSP_WHY_SASL_CREDENTIALS);
	return accept(s, out);
}

/* RFC 4505: a trace of the client, UTF-8, which nobody has to believe */
static enum dbusp_sasl_result anonymous(struct dbusp_sasl_server *s, struct dbusp_str hex,
					struct dbusp_sasl_out *out)
{
	char trace[DBUSP_SASL_LINE_MAX / 2];
	size_t i;

	for (i = 0; i < hex.len / 2; i++)
		trace[i] = dbusp_sasl_hex_byte(hex, i);
	if (!dbusp_utf8_valid(trace, hex.len / 2))
		return reject(s, out, DBUSP_WHY_SASL_TRACE);
	return accept(s, out);
}

static enum dbusp_sasl_result respond(struct dbusp_sasl_server *s, struct dbusp_str hex,
				      struct dbusp_sasl_out *out)
{
	if (s->mech == DBUSP_SASL_EXTERNAL)
		return external(s, hex, out);
	return anonymous(s, hex, out);
}

static uint8_t find_mech(const struct dbusp_sasl_server *s, struct dbusp_str name)
{
	uint8_t mech = DBUSP_SASL_NONE;

	if (dbusp_str_eq(name, DBUSP_STR("EXTERNAL")))
		mech = DBUSP_SASL_EXTERNAL;
	else if (dbusp_str_eq(name, DBUSP_STR("ANONYMOUS")))
		mech = DBUSP_SASL_ANONYMOUS;
	return mech & s->config->mechanisms;
}

static enum dbusp_sasl_result command_auth(struct dbusp_sasl_server *s, struct dbusp_str args,
					   struct dbusp_sasl_out *out)
{
	const struct dbusp_str name = dbusp_sasl_word(&args);
	const uint8_t mech = find_mech(s, name);

	if (s->state != WAIT_AUTH)
		return ERROR(out, "AUTH while another AUTH is in progress");
	if (!mech && dbusp_str_eq(name, DBUSP_STR("DBUS_COOKIE_SHA1")))
		return reject(s, out, DBUSP_WHY_SASL_COOKIE);
	if (!mech)
		return reject(s, out, DBUSP_WHY_SASL_MECHANISM);
	if (!dbusp_sasl_is_hex(args))
		return ERROR(out, "Invalid hex encoding");
	s->mech = mech;
	return respond(s, args, out);
}

static enum dbusp_sasl_result command_data(struct dbusp_sasl_server *s, struct dbusp_str args,
					   struct dbusp_sasl_out *out)
{
	if (s->state != WAIT_DATA)
		return ERROR(out, "DATA outside of an AUTH exchange");
	if (!dbusp_sasl_is_hex(args))
		return ERROR(out, "Invalid hex encoding");
	return respond(s, args, out);
}

static enum dbusp_sasl_result command_cancel(struct dbusp_sasl_server *s, struct dbusp_str args,
					     struct dbusp_sasl_out *out)
{
	if (s->state == WAIT_AUTH)
		return ERROR(out, "CANCEL outside of an AUTH exchange");
	return reject(s, out, DBUSP_WHY_NONE);
}

static enum dbusp_sasl_result command_error(struct dbusp_sasl_server *s, struct dbusp_str args,
					    struct dbusp_sasl_out *out)
{
	return reject(s, out, DBUSP_WHY_NONE);
}

static enum dbusp_sasl_result command_fds(struct dbusp_sasl_server *s, struct dbusp_str args,
					  struct dbusp_sasl_out *out)
{
	if (s->state != WAIT_BEGIN)
		return ERROR(out, "NEGOTIATE_UNIX_FD before authentication");
	if (!s->config->fds)
		return ERROR(out, "Descriptors cannot be passed here");
	s->fds = true;
	DBUSP_SASL_PUT(out, "AGREE_UNIX_FD\r\n");
	return DBUSP_SASL_MORE;
}

static enum dbusp_sasl_result command_begin(struct dbusp_sasl_server *s, struct dbusp_str args,
					    struct dbusp_sasl_out *out)
{
	if (s->state != WAIT_BEGIN)
		return close_client(s, DBUSP_WHY_SASL_EARLY_BEGIN);
	s->state = OVER;
	return DBUSP_SASL_DONE;
}

static enum dbusp_sasl_result command(struct dbusp_sasl_server *s, struct dbusp_str line,
				      struct dbusp_sasl_out *out)
{
	static const struct {
		struct dbusp_str name;
		enum dbusp_sasl_result (*run)(struct dbusp_sasl_server *s, struct dbusp_str args,
					      struct dbusp_sasl_out *out);
	} rows[] = {
		{ { "AUTH", 4 }, command_auth },
		{ { "DATA", 4 }, command_data },
		{ { "CANCEL", 6 }, command_cancel },
		{ { "ERROR", 5 }, command_error },
		{ { "NEGOTIATE_UNIX_FD", 17 }, command_fds },
		{ { "BEGIN", 5 }, command_begin },
	};
	struct dbusp_str args = line, name;
	size_t i;

	if (!dbusp_sasl_is_ascii(line))
		return ERROR(out, "Not ASCII");
	name = dbusp_sasl_word(&args);
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (dbusp_str_eq(name, rows[i].name))
			return rows[i].run(s, args, out);
	}
	return ERROR(out, "Unknown command");
}

/* One line, or the byte before all lines. False: nothing more can be done with this input. */
static bool advance(struct dbusp_sasl_server *s, const char *in, size_t len, size_t *consumed,
		    struct dbusp_sasl_out *out, enum dbusp_sasl_result *ret)
{
	int n;

	if (s->state == WAIT_NUL) {
		if (!len)
			return false;
		if (*in) {
			*ret = close_client(s, DBUSP_WHY_SASL_NUL);
			return false;
		}
		s->state = WAIT_AUTH;
		*consumed += 1;
		return true;
	}
	n = dbusp_sasl_line(in, len, &s->scanned);
	if (n < 0) {
		if (len >= DBUSP_SASL_LINE_MAX)
			*ret = close_client(s, DBUSP_WHY_SASL_LINE_LONG);
		return false;
	}
	if (++s->lines > DBUSP_SASL_LINES_MAX) {
		*ret = close_client(s, DBUSP_WHY_SASL_TOO_MANY);
		return false;
	}
	s->scanned = 0;
	*consumed += n + 2;
	*ret = command(s, (struct dbusp_str){ in, n }, out);
	return *ret == DBUSP_SASL_MORE;
}

enum dbusp_sasl_result dbusp_sasl_server_step(struct dbusp_sasl_server *server, const void *in,
					      size_t in_len, size_t *ret_consumed, void *out,
					      size_t out_size, size_t *ret_written)
{
	struct dbusp_sasl_out o = { .buf = out, .size = out_size };
	enum dbusp_sasl_result r = DBUSP_SASL_MORE;
	size_t consumed = 0;

	if (server->state == OVER)
		r = server->mech ? DBUSP_SASL_DONE : DBUSP_SASL_CLOSE;
	while (server->state != OVER && o.size - o.len >= DBUSP_SASL_REPLY_MAX) {
		if (!advance(server, (const char *)in + consumed, in_len - consumed, &consumed, &o,
			     &r))
			break;
	}
	*ret_consumed = consumed;
	*ret_written = o.len;
	return r;
}
