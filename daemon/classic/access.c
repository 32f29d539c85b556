// SPDX-License-Identifier: LGPL-2.1-or-later
/* Policy decisions about messages and names. Rules: access.h. */
#include "access.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "driver.h"

/* ---- views ---- */

/* Groups of the process that connected; freed by the caller. */
static gid_t *groups_of(const struct cpeer *c, size_t *ret_n)
{
	socklen_t size = 32 * sizeof(gid_t);
	gid_t *groups = malloc(size + sizeof(*groups));
	int r;

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
	bool console = policy_has_console(policy) && config_user_at_console(uid);

	return policy_view_make(policy, uid, gids, n, console, ret);
}

static int classic_view(struct cpeer *c, bool connect, struct policy_view **ret)
{
	struct policy *policy = c->classic->config->policy;
	gid_t *gids;
	size_t n;
	int r = 0;

	gids = groups_of(c, &n);
	if (!gids)
		return -ENOMEM;
	if (connect && !policy_may_connect(policy, c->uid, gids, n, c->uid == geteuid()).allowed)
		r = -EPERM;
	if (r == 0)
		r = make_view(policy, c->uid, gids, n, ret);
	free(gids);
	return r;
}

int access_begin(struct cpeer *c)
{
	/* Who does not say who it is may connect where that is configured. */
	return classic_view(c, !c->anonymous, &c->view);
}

int access_renew(struct cpeer *c)
{
	struct policy_view *view;
	int r = classic_view(c, false, &view);

	if (r < 0)
		return r;
	policy_view_unref(c->view);
	c->view = view;
	return 0;
}

/* A native peer has a view as soon as its messages meet classic ones. */
static struct policy_view *view_of(struct classic *k, struct peer *p)
{
	const struct creds *creds = p->creds;
	gid_t *gids;
	size_t i;

	if (p->view || p->kind != PEER_NATIVE)
		return p->view;
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
	struct policy_verdict verdict = policy_may_own(c->view, name);

	return verdict.allowed;
}

/* ---- peers and messages, as the policy sees them ---- */

struct names {
	struct policy_peer peer;
	const struct core_name_holder *holder;
	char unique[CLASSIC_UNIQUE_MAX];
};

static const char *next_name(const struct policy_peer *peer, void **cursor)
{
	const struct names *names = container_of(peer, const struct names, peer);
	struct list_head *entry = *cursor;

	if (!entry) {
		*cursor = (void *)&names->holder->records;
		return names->unique;
	}
	entry = entry->next;
	if (entry == &names->holder->records)
		return NULL;
	*cursor = entry;
	return list_entry(entry, struct core_name_record, holder_entry)->name->name;
}

static struct policy_peer *names_of(const struct peer *p, struct names *names)
{
	names->peer = (struct policy_peer){ .next = next_name };
	names->holder = &p->conn.names;
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

/* Replies that nobody has asked for do not get here (route.c). */
static struct policy_msg describe(const struct cmsg *m)
{
	const struct dbusp_header *h = &m->header;

	return (struct policy_msg){
		.type = h->frame.type,
		.path = h->path,
		.interface = h->interface,
		.member = h->member,
		.error = h->error_name,
		.reply = is_reply(m),
		.requested_reply = is_reply(m),
		.broadcast = cmsg_is_signal(m) && !h->destination.s,
		.n_fds = h->n_fds,
	};
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

static void describe_peer(struct peer *p, char *buf, size_t size)
{
	const struct cpeer *c = p ? classic_peer(p) : NULL;

	if (!p)
		snprintf(buf, size, "bus");
	else if (c)
		snprintf(buf, size, "uid=%d pid=%d", (int)c->uid, (int)c->pid);
	else
		snprintf(buf, size, "uid=%d pid=%d", (int)p->creds->uid, (int)p->creds->pid);
}

void access_complain(struct cpeer *from, struct peer *to, const struct cmsg *m, const char *error,
		     const char *what, unsigned int n_rules)
{
	char sender[64], receiver[64];

	describe_peer(&from->peer, sender, sizeof(sender));
	describe_peer(to, receiver, sizeof(receiver));
	driver_error(from, m, error,
		     "%s, %u matched rules; type=\"%s\", sender=\"%s\" (%s) interface=\"%s\" "
		     "member=\"%s\" error name=\"%s\" requested_reply=\"%d\" destination=\"%s\" "
		     "(%s)",
		     what, n_rules, type_name(m), from->name_len ? from->name : "(inactive)",
		     sender, or_unset(m->header.interface), or_unset(m->header.member),
		     or_unset(m->header.error_name), is_reply(m),
		     m->header.destination.s ? m->header.destination.s : CLASSIC_DRIVER, receiver);
}

void access_refuse_full(struct cpeer *from, struct cpeer *to, struct cmsg *m)
{
	access_complain(from, &to->peer, m, DBUS_ERROR("LimitsExceeded"),
			"Rejected: destination has a full message queue", 0);
}

/* ---- decisions ---- */

static bool is_free(const struct policy_view *view, enum policy_kind kind)
{
	bool allowed;

	return view && policy_view_is_constant(view, kind, &allowed) && allowed;
}

/* Which rule decided goes to the log, with what it was about. */
static void log_refusal(const struct peer *from, const struct cmsg *m, const char *what,
			const struct policy_rule *rule)
{
	const char *to = m->header.destination.s ? m->header.destination.s : "all";
	char name[CLASSIC_UNIQUE_MAX], where[256] = "no rule allows it";

	if (rule)
		snprintf(where, sizeof(where), "by the rule at %s:%u", rule->file, rule->line);
	log_line("%s: %s from %s to %s, interface %s, member %s: %s", what, type_name(m),
		 unique_name(from, name).s, to, or_unset(m->header.interface),
		 or_unset(m->header.member), where);
}

static bool refuse(struct peer *from, struct peer *to, const struct cmsg *m,
		   const struct policy_view *view, enum policy_kind kind, struct policy_msg *msg,
		   const struct policy_peer *other, struct policy_verdict verdict)
{
	const char *what = kind == POLICY_SEND ? "Rejected send message" :
						 "Rejected receive message";
	struct cpeer *c = classic_peer(from);

	log_refusal(from, m, what, verdict.rule);
	if (c)
		access_complain(c, to, m, DBUS_ERROR("AccessDenied"), what,
				policy_count(view, kind, msg, other));
	return false;
}

/* One that has not said Hello is on no bus yet. */
static struct classic *front_end(struct peer *p)
{
	struct cpeer *c = classic_peer(p);

	return c ? c->classic : container_of(p->conn.bus, struct bus, core)->classic;
}

bool access_may_pass(struct peer *from, struct peer *to, struct cmsg *m)
{
	struct classic *k = front_end(from);
	struct policy_view *sends = view_of(k, from), *receives = to ? view_of(k, to) : NULL;
	struct policy_peer driver = policy_peer_of(CLASSIC_DRIVER);
	struct policy_verdict verdict;
	struct policy_peer *other;
	struct policy_msg msg;
	struct names names;

	if (is_free(sends, POLICY_SEND) && (!to || is_free(receives, POLICY_RECEIVE)))
		return true;
	if (!sends || (to && !receives))
		return false;
	msg = describe(m);
	other = to ? names_of(to, &names) : &driver;
	verdict = policy_may_send(sends, &msg, other);
	if (!verdict.allowed)
		return refuse(from, to, m, sends, POLICY_SEND, &msg, other, verdict);
	if (!to)
		return true;
	other = names_of(from, &names);
	verdict = policy_may_receive(receives, &msg, other);
	if (!verdict.allowed)
		return refuse(from, to, m, receives, POLICY_RECEIVE, &msg, other, verdict);
	return true;
}

/* To one of many: nobody is told. */
static bool may_get(struct cpeer *to, const struct cmsg *m, bool eavesdropping)
{
	struct policy_view *sends = m->from ? view_of(to->classic, m->from) : NULL;
	struct policy_peer driver = policy_peer_of(CLASSIC_DRIVER);
	struct policy_msg msg;
	struct names names;

	if ((!m->from || is_free(sends, POLICY_SEND)) && is_free(to->view, POLICY_RECEIVE))
		return true;
	if (m->from && !sends)
		return false;
	msg = describe(m);
	msg.eavesdropping = eavesdropping;
	if (m->from && !policy_may_send(sends, &msg, names_of(&to->peer, &names)).allowed)
		return false;
	return policy_may_receive(to->view, &msg, m->from ? names_of(m->from, &names) : &driver)
		.allowed;
}

bool access_may_receive(struct cpeer *to, struct cmsg *m)
{
	return may_get(to, m, false);
}

bool access_may_eavesdrop(struct cpeer *to, struct cmsg *m)
{
	return may_get(to, m, true);
}
