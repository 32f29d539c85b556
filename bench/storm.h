/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BENCH_STORM_H
#define BENCH_STORM_H

#include "transport.h"

/**
 * storm_obey() - carry out an order about connections that come and go
 * @l: link, in the client's process
 * @o: an order of kind ORDER_FRESH, ORDER_STORM or ORDER_HOLD
 *
 * The usage of the roles is left at zero for ORDER_FRESH and ORDER_HOLD: it would be that of
 * connecting, not of the transaction that is timed.
 *
 * Return: 0 or a negative errno after link_error().
 */
int storm_obey(struct link *l, const struct order *o);

#endif
