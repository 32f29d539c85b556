/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Why input was refused.
 *
 * The functions of dbus/ return a negative errno; this says precisely which rule was broken, so
 * that a program can log it or name it in an error reply. Functions take an optional pointer to
 * one of these and store to it only when they fail.
 */
#ifndef DBUSP_WHY_H
#define DBUSP_WHY_H

enum dbusp_why {
	DBUSP_WHY_NONE,

	/* marshalling: header and body */
	DBUSP_WHY_TRUNCATED,
	DBUSP_WHY_TRAILING,
	DBUSP_WHY_PADDING,
	DBUSP_WHY_BOOLEAN,
	DBUSP_WHY_STRING,
	DBUSP_WHY_PATH,
	DBUSP_WHY_SIGNATURE,
	DBUSP_WHY_ARRAY_TOO_BIG,
	DBUSP_WHY_ARRAY_LENGTH,
	DBUSP_WHY_TOO_DEEP,
	DBUSP_WHY_FD_INDEX,
	DBUSP_WHY_VARIANT,

	/* message header */
	DBUSP_WHY_ENDIAN,
	DBUSP_WHY_TYPE,
	DBUSP_WHY_VERSION,
	DBUSP_WHY_SERIAL,
	DBUSP_WHY_TOO_LARGE,
	DBUSP_WHY_OVER_MAX,
	DBUSP_WHY_FIELDS_TOO_BIG,
	DBUSP_WHY_FIELD_ZERO,
	DBUSP_WHY_FIELD_TYPE,
	DBUSP_WHY_FIELD_TWICE,
	DBUSP_WHY_FIELD_MISSING,
	DBUSP_WHY_REPLY_SERIAL,
	DBUSP_WHY_INTERFACE,
	DBUSP_WHY_MEMBER,
	DBUSP_WHY_ERROR_NAME,
	DBUSP_WHY_DESTINATION,
	DBUSP_WHY_SENDER,
	DBUSP_WHY_LOCAL_PATH,
	DBUSP_WHY_LOCAL_INTERFACE,

	/* match rules */
	DBUSP_WHY_RULE_LONG,
	DBUSP_WHY_RULE_NO_EQUALS,
	DBUSP_WHY_RULE_QUOTE,
	DBUSP_WHY_RULE_KEY,
	DBUSP_WHY_RULE_TWICE,
	DBUSP_WHY_RULE_TYPE,
	DBUSP_WHY_RULE_PATHS,
	DBUSP_WHY_RULE_EAVESDROP,
	DBUSP_WHY_RULE_ARG,
	DBUSP_WHY_RULE_ARG_RANGE,
	DBUSP_WHY_RULE_NAMESPACE,
	DBUSP_WHY_RULE_NUL,

	/* authentication */
	DBUSP_WHY_SASL_NUL,
	DBUSP_WHY_SASL_LINE_LONG,
	DBUSP_WHY_SASL_TOO_MANY,
	DBUSP_WHY_SASL_REJECTED,
	DBUSP_WHY_SASL_EARLY_BEGIN,
	DBUSP_WHY_SASL_MECHANISM,
	DBUSP_WHY_SASL_COOKIE,
	DBUSP_WHY_SASL_IDENTITY,
	DBUSP_WHY_SASL_CREDENTIALS,
	DBUSP_WHY_SASL_TRACE,
	DBUSP_WHY_SASL_REPLY,

	/* addresses */
	DBUSP_WHY_ADDRESS_EMPTY,
	DBUSP_WHY_ADDRESS_COLON,
	DBUSP_WHY_ADDRESS_KEY,
	DBUSP_WHY_ADDRESS_VALUE,
	DBUSP_WHY_ADDRESS_ESCAPE,
	DBUSP_WHY_ADDRESS_BYTE,
	DBUSP_WHY_ADDRESS_KIND,
	DBUSP_WHY_ADDRESS_RUNTIME,
	DBUSP_WHY_ADDRESS_GUID,

	_DBUSP_WHY_MAX,
};

/**
 * dbusp_why_str() - the reason as a phrase for a log line or an error reply
 * @why: reason; a value out of range gives "unknown reason"
 *
 * Return: a constant string, lower case, without a full stop.
 */
const char *dbusp_why_str(enum dbusp_why why);

/* Stores @why where the caller asked for it and hands on @err: "return dbusp_fail(why, X, -E)". */
static inline int dbusp_fail(enum dbusp_why *ret_why, enum dbusp_why why, int err)
{
	if (ret_why)
		*ret_why = why;
	return err;
}

#endif
