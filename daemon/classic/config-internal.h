/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef CLASSIC_CONFIG_INTERNAL_H
#define CLASSIC_CONFIG_INTERNAL_H

/*
 * config-internal.h - between the reader of XML files and what it fills in
 *
 * A file is read by a reader into a configuration of its own, which is merged into that of the file
 * that includes it when it is complete: a broken file leaves no traces (config.h, rule 3).
 */

#include <expat.h>
#include <stdarg.h>
#include <sys/stat.h>

#include "config.h"
#include "policy.h"

/* What is open in a file; deeper nesting does not exist */
#define CONFIG_DEPTH 3
#define CONFIG_INCLUDES_MAX 64

struct config_element;

/**
 * struct config_reader - one file being read
 * @config:	what it says, with what the files it includes say
 * @parent:	reader of the file that includes it
 * @depth:	length of the chain of parents
 * @path:	the file
 * @st:		its inode; st_ino is 0 if it is a text in memory
 * @open:	elements that are open
 * @n_open:	their number
 * @text:	text of the innermost one
 * @context, @context_id: of the <policy> that is open
 * @nobody:	it is for a user or group that does not exist
 * @limit:	offset of the <limit> that is open
 * @include:	attributes of the <include> that is open
 * @result:	0, or what config_load() is to return
 * @error:	its text
 */
struct config_reader {
	XML_Parser xml;
	struct config *config;
	const struct config_reader *parent;
	const struct config_reading *reading;
	unsigned int depth;
	const char *path;
	struct stat st;
	const struct config_element *open[CONFIG_DEPTH];
	unsigned int n_open;
	char *text;
	size_t text_len;
	enum policy_context context;
	uint32_t context_id;
	bool nobody;
	size_t limit;
	struct {
		bool ignore_missing;
		bool if_selinux_enabled;
		bool selinux_root_relative;
	} include;
	int result;
	char *error;
};

/* One attribute that an element may have */
struct config_attribute {
	const char *name;
	const char **value;
};

/* config.c */
struct config *config_new(void);
int config_set(char **field, const char *value);
int config_list_add(struct config_list *list, const char *item);
bool config_list_has(const struct config_list *list, const char *item);
int config_add_servicedir(struct config *config, const char *path, bool strict, bool unwatched);
int config_add_associate(struct config *config, const char *own, const char *context);
int config_merge(struct config *to, struct config *from);
int config_session_servicedirs(struct config *config);
int config_system_servicedirs(struct config *config);

/* config-xml.c: refusing is final, the first reason counts. Both return false. */
bool config_refuse(struct config_reader *r, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
bool config_out_of_memory(struct config_reader *r);
void config_warn(const struct config_reader *r, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
const char *config_open_name(const struct config_reader *r);
/* Sets the values of known attributes; @n of them */
bool config_attributes(struct config_reader *r, const char **atts,
		       const struct config_attribute *known, size_t n);

/* config-include.c */
bool config_include(struct config_reader *r, const char *name);
bool config_includedir(struct config_reader *r, const char *name);
char *config_full_path(const struct config_reader *r, const char *name);
int config_read_file(struct config_reader *r);

/* config-rule.c */
bool config_start_policy(struct config_reader *r, const char **atts);
bool config_start_rule(struct config_reader *r, const char **atts);

#define CONFIG_ATTRIBUTES(r, atts, known) \
	config_attributes(r, atts, known, sizeof(known) / sizeof((known)[0]))

#endif
