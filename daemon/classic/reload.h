/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef CLASSIC_RELOAD_H
#define CLASSIC_RELOAD_H

/*
 * reload.h - a configuration that changes while the bus runs
 *
 * 1. SIGHUP, ReloadConfig and a change in a directory that is watched have all files read again.
 *    If one is broken everything stays as it is, and why is logged.
 * 2. Policy, limits and service files count from then on. Addresses, mechanisms, user, pid file
 *    and type of the bus stay what they were when it started.
 * 3. If other names than before can be activated, ActivatableServicesChanged says so.
 * 4. Watched are the directories of <includedir> and of service files. Where one is missing, the
 *    closest directory above it is, until it is there. A symbolic link counts when it is made;
 *    what changes behind it is not seen.
 */

#include "classic.h"

/**
 * classic_reload() - read the configuration again
 * @k:		the front-end
 * @ret_error:	on failure why, for the caller to free, or NULL if there is no memory
 *
 * Return: 0; -EINVAL if a file is broken; -ENOMEM.
 */
int classic_reload(struct classic *k, char **ret_error);

/* The same, by nobody who could be told the error. */
void classic_reload_quietly(struct classic *k);

/* Service files as the configuration has them; the front-end has none yet. Return: 0; -ENOMEM. */
int services_start(struct classic *k);

/* ---- watch.c ---- */

/**
 * watch_renew() - watch the directories of the configuration
 * @ret_more: there is one that was not watched before, so that changes in it may have been missed
 *
 * What cannot be watched is not; that has been logged. Return: 0; -ENOMEM.
 */
int watch_renew(struct classic *k, bool *ret_more);
void watch_stop(struct classic *k);

#endif
