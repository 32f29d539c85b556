/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef CLASSIC_CARRIER_H
#define CLASSIC_CARRIER_H

/*
 * carrier.h - how the front-end reaches the bus that its peers are on
 *
 * 1. A carrier is the bus behind the front-end: this daemon's own engine (local.c, and bridge.h for
 *    its messages), or one of the module (module/module.h). It decides who is on the bus and who
 *    owns which name, keeps the roster (roster.h), and takes messages for native peers.
 * 2. Messages between classic peers do not reach it.
 * 3. Whatever changes, the carrier tells: driver_owner_changed() of names and of native peers,
 *    activate_owned() of names that somebody may wait for. It has done so when the call that
 *    changed it returns, so that signals come before answers.
 * 4. Calls of the carrier must not be made while something walks over peers or rules: they may doom
 *    peers.
 */

#include "activations.h"
#include "classic.h"

/**
 * struct carrier - what a bus does for the front-end
 *
 * @start, @stop: begin and end with it; NULL: there is nothing to do. @start logs why it fails
 * @look:	see what the bus has for it, or NULL
 * @settle:	at the end of a round: what was queued has been sent, or NULL
 *
 * @join:	Hello: make a peer that authenticated a connection of the bus. 0; -ENOMEM; what the
 *		bus says
 * @leave:	end that, with everything that follows: its names go, who waits for it is told
 * @acquire:	ask for a name: KDBUS_NAME_* in, what NAME_ACQUIRE returns out. 0; -EEXIST: somebody
 *		else has it, and it is not queued for; -E2BIG: it has too many; -ENOMEM
 * @release:	give up a name or the wait for it. 0; -ESRCH; -EADDRINUSE: it has neither
 * @set_max_names: how many names it may own or wait for
 * @each_claim:	who owns a name and who waits for it, in that order
 *
 * @is_called:	may @from have a call of native @to to answer?
 * @send:	a message for a native peer, the policy asked, with a head. 0; -ESTALE: the
 *		roster is behind, look; other errno
 * @answer:	an answer of the bus itself to a native peer, as from @from, whom it has called
 * @show:	what goes between two classic peers, to native monitors; @m has a head
 * @broadcast:	a signal, to native peers with a match for it
 *
 * @creds:	who a native peer is, NULL: not known; lives as long as it
 * @socket:	of a native peer, whose other end is in its process; -1: there is none
 * @renew:	the configuration was read again
 *
 * @start_owned: services that native peers wait for: the name has an owner, ahead of the messages
 * @start_ended: ... nothing more will come of it
 * @waiter_free, @waiter_deliver, @waiter_fail: a message of a native peer that waits
 *		(waiter.native)
 */
struct carrier {
	int (*start)(struct classic *k);
	void (*stop)(struct classic *k);
	void (*look)(struct classic *k);
	void (*settle)(struct classic *k);

	int (*join)(struct cpeer *c);
	void (*leave)(struct cpeer *c);
	int (*acquire)(struct cpeer *c, const char *name, uint64_t flags, uint64_t *ret_flags);
	int (*release)(struct cpeer *c, const char *name);
	void (*set_max_names)(struct cpeer *c, unsigned int max);
	void (*each_claim)(struct classic *k, const char *name,
			   void (*visit)(const char *unique, void *data), void *data);

	bool (*is_called)(const struct peer *to, const struct peer *from);
	int (*send)(struct cpeer *from, struct peer *to, struct cmsg *m);
	int (*answer)(struct peer *from, struct peer *to, struct cmsg *m);
	void (*show)(struct peer *from, struct peer *to, struct cmsg *m);
	void (*broadcast)(struct classic *k, struct cmsg *m);

	struct creds *(*creds)(struct peer *p);
	int (*socket)(const struct peer *p);
	void (*renew)(struct classic *k);

	void (*start_owned)(struct activation *a, struct peer *owner);
	void (*start_ended)(struct activation *a);
	void (*waiter_free)(struct waiter *w);
	void (*waiter_deliver)(struct waiter *w, struct peer *owner);
	void (*waiter_fail)(struct activation *a, struct waiter *w, const char *error,
			    const char *text);
};

/* The engine of this daemon (local.c) */
extern const struct carrier carrier_local;
/* kdbus.ko (module/) */
extern const struct carrier carrier_module;

#endif
