// SPDX-License-Identifier: LGPL-2.1-or-later
/* The driver: finding the method, and sending what it answers. Rules: driver.h. */
#include "driver.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "access.h"
#include "activate.h"
#include "carrier.h"
#include "dbus/utf8.h"
#include "monitor.h"
#include "output.h"

#define SCRATCH_SIZE   4096
#define JOIN_MAX       (16U << 10) /* larger messages of the driver are not copied */
#define ERROR_TEXT_MAX 2048

const struct driver_table *const driver_tables[] = {
	&driver_names,
	&driver_matches,
	&driver_creds,
	&driver_misc,
	&driver_activation,
	&driver_properties,
	&driver_monitor,
	&driver_stats,
	&driver_config,
	NULL,
};

/* ---- building ---- */

/*
 * Most answers fit a piece of memory that is always there. One message is built at a time, or else
 * the second is allocated.
 */
static unsigned char scratch[SCRATCH_SIZE];
static bool scratch_used;

static void *resize(void *userdata, void *old, size_t size)
{
	void *more;

	if (!old && size <= SCRATCH_SIZE && !scratch_used) {
		scratch_used = true;
		return scratch;
	}
	if (old != scratch)
		return realloc(old, size);
	if (size <= SCRATCH_SIZE)
		return old;
	more = malloc(size);
	if (more) {
		memcpy(more, scratch, SCRATCH_SIZE);
		scratch_used = false;
	}
	return more;
}

static void release(void *userdata, void *old)
{
	if (old == scratch)
		scratch_used = false;
	else
		free(old);
}

static const struct dbusp_alloc alloc = { .resize = resize, .release = release };

static uint32_t next_serial(struct classic *k)
{
	if (!++k->serial)
		k->serial++;
	return k->serial;
}

/* In a sound one there is nothing that the daemon did not write or check itself. */
static void begin(struct classic *k, struct dbusp_build *b, struct dbusp_desc *desc)
{
	desc->serial = next_serial(k);
	desc->sender = DBUSP_STR(CLASSIC_DRIVER);
	dbusp_build_begin(b, &alloc, desc);
}

/* ---- sending ---- */

static int add_large(struct cpeer *to, const uint8_t *msg, size_t len, struct cfds *fds)
{
	struct cbuf *buf = cbuf_new(len);
	struct cmsg m = { .buf = buf, .fds = fds, .head_len = DBUSP_FIXED_LEN };
	int r;

	if (!buf)
		return -ENOMEM;
	memcpy(buf->data, msg, len);
	m.head = memcpy(output_room(to->classic, DBUSP_FIXED_LEN), msg, DBUSP_FIXED_LEN);
	m.filled = to->classic->out_fills;
	m.body = buf->data + DBUSP_FIXED_LEN;
	m.header.frame.body_len = (uint32_t)(len - DBUSP_FIXED_LEN);
	r = output_add(to, &m);
	cbuf_unref(buf);
	return r;
}

static void send_raw(struct cpeer *to, const uint8_t *msg, size_t len, struct cfds *fds)
{
	unsigned char *at;

	if (len > JOIN_MAX) {
		if (add_large(to, msg, len, fds) < 0)
			cpeer_doom(to, "no memory for an answer");
		return;
	}
	at = output_room(to->classic, len);
	memcpy(at, msg, len);
	output_add_raw(to, at, len, fds);
}

static int parse_own(struct cmsg *m, const uint8_t *msg, size_t len, struct cfds *fds)
{
	m->from = NULL;
	m->raw = msg;
	m->buf = NULL;
	m->fds = fds;
	m->head = NULL;
	m->joined = false;
	m->args_ready = false;
	m->policy_ready = false;
	m->sender = DBUSP_STR(CLASSIC_DRIVER);
	if (dbusp_header_parse(&m->header, msg, len, DBUSP_MESSAGE_MAX, NULL) < 0)
		return -EBADMSG;
	m->body = msg + m->header.frame.header_len;
	return 0;
}

/*
 * One that is sent on as others are: what is not copied behind its header must outlive the memory
 * that it was built in. Then unstage().
 */
static int stage(struct cmsg *m, const uint8_t *msg, size_t len, struct cfds *fds)
{
	struct cbuf *buf = len > OUTPUT_JOIN_MAX ? cbuf_new(len) : NULL;
	int r;

	if (len > OUTPUT_JOIN_MAX && !buf)
		return -ENOMEM;
	if (buf)
		msg = memcpy(buf->data, msg, len);
	r = parse_own(m, msg, len, fds);
	if (r < 0)
		cbuf_unref(buf);
	else
		m->buf = buf;
	return r;
}

static void unstage(struct cmsg *m)
{
	cbuf_unref(m->buf);
}

/* What the bus says, monitors see, too. */
static void show(struct cpeer *to, const uint8_t *msg, size_t len, struct cfds *fds)
{
	struct cmsg m;

	if (list_empty(&to->classic->monitors) || stage(&m, msg, len, fds) < 0)
		return;
	monitor_show(to->classic, &m, &to->peer);
	unstage(&m);
}

/* One that has no name yet is not called by one. */
static struct dbusp_str address_of(const struct cpeer *to)
{
	return to->name_len ? cpeer_name(to) : (struct dbusp_str){ 0 };
}

/* Names of processes and files may be in it, which need not be text: then only ASCII is left. */
static void put_error_text(struct dbusp_build *b, const char *text)
{
	char ascii[ERROR_TEXT_MAX];
	size_t i;

	if (!dbusp_utf8_valid(text, strlen(text))) {
		for (i = 0; i < sizeof(ascii) - 1 && text[i]; i++)
			ascii[i] = (char)(text[i] & 0x80 ? '?' : text[i]);
		ascii[i] = '\0';
		text = ascii;
	}
	dbusp_put_string(b, text);
}

static void build_error(struct classic *k, uint32_t serial, struct dbusp_str destination,
			const char *name, const char *text, struct dbusp_build *b)
{
	struct dbusp_desc desc = { .type = DBUSP_ERROR,
				   .flags = DBUSP_NO_REPLY_EXPECTED,
				   .reply_serial = serial,
				   .error_name = dbusp_str(name),
				   .destination = destination,
				   .signature = DBUSP_STR("s") };

	begin(k, b, &desc);
	put_error_text(b, text);
}

void driver_show_error(struct cpeer *to, const struct cmsg *m, const char *name, const char *text)
{
	struct dbusp_build b;
	uint8_t *msg;
	size_t len;

	build_error(to->classic, m->header.frame.serial,
		    m->from ? address_of(to) : DBUSP_STR(CLASSIC_DRIVER), name, text, &b);
	if (dbusp_build_end(&b, &msg, &len) < 0)
		return;
	show(to, msg, len, NULL);
	release(NULL, msg);
}

/* The policy of the receiver counts for what the bus says, too. */
static bool may_have(struct cpeer *to, const uint8_t *msg, size_t len)
{
	struct cmsg m;

	if (access_receives_all(to) || parse_own(&m, msg, len, NULL) < 0)
		return true;
	return access_may_receive(to, &m);
}

void driver_show(struct classic *k, struct dbusp_build *b, const struct peer *to)
{
	struct cmsg m;
	uint8_t *msg;
	size_t len;

	if (dbusp_build_end(b, &msg, &len) < 0)
		return;
	if (stage(&m, msg, len, NULL) == 0) {
		monitor_see(k, &m, to);
		unstage(&m);
	}
	release(NULL, msg);
}

static void end(struct cpeer *to, struct dbusp_build *b, struct cfds *fds, bool shown)
{
	uint8_t *msg;
	size_t len;

	if (dbusp_build_end(b, &msg, &len) < 0) {
		cpeer_doom(to, "no memory for a message to it");
		return;
	}
	if (!shown)
		show(to, msg, len, fds);
	if (cpeer_alive(to) && may_have(to, msg, len))
		send_raw(to, msg, len, fds);
	release(NULL, msg);
}

void driver_signal_to(struct cpeer *to, struct dbusp_build *b)
{
	end(to, b, NULL, false);
}

void driver_signal_unseen(struct cpeer *to, struct dbusp_build *b)
{
	end(to, b, NULL, true);
}

void driver_signal_all(struct classic *k, struct dbusp_build *b)
{
	struct cmsg m;
	uint8_t *msg;
	size_t len;

	if (dbusp_build_end(b, &msg, &len) < 0) {
		log_line("no memory for a signal of the bus");
		return;
	}
	if (stage(&m, msg, len, NULL) == 0) {
		monitor_see(k, &m, NULL);
		route_broadcast(k, &m);
		unstage(&m);
	}
	release(NULL, msg);
}

void driver_signal_begin(struct classic *k, struct dbusp_build *b, const char *interface,
			 const char *member, const char *signature, struct dbusp_str destination)
{
	struct dbusp_desc desc = { .type = DBUSP_SIGNAL,
				   .sound = true,
				   .flags = DBUSP_NO_REPLY_EXPECTED,
				   .path = DBUSP_STR(CLASSIC_DRIVER_PATH),
				   .interface = dbusp_str(interface),
				   .member = dbusp_str(member),
				   .destination = destination,
				   .signature = dbusp_str(signature) };

	begin(k, b, &desc);
}

void driver_reply_begin_fds(struct driver_call *call, struct dbusp_build *b, const char *signature,
			    unsigned int n_fds)
{
	struct dbusp_desc desc = { .type = DBUSP_METHOD_RETURN,
				   .sound = true,
				   .flags = DBUSP_NO_REPLY_EXPECTED,
				   .reply_serial = call->m->header.frame.serial,
				   .n_fds = n_fds,
				   .destination = address_of(call->from),
				   .signature = dbusp_str(signature) };

	begin(call->classic, b, &desc);
}

void driver_reply_begin(struct driver_call *call, struct dbusp_build *b, const char *signature)
{
	driver_reply_begin_fds(call, b, signature, 0);
}

void driver_reply_end(struct driver_call *call, struct dbusp_build *b)
{
	if (cmsg_wants_reply(call->m))
		driver_signal_to(call->from, b);
	else
		dbusp_build_abort(b);
}

void driver_reply_end_fds(struct driver_call *call, struct dbusp_build *b, const int *fds,
			  unsigned int n_fds)
{
	struct reaper *reaper = call->classic->daemon->reaper;
	struct cfds *held = n_fds ? cfds_new(reaper, fds, n_fds) : NULL;
	unsigned int i;

	if (n_fds && !held) {
		for (i = 0; i < n_fds; i++)
			reaper_close(reaper, fds[i]);
		dbusp_build_abort(b);
		cpeer_doom(call->from, "no memory for an answer");
		return;
	}
	if (cmsg_wants_reply(call->m))
		end(call->from, b, held, false);
	else
		dbusp_build_abort(b);
	cfds_unref(held);
}

void driver_reply(struct driver_call *call)
{
	struct dbusp_build b;

	driver_reply_begin(call, &b, "");
	driver_reply_end(call, &b);
}

void driver_return_begin(struct cpeer *to, uint32_t serial, struct dbusp_build *b,
			 const char *signature)
{
	struct dbusp_desc desc = { .type = DBUSP_METHOD_RETURN,
				   .sound = true,
				   .flags = DBUSP_NO_REPLY_EXPECTED,
				   .reply_serial = serial,
				   .destination = address_of(to),
				   .signature = dbusp_str(signature) };

	begin(to->classic, b, &desc);
}

void driver_call_begin(struct classic *k, struct dbusp_build *b, const char *path,
		       const char *interface, const char *member, const char *signature,
		       struct dbusp_str destination)
{
	struct dbusp_desc desc = { .type = DBUSP_METHOD_CALL,
				   .flags = DBUSP_NO_REPLY_EXPECTED,
				   .path = dbusp_str(path),
				   .interface = dbusp_str(interface),
				   .member = dbusp_str(member),
				   .destination = destination,
				   .signature = dbusp_str(signature) };

	begin(k, b, &desc);
}

static void send_error(struct cpeer *to, uint32_t serial, const char *name, const char *text)
{
	struct dbusp_build b;

	build_error(to->classic, serial, address_of(to), name, text, &b);
	driver_signal_to(to, &b);
}

int driver_error_native(struct classic *k, struct peer *as, struct peer *to, uint32_t serial,
			const char *name, const char *text)
{
	char unique[CLASSIC_UNIQUE_MAX];
	struct dbusp_desc desc = { .type = DBUSP_ERROR,
				   .flags = DBUSP_NO_REPLY_EXPECTED,
				   .reply_serial = serial,
				   .error_name = dbusp_str(name),
				   .destination = unique_name(to, unique),
				   .signature = DBUSP_STR("s") };
	struct dbusp_build b;
	struct cmsg m;
	uint8_t *msg;
	size_t len;
	int r;

	begin(k, &b, &desc);
	put_error_text(&b, text);
	if (dbusp_build_end(&b, &msg, &len) < 0)
		return -ENOMEM;
	r = parse_own(&m, msg, len, NULL);
	if (r == 0)
		r = k->carrier->answer(as, to, &m);
	release(NULL, msg);
	return r;
}

/* What callers wrote may be in it, of any length: it is cut between characters. */
static void print(char *text, size_t size, const char *format, va_list args)
{
	size_t len = (size_t)vsnprintf(text, size, format, args);

	if (len < size)
		return;
	for (len = size - 2; len && (text[len] & 0xc0) == 0x80; len--)
		;
	text[len] = '\0';
}

void driver_error(struct cpeer *to, const struct cmsg *m, const char *name, const char *format, ...)
{
	char text[ERROR_TEXT_MAX];
	va_list args;

	if (m == to->classic->driving)
		to->classic->driving = NULL;
	va_start(args, format);
	print(text, sizeof(text), format, args);
	va_end(args);
	send_error(to, m->header.frame.serial, name, text);
}

void driver_error_serial(struct cpeer *to, uint32_t serial, const char *name, const char *format,
			 ...)
{
	char text[ERROR_TEXT_MAX];
	va_list args;

	va_start(args, format);
	print(text, sizeof(text), format, args);
	va_end(args);
	send_error(to, serial, name, text);
}

/* ---- arguments ---- */

struct dbusp_str driver_arg_string(struct driver_call *call)
{
	struct dbusp_str s = { "", 0 };

	dbusp_read_text(&call->args, 's', &s);
	return s;
}

uint32_t driver_arg_u32(struct driver_call *call)
{
	uint32_t u = 0;

	dbusp_read_fixed(&call->args, 'u', &u);
	return u;
}

bool driver_is_privileged(const struct cpeer *c)
{
	return !c->anonymous && (c->uid == 0 || c->uid == geteuid());
}

/* ---- finding a method ---- */

static bool is(struct dbusp_str s, const char *name)
{
	return s.len == strlen(name) && !memcmp(s.s, name, s.len);
}

static bool at_driver_path(const struct cmsg *m)
{
	return is(m->header.path, CLASSIC_DRIVER_PATH);
}

/* Of org.freedesktop.DBus every object knows the methods, even those that it refuses. */
static bool is_known_at(const struct driver_method *method, const struct cmsg *m)
{
	return method->flags & DRIVER_ANY_PATH || at_driver_path(m) ||
	       !strcmp(method->interface, CLASSIC_DRIVER);
}

static const struct driver_method *find(const struct cmsg *m, bool *ret_interface)
{
	const struct driver_table *const *table;
	const struct driver_method *method;
	size_t i;

	*ret_interface = !m->header.interface.s;
	for (table = driver_tables; *table; table++) {
		for (i = 0; i < (*table)->n_methods; i++) {
			method = &(*table)->methods[i];
			if (m->header.interface.s && !is(m->header.interface, method->interface))
				continue;
			if (!is_known_at(method, m))
				continue;
			*ret_interface = true;
			if (is(m->header.member, method->name))
				return method;
		}
	}
	return NULL;
}

static void refuse_early(struct cpeer *from, const struct cmsg *m)
{
	driver_error(from, m, DBUS_ERROR("AccessDenied"),
		     "Client tried to send a message other than Hello without being registered");
}

/* Whether the method may be called like that; if not the caller was told. */
static bool check(struct cpeer *from, const struct cmsg *m, const struct driver_method *method)
{
	const char *signature = m->header.signature.s ? m->header.signature.s : "";

	if (!(method->flags & DRIVER_ANY_PATH) && !at_driver_path(m)) {
		driver_error(from, m, DBUS_ERROR("AccessDenied"),
			     "Method '%s' is only available at the canonical object path '%s'",
			     method->name, CLASSIC_DRIVER_PATH);
		return false;
	}
	if (method->flags & DRIVER_PRIVILEGED && !driver_is_privileged(from)) {
		cpeer_log(from, "rejected attempt to call %s", method->name);
		driver_error(from, m, DBUS_ERROR("AccessDenied"),
			     "Sender is not authorized to send message");
		return false;
	}
	if (strcmp(signature, method->in)) {
		driver_error(from, m, DBUS_ERROR("InvalidArgs"),
			     "Call to %s has wrong args (%s, expected %s)\n", method->name,
			     signature, method->in);
		return false;
	}
	return true;
}

static void unknown(struct cpeer *from, const struct cmsg *m, bool interface)
{
	driver_error(from, m,
		     interface ? DBUS_ERROR("UnknownMethod") : DBUS_ERROR("UnknownInterface"),
		     "%s does not understand message %s", CLASSIC_DRIVER, m->header.member.s);
}

void driver_call(struct cpeer *from, struct cmsg *m)
{
	const struct driver_method *method;
	struct driver_call call; /* its reader is large: it is filled in when it is needed */
	bool interface;

	if (m->header.frame.type != DBUSP_METHOD_CALL) {
		driver_activation_failure(from, m);
		return;
	}
	method = find(m, &interface);
	if (!m->header.destination.s && (!method || !(method->flags & DRIVER_NO_DESTINATION))) {
		driver_error(from, m, DBUS_ERROR("UnknownMethod"),
			     "Method \"%s\" with signature \"%s\" on interface \"%s\" doesn't "
			     "exist\n",
			     m->header.member.s, m->header.signature.s ? m->header.signature.s : "",
			     m->header.interface.s ? m->header.interface.s : "(null)");
		return;
	}
	if (from->state == CPEER_NEW && !(method && method->flags & DRIVER_BEFORE_HELLO)) {
		refuse_early(from, m);
		return;
	}
	/* Hello is beyond the policy: who may connect may say it. */
	if (from->state != CPEER_NEW && m->header.destination.s &&
	    !access_may_pass(&from->peer, NULL, m))
		return;
	if (!method) {
		unknown(from, m, interface);
		return;
	}
	if (!check(from, m, method))
		return;
	call.classic = from->classic;
	call.from = from;
	call.m = m;
	dbusp_reader_init(&call.args, &m->header, m->body);
	from->classic->driving = m;
	method->run(&call);
	/* Of what was refused nobody else learns, but for monitors. */
	if (from->classic->driving == m)
		route_eavesdrop(from, m);
	from->classic->driving = NULL;
}
