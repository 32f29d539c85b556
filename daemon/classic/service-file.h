/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef CLASSIC_SERVICE_FILE_H
#define CLASSIC_SERVICE_FILE_H

/*
 * service-file.h - the names that can be activated: what the .service files say
 *
 * 1. The directories are read as a whole into a set that never changes; a new one replaces it.
 * 2. Of two files for one name that of the earlier directory counts; within a directory, the one
 *    called after the name, then the first in the order of file names.
 * 3. A file that is broken is left out with a warning; the others count.
 * 4. One thread at a time; lookups are O(log n).
 *
 * D-Bus specification, "Message Bus Starting Services (Activation)".
 */

#include <stdbool.h>
#include <stddef.h>

struct config;
struct services;

/**
 * struct service_file - one .service file
 * @name:	the well-known name
 * @exec:	command line, to be split with service_exec_split()
 * @user:	whom to run it as (system bus), or NULL
 * @systemd_service: unit that provides it, or NULL
 * @apparmor_label: AssumedAppArmorLabel, or NULL
 * @file:	path of the file
 */
struct service_file {
	char *name;
	char *exec;
	char *user;
	char *systemd_service;
	char *apparmor_label;
	char *file;
};

/**
 * services_load() - read all .service files of a configuration
 * @config: says where they are
 * @warn: told of files that are left out; may be NULL
 * @arg: for @warn
 * @ret: the set, for the caller to free with services_free()
 *
 * A directory that is missing or may not be read is empty.
 *
 * Return: 0; -ENOMEM.
 */
int services_load(const struct config *config, void (*warn)(void *arg, const char *text),
		  void *arg, struct services **ret);
/**
 * services_make_transient() - make the directory for services of this session, if it is missing
 * @config: says where; nothing happens without <standard_session_servicedirs/>
 *
 * Only in a run-time directory that is the user's own. What cannot be made is not there.
 */
void services_make_transient(const struct config *config);

struct services *services_free(struct services *services);

/* NULL: there is none */
const struct service_file *services_find(const struct services *services, const char *name);

/* By number, in the order of names; @n below services_count() */
size_t services_count(const struct services *services);
const struct service_file *services_nth(const struct services *services, size_t n);

/* Do both make the same names activatable? If not, ActivatableServicesChanged is due. */
bool services_same_names(const struct services *a, const struct services *b);

/**
 * service_file_parse() - read the text of a .service file
 * @text: the text, need not end with a NUL
 * @len: bytes at @text
 * @ret: strings for service_file_deinit(); file is NULL
 * @ret_line: line of the error, from 1 on; 0: the file as a whole
 * @ret_reason: what is wrong, a constant
 *
 * Return: 0; -EINVAL if it is broken; -ENOMEM.
 */
int service_file_parse(const char *text, size_t len, struct service_file *ret,
		       unsigned int *ret_line, const char **ret_reason);
void service_file_deinit(struct service_file *file);

/**
 * service_exec_split() - a command line into arguments, as a shell would without expansions
 * @exec: the line
 * @ret_argv: arguments and a NULL, for service_argv_free()
 * @ret_reason: what is wrong, a constant
 *
 * Quotes ' and ", backslashes, and comments from a # at the start of a word.
 *
 * Return: 0; -EINVAL if a quote is open at its end or there is no word; -ENOMEM.
 */
int service_exec_split(const char *exec, char ***ret_argv, const char **ret_reason);
char **service_argv_free(char **argv);

#endif
