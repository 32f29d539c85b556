/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef DAEMON_PEER_H
#define DAEMON_PEER_H

/*
 * peer.h - a connection of the bus, as other connections meet it
 *
 * 1. There are native clients, who have lanes (client.h), and classic ones, who speak D-Bus over a
 *    stream socket (classic/classic.h). Both share ids, names and notifications, which
 *    are core's; code that needs lanes asks for the kind first.
 * 2. What the socket says is known of a native client from the start, and of a classic one, who
 *    comes and goes faster, when somebody asks: peer_creds(). The rest is read as it is needed
 *    (reading.h).
 * 3. A native peer on a bus of the module is a third kind (classic/module/module.h).
 */

#include "conn.h"
#include "creds.h"

struct daemon;
struct account;
struct policy_view;
struct reading;
struct waiter;

enum peer_kind {
	PEER_NATIVE,
	PEER_CLASSIC,
	PEER_REMOTE,
};

/*
 * @conn:	its connection; not known on the bus before HELLO
 * @creds:	who it is; NULL of a classic one nobody has asked for, see peer_creds()
 * @reading:	what is being read of it (readers.c)
 * @askers:	clients whose request waits for that
 * @fake:	it told other credentials (struct client has them)
 * @view:	what the policy of the classic front-end says about it (classic/access.h)
 * @callers:	struct link of those who called it through the daemon
 * @calling:	struct link of those it called
 * @owed:	struct call of classic peers that wait for it (classic/reply.c)
 * @waiting:	names it waits for, where @conn has only those it owns; or NULL
 * @starting, @starting_fds: bytes and descriptors of what it sent to services that are being
 *		started (classic/activate.c)
 * @starts:	what they are of; NULL: nothing
 */
#define PEER_FIELDS                       \
	struct core_conn conn;            \
	enum peer_kind kind;              \
	bool fake;                        \
	struct daemon *daemon;            \
	struct creds *creds;              \
	struct reading *reading;          \
	struct list_head askers;          \
	struct account *account;          \
	char *description;                \
	struct policy_view *view;         \
	struct rb_root callers;           \
	struct list_head calling;         \
	struct list_head owed;            \
	struct core_name_holder *waiting; \
	size_t starting;                  \
	unsigned int starting_fds;        \
	struct waiter *starts

/**
 * struct peer - what both kinds begin with: see PEER_FIELDS
 */
struct peer {
	PEER_FIELDS;
};

/* In a structure: the fields of a peer, and the peer as a whole */
#define PEER                         \
	union {                      \
		struct peer peer;    \
		struct {             \
			PEER_FIELDS; \
		};                   \
	}

static inline struct peer *peer_of(const struct core_conn *conn)
{
	return container_of((struct core_conn *)conn, struct peer, conn);
}

/**
 * peer_creds() - who a peer is, as far as it is known
 *
 * Return: its credentials, which live as long as it; NULL: there is no memory.
 */
struct creds *peer_creds(struct peer *p);

int peer_sock(const struct peer *p);
/* The reading of it is over: what waited for that goes on. */
void peer_read(struct peer *p);
/* Those who asked for it have to ask again: something is known, or it has gone. */
void peer_wake_askers(struct peer *p);

#endif
