// SPDX-License-Identifier: LGPL-2.1-or-later
/* Information, metadata, namespaces, policy: §15.7 and §15.8. */
#include "bus.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static int conn_info(struct peer *peer, uint64_t id, const char *name, uint64_t mask,
		     const struct kdbus_info **ret_info)
{
	struct buf b;
	int r;

	start(&b, sizeof(b.info));
	b.info.id = id;
	b.info.attach_flags = mask;
	if (name)
		put_str(&b, KDBUS_ITEM_NAME, name);
	r = cmd(peer->fd, KDBUS_CMD_CONN_INFO, &b);
	if (r)
		return r;
	*ret_info = (const void *)(peer->pool + b.info.offset);
	EQ((*ret_info)->size, b.info.info_size);
	EQ(free_slice(peer, b.info.offset), 0);
	return 0;
}

static const struct kdbus_item *info_item(const struct kdbus_info *info, uint64_t type)
{
	return find_item(info, sizeof(*info), info->size, type);
}

struct self {
	struct peer *peer;
	pid_t pid;
	pid_t parent;
};

static void check_self(void *data)
{
	const struct self *self = data;
	const struct kdbus_creds *creds;
	const struct kdbus_pids *pids;
	const struct kdbus_info *info;

	EQ(conn_info(self->peer, self->peer->id, NULL,
		     KDBUS_ATTACH_NAMES | KDBUS_ATTACH_CREDS | KDBUS_ATTACH_PIDS |
			     KDBUS_ATTACH_CONN_DESCRIPTION,
		     &info), 0);
	EQ(info->id, self->peer->id);
	EQ(info->flags, KDBUS_HELLO_ACCEPT_FD);
	EQ(strcmp(payload(info_item(info, KDBUS_ITEM_CONN_DESCRIPTION)), "a-test-connect"), 0);
	creds = payload(info_item(info, KDBUS_ITEM_CREDS));
	EQ(creds->uid, 0);
	EQ(creds->fsgid, 0);
	pids = payload(info_item(info, KDBUS_ITEM_PIDS));
	EQ(pids->pid, self->pid);
	EQ(pids->tid, self->pid);
	EQ(pids->ppid, self->parent);
	CHECK(!info_item(info, KDBUS_ITEM_CAPS));
	CHECK(!info_item(info, KDBUS_ITEM_TIMESTAMP));
}

static void connection_info(void)
{
	const struct kdbus_info *info;
	struct peer a;
	struct self self = { .peer = &a, .pid = getpid(), .parent = getppid() };
	struct buf b;

	hello(&a);
	EQ(conn_info(&a, a.id, NULL, 0, &info), 0);
	EQ(info->size, sizeof(*info));
	EQ(conn_info(&a, 4711, NULL, 0, &info), -ENXIO);
	EQ(conn_info(&a, 0, "no.such", 0, &info), -ESRCH);
	EQ(conn_info(&a, 0, NULL, 0, &info), -EINVAL);
	EQ(conn_info(&a, a.id, NULL, ALL + 1, &info), -EINVAL);
	start(&b, sizeof(b.info));
	put(&b, KDBUS_ITEM_NAME, "x", 1);
	EQ(cmd(a.fd, KDBUS_CMD_CONN_INFO, &b), -EINVAL);
	check_self(&self);
	in_child(ABSENT, check_self, &self);
	EQ(acquire(&a, "com.example.a", 0, NULL), 0);
	EQ(conn_info(&a, 0, "com.example.a", ALL, &info), 0);
	EQ(info->id, a.id);
	CHECK(info_item(info, KDBUS_ITEM_OWNED_NAME));
	EQ(payload_size(info_item(info, KDBUS_ITEM_CAPS)), 36);
	CHECK(info_item(info, KDBUS_ITEM_CGROUP));
	CHECK(info_item(info, KDBUS_ITEM_PID_COMM));
	CHECK(strstr(payload(info_item(info, KDBUS_ITEM_EXE)), "/tests/"));
}

static void creator_info(void)
{
	const struct kdbus_info *info;
	struct peer a;
	struct buf b;

	hello(&a);
	start(&b, sizeof(b.info));
	b.info.attach_flags = ALL;
	EQ(cmd(a.fd, KDBUS_CMD_BUS_CREATOR_INFO, &b), 0);
	info = (const void *)(a.pool + b.info.offset);
	EQ(info->flags, KDBUS_MAKE_ACCESS_WORLD);
	EQ(strcmp(payload(info_item(info, KDBUS_ITEM_MAKE_NAME)), strrchr(bus_dir, '/') + 1), 0);
	CHECK(info_item(info, KDBUS_ITEM_CREDS));
	EQ(free_slice(&a, b.info.offset), 0);
}

static void message_metadata(void)
{
	const struct kdbus_timestamp *stamp;
	const struct kdbus_msg *msg;
	const struct kdbus_pids *pids;
	struct peer a, b;

	hello(&a);
	hello(&b);
	EQ(acquire(&a, "com.example.a", 0, NULL), 0);
	EQ(send_plain(&a, b.id, 1), 0);
	EQ(recv_msg(&b, &msg), 0);
	pids = payload(msg_item(msg, KDBUS_ITEM_PIDS));
	EQ(pids->pid, getpid());
	EQ(pids->ppid, getppid());
	EQ(((const struct kdbus_creds *)payload(msg_item(msg, KDBUS_ITEM_CREDS)))->euid, 0);
	EQ(strcmp((const char *)payload(msg_item(msg, KDBUS_ITEM_OWNED_NAME)) + 8,
		  "com.example.a"), 0);
	EQ(payload_size(msg_item(msg, KDBUS_ITEM_CAPS)), 36);
	CHECK(msg_item(msg, KDBUS_ITEM_CMDLINE));
	CHECK(msg_item(msg, KDBUS_ITEM_TID_COMM));
	CHECK(msg_item(msg, KDBUS_ITEM_EXE));
	CHECK(msg_item(msg, KDBUS_ITEM_CGROUP));
	CHECK(msg_item(msg, KDBUS_ITEM_AUDIT));
	stamp = payload(msg_item(msg, KDBUS_ITEM_TIMESTAMP));
	CHECK(stamp->seqnum && stamp->monotonic_ns <= now_ns() && stamp->realtime_ns);
	done(&b, msg);
}

static void fake_metadata(void)
{
	struct kdbus_creds fake = { 1, 2, 3, 0xffffffff, 5, 6, 7, 8 };
	const struct kdbus_creds *creds;
	const struct kdbus_info *info;
	const struct kdbus_msg *msg;
	struct peer a, b;
	struct buf h;

	hello_buf(&h, 0);
	put(&h, KDBUS_ITEM_CREDS, &fake, sizeof(fake));
	put_str(&h, KDBUS_ITEM_SECLABEL, "label");
	EQ(try_hello(&a, bus_path, &h), 0);
	hello(&b);
	EQ(conn_info(&b, a.id, NULL, ALL, &info), 0);
	creds = payload(info_item(info, KDBUS_ITEM_CREDS));
	EQ(creds->uid, 1);
	EQ(creds->fsuid, 0xffffffff);
	EQ(creds->fsgid, 8);
	EQ(strcmp(payload(info_item(info, KDBUS_ITEM_SECLABEL)), "label"), 0);
	CHECK(!info_item(info, KDBUS_ITEM_PIDS));
	EQ(send_plain(&a, b.id, 1), 0);
	EQ(recv_msg(&b, &msg), 0);
	CHECK(!msg_item(msg, KDBUS_ITEM_CREDS));
	CHECK(!msg_item(msg, KDBUS_ITEM_PIDS));
	CHECK(msg_item(msg, KDBUS_ITEM_TIMESTAMP));
}

/* Sends to the receiver from other ids, or from other namespaces. */
static void send_one(void *data)
{
	struct peer p;

	hello(&p);
	EQ(send_plain(&p, *(const uint64_t *)data, 1), 0);
}

static void write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY);

	CHECK(fd >= 0);
	EQ(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

static void send_from_namespaces(void *data)
{
	EQ(unshare(CLONE_NEWUSER | CLONE_NEWPID), 0);
	write_file("/proc/self/setgroups", "deny");
	write_file("/proc/self/uid_map", "0 65534 1");
	write_file("/proc/self/gid_map", "0 65534 1");
	EQ(getuid(), 0);
	in_child(0, send_one, data);
}

static void allow_talk(struct peer *holder, const char *name)
{
	struct buf b;

	hello_buf(&b, KDBUS_HELLO_POLICY_HOLDER);
	put_str(&b, KDBUS_ITEM_NAME, name);
	put_access(&b, KDBUS_POLICY_ACCESS_WORLD, 0, KDBUS_POLICY_TALK);
	EQ(try_hello(holder, bus_path, &b), 0);
}

static void expect_creds(struct peer *peer, uint64_t uid, bool pids_known)
{
	const struct kdbus_creds *creds;
	const struct kdbus_pids *pids;
	const struct kdbus_msg *msg;

	EQ(recv_msg(peer, &msg), 0);
	creds = payload(msg_item(msg, KDBUS_ITEM_CREDS));
	EQ(creds->uid, uid);
	EQ(creds->egid, uid);
	pids = payload(msg_item(msg, KDBUS_ITEM_PIDS));
	EQ(pids->pid != 0, pids_known);
	EQ(pids->tid != 0, pids_known);
	CHECK(msg_item(msg, KDBUS_ITEM_CAPS) || !pids_known);
	done(peer, msg);
}

/* A receiver whose ids are all foreign to it. */
static void receive_in_namespaces(void *data)
{
	int *sync = data;
	uint64_t id;
	struct peer p;
	char byte;

	hello(&p);
	id = p.id;
	EQ(write(sync[1], &id, sizeof(id)), sizeof(id));
	EQ(read(sync[2], &byte, 1), 1);
	expect_creds(&p, 65534, false);
}

static void enter_and_receive(void *data)
{
	EQ(unshare(CLONE_NEWUSER | CLONE_NEWPID), 0);
	write_file("/proc/self/setgroups", "deny");
	write_file("/proc/self/uid_map", "0 65534 1");
	write_file("/proc/self/gid_map", "0 65534 1");
	in_child(0, receive_in_namespaces, data);
}

static void metadata_ns(void)
{
	struct peer a, holder;
	int sync[4];
	uint64_t id;
	pid_t pid;

	hello(&a);
	allow_talk(&holder, "com.example.a");
	EQ(acquire(&a, "com.example.a", 0, NULL), 0);
	in_child(ABSENT, send_one, &a.id);
	expect_creds(&a, 65534, true);
	in_child(ABSENT, send_from_namespaces, &a.id);
	expect_creds(&a, 65534, true);
	EQ(pipe(sync), 0);
	EQ(pipe(sync + 2), 0);
	pid = spawn(ABSENT, enter_and_receive, sync);
	EQ(read(sync[0], &id, sizeof(id)), sizeof(id));
	EQ(send_plain(&a, id, 1), 0);
	EQ(write(sync[3], "x", 1), 1);
	join(pid);
}

/* A mount of one's own, in a user namespace of one's own: a domain of one's own. */
static void own_domain(void *data)
{
	int fd;

	(void)data;
	EQ(unshare(CLONE_NEWUSER | CLONE_NEWNS), 0);
	write_file("/proc/self/setgroups", "deny");
	write_file("/proc/self/uid_map", "0 65534 1");
	write_file("/proc/self/gid_map", "0 65534 1");
	EQ(mount("kdbusfs", "/mnt", "kdbusfs", 0, NULL), 0);
	fd = open_at("/mnt/control");
	EQ(make_bus(fd, "65534-a", 0), -EINVAL);
	EQ(make_bus(fd, "0-a", 0), 0);
	EQ(access("/mnt/0-a/bus", F_OK), 0);
	CHECK(access(ROOT "/0-a", F_OK));
	fd = open_at("/mnt/0-a/bus");
	close(fd);
}

static void userns_mount(void)
{
	in_child(ABSENT, own_domain, NULL);
}

static int set_policy(struct peer *holder, const char *name, int type, uint64_t id, int access)
{
	struct buf b;

	start(&b, sizeof(b.cmd));
	put_str(&b, KDBUS_ITEM_NAME, name);
	if (type)
		put_access(&b, type, id, access);
	return cmd(holder->fd, KDBUS_CMD_UPDATE, &b);
}

static int holder_hello(struct peer *holder, const char *name)
{
	struct buf b;

	hello_buf(&b, KDBUS_HELLO_POLICY_HOLDER);
	put_str(&b, KDBUS_ITEM_NAME, name);
	return try_hello(holder, bus_path, &b);
}

static void policy_records(void)
{
	struct peer a, b, c;

	EQ(holder_hello(&a, ".example.a"), -EINVAL);
	EQ(holder_hello(&a, "example"), -EINVAL);
	EQ(holder_hello(&a, "com.example.a"), 0);
	EQ(holder_hello(&b, "com.example.b"), 0);
	EQ(holder_hello(&c, "com.example.b"), -EEXIST);
	EQ(set_policy(&a, "com.example.a", 0, 0, 0), 0);
	EQ(set_policy(&b, "com.example.a", 0, 0, 0), -EEXIST);
	EQ(set_policy(&b, "com.example.a.*", 0, 0, 0), 0);
	EQ(set_policy(&a, "com.example.a.*", 0, 0, 0), -EEXIST);
	EQ(set_policy(&a, "com.example.*", 0, 0, 0), 0);
	EQ(set_policy(&b, "com.example.a", 0, 0, 0), 0);
	EQ(set_policy(&b, "com.example.*", 0, 0, 0), -EEXIST);
	EQ(set_policy(&b, ".example.*", 0, 0, 0), -EINVAL);
	EQ(set_policy(&b, "example", 0, 0, 0), -EINVAL);
	hello(&c);
	EQ(set_policy(&c, "com.example.c", 0, 0, 0), -EOPNOTSUPP);
}

struct attempt {
	const char *name;
	uint64_t dst;
	int own;
	int talk;
};

static void unprivileged(void *data)
{
	const struct attempt *attempt = data;
	struct peer p;

	hello(&p);
	EQ(acquire(&p, attempt->name, 0, NULL), attempt->own);
	if (attempt->dst)
		EQ(send_plain(&p, attempt->dst, 1), attempt->talk);
	EQ(broadcast(&p, 1), 0);
}

static void policy_own(void)
{
	struct attempt attempt = { .name = "com.example.a" };
	struct peer holder;
	const struct {
		int type;
		uint64_t id;
		int access;
		int expect;
	} rows[] = {
		{ KDBUS_POLICY_ACCESS_WORLD, 0, KDBUS_POLICY_OWN, 0 },
		{ KDBUS_POLICY_ACCESS_GROUP, ABSENT, KDBUS_POLICY_OWN, 0 },
		{ KDBUS_POLICY_ACCESS_USER, ABSENT, KDBUS_POLICY_OWN, 0 },
		{ KDBUS_POLICY_ACCESS_GROUP, 1, KDBUS_POLICY_OWN, -EPERM },
		{ KDBUS_POLICY_ACCESS_USER, 1, KDBUS_POLICY_OWN, -EPERM },
		{ KDBUS_POLICY_ACCESS_WORLD, 0, KDBUS_POLICY_TALK, -EPERM },
		{ 0, 0, 0, -EPERM },
	};

	EQ(holder_hello(&holder, "com.example.a"), 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		EQ(set_policy(&holder, "com.example.a", rows[i].type, rows[i].id, rows[i].access),
		   0);
		attempt.own = rows[i].expect;
		in_child(ABSENT, unprivileged, &attempt);
	}
	bye(&holder);
	in_child(ABSENT, unprivileged, &attempt);
}

static void policy_talk(void)
{
	struct attempt attempt = { .name = "com.example.b", .own = -EPERM, .talk = -EPERM };
	struct peer a, holder;

	hello(&a);
	attempt.dst = a.id;
	EQ(acquire(&a, "com.example.a", 0, NULL), 0);
	in_child(ABSENT, unprivileged, &attempt);
	EQ(holder_hello(&holder, "com.example.a"), 0);
	EQ(set_policy(&holder, "com.example.a", KDBUS_POLICY_ACCESS_USER, ABSENT,
		      KDBUS_POLICY_SEE), 0);
	in_child(ABSENT, unprivileged, &attempt);
	EQ(set_policy(&holder, "com.example.a", KDBUS_POLICY_ACCESS_USER, ABSENT,
		      KDBUS_POLICY_TALK), 0);
	attempt.talk = 0;
	in_child(ABSENT, unprivileged, &attempt);
	EQ(recv_cookie(&a), 1);
	bye(&holder);
	attempt.talk = -EPERM;
	in_child(ABSENT, unprivileged, &attempt);
}

static void listen(void *data)
{
	int *sync = data;
	struct peer p;
	char byte;

	hello(&p);
	match_all(&p);
	EQ(write(sync[1], "x", 1), 1);
	EQ(read(sync[2], &byte, 1), 1);
	EQ(readable(p.fd), byte == 'y');
}

/* Who may not talk to the sender does not hear it either. */
/* What is handed down with a fork: the child has the last copy of the holder. */
struct heirloom {
	struct peer holder;
	uint64_t dst;
	int parent_closed;
};

static void heir(void *data)
{
	struct heirloom *heirloom = data;
	struct peer p;
	char byte;

	EQ(read(heirloom->parent_closed, &byte, 1), 1);
	hello(&p);
	EQ(send_plain(&p, heirloom->dst, 1), -EPERM);
	EQ(set_policy(&heirloom->holder, "com.example.a", KDBUS_POLICY_ACCESS_USER, ABSENT,
		      KDBUS_POLICY_TALK), 0);
	EQ(send_plain(&p, heirloom->dst, 2), 0);
	close(heirloom->holder.fd);
	EQ(send_plain(&p, heirloom->dst, 3), -EPERM);
}

static void policy_inherited(void)
{
	struct heirloom heirloom;
	struct peer a;
	int sync[2];
	pid_t pid;

	hello(&a);
	EQ(acquire(&a, "com.example.a", 0, NULL), 0);
	EQ(holder_hello(&heirloom.holder, "com.example.a"), 0);
	EQ(pipe(sync), 0);
	heirloom.dst = a.id;
	heirloom.parent_closed = sync[0];
	pid = spawn(ABSENT, heir, &heirloom);
	close(heirloom.holder.fd);
	EQ(write(sync[1], "x", 1), 1);
	join(pid);
	EQ(recv_cookie(&a), 2);
}

static void policy_broadcast(void)
{
	struct peer a, holder;
	int sync[4];
	char byte;
	pid_t pid;

	hello(&a);
	EQ(acquire(&a, "com.example.a", 0, NULL), 0);
	for (int allowed = 0; allowed < 2; allowed++) {
		if (allowed)
			allow_talk(&holder, "com.example.a");
		EQ(pipe(sync), 0);
		EQ(pipe(sync + 2), 0);
		pid = spawn(ABSENT, listen, sync);
		EQ(read(sync[0], &byte, 1), 1);
		EQ(broadcast(&a, 1), 0);
		EQ(write(sync[3], allowed ? "y" : "n", 1), 1);
		join(pid);
	}
}

static const struct test tests[] = {
	{ "connection-info (§15.7)", connection_info },
	{ "creator of the bus (§6.9)", creator_info },
	{ "metadata of a message (§8.3)", message_metadata },
	{ "faked metadata (§8.5)", fake_metadata },
	{ "metadata-ns (§15.7)", metadata_ns },
	{ "mount in a user namespace (§1.1)", userns_mount },
	{ "policy (§15.8)", policy_records },
	{ "policy-priv: own (§15.8)", policy_own },
	{ "policy-priv: talk (§15.8)", policy_talk },
	{ "policy-priv: holder in a child (§15.8)", policy_inherited },
	{ "policy-priv: broadcast (§15.8)", policy_broadcast },
	{ NULL, NULL },
};

int main(void)
{
	return run_tests(tests);
}
