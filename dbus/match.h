/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Match rules: "type='signal',interface='org.example.Face',arg0='x'".
 *
 * 1. A parsed rule is one flat piece of memory without pointers. Rules that mean the same have the
 *    same bytes, whatever their spelling and order: equality is memcmp() over dbusp_match_size().
 * 2. Parsing writes into a buffer of the caller (dbusp_match_buf, about 1.5 kB, for the stack);
 *    to keep the rule, copy dbusp_match_size() bytes, some 26 plus the text.
 * 3. The grammar is that of dbus-daemon, its oddities included, because programs depend on them:
 *    - keys may have white space before and after them, values may not;
 *    - values need no quotes; within quotes everything stands for itself; outside of them \' is an
 *      apostrophe and any other backslash stands for itself;
 *    - a comma may stand at the end, not at the start and not twice;
 *    - where a key is empty ("=x") the rule ends, and what follows is ignored;
 *    - argument numbers may be octal or hexadecimal, as strtoul() reads them: arg00, arg010;
 *    - an argument is matched once, by argN, argNpath or arg0namespace;
 *    - eavesdrop may be given many times, the last one counts.
 * 4. Where the specification is explicit it wins over dbus-daemon: sender=':1' is refused ("Bus
 *    names"), and in arg1=\,arg2=x the comma ends the first value, as in the specification's own
 *    example, where dbus-daemon has the backslash take it along.
 *
 * Parsing is O(bytes), testing O(bytes of rule plus arguments not looked at before). No allocation,
 * no globals. D-Bus specification, "Match Rules".
 */
#ifndef DBUSP_MATCH_H
#define DBUSP_MATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dbus/args.h"
#include "dbus/header.h"
#include "dbus/str.h"
#include "dbus/why.h"

#define DBUSP_MATCH_TEXT_MAX 1024	/* bytes of a rule */

/* What a rule has a condition on. */
enum dbusp_match_key {
	DBUSP_MATCH_TYPE = 1 << 0,
	DBUSP_MATCH_SENDER = 1 << 1,
	DBUSP_MATCH_INTERFACE = 1 << 2,
	DBUSP_MATCH_MEMBER = 1 << 3,
	DBUSP_MATCH_PATH = 1 << 4,
	DBUSP_MATCH_PATH_NAMESPACE = 1 << 5,
	DBUSP_MATCH_DESTINATION = 1 << 6,
	DBUSP_MATCH_ARGS = 1 << 7,
	DBUSP_MATCH_EAVESDROP = 1 << 8,	/* no condition: the rule sees unicast messages */
};

enum dbusp_match_kind {
	DBUSP_ARG_EQUAL,	/* argN */
	DBUSP_ARG_PATH,		/* argNpath */
	DBUSP_ARG_NAMESPACE,	/* arg0namespace */
};

/* Text in struct dbusp_match: offset from its start, and length. */
struct dbusp_match_text {
	uint16_t at, len;
};

struct dbusp_match_arg {
	uint8_t index;		/* 0..63 */
	uint8_t kind;		/* enum dbusp_match_kind */
	struct dbusp_match_text text;
};

struct dbusp_match {
	uint16_t size;		/* bytes of the rule, all included */
	uint16_t keys;		/* enum dbusp_match_key */
	uint8_t type;		/* enum dbusp_type, 0 for any */
	uint8_t n_args;
	struct dbusp_match_text sender, interface, member, path, destination;
	struct dbusp_match_arg args[];	/* by index; then the text */
};

/* Room for any rule. */
struct dbusp_match_buf {
	union {
		struct dbusp_match match;
		uint8_t room[sizeof(struct dbusp_match) +
			     DBUSP_ARGS_MAX * sizeof(struct dbusp_match_arg) +
			     DBUSP_MATCH_TEXT_MAX];
	};
};

/**
 * dbusp_match_parse() - parse a rule
 * @ret: receives the rule in ret->match on success
 * @text: the rule as given to AddMatch; needs no NUL
 * @len: its length in bytes
 * @ret_why: reason on failure, or NULL
 *
 * Return: 0; -EMSGSIZE if the rule is longer than DBUSP_MATCH_TEXT_MAX (LimitsExceeded); -EINVAL
 * if it is invalid (MatchRuleInvalid).
 */
int dbusp_match_parse(struct dbusp_match_buf *ret, const char *text, size_t len,
		      enum dbusp_why *ret_why);

/**
 * dbusp_match_size() - bytes of a rule, for copying it
 * @match: a rule
 *
 * Return: bytes.
 */
size_t dbusp_match_size(const struct dbusp_match *match);

/**
 * dbusp_match_equal() - do two rules mean the same?
 * @a: a rule
 * @b: a rule
 *
 * Return: true if they have the same conditions.
 */
bool dbusp_match_equal(const struct dbusp_match *a, const struct dbusp_match *b);

/**
 * dbusp_match_get() - the text of a condition
 * @match: a rule
 * @key: one of DBUSP_MATCH_SENDER, _INTERFACE, _MEMBER, _PATH, _PATH_NAMESPACE, _DESTINATION
 *
 * Return: the text, inside @match; s == NULL if the rule has no such condition.
 */
struct dbusp_str dbusp_match_get(const struct dbusp_match *match, enum dbusp_match_key key);

/**
 * dbusp_match_arg_text() - the text of a condition on an argument
 * @match: a rule
 * @i: which, below match->n_args; match->args[i] says the rest
 *
 * Return: the text, inside @match.
 */
struct dbusp_str dbusp_match_arg_text(const struct dbusp_match *match, unsigned int i);

/**
 * dbusp_match_format() - write a rule in its canonical form
 * @match: a rule
 * @buf: where to write, or NULL to measure
 * @size: bytes at @buf
 *
 * Keys in the order of enum dbusp_match_key, arguments by number, values in quotes. Parsing the
 * text gives the same rule - unless it is longer than DBUSP_MATCH_TEXT_MAX, which quoting can make
 * of a rule that was close to it.
 *
 * Return: length of the text without its NUL. As with snprintf(), a result not below @size means
 * that the text was cut; if @size is not 0 there is a NUL at the end.
 */
size_t dbusp_match_format(const struct dbusp_match *match, char *buf, size_t size);

/* A message as rules see it. */
struct dbusp_match_subject {
	const struct dbusp_header *header;
	struct dbusp_args *args;	/* initialised for the message */
	/*
	 * Does the sender, or the addressed recipient, have this name - its unique name or one it
	 * is primary owner of? NULL: the name in the header is all that is known.
	 */
	bool (*sender_is)(void *userdata, struct dbusp_str name);
	bool (*destination_is)(void *userdata, struct dbusp_str name);
	void *userdata;
	/* A monitor asks: treat all rules as if they said eavesdrop='true'. */
	bool monitor;
};

/**
 * dbusp_match_test() - does a rule match a message?
 * @match: a rule
 * @subject: the message
 *
 * Return: true if every condition holds, and the message has no destination or the rule
 * eavesdrops.
 */
bool dbusp_match_test(const struct dbusp_match *match,
		      const struct dbusp_match_subject *subject);

#endif
