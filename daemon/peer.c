// SPDX-License-Identifier: LGPL-2.1-or-later
#include "peer.h"

#include "classic/bridge.h"
#include "client.h"

struct creds *peer_creds(struct peer *p)
{
	if (!p->creds && p->kind == PEER_CLASSIC)
		bridge_identify(p);
	return p->creds;
}

int peer_sock(const struct peer *p)
{
	return p->kind == PEER_NATIVE ? client_of(&p->conn)->channel.sock : bridge_sock(p);
}

void peer_wake_askers(struct peer *p)
{
	struct client *c, *next;

	list_for_each_entry_safe(c, next, &p->askers, asking_entry) {
		list_del_init(&c->asking_entry);
		client_heat(c);
	}
}

void peer_read(struct peer *p)
{
	peer_wake_askers(p);
	if (p->kind == PEER_NATIVE)
		client_was_read(client_of(&p->conn));
	else
		bridge_was_read(p);
}
