#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""A day in the life of a session bus: real services and programs from Debian.

usage: day.py KDBUS-RUN-SESSION DAEMON

Runs itself in a session of its own on DAEMON. Settings are written and read through dconf, a file
manager's services mount and look, accessibility starts, a notification is shown by a mock of the
desktop, and somebody walks over everything with introspection.
"""
import os
import re
import subprocess
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, '..', 'repo'))
import family  # noqa: E402
from bus import PATIENCE  # noqa: E402
from tap import Plan  # noqa: E402

DRIVER = 'org.freedesktop.DBus'


def output(*command):
    try:
        result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                text=True, timeout=PATIENCE)
    except subprocess.TimeoutExpired as late:
        return None, f'{late.stdout}\nit hung'
    return result.returncode, result.stdout


def problems(command, pattern, status=0):
    got, text = output(*command)
    if got != status or not re.search(pattern, text, re.S):
        yield f'{" ".join(command)}: status {got}, not {pattern}:\n{text}'


def settings(plan):
    plan.check('dconf writes', problems(['dconf', 'write', '/org/example/number', '42'], '^$'))
    plan.check('dconf reads', problems(['dconf', 'read', '/org/example/number'], '^42\n$'))
    watcher = subprocess.Popen(['dconf', 'watch', '/org/example/'], stdout=subprocess.PIPE)
    # Written until it is seen: nothing says when the watcher has begun.
    number = 0
    seen = b''
    os.set_blocking(watcher.stdout.fileno(), False)
    while b'/org/example/watched' not in seen and number < 1000:
        number += 1
        output('dconf', 'write', '/org/example/watched', str(number))
        seen += watcher.stdout.read() or b''
    watcher.kill()
    watcher.wait()
    plan.check('dconf watches', [] if b'/org/example/watched' in seen else [repr(seen)])
    plan.check('dconf resets', problems(['dconf', 'reset', '-f', '/org/example/'], '^$'))


def files(plan):
    plan.check('gvfs knows its mounts', problems(['gio', 'mount', '--list'], ''))
    path = os.path.join(os.environ['TMPDIR'], 'file')
    with open(path, 'w', encoding='utf-8') as file:
        file.write('text')
    plan.check('gvfs keeps metadata',
               problems(['gio', 'set', '-t', 'string', path, 'metadata::example', 'kept'], '^$'))
    plan.check('and gives it back',
               problems(['gio', 'info', '-a', 'metadata::example', path], 'kept'))
    plan.check('gvfs was started', problems(
        ['busctl', '--user', '--no-pager', 'list'], r'org\.gtk\.vfs\.(Daemon|Metadata)'))


def accessibility(plan):
    plan.check('the accessibility bus starts', problems(
        ['gdbus', 'call', '--session', '--dest', 'org.a11y.Bus', '--object-path', '/org/a11y/bus',
         '--method', 'org.a11y.Bus.GetAddress'], r"^\('unix:"))


def notifications(plan):
    mock = subprocess.Popen(
        [sys.executable, '-m', 'dbusmock', '--template', 'notification_daemon'],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    output('gdbus', 'wait', '--session', '--timeout', '60', 'org.freedesktop.Notifications')
    plan.check('a notification is shown',
               problems(['notify-send', 'Summary', 'Body with ümlauts'], '^$'))
    plan.check('notification servers say who they are', problems(
        ['gdbus', 'call', '--session', '--dest', 'org.freedesktop.Notifications', '--object-path',
         '/org/freedesktop/Notifications', '--method',
         'org.freedesktop.Notifications.GetServerInformation'], 'mock'))
    mock.terminate()
    text = mock.communicate()[0]
    plan.check('it arrived', [] if 'Summary' in text and 'ümlauts' in text else [text])


def walk(plan):
    """Introspection of all that have a name by now."""
    status, text = output('busctl', '--user', '--no-pager', '--acquired', '--no-legend', 'list')
    names = re.findall(r'^([a-zA-Z][\w.-]+)', text, re.M)
    plan.check('somebody is there', [] if status == 0 and len(names) > 2 else [text])
    for name in names:
        plan.check(f'introspection of {name}',
                   problems(['busctl', '--user', '--no-pager', 'tree', name], ''))
    plan.check('everything on the bus itself', problems(
        ['gdbus', 'introspect', '--session', '--dest', DRIVER, '--object-path', '/', '--recurse'],
        'RequestName'))


def day():
    plan = Plan()
    settings(plan)
    files(plan)
    accessibility(plan)
    notifications(plan)
    walk(plan)
    plan.finish()


def main():
    if sys.argv[1] == 'in-session':
        with open(sys.argv[2], 'w', encoding='utf-8') as sys.stdout:
            day()
    session, daemon = sys.argv[1:]
    environment = {**os.environ, 'PYTHONDONTWRITEBYTECODE': '1'}
    for name in 'HOME', 'XDG_RUNTIME_DIR', 'XDG_CONFIG_HOME', 'XDG_DATA_HOME', 'XDG_CACHE_HOME':
        environment[name] = os.path.join(os.environ['TMPDIR'], name)
        os.mkdir(environment[name], 0o700)
    for name in 'DISPLAY', 'WAYLAND_DISPLAY':
        environment.pop(name, None)
    if os.path.basename(daemon) == 'kdbusd':
        environment['PATH'] = f'{os.path.dirname(daemon)}:{environment["PATH"]}'
        which = []
    else:
        which = ['--dbus-daemon', daemon]
    family.adopt()
    # What services write, their bus's standard output, is not TAP.
    results = os.path.join(os.environ['TMPDIR'], 'results')
    status = subprocess.run(
        [session, *which, '--', sys.executable, __file__, 'in-session', results],
        env=environment, stdout=sys.stderr).returncode
    family.bury(PATIENCE)
    with open(results, encoding='utf-8') as file:
        print(file.read(), end='')
    sys.exit(status)


if __name__ == '__main__':
    main()
