/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef CLASSIC_BRIDGE_H
#define CLASSIC_BRIDGE_H

/*
 * bridge.h - where native and classic peers of this daemon's own bus meet
 *
 * 1. The payload of a native message is a whole D-Bus message. One that is none is not delivered to
 *    a classic peer: EBADMSG, for a broadcast a line in the log.
 * 2. The front-end vouches for the sender: SENDER is written anew in both directions.
 * 3. A classic call to a native peer keeps its serial as cookie, and the other way round, so that
 *    replies find their way by the number alone.
 * 4. A signal of a classic peer reaches native ones as one broadcast with a bloom filter over what
 *    match rules can ask for; those of native peers are held against the rules of classic ones.
 */

#include "daemon/peer.h"

struct bus;
struct classic;
struct client;
struct cmsg;
struct core_dst;
struct cpeer;
struct relay;

extern const struct core_sink classic_sink;

/* ---- called by the classic half ---- */

/* struct carrier: send, answer */
int bridge_send(struct cpeer *from, struct peer *to, struct cmsg *m);
int bridge_answer(struct peer *from, struct peer *to, struct cmsg *m);
/* May a message of a native peer start a service? 0; -EBADMSG; -EPERM; -ENOMEM; -EMFILE */
int bridge_may_start(struct classic *k, const struct relay *relay);
/* What goes between classic peers, for native monitors. @m has a head. */
void bridge_show_monitors(struct peer *from, struct peer *to, struct cmsg *m);
/* A signal, for native peers with a match */
void bridge_broadcast(struct classic *k, struct cmsg *m);

/* ---- called by the native half; without a front-end they do nothing ---- */

/* What the socket of a classic peer says, for peer_creds(); that socket; it has been read. */
void bridge_identify(struct peer *p);
int bridge_sock(const struct peer *p);
void bridge_was_read(struct peer *p);
/* A name has another owner: tell classic peers. Activators are none in D-Bus. */
void bridge_name_changed(struct bus *bus, const char *name, struct peer *before, struct peer *now);
/* A broadcast of a native connection, for classic peers with a rule */
void bridge_native_broadcast(struct relay *relay);
/*
 * A message to a name that does not exist: 0 if a service is to be started that will own it, and
 * @ret_dst is whom the sender has called for now; see activate_for_native(), activate_begin().
 */
int bridge_start_service(const struct relay *relay, struct core_dst *ret_dst);
void bridge_begin_starts(struct bus *bus);
/* What @from was called through a name is for @to now, who has it. */
void bridge_calls_moved(struct peer *from, struct peer *to);
/* A call of the connection @caller to @to, which waited for room there, was dropped. */
void bridge_call_lost(struct peer *to, u64 caller, u32 serial);
/* Its memory is about to be freed. */
void bridge_forget(struct peer *p);
/* A native connection came. */
void bridge_native_joined(struct client *c);
/*
 * What a native connection that goes, @dead, has not taken of a classic peer, relay->from. Whoever
 * has the name now gets it, as if it had just been sent; before bridge_native_left(), which ends
 * the calls that are left.
 */
void bridge_hand_on(const struct relay *relay, const struct peer *dead);
/* A native connection went; its names have been handed on. */
void bridge_native_left(struct client *c);

#endif
