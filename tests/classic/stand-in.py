#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""kdbusd in the place of dbus-daemon, by name.

usage: stand-in.py KDBUSD

dbus-run-session finds it through a symbolic link, dbus-launch where dbus-daemon is installed: in a
mount namespace of our own.
"""
import os
import signal
import subprocess
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, '..', 'repo'))
import family  # noqa: E402
from bus import PATIENCE  # noqa: E402
from tap import Plan  # noqa: E402

MS_BIND = 0x1000
INSTALLED = '/usr/bin/dbus-daemon'
CALL = ['gdbus', 'call', '--session', '--dest', 'org.freedesktop.DBus', '--object-path', '/',
        '--method', 'org.freedesktop.DBus.GetConnectionUnixProcessID', 'org.freedesktop.DBus']


def output(command, env=None):
    result = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, text=True, timeout=PATIENCE, env=env)
    return result.returncode, result.stdout


def is_it(pid, kdbusd):
    """Whether a process runs that file, by whatever name."""
    return os.path.samefile(f'/proc/{pid}/exe', kdbusd)


def run_session(kdbusd, link):
    """The bus says its pid, the session looks what runs there."""
    script = (f'pid=$({" ".join(CALL)}) && pid=${{pid##* }} && pid=${{pid%,)}} && '
              f'test /proc/$pid/exe -ef {kdbusd} && echo it is')
    status, text = output(['dbus-run-session', f'--dbus-daemon={link}', '--', 'sh', '-c', script])
    if status or not text.endswith('it is\n'):
        yield f'status {status}: {text}'


def launch(kdbusd):
    """dbus-launch leaves a bus behind, and says what it is."""
    # A wait for it would be one for the bus, which has its standard output.
    report = os.path.join(os.environ['TMPDIR'], 'report')
    with open(report, 'w', encoding='utf-8') as file:
        subprocess.run(['dbus-launch', '--sh-syntax'], stdin=subprocess.DEVNULL, stdout=file,
                       check=True, timeout=PATIENCE)
    with open(report, encoding='utf-8') as file:
        lines = file.read().replace(';', '').replace('export ', '').splitlines()
    variables = dict(line.split('=', 1) for line in lines if '=' in line)
    pid = int(variables['DBUS_SESSION_BUS_PID'])
    address = variables['DBUS_SESSION_BUS_ADDRESS'].strip("'")
    if not is_it(pid, kdbusd):
        yield f'{pid} is another program'
    status, text = output(CALL, {**os.environ, 'DBUS_SESSION_BUS_ADDRESS': address})
    if status or f'uint32 {pid}' not in text:
        yield f'status {status}: {text}'
    os.kill(pid, signal.SIGTERM)


def main():
    kdbusd = os.path.abspath(sys.argv[1])
    family.adopt()
    plan = Plan()
    link = os.path.join(os.environ['TMPDIR'], 'dbus-daemon')
    os.symlink(kdbusd, link)
    os.environ.pop('DISPLAY', None)
    plan.check('dbus-run-session with a link', run_session(kdbusd, link))
    why = family.own_mounts()
    if why:
        plan.check(f'dbus-launch # SKIP no mount namespace: {why}', [])
    else:
        family.mount(kdbusd, INSTALLED, None, MS_BIND)
        plan.check('dbus-launch with it in the place of dbus-daemon', launch(kdbusd))
    family.bury(PATIENCE)
    plan.finish()


if __name__ == '__main__':
    main()
