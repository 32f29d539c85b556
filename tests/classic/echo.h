/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One service, written with three client libraries (echo-gdbus.c, echo-sdbus.c, echo-libdbus.c)
 * that know nothing of kdbus. Each program is both sides:
 *
 *	echo-LIBRARY serve NAME		owns NAME, writes "ready" and serves until Quit
 *	echo-LIBRARY ask NAME		asks the service NAME all it can, TAP on stdout
 *
 * Interface org.example.Echo on /org/example/echo:
 *	Echo(s) -> s		the same
 *	Sum(au) -> u		what the numbers add up to
 *	Fail() -> error		org.example.Error.Failed, "as you wish"
 *	Fd(h) -> h		the same file
 *	Emit(u)			signal Tick(u)
 *	Quit()			gives up the name, and ends
 */
#ifndef TESTS_CLASSIC_ECHO_H
#define TESTS_CLASSIC_ECHO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ECHO_PATH "/org/example/echo"
#define ECHO_INTERFACE "org.example.Echo"
#define ECHO_ERROR "org.example.Error.Failed"
#define ECHO_ERROR_TEXT "as you wish"
#define ECHO_BIG (3U << 20) /* bytes of a large string */

/**
 * struct echo_client - the client's side in one library
 * @open:  connect to the session bus
 * @echo:  call Echo; true if the answer is the same
 * @sum:   call Sum with 1 … @n; the answer
 * @fail:  call Fail; true if the error is the one above
 * @unknown: call a method that is not there; true if UnknownMethod comes back
 * @fd:    call Fd with @fd; a descriptor for the same file
 * @tick:  subscribe to Tick, call Emit, return what the signal carried
 * @quit:  call Quit, wait until NameOwnerChanged says that the name has no owner
 * @close: disconnect
 */
struct echo_client {
	void (*open)(const char *name);
	bool (*echo)(const char *text);
	uint32_t (*sum)(uint32_t n);
	bool (*fail)(void);
	bool (*unknown)(void);
	int (*fd)(int fd);
	uint32_t (*tick)(uint32_t value);
	bool (*quit)(void);
	void (*close)(void);
};

/* Main programs of both sides. */
int echo_ask(const struct echo_client *client, const char *name);
void echo_ready(void);
int echo_main(int argc, char **argv, int (*serve)(const char *name),
	      const struct echo_client *client);

#endif
