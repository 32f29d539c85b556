#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Start kdbusd as its systemd units do: sockets first, then the service, which says it is ready.

usage: activation.py UNITS CLIENT

UNITS is the folder with the units of a scope, CLIENT a program that connects to its own bus.
KDBUSD names the daemon.
"""
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile

FIRST = 3


def values(path, key):
    with open(path, encoding='utf-8') as unit:
        return re.findall(rf'^{key}=(.*)$', unit.read(), re.MULTILINE)


def expand(text, folder):
    """What systemd makes of the specifiers; the system's domain is in our folder, too."""
    text = text.replace('%t/', f'{folder}/').replace('%U', str(os.geteuid()))
    return text.replace('/run/kdbus', f'{folder}/kdbus').replace('/0-', f'/{os.geteuid()}-')


def listen(path):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    sock.bind(path)
    sock.listen(16)
    return sock


def exec_service(argv, sockets, notify):
    """In the child: descriptors from FIRST on, and the variables that explain them."""
    high = [os.dup(sock.fileno()) for sock in sockets]
    for number, fd in enumerate(high):
        os.dup2(fd, FIRST + number)
    env = dict(
        os.environ, LISTEN_PID=str(os.getpid()), LISTEN_FDS=str(len(high)), NOTIFY_SOCKET=notify,
    )
    os.execve(argv[0], argv, env)


def start(argv, sockets, notify):
    pid = os.fork()
    if pid == 0:
        try:
            exec_service(argv, sockets, notify)
        finally:
            os._exit(127)
    return pid


def main():
    units, client = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        paths = [
            expand(path, folder)
            for path in values(f'{units}/kdbusd.socket', 'ListenSequentialPacket')
        ]
        sockets = [listen(path) for path in paths]
        notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        notify.bind(f'{folder}/notify')
        command = values(f'{units}/kdbusd.service.in', 'ExecStart')[0]
        argv = [os.environ['KDBUSD'], *expand(command, folder).split()[1:]]
        # A client that comes before the service waits in the queue of the socket.
        env = {k: v for k, v in os.environ.items() if k != 'KDBUS_DOMAIN'}
        early = subprocess.Popen(
            [client], env=dict(env, DBUS_SESSION_BUS_ADDRESS=f'kdbus:path={paths[1]}'),
        )
        pid = start(argv, sockets, f'{folder}/notify')
        said = notify.recv(64)
        status = early.wait()
        os.kill(pid, signal.SIGTERM)
        ended = os.waitpid(pid, 0)[1]
        stopping = notify.recv(64)
        if [said, stopping] != [b'READY=1', b'STOPPING=1'] or status or ended:
            sys.exit(f'it said {said}, {stopping}; status {ended}, that of the client {status}')
        gone = [path for path in paths if not os.path.exists(path)]
        if gone:
            sys.exit(f'it removed sockets that are not its own: {gone}')


if __name__ == '__main__':
    main()
