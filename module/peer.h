/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MODULE_PEER_H
#define MODULE_PEER_H

#include "arg.h"
#include "object.h"

/*
 * The commands of a connection (spec §6.5 to §6.15).
 *
 * All functions may be called by any number of threads at once, and need no lock. Each
 * returns 0 or an errno of the section it names.
 */

/**
 * kbus_peer_command() - execute a command on a connection
 * @conn: connection
 * @file: its file
 * @cmd:  command, which the state of the handle allows
 * @user: its argument
 *
 * Return: 0; -EOPNOTSUPP: not for this kind of connection; else what the command returns.
 */
int kbus_peer_command(struct kbus_conn *conn, struct file *file, enum core_cmd cmd,
		      void __user *user);

/* §6.5 */
int kbus_peer_update(struct kbus_conn *conn, struct kbus_arg *arg);

/* §6.6 */
int kbus_peer_byebye(struct kbus_conn *conn);

/* §6.7 */
int kbus_peer_free(struct kbus_conn *conn, struct kbus_arg *arg);

/* §6.8 */
int kbus_peer_conn_info(struct kbus_conn *conn, struct kbus_arg *arg);

/* §6.9 */
int kbus_peer_creator_info(struct kbus_conn *conn, struct kbus_arg *arg);

/* §6.10 */
int kbus_peer_list(struct kbus_conn *conn, struct kbus_arg *arg);

/* §6.11 */
int kbus_peer_name_acquire(struct kbus_conn *conn, struct kbus_arg *arg);

/* §6.12 */
int kbus_peer_name_release(struct kbus_conn *conn, struct kbus_arg *arg);

/* §6.13 */
int kbus_peer_match_add(struct kbus_conn *conn, struct kbus_arg *arg);
int kbus_peer_match_remove(struct kbus_conn *conn, struct kbus_arg *arg);

/* §6.14; @file is the connection's own, for its wait queue */
int kbus_peer_send(struct kbus_conn *conn, struct file *file, struct kbus_arg *arg);

/* §6.15 */
int kbus_peer_recv(struct kbus_conn *conn, struct kbus_arg *arg);

#endif
