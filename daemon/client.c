// SPDX-License-Identifier: LGPL-2.1-or-later
/* Clients: from accept to hang-up. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "classic/bridge.h"
#include "client.h"
#include "lane/hooks.h"
#include "reading.h"

/* Records taken from one client in one round: nobody is kept waiting by a flood. */
#define RECORDS_A_ROUND	 64
#define MESSAGES_A_ROUND 64

static void client_ready(struct source *source, u32 events)
{
	struct client *c = container_of(source, struct client, source);

	c->readable = true;
	client_heat(c);
}

/* Awake: polled until it has nothing, then armed (client_work()). */
void client_heat(struct client *c)
{
	if (!list_empty(&c->hot_entry) || c->doomed)
		return;
	if (c->channel.own)
		lane_unarm(&c->channel);
	list_add_tail(&c->hot_entry, &c->daemon->hot);
}

static void init(struct client *c, struct node *node)
{
	struct daemon *d = node->daemon;

	c->source.ready = client_ready;
	c->daemon = d;
	c->kind = PEER_NATIVE;
	c->callers = RB_ROOT;
	c->node = node;
	c->ep = node->ep;
	c->handle = node->ep ? CORE_HANDLE_ENDPOINT : CORE_HANDLE_CONTROL;
	INIT_LIST_HEAD(&c->hot_entry);
	INIT_LIST_HEAD(&c->dirty_entry);
	INIT_LIST_HEAD(&c->taken_entry);
	INIT_LIST_HEAD(&c->answer_entry);
	INIT_LIST_HEAD(&c->blocked_entry);
	INIT_LIST_HEAD(&c->asking_entry);
	INIT_LIST_HEAD(&c->askers);
	INIT_LIST_HEAD(&c->settled_entry);
	INIT_LIST_HEAD(&c->flights);
	INIT_LIST_HEAD(&c->overflow);
	INIT_LIST_HEAD(&c->calling);
	INIT_LIST_HEAD(&c->owed);
	INIT_LIST_HEAD(&c->intros);
	INIT_LIST_HEAD(&c->awaited);
	INIT_LIST_HEAD(&c->held);
	INIT_LIST_HEAD(&c->leftover);
	INIT_LIST_HEAD(&c->released);
	INIT_LIST_HEAD(&c->posts);
}

int client_start_channel(struct client *c, int sock)
{
	lane_channel_init(&c->channel, &c->daemon->lane_ops, sock, LANE_ALARMS);
	c->channel.message = client_message;
	c->channel.message_buf = c->daemon->datagram;
	c->channel.message_buf_size = CTL_DATAGRAM_MAX;
	c->channel.user = c;
	return sock < 0 ? -EBADF : daemon_watch(c->daemon, sock, EPOLLIN, &c->source);
}

/* Who could replace the daemon needs no bound, others get their part of its descriptors. */
static unsigned int handles_max(const struct daemon *d, uid_t uid)
{
	if (!uid || uid == geteuid())
		return 0;
	return min(max(d->fd_limit / 4, 1U), ACCOUNT_HANDLES_MAX);
}

static int identify(struct client *c, int sock)
{
	struct daemon *d = c->daemon;
	unsigned int begun_max = min(max(d->fd_limit / 8, 1U), ACCOUNT_BEGUN_MAX);
	int r = creds_of_socket(sock, &c->creds);

	if (r < 0)
		return r;
	reaper_note(d->reaper, sock, c->creds->uid);
	r = account_open(&d->accounts, c->creds->uid, handles_max(d, c->creds->uid), &c->account);
	if (r < 0)
		return r;
	c->begun = true;
	if (++c->account->begun <= begun_max)
		return 0;
	client_expel(c, "its user has %u connections that have not said HELLO (limit %u)",
		     c->account->begun, begun_max);
	return -EMFILE;
}

void client_has_become(struct client *c)
{
	if (c->begun)
		c->account->begun--;
	c->begun = false;
}

struct client *client_accept(struct node *node, int sock)
{
	struct daemon *d = node->daemon;
	struct client *c = calloc(1, sizeof(*c));
	int r;

	if (!c) {
		reaper_close_socket(d->reaper, sock);
		return NULL;
	}
	init(c, node);
	list_add_tail(&c->entry, &d->clients);
	r = client_start_channel(c, sock);
	if (r == 0)
		r = identify(c, sock);
	if (r < 0) {
		client_expel(c, "cannot be served: %s", strerror(-r));
		return NULL;
	}
	return c;
}

/* Why goes to the log; NULL for an end that is nobody's fault. */
void client_expel(struct client *c, const char *format, ...)
{
	char text[256];
	va_list args;

	if (c->doomed)
		return;
	if (format) {
		va_start(args, format);
		vsnprintf(text, sizeof(text), format, args);
		va_end(args);
		log_client(c, "expelled: %s", text);
	}
	c->doomed = true;
	list_del_init(&c->hot_entry);
	list_move_tail(&c->entry, &c->daemon->doomed);
}

static void broke(struct client *c)
{
	client_expel(c, "it broke the protocol of its lane or socket");
}

bool client_frozen(const struct client *c)
{
	return !list_empty(&c->awaited) || c->unread;
}

/*
 * Does somebody on the bus want with its messages what has not been read? Which receivers a message
 * has shows only when it is taken, and those behind it must not overtake it: so none is taken.
 */
bool client_unread(struct client *c)
{
	const struct bus *bus = container_of(c->conn.bus, struct bus, core);

	/* It leaves: what it has sent goes on with what is known. */
	if (c->hungup || c->fake)
		return false;
	if (!c->unread)
		c->unread = reading_needed(&c->peer, bus->wanted);
	return c->unread;
}

void client_was_read(struct client *c)
{
	bool frozen = c->unread;

	c->unread = false;
	if (frozen && list_empty(&c->awaited))
		death_settle(c);
	client_heat(c);
}

/*
 * What is published by now and no more, for its owner may go on writing for ever. Returns how many
 * records were taken.
 */
static unsigned int take_records(struct client *c, unsigned int max)
{
	struct lane_channel *ch = &c->channel;
	struct lane_env env;
	unsigned int n = 0;
	u32 limit;
	int r;

	if (!c->connected || client_frozen(c) || c->doomed || client_unread(c))
		return 0;
	if (c->hungup && LANE_BROKEN(LANE_END_FIRST))
		return 0;
	r = lane_snapshot(ch, &limit);
	while (r == 0 && n < max && !c->doomed) {
		r = lane_peek(ch, limit, &env);
		if (r < 0)
			break;
		if (list_empty(&c->taken_entry))
			list_add_tail(&c->taken_entry, &c->daemon->taken);
		r = relay_record(c, &env);
		n++;
	}
	if (r == -EPROTO)
		broke(c);
	return n;
}

void client_take_all(struct client *c)
{
	take_records(c, ~0U);
}

/*
 * Returns whether the socket is empty; *@ret_any: whether it was not before. It is asked only if
 * epoll has said that there is something, or the channel is over: what comes later epoll says
 * before the daemon sleeps.
 */
static bool drain(struct client *c, bool *ret_any)
{
	unsigned int n;
	int r = 0;

	*ret_any = client_act(c);
	if (!c->readable && !c->channel.broken && !c->channel.hungup)
		return true;
	for (n = 0; n < MESSAGES_A_ROUND && r == 0 && !c->doomed; n++) {
		r = lane_channel_recv(&c->channel);
		*ret_any |= client_act(c) || r == 0;
	}
	if (r == -EPROTO)
		broke(c);
	if (r == -ECONNRESET)
		c->hungup = true;
	c->readable = r == 0;
	return r < 0;
}

/* What it did not hand back is missing; what it had sent before and after is sent on. */
static void leave(struct client *c)
{
	c->unread = false;
	death_forget(c);
	client_take_all(c);
	client_expel(c, NULL);
}

/*
 * One turn of a client that is awake. Returns whether it had anything; if not it is armed (design
 * rule 7: drain, arm, fence, look) and leaves the hot list.
 */
bool client_work(struct client *c)
{
	bool busy;

	/* With descriptors of records far back in a full socket, records have to wait. */
	if (drain(c, &busy))
		busy |= take_records(c, RECORDS_A_ROUND) > 0;
	client_reap(c);
	client_retry(c);
	if (c->doomed)
		return true;
	if (c->hungup) {
		leave(c);
		return true;
	}
	if (busy)
		return true;
	if (c->connected) {
		lane_arm(&c->channel);
		if (!client_frozen(c) && lane_news(&c->channel)) {
			lane_unarm(&c->channel);
			return true;
		}
	}
	list_del_init(&c->hot_entry);
	return false;
}

static void drop_answer(struct client *c)
{
	c->answering = false;
	list_del_init(&c->answer_entry);
	answer_clear(c);
}

static void unlink_all(struct client *c)
{
	list_del_init(&c->hot_entry);
	list_del_init(&c->dirty_entry);
	list_del_init(&c->taken_entry);
	list_del_init(&c->blocked_entry);
	list_del_init(&c->asking_entry);
	list_del(&c->entry);
}

/*
 * Everything of it that others see ends. What remains is the socket: close() on the other side
 * waits for the hang-up, which must not come before the round with the news is committed.
 */
void client_end(struct client *c)
{
	if (c->connected)
		client_disconnect(c);
	if (c->made_ep)
		endpoint_end(c->made_ep);
	if (c->made_bus)
		bus_end(c->made_bus);
	reading_forget(&c->peer);
	peer_wake_askers(&c->peer);
	drop_answer(c);
	client_drop_flights(c);
	unlink_all(c);
	daemon_unwatch(c->daemon, c->channel.sock);
}

void client_free(struct client *c)
{
	shutdown(c->channel.sock, SHUT_RDWR); /* its descriptors may keep close() from ending */
	lane_channel_deinit(&c->channel);
	client_free_posts(c);
	names_forget_released(c);
	client_has_become(c);
	account_close(&c->daemon->accounts, c->account);
	bridge_forget(&c->peer);
	creds_unref(c->creds);
	free(c->description);
	free(c->fake_label);
	free(c);
}
