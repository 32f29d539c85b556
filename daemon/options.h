/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef DAEMON_OPTIONS_H
#define DAEMON_OPTIONS_H

/*
 * options.h - the command line: kdbusd's own, and dbus-daemon's
 *
 * 1. A classic bus is served if a configuration is asked for: --session, --config-file, or --system
 *    without --domain. Its options mean what they mean to dbus-daemon, so that kdbusd can take its
 *    place by a symbolic link; called "dbus-daemon" it insists on a configuration.
 * 2. With --domain alone, and without any option, there is a domain and no classic bus.
 */

#include <stdbool.h>

enum log_target {
	LOG_TO_CONFIGURED,
	LOG_TO_STDERR,
	LOG_TO_BOTH,
	LOG_TO_SYSLOG,
};

/**
 * struct options - what was asked for
 * @program:	name it was called by
 * @domain:	directory of the domain; NULL: none given
 * @kernel:	the module carries messages
 * @system:	--system
 * @config_file: configuration of a classic bus; NULL: there is none
 * @address:	where to listen in place of what the configuration says, or NULL
 * @address_fd, @pid_fd: where to print them, -1: nowhere
 * @fork, @nofork: --fork or --nofork, the last one; neither: as configured
 * @pidfile:	write the pid file that is configured
 * @systemd_activation: services are started by systemd
 * @introspect:	print what the bus answers to Introspect, and end
 * @log:	where messages go
 */
struct options {
	const char *program;
	const char *domain;
	bool kernel;
	bool system;
	const char *config_file;
	const char *address;
	int address_fd;
	int pid_fd;
	bool fork;
	bool nofork;
	bool pidfile;
	bool systemd_activation;
	bool introspect;
	enum log_target log;
};

/**
 * options_parse() - read the command line
 * @argc, @argv: of main(); the options keep pointers into it
 * @ret: what was asked for
 *
 * Return: 1: go on; 0: all is done; otherwise the exit status, negated, after a line on stderr.
 */
int options_parse(int argc, char **argv, struct options *ret);

/* A line on stderr with an example; returns 2, the exit status of wrong usage. */
int options_usage(const char *format, const char *what);

#endif
