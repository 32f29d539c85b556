/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef DAEMON_STARTUP_H
#define DAEMON_STARTUP_H

/*
 * startup.h - the way of a D-Bus bus into service, in dbus-daemon's order
 *
 * 1. The configuration is read and checked before anything is made; then the process goes to the
 *    background, if it is to.
 * 2. The domain and the sockets are made, the pid file is written, and only then the user changes.
 * 3. Addresses and pid are printed last, when programs can connect.
 * 4. Without --domain the bus gets a private one, which goes with it: daemons started side by side
 *    do not meet.
 * 5. What fails has been logged.
 */

#include "background.h"
#include "classic/classic.h"
#include "options.h"

/**
 * struct startup - a bus on its way
 * @options:	what was asked for
 * @config:	configuration; NULL: there is no classic bus
 * @domain:	directory of the domain
 * @private_domain: it was made for this bus
 * @bus_name:	name of the bus in it
 * @pidfile:	that was written and is to be removed, or NULL
 * @background: from background_start(), or -1
 * @change_user: become @uid, @gid
 */
struct startup {
	const struct options *options;
	struct config *config;
	char *domain;
	bool private_domain;
	char bus_name[64];
	char *pidfile;
	int background;
	bool change_user;
	uid_t uid;
	gid_t gid;
};

/* Before there are threads. Return: 0; negative errno. Deinit it in any case. */
int startup_begin(struct startup *s, const struct options *o);
/* The bus is there: serve classic peers, if that was asked for. */
int startup_serve(struct startup *s, struct bus *bus, const struct carrier *carrier);
/* All sockets are there; @bus is NULL where the module alone serves. */
int startup_end(struct startup *s, const struct bus *bus);
void startup_deinit(struct startup *s);

#endif
