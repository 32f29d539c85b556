/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef CLASSIC_POLICY_H
#define CLASSIC_POLICY_H

/*
 * policy.h - who may own, send and receive: the <allow> and <deny> rules of a classic bus
 *
 * A policy holds all rules in the order of the files. What applies to a connection depends on its
 * user, groups and whether it is at the console; the rules that apply, in the order default, group,
 * user, at_console, mandatory, are compiled into a *view*. Connections to whom the same sections
 * apply share one.
 *
 * 1. The last rule that matches decides. Where none matches the answer is no.
 * 2. A decision costs one look into a hash table for each *shape* of rule (which fields it names;
 *    a system bus has about ten) and name of the peer, however many rules there are. A view that
 *    says the same to every message of a kind says so without a look: a session bus pays nothing.
 * 3. A rule names the fields of a message it wants. Path, member and error match a message that has
 *    none; an interface does so in a deny rule only.
 * 4. A destination (or sender) is matched by any name that the peer owns *or is queued for*, its
 *    unique name included. Where there is no peer yet - the driver, a service to be started - it
 *    is the name in the message.
 * 5. A requested reply: an allow rule matches replies only if they were asked for, unless it says
 *    requested_reply="false" or eavesdrop="true"; a deny rule matches only those nobody asked for,
 *    unless it says requested_reply="true".
 * 6. A rule about all messages without any condition of rule 5, of eavesdropping or of number - as
 *    <deny send_destination="*"/> - has all rules of its kind before it forgotten: what it does not
 *    match for rule 5 is refused, not decided by them. (The manual says otherwise, but so it is in
 *    dbus-daemon, and it errs on the safe side. dbus-daemon does the same with rules that do have
 *    such conditions, against the examples of its manual; here those forget nothing.)
 * 7. Views refer to their policy, verdicts to rules of the view they come from.
 *
 * No I/O, no globals. A policy and its views are used by one thread at a time.
 * dbus-daemon(1), "<policy>", "<deny>".
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "dbus/str.h"

struct policy;
struct policy_view;

/* Sections, in the order in which they apply */
enum policy_context {
	POLICY_DEFAULT,
	POLICY_GROUP,
	POLICY_USER,
	POLICY_AT_CONSOLE,
	POLICY_NOT_AT_CONSOLE,
	POLICY_MANDATORY,
	_POLICY_CONTEXT_N,
};

enum policy_kind {
	POLICY_OWN,
	POLICY_SEND,
	POLICY_RECEIVE,
	_POLICY_KIND_N,
	/* of the bus as a whole: who may connect */
	POLICY_CONNECT_USER = _POLICY_KIND_N,
	POLICY_CONNECT_GROUP,
};

enum policy_tristate {
	POLICY_ANY,
	POLICY_FALSE,
	POLICY_TRUE,
};

#define POLICY_EVERYBODY ((uint32_t)-1)

/**
 * struct policy_rule - one <allow> or <deny>
 * @kind:	what it is about
 * @allow:	or deny
 * @log:	log="true": what it lets pass is to be logged
 * @eavesdrop, @requested_reply: as in the file, defaults filled in
 * @broadcast:	send_broadcast
 * @type:	message type, 0: any
 * @prefix:	@name is a prefix of names, in whole elements
 * @name:	bus name: to own, destination, or sender; NULL: any
 * @path, @interface, @member, @error: NULL: any
 * @min_fds, @max_fds: number of descriptors
 * @id:		of a POLICY_CONNECT_ rule, uid or gid, or POLICY_EVERYBODY
 * @file, @line: where it stands
 */
struct policy_rule {
	enum policy_kind kind;
	bool allow;
	bool log;
	bool eavesdrop;
	bool requested_reply;
	bool prefix;
	enum policy_tristate broadcast;
	uint8_t type;
	const char *name;
	const char *path;
	const char *interface;
	const char *member;
	const char *error;
	uint32_t min_fds;
	uint32_t max_fds;
	uint32_t id;
	const char *file;
	unsigned int line;
};

/**
 * struct policy_peer - the names of the one a message goes to (or comes from)
 * @next:	gives the names that the peer owns or is queued for, its unique name included, one
 *		after the other, in any order; NULL after the last. @cursor is NULL at first and
 *		belongs to it. Names end with a NUL and stay valid during the decision.
 * @arg:	for @next
 */
struct policy_peer {
	const char *(*next)(const struct policy_peer *peer, void **cursor);
	const void *arg;
};

/* A peer with one name: struct policy_peer p = policy_peer_of("org.freedesktop.DBus") */
struct policy_peer policy_peer_of(const char *name);

/**
 * struct policy_msg - what rules may ask about a message
 * @type:	1 to 4, or one unknown
 * @path, @interface, @member, @error: s == NULL: it has none
 * @reply:	it carries a reply serial
 * @requested_reply: and is the reply to a call that is open
 * @broadcast:	a signal without a destination
 * @eavesdropping: the receiver in question is not the one it is addressed to
 * @n_fds:	descriptors with it
 * @looked_up:	private to policy; zero at first. Kept between decisions about the same message it
 *		spares looking its strings up again; clear it if the strings or the policy change.
 */
struct policy_msg {
	uint8_t type;
	struct dbusp_str path, interface, member, error;
	bool reply;
	bool requested_reply;
	bool broadcast;
	bool eavesdropping;
	uint32_t n_fds;
	struct {
		const struct policy *policy;
		uint32_t path, interface, member, error;
	} looked_up;
};

/**
 * struct policy_verdict - a decision
 * @allowed:	it may
 * @rule:	the rule that decided; NULL if none matched (the answer is no then), and for a yes
 *		that needed no look at the rules
 */
struct policy_verdict {
	bool allowed;
	const struct policy_rule *rule;
};

/* ---- making a policy: while a configuration is read ---- */

struct policy *policy_new(void);
struct policy *policy_ref(struct policy *policy);
struct policy *policy_unref(struct policy *policy);

/**
 * policy_add() - append a rule
 * @policy: one that has no views yet
 * @context: section it stands in
 * @id: uid or gid of a section for a user or group
 * @rule: copied with its strings
 *
 * Return: 0; -EINVAL for a POLICY_CONNECT_ rule in a section for a user or group, which applies to
 * the bus as a whole; -ENOMEM.
 */
int policy_add(struct policy *policy, enum policy_context context, uint32_t id,
	       const struct policy_rule *rule);

/**
 * policy_append() - append all rules of another policy
 * @policy: one that has no views yet
 * @other: emptied
 *
 * Return: 0; -ENOMEM, after which @policy is of no use.
 */
int policy_append(struct policy *policy, struct policy *other);

/* ---- deciding ---- */

/**
 * policy_may_connect() - may this user connect to the bus at all?
 * @policy: the policy
 * @uid, @gids, @n_gids: who
 * @owner: it is the user the daemon runs as, who may if no rule says otherwise
 *
 * Looks at the default and mandatory sections, in this order.
 */
struct policy_verdict policy_may_connect(const struct policy *policy, uid_t uid,
					 const gid_t *gids, size_t n_gids, bool owner);

/* Are there sections for users? */
bool policy_has_users(const struct policy *policy);
/* Does anything depend on groups? If not, nobody needs to find them out. */
bool policy_has_groups(const struct policy *policy);
/* Are there sections for who is at the console? If not, nobody needs to find out. */
bool policy_has_console(const struct policy *policy);

/**
 * policy_view_make() - what applies to a connection
 * @policy: the policy
 * @uid, @gids, @n_gids: who it is; sections of groups apply in ascending order of gid
 * @at_console: ditto
 * @ret: its view, one reference for the caller
 *
 * Return: 0; -ENOMEM.
 */
int policy_view_make(struct policy *policy, uid_t uid, const gid_t *gids, size_t n_gids,
		     bool at_console, struct policy_view **ret);
struct policy_view *policy_view_ref(struct policy_view *view);
struct policy_view *policy_view_unref(struct policy_view *view);

/**
 * policy_view_is_constant() - does a view say the same to every message or name of a kind?
 * @view: the view
 * @kind: POLICY_OWN, POLICY_SEND or POLICY_RECEIVE
 * @ret_allowed: what it says
 */
bool policy_view_is_constant(const struct policy_view *view, enum policy_kind kind,
			     bool *ret_allowed);

/**
 * policy_may_own() - may its holder own a name?
 * @view: its view
 * @name: well-known name
 */
struct policy_verdict policy_may_own(const struct policy_view *view, const char *name);

/**
 * policy_may_send() - may its holder send a message to a peer?
 * @view: view of the sender
 * @msg: the message; only looked_up changes
 * @to: the receiver, or the name in the message (rule 4); NULL: none
 */
struct policy_verdict policy_may_send(const struct policy_view *view, struct policy_msg *msg,
				      const struct policy_peer *to);

/**
 * policy_may_receive() - may its holder receive a message from a peer?
 * @view: view of the receiver
 * @msg: the message; only looked_up changes
 * @from: the sender; the driver is policy_peer_of("org.freedesktop.DBus")
 */
struct policy_verdict policy_may_receive(const struct policy_view *view, struct policy_msg *msg,
					 const struct policy_peer *from);

/**
 * policy_count() - how many rules match, for the text of an error
 * @view: the view
 * @kind: POLICY_SEND or POLICY_RECEIVE
 * @msg, @peer: as in the decision
 *
 * Looks at every rule.
 */
unsigned int policy_count(const struct policy_view *view, enum policy_kind kind,
			  const struct policy_msg *msg, const struct policy_peer *peer);

#endif
