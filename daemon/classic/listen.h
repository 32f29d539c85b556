/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef CLASSIC_LISTEN_H
#define CLASSIC_LISTEN_H

/*
 * listen.h - the sockets that classic peers connect to
 *
 * 1. unix: with path, abstract, dir, tmpdir and runtime, and systemd: for sockets the service
 *    manager passed, several of them if there are. Others are refused with a reason.
 * 2. A path at which somebody listens is refused; what a dead daemon left there is replaced.
 * 3. While too many peers have not said Hello yet, or there are no descriptors, new ones wait in
 *    the backlog or are refused; what there is goes on, and so does this when it can. Who does not
 *    say it in time is ended.
 */

#include "classic.h"

struct listener {
	struct list_head entry;
	struct source source;
	struct classic *classic;
	int fd;
	bool watched;
	char *path; /* to be removed at the end, or NULL */
	char *address; /* as a client would write it, with the guid */
	struct dbusp_sasl_config sasl;
};

/* Peers have come or gone: accept, or let them wait. */
void listen_review(struct classic *k);

#endif
