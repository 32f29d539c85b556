/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MODULE_ENDPOINT_H
#define MODULE_ENDPOINT_H

#include "arg.h"
#include "object.h"

/*
 * Buses and endpoints: made by a command, ended with the file that made them (spec §1.2,
 * §1.3, §1.9, §6.1 to §6.3).
 */

/**
 * kbus_endpoint_get() - take a reference
 * @ep: endpoint
 *
 * Return: @ep.
 */
struct kbus_endpoint *kbus_endpoint_get(struct kbus_endpoint *ep);

/**
 * kbus_endpoint_put() - drop a reference
 * @ep: endpoint, or NULL
 */
void kbus_endpoint_put(struct kbus_endpoint *ep);

/**
 * kbus_bus_get() - take a reference
 * @bus: bus
 *
 * Return: @bus.
 */
struct kbus_bus *kbus_bus_get(struct kbus_bus *bus);

/**
 * kbus_bus_put() - drop a reference
 * @bus: bus, or NULL
 */
void kbus_bus_put(struct kbus_bus *bus);

/**
 * kbus_bus_make() - make a bus (BUS_MAKE)
 * @domain:  domain
 * @arg:     argument
 * @ret_bus: bus, with a reference for its owner
 *
 * Return: 0 or an errno of spec §6.1.
 */
int kbus_bus_make(struct kbus_domain *domain, struct kbus_arg *arg, struct kbus_bus **ret_bus);

/**
 * kbus_bus_end() - its owner is gone: tear it down
 * @bus: bus; the owner's reference stays the caller's
 */
void kbus_bus_end(struct kbus_bus *bus);

/**
 * kbus_endpoint_make() - make a custom endpoint (ENDPOINT_MAKE)
 * @bus:    bus
 * @arg:    argument
 * @ret_ep: endpoint, with a reference for its owner
 *
 * Return: 0 or an errno of spec §6.2.
 */
int kbus_endpoint_make(struct kbus_bus *bus, struct kbus_arg *arg, struct kbus_endpoint **ret_ep);

/**
 * kbus_endpoint_update() - replace its policy (ENDPOINT_UPDATE)
 * @ep:  custom endpoint
 * @arg: argument
 *
 * Return: 0 or an errno of spec §6.3.
 */
int kbus_endpoint_update(struct kbus_endpoint *ep, struct kbus_arg *arg);

/**
 * kbus_endpoint_end() - its owner is gone: tear it down
 * @ep: custom endpoint; the owner's reference stays the caller's
 */
void kbus_endpoint_end(struct kbus_endpoint *ep);

#endif
