/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef CLASSIC_MODULE_MODULE_H
#define CLASSIC_MODULE_MODULE_H

/*
 * module.h - a bus of kdbus.ko behind the front-end
 *
 * 1. The module alone decides who is on the bus, who owns which name, and which native peer may
 *    send what to whom. Each classic peer has a connection of its own there, with its ids, pid and
 *    label: what native peers send to it comes in by that, and what it sends to them goes out by
 *    it. A native peer is a struct remote here.
 * 2. The roster is a copy (mirror.c). It follows the notifications that the *ear* gets, and nothing
 *    else; what the ear misses is made up for by a look at the whole list. So NameOwnerChanged,
 *    NameAcquired and NameLost are told of what has happened on the bus, in that order.
 * 3. A *look* (look.c) takes what the module has for the daemon: notifications, broadcasts, which
 *    the *listener* gets once for all classic peers, and messages for one. It takes a cut that is
 *    closed under cause and effect, and acts on it in the order of sending. There is one at the
 *    beginning of each round, and one after each command that changes something, before its
 *    answer: so signals come first.
 * 4. A look is not made inside another.
 * 5. Messages to a name that could be activated wait at an activator (starter.c).
 * 6. A classic peer that has as much waiting as it may have is not received for: its messages stay
 *    in the module, where the limits of the module meet their senders.
 */

#include "daemon/classic/carrier.h"
#include "daemon/classic/classic.h"
#include "daemon/classic/timer.h"
#include "kconn.h"
#include "names.h"

struct module;

enum inlet_kind {
	INLET_EAR, /* notifications; commands of the daemon */
	INLET_LISTENER, /* broadcasts */
	INLET_PEER, /* for a classic peer */
	INLET_STARTER, /* for a service that is not there */
};

/**
 * struct inlet - a connection that something comes in by
 * @events:	what epoll waits for, 0: nothing for now
 * @swept:	last sweep that found it ready
 */
struct inlet {
	enum inlet_kind kind;
	struct kconn conn;
	uint32_t events;
	u64 swept;
};

/**
 * struct link_to_module - what a classic peer has on the module (cpeer.link)
 * @waiting:	names it waits for, in module.waiting
 * @held_entry:	in module.held_back: it has no room
 */
struct link_to_module {
	struct inlet inlet;
	struct cpeer *peer;
	struct core_name_holder waiting;
	struct list_head held_entry;
};

/**
 * struct remote - a connection that is none of a classic peer: a native one, or one of ours
 * @entry:	in module.remotes
 * @ours:	nobody is told of it
 * @asked:	who it is has been asked for; @peer.creds is the answer, NULL: it does not show
 * @learnt:	a message of it was asked, too
 * @listed:	last listing that it was in
 */
struct remote {
	PEER;
	struct list_head entry;
	bool ours;
	bool asked;
	bool learnt;
	u64 listed;
};

static inline struct remote *remote_of(struct peer *p)
{
	return container_of(p, struct remote, peer);
}

/**
 * struct starter - the activator of a service
 * @ready_entry: in module.ready_starters: something waits here
 * @busy:	... for which it is being started
 * @returned:	its name has just come back from an owner
 * @again:	it could not be opened, and will be tried again
 * @listed:	last configuration that had it
 */
struct starter {
	struct inlet inlet;
	struct list_head entry;
	struct list_head ready_entry;
	char *name;
	bool busy;
	bool returned;
	struct timeout again;
	struct module *module;
	u64 listed;
};

/**
 * struct arrival - a message that was taken up and not yet acted on
 * @incomplete:	not all of its descriptors could be taken
 * @taken:	those it has are somebody else's now
 * @seq:	number of the bus
 * @order:	in which it was taken up
 */
struct arrival {
	struct inlet *inlet;
	const struct kdbus_msg *msg;
	bool incomplete;
	bool taken;
	u64 seq;
	size_t order;
};

/**
 * struct module - the bus
 * @node:	path of its endpoint
 * @ear, @listener: see above
 * @standin:	answers in the place of services that cannot be started
 * @epoll, @source: all inlets, as one
 * @remotes:	all struct remote, in the order of their coming
 * @waiting:	what classic peers wait for
 * @starters:	struct starter.entry
 * @ready_starters: those at which something waits
 * @held_back:	struct link_to_module.held_entry (rule 6)
 * @looking:	rule 4
 * @lost:	the ear has missed something
 * @sweep:	number of the last sweep over inlets
 * @listing:	number of the last listing
 * @arrivals:	@n_arrivals of the look, of @room
 * @echoes:	broadcasts of classic peers since the last look
 * @complaints:	what is logged of native peers
 */
struct module {
	struct classic *classic;
	char *node;
	struct inlet ear;
	struct inlet listener;
	struct kconn standin;
	int epoll;
	struct source source;
	struct list_head remotes;
	struct core_names waiting;
	struct list_head starters;
	struct list_head ready_starters;
	struct list_head held_back;
	bool looking;
	bool lost;
	u64 sweep;
	u64 listing;
	struct arrival *arrivals;
	size_t n_arrivals, room;
	unsigned int echoes;
	struct log_rate complaints;
};

static inline struct module *module_of(const struct classic *k)
{
	return k->carrier_data;
}

/* module.c */
int inlet_open(struct module *m, struct inlet *inlet, enum inlet_kind kind,
	       const struct kconn_hello *hello);
void inlet_close(struct module *m, struct inlet *inlet);
/* Wait for what comes in, or do not for now. */
void inlet_watch(struct module *m, struct inlet *inlet, bool wanted);

/* look.c */
void module_look(struct classic *k);
/* At the end of a round: who has room again? */
void module_settle(struct classic *k);

/* mirror.c */
/* What the ear has heard */
void mirror_hear(struct module *m, const struct kdbus_msg *msg);
/* Make up for what it has missed. */
void mirror_renew(struct module *m);
/* -ENOMEM; one that is known already is no error. */
int mirror_add(struct module *m, u64 id, enum core_kind kind, bool ours);
/* A peer is no longer on the bus. */
void mirror_remove(struct module *m, struct peer *p);
void mirror_forget(struct module *m, struct remote *remote);
/* Make a connection of the roster for an id of the module. */
int mirror_link(struct module *m, struct peer *p, u64 id, enum core_kind kind);
struct peer *mirror_find(struct module *m, u64 id);
struct creds *mirror_creds(struct peer *p);
void mirror_learn(struct peer *p, const struct kdbus_msg *msg);

/* claims.c: names of classic peers */
int claim_name(struct cpeer *c, const char *name, uint64_t flags, uint64_t *ret_flags);
int claim_release(struct cpeer *c, const char *name);
void claim_waits_no_more(struct module *m, struct peer *p, const char *name);
void claim_drop_all(struct module *m, struct link_to_module *link);
void claims_each(struct classic *k, const char *name, void (*visit)(const char *unique, void *data),
		 void *data);

/* send.c */
int module_send(struct cpeer *from, struct peer *to, struct cmsg *m);
void module_broadcast(struct classic *k, struct cmsg *m);
/* @from NULL: the stand-in */
int module_answer(struct peer *from, struct peer *to, struct cmsg *m);
/* Answer a call, if it is one, by an error of the bus, as from this peer or the stand-in. */
void module_refuse(struct module *m, struct cpeer *by, const struct kdbus_msg *call,
		   const char *error, const char *text);

/* receive.c */
void module_receive(struct module *m, struct cpeer *to, struct arrival *a);
void module_hear_broadcast(struct module *m, struct arrival *a);
/* Close the descriptors that came with it, and free it. */
void module_discard(struct module *m, const struct arrival *a);
/* May it start a service? As incoming_begin() */
int module_may_start(struct module *m, const struct kdbus_msg *msg, struct peer **ret_from);

/* starter.c */
void starters_renew(struct module *m);
void starters_free(struct module *m);
void starter_ready(struct module *m, struct starter *s);
/* The name is the activator's again. */
void starter_returned(struct module *m, const char *name);
void starter_ended(struct activation *a);
void starter_fail(struct activation *a, struct waiter *w, const char *error, const char *text);

#endif
