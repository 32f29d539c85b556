// SPDX-License-Identifier: LGPL-2.1-or-later
#include "peers.h"

/*
 * @name: as a bus by itself; @nick: together with the name of a client library
 * @own: of this project: measured, but nothing that it would have to be compared with
 */
static const struct {
	const char *name;
	const char *nick;
	bool own;
} brokers[N_BUSES] = {
	[BUS_DBUS_DAEMON] = { "dbus-daemon", "daemon" },
	[BUS_DBUS_BROKER] = { "dbus-broker", "broker" },
	[BUS_KDBUSD] = { "kdbusd", "kdbusd", true },
};

static const struct {
	const char *name;
	const struct transport *transport;
	const char *package;
} clients[] = {
	{ "libdbus", TRANSPORT_LIBDBUS, PACKAGE_LIBDBUS },
	{ "sd-bus", TRANSPORT_SDBUS, PACKAGE_SDBUS },
	{ "GDBus", TRANSPORT_GDBUS, PACKAGE_GDBUS },
};
#define N_CLIENTS (sizeof(clients) / sizeof(clients[0]))

void peers_add(struct lineup *l, const struct subject *subject)
{
	bool broker = subject->bus >= BUS_FIRST_BROKER;
	bool own = broker && brokers[subject->bus].own;

	if (l->n > 0 && !own)
		l->peers[l->n_peers++] = subject->name;
	if (broker && !own)
		l->brokers[l->n_brokers++] = subject->name;
	l->subjects[l->n++] = *subject;
}

void peers_add_brokers(struct lineup *l, const struct transport *transport, const char *package)
{
	unsigned int i;

	for (i = 0; i < N_BROKERS; i++)
		peers_add(l, &(struct subject){ .name = brokers[BUS_FIRST_BROKER + i].name,
						.bus = BUS_FIRST_BROKER + i,
						.transport = transport,
						.package = package });
}

void peers_add_direct(struct lineup *l)
{
	static char names[N_CLIENTS][32];
	unsigned int i;

	for (i = 0; i < N_CLIENTS; i++) {
		snprintf(names[i], sizeof(names[i]), "direct %s", clients[i].name);
		peers_add(l, &(struct subject){ .name = names[i],
						.transport = clients[i].transport,
						.package = clients[i].package });
	}
}

void peers_add_clients(struct lineup *l)
{
	static char names[N_BROKERS][N_CLIENTS][32];
	unsigned int i, j;

	_Static_assert((N_BROKERS + 1) * N_CLIENTS + 2 <= SET_MAX, "room for all");
	for (i = 0; i < N_BROKERS; i++)
		for (j = 0; j < N_CLIENTS; j++) {
			snprintf(names[i][j], sizeof(names[i][j]), "%s %s",
				 brokers[BUS_FIRST_BROKER + i].nick, clients[j].name);
			peers_add(l, &(struct subject){ .name = names[i][j],
							.bus = BUS_FIRST_BROKER + i,
							.transport = clients[j].transport,
							.package = clients[j].package });
		}
}

void peers_standard(struct lineup *l, bool socket)
{
	*l = (struct lineup){ .n = 0 };
	peers_add(l, &(struct subject){
			     .name = "libkdbus", .bus = BUS_KDBUS, .transport = &transport_user });
	peers_add_brokers(l, TRANSPORT_SDBUS, PACKAGE_SDBUS);
	if (socket)
		peers_add(l, &(struct subject){ .name = "socket", .transport = &transport_stream });
}

void peers_columns(const struct lineup *l, enum job_kind kind, struct column *ret)
{
	unsigned int i;

	for (i = 0; i < l->n; i++)
		ret[i] = (struct column){ .subject = i, .kind = kind };
}
