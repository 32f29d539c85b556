#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Programs that stand between others or look on: a sandbox's proxy, captures, a media player.

usage: programs.py DAEMON ECHO

The same is expected of every daemon that takes dbus-daemon's options. ECHO is a service.
"""
import os
import re
import signal
import struct
import subprocess
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, '..', 'repo'))
from bus import Bus, PATIENCE  # noqa: E402
from clients import DRIVER, ECHO, Tests  # noqa: E402
import rawbus  # noqa: E402

NAME = 'org.example.Programs'
HIDDEN = 'org.example.Hidden'
MEETING = 'org.example.Meeting'
LIBRARY = os.path.join(HERE, 'libraries', 'gio.py')
# Of libraries.py; "taken" asks for the name, which the proxy refuses.
CHECKS = ('nested', 'error', 'unknown', 'fd', 'property', 'changed', 'signal', 'introspection',
          'gone')
PLAYER = 'org.mpris.MediaPlayer2'
# LINKTYPE_DBUS of libpcap
DBUS_PACKETS = 231


def pcap(data):
    """The messages of a capture in the format of libpcap, those that are there in full."""
    while len(data) - 24 >= 16:
        size, full = struct.unpack_from('<II', data, 24 + 8)
        if len(data) - 24 - 16 < size:
            return
        yield data[24 + 16:24 + 16 + size], full
        data = data[:24] + data[24 + 16 + size:]


def pcapng(data):
    """The same in its successor, which is blocks of a type and a length."""
    while len(data) >= 12:
        kind, size = struct.unpack_from('<II', data)
        if len(data) < size:
            return
        if kind == 1 and struct.unpack_from('<H', data, 8)[0] != DBUS_PACKETS:
            raise SystemExit(f'no capture of D-Bus: {data[:size]}')
        if kind == 6:
            taken, full = struct.unpack_from('<II', data, 20)
            yield data[28:28 + taken], full
        data = data[size:]


def packets(data):
    """The messages of a capture, and how long each was."""
    if len(data) < 24:
        return ()
    magic, link = struct.unpack_from('<I16xI', data)
    if magic == 0x0a0d0d0a:
        return pcapng(data)
    if (magic, link) == (0xa1b2c3d4, DBUS_PACKETS):
        return pcap(data)
    raise SystemExit(f'no capture of D-Bus: {data[:24]}')


def is_tick(data):
    """Is it the signal that the echo was asked for, whole?"""
    body, fields = struct.unpack_from('<4xI4xI', data)
    if len(data) != 16 + fields + -fields % 8 + body:
        raise SystemExit(f'a message of another length: {data}')
    message = rawbus.Message(data)
    return (message.kind == rawbus.SIGNAL and message.fields.get(rawbus.MEMBER) == 'Tick' and
            message.body == struct.pack('<I', 4711))


class Programs(Tests):
    """All tests on one bus."""

    # ---- looking on ----

    def look_on(self, *command):
        """A monitor, once it is one: then it has no name any more."""
        path = re.search('unix:path=([^,]*)', self.bus.address)[1]
        watcher = rawbus.Peer(path).hello()
        watcher.driver('AddMatch', 's', rawbus.text("type='signal',member='NameOwnerChanged'"))
        monitor = subprocess.Popen(command, env=self.bus.environment, stdout=subprocess.PIPE)
        names = set()
        while True:
            name = watcher.receive().string()
            if name in names:
                break
            names.add(name)
        watcher.close()
        return monitor

    def looks_on(self, what, command, done):
        """What a monitor writes is done at some time after a signal was sent."""
        monitor = self.look_on(*command)
        seen = b''
        problems = self.emit(NAME)
        while not problems and not done(seen):
            more = os.read(monitor.stdout.fileno(), 65536)
            if not more:
                problems.append(f'it ended: {seen}')
            seen += more
        monitor.send_signal(signal.SIGINT)
        monitor.communicate()
        self.plan.check(what, problems)

    def captures(self):
        def captured(seen):
            return any(is_tick(data) and len(data) == full for data, full in packets(seen))

        def written(pattern):
            return lambda seen: re.search(pattern, seen, re.S)

        busctl = ['busctl', f'--address={self.bus.address}']
        self.looks_on('busctl capture', [*busctl, 'capture'], captured)
        self.looks_on('dbus-monitor --pcap', ['dbus-monitor', '--session', '--pcap'], captured)
        self.looks_on('dbus-monitor --profile',
                      ['stdbuf', '-oL', 'dbus-monitor', '--session', '--profile'],
                      written(rb'\nsig\t[0-9.]+\t\d+\t:1\.\d+\t<none>\t\S+\t\S+\tTick\n'))
        self.looks_on('busctl monitor --json',
                      ['stdbuf', '-oL', *busctl, 'monitor', '--json=short'],
                      written(rb'"member":"Tick".*"payload":\{"type":"u","data":\[4711\]\}'))

    # ---- a proxy ----

    def proxy(self):
        path = os.path.join(self.bus.folder.name, 'proxy')
        ours, its = os.pipe()
        os.set_inheritable(its, True)
        process = subprocess.Popen(
            ['xdg-dbus-proxy', self.bus.address, path, f'--fd={its}', '--filter',
             f'--talk={NAME}', f'--talk={MEETING}', '--own=org.example.mine.*'], close_fds=False)
        os.close(its)
        if not os.read(ours, 1):
            raise SystemExit('xdg-dbus-proxy does not start')
        self.behind(f'unix:path={path}')
        # It goes when nobody wants it any more.
        os.close(ours)
        self.plan.check('xdg-dbus-proxy ends well',
                        [f'status {process.returncode}'] if process.wait(PATIENCE) else [])

    def behind(self, address):
        def through(*command):
            return ['env', f'DBUS_SESSION_BUS_ADDRESS={address}', *command]

        def driver(*arguments):
            return through('dbus-send', '--session', '--print-reply', f'--dest={DRIVER}', '/',
                           *arguments)

        hidden = self.serve(self.echoes['sd-bus'], HIDDEN)
        self.expect('a proxy shows who may be talked to, and no other',
                    driver(f'{DRIVER}.ListNames'), rf'"{NAME}"(?!.*"{HIDDEN}")')
        call = through('gdbus', 'call', '--session', '--object-path', ECHO[1], '--method',
                       f'{ECHO[0]}.Echo', '--dest')
        self.expect('a call through a proxy', [*call, NAME, 'text'], r"^\('text',\)\n$")
        self.expect('a call to who is hidden', [*call, HIDDEN, 'text'], 'ServiceUnknown', 1)
        self.expect('a name that may be owned',
                    driver(f'{DRIVER}.RequestName', 'string:org.example.mine.Name', 'uint32:0'),
                    'uint32 1')
        self.expect('a name that may not be owned',
                    driver(f'{DRIVER}.RequestName', 'string:org.example.other', 'uint32:0'),
                    'ServiceUnknown', 1)
        self.expect('nobody becomes a monitor',
                    driver(f'{DRIVER}.Monitoring.BecomeMonitor', 'array:string:', 'uint32:0'),
                    'AccessDenied', 1)
        self.monitored('signals come through a proxy',
                       through('gdbus', 'monitor', '--session', '--dest', NAME), 'is owned by',
                       NAME, r'Tick \(uint32 4711,\)')
        self.stop(hidden)
        self.library(through)

    def library(self, through):
        """The contract of libraries.py, from behind the proxy."""
        program = [sys.executable, '-P', LIBRARY]
        service = self.start(*program, 'serve', MEETING)
        line = service.stdout.readline()
        if line != 'ready\n':
            raise SystemExit(f'the service is not ready: {line}')
        self.expect('GDBus through a proxy', through(*program, 'ask', MEETING, *CHECKS),
                    '^' + ''.join(f'ok {check}\n' for check in CHECKS) + '$')
        self.stop(service)

    # ---- a player ----

    def mock(self, method, *arguments):
        return self.output('gdbus', 'call', '--session', '--dest', f'{PLAYER}.mock',
                           '--object-path', '/org/mpris/MediaPlayer2', '--method',
                           f'org.freedesktop.DBus.Mock.{method}', *arguments)

    def player(self):
        face = f'{PLAYER}.Player'
        mock = self.start(sys.executable, '-m', 'dbusmock', '--session', f'{PLAYER}.mock',
                          '/org/mpris/MediaPlayer2', face)
        self.output('gdbus', 'wait', '--session', '--timeout', '60', f'{PLAYER}.mock')
        self.mock('AddProperties', face,
                  "{'PlaybackStatus': <'Playing'>, 'CanPause': <true>, 'CanPlay': <true>, "
                  "'CanControl': <true>, 'Metadata': <{'mpris:trackid': <objectpath '/song'>, "
                  "'xesam:title': <'Song'>}>}")
        self.mock('AddMethod', face, 'Pause', '', '',
                  f"self.UpdateProperties('{face}', {{'PlaybackStatus': 'Paused'}})")
        self.expect('playerctl finds a player', ['playerctl', '--list-all'], '^mock\n$')
        self.expect('playerctl reads what plays', ['playerctl', 'metadata', 'title'], '^Song\n$')
        follower = self.start('stdbuf', '-oL', 'playerctl', '--follow', 'status')
        seen = follower.stdout.readline()
        self.expect('playerctl makes it pause', ['playerctl', 'pause'], '^$')
        seen += follower.stdout.readline()
        self.plan.check('playerctl follows it', [] if seen == 'Playing\nPaused\n' else [seen])
        self.stop(follower)
        self.stop(mock)

    def run(self):
        server = self.serve(self.echoes['sd-bus'], NAME)
        self.captures()
        self.proxy()
        self.player()
        self.stop(server)
        self.plan.check('the daemon ends well', self.bus.stop())
        self.plan.finish()


def main():
    daemon, echo = sys.argv[1:]
    Programs(Bus(daemon), {'sd-bus': echo}).run()


if __name__ == '__main__':
    main()
