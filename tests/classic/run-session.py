#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""kdbus-run-session: the program's life, environment and end.

usage: run-session.py KDBUS-RUN-SESSION KDBUSD
"""
import os
import signal
import subprocess
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, '..', 'repo'))
from bus import PATIENCE  # noqa: E402
from tap import Plan  # noqa: E402

SESSION, KDBUSD = sys.argv[1:]
ENVIRONMENT = {
    **os.environ,
    'PATH': f'{os.path.dirname(KDBUSD)}:{os.environ["PATH"]}',
    'DBUS_SESSION_BUS_PID': '1',
    'DBUS_SESSION_BUS_WINDOWID': '1',
    'DBUS_STARTER_ADDRESS': 'x',
    'DBUS_STARTER_BUS_TYPE': 'x',
    'DBUS_SESSION_BUS_ADDRESS': 'unix:path=/nowhere',
}
CALL = ['gdbus', 'call', '--session', '--dest', 'org.freedesktop.DBus', '--object-path', '/',
        '--method', 'org.freedesktop.DBus.GetId']


def run(*command):
    return subprocess.run([SESSION, *command], env=ENVIRONMENT, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=PATIENCE)


def status_problems(result, expected):
    if result.returncode != expected:
        yield f'status {result.returncode}, not {expected}\n{result.stdout}{result.stderr}'


def environment_problems():
    text = run('env').stdout
    variables = dict(line.split('=', 1) for line in text.splitlines() if '=' in line)
    if 'unix:' not in variables.get('DBUS_SESSION_BUS_ADDRESS', ''):
        yield f'DBUS_SESSION_BUS_ADDRESS is not set\n{text}'
    if variables.get('DBUS_SESSION_BUS_ADDRESS') == ENVIRONMENT['DBUS_SESSION_BUS_ADDRESS']:
        yield 'DBUS_SESSION_BUS_ADDRESS is the old one'
    domain = variables.get('KDBUS_DOMAIN')
    if not domain:
        yield f'KDBUS_DOMAIN is not set\n{text}'
    elif os.path.exists(domain):
        yield f'{domain} is still there'
    for name in ('DBUS_SESSION_BUS_PID', 'DBUS_SESSION_BUS_WINDOWID', 'DBUS_STARTER_ADDRESS',
                 'DBUS_STARTER_BUS_TYPE'):
        if name in variables:
            yield f'{name} is set'


def signal_problems(number):
    """A signal to it ends the program, and then it."""
    process = subprocess.Popen([SESSION, '--', 'sh', '-c', 'echo ready; exec sleep 1000'],
                               env=ENVIRONMENT, stdout=subprocess.PIPE, text=True)
    process.stdout.readline()
    process.send_signal(number)
    process.communicate(timeout=PATIENCE)
    if process.returncode != 128 + number:
        yield f'status {process.returncode}'


def main():
    plan = Plan()
    plan.check('a program finds the bus', status_problems(run('--', *CALL), 0))
    plan.check('the environment', environment_problems())
    plan.check('its status is ours', status_problems(run('sh', '-c', 'exit 42'), 42))
    plan.check('a signal that killed it', status_problems(run('sh', '-c', 'kill -9 $$'), 137))
    plan.check('options of the program are its own', status_problems(run('false', '--help'), 1))
    plan.check('a program that is not there', status_problems(run('/nowhere/program'), 127))
    plan.check('a bus that is not there',
               status_problems(run('--dbus-daemon=/nowhere/bus', 'true'), 127))
    plan.check('a bus that does not start', status_problems(run('--dbus-daemon=false', 'true'), 127))
    plan.check('no program', status_problems(run(), 2))
    plan.check('another bus', status_problems(run('--dbus-daemon', 'dbus-daemon', *CALL), 0))
    plan.check('a configuration',
               status_problems(run('--config-file', '/usr/share/dbus-1/session.conf', *CALL), 0))
    plan.check('a configuration that is not there',
               status_problems(run('--config-file', '/nowhere/file', *CALL), 127))
    for number in signal.SIGTERM, signal.SIGHUP:
        plan.check(f'signal {number.name}', signal_problems(number))
    plan.finish()


if __name__ == '__main__':
    main()
