// SPDX-License-Identifier: LGPL-2.1-or-later
/* What the library adds to the ioctls: the conformance programs test the commands. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include <libkdbus.h>

struct bus {
	struct libkdbus_daemon *daemon;
	const char *path;
	struct libkdbus *a;
	struct libkdbus *b;
};

static int set_up(void **state)
{
	struct bus *bus = calloc(1, sizeof(*bus));

	if (!bus || libkdbus_daemon_start(NULL, &bus->daemon) < 0)
		return -1;
	bus->path = libkdbus_daemon_bus(bus->daemon);
	if (libkdbus_connect(bus->path, NULL, &bus->a) < 0 ||
	    libkdbus_connect(bus->path, NULL, &bus->b) < 0)
		return -1;
	*state = bus;
	return 0;
}

static int tear_down(void **state)
{
	struct bus *bus = *state;

	libkdbus_close(bus->a);
	libkdbus_close(bus->b);
	libkdbus_daemon_stop(bus->daemon);
	free(bus);
	return 0;
}

static uint64_t id_of(struct libkdbus *h)
{
	return libkdbus_identity(h)->id;
}

static uint64_t in_ms(unsigned int ms)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec + ms * 1000000ULL;
}

static int send_built(struct libkdbus *h, struct libkdbus_builder *b, uint64_t dst, uint64_t cookie)
{
	struct kdbus_cmd_send cmd = { .size = sizeof(cmd) };
	struct kdbus_msg *msg;
	void *built;
	int r = libkdbus_build_end(b, &built);

	assert_int_equal(r, 0);
	msg = built;
	msg->dst_id = dst;
	msg->cookie = cookie;
	msg->payload_type = KDBUS_PAYLOAD_DBUS;
	cmd.msg_address = (uintptr_t)msg;
	r = libkdbus_send(h, &cmd);
	libkdbus_build_clear(b);
	return r;
}

static int send_text(struct libkdbus *h, uint64_t dst, const char *text)
{
	struct libkdbus_builder b;

	libkdbus_build(&b, sizeof(struct kdbus_msg), NULL, 0);
	libkdbus_build_vec(&b, text, strlen(text) + 1);
	return send_built(h, &b, dst, 1);
}

/* A message with a memfd of two pages, of which all but 8 bytes at the front are sent. */
static void send_memfd(struct libkdbus *h, uint64_t dst, char fill)
{
	struct libkdbus_builder b;
	char page[4096];
	int fd = memfd_create("payload", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	memset(page, fill, sizeof(page));
	assert_int_equal(write(fd, page, sizeof(page)), sizeof(page));
	assert_int_equal(write(fd, page, sizeof(page)), sizeof(page));
	assert_int_equal(libkdbus_memfd_seal(fd), 0);
	libkdbus_build(&b, sizeof(struct kdbus_msg), NULL, 0);
	libkdbus_build_memfd(&b, fd, 8, 2 * sizeof(page) - 8);
	assert_int_equal(send_built(h, &b, dst, 1), 0);
	close(fd);
}

/* Lines of /proc/self/maps that name @what */
static int mappings(const char *what)
{
	FILE *f = fopen("/proc/self/maps", "re");
	char line[512];
	int n = 0;

	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		n += strstr(line, what) != NULL;
	fclose(f);
	return n;
}

/* ---- what HELLO told, and the descriptor ---- */

static void a_handle_learns_who_it_is(void **state)
{
	struct bus *bus = *state;
	const struct libkdbus_identity *a = libkdbus_identity(bus->a);
	const struct libkdbus_identity *b = libkdbus_identity(bus->b);
	size_t size;

	assert_true(a->id > 0 && b->id == a->id + 1);
	assert_int_equal(a->bloom.size, 64);
	assert_int_equal(a->bloom.n_hash, 8);
	assert_memory_equal(a->bus_id, b->bus_id, 16);
	assert_non_null(libkdbus_pool(bus->a, &size));
	assert_int_equal(size, 16 << 20);
}

static void an_unconnected_handle_has_nothing(void **state)
{
	struct bus *bus = *state;
	struct kdbus_cmd_hello cmd = { .size = sizeof(cmd), .flags = KDBUS_FLAG_NEGOTIATE };
	struct libkdbus *h;

	assert_int_equal(libkdbus_open(bus->path, 0, &h), 0);
	/* Asking what HELLO can do is no HELLO. */
	assert_int_equal(libkdbus_hello(h, &cmd), 0);
	assert_int_equal(cmd.flags, KDBUS_HELLO_ACCEPT_FD | KDBUS_HELLO_ACTIVATOR |
					    KDBUS_HELLO_POLICY_HOLDER | KDBUS_HELLO_MONITOR);
	assert_int_equal(libkdbus_fd(h), -EBADFD);
	assert_int_equal(libkdbus_wait(h, 0, -1), -EBADFD);
	assert_null(libkdbus_pool(h, NULL));
	assert_null(libkdbus_identity(h));
	cmd = (struct kdbus_cmd_hello){ .size = sizeof(cmd), .pool_size = 4097 };
	assert_int_equal(libkdbus_hello(h, &cmd), -EINVAL);
	cmd.pool_size = 4096;
	assert_int_equal(libkdbus_hello(h, &cmd), 0);
	assert_non_null(libkdbus_identity(h));
	libkdbus_close(h);
}

static int count_connections(struct libkdbus *h)
{
	struct kdbus_cmd_list cmd = { .size = sizeof(cmd), .flags = KDBUS_LIST_UNIQUE };
	const char *at, *list;
	int n = 0;

	if (libkdbus_list(h, &cmd) < 0)
		return -1;
	list = (const char *)libkdbus_pool(h, NULL) + cmd.offset;
	for (at = list; at < list + cmd.list_size; n++)
		at += (((const struct kdbus_info *)at)->size + 7) & ~7ULL;
	return libkdbus_done(h, list) < 0 ? -1 : n;
}

/* In a child: the kernel connects, but there is no room for the pool. */
static int connect_without_room(const struct bus *bus)
{
	const struct rlimit none = { .rlim_cur = 1, .rlim_max = 1 };
	struct kdbus_cmd_hello cmd = { .size = sizeof(cmd), .pool_size = 16 << 20 };
	struct libkdbus *h, *other;

	if (libkdbus_connect(bus->path, NULL, &other) < 0 || libkdbus_open(bus->path, 0, &h) < 0)
		return 1;
	if (setrlimit(RLIMIT_AS, &none) < 0 || libkdbus_hello(h, &cmd) != -ENOMEM)
		return 2;
	if (count_connections(other) != 3)
		return 3;
	if (libkdbus_hello(h, &cmd) != -ECONNRESET || libkdbus_wait(h, 0, -1) != -ECONNRESET ||
	    libkdbus_fd(h) != -EBADFD || libkdbus_pool(h, NULL) || libkdbus_identity(h))
		return 4;
	libkdbus_close(h);
	return count_connections(other) == 3 ? 0 : 5;
}

static void a_connection_without_a_pool_is_none(void **state)
{
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid)
		_exit(connect_without_room(*state));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void commands_of_files_are_none_of_the_bus(void **state)
{
	struct bus *bus = *state;
	int flag = 1;

	assert_int_equal(libkdbus_command(bus->a, FIONBIO, &flag), -ENOTTY);
	assert_int_equal(libkdbus_command(bus->a, FIOCLEX, NULL), -ENOTTY);
	assert_int_equal(libkdbus_command(bus->a, KDBUS_CMD_LIST, NULL), -EFAULT);
	assert_int_equal(libkdbus_command(bus->a, KDBUS_CMD_HELLO, NULL), -EBADFD);
}

static void the_descriptor_says_when_there_is_something(void **state)
{
	struct bus *bus = *state;
	struct pollfd p = { .fd = libkdbus_fd(bus->b), .events = POLLIN };
	const struct kdbus_msg *msg;

	assert_int_equal(fcntl(p.fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	assert_int_equal(poll(&p, 1, 0), 0);
	assert_int_equal(send_text(bus->a, id_of(bus->b), "text"), 0);
	assert_int_equal(poll(&p, 1, 0), 1);
	assert_int_equal(p.revents, POLLIN);
	assert_int_equal(libkdbus_receive(bus->b, &msg), 0);
	assert_int_equal(poll(&p, 1, 0), 0);
	assert_int_equal(libkdbus_done(bus->b, msg), 0);
	assert_int_equal(libkdbus_fd(bus->b), p.fd);
}

/* ---- waiting ---- */

static void a_wait_has_five_ends(void **state)
{
	struct bus *bus = *state;
	const struct kdbus_msg *msg;
	int cancel[2];

	assert_int_equal(libkdbus_wait(bus->b, 0, -1), -ETIMEDOUT);
	assert_int_equal(libkdbus_wait(bus->b, in_ms(1), -1), -ETIMEDOUT);
	assert_int_equal(pipe2(cancel, O_CLOEXEC), 0);
	assert_int_equal(write(cancel[1], "x", 1), 1);
	assert_int_equal(libkdbus_wait(bus->b, UINT64_MAX, cancel[0]), -ECANCELED);
	assert_int_equal(send_text(bus->a, id_of(bus->b), "text"), 0);
	assert_int_equal(libkdbus_wait(bus->b, UINT64_MAX, cancel[0]), 0);
	assert_int_equal(libkdbus_receive(bus->b, &msg), 0);
	assert_int_equal(libkdbus_done(bus->b, msg), 0);
	close(cancel[0]);
	close(cancel[1]);
	bus->daemon = libkdbus_daemon_stop(bus->daemon);
	assert_int_equal(libkdbus_wait(bus->b, UINT64_MAX, -1), -ECONNRESET);
	assert_int_equal(libkdbus_receive(bus->b, &msg), -ECONNRESET);
}

static void *wait_for_one(void *h)
{
	return (void *)(intptr_t)libkdbus_wait(h, UINT64_MAX, -1);
}

static void threads_wait_at_the_same_time(void **state)
{
	struct bus *bus = *state;
	pthread_t threads[4];
	void *r;
	int i;

	for (i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, wait_for_one, bus->b), 0);
	assert_int_equal(send_text(bus->a, id_of(bus->b), "text"), 0);
	for (i = 0; i < 4; i++) {
		assert_int_equal(pthread_join(threads[i], &r), 0);
		assert_null(r);
	}
}

/* ---- payload ---- */

static const void *payload(struct libkdbus *h, const struct kdbus_msg *msg, size_t *ret_size)
{
	const struct kdbus_item *item = NULL;
	const void *address = NULL;
	int r;

	*ret_size = 0;
	while ((item = libkdbus_item_next(msg, sizeof(*msg), item))) {
		r = libkdbus_payload(h, msg, item, &address, ret_size);
		if (r == 0)
			return address;
		assert_int_equal(r, -EINVAL);
	}
	return NULL;
}

static void payload_lies_in_the_pool(void **state)
{
	struct bus *bus = *state;
	const struct kdbus_msg *msg;
	size_t size;

	assert_int_equal(send_text(bus->a, id_of(bus->b), "some text"), 0);
	assert_int_equal(libkdbus_receive(bus->b, &msg), 0);
	assert_string_equal(payload(bus->b, msg, &size), "some text");
	assert_int_equal(size, 10);
	assert_int_equal(libkdbus_payload(bus->a, msg, (const void *)(msg + 1),
					  (const void **)&state, &size),
			 -ENXIO);
	assert_int_equal(libkdbus_done(bus->b, msg), 0);
}

static void a_memfd_is_mapped_until_its_message_is_freed(void **state)
{
	struct bus *bus = *state;
	const struct kdbus_msg *first, *second;
	const char *p, *q;
	size_t size;

	send_memfd(bus->a, id_of(bus->b), 'x');
	send_memfd(bus->a, id_of(bus->b), 'y');
	assert_int_equal(libkdbus_receive(bus->b, &first), 0);
	assert_int_equal(libkdbus_receive(bus->b, &second), 0);
	assert_int_equal(mappings("memfd:payload"), 0);
	p = payload(bus->b, first, &size);
	assert_int_equal(size, 8184);
	assert_true(p[0] == 'x' && p[8183] == 'x');
	q = payload(bus->b, second, &size);
	assert_true(q[0] == 'y' && q[8183] == 'y');
	/* A second look is the same mapping, also without the descriptor. */
	close(libkdbus_item_find(first, sizeof(*first), KDBUS_ITEM_PAYLOAD_MEMFD)->memfd.fd);
	assert_ptr_equal(payload(bus->b, first, &size), p);
	assert_int_equal(mappings("memfd:payload"), 2);
	assert_int_equal(libkdbus_done(bus->b, first), 0);
	assert_int_equal(mappings("memfd:payload"), 1);
	assert_true(q[0] == 'y' && q[8183] == 'y');
	/* The place of the first is the next one's. */
	send_memfd(bus->a, id_of(bus->b), 'z');
	assert_int_equal(libkdbus_receive(bus->b, &first), 0);
	p = payload(bus->b, first, &size);
	assert_true(p[0] == 'z' && p[8183] == 'z');
	assert_int_equal(libkdbus_done(bus->b, second), 0);
	assert_int_equal(libkdbus_done(bus->b, second), -ENXIO);
	assert_int_equal(mappings("memfd:payload"), 1);
	bus->b = libkdbus_close(bus->b);
	assert_int_equal(mappings("memfd:payload"), 0);
}

/* ---- fork and exec ---- */

static int use_in_child(const struct bus *bus)
{
	struct kdbus_cmd_list list = { .size = sizeof(list) };
	struct libkdbus *own;
	struct stat st;
	int fd;

	if (libkdbus_list(bus->a, &list) != -ECHILD || libkdbus_fd(bus->a) != -ECHILD ||
	    libkdbus_pool(bus->a, NULL) || libkdbus_wait(bus->a, 0, -1) != -ECHILD)
		return 1;
	if (mappings("kdbus-conn"))
		return 2;
	/* Neither a descriptor of the parent's, nor is a number closed that is another's now. */
	for (fd = 3; fd < 64; fd++)
		if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size == 0 &&
		    (st.st_mode & 0777) == 0600)
			return 3;
	if (libkdbus_connect(bus->path, NULL, &own) < 0)
		return 4;
	libkdbus_close(bus->a);
	if (libkdbus_list(own, &list) < 0)
		return 5;
	libkdbus_close(own);
	return 0;
}

static void a_child_has_nothing_of_the_parents(void **state)
{
	struct bus *bus = *state;
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid)
		_exit(use_in_child(bus));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(send_text(bus->b, id_of(bus->a), "still there"), 0);
}

static void a_close_is_effective_whatever_children_there_are(void **state)
{
	struct bus *bus = *state;
	uint64_t id = id_of(bus->a);
	int begin[2], end[2], status;
	pid_t pid;
	char byte;

	assert_int_equal(pipe2(begin, O_CLOEXEC), 0);
	assert_int_equal(pipe2(end, O_CLOEXEC), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		close(end[1]);
		if (write(begin[1], "x", 1) != 1)
			_exit(1);
		_exit(read(end[0], &byte, 1) != 0);
	}
	close(end[0]);
	assert_int_equal(read(begin[0], &byte, 1), 1);
	bus->a = libkdbus_close(bus->a);
	assert_int_equal(send_text(bus->b, id, "too late"), -ENXIO);
	close(end[1]);
	close(begin[0]);
	close(begin[1]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* ---- choosing an engine ---- */

static void the_path_or_the_variable_chooses(void **state)
{
	struct bus *bus = *state;
	struct libkdbus *h;

	unsetenv("KDBUS_ENGINE");
	assert_int_equal(libkdbus_open(bus->path, 0, &h), 0);
	libkdbus_close(h);
	assert_int_equal(libkdbus_open("/proc/self/status", 0, &h), -EOPNOTSUPP);
	assert_int_equal(libkdbus_open("/dev/null", 0, &h), -EOPNOTSUPP);
	setenv("KDBUS_ENGINE", "user", 1);
	assert_int_equal(libkdbus_open(bus->path, 0, &h), -EOPNOTSUPP);
	setenv("KDBUS_ENGINE", "kernel", 1);
	assert_int_equal(libkdbus_open(bus->path, 0, &h), 0);
	libkdbus_close(h);
}

static void the_domain_of_the_kernel_engine(void **state)
{
	char *path;

	unsetenv("KDBUS_DOMAIN");
	assert_int_equal(libkdbus_bus_path("0-user", &path), 0);
	assert_string_equal(path, "/sys/fs/kdbus/0-user/bus");
	free(path);
	assert_int_equal(libkdbus_domain_path(&path), 0);
	assert_string_equal(path, "/sys/fs/kdbus");
	free(path);
	setenv("KDBUS_DOMAIN", "/sys/fs/kdbus", 1);
}

static void assert_error(const char *path, int error, const char *says)
{
	char text[256];
	struct libkdbus *h;
	int r = libkdbus_open(path, 0, &h);

	assert_int_equal(r, error);
	libkdbus_open_error(path, r, text, sizeof(text));
	if (!strstr(text, path) || !strstr(text, says))
		fail_msg("%s", text);
}

static void what_is_missing_is_said(void **state)
{
	char dir[] = "/dev/shm-XXXXXX", path[64];

	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/0-user/bus", dir);
	assert_error(path, -ENOENT, "kdbusfs is not mounted there");
	assert_error("/sys/fs/kdbus/0-missing/bus", -ENOENT, "nobody has made that bus");
	assert_error("/proc/self/status", -EOPNOTSUPP, "is not on kdbusfs");
	rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_handle_learns_who_it_is, set_up, tear_down),
		cmocka_unit_test_setup_teardown(an_unconnected_handle_has_nothing, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(a_connection_without_a_pool_is_none, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(commands_of_files_are_none_of_the_bus, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(the_descriptor_says_when_there_is_something,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_wait_has_five_ends, set_up, tear_down),
		cmocka_unit_test_setup_teardown(threads_wait_at_the_same_time, set_up, tear_down),
		cmocka_unit_test_setup_teardown(payload_lies_in_the_pool, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_memfd_is_mapped_until_its_message_is_freed,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_child_has_nothing_of_the_parents, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(a_close_is_effective_whatever_children_there_are,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(the_path_or_the_variable_chooses, set_up,
						tear_down),
		cmocka_unit_test(the_domain_of_the_kernel_engine),
		cmocka_unit_test(what_is_missing_is_said),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
