# SPDX-License-Identifier: LGPL-2.1-or-later
"""A client of a bus that speaks bytes: any user, any message, and what comes in."""
import array
import os
import socket
import struct

CALL, RETURN, ERROR, SIGNAL = 1, 2, 3, 4
NO_REPLY = 1
DRIVER = 'org.freedesktop.DBus'
DRIVER_PATH = '/org/freedesktop/DBus'
PATH, INTERFACE, MEMBER, ERROR_NAME, REPLY_SERIAL, DESTINATION, SENDER, SIGNATURE, FDS = range(1, 10)
TEXT = {PATH: 'o', INTERFACE: 's', MEMBER: 's', ERROR_NAME: 's', DESTINATION: 's', SENDER: 's',
        SIGNATURE: 'g'}

# Only ends a hang.
PATIENCE = 300


def pad(data, to):
    return data + bytes(-len(data) % to)


def text(value):
    data = value.encode()
    return struct.pack('<I', len(data)) + data + b'\0'


def field(code, value):
    if code in (REPLY_SERIAL, FDS):
        return struct.pack('<BBsxI', code, 1, b'u', value)
    kind = TEXT[code]
    data = value.encode()
    if kind == 'g':
        return struct.pack('<BBsxB', code, 1, b'g', len(data)) + data + b'\0'
    return struct.pack('<BBsx', code, 1, kind.encode()) + text(value)


def message(kind, serial, fields, body=b'', flags=0):
    array_of = b''
    for code, value in fields.items():
        if value is not None:
            array_of = pad(array_of, 8) + field(code, value)
    head = struct.pack('<cBBBIII', b'l', kind, flags, 1, len(body), serial, len(array_of))
    return pad(head + array_of, 8) + body


class Message:
    """What came in, with the fields that matter to tests."""

    def __init__(self, data):
        self.kind, self.flags = data[1], data[2]
        self.serial = struct.unpack_from('<I', data, 8)[0]
        self.fields = {}
        size = struct.unpack_from('<I', data, 12)[0]
        at, end = 16, 16 + size
        while at < end:
            at += -at % 8
            code, kind = data[at], chr(data[at + 2])
            at += 4
            if kind == 'u':
                self.fields[code] = struct.unpack_from('<I', data, at)[0]
                at += 4
            elif kind == 'g':
                self.fields[code] = data[at + 1:at + 1 + data[at]].decode()
                at += data[at] + 2
            else:
                size = struct.unpack_from('<I', data, at)[0]
                self.fields[code] = data[at + 4:at + 4 + size].decode()
                at += size + 5
        self.body = data[end + -end % 8:]

    def string(self):
        """Its first argument, if that is a string."""
        if self.fields.get(SIGNATURE, '')[:1] != 's':
            return ''
        size = struct.unpack_from('<I', self.body)[0]
        return self.body[4:4 + size].decode()


class As:
    """Within it this process is another user, in the eyes of whom it connects to."""

    def __init__(self, uid, gids=()):
        self.uid, self.gids = uid, list(gids)

    def __enter__(self):
        self.before = os.geteuid(), os.getegid(), os.getgroups()
        if os.geteuid() == 0:
            os.setgroups(self.gids[1:])
            os.setegid(self.gids[0] if self.gids else self.uid)
            os.seteuid(self.uid)

    def __exit__(self, *exception):
        uid, gid, groups = self.before
        if uid == 0:
            os.seteuid(uid)
            os.setegid(gid)
            os.setgroups(groups)


def open_to_all(folder):
    """Let other users reach a folder in the test's own directory."""
    os.chmod(folder, 0o755)
    above = os.environ.get('TMPDIR')
    if above and os.geteuid() == 0 and os.path.samefile(above, os.path.dirname(folder)):
        os.chmod(above, 0o755)


class Refused(Exception):
    """The bus does not let it in."""


class Peer:
    """A connection; after hello() it has a name."""

    def __init__(self, path, uid=None, gids=()):
        uid = os.geteuid() if uid is None else uid
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.settimeout(PATIENCE)
        with As(uid, gids):
            self.socket.connect(path)
            self.socket.send(b'\0')
        self.data = b''
        self.serial = 0
        self.name = None
        self.inbox = []
        self.lines(b'AUTH EXTERNAL ' + str(uid).encode().hex().encode() + b'\r\n', b'OK ')
        self.lines(b'NEGOTIATE_UNIX_FD\r\n', b'AGREE_UNIX_FD')
        self.socket.send(b'BEGIN\r\n')

    def lines(self, command, expected):
        self.socket.send(command)
        line = b''
        while not line.endswith(b'\r\n'):
            byte = self.socket.recv(1)
            if not byte:
                raise Refused('disconnected')
            line += byte
        if not line.startswith(expected):
            raise Refused(line.decode())

    def hello(self):
        reply = self.call(DRIVER, DRIVER_PATH, DRIVER, 'Hello')
        self.name = reply.string()
        return self

    def send(self, kind, body=b'', signature=None, flags=0, fds=(), **fields):
        """Send a message; @fields by their names. Returns its serial."""
        self.serial += 1
        codes = {globals()[name.upper()]: value for name, value in fields.items()}
        codes[SIGNATURE] = signature
        codes[FDS] = len(fds) or None
        data = message(kind, self.serial, codes, body, flags)
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', fds))] if fds else []
        try:
            self.socket.sendmsg([data], rights)
        except (BrokenPipeError, ConnectionResetError):
            raise Refused('disconnected') from None
        return self.serial

    def receive(self):
        while True:
            if len(self.data) >= 16:
                body, _, fields = struct.unpack_from('<III', self.data, 4)
                size = 16 + fields + -fields % 8 + body
                if len(self.data) >= size:
                    data, self.data = self.data[:size], self.data[size:]
                    return Message(data)
            try:
                data, fds, _, _ = socket.recv_fds(self.socket, 65536, 64)
            except ConnectionResetError:
                data, fds = b'', []
            for fd in fds:
                os.close(fd)
            if not data:
                raise Refused('disconnected')
            self.data += data

    def wait(self, serial):
        """The reply to a call; what comes before it goes to the inbox."""
        while True:
            got = self.receive()
            if got.fields.get(REPLY_SERIAL) == serial and got.fields.get(SENDER) == DRIVER:
                return got
            self.inbox.append(got)

    def call(self, destination, path, interface, member, signature=None, body=b''):
        """Call the driver."""
        return self.wait(self.send(CALL, body, signature, destination=destination, path=path,
                                   interface=interface, member=member))

    def driver(self, member, signature=None, body=b''):
        return self.call(DRIVER, DRIVER_PATH, DRIVER, member, signature, body)

    def sync(self):
        """Everything that happened on the bus so far; empties the inbox."""
        self.call(DRIVER, DRIVER_PATH, 'org.freedesktop.DBus.Peer', 'Ping')
        taken, self.inbox = self.inbox, []
        return taken

    def close(self):
        self.socket.close()
