// SPDX-License-Identifier: LGPL-2.1-or-later
/* kdbusd: options, start and end. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "classic/classic.h"
#include "client.h"
#include "kernel.h"

struct options {
	const char *domain;
	bool kernel;
	const char *address;
	bool system;
	bool print_address;
	int address_fd;
	bool fork;
};

static const char help_text[] =
	"Usage: kdbusd [OPTION]...\n"
	"The user engine of kdbus: a domain of buses, and one bus in it.\n"
	"\n"
	"  --engine user|kernel    who carries messages: this daemon and shared memory, or the\n"
	"                          module kdbus ($KDBUS_ENGINE, else user)\n"
	"  --domain DIR            serve DIR ($XDG_RUNTIME_DIR/kdbus, as root /run/kdbus); or use\n"
	"                          the kdbusfs there (" KERNEL_DOMAIN ")\n"
	"  --address ADDRESS       serve classic D-Bus clients there, too\n"
	"  --system                make the bus 0-system, open to all users, instead of UID-user\n"
	"  --print-address[=FD]    print the address of the bus to FD (1) once it serves\n"
	"  --nofork                stay in the foreground (the default)\n"
	"  --help                  show this help\n"
	"  --version               show the version\n";

static int usage(const char *format, const char *what)
{
	fprintf(stderr, "kdbusd: ");
	fprintf(stderr, format, what);
	fprintf(stderr, "; for example: kdbusd --domain /run/user/1000/kdbus\n");
	return 2;
}

static int parse_fd(const char *text, int *ret)
{
	char *end;
	long fd = strtol(text, &end, 10);

	if (end == text || *end || fd < 0 || fd > 1 << 20)
		return -EINVAL;
	*ret = (int)fd;
	return 0;
}

static int parse_engine(const char *name, struct options *o)
{
	o->kernel = !strcmp(name, "kernel");
	if (o->kernel || !strcmp(name, "user"))
		return 1;
	return -usage("no engine '%s', there are user and kernel", name);
}

/* Positive: go on. Otherwise the exit status, negated. */
static int parse_options(int argc, char **argv, struct options *o)
{
	static const struct option options[] = {
		{ "domain", required_argument, NULL, 'd' },
		{ "engine", required_argument, NULL, 'e' },
		{ "address", required_argument, NULL, 'a' },
		{ "system", no_argument, NULL, 's' },
		{ "print-address", optional_argument, NULL, 'p' },
		{ "nofork", no_argument, NULL, 'n' },
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'v' },
		{ NULL, 0, NULL, 0 },
	};
	const char *engine = getenv("KDBUS_ENGINE");
	int c;

	opterr = 0;
	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (c) {
		case 'd':
			o->domain = optarg;
			break;
		case 'e':
			engine = optarg;
			break;
		case 'a':
			o->address = optarg;
			break;
		case 's':
			o->system = true;
			break;
		case 'p':
			o->print_address = true;
			if (optarg && parse_fd(optarg, &o->address_fd) < 0)
				return -usage("--print-address needs a descriptor number, not '%s'",
					      optarg);
			break;
		case 'n':
			break;
		case 'h':
			fputs(help_text, stdout);
			return 0;
		case 'v':
			puts("kdbusd " KDBUS_VERSION);
			return 0;
		default:
			return -usage("unknown or incomplete option '%s'", argv[optind - 1]);
		}
	}
	if (optind < argc)
		return -usage("unexpected argument '%s'", argv[optind]);
	return parse_engine(engine && *engine ? engine : "user", o);
}

static int default_domain(const struct options *o, char **ret)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR");

	if (o->kernel)
		return asprintf(ret, KERNEL_DOMAIN) < 0 ? -ENOMEM : 0;
	if (geteuid() == 0)
		return asprintf(ret, "/run/kdbus") < 0 ? -ENOMEM : 0;
	if (!runtime || !*runtime)
		return -ENXIO;
	return asprintf(ret, "%s/kdbus", runtime) < 0 ? -ENOMEM : 0;
}

/* Each client costs descriptors: take all that may be had. */
static unsigned int raise_limit(rlim_t *ret_inherited)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return 1024;
	*ret_inherited = limit.rlim_cur;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	getrlimit(RLIMIT_NOFILE, &limit);
	return limit.rlim_cur > 1U << 20 ? 1U << 20 : (unsigned int)limit.rlim_cur;
}

/* ---- signals ---- */

struct signals {
	struct source source;
	int fd;
	struct daemon *daemon;
};

static void signal_ready(struct source *source, u32 events)
{
	struct signals *s = container_of(source, struct signals, source);
	struct signalfd_siginfo info;

	if (read(s->fd, &info, sizeof(info)) == sizeof(info))
		s->daemon->stop = true;
}

static void block_signals(sigset_t *ret)
{
	sigemptyset(ret);
	sigaddset(ret, SIGTERM);
	sigaddset(ret, SIGINT);
	sigprocmask(SIG_BLOCK, ret, NULL);
	signal(SIGPIPE, SIG_IGN);
}

static int catch_signals(struct signals *s, struct daemon *d)
{
	sigset_t set;

	block_signals(&set);
	s->source.ready = signal_ready;
	s->daemon = d;
	s->fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return s->fd < 0 ? -errno : daemon_watch(d, s->fd, EPOLLIN, &s->source);
}

/* ---- the daemon ---- */

static struct daemon *daemon_of_ops(const struct lane_ops *ops)
{
	return container_of((struct lane_ops *)ops, struct daemon, lane_ops);
}

static void close_in_helper(const struct lane_ops *ops, int fd)
{
	reaper_close(daemon_of_ops(ops)->reaper, fd);
}

static int daemon_init(struct daemon *d)
{
	int r;

	INIT_LIST_HEAD(&d->buses);
	INIT_LIST_HEAD(&d->clients);
	INIT_LIST_HEAD(&d->doomed);
	INIT_LIST_HEAD(&d->hot);
	INIT_LIST_HEAD(&d->dirty);
	INIT_LIST_HEAD(&d->taken);
	INIT_LIST_HEAD(&d->answered);
	INIT_LIST_HEAD(&d->blocked);
	INIT_LIST_HEAD(&d->waiting);
	d->accounts = RB_ROOT;
	d->control.fd = -1;
	d->page_fd = -1;
	core_domain_init(&d->core, &daemon_host_ops);
	d->lane_ops = lane_linux_ops;
	d->lane_ops.close = close_in_helper;
	d->fd_limit = raise_limit(&d->inherited_fd_limit);
	d->datagram = malloc(CTL_DATAGRAM_MAX);
	d->record = malloc(LANE_RING_MAX / 4 + 64);
	d->null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	d->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (!d->datagram || !d->record)
		return -ENOMEM;
	if (d->epoll < 0 || d->null_fd < 0)
		return -errno;
	r = reaper_start(&d->reaper);
	return r < 0 ? r : lane_page_make(&d->page, (u32)getpid(), &d->page_fd);
}

static void end_clients(struct daemon *d)
{
	struct client *c;

	while ((c = list_first_entry_or_null(&d->clients, struct client, entry)) ||
	       (c = list_first_entry_or_null(&d->doomed, struct client, entry))) {
		client_end(c);
		client_free(c);
	}
}

static void daemon_deinit(struct daemon *d)
{
	end_clients(d);
	domain_stop(d);
	core_domain_deinit(&d->core);
	lane_page_deinit(&d->page);
	if (d->page_fd >= 0)
		close(d->page_fd);
	d->reaper = reaper_stop(d->reaper);
	if (d->epoll >= 0)
		close(d->epoll);
	if (d->null_fd >= 0)
		close(d->null_fd);
	free(d->datagram);
	free(d->record);
}

static const char plain_config[] =
	"<busconfig><type>session</type><listen>unix:tmpdir=/tmp</listen>"
	"<policy context='default'><allow send_destination='*' eavesdrop='true'/>"
	"<allow eavesdrop='true'/><allow own='*'/></policy></busconfig>";

/* The limits of a session bus, and one address */
static int serve_classic(struct daemon *d, const struct options *o)
{
	const struct config_reading reading = { 0 };
	struct config *config;
	char *error;
	int r;

	if (!o->address)
		return 0;
	r = config_parse("builtin", plain_config, strlen(plain_config), &reading, &config, &error);
	if (r < 0)
		return r;
	free(config->listen.items[0]);
	config->listen.items[0] = strdup(o->address);
	config->limits.max_outgoing_bytes = 1000000000;
	config->limits.max_message_size = 1000000000;
	config->limits.max_message_unix_fds = 4096;
	config->limits.max_completed_connections = 100000;
	config->limits.max_connections_per_user = 100000;
	config->limits.max_names_per_connection = 50000;
	config->limits.max_match_rules_per_connection = 50000;
	config->limits.max_replies_per_connection = 50000;
	r = classic_start(list_first_entry(&d->buses, struct bus, entry), config);
	config_unref(config);
	return r;
}

static void print_address(const struct options *o, const char *domain, const char *bus)
{
	if (o->print_address && dprintf(o->address_fd, "kdbus:path=%s/%s/bus\n", domain, bus) < 0)
		log_line("cannot print the address to descriptor %d: %s", o->address_fd,
			 strerror(errno));
}

static u64 bus_flags(const struct options *o)
{
	return o->system ? KDBUS_MAKE_ACCESS_WORLD : 0;
}

static const char *bus_name(const struct options *o, char *buf, size_t size)
{
	snprintf(buf, size, "%u-%s", (unsigned int)geteuid(), o->system ? "system" : "user");
	return buf;
}

static int serve(struct daemon *d, const struct options *o, const char *domain)
{
	struct signals signals = { .fd = -1 };
	char buf[64];
	const char *bus = bus_name(o, buf, sizeof(buf));
	int r;

	r = daemon_init(d);
	if (r == 0)
		r = catch_signals(&signals, d);
	if (r == 0)
		r = domain_start(d, domain, bus, bus_flags(o));
	if (r == 0)
		r = serve_classic(d, o);
	if (r < 0) {
		log_line(r == -EADDRINUSE ? "another daemon serves %s: %s" : "cannot serve %s: %s",
			 domain, strerror(-r));
		return 1;
	}
	print_address(o, domain, bus);
	service_notify("READY=1");
	r = daemon_run(d);
	service_notify("STOPPING=1");
	close(signals.fd);
	return r < 0;
}

/* The module serves; the daemon keeps the bus alive. */
static int serve_kernel(const struct options *o, const char *domain)
{
	struct kernel_bus k;
	char buf[64];
	const char *bus = bus_name(o, buf, sizeof(buf));
	sigset_t set;
	int r;

	block_signals(&set);
	r = kernel_bus_start(&k, domain, bus, bus_flags(o));
	if (r == 0) {
		print_address(o, domain, bus);
		service_notify("READY=1");
		while (sigwaitinfo(&set, NULL) < 0 && errno == EINTR)
			;
		service_notify("STOPPING=1");
	}
	kernel_bus_stop(&k);
	return r < 0;
}

static int serve_user(const struct options *o, const char *domain)
{
	static struct daemon d;
	int r = serve(&d, o, domain);

	daemon_deinit(&d);
	return r;
}

int main(int argc, char **argv)
{
	struct options o = { .address_fd = 1 };
	char *domain = NULL;
	int r = parse_options(argc, argv, &o);

	if (r <= 0)
		return -r;
	if (!o.domain) {
		r = default_domain(&o, &domain);
		if (r < 0)
			return usage("no domain: neither %s nor --domain is set",
				     "XDG_RUNTIME_DIR");
	}
	if (!o.domain)
		o.domain = domain;
	r = o.kernel ? serve_kernel(&o, o.domain) : serve_user(&o, o.domain);
	free(domain);
	return r;
}
