// SPDX-License-Identifier: LGPL-2.1-or-later
/* Who is behind a name: GetConnection... */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "carrier.h"
#include "config.h"
#include "driver.h"
#include "output.h"
#include "roster.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

/* What is known of a process without a look into /proc */
struct facts {
	uid_t uid; /* -1: unknown */
	pid_t pid; /* 0: unknown */
	int sock; /* of its connection, -1: none of ours */
};

static struct facts facts_of(struct classic *k, struct peer *p)
{
	struct cpeer *c = classic_peer(p);
	const struct creds *creds;

	if (c)
		return (struct facts){ .uid = c->uid, .pid = c->pid, .sock = c->fd };
	creds = k->carrier->creds(p);
	return (struct facts){ .uid = creds ? creds->uid : (uid_t)-1,
			       .pid = creds ? creds->pid : 0,
			       .sock = k->carrier->socket(p) };
}

/* Of the name in the first argument; false: nobody has it, and the caller was told. */
static bool find(struct driver_call *call, const char *what, struct dbusp_str *ret_name,
		 struct facts *ret)
{
	struct dbusp_str name = driver_arg_string(call);
	struct peer *owner;

	*ret_name = name;
	if (dbusp_str_eq(name, DBUSP_STR(CLASSIC_DRIVER))) {
		*ret = (struct facts){ .uid = geteuid(), .pid = getpid(), .sock = -1 };
		return true;
	}
	owner = route_owner(call->classic, name);
	if (!owner) {
		driver_error(call->from, call->m, DBUS_ERROR("NameHasNoOwner"),
			     "Could not get %s of name '%s': no such name", what, name.s);
		return false;
	}
	*ret = facts_of(call->classic, owner);
	return true;
}

static void reply_u32(struct driver_call *call, uint32_t u)
{
	struct dbusp_build b;

	driver_reply_begin(call, &b, "u");
	dbusp_put_u32(&b, u);
	driver_reply_end(call, &b);
}

static void get_unix_user(struct driver_call *call)
{
	struct dbusp_str name;
	struct facts f;

	if (!find(call, "UID", &name, &f))
		return;
	if (f.uid != (uid_t)-1)
		reply_u32(call, f.uid);
	else
		driver_error(call->from, call->m, DBUS_ERROR("Failed"),
			     "Could not determine UID for '%s'", name.s);
}

static void get_process_id(struct driver_call *call)
{
	struct dbusp_str name;
	struct facts f;

	if (!find(call, "PID", &name, &f))
		return;
	if (f.pid)
		reply_u32(call, (uint32_t)f.pid);
	else
		driver_error(call->from, call->m, DBUS_ERROR("UnixProcessIdUnknown"),
			     "Could not determine PID for '%s'", name.s);
}

static void get_audit(struct driver_call *call)
{
	struct dbusp_str name;
	struct facts f;

	if (find(call, "audit session data", &name, &f))
		driver_error(call->from, call->m, DBUS_ERROR("AdtAuditDataUnknown"),
			     "Could not determine audit session data for '%s'", name.s);
}

/* ---- labels ---- */

/* NULL: none, or not known; freed by the caller */
static char *label_of(int sock)
{
	socklen_t size = 0;
	char *label;

	if (sock < 0 || getsockopt(sock, SOL_SOCKET, SO_PEERSEC, NULL, &size) == 0 ||
	    errno != ERANGE || !size)
		return NULL;
	label = calloc(1, size + 1);
	if (label && getsockopt(sock, SOL_SOCKET, SO_PEERSEC, label, &size) < 0) {
		free(label);
		return NULL;
	}
	return label;
}

static void get_label(struct driver_call *call)
{
	struct dbusp_str name;
	struct dbusp_build b;
	struct facts f;
	char *label;

	if (!find(call, "security context", &name, &f))
		return;
	label = config_selinux_enabled() ? label_of(f.sock) : NULL;
	if (label) {
		driver_reply_begin(call, &b, "ay");
		dbusp_put_bytes(&b, label, strlen(label));
		driver_reply_end(call, &b);
	} else {
		driver_error(call->from, call->m, DBUS_ERROR("SELinuxSecurityContextUnknown"),
			     "Could not determine security context for '%s'", name.s);
	}
	free(label);
}

/* ---- GetConnectionCredentials ---- */

static void open_entry(struct dbusp_build *b, const char *key, const char *type)
{
	dbusp_open(b, '{', NULL);
	dbusp_put_string(b, key);
	dbusp_open(b, 'v', type);
}

static void close_entry(struct dbusp_build *b)
{
	dbusp_close(b);
	dbusp_close(b);
}

static void put_u32(struct dbusp_build *b, const char *key, uint32_t u)
{
	open_entry(b, key, "u");
	dbusp_put_u32(b, u);
	close_entry(b);
}

static int by_number(const void *a, const void *b)
{
	gid_t x = *(const gid_t *)a, y = *(const gid_t *)b;

	return x < y ? -1 : x > y;
}

/* Supplementary groups as of connect(), and the primary one, sorted, each once */
static void put_groups(struct dbusp_build *b, const struct facts *f)
{
	struct ucred ucred;
	socklen_t size = sizeof(ucred), n_bytes = 0;
	gid_t *groups;
	size_t n, i;

	if (f->sock < 0 || getsockopt(f->sock, SOL_SOCKET, SO_PEERCRED, &ucred, &size) < 0)
		return;
	if (getsockopt(f->sock, SOL_SOCKET, SO_PEERGROUPS, NULL, &n_bytes) < 0 && errno != ERANGE)
		return;
	groups = malloc(n_bytes + sizeof(*groups));
	if (!groups)
		return;
	if (n_bytes && getsockopt(f->sock, SOL_SOCKET, SO_PEERGROUPS, groups, &n_bytes) < 0) {
		free(groups);
		return;
	}
	n = n_bytes / sizeof(*groups);
	groups[n++] = ucred.gid;
	qsort(groups, n, sizeof(*groups), by_number);
	open_entry(b, "UnixGroupIDs", "au");
	dbusp_open(b, 'a', NULL);
	for (i = 0; i < n; i++)
		if (!i || groups[i] != groups[i - 1])
			dbusp_put_u32(b, groups[i]);
	dbusp_close(b);
	close_entry(b);
	free(groups);
}

static void put_label(struct dbusp_build *b, const struct facts *f)
{
	char *label = label_of(f->sock);

	if (label) {
		open_entry(b, "LinuxSecurityLabel", "ay");
		/* With its NUL, as the specification has it */
		dbusp_put_bytes(b, label, strlen(label) + 1);
		close_entry(b);
	}
	free(label);
}

static int pidfd_of(const struct facts *f)
{
	socklen_t size = sizeof(int);
	int fd = -1;

	if (f->sock < 0 || getsockopt(f->sock, SOL_SOCKET, SO_PEERPIDFD, &fd, &size) < 0)
		return -1;
	return fd;
}

static void get_credentials(struct driver_call *call)
{
	struct dbusp_str name;
	struct dbusp_build b;
	struct facts f;
	int pidfd;

	if (!find(call, "credentials", &name, &f))
		return;
	pidfd = call->from->fds_ok ? pidfd_of(&f) : -1;
	driver_reply_begin_fds(call, &b, "a{sv}", pidfd >= 0);
	dbusp_open(&b, 'a', NULL);
	if (f.uid != (uid_t)-1)
		put_u32(&b, "UnixUserID", f.uid);
	put_groups(&b, &f);
	if (f.pid)
		put_u32(&b, "ProcessID", (uint32_t)f.pid);
	put_label(&b, &f);
	if (pidfd >= 0) {
		open_entry(&b, "ProcessFD", "h");
		dbusp_put_fixed(&b, 'h', &(uint32_t){ 0 });
		close_entry(&b);
	}
	dbusp_close(&b);
	driver_reply_end_fds(call, &b, &pidfd, pidfd >= 0);
}

static const struct driver_method methods[] = {
	{ CLASSIC_DRIVER, "GetConnectionUnixUser", "s", "u", DRIVER_ANY_PATH, get_unix_user },
	{ CLASSIC_DRIVER, "GetConnectionUnixProcessID", "s", "u", DRIVER_ANY_PATH, get_process_id },
	{ CLASSIC_DRIVER, "GetAdtAuditSessionData", "s", "ay", DRIVER_ANY_PATH, get_audit },
	{ CLASSIC_DRIVER, "GetConnectionSELinuxSecurityContext", "s", "ay", DRIVER_ANY_PATH,
	  get_label },
	{ CLASSIC_DRIVER, "GetConnectionCredentials", "s", "a{sv}", DRIVER_ANY_PATH,
	  get_credentials },
};

const struct driver_table driver_creds = {
	.methods = methods,
	.n_methods = ARRAY_SIZE(methods),
};
