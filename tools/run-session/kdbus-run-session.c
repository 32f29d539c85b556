// SPDX-License-Identifier: LGPL-2.1-or-later
/* Run a program on a session bus of its own, which ends with it. Like dbus-run-session(1). */
#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#define STATUS_USAGE 2
#define STATUS_ERROR 127
#define ADDRESS_MAX 4096

struct session {
	const char *binary; /* as --dbus-daemon says; NULL: kdbusd */
	const char *config;
	char *domain; /* where programs that speak kdbus find the bus; NULL: nowhere */
	pid_t daemon;
	pid_t program;
	int signals;
	sigset_t inherited;
};

static const char help_text[] =
	"Usage: kdbus-run-session [OPTION]... [--] PROGRAM [ARGUMENT]...\n"
	"Run a program on a session bus of its own, which ends with the program.\n"
	"\n"
	"  --config-file FILE      configuration of the bus (that of the standard session)\n"
	"  --dbus-daemon BINARY    run BINARY, which takes dbus-daemon's options (kdbusd)\n"
	"  --help                  show this help\n"
	"  --version               show the version\n"
	"\n"
	"Exits with the program's status, 128 + N if signal N killed it, 127 if nothing ran.\n";

static int fail(const char *what, const char *why)
{
	fprintf(stderr, "kdbus-run-session: %s: %s\n", what, why);
	return STATUS_ERROR;
}

static int usage(const char *why)
{
	fprintf(stderr, "kdbus-run-session: %s; for example: kdbus-run-session -- bash\n", why);
	return STATUS_USAGE;
}

/* ---- the bus ---- */

/* Descriptor @fd is where the address goes. Does not return. */
static void exec_daemon(const struct session *s, int fd)
{
	const char *binary = s->binary ? s->binary : "kdbusd";
	char print[40], config[ADDRESS_MAX] = "--session";
	const char *args[8] = { binary, config, "--nofork", print };
	int n = 4;

	sigprocmask(SIG_SETMASK, &s->inherited, NULL);
	/* ^C is for the program; the bus goes when that is over, or we are. */
	setsid();
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	snprintf(print, sizeof(print), "--print-address=%d", fd);
	if (s->config)
		snprintf(config, sizeof(config), "--config-file=%s", s->config);
	if (s->domain) {
		args[n++] = "--domain";
		args[n++] = s->domain;
	}
	execvp(binary, (char **)args);
	_exit(fail(binary, strerror(errno)));
}

static int make_domain(struct session *s)
{
	const char *where = getenv("XDG_RUNTIME_DIR");

	if (!where || !*where)
		where = getenv("TMPDIR");
	if (!where || !*where)
		where = "/tmp";
	if (asprintf(&s->domain, "%s/kdbus-session-XXXXXX", where) < 0)
		return -ENOMEM;
	return mkdtemp(s->domain) ? 0 : -errno;
}

/* One line, without its end; what follows would be another address. */
static int read_address(int fd, char *ret)
{
	size_t len = 0;
	ssize_t n;

	while (len < ADDRESS_MAX - 1) {
		n = read(fd, ret + len, 1);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return -EPIPE;
		if (ret[len] == '\n')
			break;
		len++;
	}
	ret[len] = 0;
	return len ? 0 : -EPIPE;
}

static int start_daemon(struct session *s, char *ret_address)
{
	int out[2], r;

	r = s->binary ? 0 : make_domain(s);
	if (r < 0)
		return r;
	if (pipe(out) < 0)
		return -errno;
	s->daemon = fork();
	if (s->daemon == 0) {
		close(out[0]);
		exec_daemon(s, out[1]);
	}
	close(out[1]);
	r = s->daemon < 0 ? -errno : read_address(out[0], ret_address);
	close(out[0]);
	return r;
}

static void stop_daemon(struct session *s)
{
	if (s->daemon > 0) {
		kill(s->daemon, SIGTERM);
		while (waitpid(s->daemon, NULL, 0) < 0 && errno == EINTR)
			;
	}
	if (s->domain)
		rmdir(s->domain);
	free(s->domain);
}

/* ---- the program ---- */

static void exec_program(const struct session *s, const char *address, char **argv)
{
	sigprocmask(SIG_SETMASK, &s->inherited, NULL);
	unsetenv("DBUS_SESSION_BUS_PID");
	unsetenv("DBUS_SESSION_BUS_WINDOWID");
	unsetenv("DBUS_STARTER_BUS_TYPE");
	unsetenv("DBUS_STARTER_ADDRESS");
	setenv("DBUS_SESSION_BUS_ADDRESS", address, 1);
	if (s->domain)
		setenv("KDBUS_DOMAIN", s->domain, 1);
	execvp(argv[0], argv);
	_exit(fail(argv[0], strerror(errno)));
}

/* Has it ended? Then *ret_status is what we exit with. */
static bool reap_program(const struct session *s, int *ret_status)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (pid != s->program)
			continue;
		*ret_status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
		return true;
	}
	return false;
}

/* What a terminal sends goes to the program by itself; the rest we hand on. */
static int wait_for_program(const struct session *s)
{
	struct signalfd_siginfo info;
	int status = STATUS_ERROR;

	for (;;) {
		if (read(s->signals, &info, sizeof(info)) != sizeof(info))
			continue;
		if (info.ssi_signo == SIGTERM || info.ssi_signo == SIGHUP)
			kill(s->program, (int)info.ssi_signo);
		else if (info.ssi_signo == SIGCHLD && reap_program(s, &status))
			return status;
	}
}

static int catch_signals(struct session *s)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGQUIT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, &s->inherited);
	s->signals = signalfd(-1, &set, SFD_CLOEXEC);
	return s->signals < 0 ? -errno : 0;
}

static int run(struct session *s, char **argv)
{
	char address[ADDRESS_MAX];
	int r = catch_signals(s);

	if (r == 0)
		r = start_daemon(s, address);
	if (r < 0)
		return fail("cannot start the bus", r == -EPIPE ? "it printed no address"
								: strerror(-r));
	s->program = fork();
	if (s->program < 0)
		return fail("cannot start the program", strerror(errno));
	if (s->program == 0)
		exec_program(s, address, argv);
	return wait_for_program(s);
}

/* ---- options ---- */

/* Positive: go on. Otherwise the exit status, negated. */
static int parse_options(int argc, char **argv, struct session *s)
{
	static const struct option options[] = {
		{ "config-file", required_argument, NULL, 'c' },
		{ "dbus-daemon", required_argument, NULL, 'd' },
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'v' },
		{ NULL, 0, NULL, 0 },
	};
	int c;

	opterr = 0;
	while ((c = getopt_long(argc, argv, "+", options, NULL)) != -1) {
		switch (c) {
		case 'c':
			s->config = optarg;
			break;
		case 'd':
			s->binary = optarg;
			break;
		case 'h':
			fputs(help_text, stdout);
			return 0;
		case 'v':
			puts("kdbus-run-session " KDBUS_VERSION);
			return 0;
		default:
			return -usage("unknown or incomplete option");
		}
	}
	return optind == argc ? -usage("no program is named") : 1;
}

int main(int argc, char **argv)
{
	struct session s = { .signals = -1 };
	int r = parse_options(argc, argv, &s);

	if (r <= 0)
		return -r;
	r = run(&s, argv + optind);
	stop_daemon(&s);
	return r;
}
