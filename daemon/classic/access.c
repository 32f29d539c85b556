// SPDX-License-Identifier: LGPL-2.1-or-later
/* Policy decisions about messages and names. Rules: access.h. */
#include "access.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "carrier.h"
#include "driver.h"
#include "roster.h"

/* ---- views ---- */

/*
 * Groups of the process that connected; freed by the caller. Nothing is asked that nothing depends
 * on, here and below: a session bus asks nothing.
 */
static gid_t *groups_of(const struct cpeer *c, size_t *ret_n)
{
	bool wanted = policy_has_groups(c->classic->config->policy) && !c->anonymous;
	socklen_t size = (wanted ? 32 : 0) * sizeof(gid_t);
	gid_t *groups = malloc(size + sizeof(*groups));
	int r = 0;

	*ret_n = 0;
	if (!wanted)
		return groups;
	while (groups) {
		r = getsockopt(c->fd, SOL_SOCKET, SO_PEERGROUPS, groups, &size);
		if (r == 0 || errno != ERANGE)
			break;
		free(groups);
		groups = malloc(size + sizeof(*groups));
	}
	if (!groups)
		return NULL;
	*ret_n = r == 0 ? size / sizeof(*groups) : 0;
	groups[(*ret_n)++] = c->gid;
	return groups;
}

static int make_view(struct policy *policy, uid_t uid, const gid_t *gids, size_t n,
		     struct policy_view **ret)
{
	bool console = policy_has_console(policy) && uid != (uid_t)-1 &&
		       config_user_at_console(uid);

	return policy_view_make(policy, uid, gids, n, console, ret);
}

static bool may_connect(const struct cpeer *c, const gid_t *gids, size_t n)
{
	const struct policy_verdict v = policy_may_connect(c->classic->config->policy, c->uid, gids,
							   n, c->uid == geteuid());

	if (!v.allowed && v.rule)
		cpeer_log(c, "may not connect by the rule at %s:%u", v.rule->file, v.rule->line);
	else if (!v.allowed)
		cpeer_log(c, "may not connect: no rule allows others than uid %u",
			  (unsigned int)geteuid());
	return v.allowed;
}

/* Who does not say who it is is nobody in particular. */
static int read_view(struct cpeer *c, bool connect, struct policy_view **ret)
{
	uid_t uid = c->anonymous ? (uid_t)-1 : c->uid;
	gid_t *gids;
	size_t n;
	int r = 0;

	gids = groups_of(c, &n);
	if (!gids)
		return -ENOMEM;
	if (connect && !may_connect(c, gids, n))
		r = -EPERM;
	if (r == 0)
		r = make_view(c->classic->config->policy, uid, gids, n, ret);
	free(gids);
	return r;
}

static void forget_known(struct classic *k)
{
	k->known.view = policy_view_unref(k->known.view);
	k->known.policy = policy_unref(k->known.policy);
}

/* Who comes and goes all the time is known: the same user has the same view. */
static bool recall(struct cpeer *c, struct policy_view **ret)
{
	struct classic *k = c->classic;

	if (k->known.policy != k->config->policy || !k->known.view || k->known.uid != c->uid)
		return false;
	*ret = policy_view_ref(k->known.view);
	return true;
}

static void remember(struct cpeer *c, struct policy_view *view)
{
	struct classic *k = c->classic;
	struct policy *policy = k->config->policy;

	forget_known(k);
	if (policy_has_groups(policy) || policy_has_console(policy))
		return;
	k->known.policy = policy_ref(k->config->policy);
	k->known.view = policy_view_ref(view);
	k->known.uid = c->uid;
}

static int known_view(struct cpeer *c, struct policy_view **ret)
{
	int r;

	if (recall(c, ret))
		return 0;
	r = read_view(c, true, ret);
	if (r == 0)
		remember(c, *ret);
	return r;
}

void access_stop(struct classic *k)
{
	forget_known(k);
}

int access_begin(struct cpeer *c)
{
	/* Who does not say who it is may connect where that is configured. */
	return c->anonymous ? read_view(c, false, &c->view) : known_view(c, &c->view);
}

int access_renew(struct cpeer *c)
{
	struct policy_view *view;
	int r;

	if (!c->view)
		return 0;
	r = read_view(c, false, &view);
	if (r < 0)
		return r;
	policy_view_unref(c->view);
	c->view = view;
	return 0;
}

/*
 * One that does not show who it is is nobody in particular; but where the policy makes a difference
 * between users, that must not be a way around it.
 */
static struct policy_view *view_of_nobody(struct classic *k, struct peer *p)
{
	struct policy *policy = k->config->policy;

	if (policy_has_users(policy) || policy_has_groups(policy) || policy_has_console(policy))
		return NULL;
	if (make_view(policy, (uid_t)-1, NULL, 0, &p->view) < 0)
		p->view = NULL;
	return p->view;
}

/* A native peer has a view as soon as its messages meet classic ones. */
static struct policy_view *view_of(struct classic *k, struct peer *p)
{
	const struct creds *creds;
	gid_t *gids;
	size_t i;

	if (p->view || p->kind == PEER_CLASSIC)
		return p->view;
	creds = k->carrier->creds(p);
	if (!creds)
		return view_of_nobody(k, p);
	gids = calloc(creds->core.n_groups + 1, sizeof(*gids));
	if (!gids)
		return NULL;
	gids[0] = creds->core.egid;
	for (i = 0; i < creds->core.n_groups; i++)
		gids[i + 1] = creds->core.groups[i];
	if (make_view(k->config->policy, creds->core.euid, gids, i + 1, &p->view) < 0)
		p->view = NULL;
	free(gids);
	return p->view;
}

void access_end(struct peer *p)
{
	p->view = policy_view_unref(p->view);
}

bool access_may_own(struct cpeer *c, const char *name)
{
	const struct policy_verdict v = policy_may_own(c->view, name);

	if (!v.allowed && v.rule)
		cpeer_log(c, "may not own %s by the rule at %s:%u", name, v.rule->file,
			  v.rule->line);
	else if (!v.allowed)
		cpeer_log(c, "may not own %s: no rule allows it", name);
	return v.allowed;
}

/* ---- peers and messages, as the policy sees them ---- */

struct names {
	struct policy_peer peer;
	const struct peer *of;
	char unique[CLASSIC_UNIQUE_MAX];
};

/* The place before the first of the names that it asked for */
static const char unique_comes_first;

static const char *next_name(const struct policy_peer *peer, void **cursor)
{
	const struct names *names = container_of(peer, const struct names, peer);
	void *at = *cursor == &unique_comes_first ? NULL : *cursor;
	const char *name;

	if (!*cursor) {
		*cursor = (void *)&unique_comes_first;
		return names->unique;
	}
	name = peer_next_name(names->of, true, &at);
	if (name)
		*cursor = at;
	return name;
}

static struct policy_peer *names_of(const struct peer *p, struct names *names)
{
	names->peer = (struct policy_peer){ .next = next_name };
	names->of = p;
	if (p->conn.bus)
		unique_name(p, names->unique);
	else
		names->unique[0] = '\0';
	return &names->peer;
}

static bool is_reply(const struct cmsg *m)
{
	return m->header.frame.type == DBUSP_METHOD_RETURN || m->header.frame.type == DBUSP_ERROR;
}

/*
 * Once for all who may get it. A reply that nobody has asked for does not get here (route.c), but
 * anything can bear a reply serial.
 */
static struct policy_msg *describe(struct cmsg *m, bool requested, bool eavesdropping)
{
	const struct dbusp_header *h = &m->header;

	if (!m->policy_ready)
		m->policy = (struct policy_msg){
			.type = h->frame.type,
			.path = h->path,
			.interface = h->interface,
			.member = h->member,
			.error = h->error_name,
			.reply = h->reply_serial,
			.broadcast = cmsg_is_signal(m) && !h->destination.s,
			.n_fds = h->n_fds,
		};
	m->policy_ready = true;
	m->policy.requested_reply = requested && h->reply_serial;
	m->policy.eavesdropping = eavesdropping;
	return &m->policy;
}

/* Where there is no peer, rules about names are about the one in the message. */
static const struct policy_peer *name_in(const struct cmsg *m, struct policy_peer *peer)
{
	*peer = policy_peer_of(m->header.destination.s);
	return m->header.destination.s ? peer : NULL;
}

/* ---- the text of a refusal, as dbus-daemon writes it ---- */

static const char *type_name(const struct cmsg *m)
{
	static const char *const names[] = { "invalid", "method_call", "method_return", "error",
					     "signal" };

	return names[m->header.frame.type <= DBUSP_SIGNAL ? m->header.frame.type : 0];
}

static const char *or_unset(struct dbusp_str s)
{
	return s.s ? s.s : "(unset)";
}

#define COMMAND_MAX 50 /* bytes of a command line */

/*
 * Arguments with a blank where each ends, if they are known: to read them could take for ever
 * (daemon/reading.h). Else the name of the process, which could not. Both may hold any bytes.
 */
static size_t command_of(int pid, const struct creds *creds, char buf[COMMAND_MAX + 1])
{
	size_t n = 0, i;

	if (creds && creds->meta.cmdline && creds->meta.cmdline_size) {
		n = min(creds->meta.cmdline_size - 1, (size_t)COMMAND_MAX);
		memcpy(buf, creds->meta.cmdline, n);
	} else if (pid > 0) {
		creds_comm(pid, buf, COMMAND_MAX + 1);
		n = strlen(buf);
	}
	for (i = 0; i < n; i++)
		if (buf[i] < ' ' || buf[i] > '~')
			buf[i] = ' ';
	buf[n] = '\0';
	return n;
}

/* @creds: NULL: no more is known */
static void describe_process(int uid, int pid, const struct creds *creds, char *buf, size_t size)
{
	size_t n = (size_t)snprintf(buf, size, "uid=%d pid=%d", uid, pid);
	char command[COMMAND_MAX + 1];

	if (n < size && command_of(pid, creds, command))
		n += (size_t)snprintf(buf + n, size - n, " comm=\"%s\"", command);
	if (n < size && creds && creds->meta.seclabel)
		snprintf(buf + n, size - n, " label=\"%s\"", creds->meta.seclabel);
}

static void describe_peer(struct classic *k, struct peer *p, char *buf, size_t size)
{
	const struct cpeer *c = p ? classic_peer(p) : NULL;
	const struct creds *creds;

	if (!p)
		creds = NULL;
	else
		creds = p->kind == PEER_CLASSIC ? peer_creds(p) : k->carrier->creds(p);
	if (c)
		describe_process((int)c->uid, (int)c->pid, creds, buf, size);
	else if (creds)
		describe_process((int)creds->uid, (int)creds->pid, creds, buf, size);
	else
		snprintf(buf, size, "bus");
}

static void compose(char *text, size_t size, struct cpeer *from, struct peer *to,
		    const struct cmsg *m, const char *what, unsigned int n_rules)
{
	bool requested = m->policy_ready && m->policy.requested_reply;
	char sender[256], receiver[256];

	describe_peer(from->classic, m->from, sender, sizeof(sender));
	describe_peer(from->classic, to, receiver, sizeof(receiver));
	snprintf(text, size,
		 "%s, %u matched rules; type=\"%s\", sender=\"%s\" (%s) interface=\"%s\" "
		 "member=\"%s\" error name=\"%s\" requested_reply=\"%d\" destination=\"%s\" "
		 "(%s)",
		 what, n_rules, type_name(m),
		 !m->from	? "(unset)" :
		 from->name_len ? from->name :
				  "(inactive)",
		 sender, or_unset(m->header.interface), or_unset(m->header.member),
		 or_unset(m->header.error_name), requested,
		 m->header.destination.s ? m->header.destination.s : CLASSIC_DRIVER, receiver);
}

void access_complain(struct cpeer *from, struct peer *to, const struct cmsg *m, const char *error,
		     const char *what, unsigned int n_rules)
{
	char text[2048];

	compose(text, sizeof(text), from, to, m, what, n_rules);
	driver_error(from, m, error, "%s", text);
}

void access_refuse_reply(struct cpeer *from, struct peer *to, struct cmsg *m)
{
	access_complain(from, to, m, DBUS_ERROR("AccessDenied"),
			"Rejected send message: nobody waits for this reply", 0);
}

void access_refuse_full(struct cpeer *from, struct cpeer *to, struct cmsg *m)
{
	char what[128];
	long max;
	const char *limit = output_limit(to, &max);

	snprintf(what, sizeof(what), "Rejected: destination has a full message queue (%s=%ld)",
		 limit ? limit : "", max);
	access_complain(from, &to->peer, m, DBUS_ERROR("LimitsExceeded"), what, 0);
}

/* ---- decisions ---- */

static bool is_free(const struct policy_view *view, enum policy_kind kind)
{
	bool allowed;

	return view && policy_view_is_constant(view, kind, &allowed) && allowed;
}

/* log="true" at a rule that allows something */
static void log_allowed(const struct cmsg *m, const struct policy_rule *rule)
{
	if (rule && rule->log)
		log_line("A message to %s, interface %s, member %s: allowed by the rule at %s:%u",
			 or_unset(m->header.destination), or_unset(m->header.interface),
			 or_unset(m->header.member), rule->file, rule->line);
}

/* Which rule decided goes to the log, with what it was about. */
static void log_refusal(const struct peer *from, const struct cmsg *m, const char *what,
			const struct policy_rule *rule)
{
	const char *to = m->header.destination.s ? m->header.destination.s : "all";
	char name[CLASSIC_UNIQUE_MAX], where[256] = "no rule allows it", text[1024];
	/* They are not slowed down by the refusal: the message is there already. */
	static struct log_rate of_remotes;

	if (rule)
		snprintf(where, sizeof(where), "by the rule at %s:%u", rule->file, rule->line);
	snprintf(text, sizeof(text), "%s: %s from %s to %s, interface %s, member %s: %s", what,
		 type_name(m), unique_name(from, name).s, to, or_unset(m->header.interface),
		 or_unset(m->header.member), where);
	if (from->kind == PEER_REMOTE)
		log_sparingly(&of_remotes, "%s", text);
	else
		log_about(from->account ? from->account->uid : geteuid(), "%s", text);
}

static bool refuse(struct peer *from, struct peer *to, const struct cmsg *m,
		   const struct policy_view *view, enum policy_kind kind,
		   const struct policy_peer *other, struct policy_verdict verdict)
{
	const char *what = kind == POLICY_SEND ? "Rejected send message" :
						 "Rejected receive message";
	struct cpeer *c = classic_peer(from);

	log_refusal(from, m, what, verdict.rule);
	if (c)
		access_complain(c, to, m, DBUS_ERROR("AccessDenied"), what,
				policy_count(view, kind, &m->policy, other));
	return false;
}

/* One that has not said Hello is on no bus yet. */
static struct classic *front_end(struct peer *p)
{
	struct cpeer *c = classic_peer(p);

	return c ? c->classic : container_of(p->conn.bus, struct bus, core)->classic;
}

/* @to NULL: to the name in the message */
static bool may_send(struct policy_view *view, struct peer *from, struct peer *to, struct cmsg *m)
{
	struct policy_peer named;
	struct names names;
	const struct policy_peer *other = to ? names_of(to, &names) : name_in(m, &named);
	const struct policy_verdict v = policy_may_send(view, &m->policy, other);

	if (!v.allowed)
		return refuse(from, to, m, view, POLICY_SEND, other, v);
	log_allowed(m, v.rule);
	return true;
}

static bool may_receive(struct policy_view *view, struct peer *from, struct peer *to,
			struct cmsg *m)
{
	struct names names;
	const struct policy_peer *other = names_of(from, &names);
	const struct policy_verdict v = policy_may_receive(view, &m->policy, other);

	return v.allowed || refuse(from, to, m, view, POLICY_RECEIVE, other, v);
}

/* There is no view of one of them: it does not say who it is, or there is no memory. */
static bool refuse_unknown(struct peer *from, struct peer *to, struct cmsg *m)
{
	struct cpeer *c = classic_peer(from);

	if (c)
		access_complain(c, to, m, DBUS_ERROR("AccessDenied"),
				"Rejected send message: the receiver does not show who it is", 0);
	return false;
}

bool access_may_send_anything(struct classic *k, struct peer *p)
{
	return is_free(view_of(k, p), POLICY_SEND);
}

bool access_may_pass(struct peer *from, struct peer *to, struct cmsg *m)
{
	struct classic *k = front_end(from);
	struct policy_view *sends = view_of(k, from), *receives = to ? view_of(k, to) : NULL;

	if (is_free(sends, POLICY_SEND) && (!to || is_free(receives, POLICY_RECEIVE)))
		return true;
	if (!sends || (to && !receives))
		return refuse_unknown(from, to, m);
	describe(m, to && is_reply(m), false);
	return may_send(sends, from, to, m) && (!to || may_receive(receives, from, to, m));
}

bool access_may_broadcast(struct cpeer *from, struct cmsg *m)
{
	if (is_free(from->view, POLICY_SEND))
		return true;
	return policy_may_send(from->view, describe(m, false, false), NULL).allowed;
}

/* Of a broadcast that does not get to one of many, monitors alone learn. */
static bool withhold(struct cpeer *to, struct cmsg *m, const struct policy_view *view,
		     enum policy_kind kind, const struct policy_peer *other)
{
	struct cpeer *from = m->from ? classic_peer(m->from) : to;
	char text[2048];

	if (!from || m->policy.eavesdropping || list_empty(&to->classic->monitors))
		return false;
	compose(text, sizeof(text), from, &to->peer, m,
		kind == POLICY_SEND ? "Rejected send message" : "Rejected receive message",
		policy_count(view, kind, &m->policy, other));
	driver_show_error(from, m, DBUS_ERROR("AccessDenied"), text);
	return false;
}

/* To one of many: its sender is not told. */
static bool may_get(struct cpeer *to, struct cmsg *m, bool eavesdropping)
{
	struct policy_view *sends = m->from ? view_of(to->classic, m->from) : NULL;
	struct policy_peer driver = policy_peer_of(CLASSIC_DRIVER), *other;
	struct policy_msg *msg;
	struct names names;

	if ((!m->from || is_free(sends, POLICY_SEND)) && is_free(to->view, POLICY_RECEIVE))
		return true;
	if (m->from && !sends)
		return false;
	msg = describe(m, !m->from && !eavesdropping, eavesdropping);
	other = names_of(&to->peer, &names);
	if (m->from && !policy_may_send(sends, msg, other).allowed)
		return withhold(to, m, sends, POLICY_SEND, other);
	other = m->from ? names_of(m->from, &names) : &driver;
	if (!policy_may_receive(to->view, msg, other).allowed)
		return withhold(to, m, to->view, POLICY_RECEIVE, other);
	return true;
}

bool access_receives_all(const struct cpeer *to)
{
	return !to->view || is_free(to->view, POLICY_RECEIVE);
}

bool access_may_receive(struct cpeer *to, struct cmsg *m)
{
	return may_get(to, m, false);
}

bool access_may_eavesdrop(struct cpeer *to, struct cmsg *m)
{
	return may_get(to, m, true);
}
