// SPDX-License-Identifier: LGPL-2.1-or-later
/* The domain, the bus of a test, connections and short forms of commands. */
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "fixture.h"

static struct libkdbus_daemon *own_daemon;

int fixture_start(void **state)
{
	const char *domain;

	(void)state;
	domain = getenv("KDBUS_DOMAIN");
	if (domain && *domain)
		return chdir(domain);
	if (libkdbus_daemon_start(NULL, &own_daemon) < 0)
		return -1;
	domain = libkdbus_daemon_domain(own_daemon);
	/* An unprivileged child has to get there. */
	return chmod(domain, 0755) < 0 ? -1 : chdir(domain);
}

/* A daemon that did not end well, with a leak or worse, fails the test. */
static void check_end(pid_t pid)
{
	int status;

	if (kill(pid, SIGTERM) == 0 && waitpid(pid, &status, 0) == pid && status == 0)
		return;
	print_error("# kdbusd ended with an error\n");
	exit(EXIT_FAILURE);
}

int fixture_end(void **state)
{
	(void)state;
	if (own_daemon)
		check_end(libkdbus_daemon_pid(own_daemon));
	own_daemon = libkdbus_daemon_stop(own_daemon);
	return chdir("/");
}

struct libkdbus *fixture_open(const char *path)
{
	struct libkdbus *h;

	assert_int_equal(libkdbus_open(path, 0, &h), 0);
	return h;
}

bool fixture_has_own_ways(const struct fixture *f)
{
	struct stat st;

	return stat(f->path, &st) == 0 && S_ISSOCK(st.st_mode);
}

int fixture_make_bus(struct libkdbus *control, const char *name, uint64_t flags)
{
	const struct kdbus_bloom_parameter bloom = { .size = 64, .n_hash = 1 };
	const uint64_t all = _KDBUS_ATTACH_ALL;
	struct libkdbus_builder b;
	struct kdbus_cmd *cmd;
	void *built;
	int r;

	libkdbus_build(&b, sizeof(*cmd), NULL, 0);
	libkdbus_build_item(&b, KDBUS_ITEM_BLOOM_PARAMETER, &bloom, sizeof(bloom));
	libkdbus_build_item(&b, KDBUS_ITEM_ATTACH_FLAGS_SEND, &all, sizeof(all));
	libkdbus_build_string(&b, KDBUS_ITEM_MAKE_NAME, name);
	assert_int_equal(libkdbus_build_end(&b, &built), 0);
	cmd = built;
	cmd->flags = flags;
	r = libkdbus_bus_make(control, cmd);
	libkdbus_build_clear(&b);
	return r;
}

int fixture_setup(void **state)
{
	static unsigned int number;
	struct fixture *f = calloc(1, sizeof(*f));

	if (!f || asprintf(&f->name, "%u-test%d-%u", (unsigned int)geteuid(), (int)getpid(),
			   number++) < 0)
		return -1;
	if (asprintf(&f->path, "%s/bus", f->name) < 0)
		return -1;
	f->owner = fixture_open(FIXTURE_CONTROL);
	if (fixture_make_bus(f->owner, f->name, KDBUS_MAKE_ACCESS_WORLD) < 0)
		return -1;
	*state = f;
	return 0;
}

int fixture_teardown(void **state)
{
	struct fixture *f = *state;

	libkdbus_close(f->owner);
	free(f->name);
	free(f->path);
	free(f);
	return 0;
}

int fixture_hello(struct libkdbus *h, uint64_t flags, uint64_t attach_send, uint64_t attach_recv,
		  uint64_t pool_size, const char *name)
{
	struct libkdbus_builder b;
	struct kdbus_cmd_hello *cmd;
	void *built;
	int r;

	libkdbus_build(&b, sizeof(*cmd), NULL, 0);
	if (name)
		libkdbus_build_string(&b, KDBUS_ITEM_NAME, name);
	libkdbus_build_string(&b, KDBUS_ITEM_CONN_DESCRIPTION, "this-is-my-name");
	assert_int_equal(libkdbus_build_end(&b, &built), 0);
	cmd = built;
	cmd->flags = flags;
	cmd->attach_flags_send = attach_send;
	cmd->attach_flags_recv = attach_recv;
	cmd->pool_size = pool_size;
	r = libkdbus_hello(h, cmd);
	if (r == 0)
		r = fixture_free(h, cmd->offset);
	libkdbus_build_clear(&b);
	return r;
}

struct libkdbus *fixture_connect_to(const char *path, uint64_t hello_flags)
{
	struct libkdbus *h = fixture_open(path);

	assert_int_equal(fixture_hello(h, hello_flags, _KDBUS_ATTACH_ALL, _KDBUS_ATTACH_ALL,
				       FIXTURE_POOL, NULL),
			 0);
	return h;
}

struct libkdbus *fixture_connect(const struct fixture *f)
{
	return fixture_connect_to(f->path, KDBUS_HELLO_ACCEPT_FD);
}

uint64_t fixture_id(struct libkdbus *h)
{
	return libkdbus_identity(h)->id;
}

int fixture_free(struct libkdbus *h, uint64_t offset)
{
	struct kdbus_cmd_free cmd = { .size = sizeof(cmd), .offset = offset };

	return libkdbus_free(h, &cmd);
}

int fixture_byebye(struct libkdbus *h)
{
	struct kdbus_cmd cmd = { .size = sizeof(cmd) };

	return libkdbus_byebye(h, &cmd);
}

void fixture_match_start(struct libkdbus_builder *b)
{
	libkdbus_build(b, sizeof(struct kdbus_cmd_match), NULL, 0);
}

int fixture_match(struct libkdbus *h, uint64_t cookie, uint64_t flags, struct libkdbus_builder *b)
{
	struct kdbus_cmd_match *cmd;
	void *built;
	int r;

	assert_int_equal(libkdbus_build_end(b, &built), 0);
	cmd = built;
	cmd->cookie = cookie;
	cmd->flags = flags;
	r = libkdbus_match_add(h, cmd);
	libkdbus_build_clear(b);
	return r;
}

void fixture_watch_id(struct libkdbus *h, uint64_t type, uint64_t id)
{
	const struct kdbus_notify_id_change rule = { .id = id };
	struct libkdbus_builder b;

	fixture_match_start(&b);
	libkdbus_build_item(&b, type, &rule, sizeof(rule));
	assert_int_equal(fixture_match(h, 0, 0, &b), 0);
}

void fixture_watch_name(struct libkdbus *h, uint64_t type, const char *name)
{
	struct libkdbus_builder b;
	struct kdbus_notify_name_change *rule;
	size_t size = sizeof(*rule) + strlen(name) + 1;

	fixture_match_start(&b);
	rule = libkdbus_build_item(&b, type, NULL, size);
	assert_non_null(rule);
	rule->old_id.id = KDBUS_MATCH_ID_ANY;
	rule->new_id.id = KDBUS_MATCH_ID_ANY;
	memcpy(rule->name, name, strlen(name) + 1);
	assert_int_equal(fixture_match(h, 0, 0, &b), 0);
}

/* ---- policy, endpoints, special connections ---- */

static void add_access(struct libkdbus_builder *b, const struct access *access, size_t n)
{
	struct kdbus_policy_access item;
	size_t i;

	for (i = 0; i < n; i++) {
		if (access[i].name) {
			libkdbus_build_string(b, KDBUS_ITEM_NAME, access[i].name);
			continue;
		}
		item = (struct kdbus_policy_access){ .type = access[i].type,
						     .access = access[i].access,
						     .id = access[i].id };
		libkdbus_build_item(b, KDBUS_ITEM_POLICY_ACCESS, &item, sizeof(item));
	}
}

static int policy_command(struct libkdbus *h, const struct access *access, size_t n,
			  int (*command)(struct libkdbus *h, struct kdbus_cmd *cmd))
{
	struct libkdbus_builder b;
	void *built;
	int r;

	libkdbus_build(&b, sizeof(struct kdbus_cmd), NULL, 0);
	add_access(&b, access, n);
	assert_int_equal(libkdbus_build_end(&b, &built), 0);
	r = command(h, built);
	libkdbus_build_clear(&b);
	return r;
}

int fixture_update_endpoint(struct libkdbus *h, const struct access *access, size_t n)
{
	return policy_command(h, access, n, libkdbus_endpoint_update);
}

int fixture_update_policy(struct libkdbus *h, const struct access *access, size_t n)
{
	return policy_command(h, access, n, libkdbus_update);
}

int fixture_make_endpoint(struct libkdbus *h, const char *name, uint64_t flags)
{
	struct libkdbus_builder b;
	struct kdbus_cmd *cmd;
	void *built;
	int r;

	libkdbus_build(&b, sizeof(*cmd), NULL, 0);
	libkdbus_build_string(&b, KDBUS_ITEM_MAKE_NAME, name);
	assert_int_equal(libkdbus_build_end(&b, &built), 0);
	cmd = built;
	cmd->flags = flags;
	r = libkdbus_endpoint_make(h, cmd);
	libkdbus_build_clear(&b);
	return r;
}

struct libkdbus *fixture_special(const struct fixture *f, uint64_t flags,
				 const struct access *access, size_t n, int *ret_error)
{
	struct libkdbus *h = fixture_open(f->path);
	struct libkdbus_builder b;
	struct kdbus_cmd_hello *cmd;
	void *built;

	libkdbus_build(&b, sizeof(*cmd), NULL, 0);
	add_access(&b, access, n);
	assert_int_equal(libkdbus_build_end(&b, &built), 0);
	cmd = built;
	cmd->flags = flags;
	cmd->attach_flags_send = _KDBUS_ATTACH_ALL;
	cmd->attach_flags_recv = _KDBUS_ATTACH_ALL;
	cmd->pool_size = FIXTURE_POOL;
	*ret_error = libkdbus_hello(h, cmd);
	/* A policy holder cannot FREE. */
	if (*ret_error == 0 && !(flags & KDBUS_HELLO_POLICY_HOLDER))
		assert_int_equal(fixture_free(h, cmd->offset), 0);
	if (*ret_error < 0)
		h = libkdbus_close(h);
	libkdbus_build_clear(&b);
	return h;
}

/* ---- other commands ---- */

int fixture_update_mask(struct libkdbus *h, uint64_t type, uint64_t mask)
{
	struct libkdbus_builder b;
	void *built;
	int r;

	libkdbus_build(&b, sizeof(struct kdbus_cmd), NULL, 0);
	libkdbus_build_item(&b, type, &mask, sizeof(mask));
	assert_int_equal(libkdbus_build_end(&b, &built), 0);
	r = libkdbus_update(h, built);
	libkdbus_build_clear(&b);
	return r;
}

int fixture_info(struct libkdbus *h, uint64_t id, const char *name, uint64_t attach,
		 const struct kdbus_info **ret)
{
	struct libkdbus_builder b;
	struct kdbus_cmd_info *cmd;
	void *built;
	int r;

	libkdbus_build(&b, sizeof(*cmd), NULL, 0);
	if (name)
		libkdbus_build_string(&b, KDBUS_ITEM_NAME, name);
	assert_int_equal(libkdbus_build_end(&b, &built), 0);
	cmd = built;
	cmd->id = id;
	cmd->attach_flags = attach;
	r = libkdbus_conn_info(h, cmd);
	if (r == 0) {
		*ret = (const void *)((const char *)libkdbus_pool(h, NULL) + cmd->offset);
		assert_int_equal((*ret)->size, cmd->info_size);
	}
	libkdbus_build_clear(&b);
	return r;
}

int fixture_has(struct libkdbus *h, uint64_t id, const char *name)
{
	const struct kdbus_info *info;
	int r = fixture_info(h, id, name, 0, &info);

	if (r == 0)
		assert_int_equal(libkdbus_done(h, info), 0);
	return r;
}

int fixture_list(struct libkdbus *h, uint64_t flags, struct kdbus_cmd_list *ret)
{
	*ret = (struct kdbus_cmd_list){ .size = sizeof(*ret), .flags = flags };
	return libkdbus_list(h, ret);
}
