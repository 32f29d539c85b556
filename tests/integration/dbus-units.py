#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""kdbusd as the bus of a system or a session, started by the socket of dbus.socket.

usage: dbus-units.py UNITS CLIENT

UNITS is the folder with the units of a scope, CLIENT a program that connects to its own bus with
libkdbus. KDBUSD names the daemon.
"""
import os
import signal
import socket
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, '..', 'repo'))
from activation import start, values  # noqa: E402
from tap import Plan  # noqa: E402

# Only ends a hang.
PATIENCE = 300
DRIVER = 'org.freedesktop.DBus'
BUSCTL = ['busctl', 'call', DRIVER, '/org/freedesktop/DBus', DRIVER]


def check_reading(plan, units):
    """What makes it the service of dbus.socket."""
    for key, value in (('Type', 'notify'), ('Sockets', 'dbus.socket'), ('Alias', 'dbus.service'),
                       ('Requires', 'dbus.socket')):
        found = values(f'{units}/kdbusd-dbus.service.in', key)
        plan.check(f'{key}={value}', [] if found == [value] else [f'it is {found}'])


class Service:
    """The service, started as systemd would."""

    def __init__(self, units, folder):
        self.unit = f'{units}/kdbusd-dbus.service.in'
        self.folder = folder
        self.path = f'{folder}/dbus'
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.bind(self.path)
        os.chmod(self.path, 0o666)
        self.socket.listen(16)
        self.notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.notify.bind(f'{folder}/notify')
        os.chmod(f'{folder}/notify', 0o666)
        self.notify.settimeout(PATIENCE)
        # A client that comes before the service waits in the queue of the socket.
        self.early = subprocess.Popen([*self.busctl(), 'GetId'], stdout=subprocess.PIPE, text=True)
        self.pid = start(self.command('ExecStart'), [self.socket], f'{folder}/notify')

    def busctl(self):
        return [BUSCTL[0], f'--address=unix:path={self.path}', *BUSCTL[1:]]

    def expand(self, text):
        """What systemd makes of the specifiers; the domain is in our folder."""
        return text.replace('%t/', f'{self.folder}/').replace('/run/kdbus', f'{self.folder}/kdbus')

    def command(self, key):
        words = self.expand(values(self.unit, key)[0]).split()
        return [os.environ['KDBUSD'], *words[1:]] if key == 'ExecStart' else words

    def reload(self):
        """ExecReload, led to the bus of the test."""
        scope = '--system' if '--system' in self.command('ExecReload') else '--user'
        words = [f'--address=unix:path={self.path}' if word == scope else word
                 for word in self.command('ExecReload')]
        return subprocess.run(words, check=False, capture_output=True, text=True)

    def native_address(self):
        buses = [name for name in os.listdir(f'{self.folder}/kdbus') if name != 'control']
        return f'kdbus:path={self.folder}/kdbus/{buses[0]}/bus'


def failures(run):
    return [f'status {run.returncode}: {run.stdout}{run.stderr}'] if run.returncode else []


def said(service, *expected):
    """What the service manager was told, one datagram each; their first lines."""
    texts = [service.notify.recv(128).split(b'\n')[0] for _ in expected]
    return [] if texts == list(expected) else [f'it said {texts}']


def check_service(plan, service, client):
    plan.check('it is ready', said(service, b'READY=1'))
    text = service.early.communicate(timeout=PATIENCE)[0]
    plan.check('who came before it is served', [] if text.startswith('s "') else [text])
    run = subprocess.run([*service.busctl(), 'ListNames'], check=False, capture_output=True,
                         text=True)
    plan.check('a D-Bus program calls', failures(run))
    plan.check('its configuration can be reloaded',
               failures(service.reload()) + said(service, b'RELOADING=1', b'READY=1'))
    env = {k: v for k, v in os.environ.items() if k != 'KDBUS_DOMAIN'}
    run = subprocess.run([client], env=dict(env, DBUS_SESSION_BUS_ADDRESS=service.native_address()),
                         check=False, capture_output=True, text=True)
    plan.check('a program of libkdbus connects', failures(run))
    os.kill(service.pid, signal.SIGTERM)
    ended = os.waitpid(service.pid, 0)[1]
    plan.check('it ends well', said(service, b'STOPPING=1') + ([str(ended)] if ended else []))
    gone = [] if os.path.exists(service.path) else ['the socket is gone']
    left = [] if not os.path.exists(f'{service.folder}/kdbus') else ['the domain is left']
    plan.check('it leaves the socket alone, and nothing of its own', gone + left)


def main():
    units, client = sys.argv[1:]
    if os.path.basename(units) == 'system' and os.geteuid() != 0:
        print('1..0 # SKIP only root can become the user of the system bus')
        return
    plan = Plan()
    check_reading(plan, units)
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        check_service(plan, Service(units, folder), client)
    plan.finish()


if __name__ == '__main__':
    main()
