#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""A stock system bus: Debian's configuration as it is, polkit and the accounts service.

usage: system.py DAEMON

The bus is where the system's would be, and services keep what they keep, but in a mount namespace
of our own. The helper of dbus-daemon starts the services; who asks, root or nobody, decides what
polkit allows.
"""
import json
import os
import pwd
import subprocess
import sys

from gi.repository import Gio, GLib

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, '..', 'repo'))
import family  # noqa: E402
from bus import PATIENCE  # noqa: E402
from tap import Plan  # noqa: E402

ADDRESS = 'unix:path=/run/dbus/system_bus_socket'
HELPER = '/usr/lib/dbus-1.0/dbus-daemon-launch-helper'
DRIVER = ('org.freedesktop.DBus', '/org/freedesktop/DBus', 'org.freedesktop.DBus')
POLKIT = ('org.freedesktop.PolicyKit1', '/org/freedesktop/PolicyKit1/Authority',
          'org.freedesktop.PolicyKit1.Authority')
ACCOUNTS = ('org.freedesktop.Accounts', '/org/freedesktop/Accounts', 'org.freedesktop.Accounts')
USER = (ACCOUNTS[0], '/org/freedesktop/Accounts/User0', 'org.freedesktop.Accounts.User')
ADMINISTER = 'org.freedesktop.accounts.user-administration'
DENIED = 'org.freedesktop.DBus.Error.AccessDenied'
EMAIL = 'root@example.org'


class Client:
    """A connection to the system bus."""

    def __init__(self):
        flags = (Gio.DBusConnectionFlags.AUTHENTICATION_CLIENT |
                 Gio.DBusConnectionFlags.MESSAGE_BUS_CONNECTION)
        self.bus = Gio.DBusConnection.new_for_address_sync(ADDRESS, flags, None, None)

    def call(self, to, method, signature='()', *arguments):
        return self.bus.call_sync(*to, method, GLib.Variant(signature, arguments), None, 0,
                                  PATIENCE * 1000, None).unpack()

    def get(self, to, name):
        return self.call((*to[:2], 'org.freedesktop.DBus.Properties'), 'Get', '(ss)', to[2],
                         name)[0]

    def error(self, to, method, signature='()', *arguments):
        try:
            return 'success', str(self.call(to, method, signature, *arguments))
        except GLib.Error as error:
            return Gio.DBusError.get_remote_error(error), error.message

    def authorized(self):
        """What polkit says of this very connection."""
        subject = ('system-bus-name', {'name': GLib.Variant('s', self.bus.get_unique_name())})
        return self.call(POLKIT, 'CheckAuthorization', '((sa{sv})sa{ss}us)', subject, ADMINISTER,
                         {}, 0, '')[0][0]

    def changed(self, act):
        """Until the user is said to have changed, after act."""
        loop = GLib.MainLoop()
        match = self.bus.signal_subscribe(USER[0], USER[2], 'Changed', USER[1], None, 0,
                                          lambda *_: loop.quit())
        act()
        loop.run()
        self.bus.signal_unsubscribe(match)


def differs(got, expected):
    return [] if got == expected else [f'{got}, not {expected}']


def as_root():
    client = Client()
    yield 'root may administer', differs(client.authorized(), True)
    credentials, = client.call(DRIVER, 'GetConnectionCredentials', '(s)', POLKIT[0])
    yield 'polkit runs as itself', differs(credentials['UnixUserID'],
                                           pwd.getpwnam('polkitd').pw_uid)
    yield 'root is found', differs(client.call(ACCOUNTS, 'FindUserByName', '(s)', 'root'),
                                   (USER[1],))
    yield 'root has a name', differs(client.get(USER, 'UserName'), 'root')
    client.changed(lambda: client.call(USER, 'SetEmail', '(s)', EMAIL))
    yield 'root may change it', differs(client.get(USER, 'Email'), EMAIL)
    for to in POLKIT, ACCOUNTS, USER:
        xml, = client.call((*to[:2], 'org.freedesktop.DBus.Introspectable'), 'Introspect')
        yield f'introspection of {to[2]}', [] if f'"{to[2]}"' in xml else [xml]
    names, = client.call(DRIVER, 'ListActivatableNames')
    yield 'what may be started', [] if {POLKIT[0], ACCOUNTS[0]} <= set(names) else [f'{names}']


def as_nobody():
    client = Client()
    yield 'nobody may not administer', differs(client.authorized(), False)
    yield 'nobody may look', differs(client.get(USER, 'Email'), EMAIL)
    name, text = client.error(USER, 'SetEmail', '(s)', 'nobody@example.org')
    yield 'nobody may not change it', differs(
        name, 'org.freedesktop.Accounts.Error.PermissionDenied') and [f'{name}: {text}']
    for what, call in {
            'own': (DRIVER, 'RequestName', '(su)', 'org.freedesktop.NetworkManager', 0),
            'set the environment': (DRIVER, 'UpdateActivationEnvironment', '(a{ss})', {}),
            'see statistics': ((*DRIVER[:2], f'{DRIVER[2]}.Debug.Stats'), 'GetStats'),
            'monitor': ((*DRIVER[:2], f'{DRIVER[2]}.Monitoring'), 'BecomeMonitor', '(asu)', [], 0),
    }.items():
        yield f'nobody may not {what}', differs(client.error(*call)[0], DENIED)


def results(role, user):
    """What a role yields, run by a user in a process of its own: GLib is not to be forked."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        entry = pwd.getpwnam(user)
        os.setgroups([])
        os.setgid(entry.pw_gid)
        os.setuid(entry.pw_uid)
        with os.fdopen(writer, 'w') as file:
            try:
                for result in role():
                    file.write(json.dumps(result) + '\n')
            except Exception as error:  # whatever it is, it must not reach our caller
                file.write(json.dumps((f'{user} goes on', [repr(error)])) + '\n')
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as file:
        lines = [json.loads(line) for line in file]
    os.waitpid(child, 0)
    return lines


def impossible():
    """Why this cannot be here."""
    if os.getuid() != 0:
        return 'only root starts a system bus'
    with open('/proc/self/status', encoding='ascii') as status:
        if 'NoNewPrivs:\t1' in status.read():
            return 'no_new_privs: the launch helper cannot change its user'
    if os.statvfs(HELPER).f_flag & os.ST_NOSUID:
        return f'{HELPER} is on a file system without set-user-ID'
    why = family.own_mounts()
    return why and f'no mount namespace: {why}'


def fill_mounts():
    """What the bus and its services would write to the system."""
    family.mount('none', '/run', 'tmpfs', 0, 'mode=755')
    os.mkdir('/run/dbus', 0o755)
    family.mount('none', '/var/lib/AccountsService', 'tmpfs', 0, 'mode=755')
    for folder in 'users', 'icons':
        os.mkdir(f'/var/lib/AccountsService/{folder}')


def main():
    daemon, = sys.argv[1:]
    why = impossible()
    if why:
        print(f'1..1\nok 1 - a stock system bus # SKIP {why}')
        return
    family.adopt()
    fill_mounts()
    plan = Plan()
    bus = subprocess.Popen([daemon, '--system', '--nofork', '--print-address'],
                           stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    plan.check('the address', differs(bus.stdout.readline().partition(',')[0].strip(), ADDRESS))
    for role, user in (as_root, 'root'), (as_nobody, 'nobody'):
        lines = results(role, user)
        for result in lines:
            plan.check(*result)
        plan.check(f'{user} came to the end', [] if lines else ['nothing'])
    died = bus.poll()
    bus.terminate()
    status = bus.wait()
    plan.check('the daemon ends well', [] if died is None and not status else [f'{died} {status}'])
    family.bury(PATIENCE)
    plan.finish()


if __name__ == '__main__':
    main()
