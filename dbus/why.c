// SPDX-License-Identifier: LGPL-2.1-or-later
#include "dbus/why.h"

#include <stddef.h>

static const char *const why_text[_DBUSP_WHY_MAX] = {
	[DBUSP_WHY_NONE] = "no reason",

	[DBUSP_WHY_TRUNCATED] = "data ends in the middle of a value",
	[DBUSP_WHY_TRAILING] = "data left over after the last value",
	[DBUSP_WHY_PADDING] = "alignment padding is not zero",
	[DBUSP_WHY_BOOLEAN] = "boolean is neither 0 nor 1",
	[DBUSP_WHY_STRING] = "string is not NUL-terminated UTF-8",
	[DBUSP_WHY_PATH] = "invalid object path",
	[DBUSP_WHY_SIGNATURE] = "invalid signature",
	[DBUSP_WHY_ARRAY_TOO_BIG] = "array is larger than 64 MiB",
	[DBUSP_WHY_ARRAY_LENGTH] = "array length does not end between two elements",
	[DBUSP_WHY_TOO_DEEP] = "containers are nested more than 64 deep",
	[DBUSP_WHY_FD_INDEX] = "descriptor index is not below the number of descriptors",
	[DBUSP_WHY_VARIANT] = "variant does not hold exactly one complete type",

	[DBUSP_WHY_ENDIAN] = "first byte is neither 'l' nor 'B'",
	[DBUSP_WHY_TYPE] = "message type 0",
	[DBUSP_WHY_VERSION] = "protocol version is not 1",
	[DBUSP_WHY_SERIAL] = "serial is 0",
	[DBUSP_WHY_TOO_LARGE] = "message is larger than 128 MiB",
	[DBUSP_WHY_OVER_MAX] = "message is larger than the configured maximum",
	[DBUSP_WHY_FIELDS_TOO_BIG] = "header fields are larger than 64 MiB",
	[DBUSP_WHY_FIELD_ZERO] = "header field with code 0",
	[DBUSP_WHY_FIELD_TYPE] = "header field has the wrong type",
	[DBUSP_WHY_FIELD_TWICE] = "header field appears twice",
	[DBUSP_WHY_FIELD_MISSING] = "header field required by the message type is missing",
	[DBUSP_WHY_REPLY_SERIAL] = "reply serial is 0",
	[DBUSP_WHY_INTERFACE] = "invalid interface name",
	[DBUSP_WHY_MEMBER] = "invalid member name",
	[DBUSP_WHY_ERROR_NAME] = "invalid error name",
	[DBUSP_WHY_DESTINATION] = "invalid destination name",
	[DBUSP_WHY_SENDER] = "invalid sender name",
	[DBUSP_WHY_LOCAL_PATH] = "reserved path /org/freedesktop/DBus/Local",
	[DBUSP_WHY_LOCAL_INTERFACE] = "reserved interface org.freedesktop.DBus.Local",

	[DBUSP_WHY_RULE_LONG] = "match rule is longer than 1024 bytes",
	[DBUSP_WHY_RULE_NO_EQUALS] = "key without '='",
	[DBUSP_WHY_RULE_QUOTE] = "unbalanced quotation marks",
	[DBUSP_WHY_RULE_KEY] = "unknown key",
	[DBUSP_WHY_RULE_TWICE] = "key given twice",
	[DBUSP_WHY_RULE_TYPE] = "unknown message type",
	[DBUSP_WHY_RULE_PATHS] = "path and path_namespace exclude each other",
	[DBUSP_WHY_RULE_EAVESDROP] = "eavesdrop is neither 'true' nor 'false'",
	[DBUSP_WHY_RULE_ARG] = "malformed argument key",
	[DBUSP_WHY_RULE_ARG_RANGE] = "argument number is larger than 63",
	[DBUSP_WHY_RULE_NAMESPACE] = "arg0namespace is no prefix of a bus name",
	[DBUSP_WHY_RULE_NUL] = "match rule contains a NUL byte",

	[DBUSP_WHY_SASL_NUL] = "first byte is not NUL",
	[DBUSP_WHY_SASL_LINE_LONG] = "line is longer than 16 KiB",
	[DBUSP_WHY_SASL_TOO_MANY] = "too many commands",
	[DBUSP_WHY_SASL_REJECTED] = "rejected too many times",
	[DBUSP_WHY_SASL_EARLY_BEGIN] = "BEGIN before authentication",
	[DBUSP_WHY_SASL_MECHANISM] = "mechanism is not offered",
	[DBUSP_WHY_SASL_COOKIE] = "DBUS_COOKIE_SHA1 is not supported",
	[DBUSP_WHY_SASL_IDENTITY] = "identity is not a numeric user id",
	[DBUSP_WHY_SASL_CREDENTIALS] = "identity is not that of the socket",
	[DBUSP_WHY_SASL_TRACE] = "trace string is not UTF-8",
	[DBUSP_WHY_SASL_REPLY] = "unexpected reply of the server",

	[DBUSP_WHY_ADDRESS_EMPTY] = "address is empty",
	[DBUSP_WHY_ADDRESS_COLON] = "no colon after the transport name",
	[DBUSP_WHY_ADDRESS_KEY] = "empty key or key without '='",
	[DBUSP_WHY_ADDRESS_VALUE] = "empty value",
	[DBUSP_WHY_ADDRESS_ESCAPE] = "'%' without two hex digits",
	[DBUSP_WHY_ADDRESS_BYTE] = "byte that must be escaped",
	[DBUSP_WHY_ADDRESS_KIND] = "not exactly one of path, dir, tmpdir, runtime and abstract",
	[DBUSP_WHY_ADDRESS_RUNTIME] = "runtime is not 'yes'",
	[DBUSP_WHY_ADDRESS_GUID] = "guid is not 32 hex digits",
};

const char *dbusp_why_str(enum dbusp_why why)
{
	if ((unsigned int)why >= _DBUSP_WHY_MAX || !why_text[why])
		return "unknown reason";
	return why_text[why];
}
