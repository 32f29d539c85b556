// SPDX-License-Identifier: LGPL-2.1-or-later
/* kdbusd: options, start and end. */
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "classic/carrier.h"
#include "classic/driver.h"
#include "classic/reload.h"
#include "client.h"
#include "fds.h"
#include "kernel.h"
#include "reading.h"
#include "startup.h"

/* Each client costs descriptors: take all that may be had. */
/* More than this is of no use, and what is laid out by it has an end. */
#define FDS_MAX (1U << 20)

static unsigned int raise_limit(rlim_t *ret_inherited)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return 1024;
	*ret_inherited = limit.rlim_cur;
	limit.rlim_cur = min_t(rlim_t, limit.rlim_max, FDS_MAX);
	setrlimit(RLIMIT_NOFILE, &limit);
	getrlimit(RLIMIT_NOFILE, &limit);
	return (unsigned int)min_t(rlim_t, limit.rlim_cur, FDS_MAX);
}

/*
 * When the table of descriptors of a process with threads grows, the kernel lets it wait for all
 * CPUs, several milliseconds in which nobody is served: it grows before there are threads.
 */
#define FDS_TABLE 1024U

static void widen_fd_table(const struct daemon *d)
{
	int high = fcntl(d->epoll, F_DUPFD_CLOEXEC, (int)min(d->fd_limit, FDS_TABLE) - 1);

	if (high >= 0)
		close(high);
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

	if (read(s->fd, &info, sizeof(info)) != sizeof(info))
		return;
	if (info.ssi_signo == SIGHUP && s->daemon->classic)
		classic_reload_quietly(s->daemon->classic);
	else
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

/* @reload: SIGHUP is to have the configuration read again, instead of being the end */
static int catch_signals(struct signals *s, struct daemon *d, bool reload)
{
	sigset_t set;

	block_signals(&set);
	if (reload) {
		sigaddset(&set, SIGHUP);
		sigprocmask(SIG_BLOCK, &set, NULL);
	}
	s->source.ready = signal_ready;
	s->daemon = d;
	s->fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return s->fd < 0 ? -errno : daemon_watch(d, s->fd, EPOLLIN, &s->source);
}

/* ---- the daemon ---- */

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
	INIT_LIST_HEAD(&d->launches);
	INIT_LIST_HEAD(&d->settled);
	d->accounts = RB_ROOT;
	d->control.fd = -1;
	d->page_fd = -1;
	core_domain_init(&d->core, &daemon_host_ops);
	fds_init(d);
	lane_spin_init(&d->spin, lane_linux_spin_ns(), 1);
	d->fd_limit = raise_limit(&d->inherited_fd_limit);
	d->datagram = malloc(CTL_DATAGRAM_MAX);
	d->record = malloc(LANE_RING_MAX / 4 + 64);
	d->null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	d->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (!d->datagram || !d->record)
		return -ENOMEM;
	if (d->epoll < 0 || d->null_fd < 0)
		return -errno;
	widen_fd_table(d);
	creds_init();
	r = reaper_start(d->fd_limit, &d->reaper);
	if (r == 0)
		r = readers_start(d, &d->readers);
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
	d->readers = readers_stop(d->readers);
	d->reaper = reaper_stop(d->reaper);
	if (d->epoll >= 0)
		close(d->epoll);
	if (d->null_fd >= 0)
		close(d->null_fd);
	free(d->datagram);
	free(d->record);
}

static u64 bus_flags(const char *bus_name)
{
	const size_t n = strlen(bus_name);

	return n > 7 && !strcmp(bus_name + n - 7, "-system") ? KDBUS_MAKE_ACCESS_WORLD : 0;
}

static struct bus *own_bus(struct daemon *d)
{
	return list_first_entry(&d->buses, struct bus, entry);
}

static int start(struct daemon *d, struct startup *s)
{
	int r = domain_start(d, s->domain, s->bus_name, bus_flags(s->bus_name));

	if (r < 0) {
		log_line(r == -EADDRINUSE ? "another daemon serves %s: %s" : "cannot serve %s: %s",
			 s->domain, strerror(-r));
		return r;
	}
	r = startup_serve(s, own_bus(d), &carrier_local);
	return r == 0 ? startup_end(s, own_bus(d)) : r;
}

/* The module carries the bus; the daemon serves those who speak D-Bus. */
static int start_module(struct daemon *d, struct startup *s, struct kernel_bus *k)
{
	struct bus *bus;
	int r = kernel_bus_start(k, s->domain, s->bus_name, bus_flags(s->bus_name),
				 s->change_user ? s->uid : geteuid());

	if (r)
		return r;
	r = bus_copy(d, s->bus_name, &bus);
	if (r)
		return r;
	bus->kernel = k;
	r = startup_serve(s, bus, &carrier_module);
	return r == 0 ? startup_end(s, bus) : r;
}

/* @k: a bus of the module; NULL: one of its own */
static int serve(struct daemon *d, struct startup *s, struct kernel_bus *k)
{
	struct signals signals = { .fd = -1 };
	int r = daemon_init(d);

	if (r == 0)
		r = catch_signals(&signals, d, s->config);
	if (r < 0)
		log_line("cannot start: %s", strerror(-r));
	else
		r = k ? start_module(d, s, k) : start(d, s);
	if (r == 0) {
		service_notify("READY=1");
		r = daemon_run(d);
		service_notify("STOPPING=1");
	}
	if (signals.fd >= 0)
		close(signals.fd);
	return r < 0;
}

static int serve_user(struct startup *s)
{
	static struct daemon d;
	int r = serve(&d, s, NULL);

	daemon_deinit(&d);
	log_close();
	return r;
}

/* The module serves; the daemon keeps the bus alive. */
static int serve_kernel(struct startup *s)
{
	struct kernel_bus k;
	sigset_t set;
	int r;

	block_signals(&set);
	r = kernel_bus_start(&k, s->domain, s->bus_name, bus_flags(s->bus_name), geteuid());
	if (r == 0)
		r = startup_end(s, NULL);
	if (r == 0) {
		service_notify("READY=1");
		while (sigwaitinfo(&set, NULL) < 0 && errno == EINTR)
			;
		service_notify("STOPPING=1");
	}
	kernel_bus_stop(&k);
	return r < 0;
}

static int serve_module(struct startup *s)
{
	struct kernel_bus k = { .fd = -1 };
	static struct daemon d;
	int r;

	r = serve(&d, s, &k);
	daemon_deinit(&d);
	kernel_bus_stop(&k);
	log_close();
	return r;
}

static int introspect(void)
{
	char *xml = driver_introspection(DBUSP_STR(CLASSIC_DRIVER_PATH));

	if (xml)
		fputs(xml, stdout);
	free(xml);
	return !xml;
}

/*
 * Large messages that wait for room are mapped and given back, whatever was freed before: a burst
 * would else leave holes in the heap for as long as the daemon runs.
 */
static void bound_heap(void)
{
#ifdef M_MMAP_THRESHOLD
	mallopt(M_MMAP_THRESHOLD, 64 << 10);
	mallopt(M_TRIM_THRESHOLD, 256 << 10);
#endif
}

int main(int argc, char **argv)
{
	struct options o;
	struct startup s;
	int r = options_parse(argc, argv, &o);

	if (r <= 0)
		return -r;
	if (o.introspect)
		return introspect();
	bound_heap();
	r = startup_begin(&s, &o);
	if (r == 0)
		r = !o.kernel ? serve_user(&s) : s.config ? serve_module(&s) : serve_kernel(&s);
	else
		r = r == -ENXIO ? 2 : 1;
	startup_deinit(&s);
	return r;
}
