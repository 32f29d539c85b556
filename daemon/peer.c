// SPDX-License-Identifier: LGPL-2.1-or-later
#include "peer.h"

#include "classic/bridge.h"

struct creds *peer_creds(struct peer *p)
{
	if (!p->creds && p->kind == PEER_CLASSIC)
		bridge_read_creds(p);
	return p->creds;
}
