/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef CLASSIC_ACCESS_H
#define CLASSIC_ACCESS_H

/*
 * access.h - the policy of the bus, asked about messages and names
 *
 * 1. A policy that allows everything of a kind costs nothing (policy.h).
 * 2. Functions that refuse a message for one tell the sender and the log; those for receivers of
 *    broadcasts tell nobody.
 * 3. Native peers are held to it where they meet classic ones. Among themselves kdbus's own policy
 *    decides.
 */

#include "classic.h"

/* What the policy says about a peer, before Hello. -EPERM: it may not connect; -ENOMEM */
int access_begin(struct cpeer *c);
/* The configuration has changed: the same again. On failure nothing has changed. */
int access_renew(struct cpeer *c);
void access_stop(struct classic *k);
/* Of either kind */
void access_end(struct peer *p);

/* If not, that has been logged; the caller tells the peer. */
bool access_may_own(struct cpeer *c, const char *name);
/* @to NULL: whom the message names: the driver, or a service to be started */
bool access_may_pass(struct peer *from, struct peer *to, struct cmsg *m);
/* May a native peer send whatever it likes to whomever? */
bool access_may_send_anything(struct classic *k, struct peer *p);
/* A signal without a destination: may its sender send it to native peers? */
bool access_may_broadcast(struct cpeer *from, struct cmsg *m);
/* May it get a broadcast? @m->from NULL: of the driver */
bool access_may_receive(struct cpeer *to, struct cmsg *m);
/* May it get everything? Then nobody needs to ask about anything. */
bool access_receives_all(const struct cpeer *to);
/* May it get a message to somebody else? */
bool access_may_eavesdrop(struct cpeer *to, struct cmsg *m);

/* Tell the sender that, and by how many rules, a message is refused; @to NULL: the driver */
void access_complain(struct cpeer *from, struct peer *to, const struct cmsg *m, const char *error,
		     const char *what, unsigned int n_rules);
/* A reply that nobody waits for */
void access_refuse_reply(struct cpeer *from, struct peer *to, struct cmsg *m);
/* The receiver has too much waiting. */
void access_refuse_full(struct cpeer *from, struct cpeer *to, struct cmsg *m);

#endif
