/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef CLASSIC_ACCESS_H
#define CLASSIC_ACCESS_H

/*
 * access.h - the policy of the bus, asked about messages and names
 *
 * Functions that refuse tell the sender; those for receivers of broadcasts do not.
 */

#include "classic.h"

/* What the policy says about a peer, before Hello. Return: 0; -EPERM: it may not connect; -ENOMEM. */
int access_begin(struct cpeer *c);
/* The configuration has changed: the same again. */
int access_renew(struct cpeer *c);
void access_end(struct cpeer *c);

bool access_may_own(struct cpeer *c, const char *name);
/* @to: of either kind, or NULL: the driver */
bool access_may_pass(struct cpeer *from, struct peer *to, struct cmsg *m);
/* A signal without a destination: may its sender send it at all? */
bool access_may_broadcast(struct cpeer *from, struct cmsg *m);
/* May it get a broadcast? @m->from NULL: of the driver */
bool access_may_receive(struct cpeer *to, struct cmsg *m);
bool access_may_eavesdrop(struct cpeer *to, struct cmsg *m);
/* Tell the sender that, and by how many rules, a message is refused; @to NULL: the driver */
void access_complain(struct cpeer *from, const struct cpeer *to, const struct cmsg *m,
		     const char *error, const char *what, unsigned int n_rules);
/* The receiver has too much waiting. */
void access_refuse_full(struct cpeer *from, struct cpeer *to, struct cmsg *m);

#endif
