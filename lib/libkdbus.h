/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef LIBKDBUS_H
#define LIBKDBUS_H

/**
 * DOC: libkdbus, the kdbus command set for programs
 *
 * A *handle* is what an open file on a kdbusfs node is to the kernel engine:
 * it starts unconnected, one set-up command (BUS_MAKE, ENDPOINT_MAKE or HELLO)
 * fixes what it is, and closing it undoes that. All commands take and return
 * the structures of <kdbus/kdbus.h> and answer 0 or a negative errno; what each
 * errno means stands with the command in the ABI specification and in the man
 * pages. Programs written for one engine run on the other.
 *
 * Rules
 *
 * 1. A command that fails changed nothing (but the documented exceptions of
 *    the ABI) and left its output fields alone.
 * 2. Messages and answers lie in the receive pool of the handle, at offsets
 *    that commands return. A slice belongs to the program from the command
 *    that published it until it frees the offset.
 * 3. Payload may lie outside the pool (sealed memfds, bulk buffers): always
 *    take its address from libkdbus_payload(). It is valid as long as the
 *    message's slice is.
 * 4. Threads: every function may be called by any thread at any time on the
 *    same handle, as on a descriptor of the kernel, except libkdbus_close(),
 *    which must be the last call. Commands of several threads take effect one
 *    after the other in some order.
 * 5. fork: a child may do nothing with an inherited handle but close it; every
 *    other call on it returns -ECHILD. exec: every descriptor of a handle is
 *    close-on-exec.
 * 6. The library neither prints nor exits, and leaves signals alone.
 */

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <kdbus/kdbus.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

struct libkdbus;

/* ---- finding and opening nodes ---- */

/**
 * libkdbus_domain_path() - the directory of the domain a program should use
 * @ret_path: the path, to be freed with free()
 *
 * KDBUS_DOMAIN if set; else what a ``kdbus:path=`` entry of
 * DBUS_SESSION_BUS_ADDRESS names; else ``/sys/fs/kdbus`` if KDBUS_ENGINE is
 * ``kernel``; else ``/run/kdbus`` for root and ``$XDG_RUNTIME_DIR/kdbus`` for
 * everybody else. The path need not exist.
 *
 * Return: 0, -ENOMEM, or -ENXIO if none of them is set.
 */
int libkdbus_domain_path(char **ret_path);

/**
 * libkdbus_bus_path() - the node of a bus's default endpoint
 * @name: bus name with its uid prefix (``1000-user``), or NULL for the bus
 *	kdbusd makes for the calling user (``<uid>-user``)
 * @ret_path: the path, to be freed with free()
 *
 * Return: 0, -ENOMEM, -EINVAL if @name is no bus name, or as libkdbus_domain_path().
 */
int libkdbus_bus_path(const char *name, char **ret_path);

/**
 * libkdbus_open() - open a node: the control node, or an endpoint of a bus
 * @path: path of the node
 * @flags: 0; reserved
 * @ret: the new, unconnected handle
 *
 * The engine follows from @path: a socket is the user engine, a file on
 * kdbusfs the kernel engine. KDBUS_ENGINE=user|kernel insists on one.
 *
 * Return: 0, or
 *	-ENOENT or -ECONNREFUSED if no daemon serves @path (libkdbus_open_error()
 *	gives the sentence to show), -EACCES without permission on the node,
 *	-EOPNOTSUPP if @path is neither, or not of the engine insisted on,
 *	-ESHUTDOWN if the node is being torn down, -EINVAL for unknown @flags,
 *	-EMFILE, -ENFILE or -ENOMEM for want of resources.
 */
int libkdbus_open(const char *path, unsigned int flags, struct libkdbus **ret);

/**
 * libkdbus_open_error() - a sentence for people about a failed libkdbus_open()
 * @path: the path that was tried
 * @error: what libkdbus_open() returned
 * @buf: where to put the sentence
 * @size: bytes in @buf; what does not fit is cut
 *
 * Return: @buf.
 */
const char *libkdbus_open_error(const char *path, int error, char *buf, size_t size);

/**
 * libkdbus_close() - end a handle
 * @h: the handle, or NULL
 *
 * What is the spec's close() of the last descriptor: a connection disconnects,
 * a bus or an endpoint ends. Pool, payload addresses and descriptor become
 * invalid. When it returns, every notification it caused is queued (spec 1.4).
 *
 * Return: NULL.
 */
struct libkdbus *libkdbus_close(struct libkdbus *h);

/* ---- commands ---- */

/**
 * libkdbus_command() - issue any command of the ABI
 * @h: handle
 * @cmd: KDBUS_CMD_* of <kdbus/kdbus.h>
 * @arg: the command's structure, 8-byte aligned
 *
 * The waist of the library: everything else is written with it. Only a
 * synchronous SEND blocks.
 *
 * Return: 0 or the negative errno of the command; -ENOTTY for an unknown @cmd;
 *	-ECHILD in a forked child; -ECONNRESET once the bus has ended.
 */
int libkdbus_command(struct libkdbus *h, unsigned int cmd, void *arg);

/**
 * libkdbus_bus_make() - make a bus and own it
 * @h: handle
 * @cmd: kdbus_cmd; items MAKE_NAME, BLOOM_PARAMETER, ATTACH_FLAGS_SEND
 *
 * On a handle of the control node. The bus lives as long as the handle.
 * Spec 6.1; threads: rule 4.
 *
 * Return: 0, or
 *	-EINVAL or -ENAMETOOLONG for a bad name, bloom parameters or mask, -EEXIST
 *	if the name is taken, -EMFILE for the 17th bus of a user, -EBADFD if the
 *	handle is not a fresh one of the control node;
 *	and those of libkdbus_command().
 */
int libkdbus_bus_make(struct libkdbus *h, struct kdbus_cmd *cmd);

/**
 * libkdbus_endpoint_make() - make a custom endpoint and own it
 * @h: handle
 * @cmd: kdbus_cmd; item MAKE_NAME
 *
 * On a handle of the default endpoint. The endpoint lives as long as the handle.
 * Spec 6.2; threads: rule 4.
 *
 * Return: 0, or
 *	-EPERM if the opener does not own the bus, -EINVAL or -ENAMETOOLONG for a
 *	bad name, -EEXIST if it is taken, -EBADFD if the handle is not fresh;
 *	and those of libkdbus_command().
 */
int libkdbus_endpoint_make(struct libkdbus *h, struct kdbus_cmd *cmd);

/**
 * libkdbus_endpoint_update() - replace the policy of a custom endpoint
 * @h: handle
 * @cmd: kdbus_cmd; items NAME, POLICY_ACCESS; none: nobody may do anything
 *
 * On the handle that made it.
 * Spec 6.3; threads: rule 4.
 *
 * Return: 0, or
 *	-EINVAL for a malformed policy or an id without mapping, -EEXIST for the
 *	same name twice;
 *	and those of libkdbus_command().
 */
int libkdbus_endpoint_update(struct libkdbus *h, struct kdbus_cmd *cmd);

/**
 * libkdbus_hello() - connect
 * @h: handle
 * @cmd: kdbus_cmd_hello; items NAME, CREDS, PIDS, SECLABEL, CONN_DESCRIPTION, POLICY_ACCESS
 *
 * On a handle of an endpoint. The answer in the pool, at @cmd->offset, is the
 * caller's to free. libkdbus_connect() does all of it.
 * Spec 6.4; threads: rule 4.
 *
 * Return: 0, or
 *	-EINVAL for a bad pool size, kind, name or mask, -EPERM for a special kind or
 *	faked credentials by one who does not own the bus, -EOPNOTSUPP for a monitor
 *	on a custom endpoint, -EMFILE for the 1025th connection of a user, -EEXIST
 *	if the name has an activator or policy of others, -EBADFD;
 *	and those of libkdbus_command().
 */
int libkdbus_hello(struct libkdbus *h, struct kdbus_cmd_hello *cmd);

/**
 * libkdbus_update() - change masks of metadata, or policy
 * @h: handle
 * @cmd: kdbus_cmd; items ATTACH_FLAGS_SEND, ATTACH_FLAGS_RECV, NAME, POLICY_ACCESS
 *
 * Spec 6.5; threads: rule 4.
 *
 * Return: 0, or
 *	-EOPNOTSUPP for what this kind of connection does not have, -EINVAL for
 *	unknown bits or malformed policy, -E2BIG for a second name, -EEXIST;
 *	and those of libkdbus_command().
 */
int libkdbus_update(struct libkdbus *h, struct kdbus_cmd *cmd);

/**
 * libkdbus_byebye() - disconnect, if nothing is queued
 * @h: handle
 * @cmd: kdbus_cmd, no items
 *
 * Commands of other threads that are waiting end with -ECONNRESET.
 * Spec 6.6; threads: rule 4.
 *
 * Return: 0, or
 *	-EBUSY if there is something to receive, -EOPNOTSUPP for special kinds;
 *	and those of libkdbus_command().
 */
int libkdbus_byebye(struct libkdbus *h, struct kdbus_cmd *cmd);

/**
 * libkdbus_free() - give a slice of the pool back
 * @h: handle
 * @cmd: kdbus_cmd_free with the offset
 *
 * Spec 6.7; threads: rule 4.
 *
 * Return: 0, or
 *	-ENXIO if no slice of the caller starts there;
 *	and those of libkdbus_command().
 */
int libkdbus_free(struct libkdbus *h, struct kdbus_cmd_free *cmd);

/**
 * libkdbus_conn_info() - tell about a connection
 * @h: handle
 * @cmd: kdbus_cmd_info; an id, an item NAME, or both
 *
 * The answer, a struct kdbus_info, lies in the pool at @cmd->offset and is the
 * caller's to free.
 * Spec 6.8; threads: rule 4.
 *
 * Return: 0, or
 *	-EINVAL without id and name, -ENXIO for an unknown id, -ESRCH for a name
 *	nobody or another one owns, -EXFULL if the answer does not fit the pool;
 *	and those of libkdbus_command().
 */
int libkdbus_conn_info(struct libkdbus *h, struct kdbus_cmd_info *cmd);

/**
 * libkdbus_bus_creator_info() - tell about who made the bus
 * @h: handle
 * @cmd: kdbus_cmd_info
 *
 * The answer, a struct kdbus_info, lies in the pool at @cmd->offset and is the
 * caller's to free.
 * Spec 6.9; threads: rule 4.
 *
 * Return: 0, or
 *	-EINVAL for unknown bits, -EXFULL if the answer does not fit the pool;
 *	and those of libkdbus_command().
 */
int libkdbus_bus_creator_info(struct libkdbus *h, struct kdbus_cmd_info *cmd);

/**
 * libkdbus_list() - list connections and names
 * @h: handle
 * @cmd: kdbus_cmd_list with KDBUS_LIST_*
 *
 * The answer, @cmd->list_size bytes of struct kdbus_info records at @cmd->offset
 * in the pool, is the caller's to free.
 * Spec 6.10; threads: rule 4.
 *
 * Return: 0, or
 *	-EXFULL if the answer does not fit the pool;
 *	and those of libkdbus_command().
 */
int libkdbus_list(struct libkdbus *h, struct kdbus_cmd_list *cmd);

/**
 * libkdbus_send() - send a message, and wait for the reply if asked to
 * @h: handle
 * @cmd: kdbus_cmd_send; item CANCEL_FD. The message and all it refers to stay the caller's
 *
 * With KDBUS_SEND_SYNC_REPLY the reply lies in the pool at @cmd->reply.offset
 * and is the caller's to free.
 * Spec 6.14, 7; threads: rule 4.
 *
 * Return: 0 or a negative errno; libkdbus_send(3) lists them with their causes.
 */
int libkdbus_send(struct libkdbus *h, struct kdbus_cmd_send *cmd);

/**
 * libkdbus_recv() - take, look at or drop a message
 * @h: handle
 * @cmd: kdbus_cmd_recv with KDBUS_RECV_*
 *
 * Never blocks. The message at @cmd->msg.offset in the pool is the caller's to
 * free, and so are the descriptors that came with it to close.
 * Spec 6.15, 7.10; threads: rule 4.
 *
 * Return: 0, or
 *	-EAGAIN if there is none, -EINVAL for DROP with USE_PRIORITY, -EOPNOTSUPP
 *	for a policy holder;
 *	and those of libkdbus_command().
 */
int libkdbus_recv(struct libkdbus *h, struct kdbus_cmd_recv *cmd);

/**
 * libkdbus_name_acquire() - ask for a well-known name
 * @h: handle
 * @cmd: kdbus_cmd with KDBUS_NAME_*; item NAME
 *
 * @cmd->return_flags says how it came out.
 * Spec 6.11, 10.3; threads: rule 4.
 *
 * Return: 0, or
 *	-EINVAL for a bad name, -EPERM if policy forbids it, -EEXIST if it is
 *	another's and the caller does not wait, -E2BIG for the 257th name;
 *	and those of libkdbus_command().
 */
int libkdbus_name_acquire(struct libkdbus *h, struct kdbus_cmd *cmd);

/**
 * libkdbus_name_release() - give up a name or the place in its queue
 * @h: handle
 * @cmd: kdbus_cmd; item NAME
 *
 * Spec 6.12, 10.4; threads: rule 4.
 *
 * Return: 0, or
 *	-ESRCH if nobody has it, -EADDRINUSE if others do and the caller does not;
 *	and those of libkdbus_command().
 */
int libkdbus_name_release(struct libkdbus *h, struct kdbus_cmd *cmd);

/**
 * libkdbus_match_add() - add a match entry
 * @h: handle
 * @cmd: kdbus_cmd_match with a cookie; one item per rule
 *
 * Spec 6.13, 11; threads: rule 4.
 *
 * Return: 0, or
 *	-EDOM for a mask of a wrong size, -EINVAL for a bad name, -EMFILE for the
 *	257th entry;
 *	and those of libkdbus_command().
 */
int libkdbus_match_add(struct libkdbus *h, struct kdbus_cmd_match *cmd);

/**
 * libkdbus_match_remove() - remove all match entries with a cookie
 * @h: handle
 * @cmd: kdbus_cmd_match with the cookie
 *
 * Spec 6.13; threads: rule 4.
 *
 * Return: 0, or
 *	-EBADSLT if there is none;
 *	and those of libkdbus_command().
 */
int libkdbus_match_remove(struct libkdbus *h, struct kdbus_cmd_match *cmd);

/* ---- what a connected handle has ---- */

/**
 * libkdbus_fd() - the descriptor to wait on
 * @h: handle
 *
 * It is the same for the life of the handle and belongs to it: poll, epoll or
 * select it, nothing else. POLLIN while RECV would return a message or report
 * lost ones; POLLIN or POLLHUP, by engine, when the connection is dead. On the
 * user engine also POLLIN after HELLO, a command or a SEND, until the next RECV
 * has looked. So: RECV until -EAGAIN, then poll.
 * Threads: rule 4. Spec 7.10.
 *
 * Return: the descriptor, or -EBADFD while the handle is not connected.
 */
int libkdbus_fd(struct libkdbus *h);

/**
 * libkdbus_pool() - where the receive pool lies
 * @h: handle
 * @ret_size: bytes in the pool, or NULL
 *
 * Return: the read-only mapping that offsets count from, or NULL while the
 *	handle is not connected.
 */
const void *libkdbus_pool(struct libkdbus *h, size_t *ret_size);

/**
 * libkdbus_payload() - address of one piece of a message's payload
 * @h: handle that received @msg
 * @msg: message in the pool of @h, not yet freed
 * @item: a PAYLOAD_OFF or PAYLOAD_MEMFD item of @msg
 * @ret_address: where its bytes are; NULL for a run of zero bytes that is
 *	stored nowhere (offset ~0)
 * @ret_size: how many
 *
 * A memfd is mapped at the first call and unmapped when the message is freed.
 *
 * Return: 0, -EINVAL if @item is of another type, -ENXIO if @msg is not a
 *	published message of @h, -ENOMEM if a memfd cannot be mapped.
 */
int libkdbus_payload(struct libkdbus *h, const struct kdbus_msg *msg, const struct kdbus_item *item,
		     const void **ret_address, size_t *ret_size);

/* ---- the usual sequences in one call ---- */

/**
 * struct libkdbus_options - how libkdbus_connect() connects
 * @flags: KDBUS_HELLO_*
 * @attach_send: KDBUS_ATTACH_* released to every peer
 * @attach_recv: KDBUS_ATTACH_* wanted on received messages
 * @pool_size: bytes of the receive pool, 0 for 16 MiB
 * @description: connection description, or NULL
 * @name: for activators and policy holders, else NULL
 */
struct libkdbus_options {
	uint64_t flags;
	uint64_t attach_send;
	uint64_t attach_recv;
	uint64_t pool_size;
	const char *description;
	const char *name;
};

/**
 * struct libkdbus_identity - what HELLO told
 * @id: connection id
 * @bus_flags: flags of BUS_MAKE
 * @bloom: the bus's bloom parameters
 * @bus_id: the bus's UUID
 */
struct libkdbus_identity {
	uint64_t id;
	uint64_t bus_flags;
	struct kdbus_bloom_parameter bloom;
	uint8_t bus_id[16];
};

/**
 * libkdbus_connect() - open an endpoint and say HELLO
 * @path: endpoint node, or NULL for the user's own bus
 * @options: or NULL for an ordinary connection that accepts descriptors
 * @ret: the connected handle
 *
 * Return: 0, or as libkdbus_bus_path(), libkdbus_open() and HELLO.
 */
int libkdbus_connect(const char *path, const struct libkdbus_options *options,
		     struct libkdbus **ret);

/**
 * libkdbus_identity() - what HELLO told this connection
 * @h: handle
 *
 * Return: valid until the handle is closed; NULL while it is not connected.
 */
const struct libkdbus_identity *libkdbus_identity(struct libkdbus *h);

/**
 * libkdbus_acquire() - NAME_ACQUIRE without building the command
 * @h: handle
 * @name: well-known name
 * @flags: KDBUS_NAME_* request flags
 * @ret_flags: the command's return_flags, or NULL
 *
 * Return: 0 or the command's negative errno.
 */
int libkdbus_acquire(struct libkdbus *h, const char *name, uint64_t flags, uint64_t *ret_flags);

/**
 * libkdbus_release() - NAME_RELEASE without building the command
 * @h: handle
 * @name: well-known name
 *
 * Return: 0 or the command's negative errno.
 */
int libkdbus_release(struct libkdbus *h, const char *name);

/**
 * libkdbus_receive() - RECV the oldest message
 * @h: handle
 * @ret_msg: the message in the pool; give it back with libkdbus_done()
 *
 * Return: 0, -EAGAIN if there is none, or the command's negative errno. Lost
 *	messages are reported by libkdbus_recv() only; use that where it matters.
 */
int libkdbus_receive(struct libkdbus *h, const struct kdbus_msg **ret_msg);

/**
 * libkdbus_done() - FREE a message or answer by its address
 * @h: handle
 * @in_pool: address in the pool of @h where a slice starts, or NULL
 *
 * Return: 0, or -ENXIO if no slice of the program starts there.
 */
int libkdbus_done(struct libkdbus *h, const void *in_pool);

/**
 * libkdbus_wait() - sleep until RECV has something
 * @h: handle
 * @deadline_ns: CLOCK_MONOTONIC nanoseconds, UINT64_MAX for no deadline
 * @cancel_fd: a descriptor that ends the wait when it becomes readable, or -1
 *
 * On the user engine faster than poll(2) on libkdbus_fd(): it may spin for as long as that has been
 * paying off, and sleeps on a futex first. After it has returned 0, issue RECV before you poll the
 * descriptor. A loop that waits first and then receives is the cheapest there is: RECV that finds
 * nothing has to prepare for a poll.
 *
 * Return: 0, -ETIMEDOUT, -ECANCELED, -EINTR, -ECONNRESET, or -EBADFD while the handle is not
 *	connected.
 */
int libkdbus_wait(struct libkdbus *h, uint64_t deadline_ns, int cancel_fd);

/* ---- building messages and items, walking them ---- */

/**
 * struct libkdbus_builder - a command or message under construction
 *
 * Lives wherever the caller likes; the bytes grow on the heap unless the
 * caller lends a buffer. The first error sticks and is returned at the end, so
 * that calls need not be checked one by one.
 */
struct libkdbus_builder {
	unsigned char *data;
	size_t size;
	size_t allocated;
	int error;
	int borrowed;
};

/**
 * libkdbus_build() - start a command or message
 * @b: builder
 * @fixed_size: bytes of the fixed structure; it starts zeroed
 * @buffer: 8-byte aligned memory to use as long as it lasts, or NULL
 * @buffer_size: bytes in @buffer
 */
void libkdbus_build(struct libkdbus_builder *b, size_t fixed_size, void *buffer,
		    size_t buffer_size);

/**
 * libkdbus_build_item() - append an item, zero-padded to eight bytes
 * @b: builder
 * @type: KDBUS_ITEM_*
 * @payload: what to put in, or NULL for zero bytes
 * @size: bytes of payload
 *
 * Return: the payload inside the item until the next append, or NULL after an
 *	error.
 */
void *libkdbus_build_item(struct libkdbus_builder *b, uint64_t type, const void *payload,
			  size_t size);

/**
 * libkdbus_build_string() - append an item that holds a string
 * @b: builder
 * @type: KDBUS_ITEM_*
 * @string: copied with its NUL
 */
void libkdbus_build_string(struct libkdbus_builder *b, uint64_t type, const char *string);

/**
 * libkdbus_build_vec() - append payload that lies in memory
 * @b: builder
 * @data: where; must be there until SEND has returned. NULL: zero bytes
 * @size: how many bytes
 */
void libkdbus_build_vec(struct libkdbus_builder *b, const void *data, uint64_t size);

/**
 * libkdbus_build_memfd() - append payload that is a sealed memfd
 * @b: builder
 * @fd: stays the caller's; must be open until SEND has returned
 * @start: first byte
 * @size: how many bytes
 */
void libkdbus_build_memfd(struct libkdbus_builder *b, int fd, uint64_t start, uint64_t size);

/**
 * libkdbus_build_fds() - append descriptors to be passed
 * @b: builder
 * @fds: they stay the caller's; must be open until SEND has returned
 * @n: how many, at most 16
 */
void libkdbus_build_fds(struct libkdbus_builder *b, const int *fds, size_t n);

/**
 * libkdbus_build_end() - fill in the size word and hand out the result
 * @b: builder
 * @ret: the command or message, valid until libkdbus_build_clear()
 *
 * Return: 0, -ENOMEM or -EMSGSIZE if it grew past 32 KiB (ABI 2).
 */
int libkdbus_build_end(struct libkdbus_builder *b, void **ret);

/**
 * libkdbus_build_clear() - release what the builder holds
 * @b: builder; may be used anew afterwards
 */
void libkdbus_build_clear(struct libkdbus_builder *b);

/**
 * libkdbus_item_next() - walk the items of a message, an info record or a command
 * @begin: the first byte of the structure
 * @fixed_size: bytes of its fixed part
 * @item: the item after which to go on, or NULL to begin
 *
 * Return: the next item, or NULL at the end.
 */
const struct kdbus_item *libkdbus_item_next(const void *begin, size_t fixed_size,
					    const struct kdbus_item *item);

/**
 * libkdbus_item_find() - the first item of a type
 * @begin: the first byte of the structure
 * @fixed_size: bytes of its fixed part
 * @type: KDBUS_ITEM_*
 *
 * Return: the item or NULL.
 */
const struct kdbus_item *libkdbus_item_find(const void *begin, size_t fixed_size, uint64_t type);

/**
 * libkdbus_memfd_seal() - make a memfd ready to be sent
 * @fd: memfd created with MFD_ALLOW_SEALING, no writable mapping left
 *
 * Return: 0 or a negative errno of fcntl(2); -EBUSY if a writable mapping exists.
 */
int libkdbus_memfd_seal(int fd);

/* ---- a synchronous call ---- */

/**
 * libkdbus_call() - send a call and wait for its reply
 * @h: handle
 * @msg: a message with EXPECT_REPLY, a cookie and an absolute timeout_ns
 * @cancel_fd: a descriptor that gives up the wait when readable, or -1
 * @ret_reply: the reply in the pool; give it back with libkdbus_done()
 *
 * Return: 0, or the errno of a synchronous SEND: -ETIMEDOUT, -EPIPE if the
 *	peer died or dropped the call, -ECANCELED, -EINTR, ... (spec 7.8).
 */
int libkdbus_call(struct libkdbus *h, struct kdbus_msg *msg, int cancel_fd,
		  const struct kdbus_msg **ret_reply);

/* ---- a daemon of one's own ---- */

/**
 * struct libkdbus_daemon - a private kdbusd
 */
struct libkdbus_daemon;

/**
 * libkdbus_daemon_start() - start a kdbusd nobody else uses
 * @program: path of kdbusd, or NULL to look for it in KDBUSD and PATH
 * @ret: the running daemon
 *
 * For tests and demonstrations. Its domain lies in a fresh directory below
 * XDG_RUNTIME_DIR or TMPDIR; it ends when the process that started it does.
 *
 * Return: 0, -ENOENT if there is no kdbusd, -EPROTO if it ended before it was
 *	ready, or a negative errno of the fork.
 */
int libkdbus_daemon_start(const char *program, struct libkdbus_daemon **ret);

/**
 * libkdbus_daemon_domain() - the directory of its domain
 * @daemon: the daemon
 *
 * Return: valid as long as @daemon.
 */
const char *libkdbus_daemon_domain(const struct libkdbus_daemon *daemon);

/**
 * libkdbus_daemon_bus() - the endpoint node of the bus it made
 * @daemon: the daemon
 *
 * Return: valid as long as @daemon.
 */
const char *libkdbus_daemon_bus(const struct libkdbus_daemon *daemon);

/**
 * libkdbus_daemon_pid() - its process id
 * @daemon: the daemon
 *
 * Return: the pid.
 */
pid_t libkdbus_daemon_pid(const struct libkdbus_daemon *daemon);

/**
 * libkdbus_daemon_stop() - end it and remove its domain
 * @daemon: the daemon, or NULL
 *
 * Return: NULL.
 */
struct libkdbus_daemon *libkdbus_daemon_stop(struct libkdbus_daemon *daemon);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
