/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Hex digits, whatever the locale. Internal to dbus/. */
#ifndef DBUSP_HEX_H
#define DBUSP_HEX_H

/* 0..15; 16 if @c is no hex digit */
static inline unsigned int dbusp_hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return 16;
}

#endif
