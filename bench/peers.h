/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BENCH_PEERS_H
#define BENCH_PEERS_H

/**
 * DOC: transports that depend on what was there at build time; NULL if it was not
 */

#include "transport.h"

#ifdef HAVE_SDBUS
#define TRANSPORT_SDBUS (&transport_sdbus)
#else
#define TRANSPORT_SDBUS NULL
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

#endif
