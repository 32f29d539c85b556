// SPDX-License-Identifier: LGPL-2.1-or-later
/* Classic peers: from accept() to the grave. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "access.h"
#include "activate.h"
#include "carrier.h"
#include "daemon/reading.h"
#include "listen.h"
#include "monitor.h"

void cpeer_log(const struct cpeer *c, const char *format, ...)
{
	char text[512];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	log_about(c->uid, "connection %s (uid %d, pid %d): %s",
		  c->name_len ? c->name : "without a name", (int)c->uid, (int)c->pid, text);
}

/* ---- epoll ---- */

void cpeer_watch(struct cpeer *c)
{
	uint32_t in = c->unread || output_stalls(c) ? 0 : EPOLLIN;
	uint32_t events = in | (c->out ? EPOLLOUT : 0);
	struct epoll_event ev = { .events = events, .data.ptr = &c->source };

	if (events == c->events || !cpeer_alive(c))
		return;
	epoll_ctl(c->classic->daemon->epoll, EPOLL_CTL_MOD, c->fd, &ev);
	c->events = events;
}

/*
 * Native peers may want of it what has not been read: nothing is taken from it before that is
 * there. Whoever hangs up meanwhile is taken as he is.
 */
static bool is_unread(struct cpeer *c)
{
	const struct bus *bus = c->classic->bus;

	if (!bus || !bus->n_native || !peer_creds(&c->peer))
		return false;
	if (!reading_needed(&c->peer, bus->wanted))
		return false;
	c->unread = true;
	cpeer_watch(c);
	return true;
}

void cpeer_was_read(struct cpeer *c)
{
	c->unread = false;
	cpeer_watch(c);
}

static void ready(struct source *source, u32 events)
{
	struct cpeer *c = container_of(source, struct cpeer, source);

	if (!cpeer_alive(c))
		return;
	if (events & EPOLLOUT)
		output_ready(c);
	/* After a hang-up there may be something left to read; the end comes behind it. */
	if (!cpeer_alive(c))
		return;
	if (events & (EPOLLHUP | EPOLLERR) || (events & EPOLLIN && !is_unread(c)))
		input_ready(c);
}

/* ---- accept ---- */

static void identify(struct cpeer *c)
{
	struct ucred ucred;
	socklen_t size = sizeof(ucred);

	c->uid = (uid_t)-1;
	c->gid = (gid_t)-1;
	if (getsockopt(c->fd, SOL_SOCKET, SO_PEERCRED, &ucred, &size) < 0)
		return;
	c->uid = ucred.uid;
	c->gid = ucred.gid;
	c->pid = ucred.pid;
}

static void init(struct cpeer *c, struct classic *k, struct listener *listener, int fd)
{
	c->kind = PEER_CLASSIC;
	c->daemon = k->daemon;
	c->callers = RB_ROOT;
	INIT_LIST_HEAD(&c->calling);
	INIT_LIST_HEAD(&c->owed);
	INIT_LIST_HEAD(&c->askers);
	INIT_LIST_HEAD(&c->dirty_entry);
	c->calls = RB_ROOT;
	c->source.ready = ready;
	c->classic = k;
	c->listener = listener;
	c->fd = fd;
	c->events = EPOLLIN;
	list_add_tail(&c->entry, &k->peers);
	k->n_incomplete++;
}

void cpeer_accept(struct classic *k, struct listener *listener, int fd)
{
	struct cpeer *c = calloc(1, sizeof(*c));
	int r;

	if (!c) {
		reaper_close_socket(k->daemon->reaper, fd);
		return;
	}
	init(c, k, listener, fd);
	identify(c);
	reaper_note(k->daemon->reaper, fd, c->uid);
	r = account_open(&k->daemon->accounts, c->uid, 0, &c->account);
	if (r == 0)
		r = auth_begin(c);
	if (r == 0)
		r = daemon_watch(k->daemon, fd, EPOLLIN, &c->source);
	if (r < 0)
		cpeer_doom(c, "cannot be served: %s", strerror(-r));
	else if (!is_unread(c))
		input_ready(c); /* those in a hurry have written already */
}

/* ---- the bus ---- */

int cpeer_join(struct cpeer *c)
{
	struct classic *k = c->classic;
	int r = k->carrier->join(c);

	if (r < 0)
		return r;
	k->carrier->set_max_names(c, (unsigned int)classic_limits(k)->max_names_per_connection);
	c->name_len = (uint8_t)unique_name(&c->peer, c->name).len;
	c->state = CPEER_ACTIVE;
	auth_free(c);
	k->n_incomplete--;
	k->n_active++;
	c->account->classic++;
	listen_review(k);
	return 0;
}

void cpeer_leave(struct cpeer *c)
{
	matches_end(c);
	peer_wake_askers(&c->peer);
	activate_end(c->classic, &c->peer);
	c->classic->carrier->leave(c);
}

/* ---- the end ---- */

void cpeer_doom(struct cpeer *c, const char *format, ...)
{
	char text[256];
	va_list args;

	if (!cpeer_alive(c))
		return;
	if (format) {
		va_start(args, format);
		vsnprintf(text, sizeof(text), format, args);
		va_end(args);
		cpeer_log(c, "disconnected: %s", text);
	}
	if (c->state == CPEER_ACTIVE || c->state == CPEER_MONITOR) {
		c->classic->n_active--;
		c->account->classic--;
	} else {
		c->classic->n_incomplete--;
	}
	c->was = c->state;
	c->state = CPEER_DOOMED;
	list_move_tail(&c->entry, &c->classic->doomed);
}

/*
 * Descriptors that nobody took may lie in it, and closing those can block. That the socket is
 * closed does not end the watch: a service that is just being started has it, too, until it is
 * executed.
 */
static void close_socket(struct cpeer *c)
{
	daemon_unwatch(c->daemon, c->fd);
	if (c->ended)
		close(c->fd);
	else
		reaper_close_socket(c->daemon->reaper, c->fd);
}

void cpeer_bury(struct cpeer *c)
{
	if (c->was == CPEER_ACTIVE)
		cpeer_leave(c);
	reading_forget(&c->peer);
	peer_wake_askers(&c->peer);
	matches_end(c);
	monitor_end(c);
	close_socket(c);
	auth_free(c);
	input_free(c);
	output_free(c);
	list_del(&c->entry);
	account_close(&c->daemon->accounts, c->account);
	creds_unref(c->creds);
	access_end(&c->peer);
	listen_review(c->classic);
	free(c->description);
	free(c);
}
