/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef CLASSIC_CONFIG_H
#define CLASSIC_CONFIG_H

/*
 * config.h - the configuration of a classic bus: dbus-daemon's XML files, read
 *
 * 1. A configuration is read as a whole and never changes afterwards. It is counted; who holds a
 *    reference keeps its strings.
 * 2. Reading is strict, as dbus-daemon is: an element or attribute that is not known, text where
 *    none belongs, or a value out of range refuses the file. The error names file, line and reason.
 * 3. A file that <includedir> finds and that is broken is left out as a whole, with a warning: one
 *    bad package must not keep a machine from starting. When a running bus reads its files again
 *    it refuses the new configuration instead, unless the file was left out before already.
 * 4. A <policy> for a user or group that does not exist applies to nobody (fails closed), with a
 *    warning.
 * 5. One thread at a time for each object; the name service (NSS) is asked while reading only, and
 *    only for names that the files mention.
 *
 * dbus-daemon(1), "CONFIGURATION FILE".
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct policy;

#define CONFIG_MESSAGE_MAX (128L << 20) /* larger <limit name="max_message_size"> count as this */
#define CONFIG_FDS_MAX (32L << 20) /* largest min_fds and max_fds of a rule */

/**
 * struct config_limits - every <limit>; bytes, numbers, or milliseconds
 * @reply_timeout: -1: never (the default)
 */
struct config_limits {
	long max_incoming_bytes;
	long max_incoming_unix_fds;
	long max_outgoing_bytes;
	long max_outgoing_unix_fds;
	long max_message_size;
	long max_message_unix_fds;
	long service_start_timeout;
	long auth_timeout;
	long pending_fd_timeout;
	long max_completed_connections;
	long max_incomplete_connections;
	long max_connections_per_user;
	long max_pending_service_starts;
	long max_names_per_connection;
	long max_match_rules_per_connection;
	long max_replies_per_connection;
	long reply_timeout;
};

extern const struct config_limits config_default_limits;

/**
 * struct config_list - strings, in the order of the files
 */
struct config_list {
	char **items;
	size_t n;
};

/**
 * struct config_servicedir - a directory with .service files
 * @path:	where
 * @strict:	a file counts only if it is called after the name in it
 * @unwatched:	changes are not waited for; ReloadConfig tells of them
 */
struct config_servicedir {
	char *path;
	bool strict;
	bool unwatched;
};

/**
 * struct config_associate - <associate>: the SELinux context of a name
 */
struct config_associate {
	char *own;
	char *context;
};

enum config_apparmor {
	CONFIG_APPARMOR_ENABLED,
	CONFIG_APPARMOR_DISABLED,
	CONFIG_APPARMOR_REQUIRED,
};

/**
 * struct config - what the files say
 * @file:	name of the main file, as given
 * @type:	"session", "system", something else, or NULL
 * @user:	whom to run as, a name or number; NULL: stay
 * @servicehelper: setuid program that starts services; NULL: none, start them directly
 * @pidfile:	where to write the pid; NULL: nowhere
 * @listen:	addresses; at least one
 * @auth:	mechanisms that are allowed; none listed: all
 * @servicedirs, @n_servicedirs: without repetitions; the first that has a name counts
 * @conf_dirs:	directories of <includedir>, to be watched, whether they exist or not
 * @files:	every file that was read
 * @skipped:	files of <includedir> that were broken and left out
 * @associates, @n_associates: of <selinux>, later ones count
 * @policy:	rules of all <policy>
 */
struct config {
	unsigned int refs;
	char *file;
	char *type;
	char *user;
	char *servicehelper;
	char *pidfile;
	struct config_list listen;
	struct config_list auth;
	struct config_servicedir *servicedirs;
	size_t n_servicedirs;
	struct config_list conf_dirs;
	struct config_list files;
	struct config_list skipped;
	struct config_associate *associates;
	size_t n_associates;
	enum config_apparmor apparmor;
	bool fork;
	bool keep_umask;
	bool syslog;
	bool allow_anonymous;
	struct config_limits limits;
	struct policy *policy;
};

/**
 * struct config_reading - how to read
 * @before:	configuration in use that this is to replace (rule 3), or NULL
 * @warn:	told of what is left out, one line without a newline; may be NULL
 * @arg:	for @warn
 */
struct config_reading {
	const struct config *before;
	void (*warn)(void *arg, const char *text);
	void *arg;
};

/**
 * config_load() - read a configuration file and all that it includes
 * @path: the file; /proc/self/fd/N will do
 * @reading: how to read it
 * @ret: the configuration, one reference for the caller
 * @ret_error: on failure a text with file, line and reason for the caller to free, or NULL if
 *	memory ran out
 *
 * Reads files and may ask NSS: it blocks.
 *
 * Return: 0; -ENOENT and the like if the file cannot be read; -EINVAL if it or one that it includes
 * is broken or refused; -ENOMEM.
 */
int config_load(const char *path, const struct config_reading *reading, struct config **ret,
		char **ret_error);

/**
 * config_parse() - the same for a text in memory
 * @path: what to call it in errors, and what relative names in it start from
 * @text: the text, need not end with a NUL
 * @len: bytes at @text
 * @reading, @ret, @ret_error: as above
 *
 * Return: as config_load().
 */
int config_parse(const char *path, const char *text, size_t len,
		 const struct config_reading *reading, struct config **ret, char **ret_error);

/* Listen at @address and nowhere else; before anybody shares it. Return: 0; -ENOMEM. */
int config_listen_only(struct config *config, const char *address);

struct config *config_ref(struct config *config);
struct config *config_unref(struct config *config);

/**
 * config_user_id() - the ids of a user that is given by name or number
 * @user: name or number
 * @ret_uid: its uid
 * @ret_gid: its primary group, (gid_t)-1 if the number belongs to no user; may be NULL
 *
 * Return: 0; -ESRCH if there is none.
 */
int config_user_id(const char *user, uid_t *ret_uid, gid_t *ret_gid);
int config_group_id(const char *group, gid_t *ret_gid);

/**
 * config_user_at_console() - is somebody logged in at the console? (/run/console/NAME)
 * @uid: who
 *
 * Asks NSS; only needed where policy_has_console().
 */
bool config_user_at_console(uid_t uid);

/* Whether the labels on this machine are those of SELinux: others have labels, too. */
bool config_selinux_enabled(void);

#endif
