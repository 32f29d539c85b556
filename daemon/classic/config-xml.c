// SPDX-License-Identifier: LGPL-2.1-or-later
/* The elements of a configuration file, and where they may stand. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config-internal.h"
#include "slurp.h"

#define FILE_MAX (16L << 20) /* bytes; dbus-daemon(1) knows no limit, memory does */
#define TEXT_MAX (64U << 10)

enum place {
	AT_ROOT,
	IN_BUSCONFIG,
	IN_POLICY,
	IN_SELINUX,
};

/**
 * struct config_element - what an element is
 * @name:	its name
 * @place:	where it may stand
 * @inside:	where its own elements stand; AT_ROOT: it has none
 * @has_text:	it has text, and needs it
 * @start:	takes the attributes; NULL: there are none
 * @end:	takes the text, "" if it has none; may be NULL
 */
struct config_element {
	const char *name;
	enum place place;
	enum place inside;
	bool has_text;
	bool (*start)(struct config_reader *r, const char **atts);
	bool (*end)(struct config_reader *r, const char *text);
};

/* ---- errors ---- */

static char *format_at(const struct config_reader *r, const char *format, va_list args)
{
	char *reason, *text;

	if (vasprintf(&reason, format, args) < 0)
		return NULL;
	if (asprintf(&text, "%s:%lu: %s", r->path,
		     r->xml ? XML_GetCurrentLineNumber(r->xml) : 0UL, reason) < 0)
		text = NULL;
	free(reason);
	return text;
}

static bool stop(struct config_reader *r)
{
	if (r->xml)
		XML_StopParser(r->xml, XML_FALSE);
	return false;
}

bool config_refuse(struct config_reader *r, const char *format, ...)
{
	va_list args;

	if (!r->result) {
		va_start(args, format);
		r->error = format_at(r, format, args);
		va_end(args);
		r->result = r->error ? -EINVAL : -ENOMEM;
	}
	return stop(r);
}

bool config_out_of_memory(struct config_reader *r)
{
	if (!r->result)
		r->result = -ENOMEM;
	return stop(r);
}

void config_warn(const struct config_reader *r, const char *format, ...)
{
	va_list args;
	char *text;

	if (!r->reading->warn)
		return;
	va_start(args, format);
	text = format_at(r, format, args);
	va_end(args);
	if (text)
		r->reading->warn(r->reading->arg, text);
	free(text);
}

/* ---- attributes ---- */

bool config_attributes(struct config_reader *r, const char **atts,
		       const struct config_attribute *known, size_t n)
{
	size_t i;

	for (; *atts; atts += 2) {
		for (i = 0; i < n && strcmp(known[i].name, *atts); i++)
			;
		if (i == n)
			return config_refuse(r, "Attribute \"%s\" is invalid on <%s> element",
					     *atts, config_open_name(r));
		*known[i].value = atts[1];
	}
	return true;
}

static bool no_attributes(struct config_reader *r, const char **atts)
{
	return config_attributes(r, atts, NULL, 0);
}

static bool yes_or_no(struct config_reader *r, const char *name, const char *value, bool *ret)
{
	if (value && strcmp(value, "yes") && strcmp(value, "no"))
		return config_refuse(r, "%s attribute must have value \"yes\" or \"no\"", name);
	*ret = value && !strcmp(value, "yes");
	return true;
}

static bool done(struct config_reader *r, int result)
{
	return result == 0 || config_out_of_memory(r);
}

/* ---- elements with text ---- */

static bool end_type(struct config_reader *r, const char *text)
{
	return done(r, config_set(&r->config->type, text));
}

static bool end_user(struct config_reader *r, const char *text)
{
	return done(r, config_set(&r->config->user, text));
}

static bool end_listen(struct config_reader *r, const char *text)
{
	return done(r, config_list_add(&r->config->listen, text));
}

static bool end_auth(struct config_reader *r, const char *text)
{
	static const char *const mechanisms[] = { "EXTERNAL", "DBUS_COOKIE_SHA1", "ANONYMOUS" };
	size_t i;

	for (i = 0; i < sizeof(mechanisms) / sizeof(mechanisms[0]); i++)
		if (!strcmp(text, mechanisms[i]))
			return done(r, config_list_add(&r->config->auth, text));
	return config_refuse(r,
			     "Unsupported auth mechanism \"%s\"; there are EXTERNAL, "
			     "DBUS_COOKIE_SHA1 and ANONYMOUS",
			     text);
}

static bool set_path(struct config_reader *r, char **field, const char *text)
{
	char *path = config_full_path(r, text);

	if (!path)
		return config_out_of_memory(r);
	free(*field);
	*field = path;
	return true;
}

static bool end_pidfile(struct config_reader *r, const char *text)
{
	return set_path(r, &r->config->pidfile, text);
}

static bool end_servicehelper(struct config_reader *r, const char *text)
{
	return set_path(r, &r->config->servicehelper, text);
}

static bool end_servicedir(struct config_reader *r, const char *text)
{
	char *path = config_full_path(r, text);
	bool ok = path && config_add_servicedir(r->config, path, false, false) == 0;

	free(path);
	return ok || config_out_of_memory(r);
}

/* ---- elements without ---- */

static bool end_fork(struct config_reader *r, const char *text)
{
	r->config->fork = true;
	return true;
}

static bool end_keep_umask(struct config_reader *r, const char *text)
{
	r->config->keep_umask = true;
	return true;
}

static bool end_syslog(struct config_reader *r, const char *text)
{
	r->config->syslog = true;
	return true;
}

static bool end_allow_anonymous(struct config_reader *r, const char *text)
{
	r->config->allow_anonymous = true;
	return true;
}

static bool end_session_dirs(struct config_reader *r, const char *text)
{
	return done(r, config_session_servicedirs(r->config));
}

static bool end_system_dirs(struct config_reader *r, const char *text)
{
	return done(r, config_system_servicedirs(r->config));
}

static bool start_include(struct config_reader *r, const char **atts)
{
	const char *missing = NULL, *enabled = NULL, *relative = NULL;
	const struct config_attribute known[] = {
		{ "ignore_missing", &missing },
		{ "if_selinux_enabled", &enabled },
		{ "selinux_root_relative", &relative },
	};

	return CONFIG_ATTRIBUTES(r, atts, known) &&
	       yes_or_no(r, "ignore_missing", missing, &r->include.ignore_missing) &&
	       yes_or_no(r, "if_selinux_enabled", enabled, &r->include.if_selinux_enabled) &&
	       yes_or_no(r, "selinux_root_relative", relative, &r->include.selinux_root_relative);
}

static bool start_associate(struct config_reader *r, const char **atts)
{
	const char *own = NULL, *context = NULL;
	const struct config_attribute known[] = { { "own", &own }, { "context", &context } };

	if (!CONFIG_ATTRIBUTES(r, atts, known))
		return false;
	if (!own || !context)
		return config_refuse(r, "Element <associate> must have attributes "
					"own=\"<servicename>\" and context=\"<selinux context>\"");
	return done(r, config_add_associate(r->config, own, context));
}

static bool start_apparmor(struct config_reader *r, const char **atts)
{
	static const char *const modes[] = { "enabled", "disabled", "required" };
	const char *mode = "enabled";
	const struct config_attribute known[] = { { "mode", &mode } };
	size_t i;

	if (!CONFIG_ATTRIBUTES(r, atts, known))
		return false;
	for (i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		if (!strcmp(mode, modes[i])) {
			r->config->apparmor = (enum config_apparmor)i;
			return true;
		}
	}
	return config_refuse(r,
			     "Mode attribute on <apparmor> must have value \"required\", "
			     "\"enabled\" or \"disabled\", not \"%s\"",
			     mode);
}

/* ---- <limit> ---- */

#define LIMIT(field, largest) { #field, offsetof(struct config_limits, field), largest }

static const struct limit {
	const char *name;
	size_t offset;
	long largest;
} limits[] = {
	LIMIT(max_incoming_bytes, LONG_MAX),
	LIMIT(max_incoming_unix_fds, LONG_MAX),
	LIMIT(max_outgoing_bytes, LONG_MAX),
	LIMIT(max_outgoing_unix_fds, LONG_MAX),
	LIMIT(max_message_size, LONG_MAX),
	LIMIT(max_message_unix_fds, LONG_MAX),
	LIMIT(service_start_timeout, INT_MAX),
	LIMIT(auth_timeout, INT_MAX),
	LIMIT(pending_fd_timeout, INT_MAX),
	LIMIT(max_completed_connections, INT_MAX),
	LIMIT(max_incomplete_connections, INT_MAX),
	LIMIT(max_connections_per_user, INT_MAX),
	LIMIT(max_pending_service_starts, INT_MAX),
	LIMIT(max_names_per_connection, INT_MAX),
	LIMIT(max_match_rules_per_connection, INT_MAX),
	LIMIT(max_replies_per_connection, INT_MAX),
	LIMIT(reply_timeout, INT_MAX),
};

static bool start_limit(struct config_reader *r, const char **atts)
{
	const char *name = NULL;
	const struct config_attribute known[] = { { "name", &name } };

	if (!CONFIG_ATTRIBUTES(r, atts, known))
		return false;
	if (!name)
		return config_refuse(r, "<limit> element must have a \"name\" attribute");
	for (r->limit = 0; r->limit < sizeof(limits) / sizeof(limits[0]); r->limit++)
		if (!strcmp(limits[r->limit].name, name))
			return true;
	return config_refuse(r, "There is no limit called \"%s\"", name);
}

/*
 * Decimal, octal after 0 and hexadecimal after 0x, as in dbus-daemon, which also takes the number
 * at the start of a longer text for the whole.
 */
static bool end_limit(struct config_reader *r, const char *text)
{
	const struct limit *limit = &limits[r->limit];
	char *end;
	long value;

	errno = 0;
	value = strtol(text, &end, 0);
	if (end == text || errno)
		return config_refuse(r,
				     "<limit name=\"%s\"> element has invalid value (could not "
				     "parse as integer)",
				     limit->name);
	if (value < 0)
		return config_refuse(r, "<limit name=\"%s\"> must be a positive number",
				     limit->name);
	if (value > limit->largest)
		return config_refuse(r, "<limit name=\"%s\"> value is too large", limit->name);
	if (end[strspn(end, " \t\n")])
		config_warn(r, "<limit name=\"%s\"> is %s, taken as %ld", limit->name, text, value);
	*(long *)((char *)&r->config->limits + limit->offset) = value;
	return true;
}

/* ---- the table ---- */

static const struct config_element elements[] = {
	{ "busconfig", AT_ROOT, IN_BUSCONFIG, false, NULL, NULL },
	{ "type", IN_BUSCONFIG, AT_ROOT, true, NULL, end_type },
	{ "user", IN_BUSCONFIG, AT_ROOT, true, NULL, end_user },
	{ "listen", IN_BUSCONFIG, AT_ROOT, true, NULL, end_listen },
	{ "auth", IN_BUSCONFIG, AT_ROOT, true, NULL, end_auth },
	{ "fork", IN_BUSCONFIG, AT_ROOT, false, NULL, end_fork },
	{ "keep_umask", IN_BUSCONFIG, AT_ROOT, false, NULL, end_keep_umask },
	{ "syslog", IN_BUSCONFIG, AT_ROOT, false, NULL, end_syslog },
	{ "pidfile", IN_BUSCONFIG, AT_ROOT, true, NULL, end_pidfile },
	{ "allow_anonymous", IN_BUSCONFIG, AT_ROOT, false, NULL, end_allow_anonymous },
	{ "include", IN_BUSCONFIG, AT_ROOT, true, start_include, config_include },
	{ "includedir", IN_BUSCONFIG, AT_ROOT, true, NULL, config_includedir },
	{ "servicedir", IN_BUSCONFIG, AT_ROOT, true, NULL, end_servicedir },
	{ "standard_session_servicedirs", IN_BUSCONFIG, AT_ROOT, false, NULL, end_session_dirs },
	{ "standard_system_servicedirs", IN_BUSCONFIG, AT_ROOT, false, NULL, end_system_dirs },
	{ "servicehelper", IN_BUSCONFIG, AT_ROOT, true, NULL, end_servicehelper },
	{ "limit", IN_BUSCONFIG, AT_ROOT, true, start_limit, end_limit },
	{ "policy", IN_BUSCONFIG, IN_POLICY, false, config_start_policy, NULL },
	{ "allow", IN_POLICY, AT_ROOT, false, config_start_rule, NULL },
	{ "deny", IN_POLICY, AT_ROOT, false, config_start_rule, NULL },
	{ "selinux", IN_BUSCONFIG, IN_SELINUX, false, NULL, NULL },
	{ "associate", IN_SELINUX, AT_ROOT, false, start_associate, NULL },
	{ "apparmor", IN_BUSCONFIG, AT_ROOT, false, start_apparmor, NULL },
};

static const struct config_element *open_element(const struct config_reader *r)
{
	return r->n_open ? r->open[r->n_open - 1] : NULL;
}

const char *config_open_name(const struct config_reader *r)
{
	return open_element(r)->name;
}

static const struct config_element *find_element(const char *name, enum place place)
{
	size_t i;

	for (i = 0; i < sizeof(elements) / sizeof(elements[0]); i++)
		if (elements[i].place == place && !strcmp(elements[i].name, name))
			return &elements[i];
	return NULL;
}

static void XMLCALL start_element(void *arg, const char *name, const char **atts)
{
	struct config_reader *r = arg;
	const struct config_element *parent = open_element(r), *element;

	if (r->result)
		return;
	element = parent && !parent->inside ?
			  NULL :
			  find_element(name, parent ? parent->inside : AT_ROOT);
	if (!element) {
		if (parent)
			config_refuse(r, "Element <%s> not allowed inside <%s>", name,
				      parent->name);
		else
			config_refuse(r, "Unknown element <%s> at root of configuration file",
				      name);
		return;
	}
	r->open[r->n_open++] = element;
	r->text_len = 0;
	if (element->start)
		element->start(r, atts);
	else
		no_attributes(r, atts);
}

static void XMLCALL end_element(void *arg, const char *name)
{
	struct config_reader *r = arg;
	const struct config_element *element = open_element(r);

	if (r->result)
		return;
	if (element->has_text && !r->text_len) {
		config_refuse(r, "XML element <%s> was expected to have content inside it", name);
		return;
	}
	if (r->text)
		r->text[r->text_len] = '\0';
	if (element->end)
		element->end(r, r->text_len ? r->text : "");
	r->text_len = 0;
	r->n_open--;
}

static void XMLCALL character_data(void *arg, const char *s, int len)
{
	struct config_reader *r = arg;
	const struct config_element *element = open_element(r);
	char *more;
	int i;

	if (r->result || !element)
		return;
	if (!element->has_text) {
		for (i = 0; i < len && strchr(" \t\r\n", s[i]); i++)
			;
		if (i < len)
			config_refuse(r, "No text content expected inside XML element %s",
				      element->name);
		return;
	}
	if (r->text_len + (size_t)len > TEXT_MAX) {
		config_refuse(r, "the text of <%s> is longer than %u bytes", element->name,
			      TEXT_MAX);
		return;
	}
	more = realloc(r->text, r->text_len + (size_t)len + 1);
	if (!more) {
		config_out_of_memory(r);
		return;
	}
	memcpy(more + r->text_len, s, (size_t)len);
	r->text = more;
	r->text_len += (size_t)len;
}

/* ---- a file ---- */

static void parse(struct config_reader *r, const char *text, size_t len)
{
	enum XML_Error code;

	if (XML_Parse(r->xml, text, (int)len, XML_TRUE) == XML_STATUS_OK || r->result)
		return;
	code = XML_GetErrorCode(r->xml);
	if (code == XML_ERROR_NO_MEMORY)
		r->result = -ENOMEM;
	else
		config_refuse(r, "column %lu: %s", XML_GetCurrentColumnNumber(r->xml),
			      XML_ErrorString(code));
}

static int read_text(struct config_reader *r, const char *text, size_t len)
{
	if (config_list_add(&r->config->files, r->path) < 0)
		return -ENOMEM;
	r->xml = XML_ParserCreate(NULL);
	if (!r->xml)
		return -ENOMEM;
	XML_SetUserData(r->xml, r);
	XML_SetElementHandler(r->xml, start_element, end_element);
	XML_SetCharacterDataHandler(r->xml, character_data);
	parse(r, text, len);
	XML_ParserFree(r->xml);
	r->xml = NULL;
	free(r->text);
	r->text = NULL;
	return r->result;
}

int config_read_file(struct config_reader *r)
{
	int fd = open(r->path, O_RDONLY | O_CLOEXEC), result;
	size_t len = 0;
	char *text = NULL;

	if (fd < 0)
		return -errno;
	result = slurp_fd(fd, FILE_MAX, &text, &len);
	close(fd);
	if (result < 0)
		return result;
	result = read_text(r, text, len);
	free(text);
	return result;
}

/* ---- the whole ---- */

static int finish(struct config_reader *r, struct config **ret, char **ret_error)
{
	if (r->result == 0 && config_set(&r->config->file, r->path) < 0)
		r->result = -ENOMEM;
	if (r->result == 0 && !r->config->listen.n)
		config_refuse(r, "a configuration needs one or more <listen> elements giving "
				 "addresses");
	if (r->result == 0) {
		*ret = r->config;
		return 0;
	}
	if (!r->error && r->result != -ENOMEM &&
	    asprintf(&r->error, "cannot read %s: %s", r->path, strerror(-r->result)) < 0)
		r->error = NULL;
	config_unref(r->config);
	*ret_error = r->error;
	return r->result;
}

static const struct config_reading plain_reading;

static int init_reader(struct config_reader *r, const char *path,
		       const struct config_reading *reading)
{
	*r = (struct config_reader){
		.path = path,
		.reading = reading ? reading : &plain_reading,
		.config = config_new(),
	};
	return r->config ? 0 : -ENOMEM;
}

int config_load(const char *path, const struct config_reading *reading, struct config **ret,
		char **ret_error)
{
	struct config_reader r;

	r.result = init_reader(&r, path, reading);
	if (r.result == 0 && stat(path, &r.st) < 0)
		r.result = -errno;
	if (r.result == 0)
		r.result = config_read_file(&r);
	return finish(&r, ret, ret_error);
}

int config_parse(const char *path, const char *text, size_t len,
		 const struct config_reading *reading, struct config **ret, char **ret_error)
{
	struct config_reader r;

	r.result = init_reader(&r, path, reading);
	if (r.result == 0)
		r.result = len > FILE_MAX ? -EFBIG : read_text(&r, text, len);
	return finish(&r, ret, ret_error);
}
