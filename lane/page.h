/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * page.h - the page the daemon shares with all clients
 *
 * It holds the committed round (rule 12) and generation counters (rule 13). The daemon maps it
 * writable and seals it as a lane (rule 2); each client maps it read-only.
 *
 * 1. committed is stored with release after the cursors of all lanes of the round; a reader loads
 *    it with acquire before it loads the cursor of its daemon lane (barrier B7).
 * 2. A generation is stored before the commit of anything that follows from the change. A client
 *    that cached a resolution remembers the counters as they were *before* it asked, and uses what
 *    it cached only while they are the same.
 * 3. While something waits in front of a connection's lane for room, nothing may be sent to it
 *    past the daemon. That is stored before the daemon's cursor passes what waits, and taken back
 *    after the commit of it; who has found the cursor passed (rule 13 of lane.h) looks at it then.
 * 4. Names, and connections, share counters by hash: a change of one name makes others ask again,
 *    never less.
 */
#ifndef LANE_PAGE_H
#define LANE_PAGE_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#define LANE_PAGE_MAGIC 0x6567617073756264ULL
#define LANE_PAGE_VERSION 1
#define LANE_PAGE_NAMES 256u
#define LANE_PAGE_WAITING 256u
#define LANE_PAGE_SIZE 4096u

/**
 * struct lane_page - as shared; the file is LANE_PAGE_SIZE rounded up to a page
 */
struct lane_page {
	uint64_t magic;
	uint32_t version;
	uint32_t salt; /* start value of the name hash */
	uint64_t reserved0[6];
	uint64_t committed; /* the last round that counts; the first is 1 */
	uint64_t reserved1[7];
	uint64_t policy; /* generation of the policy */
	uint64_t monitors; /* generation of the set of monitors; odd while one is attached */
	uint64_t reserved2[6];
	uint64_t names[LANE_PAGE_NAMES];
	uint32_t waiting[LANE_PAGE_WAITING]; /* connections with something waiting: 3. above */
	uint64_t reserved3[104];
};

static_assert(sizeof(struct lane_page) == LANE_PAGE_SIZE, "page");

/**
 * struct lane_page_gens - generations that a cached resolution depends on
 */
struct lane_page_gens {
	uint64_t policy;
	uint64_t monitors;
	uint64_t name;
	uint32_t slot; /* of the name, in the page's table */
};

/**
 * struct lane_page_owner - the daemon's end: private masters and mapping
 */
struct lane_page_owner {
	struct lane_page *shared;
	uint32_t salt;
	uint64_t committed;
	uint64_t policy;
	uint64_t monitors;
	uint64_t names[LANE_PAGE_NAMES];
	uint32_t waiting[LANE_PAGE_WAITING];
};

/**
 * lane_page_make() - make the daemon's page
 * @salt:	any number, the same for the life of the page
 * @ret_fd:	descriptor to hand to clients (a read-only one protects no better), caller's
 *
 * Return: 0 or negative errno of lane_memfd_make().
 */
int lane_page_make(struct lane_page_owner *owner, uint32_t salt, int *ret_fd);
void lane_page_deinit(struct lane_page_owner *owner);

/**
 * lane_page_commit() - commit @round; all lanes of the round are published, none has been rung
 * @round:	greater than the last
 */
void lane_page_commit(struct lane_page_owner *owner, uint64_t round);

void lane_page_policy_changed(struct lane_page_owner *owner);
void lane_page_monitors_changed(struct lane_page_owner *owner, bool attached);
void lane_page_name_changed(struct lane_page_owner *owner, const char *name);

/**
 * lane_page_set_waiting() - something waits in front of the lane of a connection, or no more
 * @id:		of the connection; calls for one id alternate between true and false
 */
void lane_page_set_waiting(struct lane_page_owner *owner, uint64_t id, bool waiting);

/**
 * lane_page_map() - a client maps the daemon's page
 * @fd:		stays the caller's
 *
 * Return: 0; -EPROTO: wrong magic or version; else as lane_memfd_map_shared().
 */
int lane_page_map(int fd, const struct lane_page **ret_page);
void lane_page_unmap(const struct lane_page *page);

uint64_t lane_page_committed(const struct lane_page *page);

/**
 * lane_page_gens() - read the generations for a destination
 * @name:	the well-known name, NULL for a destination by id
 */
void lane_page_gens(const struct lane_page *page, const char *name, struct lane_page_gens *ret);

/**
 * lane_page_same() - whether nothing has changed since @gens were read for @name
 */
bool lane_page_same(const struct lane_page *page, const char *name,
		    const struct lane_page_gens *gens);

/**
 * lane_page_monitored() - whether a monitor is attached: everything goes through the daemon
 */
bool lane_page_monitored(const struct lane_page *page);

/**
 * lane_page_waiting() - whether something may wait in front of the lane of @id; see 3. above
 */
bool lane_page_waiting(const struct lane_page *page, uint64_t id);

uint32_t lane_page_hash(uint32_t salt, const char *name);

#endif
