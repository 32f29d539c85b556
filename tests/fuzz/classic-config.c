// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Configuration files: whatever is accepted can be asked for decisions, and the compiled answer
 * agrees with the number of rules that match. Input: a file. It includes nothing and knows one user
 * and one group: what it would open, list or ask for is not there.
 */
#include <dirent.h>
#include <errno.h>
#include <grp.h>
#include <pwd.h>

#include "daemon/classic/config.h"
#include "daemon/classic/policy.h"
#include "fuzz.h"

int __wrap_open(const char *path, int flags, ...);
int __wrap_scandir(const char *path, struct dirent ***entries, void *filter, void *compare);
struct passwd *__wrap_getpwnam(const char *name);
struct group *__wrap_getgrnam(const char *name);

int __wrap_open(const char *path, int flags, ...)
{
	errno = ENOENT;
	return -1;
}

int __wrap_scandir(const char *path, struct dirent ***entries, void *filter, void *compare)
{
	errno = ENOENT;
	return -1;
}

struct passwd *__wrap_getpwnam(const char *name)
{
	static struct passwd root = { .pw_uid = 0 };

	return strcmp(name, "root") ? NULL : &root;
}

struct group *__wrap_getgrnam(const char *name)
{
	static struct group adm = { .gr_gid = 4 };

	return strcmp(name, "adm") ? NULL : &adm;
}

static void check_verdict(struct policy_verdict v, unsigned int n)
{
	FUZZ_CHECK(!v.rule || v.rule->allow == v.allowed);
	FUZZ_CHECK(!v.rule || v.rule->file);
	FUZZ_CHECK(v.allowed ? n > 0 : !v.rule || n > 0);
}

static void check_messages(const struct policy_view *view)
{
	const struct policy_peer peer = policy_peer_of("org.freedesktop.DBus");
	unsigned int bits;

	for (bits = 0; bits < 64; bits++) {
		struct policy_msg m = {
			.type = bits & 3 ? (bits & 3) + 1 : 1,
			.interface = dbusp_str(bits & 4 ? "org.freedesktop.DBus" : NULL),
			.member = dbusp_str("Hello"),
			.path = dbusp_str("/"),
			.reply = bits & 8,
			.requested_reply = bits & 16,
			.eavesdropping = bits & 32,
		};

		check_verdict(policy_may_send(view, &m, &peer),
			      policy_count(view, POLICY_SEND, &m, &peer));
		check_verdict(policy_may_receive(view, &m, &peer),
			      policy_count(view, POLICY_RECEIVE, &m, &peer));
	}
}

static void check_config(const struct config *c)
{
	static const gid_t gids[] = { 0, 4 };
	struct policy_view *view;
	uid_t uid;

	FUZZ_CHECK(c->listen.n && c->file && c->files.n == 1 && !c->skipped.n);
	for (uid = 0; uid < 2; uid++) {
		FUZZ_CHECK(policy_view_make(c->policy, uid, gids, 1 + uid, uid, &view) == 0);
		check_messages(view);
		policy_may_own(view, "org.example.Name");
		policy_view_unref(view);
	}
	policy_may_connect(c->policy, 0, gids, 2, false);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz_copy(data, size), *error = NULL;
	struct config *config = NULL;
	int r = config_parse("fuzz.conf", text, size, NULL, &config, &error);

	FUZZ_CHECK(r == 0 || r == -EINVAL);
	FUZZ_CHECK(!config == (r != 0) && !error == (r == 0));
	FUZZ_CHECK(!error || !strncmp(error, "fuzz.conf:", 10));
	if (config)
		check_config(config);
	config_unref(config);
	free(error);
	free(text);
	return 0;
}
