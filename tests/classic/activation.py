#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Services that the bus starts: directly, from .service files.

usage: activation.py DAEMON ECHO

ECHO is a program as in echo.h. The same is expected of every daemon that takes dbus-daemon's
options.
"""
import os
import signal
import sys
import threading

import dbus
import dbus.mainloop.glib
from gi.repository import GLib

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, '..', 'repo'))
from bus import Bus  # noqa: E402
from tap import Plan  # noqa: E402

ERROR = 'org.freedesktop.DBus.Error'
FACE = 'org.example.Echo'
CONFIG = '''<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <type>session</type>
  <listen>unix:tmpdir=/tmp</listen>
  <servicedir>{services}</servicedir>
  <policy context="default">
    <allow send_destination="*" eavesdrop="true"/>
    <allow eavesdrop="true"/>
    <allow own="*"/>
    <deny send_destination="org.example.Forbidden"/>
  </policy>
  <limit name="service_start_timeout">{timeout}</limit>
</busconfig>
'''
# Long enough for a program to start on any machine; short enough to wait for once.
TIMEOUT_MS = 20000


class Tests:
    """All tests on one bus."""

    def __init__(self, daemon, echo):
        self.scratch = os.environ['TMPDIR']
        self.services = os.path.join(self.scratch, 'services')
        os.mkdir(self.services)
        self.log = os.path.join(self.scratch, 'starts')
        # The slow service begins when something is written here.
        self.gate = os.path.join(self.scratch, 'gate')
        os.mkfifo(self.gate)
        self.service('org.example.Good', f'{echo} serve org.example.Good')
        self.service('org.example.Slow', self.script(f'read go <{self.gate}', f'{echo} serve org.example.Slow'))
        self.service('org.example.Exits', self.script('exit 42'))
        self.service('org.example.Killed', self.script('kill -USR1 $$'))
        self.service('org.example.Missing', '/nowhere/program')
        self.service('org.example.Idle', self.script('exit 0'))
        self.service('org.example.Forbidden', self.script('true'))
        self.service('org.example.Quoted', f"/bin/sh -c 'exec \"$0\" serve \"$1\"' {echo} "
                                           '"org.example."Quoted')
        self.service('org.example.Forks', self.script(f'{echo} serve org.example.Forks &'))
        self.service('org.example.Variables', self.script(f'env >{self.scratch}/variables'))
        config = os.path.join(self.scratch, 'config')
        with open(config, 'w', encoding='utf-8') as file:
            file.write(CONFIG.format(services=self.services, timeout=TIMEOUT_MS))
        self.bus = Bus(daemon, f'--config-file={config}')
        os.environ['DBUS_SESSION_BUS_ADDRESS'] = self.bus.address
        self.connection = dbus.bus.BusConnection(self.bus.address)
        self.driver = dbus.Interface(
            self.connection.get_object('org.freedesktop.DBus', '/org/freedesktop/DBus'),
            'org.freedesktop.DBus')
        self.plan = Plan()

    def service(self, name, line):
        with open(f'{self.services}/{name}.service', 'w', encoding='utf-8') as file:
            file.write(f'[D-BUS Service]\nName={name}\nExec={line}\n')

    def script(self, *lines):
        """Exec line of a script that notes each start."""
        body = f'echo x >>{self.log};' + ';'.join(lines)
        return "/bin/sh -c '" + body + "'"

    def starts(self):
        try:
            with open(self.log, encoding='utf-8') as file:
                return len(file.read().split())
        except FileNotFoundError:
            return 0

    def echo(self, name, text, connection=None):
        """Calls without introspection, blocking."""
        return (connection or self.connection).call_blocking(
            name, '/org/example/echo', FACE, 'Echo', 's', (text,))

    def quit(self, name):
        self.connection.call_blocking(name, '/org/example/echo', FACE, 'Quit', '', ())
        while self.driver.NameHasOwner(name):
            pass

    def error(self, what, name, error, text, start=False):
        """What a call, or a start, of a service ends with."""
        problems = []
        try:
            if start:
                self.driver.StartServiceByName(name, 0)
            else:
                self.echo(name, 'x')
            problems.append('no error')
        except dbus.DBusException as e:
            if e.get_dbus_name() != error or text not in e.get_dbus_message():
                problems.append(f'{e.get_dbus_name()}: {e.get_dbus_message()}')
        self.plan.check(what, problems)

    def calls(self):
        ok = self.echo('org.example.Good', 'text') == 'text'
        self.plan.check('a call starts its service', [] if ok else ['wrong answer'])
        self.plan.check('a service that runs is not started again',
                        [] if self.driver.StartServiceByName('org.example.Good', 0) == 2
                        else ['not ALREADY_RUNNING'])
        self.quit('org.example.Good')
        result = self.driver.StartServiceByName('org.example.Good', 0)
        self.plan.check('and again, by name', [] if result == 1 else [f'result {result}'])
        self.quit('org.example.Good')
        self.echo('org.example.Quoted', 'x')
        self.quit('org.example.Quoted')
        self.plan.check('an Exec line with quotes', [])
        self.echo('org.example.Forks', 'x')
        self.quit('org.example.Forks')
        self.plan.check('a program that leaves a daemon behind', [])

    def open_gate(self):
        with open(self.gate, 'w', encoding='utf-8') as gate:
            gate.write('go\n')

    def order(self):
        """Messages of several callers wait, and arrive in order; the service starts once."""
        loop = GLib.MainLoop()
        answers = []
        before = self.starts()
        expected = 40

        def answered(text):
            answers.append(int(text))
            if len(answers) == expected:
                loop.quit()

        def failed(error):
            answers.append(error)
            loop.quit()

        for number in range(expected):
            self.connection.call_async('org.example.Slow', '/org/example/echo', FACE, 'Echo', 's',
                                       (str(number),), answered, failed)
        # In order behind the calls: they have been taken.
        self.driver.GetId()
        self.open_gate()
        loop.run()
        problems = []
        if answers != list(range(expected)):
            problems.append(f'{answers}')
        if self.starts() != before + 1:
            problems.append(f'{self.starts() - before} starts')
        self.plan.check('messages wait in order for one start', problems)
        self.quit('org.example.Slow')

    def failures(self):
        for how, start in (('a call', False), ('StartServiceByName', True)):
            self.error(f'{how}: no such service', 'org.example.Nobody', f'{ERROR}.ServiceUnknown',
                       'The name org.example.Nobody was not provided by any .service files', start)
            self.error(f'{how}: it exits', 'org.example.Exits', f'{ERROR}.Spawn.ChildExited',
                       'Process org.example.Exits exited with status 42', start)
            self.error(f'{how}: it is killed', 'org.example.Killed',
                       f'{ERROR}.Spawn.ChildSignaled',
                       f'Process org.example.Killed received signal {int(signal.SIGUSR1)}', start)
            self.error(f'{how}: there is no program', 'org.example.Missing',
                       f'{ERROR}.Spawn.ExecFailed',
                       'Failed to execute program org.example.Missing', start)
        self.error('it never takes its name', 'org.example.Idle', f'{ERROR}.TimedOut',
                   f'Failed to activate service \'org.example.Idle\': timed out '
                   f'(service_start_timeout={TIMEOUT_MS}ms)')
        before = self.starts()
        self.error('not allowed to send to it', 'org.example.Forbidden', f'{ERROR}.AccessDenied',
                   'org.example.Forbidden')
        self.plan.check('what is not allowed starts nothing',
                        [] if self.starts() == before else ['it was started'])

    def everybody_learns(self):
        """Each of many who wait gets the error, also one who waits by name."""
        loop = GLib.MainLoop()
        errors = []

        def failed(error):
            errors.append(error.get_dbus_name())
            if len(errors) == 11:
                loop.quit()

        def answered(*_):
            errors.append('no error')
            loop.quit()

        for _ in range(10):
            self.connection.call_async('org.example.Exits', '/org/example/echo', FACE, 'Echo', 's',
                                       ('x',), answered, failed)
        self.driver.StartServiceByName('org.example.Exits', 0, reply_handler=answered,
                                       error_handler=failed)
        loop.run()
        self.plan.check('everybody who waits gets the error',
                        [] if set(errors) == {f'{ERROR}.Spawn.ChildExited'} else [f'{errors}'])

    def caller_that_leaves(self):
        """What it had sent is not delivered."""
        other = dbus.bus.BusConnection(self.bus.address)
        other.call_async('org.example.Slow', '/org/example/echo', FACE, 'Quit', '', (), None, None)
        other.flush()
        # In order behind the call: it has been taken.
        other.call_blocking('org.freedesktop.DBus', '/', 'org.freedesktop.DBus', 'GetId', '', ())
        other.close()
        while other.get_is_connected():
            pass
        gate = threading.Thread(target=self.open_gate)
        gate.start()
        ok = self.echo('org.example.Slow', 'x') == 'x'
        gate.join()
        self.plan.check('a caller that left is forgotten', [] if ok else ['wrong answer'])
        self.quit('org.example.Slow')

    def no_auto_start(self):
        message = dbus.lowlevel.MethodCallMessage(
            'org.example.Good', '/org/example/echo', FACE, 'Echo')
        message.append('x', signature='s')
        message.set_auto_start(False)
        problems = []
        try:
            self.connection.send_message_with_reply_and_block(message)
            problems.append('no error')
        except dbus.DBusException as e:
            if e.get_dbus_name() != f'{ERROR}.NameHasNoOwner':
                problems.append(e.get_dbus_name())
        self.plan.check('NO_AUTO_START starts nothing', problems)

    def environment(self):
        self.driver.UpdateActivationEnvironment({'KDBUS_TEST': 'a=b', 'LANG': 'x'})
        try:
            self.driver.StartServiceByName('org.example.Variables', 0)
        except dbus.DBusException:
            pass
        with open(f'{self.scratch}/variables', encoding='utf-8') as file:
            lines = file.read().splitlines()
        problems = [f'no {line}' for line in ('KDBUS_TEST=a=b', 'LANG=x',
                                              f'DBUS_STARTER_ADDRESS={self.bus.address}',
                                              'DBUS_STARTER_BUS_TYPE=session',
                                              f'DBUS_SESSION_BUS_ADDRESS={self.bus.address}')
                    if line not in lines]
        self.plan.check('the environment of services', problems + lines if problems else [])

    def lists(self):
        names = self.driver.ListActivatableNames()
        expected = {'org.freedesktop.DBus', 'org.example.Good', 'org.example.Slow'}
        self.plan.check('ListActivatableNames', [] if expected <= set(names) else [f'{names}'])

    def run(self):
        self.calls()
        self.order()
        self.failures()
        self.everybody_learns()
        self.caller_that_leaves()
        self.no_auto_start()
        self.environment()
        self.lists()
        self.connection.close()
        self.plan.check('the daemon ends well', self.bus.stop())
        self.plan.finish()


def main():
    dbus.mainloop.glib.DBusGMainLoop(set_as_default=True)
    Tests(*sys.argv[1:]).run()


if __name__ == '__main__':
    main()
