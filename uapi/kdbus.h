/* SPDX-License-Identifier: LGPL-2.1-or-later WITH Linux-syscall-note */
/*
 * kdbus: the binary interface of the bus
 *
 * Constants and wire structures, nothing else. The commands travel over ioctl()
 * to the kernel engine and over a socket to the user engine; both read and write
 * exactly these bytes.
 *
 * 1. Integers are in host byte order.
 * 2. Every structure is aligned to 8 bytes and laid out alike for 32-bit and 64-bit
 *    programs. Addresses travel as __u64.
 * 3. Items follow each other at multiples of 8 bytes. The size of an item counts its
 *    header and payload, not the padding up to the next item.
 * 4. Fields called "out" are never read by the bus; they may hold anything on input.
 * 5. Limits are not part of this file: they belong to the implementation, and the
 *    errno of a refusal tells which one was hit.
 *
 * The header needs GNU C or C++ (gcc, clang), any standard from C99 and C++98 on.
 */
#ifndef _UAPI_KDBUS_H_
#define _UAPI_KDBUS_H_

#include <linux/ioctl.h>
#include <linux/types.h>

/**
 * KDBUS_IOCTL_MAGIC - type byte of all ioctl numbers
 */
#define KDBUS_IOCTL_MAGIC 0x95

/**
 * KDBUS_SRC_ID_KERNEL - sender id of messages made by the bus itself
 */
#define KDBUS_SRC_ID_KERNEL (0)

/**
 * KDBUS_DST_ID_NAME - destination id of a message addressed by name only
 */
#define KDBUS_DST_ID_NAME (0)

/**
 * KDBUS_MATCH_ID_ANY - id in a match rule that every id satisfies
 */
#define KDBUS_MATCH_ID_ANY (~0ULL)

/**
 * KDBUS_DST_ID_BROADCAST - destination id of a signal to all that have a match for it
 */
#define KDBUS_DST_ID_BROADCAST (~0ULL)

/**
 * KDBUS_FLAG_NEGOTIATE - ask for the supported flags instead of executing
 *
 * Valid in the flags word of every command and of a message. The command changes
 * nothing, returns 0, and replaces the flags word by the set of flags it knows.
 */
#define KDBUS_FLAG_NEGOTIATE (1ULL << 63)

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
#pragma GCC diagnostic ignored "-Wlong-long"

/*
 * Arrays of unknown length. C has them only as the last member of a structure that
 * has another member; C++ has none at all, but knows arrays of length zero. Compilers
 * that check bounds strictly treat the latter as empty, hence two forms of one layout.
 */
#ifdef __cplusplus
#define _KDBUS_FLEX(_type, _name) _type _name[0]
#else
#define _KDBUS_FLEX(_type, _name)                                                              \
	struct {                                                                               \
		struct {                                                                       \
		} _empty_##_name;                                                              \
		_type _name[];                                                                 \
	}
#endif

#define _KDBUS_ALIGNED __attribute__((__aligned__(8)))

/**
 * struct kdbus_notify_id_change - a connection came or went
 * @id:    id of the connection
 * @flags: in KDBUS_ITEM_ID_ADD and KDBUS_ITEM_ID_REMOVE the HELLO flags of the connection,
 *         in name changes the name flags (enum kdbus_name_flags) of that owner
 *
 * Payload of KDBUS_ITEM_ID_ADD and KDBUS_ITEM_ID_REMOVE, in notifications and, as a
 * pattern, in match rules. Rules ignore @flags.
 */
struct kdbus_notify_id_change {
	__u64 id;
	__u64 flags;
} _KDBUS_ALIGNED;

/**
 * struct kdbus_notify_name_change - a name changed its owner
 * @old_id: owner before the change; all zero if there was none
 * @new_id: owner after the change; all zero if there is none
 * @name:   the well-known name with its terminating NUL; in match rules it may be left
 *          out, which matches any name
 *
 * Payload of KDBUS_ITEM_NAME_ADD, KDBUS_ITEM_NAME_REMOVE and KDBUS_ITEM_NAME_CHANGE.
 */
struct kdbus_notify_name_change {
	struct kdbus_notify_id_change old_id;
	struct kdbus_notify_id_change new_id;
	_KDBUS_FLEX(char, name);
} _KDBUS_ALIGNED;

/**
 * struct kdbus_creds - user and group ids of a task
 * @uid:   real user id
 * @euid:  effective user id
 * @suid:  saved user id
 * @fsuid: user id for file access
 * @gid:   real group id
 * @egid:  effective group id
 * @sgid:  saved group id
 * @fsgid: group id for file access
 *
 * Payload of KDBUS_ITEM_CREDS, rendered into the user namespace of the receiver. At
 * HELLO, 0xffffffff in a field means "not set".
 */
struct kdbus_creds {
	__u64 uid;
	__u64 euid;
	__u64 suid;
	__u64 fsuid;
	__u64 gid;
	__u64 egid;
	__u64 sgid;
	__u64 fsgid;
} _KDBUS_ALIGNED;

/**
 * struct kdbus_pids - process ids of a task
 * @pid:  process (thread group) id
 * @tid:  thread id
 * @ppid: process id of the parent
 *
 * Payload of KDBUS_ITEM_PIDS, rendered into the pid namespace of the receiver; 0 where a
 * process has no id there.
 */
struct kdbus_pids {
	__u64 pid;
	__u64 tid;
	__u64 ppid;
} _KDBUS_ALIGNED;

/**
 * struct kdbus_caps - capabilities of a task
 * @last_cap: highest capability number known to the sender's kernel
 * @caps:     four sets, each of (last_cap + 32) / 32 words with the low word first:
 *            inheritable, permitted, effective, bounding
 *
 * Payload of KDBUS_ITEM_CAPS. Because of the alignment of the structure its sizeof is 8,
 * while the payload is 4 bytes plus the words.
 */
struct kdbus_caps {
	__u32 last_cap;
	_KDBUS_FLEX(__u32, caps);
} _KDBUS_ALIGNED;

/**
 * struct kdbus_audit - audit ids of a task
 * @sessionid: audit session
 * @loginuid:  user id at login, 0xffffffff if it has no mapping at the receiver
 *
 * Payload of KDBUS_ITEM_AUDIT.
 */
struct kdbus_audit {
	__u32 sessionid;
	__u32 loginuid;
} _KDBUS_ALIGNED;

/**
 * struct kdbus_timestamp - when a message was sent
 * @seqnum:       number of the message on its bus
 * @monotonic_ns: CLOCK_MONOTONIC, in nanoseconds
 * @realtime_ns:  CLOCK_REALTIME, in nanoseconds
 *
 * Payload of KDBUS_ITEM_TIMESTAMP.
 */
struct kdbus_timestamp {
	__u64 seqnum;
	__u64 monotonic_ns;
	__u64 realtime_ns;
} _KDBUS_ALIGNED;

/**
 * struct kdbus_vec - a piece of message payload
 * @size:    length in bytes, never 0
 * @address: in KDBUS_ITEM_PAYLOAD_VEC the sender's buffer, or 0 for @size zero bytes
 * @offset:  in KDBUS_ITEM_PAYLOAD_OFF the place of the bytes, counted from the first byte
 *           of the received struct kdbus_msg, or ~0 for @size zero bytes that are not
 *           stored
 */
struct kdbus_vec {
	__u64 size;
	union {
		__u64 address;
		__u64 offset;
	};
} _KDBUS_ALIGNED;

/**
 * struct kdbus_bloom_parameter - the bloom filters of a bus
 * @size:   length of the bit field in bytes, a multiple of 8
 * @n_hash: number of hash functions; a convention among the peers
 *
 * Payload of KDBUS_ITEM_BLOOM_PARAMETER.
 */
struct kdbus_bloom_parameter {
	__u64 size;
	__u64 n_hash;
} _KDBUS_ALIGNED;

/**
 * struct kdbus_bloom_filter - the properties of a signal
 * @generation: which mask of a subscriber this filter is to be tested with
 * @data:       bit field of the length the bus prescribes
 *
 * Payload of KDBUS_ITEM_BLOOM_FILTER.
 */
struct kdbus_bloom_filter {
	__u64 generation;
	_KDBUS_FLEX(__u64, data);
} _KDBUS_ALIGNED;

/**
 * struct kdbus_memfd - message payload in a sealed file
 * @start: first byte of the file that belongs to the message
 * @size:  number of bytes that belong to it, never 0
 * @fd:    file descriptor; -1 at the receiver if it could not be installed
 * @__pad: ignored
 *
 * Payload of KDBUS_ITEM_PAYLOAD_MEMFD.
 */
struct kdbus_memfd {
	__u64 start;
	__u64 size;
	int fd;
	__u32 __pad;
} _KDBUS_ALIGNED;

/**
 * struct kdbus_name - a name somebody owns
 * @flags: enum kdbus_name_flags
 * @name:  the well-known name with its terminating NUL
 *
 * Payload of KDBUS_ITEM_OWNED_NAME (KDBUS_ITEM_NAME is the bare string).
 */
struct kdbus_name {
	__u64 flags;
	_KDBUS_FLEX(char, name);
} _KDBUS_ALIGNED;

/**
 * enum kdbus_policy_access_type - whom an access entry is about
 * @_KDBUS_POLICY_ACCESS_NULL: not valid
 * @KDBUS_POLICY_ACCESS_USER:  a task with this effective user id
 * @KDBUS_POLICY_ACCESS_GROUP: a task with this effective or supplementary group id
 * @KDBUS_POLICY_ACCESS_WORLD: everybody
 */
enum kdbus_policy_access_type {
	_KDBUS_POLICY_ACCESS_NULL = 0,
	KDBUS_POLICY_ACCESS_USER = 1,
	KDBUS_POLICY_ACCESS_GROUP = 2,
	KDBUS_POLICY_ACCESS_WORLD = 3,
};

/**
 * enum kdbus_policy_type - what an access entry grants; each level includes those before it
 * @KDBUS_POLICY_SEE:  know that the name exists
 * @KDBUS_POLICY_TALK: send to its owner
 * @KDBUS_POLICY_OWN:  acquire it
 */
enum kdbus_policy_type {
	KDBUS_POLICY_SEE = 0,
	KDBUS_POLICY_TALK = 1,
	KDBUS_POLICY_OWN = 2,
};

/**
 * struct kdbus_policy_access - one access entry
 * @type:   enum kdbus_policy_access_type
 * @access: enum kdbus_policy_type
 * @id:     user or group id in the caller's user namespace; ignored for WORLD
 *
 * Payload of KDBUS_ITEM_POLICY_ACCESS; it belongs to the KDBUS_ITEM_NAME before it.
 */
struct kdbus_policy_access {
	__u64 type;
	__u64 access;
	__u64 id;
} _KDBUS_ALIGNED;

/**
 * enum kdbus_attach_flags - kinds of metadata
 * @KDBUS_ATTACH_TIMESTAMP:        struct kdbus_timestamp
 * @KDBUS_ATTACH_CREDS:            struct kdbus_creds
 * @KDBUS_ATTACH_PIDS:             struct kdbus_pids
 * @KDBUS_ATTACH_AUXGROUPS:        __u64 for each supplementary group
 * @KDBUS_ATTACH_NAMES:            struct kdbus_name for each owned name
 * @KDBUS_ATTACH_TID_COMM:         name of the thread
 * @KDBUS_ATTACH_PID_COMM:         name of the process
 * @KDBUS_ATTACH_EXE:              path of the executable
 * @KDBUS_ATTACH_CMDLINE:          command line
 * @KDBUS_ATTACH_CGROUP:           path of the control group
 * @KDBUS_ATTACH_CAPS:             struct kdbus_caps
 * @KDBUS_ATTACH_SECLABEL:         context of the security module
 * @KDBUS_ATTACH_AUDIT:            struct kdbus_audit
 * @KDBUS_ATTACH_CONN_DESCRIPTION: description given at HELLO
 * @_KDBUS_ATTACH_ALL:             all bits above
 * @_KDBUS_ATTACH_ANY:             on input, the same as @_KDBUS_ATTACH_ALL
 *
 * Bit n selects the item of type _KDBUS_ITEM_ATTACH_BASE + n.
 */
enum kdbus_attach_flags {
	KDBUS_ATTACH_TIMESTAMP = 0x0001,
	KDBUS_ATTACH_CREDS = 0x0002,
	KDBUS_ATTACH_PIDS = 0x0004,
	KDBUS_ATTACH_AUXGROUPS = 0x0008,
	KDBUS_ATTACH_NAMES = 0x0010,
	KDBUS_ATTACH_TID_COMM = 0x0020,
	KDBUS_ATTACH_PID_COMM = 0x0040,
	KDBUS_ATTACH_EXE = 0x0080,
	KDBUS_ATTACH_CMDLINE = 0x0100,
	KDBUS_ATTACH_CGROUP = 0x0200,
	KDBUS_ATTACH_CAPS = 0x0400,
	KDBUS_ATTACH_SECLABEL = 0x0800,
	KDBUS_ATTACH_AUDIT = 0x1000,
	KDBUS_ATTACH_CONN_DESCRIPTION = 0x2000,
	_KDBUS_ATTACH_ALL = 0x3fff,
	_KDBUS_ATTACH_ANY = ~0ULL,
};

/**
 * enum kdbus_item_type - what an item holds
 * @_KDBUS_ITEM_NULL:            not valid
 * @_KDBUS_ITEM_USER_BASE:       first of the types made by programs
 * @KDBUS_ITEM_NEGOTIATE:        __u64 item types; those the command does not accept are
 *                               overwritten with 0
 * @KDBUS_ITEM_PAYLOAD_VEC:      struct kdbus_vec, payload in the sender's memory
 * @KDBUS_ITEM_PAYLOAD_OFF:      struct kdbus_vec, payload in the receiver's pool
 * @KDBUS_ITEM_PAYLOAD_MEMFD:    struct kdbus_memfd, payload in a sealed file
 * @KDBUS_ITEM_FDS:              int array, descriptors passed along
 * @KDBUS_ITEM_CANCEL_FD:        int, descriptor that ends a synchronous call when readable
 * @KDBUS_ITEM_BLOOM_PARAMETER:  struct kdbus_bloom_parameter
 * @KDBUS_ITEM_BLOOM_FILTER:     struct kdbus_bloom_filter of a signal
 * @KDBUS_ITEM_BLOOM_MASK:       one or more bit fields, one per generation
 * @KDBUS_ITEM_DST_NAME:         string, name a message is addressed to
 * @KDBUS_ITEM_MAKE_NAME:        string, name of a bus or endpoint
 * @KDBUS_ITEM_ATTACH_FLAGS_SEND: __u64, enum kdbus_attach_flags to release
 * @KDBUS_ITEM_ATTACH_FLAGS_RECV: __u64, enum kdbus_attach_flags to receive
 * @KDBUS_ITEM_ID:               __u64, sender id a match asks for
 * @KDBUS_ITEM_NAME:             string, a well-known name
 * @KDBUS_ITEM_DST_ID:           __u64, destination id a match asks for
 * @_KDBUS_ITEM_ATTACH_BASE:     first of the metadata types
 * @KDBUS_ITEM_TIMESTAMP:        struct kdbus_timestamp
 * @KDBUS_ITEM_CREDS:            struct kdbus_creds
 * @KDBUS_ITEM_PIDS:             struct kdbus_pids
 * @KDBUS_ITEM_AUXGROUPS:        __u64 array of group ids
 * @KDBUS_ITEM_OWNED_NAME:       struct kdbus_name
 * @KDBUS_ITEM_TID_COMM:         string
 * @KDBUS_ITEM_PID_COMM:         string
 * @KDBUS_ITEM_EXE:              string
 * @KDBUS_ITEM_CMDLINE:          strings, each ending in NUL
 * @KDBUS_ITEM_CGROUP:           string
 * @KDBUS_ITEM_CAPS:             struct kdbus_caps
 * @KDBUS_ITEM_SECLABEL:         string
 * @KDBUS_ITEM_AUDIT:            struct kdbus_audit
 * @KDBUS_ITEM_CONN_DESCRIPTION: string
 * @_KDBUS_ITEM_POLICY_BASE:     first of the policy types
 * @KDBUS_ITEM_POLICY_ACCESS:    struct kdbus_policy_access
 * @_KDBUS_ITEM_KERNEL_BASE:     first of the types made by the bus
 * @KDBUS_ITEM_NAME_ADD:         struct kdbus_notify_name_change, a name appeared
 * @KDBUS_ITEM_NAME_REMOVE:      struct kdbus_notify_name_change, a name vanished
 * @KDBUS_ITEM_NAME_CHANGE:      struct kdbus_notify_name_change, another owner
 * @KDBUS_ITEM_ID_ADD:           struct kdbus_notify_id_change, a connection appeared
 * @KDBUS_ITEM_ID_REMOVE:        struct kdbus_notify_id_change, a connection vanished
 * @KDBUS_ITEM_REPLY_TIMEOUT:    no payload, a call was not answered in time
 * @KDBUS_ITEM_REPLY_DEAD:       no payload, a call cannot be answered any more
 */
enum kdbus_item_type {
	_KDBUS_ITEM_NULL = 0x0000,

	_KDBUS_ITEM_USER_BASE = 0x0001,
	KDBUS_ITEM_NEGOTIATE = _KDBUS_ITEM_USER_BASE,
	KDBUS_ITEM_PAYLOAD_VEC = 0x0002,
	KDBUS_ITEM_PAYLOAD_OFF = 0x0003,
	KDBUS_ITEM_PAYLOAD_MEMFD = 0x0004,
	KDBUS_ITEM_FDS = 0x0005,
	KDBUS_ITEM_CANCEL_FD = 0x0006,
	KDBUS_ITEM_BLOOM_PARAMETER = 0x0007,
	KDBUS_ITEM_BLOOM_FILTER = 0x0008,
	KDBUS_ITEM_BLOOM_MASK = 0x0009,
	KDBUS_ITEM_DST_NAME = 0x000a,
	KDBUS_ITEM_MAKE_NAME = 0x000b,
	KDBUS_ITEM_ATTACH_FLAGS_SEND = 0x000c,
	KDBUS_ITEM_ATTACH_FLAGS_RECV = 0x000d,
	KDBUS_ITEM_ID = 0x000e,
	KDBUS_ITEM_NAME = 0x000f,
	KDBUS_ITEM_DST_ID = 0x0010,

	_KDBUS_ITEM_ATTACH_BASE = 0x1000,
	KDBUS_ITEM_TIMESTAMP = _KDBUS_ITEM_ATTACH_BASE,
	KDBUS_ITEM_CREDS = 0x1001,
	KDBUS_ITEM_PIDS = 0x1002,
	KDBUS_ITEM_AUXGROUPS = 0x1003,
	KDBUS_ITEM_OWNED_NAME = 0x1004,
	KDBUS_ITEM_TID_COMM = 0x1005,
	KDBUS_ITEM_PID_COMM = 0x1006,
	KDBUS_ITEM_EXE = 0x1007,
	KDBUS_ITEM_CMDLINE = 0x1008,
	KDBUS_ITEM_CGROUP = 0x1009,
	KDBUS_ITEM_CAPS = 0x100a,
	KDBUS_ITEM_SECLABEL = 0x100b,
	KDBUS_ITEM_AUDIT = 0x100c,
	KDBUS_ITEM_CONN_DESCRIPTION = 0x100d,

	_KDBUS_ITEM_POLICY_BASE = 0x2000,
	KDBUS_ITEM_POLICY_ACCESS = _KDBUS_ITEM_POLICY_BASE,

	_KDBUS_ITEM_KERNEL_BASE = 0x8000,
	KDBUS_ITEM_NAME_ADD = _KDBUS_ITEM_KERNEL_BASE,
	KDBUS_ITEM_NAME_REMOVE = 0x8001,
	KDBUS_ITEM_NAME_CHANGE = 0x8002,
	KDBUS_ITEM_ID_ADD = 0x8003,
	KDBUS_ITEM_ID_REMOVE = 0x8004,
	KDBUS_ITEM_REPLY_TIMEOUT = 0x8005,
	KDBUS_ITEM_REPLY_DEAD = 0x8006,
};

/**
 * struct kdbus_item - one element of an item list
 * @size:            bytes of header and payload, without padding; at least 16
 * @type:            enum kdbus_item_type
 * @data:            payload as bytes
 * @data32:          payload as 32-bit words
 * @data64:          payload as 64-bit words
 * @str:             payload as a string with its terminating NUL
 * @id:              payload as one 64-bit word
 * @vec:             PAYLOAD_VEC, PAYLOAD_OFF
 * @creds:           CREDS
 * @pids:            PIDS
 * @audit:           AUDIT
 * @caps:            CAPS
 * @timestamp:       TIMESTAMP
 * @name:            OWNED_NAME
 * @bloom_parameter: BLOOM_PARAMETER
 * @bloom_filter:    BLOOM_FILTER
 * @memfd:           PAYLOAD_MEMFD
 * @fds:             FDS, CANCEL_FD
 * @name_change:     NAME_ADD, NAME_REMOVE, NAME_CHANGE
 * @id_change:       ID_ADD, ID_REMOVE
 * @policy_access:   POLICY_ACCESS
 *
 * The sizeof of this structure is the largest payload it names and says nothing about
 * the size of an item: use the offset of @data.
 */
struct kdbus_item {
	__u64 size;
	__u64 type;
	union {
		_KDBUS_FLEX(__u8, data);
		_KDBUS_FLEX(__u32, data32);
		_KDBUS_FLEX(__u64, data64);
		_KDBUS_FLEX(char, str);
		_KDBUS_FLEX(int, fds);

		__u64 id;
		struct kdbus_vec vec;
		struct kdbus_creds creds;
		struct kdbus_pids pids;
		struct kdbus_audit audit;
		struct kdbus_caps caps;
		struct kdbus_timestamp timestamp;
		struct kdbus_name name;
		struct kdbus_bloom_parameter bloom_parameter;
		struct kdbus_bloom_filter bloom_filter;
		struct kdbus_memfd memfd;
		struct kdbus_notify_name_change name_change;
		struct kdbus_notify_id_change id_change;
		struct kdbus_policy_access policy_access;
	};
} _KDBUS_ALIGNED;

/**
 * enum kdbus_msg_flags - flags of a message
 * @KDBUS_MSG_EXPECT_REPLY:  a call; opens a reply slot until struct kdbus_msg.timeout_ns
 * @KDBUS_MSG_NO_AUTO_START: fail rather than wake an activator
 * @KDBUS_MSG_SIGNAL:        delivered only to receivers with a match; needs a bloom filter
 */
enum kdbus_msg_flags {
	KDBUS_MSG_EXPECT_REPLY = 0x1,
	KDBUS_MSG_NO_AUTO_START = 0x2,
	KDBUS_MSG_SIGNAL = 0x4,
};

/**
 * enum kdbus_payload_type - who can read the payload
 * @KDBUS_PAYLOAD_KERNEL: a notification of the bus; programs cannot send it
 * @KDBUS_PAYLOAD_DBUS:   a D-Bus message
 *
 * Any other value except 0 is passed through.
 */
enum kdbus_payload_type {
	KDBUS_PAYLOAD_KERNEL = 0,
	KDBUS_PAYLOAD_DBUS = 0x4442757344427573ULL, /* 'DBusDBus' */
};

/**
 * struct kdbus_msg - a message
 * @size:         bytes of this structure and its items; at the receiver metadata items are
 *                included, payload bytes are not
 * @flags:        enum kdbus_msg_flags
 * @priority:     any number; lower is more urgent
 * @dst_id:       id of the receiver, KDBUS_DST_ID_NAME or KDBUS_DST_ID_BROADCAST
 * @src_id:       id of the sender; on sending 0 or the own id
 * @payload_type: enum kdbus_payload_type, never 0 on sending
 * @cookie:       chosen by the sender; a reply names it
 * @timeout_ns:   if a reply is expected: deadline on CLOCK_MONOTONIC, in nanoseconds
 * @cookie_reply: otherwise: cookie of the call this message answers, or 0
 * @items:        payload, addressing, and at the receiver metadata
 */
struct kdbus_msg {
	__u64 size;
	__u64 flags;
	__s64 priority;
	__u64 dst_id;
	__u64 src_id;
	__u64 payload_type;
	__u64 cookie;
	union {
		__u64 timeout_ns;
		__u64 cookie_reply;
	};
	_KDBUS_FLEX(struct kdbus_item, items);
} _KDBUS_ALIGNED;

/**
 * struct kdbus_msg_info - where a received message lies
 * @offset:       offset of the struct kdbus_msg in the pool
 * @msg_size:     bytes of the whole slice, payload included, a multiple of 8; not
 *                struct kdbus_msg.size
 * @return_flags: KDBUS_RECV_RETURN_INCOMPLETE_FDS or 0
 */
struct kdbus_msg_info {
	__u64 offset;
	__u64 msg_size;
	__u64 return_flags;
} _KDBUS_ALIGNED;

/**
 * struct kdbus_info - one record about a connection or a bus
 * @size:  bytes of the record, items and padding included, a multiple of 8
 * @id:    id of the connection or bus
 * @flags: HELLO flags of the connection, or flags of the bus
 * @items: metadata, or the name the record is about
 *
 * Result of KDBUS_CMD_CONN_INFO, KDBUS_CMD_BUS_CREATOR_INFO and, as a packed array,
 * KDBUS_CMD_LIST.
 */
struct kdbus_info {
	__u64 size;
	__u64 id;
	__u64 flags;
	_KDBUS_FLEX(struct kdbus_item, items);
} _KDBUS_ALIGNED;

/**
 * enum kdbus_make_flags - flags of KDBUS_CMD_BUS_MAKE and KDBUS_CMD_ENDPOINT_MAKE
 * @KDBUS_MAKE_ACCESS_GROUP: the group of the creator may open the nodes
 * @KDBUS_MAKE_ACCESS_WORLD: everybody may open them
 */
enum kdbus_make_flags {
	KDBUS_MAKE_ACCESS_GROUP = 0x1,
	KDBUS_MAKE_ACCESS_WORLD = 0x2,
};

/**
 * enum kdbus_hello_flags - flags of KDBUS_CMD_HELLO
 * @KDBUS_HELLO_ACCEPT_FD:     messages with descriptors may be delivered here
 * @KDBUS_HELLO_ACTIVATOR:     hold a name until a real owner appears
 * @KDBUS_HELLO_POLICY_HOLDER: keep policy records alive
 * @KDBUS_HELLO_MONITOR:       receive a copy of everything
 *
 * At most one of the last three. The flags stay with the connection.
 */
enum kdbus_hello_flags {
	KDBUS_HELLO_ACCEPT_FD = 0x1,
	KDBUS_HELLO_ACTIVATOR = 0x2,
	KDBUS_HELLO_POLICY_HOLDER = 0x4,
	KDBUS_HELLO_MONITOR = 0x8,
};

/**
 * enum kdbus_send_flags - flags of KDBUS_CMD_SEND
 * @KDBUS_SEND_SYNC_REPLY: wait for the reply
 */
enum kdbus_send_flags {
	KDBUS_SEND_SYNC_REPLY = 0x1,
};

/**
 * enum kdbus_recv_flags - flags of KDBUS_CMD_RECV
 * @KDBUS_RECV_PEEK:         report the message but leave it queued
 * @KDBUS_RECV_DROP:         discard the message unread
 * @KDBUS_RECV_USE_PRIORITY: take the most urgent message, if it is urgent enough
 */
enum kdbus_recv_flags {
	KDBUS_RECV_PEEK = 0x1,
	KDBUS_RECV_DROP = 0x2,
	KDBUS_RECV_USE_PRIORITY = 0x4,
};

/**
 * enum kdbus_recv_return_flags - what a receiver is told besides the message
 * @KDBUS_RECV_RETURN_INCOMPLETE_FDS: some descriptor could not be installed and reads -1;
 *                                    in struct kdbus_msg_info.return_flags
 * @KDBUS_RECV_RETURN_DROPPED_MSGS:   struct kdbus_cmd_recv.dropped_msgs is not zero; in
 *                                    struct kdbus_cmd_recv.return_flags
 */
enum kdbus_recv_return_flags {
	KDBUS_RECV_RETURN_INCOMPLETE_FDS = 0x1,
	KDBUS_RECV_RETURN_DROPPED_MSGS = 0x2,
};

/**
 * enum kdbus_list_flags - flags of KDBUS_CMD_LIST: which records to return
 * @KDBUS_LIST_UNIQUE:     connections
 * @KDBUS_LIST_NAMES:      names with their owners
 * @KDBUS_LIST_ACTIVATORS: names with their activators
 * @KDBUS_LIST_QUEUED:     names with those who wait for them
 */
enum kdbus_list_flags {
	KDBUS_LIST_UNIQUE = 0x1,
	KDBUS_LIST_NAMES = 0x2,
	KDBUS_LIST_ACTIVATORS = 0x4,
	KDBUS_LIST_QUEUED = 0x8,
};

/**
 * enum kdbus_name_flags - how a connection holds a name
 * @KDBUS_NAME_REPLACE_EXISTING:  request: take the name from an owner who allows it
 * @KDBUS_NAME_ALLOW_REPLACEMENT: request, reported: others may take the name
 * @KDBUS_NAME_QUEUE:             request, reported: wait for the name
 * @KDBUS_NAME_IN_QUEUE:          reported: waits for the name
 * @KDBUS_NAME_ACTIVATOR:         reported: is the activator of the name
 * @KDBUS_NAME_PRIMARY:           reported: owns the name
 * @KDBUS_NAME_ACQUIRED:          returned by KDBUS_CMD_NAME_ACQUIRE: this very call took
 *                                the name or a place in its queue
 */
enum kdbus_name_flags {
	KDBUS_NAME_REPLACE_EXISTING = 0x01,
	KDBUS_NAME_ALLOW_REPLACEMENT = 0x02,
	KDBUS_NAME_QUEUE = 0x04,
	KDBUS_NAME_IN_QUEUE = 0x08,
	KDBUS_NAME_ACTIVATOR = 0x10,
	KDBUS_NAME_PRIMARY = 0x20,
	KDBUS_NAME_ACQUIRED = 0x40,
};

/**
 * enum kdbus_match_flags - flags of KDBUS_CMD_MATCH_ADD
 * @KDBUS_MATCH_REPLACE: first remove all entries with the same cookie
 */
enum kdbus_match_flags {
	KDBUS_MATCH_REPLACE = 0x1,
};

/**
 * struct kdbus_cmd - argument of the commands that need no more than items
 * @size:         bytes of this structure and its items
 * @flags:        flags of the command
 * @return_flags: out; what the command has to report
 * @items:        items of the command
 */
struct kdbus_cmd {
	__u64 size;
	__u64 flags;
	__u64 return_flags;
	_KDBUS_FLEX(struct kdbus_item, items);
} _KDBUS_ALIGNED;

/**
 * struct kdbus_cmd_hello - argument of KDBUS_CMD_HELLO
 * @size:              bytes of this structure and its items
 * @flags:             enum kdbus_hello_flags
 * @return_flags:      out; 0
 * @attach_flags_send: metadata this connection releases (enum kdbus_attach_flags)
 * @attach_flags_recv: metadata it wants with each message (enum kdbus_attach_flags)
 * @bus_flags:         out; flags the bus was made with
 * @id:                out; id of the connection
 * @pool_size:         bytes of the pool, a multiple of the page size
 * @offset:            out; offset of a list of items in the pool, to be freed
 * @items_size:        out; bytes of that list
 * @id128:             out; UUID of the bus
 * @items:             items of the command
 */
struct kdbus_cmd_hello {
	__u64 size;
	__u64 flags;
	__u64 return_flags;
	__u64 attach_flags_send;
	__u64 attach_flags_recv;
	__u64 bus_flags;
	__u64 id;
	__u64 pool_size;
	__u64 offset;
	__u64 items_size;
	__u8 id128[16];
	_KDBUS_FLEX(struct kdbus_item, items);
} _KDBUS_ALIGNED;

/**
 * struct kdbus_cmd_info - argument of KDBUS_CMD_CONN_INFO and KDBUS_CMD_BUS_CREATOR_INFO
 * @size:         bytes of this structure and its items
 * @flags:        none defined
 * @return_flags: out; 0
 * @id:           id of the connection asked about, or 0 with a name item; not used for
 *                the creator of the bus
 * @attach_flags: metadata wanted (enum kdbus_attach_flags)
 * @offset:       out; offset of a struct kdbus_info in the pool, to be freed
 * @info_size:    out; its size in bytes
 * @items:        items of the command
 */
struct kdbus_cmd_info {
	__u64 size;
	__u64 flags;
	__u64 return_flags;
	__u64 id;
	__u64 attach_flags;
	__u64 offset;
	__u64 info_size;
	_KDBUS_FLEX(struct kdbus_item, items);
} _KDBUS_ALIGNED;

/**
 * struct kdbus_cmd_list - argument of KDBUS_CMD_LIST
 * @size:         bytes of this structure and its items
 * @flags:        enum kdbus_list_flags
 * @return_flags: out; 0
 * @offset:       out; offset of packed struct kdbus_info records in the pool, to be freed
 * @list_size:    out; bytes of all records
 * @items:        items of the command
 */
struct kdbus_cmd_list {
	__u64 size;
	__u64 flags;
	__u64 return_flags;
	__u64 offset;
	__u64 list_size;
	_KDBUS_FLEX(struct kdbus_item, items);
} _KDBUS_ALIGNED;

/**
 * struct kdbus_cmd_free - argument of KDBUS_CMD_FREE
 * @size:         bytes of this structure and its items
 * @flags:        none defined
 * @return_flags: out; 0
 * @offset:       pool offset some command returned
 * @items:        items of the command
 */
struct kdbus_cmd_free {
	__u64 size;
	__u64 flags;
	__u64 return_flags;
	__u64 offset;
	_KDBUS_FLEX(struct kdbus_item, items);
} _KDBUS_ALIGNED;

/**
 * struct kdbus_cmd_send - argument of KDBUS_CMD_SEND
 * @size:         bytes of this structure and its items
 * @flags:        enum kdbus_send_flags
 * @return_flags: out; 0
 * @msg_address:  address of the struct kdbus_msg, a multiple of 8
 * @reply:        out; the reply of a synchronous call
 * @items:        items of the command
 */
struct kdbus_cmd_send {
	__u64 size;
	__u64 flags;
	__u64 return_flags;
	__u64 msg_address;
	struct kdbus_msg_info reply;
	_KDBUS_FLEX(struct kdbus_item, items);
} _KDBUS_ALIGNED;

/**
 * struct kdbus_cmd_recv - argument of KDBUS_CMD_RECV
 * @size:         bytes of this structure and its items
 * @flags:        enum kdbus_recv_flags
 * @return_flags: out; KDBUS_RECV_RETURN_DROPPED_MSGS or 0
 * @priority:     with KDBUS_RECV_USE_PRIORITY the least urgent priority to return
 * @dropped_msgs: out; number of messages lost since it was last reported
 * @msg:          out; the message, to be freed
 * @items:        items of the command
 */
struct kdbus_cmd_recv {
	__u64 size;
	__u64 flags;
	__u64 return_flags;
	__s64 priority;
	__u64 dropped_msgs;
	struct kdbus_msg_info msg;
	_KDBUS_FLEX(struct kdbus_item, items);
} _KDBUS_ALIGNED;

/**
 * struct kdbus_cmd_match - argument of KDBUS_CMD_MATCH_ADD and KDBUS_CMD_MATCH_REMOVE
 * @size:         bytes of this structure and its items
 * @flags:        enum kdbus_match_flags
 * @return_flags: out; 0
 * @cookie:       name of the entry, chosen by the caller
 * @items:        rules of the entry; all of them must hold
 */
struct kdbus_cmd_match {
	__u64 size;
	__u64 flags;
	__u64 return_flags;
	__u64 cookie;
	_KDBUS_FLEX(struct kdbus_item, items);
} _KDBUS_ALIGNED;

/**
 * enum kdbus_ioctl_type - the commands
 * @KDBUS_CMD_BUS_MAKE:         make a bus that lives as long as the descriptor
 * @KDBUS_CMD_ENDPOINT_MAKE:    make a custom endpoint that lives as long as the descriptor
 * @KDBUS_CMD_ENDPOINT_UPDATE:  replace the policy of a custom endpoint
 * @KDBUS_CMD_HELLO:            connect
 * @KDBUS_CMD_UPDATE:           change attach flags or policy of a connection
 * @KDBUS_CMD_BYEBYE:           disconnect if no message is queued
 * @KDBUS_CMD_FREE:             give back a piece of the pool
 * @KDBUS_CMD_CONN_INFO:        ask about a connection
 * @KDBUS_CMD_BUS_CREATOR_INFO: ask about the creator of the bus
 * @KDBUS_CMD_LIST:             list connections and names
 * @KDBUS_CMD_SEND:             send a message, on demand wait for its reply
 * @KDBUS_CMD_RECV:             take a message
 * @KDBUS_CMD_NAME_ACQUIRE:     ask for a name
 * @KDBUS_CMD_NAME_RELEASE:     give up a name
 * @KDBUS_CMD_MATCH_ADD:        subscribe to signals and notifications
 * @KDBUS_CMD_MATCH_REMOVE:     cancel subscriptions
 *
 * Take the numbers as opaque: their direction bits do not say who writes what.
 */
enum kdbus_ioctl_type {
	/* bus owner: 00-0f */
	KDBUS_CMD_BUS_MAKE = _IOW(KDBUS_IOCTL_MAGIC, 0x00, struct kdbus_cmd),

	/* endpoint owner: 10-1f */
	KDBUS_CMD_ENDPOINT_MAKE = _IOW(KDBUS_IOCTL_MAGIC, 0x10, struct kdbus_cmd),
	KDBUS_CMD_ENDPOINT_UPDATE = _IOW(KDBUS_IOCTL_MAGIC, 0x11, struct kdbus_cmd),

	/* connection: 80-ff */
	KDBUS_CMD_HELLO = _IOWR(KDBUS_IOCTL_MAGIC, 0x80, struct kdbus_cmd_hello),
	KDBUS_CMD_UPDATE = _IOW(KDBUS_IOCTL_MAGIC, 0x81, struct kdbus_cmd),
	KDBUS_CMD_BYEBYE = _IOW(KDBUS_IOCTL_MAGIC, 0x82, struct kdbus_cmd),
	KDBUS_CMD_FREE = _IOW(KDBUS_IOCTL_MAGIC, 0x83, struct kdbus_cmd_free),
	KDBUS_CMD_CONN_INFO = _IOR(KDBUS_IOCTL_MAGIC, 0x84, struct kdbus_cmd_info),
	KDBUS_CMD_BUS_CREATOR_INFO = _IOR(KDBUS_IOCTL_MAGIC, 0x85, struct kdbus_cmd_info),
	KDBUS_CMD_LIST = _IOR(KDBUS_IOCTL_MAGIC, 0x86, struct kdbus_cmd_list),
	KDBUS_CMD_SEND = _IOW(KDBUS_IOCTL_MAGIC, 0x90, struct kdbus_cmd_send),
	KDBUS_CMD_RECV = _IOR(KDBUS_IOCTL_MAGIC, 0x91, struct kdbus_cmd_recv),
	KDBUS_CMD_NAME_ACQUIRE = _IOW(KDBUS_IOCTL_MAGIC, 0xa0, struct kdbus_cmd),
	KDBUS_CMD_NAME_RELEASE = _IOW(KDBUS_IOCTL_MAGIC, 0xa1, struct kdbus_cmd),
	KDBUS_CMD_MATCH_ADD = _IOW(KDBUS_IOCTL_MAGIC, 0xb0, struct kdbus_cmd_match),
	KDBUS_CMD_MATCH_REMOVE = _IOW(KDBUS_IOCTL_MAGIC, 0xb1, struct kdbus_cmd_match),
};

#undef _KDBUS_FLEX
#undef _KDBUS_ALIGNED

#pragma GCC diagnostic pop

#endif /* _UAPI_KDBUS_H_ */
