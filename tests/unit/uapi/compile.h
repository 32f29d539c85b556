/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * uapi/kdbus.h alone in a translation unit, every fact of table.h checked by the
 * compiler. Nothing here needs a C library or a language newer than C99 and C++98, so
 * that it can be compiled for any target without running it.
 */
#include "kdbus.h"

#define PASTE2(_a, _b) _a##_b
#define PASTE(_a, _b) PASTE2(_a, _b)
#define FACT(_x) extern char PASTE(fact_, __LINE__)[(_x) ? 1 : -1] __attribute__((__unused__));
#define MEMBER(_type, _member) (((_type *)0)->_member)

#define VALUE(_name, _value) FACT((__u64)(_name) == (_value))
#define SIZE(_type, _bytes) FACT(sizeof(_type) == (_bytes) && __alignof__(_type) == 8)
#define FIELD(_type, _member, _offset, _bytes)                                                     \
	FACT(__builtin_offsetof(_type, _member) == (_offset) &&                                    \
	     sizeof(MEMBER(_type, _member)) == (_bytes))
#define TAIL(_type, _member, _offset, _bytes)                                                      \
	FACT(__builtin_offsetof(_type, _member) == (_offset) &&                                    \
	     sizeof(MEMBER(_type, _member)[0]) == (_bytes))

#include "table.h"
