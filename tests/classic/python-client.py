#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""A service and its client with dbus-python and a main loop; ends well if all is as expected."""
import os
import subprocess
import sys

import dbus
import dbus.mainloop.glib
import dbus.service
from gi.repository import GLib

NAME = 'org.example.Python'
PATH = '/org/example/python'
FACE = 'org.example.Python'


class Service(dbus.service.Object):
    """What the client asks."""

    def __init__(self, bus, loop):
        self.name = dbus.service.BusName(NAME, bus)
        self.loop = loop
        super().__init__(bus, PATH)

    @dbus.service.method(FACE, in_signature='a{sv}', out_signature='a{sv}')
    def Echo(self, value):
        return value

    @dbus.service.method(FACE, in_signature='i')
    def Divide(self, by):
        return 1 // by

    @dbus.service.signal(FACE, signature='is')
    def Changed(self, number, text):
        pass

    @dbus.service.method(FACE)
    def Change(self):
        self.Changed(42, 'text')

    @dbus.service.method(FACE)
    def Quit(self):
        GLib.idle_add(self.loop.quit)


def serve():
    loop = GLib.MainLoop()
    service = Service(dbus.SessionBus(), loop)
    print('ready', flush=True)
    loop.run()
    service.remove_from_connection()


def ask():
    bus = dbus.SessionBus()
    loop = GLib.MainLoop()
    service = dbus.Interface(bus.get_object(NAME, PATH), FACE)
    value = {'a': dbus.Int32(1), 'b': dbus.String('x'), 'c': dbus.Array([1.5, 2.5])}
    assert service.Echo(value) == value
    try:
        service.Divide(0)
        raise AssertionError('no exception')
    except dbus.DBusException as error:
        assert 'ZeroDivisionError' in error.get_dbus_name(), error
    seen = []

    def changed(number, text):
        seen.append((number, text))
        loop.quit()

    service.connect_to_signal('Changed', changed)
    service.Change()
    loop.run()
    assert seen == [(42, 'text')], seen
    owners = []

    def owner_changed(owner):
        owners.append(owner)
        if not owner:
            loop.quit()

    bus.watch_name_owner(NAME, owner_changed)
    service.Quit()
    loop.run()
    assert owners[-1] == '' and len(owners) == 2, owners


def main():
    dbus.mainloop.glib.DBusGMainLoop(set_as_default=True)
    if sys.argv[1:] == ['serve']:
        serve()
        return
    server = subprocess.Popen([sys.executable, __file__, 'serve'], stdout=subprocess.PIPE,
                              text=True)
    assert server.stdout.readline() == 'ready\n'
    ask()
    assert server.wait() == 0


if __name__ == '__main__':
    sys.dont_write_bytecode = True
    os.environ.setdefault('PYTHONDONTWRITEBYTECODE', '1')
    main()
