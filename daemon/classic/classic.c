// SPDX-License-Identifier: LGPL-2.1-or-later
/* The front-end as a whole: start, rounds, end. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "activate.h"
#include "access.h"
#include "carrier.h"
#include "classic.h"
#include "daemon/random.h"
#include "driver.h"
#include "input.h"
#include "output.h"
#include "reload.h"
#include "service-file.h"
#include "timer.h"

/* Memory of rounds: pages that are never used cost nothing. */
static void *map_pages(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

static void unmap_pages(void *p, size_t size)
{
	if (p)
		munmap(p, size);
}

static int make_buffers(struct classic *k)
{
	k->in = map_pages(INPUT_SIZE);
	k->out = map_pages(OUTPUT_SIZE);
	k->segs = map_pages(OUTPUT_SEGS * sizeof(*k->segs));
	return k->in && k->out && k->segs ? 0 : -ENOMEM;
}

/* The bus's own id is its guid, so that both kinds of peer call it the same. */
static void make_guid(struct classic *k)
{
	unsigned int i;

	for (i = 0; i < 16; i++)
		snprintf(k->guid + 2 * i, 3, "%02x", k->bus->core.id128[i]);
}

static int init(struct classic *k)
{
	bool more;
	int r = make_buffers(k);

	if (r == 0)
		r = random_fill(&k->hash_key, sizeof(k->hash_key));
	if (r == 0)
		r = replies_init(k);
	if (r == 0)
		r = matches_init(k);
	if (r == 0)
		r = timer_start(k);
	if (r == 0)
		r = activations_init(k);
	if (r == 0)
		r = services_start(k);
	if (r == 0)
		r = watch_renew(k, &more);
	if (r == 0 && k->carrier->start)
		r = k->carrier->start(k);
	make_guid(k);
	return r == 0 ? listen_start(k) : r;
}

/*
 * What large messages leave goes back to the kernel when there are none any more. One timer for a
 * second of them: the round looks only whether it is set.
 */
#define AGING_MS 1000

static void grow_older(struct timeout *t)
{
	struct classic *k = container_of(t, struct classic, aging);

	if (cbuf_age())
		timeout_set(k, &k->aging, AGING_MS);
}

static void keep_aging(struct classic *k)
{
	if (cbuf_kept() && !k->aging.at)
		timeout_set(k, &k->aging, AGING_MS);
}

void classic_end_round(struct classic *k)
{
	classic_flush(k);
	keep_aging(k);
	if (k->carrier->settle)
		k->carrier->settle(k);
}

int classic_start(struct bus *bus, struct config *config, const struct carrier *carrier,
		  bool systemd_activation)
{
	struct classic *k = calloc(1, sizeof(*k));
	int r;

	if (!k)
		return -ENOMEM;
	k->daemon = bus->daemon;
	k->bus = bus;
	k->carrier = carrier;
	k->config = config_ref(config);
	k->systemd_activation = systemd_activation;
	INIT_LIST_HEAD(&k->listeners);
	INIT_LIST_HEAD(&k->monitors);
	INIT_LIST_HEAD(&k->peers);
	INIT_LIST_HEAD(&k->doomed);
	INIT_LIST_HEAD(&k->dirty);
	INIT_LIST_HEAD(&k->undelivered);
	k->aging.expired = grow_older;
	bus->classic = k;
	bus->daemon->classic = k;
	r = init(k);
	if (r < 0)
		classic_stop(bus);
	return r;
}

static void end_peers(struct classic *k)
{
	struct cpeer *c, *next;

	list_for_each_entry_safe(c, next, &k->peers, entry)
		cpeer_doom(c, NULL);
	classic_bury(k);
}

void classic_stop(struct bus *bus)
{
	struct classic *k = bus->classic;

	if (!k)
		return;
	listen_stop(k);
	end_peers(k);
	activations_free(k);
	watch_stop(k);
	services_free(k->services);
	if (k->carrier->stop)
		k->carrier->stop(k);
	timer_stop(k);
	access_stop(k);
	cbuf_unref(k->out_large);
	cbuf_trim();
	matches_free(k);
	replies_free(k);
	unmap_pages(k->in, INPUT_SIZE);
	unmap_pages(k->out, OUTPUT_SIZE);
	unmap_pages(k->segs, OUTPUT_SEGS * sizeof(*k->segs));
	free(k->address);
	config_unref(k->config);
	bus->classic = NULL;
	bus->daemon->classic = NULL;
	free(k);
}

void classic_look(struct classic *k)
{
	if (k->carrier->look)
		k->carrier->look(k);
}

void classic_bury(struct classic *k)
{
	struct cpeer *c;

	while ((c = list_first_entry_or_null(&k->doomed, struct cpeer, entry)))
		cpeer_bury(c);
}
