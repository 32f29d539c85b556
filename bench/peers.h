/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BENCH_PEERS_H
#define BENCH_PEERS_H

/**
 * DOC: what libkdbus is measured next to
 *
 * The brokers are the buses that speak D-Bus. To measure another one, give it a
 * bus_kind and an entry in the table of peers.c (how tables call it) and in that
 * of bus.c (how it is started): then every subcommand that measures buses
 * measures it, with every client library.
 *
 * Transports that depend on what was there at build time are NULL if it was not.
 */

#include "set.h"

#ifdef HAVE_SDBUS
#define TRANSPORT_SDBUS	       (&transport_sdbus)
#define TRANSPORT_SDBUS_FANOUT (&transport_sdbus_fanout)
#else
#define TRANSPORT_SDBUS	       NULL
#define TRANSPORT_SDBUS_FANOUT NULL
#endif

#ifdef HAVE_LIBDBUS
#define TRANSPORT_LIBDBUS (&transport_libdbus)
#else
#define TRANSPORT_LIBDBUS NULL
#endif

#ifdef HAVE_GDBUS
#define TRANSPORT_GDBUS (&transport_gdbus)
#else
#define TRANSPORT_GDBUS NULL
#endif

#define PACKAGE_SDBUS	"libsystemd-dev"
#define PACKAGE_LIBDBUS "libdbus-1-dev"
#define PACKAGE_GDBUS	"libglib2.0-dev"

/* What the D-Bus clients of this program talk about. */
#define PEER_PATH      "/org/kdbus/bench"
#define PEER_INTERFACE "org.kdbus.bench"
#define PEER_METHOD    "Put"

/* What one message may carry in payload vectors (ABI 2). */
#define PEER_KDBUS_MAX	 (2U << 20)
#define PEER_KDBUS_LIMIT "a message takes 2 MiB in payload vectors; more goes in a memfd"

/**
 * struct lineup - subjects of a run, being put together
 * @brokers: names of those that are brokers of others, for verdicts
 * @peers: names of all but the first one and those of this project, likewise
 */
struct lineup {
	struct subject subjects[SET_MAX];
	unsigned int n;
	const char *brokers[SET_MAX];
	unsigned int n_brokers;
	const char *peers[SET_MAX];
	unsigned int n_peers;
};

/** peers_add() - add a subject */
void peers_add(struct lineup *l, const struct subject *subject);

/** peers_add_brokers() - add each broker, talked to by @transport, which @package brings */
void peers_add_brokers(struct lineup *l, const struct transport *transport, const char *package);

/** peers_add_clients() - add each broker with each client library, named after both */
void peers_add_clients(struct lineup *l);

/** peers_add_direct() - add each client library talking to itself over a socket, without a bus */
void peers_add_direct(struct lineup *l);

/** peers_standard() - libkdbus, the brokers through sd-bus, and a socket if @socket */
void peers_standard(struct lineup *l, bool socket);

/** peers_columns() - a plain column for each subject, into l->n of @ret */
void peers_columns(const struct lineup *l, enum job_kind kind, struct column *ret);

#endif
