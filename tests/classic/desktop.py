#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What a desktop's session bus carries: a notification daemon and the portals, as Debian has them.

usage: desktop.py KDBUS-RUN-SESSION DAEMON

dunst shows on an X server of its own. Nothing but the bus starts the services.
"""
import os
import subprocess
import sys

from gi.repository import Gio, GLib

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, '..', 'repo'))
import family  # noqa: E402
from bus import PATIENCE  # noqa: E402
from tap import Plan  # noqa: E402

SHOWN = ('org.freedesktop.Notifications', '/org/freedesktop/Notifications')
PORTAL = ('org.freedesktop.portal.Desktop', '/org/freedesktop/portal/desktop')
PROPERTIES = 'org.freedesktop.DBus.Properties'
# What is shown stays until it is closed, however long that takes.
DUNSTRC = '\n'.join(f'[urgency_{which}]\ntimeout = 0' for which in ('low', 'normal', 'critical'))


class Session:
    """Programs of a session, by plain calls."""

    def __init__(self):
        self.bus = Gio.bus_get_sync(Gio.BusType.SESSION)
        self.signals = []
        self.bus.signal_subscribe(None, None, None, SHOWN[1], None, 0, self.arrived)

    def arrived(self, _bus, _sender, _path, face, member, parameters):
        self.signals.append((face.split('.')[-1], member, parameters.unpack()))

    def call(self, to, face, method, signature, *arguments):
        parameters = GLib.Variant(signature, arguments)
        return self.bus.call_sync(*to, face, method, parameters, None, 0, PATIENCE * 1000,
                                  None).unpack()

    def get(self, to, face, name):
        return self.call(to, PROPERTIES, 'Get', '(ss)', face, name)[0]

    def wait(self, true):
        """Until something is true; not all of it is announced by a signal."""
        again = GLib.timeout_add(20, lambda: True)
        late = GLib.get_monotonic_time() + PATIENCE * 1000000
        while not true():
            GLib.MainContext.default().iteration(True)
            if GLib.get_monotonic_time() > late:
                raise AssertionError(f'it never was, after {self.signals}')
        GLib.source_remove(again)

    def displayed(self, number):
        self.wait(lambda: self.get(SHOWN, 'org.dunstproject.cmd0', 'displayedLength') == number)


def notifications(session):
    who = session.call(SHOWN, SHOWN[0], 'GetServerInformation', '()')
    assert who[0] == 'dunst', who
    assert 'body' in session.call(SHOWN, SHOWN[0], 'GetCapabilities', '()')[0]
    number, = session.call(SHOWN, SHOWN[0], 'Notify', '(susssasa{sv}i)', 'test', 0, '', 'Summary',
                           'Body with ümlauts', ['default', 'Open'],
                           {'urgency': GLib.Variant('y', 2)}, 0)
    session.displayed(1)
    session.call(SHOWN, SHOWN[0], 'CloseNotification', '(u)', number)
    session.wait(lambda: ('Notifications', 'NotificationClosed', (number, 3)) in session.signals)
    session.displayed(0)


def sent(session):
    result = subprocess.run(['notify-send', '-t', '0', '-p', 'Summary', 'Body'], timeout=PATIENCE,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert result.returncode == 0, result.stdout
    session.displayed(1)
    session.call(SHOWN, SHOWN[0], 'CloseNotification', '(u)', int(result.stdout))
    session.displayed(0)


def settings(session):
    """The portal asks its backend, which asks GSettings."""
    face = 'org.freedesktop.portal.Settings'
    assert session.get(PORTAL, face, 'version') >= 1
    everything, = session.call(PORTAL, face, 'ReadAll', '(as)', ['org.gnome.*'])
    assert isinstance(everything, dict), everything


def portal_notification(session):
    """A sandboxed program's way to dunst: over the portal and its backend."""
    face = 'org.freedesktop.portal.Notification'
    session.call(PORTAL, face, 'AddNotification', '(sa{sv})', 'one',
                 {'title': GLib.Variant('s', 'Title'), 'body': GLib.Variant('s', 'Body')})
    session.displayed(1)
    session.call(PORTAL, face, 'RemoveNotification', '(s)', 'one')
    session.displayed(0)


def introspection(session):
    for to in SHOWN, PORTAL:
        xml, = session.call(to, 'org.freedesktop.DBus.Introspectable', 'Introspect', '()')
        faces = {face.name for face in Gio.DBusNodeInfo.new_for_xml(xml).interfaces}
        assert PROPERTIES in faces, xml


def day():
    plan = Plan()
    session = Session()
    for what in notifications, sent, settings, portal_notification, introspection:
        problems = []
        try:
            what(session)
        except (AssertionError, GLib.Error, ValueError) as error:
            problems.append(f'{type(error).__name__}: {error}')
        plan.check(what.__name__.replace('_', ' '), problems)
    plan.finish()


def display():
    """An X server on a number that was free; nobody else finds it."""
    reader, writer = os.pipe()
    server = subprocess.Popen(
        ['Xvfb', '-displayfd', str(writer), '-screen', '0', '800x600x24', '-nolisten', 'tcp'],
        pass_fds=[writer], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL)
    os.close(writer)
    with os.fdopen(reader) as file:
        number = file.readline().strip()
    if not number:
        raise SystemExit(f'Xvfb does not start: {server.wait()}')
    return server, f':{number}'


def private_environment():
    environment = {**os.environ, 'PYTHONDONTWRITEBYTECODE': '1', 'LC_ALL': 'C.UTF-8'}
    for name in 'HOME', 'XDG_RUNTIME_DIR', 'XDG_CONFIG_HOME', 'XDG_DATA_HOME', 'XDG_CACHE_HOME':
        environment[name] = os.path.join(os.environ['TMPDIR'], name)
        os.mkdir(environment[name], 0o700)
    folder = os.path.join(environment['XDG_CONFIG_HOME'], 'dunst')
    os.mkdir(folder)
    with open(os.path.join(folder, 'dunstrc'), 'w', encoding='utf-8') as file:
        file.write(DUNSTRC)
    environment.pop('WAYLAND_DISPLAY', None)
    return environment


def main():
    if sys.argv[1] == 'in-session':
        with open(sys.argv[2], 'w', encoding='utf-8') as sys.stdout:
            day()
    session, daemon = sys.argv[1:]
    family.adopt()
    # The document portal mounts; without leave to do so, all goes on without that.
    family.own_mounts()
    environment = private_environment()
    server, environment['DISPLAY'] = display()
    if os.path.basename(daemon) == 'kdbusd':
        environment['PATH'] = f'{os.path.dirname(daemon)}:{environment["PATH"]}'
        which = []
    else:
        which = ['--dbus-daemon', daemon]
    # What services write, their bus's standard output, is not TAP.
    results = os.path.join(os.environ['TMPDIR'], 'results')
    status = subprocess.run(
        [session, *which, '--', sys.executable, __file__, 'in-session', results],
        env=environment, stdout=sys.stderr).returncode
    server.terminate()
    server.wait()
    family.bury(PATIENCE)
    with open(results, encoding='utf-8') as file:
        print(file.read(), end='')
    sys.exit(status)


if __name__ == '__main__':
    main()
