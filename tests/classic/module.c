// SPDX-License-Identifier: LGPL-2.1-or-later
/* What only a bus of the module can get wrong: two parties keep its state, the module and us. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "native.h"
#include "own-bus.h"

#define PATH  "/org/example/Module"
#define IFACE "org.example.Module"
#define NAME  "org.example.Name"

#define VEC_MAX (2U << 20) /* payload of a message that needs no memfd */

static struct own_bus bus;

static void start(const char *config)
{
	own_bus_start(&bus, config, 0);
	native_path = bus.native;
	native_learn_names();
}

static struct libkdbus *join_shown(void)
{
	const struct libkdbus_options options = { .flags = KDBUS_HELLO_ACCEPT_FD,
						  .attach_send = _KDBUS_ATTACH_ALL };
	struct libkdbus *h;

	assert_int_equal(libkdbus_connect(native_path, &options, &h), 0);
	return h;
}

static void ping(struct peer *p)
{
	want_done(p, peer_call(p, DBUS, DBUS_PATH, "org.freedesktop.DBus.Peer", "Ping", ""));
}

static struct dbusp_desc signal_desc(uint32_t serial)
{
	return (struct dbusp_desc){ .type = DBUSP_SIGNAL,
				    .serial = serial,
				    .path = DBUSP_STR(PATH),
				    .interface = DBUSP_STR(IFACE),
				    .member = DBUSP_STR("Changed") };
}

/* ---- policy ---- */

/* Whose rules are about users does not want to hear "I do not tell who I am". */
static void test_silent_peer(void **state)
{
	struct libkdbus *silent, *shown;
	char name[32];
	struct got g;
	uint32_t serial;

	start("<policy user='65534'><deny receive_interface='" IFACE "'/></policy>");
	silent = native_join();
	shown = join_shown();
	WITH(p);
	serial = peer_call(&p, native_name(silent, name, sizeof(name)), PATH, IFACE, "Say", "");
	want_error(&p, serial, ERROR_NAME("AccessDenied"));
	serial = peer_call(&p, native_name(shown, name, sizeof(name)), PATH, IFACE, "Say", "");
	native_reply(shown, native_next(shown), 1, "heard");
	want_return(&p, serial, &g);
	got_free(&g);
	/* Who speaks is known. */
	assert_int_equal(libkdbus_acquire(silent, NAME, 0, NULL), 0);
	peer_close(&p);
	libkdbus_close(silent);
	libkdbus_close(shown);
	assert_int_equal(own_bus_stop(&bus), 0);
}

/* ---- coming and going ---- */

static unsigned int count_fds(pid_t pid)
{
	char path[64];
	unsigned int n = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	dir = opendir(path);
	assert_non_null(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

#define TIMES 100

/* Who says Hello and is gone by the time it is answered leaves nothing behind. */
static void test_gone_at_once(void **state)
{
	unsigned int before;
	struct peer p;
	struct got g;
	int i;

	start("");
	WITH(witness);
	want_done(&witness,
		  peer_driver(&witness, "AddMatch", "s", "member='NameOwnerChanged',arg2=''"));
	ping(&witness);
	before = count_fds(bus.pid);
	for (i = 0; i < TIMES; i++) {
		peer_open(&p);
		peer_auth(&p, false);
		peer_driver(&p, "Hello", "");
		peer_close(&p);
	}
	for (i = 0; i < TIMES; i++) {
		want_signal(&witness, DBUS, "NameOwnerChanged", &g);
		got_free(&g);
	}
	/*
	 * Sockets are closed by a thread, which nothing tells of: ask until it is done. It may not
	 * have been done with those of native_learn_names() when they were counted.
	 */
	while (count_fds(bus.pid) > before)
		ping(&witness);
	peer_close(&witness);
	assert_int_equal(own_bus_stop(&bus), 0);
}

#define BROADCASTS 8

/* A broadcast too large for a vector comes back to the daemon as a memfd, which is closed. */
static void test_large_broadcast(void **state)
{
	char *text = malloc(VEC_MAX + 2);
	unsigned int before;
	int i;

	assert_non_null(text);
	memset(text, 'x', VEC_MAX + 1);
	text[VEC_MAX + 1] = '\0';
	start("");
	WITH(p);
	ping(&p);
	before = count_fds(bus.pid);
	for (i = 0; i < BROADCASTS; i++) {
		peer_signal(&p, NULL, PATH, IFACE, "Changed", "s", text);
		ping(&p);
	}
	/*
	 * The daemon looks at what has come back before it reads this; sockets that a thread was
	 * yet to close may have been counted before.
	 */
	do
		ping(&p);
	while (count_fds(bus.pid) > before);
	peer_close(&p);
	assert_int_equal(own_bus_stop(&bus), 0);
	free(text);
}

static void flood(const char *path, uint64_t to)
{
	struct libkdbus *h;
	uint8_t *data;
	size_t len;
	int r;

	/* The sockets of others are not to live on here. */
	syscall(SYS_close_range, 3, ~0U, 0);
	alarm(300);
	native_path = path;
	h = native_join();
	data = native_message(signal_desc(1), "flood", &len);
	do
		r = native_send(h, &(struct native_send){ .dst_id = to, .cookie = 1 }, data, len);
	while (r != -ENXIO && r != -ECONNRESET);
	_exit(0);
}

/* Somebody who is flooded can leave all the same, and the flood ends with him. */
static void test_leaves_while_flooded(void **state)
{
	int status, i;
	pid_t pids[2];
	struct got g;

	start("");
	WITH(witness);
	want_done(&witness,
		  peer_driver(&witness, "AddMatch", "s", "member='NameOwnerChanged',arg2=''"));
	WITH(p);
	for (i = 0; i < 2; i++) {
		pids[i] = fork();
		if (!pids[i])
			flood(bus.native, native_id_of(&p));
	}
	/* It has begun. */
	assert_true(peer_next(&p, &g));
	got_free(&g);
	peer_close(&p);
	want_signal(&witness, DBUS, "NameOwnerChanged", &g);
	got_free(&g);
	for (i = 0; i < 2; i++) {
		assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
		assert_int_equal(status, 0);
	}
	peer_close(&witness);
	assert_int_equal(own_bus_stop(&bus), 0);
}

/* ---- calls ---- */

/* Whoever does not read what he is sent still learns that a call of his is over. */
static void test_callee_dies_in_flood(void **state)
{
	struct libkdbus *h;
	unsigned int n = 0;
	uint32_t serial;
	uint8_t *data;
	char name[32];
	struct got g;
	size_t len;
	char *text;

	start("<limit name='max_outgoing_bytes'>100000</limit>");
	h = native_join();
	WITH(p);
	serial = peer_call(&p, native_name(h, name, sizeof(name)), PATH, IFACE, "Say", "");
	libkdbus_done(h, native_next(h));
	text = malloc(20001);
	memset(text, 'x', 20000);
	text[20000] = 0;
	data = native_message(signal_desc(1), text, &len);
	while (native_send(h, &(struct native_send){ .dst_id = native_id_of(&p), .cookie = 1 },
			   data, len) == 0)
		n++;
	libkdbus_close(h);
	/* What he sent and the end of him come in no particular order to somebody who is slow. */
	for (;;) {
		assert_true(peer_next(&p, &g));
		if (g.h.frame.type == DBUSP_ERROR)
			break;
		got_free(&g);
	}
	assert_int_equal(g.h.reply_serial, serial);
	assert_string_equal(g.h.error_name.s, ERROR_NAME("NoReply"));
	got_free(&g);
	assert_true(n > 0);
	free(data);
	free(text);
	peer_close(&p);
	assert_int_equal(own_bus_stop(&bus), 0);
}

/* A name that was given up and taken back while nobody looked is there. */
static void test_name_returns(void **state)
{
	struct libkdbus *h;
	const struct kdbus_msg *msg;
	char name[32];
	uint32_t serial;
	struct got g;
	int i;

	start("");
	h = native_join();
	native_name(h, name, sizeof(name));
	WITH(p);
	want_done(&p,
		  peer_driver(&p, "AddMatch", "s", "member='NameOwnerChanged',arg0='" NAME "'"));
	assert_int_equal(libkdbus_acquire(h, NAME, 0, NULL), 0);
	want_driver_signal(&p, "NameOwnerChanged", NAME, "", name);
	for (i = 0; i < 20; i++) {
		assert_int_equal(libkdbus_release(h, NAME), 0);
		assert_int_equal(libkdbus_acquire(h, NAME, 0, NULL), 0);
		serial = peer_call(&p, NAME, PATH, IFACE, "Say", "");
		msg = native_next(h);
		native_reply(h, msg, 5, "here");
		libkdbus_done(h, msg);
		want_driver_signal(&p, "NameOwnerChanged", NAME, name, "");
		want_driver_signal(&p, "NameOwnerChanged", NAME, "", name);
		want_return(&p, serial, &g);
		got_free(&g);
	}
	peer_close(&p);
	libkdbus_close(h);
	assert_int_equal(own_bus_stop(&bus), 0);
}

/* More changes at once than the module keeps for anybody: what was missed is found out. */
static void test_missed_news(void **state)
{
	struct libkdbus *h[3];
	char text[64], name[32];
	struct got g;
	int i, k;

	start("");
	WITH(p);
	/* It cannot look while it is stopped. */
	ping(&p);
	kill(bus.pid, SIGSTOP);
	for (k = 0; k < 3; k++) {
		h[k] = native_join();
		for (i = 0; i < 200; i++) {
			snprintf(text, sizeof(text), NAME ".n%d.n%d", k, i);
			assert_int_equal(libkdbus_acquire(h[k], text, 0, NULL), 0);
		}
	}
	libkdbus_close(h[0]);
	kill(bus.pid, SIGCONT);
	want_return(&p, peer_driver(&p, "GetNameOwner", "s", NAME ".n2.n199"), &g);
	assert_string_equal(got_string(&g), native_name(h[2], name, sizeof(name)));
	got_free(&g);
	want_error(&p, peer_driver(&p, "GetNameOwner", "s", NAME ".n0.n0"),
		   ERROR_NAME("NameHasNoOwner"));
	libkdbus_close(h[1]);
	libkdbus_close(h[2]);
	peer_close(&p);
	assert_int_equal(own_bus_stop(&bus), 0);
}

/* ---- what costs the daemon ---- */

static long peak_kib(pid_t pid)
{
	char path[64], line[256];
	long kib = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	f = fopen(path, "re");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "VmHWM: %ld", &kib) == 1)
			break;
	fclose(f);
	return kib;
}

#define LARGE (128U << 20)

/* A hole is nothing to copy before it is known that it is to be delivered. */
static void test_sparse_memfd(void **state)
{
	struct kdbus_cmd_send cmd = { .size = sizeof(cmd) };
	int fd = memfd_create("sparse", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	struct libkdbus_builder b;
	struct libkdbus *h;
	struct kdbus_msg *msg;
	long before;
	void *built;

	assert_int_equal(ftruncate(fd, LARGE), 0);
	assert_int_equal(libkdbus_memfd_seal(fd), 0);
	start("");
	h = native_join();
	WITH(p);
	before = peak_kib(bus.pid);
	libkdbus_build(&b, sizeof(*msg), NULL, 0);
	libkdbus_build_memfd(&b, fd, 0, LARGE);
	assert_int_equal(libkdbus_build_end(&b, &built), 0);
	msg = built;
	msg->payload_type = KDBUS_PAYLOAD_DBUS;
	msg->dst_id = native_id_of(&p);
	msg->cookie = 1;
	cmd.msg_address = (uintptr_t)msg;
	assert_int_equal(libkdbus_send(h, &cmd), 0);
	libkdbus_build_clear(&b);
	want_nothing(&p);
	assert_in_range(peak_kib(bus.pid), before, before + (LARGE >> 11));
	close(fd);
	libkdbus_close(h);
	peer_close(&p);
	assert_int_equal(own_bus_stop(&bus), 0);
}

static int count_lines(int fd)
{
	char buf[4096];
	int lines = 0;
	ssize_t n, i;

	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	while ((n = read(fd, buf, sizeof(buf))) > 0)
		for (i = 0; i < n; i++)
			lines += buf[i] == '\n';
	return lines;
}

/* Nobody fills the log by what he sends. */
static void test_log(void **state)
{
	int log = memfd_create("log", 0), stderr_before = dup(STDERR_FILENO), i;
	const time_t begin = time(NULL);
	struct libkdbus *h;
	uint8_t *data;
	size_t len;

	dup2(log, STDERR_FILENO);
	start("<policy context='mandatory'><deny send_interface='" IFACE "'/></policy>");
	dup2(stderr_before, STDERR_FILENO);
	h = native_join();
	WITH(p);
	data = native_message(signal_desc(1), "x", &len);
	for (i = 0; i < 1000; i++) {
		native_send(h, &(struct native_send){ .dst_id = native_id_of(&p), .cookie = 1 },
			    data, len);
		native_send(h,
			    &(struct native_send){ .dst_id = KDBUS_DST_ID_BROADCAST,
						   .flags = KDBUS_MSG_SIGNAL,
						   .cookie = 2 },
			    data, len);
		if (i % 50 == 0)
			ping(&p);
	}
	ping(&p);
	libkdbus_close(h);
	peer_close(&p);
	assert_int_equal(own_bus_stop(&bus), 0);
	/* So many at once, and a few a second (daemon/log-limit.h) */
	assert_in_range(count_lines(log), 1, 500 + 10 * (time(NULL) - begin));
	free(data);
	close(log);
	close(stderr_before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_silent_peer),
		cmocka_unit_test(test_gone_at_once),
		cmocka_unit_test(test_large_broadcast),
		cmocka_unit_test(test_leaves_while_flooded),
		cmocka_unit_test(test_callee_dies_in_flood),
		cmocka_unit_test(test_name_returns),
		cmocka_unit_test(test_missed_news),
		cmocka_unit_test(test_sparse_memfd),
		cmocka_unit_test(test_log),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
