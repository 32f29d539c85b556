/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MODULE_CREDS_H
#define MODULE_CREDS_H

#include "object.h"

/*
 * Credentials as core/ decides about them: numbers of the initial user namespace.
 */

/**
 * kbus_cred() - credentials for a decision
 * @cred: credentials; outlive the result, which points to their groups
 * @ret:  the same for core/
 */
void kbus_cred(const struct cred *cred, struct core_cred *ret);

/**
 * kbus_maker() - the caller, for names of buses and endpoints
 * @domain: domain, in whose user namespace names are checked
 * @ret:    the caller
 */
void kbus_maker(const struct kbus_domain *domain, struct core_maker *ret);

/**
 * kbus_opener() - whoever opened an endpoint file
 * @file:   the file
 * @domain: its domain
 * @ret:    for core_conn_init(); valid as long as the credentials of @file
 */
void kbus_opener(const struct file *file, const struct kbus_domain *domain,
		 struct core_opener *ret);

/* A core_policy_map_id: ids are those of the caller's user namespace. */
int kbus_map_id(void *data, u64 type, u64 id, u32 *ret_id);

#endif
