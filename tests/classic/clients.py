#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Programs that know nothing of kdbus, on a private session bus.

usage: clients.py DAEMON GDBUS-ECHO SDBUS-ECHO LIBDBUS-ECHO

The same is expected of every daemon that takes dbus-daemon's options.
"""
import os
import re
import select
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, '..', 'repo'))
from bus import Bus, PATIENCE  # noqa: E402
from tap import Plan  # noqa: E402

DRIVER = 'org.freedesktop.DBus'
DRIVER_PATH = '/org/freedesktop/DBus'
ECHO = ('org.example.Echo', '/org/example/echo')


class Tests:
    """All tests on one bus."""

    def __init__(self, bus, echoes):
        self.bus = bus
        self.echoes = echoes
        self.plan = Plan()

    def start(self, *command, **more):
        return subprocess.Popen(command, env=self.bus.environment, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True, **more)

    def output(self, *command):
        process = self.start(*command)
        try:
            text = process.communicate(timeout=PATIENCE)[0]
        except subprocess.TimeoutExpired:
            process.kill()
            return None, process.communicate()[0] + '\nit hung'
        return process.returncode, text

    def expect(self, what, command, pattern, status=0):
        """A command ends with a status, and what it writes matches."""
        got, text = self.output(*command)
        problems = []
        if got != status:
            problems.append(f'{" ".join(command)}: status {got}\n{text}')
        elif not re.search(pattern, text, re.S):
            problems.append(f'{" ".join(command)}: no match for {pattern} in\n{text}')
        self.plan.check(what, problems)

    def serve(self, program, name):
        server = self.start(program, 'serve', name)
        line = server.stdout.readline()
        if line != 'ready\n':
            raise SystemExit(f'{program} serve: {line}')
        return server

    def stop(self, server):
        server.kill()
        server.communicate()

    # ---- libraries ----

    def pairs(self):
        for service, server_program in self.echoes.items():
            for client, client_program in self.echoes.items():
                name = f'org.example.Echo.{service}.{client}'
                server = self.serve(server_program, name)
                status, text = self.output(client_program, 'ask', name)
                rest = server.communicate()[0]
                problems = [] if status == 0 else [f'status {status}\n{text}']
                if server.returncode:
                    problems.append(f'the service ended with {server.returncode}\n{rest}')
                self.plan.check(f'{client} asks {service}', problems)

    def python(self):
        self.expect('dbus-python with a main loop',
                    [sys.executable, os.path.join(HERE, 'python-client.py')], '^$')

    # ---- command lines ----

    def gdbus(self, name):
        call = ['gdbus', 'call', '--session', '--dest']
        self.expect('gdbus call of the bus',
                    [*call, DRIVER, '--object-path', DRIVER_PATH, '--method', f'{DRIVER}.GetId'],
                    r"^\('[0-9a-f]{32}',\)\n$")
        self.expect('gdbus call of a service',
                    [*call, name, '--object-path', ECHO[1], '--method', f'{ECHO[0]}.Echo', 'text'],
                    r"^\('text',\)\n$")
        self.expect('gdbus call of nobody',
                    [*call, 'org.example.Nobody', '--object-path', '/', '--method', 'a.b.C'],
                    'ServiceUnknown', 1)
        self.expect('gdbus introspect',
                    ['gdbus', 'introspect', '--session', '--dest', name, '--object-path', ECHO[1]],
                    r'interface org\.example\.Echo \{.*Sum\(in')
        self.expect('gdbus introspect of the bus',
                    ['gdbus', 'introspect', '--session', '--dest', DRIVER, '--object-path',
                     DRIVER_PATH, '--recurse'], r'RequestName\(in  s')
        self.expect('gdbus wait', ['gdbus', 'wait', '--session', '--timeout', '30', name], '^$')
        self.monitored('gdbus monitor',
                       ['gdbus', 'monitor', '--session', '--dest', name], 'is owned by', name,
                       r'Tick \(uint32 4711,\)')

    def busctl(self, name):
        bus = ['busctl', f'--address={self.bus.address}', '--no-pager']
        self.expect('busctl list', [*bus, 'list'], re.escape(name))
        self.expect('busctl list --acquired', [*bus, '--acquired', 'list'], re.escape(DRIVER))
        self.expect('busctl call', [*bus, 'call', name, *reversed(ECHO), 'Sum', 'au', '3', '1', '2',
                                    '3'], r'^u 6\n$')
        self.expect('busctl introspect', [*bus, 'introspect', name, ECHO[1], ECHO[0]],
                    r'\.Sum +method +au +u')
        self.expect('busctl tree', [*bus, 'tree', name], re.escape(ECHO[1]))
        self.expect('busctl status', [*bus, 'status', name], r'UniqueName=:1\.\d+')
        self.expect('busctl status of the bus', [*bus, 'status'], r'BusID=[0-9a-f]{32}|PID=')
        self.expect('busctl get-property of the bus',
                    [*bus, 'get-property', DRIVER, DRIVER_PATH, DRIVER, 'Features'], r'^as \d')
        self.monitored('busctl monitor', [*bus, 'monitor', name], 'Monitoring bus', name,
                       r'Member=Tick.*UINT32 4711')

    def dbus_send(self, name):
        send = ['dbus-send', '--session', '--print-reply']
        self.expect('dbus-send', [*send, f'--dest={name}', ECHO[1], f'{ECHO[0]}.Echo',
                                  'string:text'], r'method return.*string "text"')
        self.expect('dbus-send to the bus', [*send, f'--dest={DRIVER}', '/', f'{DRIVER}.ListNames'],
                    rf'string "{re.escape(name)}"')
        self.expect('dbus-send, an error', [*send, f'--dest={name}', ECHO[1], f'{ECHO[0]}.Fail'],
                    'org.example.Error.Failed: as you wish', 1)
        self.monitored('dbus-monitor', ['dbus-monitor', '--session'], 'NameLost|NameAcquired', name,
                       r'member=Tick.*uint32 4711')
        self.monitored('dbus-monitor with a rule',
                       ['dbus-monitor', '--session', "type='signal',member='Tick'"],
                       'NameLost|NameAcquired', name, r'member=Tick.*uint32 4711')

    def watch(self, monitor, pattern, seen, act):
        """What it has written by the time that this matches; act until then."""
        end = time.monotonic() + PATIENCE
        out = monitor.stdout.fileno()
        act()
        while not re.search(pattern, seen, re.S) and time.monotonic() < end:
            if not select.select([out], [], [], 1)[0]:
                act()
                continue
            more = os.read(out, 65536)
            if not more:
                break
            seen += more.decode()
        return seen

    def monitored(self, what, command, ready, name, pattern):
        """A monitor that has said it is ready writes what matches once a signal was sent."""
        def emit():
            problems.extend(self.emit(name))

        problems = []
        monitor = self.start('stdbuf', '-oL', *command)
        seen = self.watch(monitor, ready, '', lambda: None)
        # Again and again: gdbus says whom it watches, and then has the bus tell it of signals.
        seen = self.watch(monitor, pattern, seen, emit)
        monitor.send_signal(signal.SIGINT)
        monitor.communicate()
        if not re.search(pattern, seen, re.S):
            problems.append(f'no match for {pattern} in\n{seen}')
        self.plan.check(what, problems)

    def emit(self, name):
        """Problems of a service with sending a signal."""
        status, text = self.output('busctl', f'--address={self.bus.address}', 'call', name,
                                   *reversed(ECHO), 'Emit', 'u', '4711')
        return [f'emit: {status} {text}'] if status else []

    # ---- load ----

    def test_tool(self):
        tool = 'dbus-test-tool'
        echo = self.start(tool, 'echo', '--session', '--name=org.example.LoadEcho')
        hole = self.start(tool, 'black-hole', '--session', '--name=org.example.LoadHole')
        for name in 'org.example.LoadEcho', 'org.example.LoadHole':
            self.output('gdbus', 'wait', '--session', '--timeout', '30', name)
        self.expect('dbus-test-tool spam to echo',
                    [tool, 'spam', '--session', '--dest=org.example.LoadEcho', '--count=5000',
                     '--flood', '--bytes', '--payload=0123456789'], '')
        self.expect('dbus-test-tool spam into a black hole',
                    [tool, 'spam', '--session', '--dest=org.example.LoadHole', '--count=5000',
                     '--no-reply', '--flood'], '')
        self.crowd()
        self.expect('the bus answers after that',
                    ['busctl', f'--address={self.bus.address}', 'call', DRIVER, DRIVER_PATH,
                     DRIVER, 'GetId'], r'^s "[0-9a-f]{32}"')
        self.stop(echo)
        self.stop(hole)

    def crowd(self):
        """Several at once: those who want replies get all of theirs."""
        spam = ['dbus-test-tool', 'spam', '--session', '--count=1000', '--flood', '--bytes']
        echo = [*spam, '--dest=org.example.LoadEcho', f'--payload={"x" * 4096}']
        hole = [*spam, '--dest=org.example.LoadHole', '--no-reply', '--payload=0123456789']
        crowd = [self.start(*command) for command in (echo, hole) * 3]
        problems = []
        for process in crowd:
            text = process.communicate(timeout=PATIENCE)[0]
            if process.returncode:
                problems.append(f'{" ".join(process.args[:6])}: {process.returncode}\n{text}')
        self.plan.check('three flood an echo, three a black hole', problems)

    def run(self):
        self.pairs()
        self.python()
        name = 'org.example.CommandLine'
        server = self.serve(self.echoes['sd-bus'], name)
        self.gdbus(name)
        self.busctl(name)
        self.dbus_send(name)
        self.stop(server)
        self.test_tool()
        self.plan.check('the daemon ends well', self.bus.stop())
        self.plan.finish()


def main():
    daemon, *programs = sys.argv[1:]
    Tests(Bus(daemon), dict(zip(('GDBus', 'sd-bus', 'libdbus'), programs))).run()


if __name__ == '__main__':
    main()
