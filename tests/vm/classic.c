// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * D-Bus programs on a bus of the module: those of tests/classic that know nothing of engines, three
 * client libraries with each other, and what Debian has for the command line. Each case is a
 * program that ends with status 0, on a bus of its own unless it starts one. What it prints are
 * results, or belong to one.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define ADDRESS	 "unix:path=/mnt/classic"
#define AT_IT	 "--address=unix:path=/mnt/classic"
#define ARGS_MAX 16
#define SECONDS	 "120" /* only ends a hang */

static int n_results, n_failed;

static void result(bool good, const char *what)
{
	printf("%sok %d - %s\n", good ? "" : "not ", ++n_results, what);
	fflush(stdout);
	n_failed += !good;
}

/* ---- programs ---- */

/* Its output is @out, -1: ours */
static pid_t start(const char *const *argv, int out)
{
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid)
		return pid;
	if (out >= 0) {
		dup2(out, STDOUT_FILENO);
		dup2(out, STDERR_FILENO);
	}
	execv(argv[0], (char **)argv);
	_exit(127);
}

#define START(out, ...) start((const char *const[]){ __VA_ARGS__, NULL }, out)

static int wait_for(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -1;
	return status;
}

/* A program, and what it says */
struct said {
	pid_t pid;
	int fd;
};

static struct said listen_to(const char *const *argv)
{
	struct said s;
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		exit(1);
	s.pid = start(argv, ends[1]);
	s.fd = ends[0];
	close(ends[1]);
	return s;
}

static bool read_line(int fd, char *line, size_t size)
{
	size_t n = 0;

	while (n < size - 1 && read(fd, line + n, 1) == 1)
		if (line[n++] == '\n')
			break;
	line[n] = '\0';
	return n;
}

/* ---- the bus ---- */

static struct said bus_start(void)
{
	static const char *const argv[] = { "/bin/kdbusd",
					    "--engine",
					    "kernel",
					    "--config-file=/bin/session.conf",
					    AT_IT,
					    "--nofork",
					    "--domain=/mnt/domain",
					    "--print-address",
					    NULL };
	struct said bus = listen_to(argv);
	char line[512];

	setenv("DBUS_ADDRESS", ADDRESS, 1);
	setenv("DBUS_SESSION_BUS_ADDRESS", ADDRESS, 1);
	/* In front of it, what it complains about */
	while (read_line(bus.fd, line, sizeof(line))) {
		if (strstr(line, ADDRESS))
			return bus;
		printf("# %s", line);
	}
	result(false, "kdbusd starts");
	exit(1);
}

static void bus_stop(struct said *bus, const char *what)
{
	char line[512], text[256];

	kill(bus->pid, SIGTERM);
	snprintf(text, sizeof(text), "the daemon ends well after %s", what);
	while (read_line(bus->fd, line, sizeof(line)))
		printf("# %s", line);
	close(bus->fd);
	result(wait_for(bus->pid) == 0, text);
}

/* ---- programs that print results ---- */

static void run(const char *name, const char *arg, bool with_bus)
{
	char path[64], what[96];
	struct said bus;
	int status;

	snprintf(path, sizeof(path), "/bin/classic-%s", name);
	snprintf(what, sizeof(what), "all of classic-%s ran", name);
	printf("# classic-%s\n", name);
	if (with_bus)
		bus = bus_start();
	status = wait_for(START(-1, path, arg));
	result(status == 0, what);
	if (with_bus)
		bus_stop(&bus, name);
}

/* ---- pairs of libraries ---- */

static const char *const libraries[] = { "gdbus", "sdbus", "libdbus" };
#define N_LIBRARIES (sizeof(libraries) / sizeof(libraries[0]))

static struct said serve(const char *library, const char *name)
{
	char path[64], line[256];
	const char *const argv[] = { path, "serve", name, NULL };
	struct said service;

	snprintf(path, sizeof(path), "/bin/echo-%s", library);
	service = listen_to(argv);
	while (read_line(service.fd, line, sizeof(line)) && strcmp(line, "ready\n"))
		printf("# %s", line);
	return service;
}

static void pair(const char *client, const char *server)
{
	char path[64], name[64], what[64];
	struct said service;
	bool good;

	snprintf(name, sizeof(name), "org.example.Echo.%s.%s", server, client);
	snprintf(path, sizeof(path), "/bin/echo-%s", client);
	snprintf(what, sizeof(what), "%s asks %s", client, server);
	service = serve(server, name);
	good = wait_for(START(-1, path, "ask", name)) == 0;
	good &= wait_for(service.pid) == 0;
	close(service.fd);
	result(good, what);
}

static void pairs(void)
{
	struct said bus = bus_start();
	size_t i, j;

	for (i = 0; i < N_LIBRARIES; i++)
		for (j = 0; j < N_LIBRARIES; j++)
			pair(libraries[i], libraries[j]);
	bus_stop(&bus, "pairs of libraries");
}

/* ---- command lines ---- */

#define SERVICE "org.example.CommandLine"
#define OBJECT	"/org/example/echo"
#define ECHO	"org.example.Echo"
#define DRIVER	"org.freedesktop.DBus"

#define ECHO_METHOD "org.example.Echo.Echo"
#define FAIL_METHOD "org.example.Echo.Fail"
#define TO_SERVICE  "--dest=org.example.CommandLine"
#define TO_DRIVER   "--dest=org.freedesktop.DBus"

/* What it says has @wanted in it, and it ends with @status. */
static void expect(const char *what, const char *wanted, int status, const char *const *argv)
{
	static char text[1 << 16];
	struct said s = listen_to(argv);
	size_t n = 0;
	ssize_t got;
	bool good;

	while (n < sizeof(text) - 1 && (got = read(s.fd, text + n, sizeof(text) - 1 - n)) > 0)
		n += (size_t)got;
	text[n] = '\0';
	close(s.fd);
	good = wait_for(s.pid) == status << 8 && strstr(text, wanted);
	if (!good)
		printf("# %s\n", text);
	result(good, what);
}

#define EXPECT(what, wanted, status, ...) \
	expect(what, wanted, status, (const char *const[]){ __VA_ARGS__, NULL })
#define GDBUS  "/bin/gdbus", "call", "--session", "--timeout", SECONDS
#define BUSCTL "/bin/busctl", AT_IT, "--no-pager", "--timeout=120"
#define SEND   "/bin/dbus-send", "--session", "--print-reply", "--reply-timeout=120000"

static void gdbus(void)
{
	EXPECT("gdbus call of a service", "('text',)\n", 0, GDBUS, "--dest", SERVICE,
	       "--object-path", OBJECT, "--method", ECHO_METHOD, "text");
	EXPECT("gdbus call of nobody", "ServiceUnknown", 1, GDBUS, "--dest", "org.example.Nobody",
	       "--object-path", "/", "--method", "a.b.C");
	EXPECT("gdbus introspect", "Sum(in", 0, "/bin/gdbus", "introspect", "--session", "--dest",
	       SERVICE, "--object-path", OBJECT);
	EXPECT("gdbus wait", "", 0, "/bin/gdbus", "wait", "--session", "--timeout", SECONDS,
	       SERVICE);
}

static void busctl(void)
{
	EXPECT("busctl list", SERVICE, 0, BUSCTL, "list");
	EXPECT("busctl call", "u 6\n", 0, BUSCTL, "call", SERVICE, OBJECT, ECHO, "Sum", "au", "3",
	       "1", "2", "3");
	EXPECT("busctl introspect", ".Sum", 0, BUSCTL, "introspect", SERVICE, OBJECT, ECHO);
	EXPECT("busctl tree", OBJECT, 0, BUSCTL, "tree", SERVICE);
	EXPECT("busctl get-property of the bus", "as ", 0, BUSCTL, "get-property", DRIVER,
	       "/org/freedesktop/DBus", DRIVER, "Features");
}

static void dbus_send(void)
{
	EXPECT("dbus-send", "string \"text\"", 0, SEND, TO_SERVICE, OBJECT, ECHO_METHOD,
	       "string:text");
	EXPECT("dbus-send to the bus", SERVICE, 0, SEND, TO_DRIVER, "/",
	       "org.freedesktop.DBus.ListNames");
	EXPECT("dbus-send, an error", "as you wish", 1, SEND, TO_SERVICE, OBJECT, FAIL_METHOD);
}

static void command_lines(void)
{
	struct said bus = bus_start(), service = serve("sdbus", SERVICE);

	gdbus();
	busctl();
	dbus_send();
	kill(service.pid, SIGKILL);
	wait_for(service.pid);
	close(service.fd);
	bus_stop(&bus, "command lines");
}

/* Both client libraries want to know which machine this is. */
static bool name_machine(void)
{
	static const char id[] = "0123456789abcdef0123456789abcdef\n";
	int fd;
	bool good;

	mkdir("/etc", 0755);
	fd = open("/etc/machine-id", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	good = write(fd, id, sizeof(id) - 1) == sizeof(id) - 1;
	close(fd);
	return good;
}

int main(void)
{
	static const char *const on_a_bus[] = { "driver",   "handshake", "malformed", "routing",
						"features", "hostile",	 "crowd" };
	static const char *const with_its_own[] = { "bridge",	 "limits",    "closing",
						    "hand-over", "in-flight", "module" };
	size_t i;

	signal(SIGPIPE, SIG_IGN);
	if (!name_machine())
		return 1;
	for (i = 0; i < sizeof(on_a_bus) / sizeof(on_a_bus[0]); i++)
		run(on_a_bus[i], NULL, true);
	for (i = 0; i < sizeof(with_its_own) / sizeof(with_its_own[0]); i++)
		run(with_its_own[i], NULL, false);
	run("native-start", "/bin/echo-gdbus", false);
	pairs();
	command_lines();
	/* It takes memory that is counted after the tests. */
	unlink("/etc/machine-id");
	printf("1..%d\n", n_results);
	return n_failed != 0;
}
