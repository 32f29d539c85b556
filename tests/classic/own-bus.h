/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A kdbusd of the test's own, with a configuration and a domain; the program is in KDBUSD. */
#ifndef TESTS_CLASSIC_OWN_BUS_H
#define TESTS_CLASSIC_OWN_BUS_H

#include <stdbool.h>
#include <sys/types.h>

struct own_bus {
	pid_t pid;
	char folder[72];
	char native[128]; /* node of its bus, for libkdbus */
	bool mounted; /* its domain, by the test */
};

/*
 * @config: elements of a <busconfig> besides <listen> and a policy that allows everything
 * @fd_limit: descriptors it may have, 0: as many as this program
 *
 * Sets DBUS_ADDRESS.
 */
void own_bus_start(struct own_bus *bus, const char *config, unsigned int fd_limit);
/* The same without the privilege to go beyond limits of the kernel, even as root */
void own_bus_start_plain(struct own_bus *bus, const char *config, unsigned int fd_limit);
/* Whether it is a bus of the module: KDBUS_ENGINE says so. */
bool own_bus_on_module(void);
/* Returns its exit status. */
int own_bus_stop(struct own_bus *bus);

#endif
