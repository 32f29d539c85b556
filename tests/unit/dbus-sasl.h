/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Conversations with the authentication server, as uid 0; the same table is put to dbus-daemon.
 */
#ifndef TESTS_DBUS_SASL_H
#define TESTS_DBUS_SASL_H

#include "dbus/str.h"

/* A, D, E, K, R: AGREE_UNIX_FD, DATA, ERROR, OK, REJECTED; X at the end: disconnected */
static const struct sasl_row {
	struct dbusp_str in;	/* after the first NUL byte */
	const char *replies;
} sasl_rows[] = {
#define ROW(in, replies) { { in, sizeof(in) - 1 }, replies }
	/* "EXTERNAL" */
	ROW("AUTH EXTERNAL 30\r\n", "K"),
	ROW("AUTH EXTERNAL\r\nDATA\r\n", "DK"),
	ROW("AUTH EXTERNAL\r\nDATA 30\r\n", "DK"),
	ROW("AUTH EXTERNAL   \r\nDATA \r\n", "DK"),
	ROW("AUTH EXTERNAL\r\nDATA 31\r\nDATA\r\n", "DRE"),
	ROW("AUTH EXTERNAL 31\r\n", "R"),
	ROW("AUTH EXTERNAL 726f6f74\r\n", "R"),
	ROW("AUTH EXTERNAL 303a\r\n", "R"),
	ROW("AUTH EXTERNAL 3030\r\n", "K"),
	ROW("AUTH EXTERNAL 31\r\nAUTH EXTERNAL 30\r\n", "RK"),
	/* hex that is none is not understood, hence an error and not a rejection */
	ROW("AUTH EXTERNAL zz\r\nDATA\r\n", "EE"),
	ROW("AUTH EXTERNAL\r\nDATA zz\r\nDATA\r\n", "DEK"),
	ROW("AUTH EXTERNAL 30 30\r\n", "E"),
	ROW("AUTH EXTERNAL   30  \r\n", "E"),
	ROW("AUTH EXTERNAL 30\n\r\n", "E"),
	ROW("AUTH\tEXTERNAL\t30\r\n", "K"),
	/* other mechanisms */
	ROW("AUTH\r\n", "R"),
	ROW("AUTH ANONYMOUS\r\n", "R"),
	ROW("AUTH DBUS_COOKIE_SHA1 30\r\n", "R"),
	ROW("AUTH external 30\r\n", "R"),
	ROW("AUTH SKEY 7ab83f32ee\r\nAUTH EXTERNAL 30\r\n", "RK"),
	ROW("AUTH SKEY zz\r\n", "R"),
	/* "Server states": WaitingForAuth */
	ROW("DATA\r\nCANCEL\r\nNEGOTIATE_UNIX_FD\r\n", "EEE"),
	ROW("ERROR\r\nERROR \"text\"\r\n", "RR"),
	ROW("BEGIN\r\nAUTH\r\n", "X"),
	/* WaitingForData */
	ROW("AUTH EXTERNAL\r\nAUTH EXTERNAL 30\r\nDATA 30\r\n", "DEK"),
	ROW("AUTH EXTERNAL\r\nFOO\r\nNEGOTIATE_UNIX_FD\r\nDATA\r\n", "DEEK"),
	ROW("AUTH EXTERNAL\r\nCANCEL\r\nDATA\r\nAUTH EXTERNAL 30\r\n", "DREK"),
	ROW("AUTH EXTERNAL\r\nERROR\r\nDATA\r\n", "DRE"),
	ROW("AUTH EXTERNAL\r\nBEGIN\r\n", "DX"),
	/* WaitingForBegin */
	ROW("AUTH EXTERNAL 30\r\nNEGOTIATE_UNIX_FD\r\nNEGOTIATE_UNIX_FD\r\n", "KAA"),
	ROW("AUTH EXTERNAL 30\r\nAUTH EXTERNAL 30\r\nDATA\r\nFOO\r\nERROR\r\n", "KEEER"),
	ROW("AUTH EXTERNAL 30\r\nNEGOTIATE_UNIX_FD\r\nCANCEL\r\nAUTH EXTERNAL 30\r\n", "KARK"),
	ROW("AUTH EXTERNAL 30\r\nCANCEL\r\nNEGOTIATE_UNIX_FD\r\n", "KRE"),
	/* "ERROR is not fatal", case, ASCII */
	ROW("\r\n\r\nFOO\r\nauth EXTERNAL 30\r\n AUTH EXTERNAL 30\r\n", "EEEEE"),
	ROW("EXTENSION_COM_MYDOMAIN_DO_STUFF\r\nAUTH EXTERNAL 30\r\n", "EK"),
	ROW("AUTH EXTERNAL \xff\r\nAUTH\0EXTERNAL 30\r\n\0AUTH\r\n", "EEE"),
	ROW("AUTH \xff\r\nERROR \0\r\n", "EE"),
	ROW("AUTH EXTERNAL 30\r\nNEGOTIATE_UNIX_FD \x80\r\nNEGOTIATE_UNIX_FD \x7f\r\n", "KEA"),
	/* too many rejections */
	ROW("AUTH\r\nAUTH\r\nAUTH\r\nAUTH\r\nAUTH\r\nAUTH EXTERNAL 30\r\n", "RRRRRK"),
	ROW("AUTH\r\nAUTH\r\nAUTH\r\nAUTH\r\nAUTH\r\nAUTH\r\nAUTH EXTERNAL 30\r\n", "RRRRRRX"),
#undef ROW
};

#define N_SASL_ROWS (sizeof(sasl_rows) / sizeof(sasl_rows[0]))

#endif
