/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The authentication before the first message: the server's side, and a client's.
 *
 * Both are state machines without buffers. The caller keeps what it received, gives it to step()
 * and drops what step() says it consumed; what is left is the start of a line that is not
 * complete yet, or - when it is over - the start of the first message. So input may come byte by
 * byte or with the messages behind it in one piece (pipelined).
 *
 * 1. The server follows the state table of the specification ("Server states"). ERROR is never
 *    fatal: an unknown or misplaced command is answered with it and changes nothing.
 * 2. A client is disconnected for: a first byte other than NUL, BEGIN before it is authenticated,
 *    a line longer than DBUSP_SASL_LINE_MAX, the DBUSP_SASL_REJECTS_MAX-th rejection, or more than
 *    DBUSP_SASL_LINES_MAX lines.
 * 3. Who the client is comes from the socket. EXTERNAL may name that uid in decimal, or nothing;
 *    anything else is rejected, login names included.
 * 4. ANONYMOUS is refused unless configured. DBUS_COOKIE_SHA1 is always refused: it would need the
 *    home directories of all users. Neither is then listed in REJECTED.
 * 5. Work is linear in the input, also byte by byte.
 *
 * No I/O, no allocation, no globals: any thread, one object at a time.
 * D-Bus specification, "Authentication Protocol".
 */
#ifndef DBUSP_SASL_H
#define DBUSP_SASL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dbus/why.h"

#define DBUSP_SASL_LINE_MAX 16384	/* bytes, "\r\n" included */
#define DBUSP_SASL_LINES_MAX 128	/* lines from one client */
#define DBUSP_SASL_REJECTS_MAX 6
#define DBUSP_SASL_REPLY_MAX 128	/* bytes of the longest reply to one line */
#define DBUSP_GUID_LEN 32		/* hex digits */

enum dbusp_sasl_mech {
	DBUSP_SASL_NONE = 0,
	DBUSP_SASL_EXTERNAL = 1 << 0,
	DBUSP_SASL_ANONYMOUS = 1 << 1,
};

/* What a server offers; the same for all clients of a listening socket. */
struct dbusp_sasl_config {
	unsigned int mechanisms;	/* enum dbusp_sasl_mech */
	bool fds;			/* the transport can pass descriptors */
	char guid[DBUSP_GUID_LEN + 1];	/* of the address, hex */
};

/* What step() reports. */
enum dbusp_sasl_result {
	DBUSP_SASL_MORE = 0,	/* give it more input, or more room for output */
	DBUSP_SASL_DONE = 1,	/* authenticated; messages follow */
	DBUSP_SASL_CLOSE = 2,	/* send the output, then disconnect */
};

struct dbusp_sasl_server {
	const struct dbusp_sasl_config *config;
	bool have_uid;
	uint32_t uid;		/* of the socket's peer */
	uint8_t state;
	uint8_t mech;		/* in use or, in the end, used: enum dbusp_sasl_mech */
	bool asked;		/* EXTERNAL: the empty challenge was sent */
	bool fds;		/* descriptors were agreed on */
	uint8_t rejects, lines;
	uint16_t scanned;	/* bytes of an incomplete line without "\r\n" */
	enum dbusp_why why;	/* of the last REJECTED or of DBUSP_SASL_CLOSE */
};

/**
 * dbusp_sasl_server_init() - start to authenticate a client
 * @server: storage of the caller
 * @config: what is offered; must outlive @server
 * @uid: user id of the peer, as the kernel vouches for it; (uint32_t)-1 if it is not known, which
 *	makes EXTERNAL fail
 */
void dbusp_sasl_server_init(struct dbusp_sasl_server *server,
			    const struct dbusp_sasl_config *config, uint32_t uid);

/**
 * dbusp_sasl_server_step() - answer whatever lines are complete
 * @server: a server
 * @in: received bytes that were not consumed before, then new ones
 * @in_len: their number
 * @ret_consumed: how many of them are done with
 * @out: where replies go
 * @out_size: room there; at least DBUSP_SASL_REPLY_MAX, else a line may have to wait for more
 * @ret_written: bytes to send
 *
 * Stops after BEGIN, at an incomplete line, or when less than DBUSP_SASL_REPLY_MAX bytes are left
 * at @out. After DBUSP_SASL_MORE: if bytes were written, send them and call again (there may be
 * another line); if not, read on.
 *
 * Return: enum dbusp_sasl_result. After DBUSP_SASL_DONE server->mech and server->fds are final;
 * after DBUSP_SASL_CLOSE server->why has the reason.
 */
enum dbusp_sasl_result dbusp_sasl_server_step(struct dbusp_sasl_server *server, const void *in,
					      size_t in_len, size_t *ret_consumed, void *out,
					      size_t out_size, size_t *ret_written);

struct dbusp_sasl_client {
	uint8_t state;
	uint8_t mech;
	bool want_fds;
	bool fds;			/* the server agreed */
	uint16_t scanned;
	uint32_t uid;
	char guid[DBUSP_GUID_LEN + 1];	/* what the server said in OK, once it did */
	enum dbusp_why why;		/* of DBUSP_SASL_CLOSE */
};

/**
 * dbusp_sasl_client_init() - start to authenticate at a server
 * @client: storage of the caller
 * @mech: DBUSP_SASL_EXTERNAL or DBUSP_SASL_ANONYMOUS
 * @uid: EXTERNAL: user id to claim; (uint32_t)-1 leaves it to the server, as a client in another
 *	user namespace must
 * @fds: ask for descriptor passing; a server that refuses is no error
 */
void dbusp_sasl_client_init(struct dbusp_sasl_client *client, enum dbusp_sasl_mech mech,
			    uint32_t uid, bool fds);

/**
 * dbusp_sasl_client_step() - as dbusp_sasl_server_step(), for a client
 * @client: a client
 * @in: received bytes that were not consumed before, then new ones; none in the first call
 * @in_len: their number
 * @ret_consumed: how many of them are done with
 * @out: where commands go
 * @out_size: room there; at least DBUSP_SASL_REPLY_MAX, else nothing happens
 * @ret_written: bytes to send, also after DBUSP_SASL_DONE (BEGIN)
 *
 * Return: enum dbusp_sasl_result; after DBUSP_SASL_CLOSE client->why has the reason.
 */
enum dbusp_sasl_result dbusp_sasl_client_step(struct dbusp_sasl_client *client, const void *in,
					      size_t in_len, size_t *ret_consumed, void *out,
					      size_t out_size, size_t *ret_written);

#endif
