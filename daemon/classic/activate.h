/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef CLASSIC_ACTIVATE_H
#define CLASSIC_ACTIVATE_H

/*
 * activate.h - services that are started because somebody wants to talk to them
 *
 * 1. An *activation* is a name that is being started. There is one per name; everybody who asks
 *    meanwhile joins it and waits: with a message to be delivered, or for StartServiceByName.
 * 2. It ends once: the name gets an owner, or its program fails, or time is up. Then everybody who
 *    waits gets what he waited for, or the error, in the order in which they asked. The next one
 *    who asks starts it anew.
 * 3. A program that ends with status 0 may have left a daemon behind: the wait goes on.
 * 4. The policy is asked before anything is started or held, and again at the delivery.
 * 5. What waits counts against its sender (max_incoming_bytes) and the account of his user, and
 *    ends with him.
 * 6. Native peers may start services, too. Until the name has an owner a *stand-in* is the other
 *    end of their calls: a connection nobody can see or talk to. Then the calls move to the owner,
 *    as they do between an activator and an owner (ABI 10.6), before the messages; if the service
 *    cannot be started the stand-in answers with the error of D-Bus.
 * 7. With systemd activation, a service that names a unit is systemd's to start. If systemd is not
 *    on the bus yet the request waits for it.
 *
 * D-Bus specification, "Message Bus Starting Services (Activation)".
 */

#include "classic.h"

int activations_init(struct classic *k);
/* Programs that were started go on. */
void activations_free(struct classic *k);

/**
 * activate_for_message() - a message to a name without owner
 * @from: sender
 * @m:    message, not marked NO_AUTO_START
 *
 * Return: true: it is held, or was answered; false: the name cannot be activated.
 */
bool activate_for_message(struct cpeer *from, struct cmsg *m);

/* Would a message to this name, which nobody owns, make the bus ask systemd for a unit? */
bool activate_asks_systemd(const struct classic *k, struct dbusp_str name);

/**
 * activate_for_native() - a message of a native peer to a name that does not exist
 * @relay:   checked
 * @ret_dst: the stand-in
 *
 * Return: 0: it is held; once its sender knows, call activate_begin(); -ESRCH: the name cannot be
 * activated, or not by this message; -EBADMSG: it is no D-Bus message, and services are called with
 * those; -EPERM: the policy does not let it pass; -ENOBUFS: too much waits already; -EMFILE;
 * -ENOMEM.
 */
int activate_for_native(const struct relay *relay, struct core_dst *ret_dst);

/* Start what activate_for_native() made. */
void activate_begin(struct classic *k);

/**
 * activate_owned() - a name has got an owner
 * @name:  the name
 * @owner: of any kind
 *
 * Delivers what waited for it.
 */
void activate_owned(struct classic *k, const char *name, struct peer *owner);

/* A peer has gone: what it had waiting is dropped, whatever others have. */
void activate_end(struct classic *k, struct peer *p);

#endif
