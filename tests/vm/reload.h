/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef TESTS_VM_RELOAD_H
#define TESTS_VM_RELOAD_H

/* Load the module. Return: 0 or negative errno. */
int reload_load(void);

/*
 * Unload the module and load it again, while processes on all CPUs mount kdbusfs, make
 * buses, talk, and leave: it goes only when nobody has anything of it. It is loaded
 * before and afterwards, and not mounted. Return: 0; 1: something went wrong, printed.
 */
int reload_under_load(void);

#endif
