// SPDX-License-Identifier: LGPL-2.1-or-later
/* The handshake before the first message: dbus/sasl.h with a socket. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "access.h"
#include "listen.h"
#include "output.h"
#include "timer.h"

/*
 * What a peer needs only until it is on the bus; @line is the beginning of one. @timeout goes on
 * until Hello: those who have not said it keep others out (listen.h).
 */
struct auth {
	struct dbusp_sasl_server server;
	struct timeout timeout;
	struct cpeer *peer;
	size_t have;
	unsigned char *line;
};

static void expired(struct timeout *t)
{
	struct cpeer *c = container_of(t, struct auth, timeout)->peer;

	cpeer_doom(c, "it did not %s in time (auth_timeout=%ldms)",
		   c->state == CPEER_AUTH ? "authenticate" : "say Hello",
		   classic_limits(c->classic)->auth_timeout);
}

int auth_begin(struct cpeer *c)
{
	struct auth *a = calloc(1, sizeof(*a));

	if (!a)
		return -ENOMEM;
	a->peer = c;
	a->timeout.expired = expired;
	dbusp_sasl_server_init(&a->server, &c->listener->sasl, c->uid);
	timeout_set(c->classic, &a->timeout, (u64)classic_limits(c->classic)->auth_timeout);
	c->sasl = a;
	return 0;
}

void auth_free(struct cpeer *c)
{
	if (!c->sasl)
		return;
	timeout_clear(c->classic, &c->sasl->timeout);
	free(c->sasl->line);
	free(c->sasl);
	c->sasl = NULL;
}

static void done(struct cpeer *c)
{
	int r;

	c->fds_ok = c->sasl->server.fds;
	c->anonymous = c->sasl->server.mech == DBUSP_SASL_ANONYMOUS;
	c->state = CPEER_NEW;
	r = access_begin(c);
	if (r < 0)
		cpeer_doom(c, r == -EPERM ? "the policy does not let it connect" :
					    "no memory for its policy");
}

/* Answer what is complete in @in; returns how much of it is done with. */
static size_t step(struct cpeer *c, const unsigned char *in, size_t size)
{
	enum dbusp_sasl_result result;
	size_t used = 0, n, written;
	unsigned char *out;

	do {
		out = output_room(c->classic, 2 * DBUSP_SASL_REPLY_MAX);
		result = dbusp_sasl_server_step(&c->sasl->server, in + used, size - used, &n, out,
						2 * DBUSP_SASL_REPLY_MAX, &written);
		used += n;
		output_add_raw(c, out, written, NULL);
	} while (result == DBUSP_SASL_MORE && written);
	if (result == DBUSP_SASL_DONE) {
		done(c);
	} else if (result == DBUSP_SASL_CLOSE) {
		output_flush(c);
		cpeer_doom(c, "authentication failed: %s", dbusp_why_str(c->sasl->server.why));
	}
	return used;
}

/* The state machine wants what it left in front of what comes; it bounds its length. */
static int keep(struct auth *a, const unsigned char *data, size_t size)
{
	unsigned char *line = size ? malloc(size) : NULL;

	if (size && !line)
		return -ENOMEM;
	if (size)
		memcpy(line, data, size);
	free(a->line);
	a->line = line;
	a->have = size;
	return 0;
}

static int join(struct auth *a, const unsigned char *data, size_t size)
{
	unsigned char *line = realloc(a->line, a->have + size);

	if (!line)
		return -ENOMEM;
	memcpy(line + a->have, data, size);
	a->line = line;
	a->have += size;
	return 0;
}

void auth_take(struct cpeer *c, const unsigned char *data, size_t size, size_t *ret_consumed)
{
	struct auth *a = c->sasl;
	size_t before = a->have, used;
	unsigned char *line = NULL;
	int r = 0;

	if (before) {
		r = join(a, data, size);
		line = a->line;
		a->line = NULL;
	}
	used = r < 0 ? 0 : step(c, line ? line : data, before + size);
	*ret_consumed = used > before ? used - before : 0;
	if (c->state == CPEER_AUTH && r == 0) {
		r = line ? keep(a, line + used, before + size - used) :
			   keep(a, data + used, size - used);
		*ret_consumed = size;
	}
	free(line);
	if (r < 0)
		cpeer_doom(c, "no memory for its authentication");
}
