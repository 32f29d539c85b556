#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The contract of libraries.py with GDBus: the partner that every other library meets."""
import os
import sys

from gi.repository import Gio, GLib

FACE = 'org.example.Library'
PATH = '/org/example/library'
FAILED = 'org.example.Error.Failed'
# Only ends a hang; 25 seconds by default.
WAIT = 300000
XML = '''<node><interface name="org.example.Library">
  <method name="Nest"><arg type="a{sa(iv)}" direction="in"/>
    <arg type="a{sa(iv)}" direction="out"/></method>
  <method name="Fail"/>
  <method name="Fd"><arg type="h" direction="in"/><arg type="h" direction="out"/></method>
  <method name="Emit"><arg type="u" direction="in"/></method>
  <method name="Quit"/>
  <property name="Level" type="u" access="readwrite"/>
  <signal name="Tick"><arg type="u"/></signal>
</interface></node>'''


class Service:
    """What the client asks."""

    def __init__(self, bus, name):
        self.bus = bus
        self.name = name
        self.level = 1
        self.loop = GLib.MainLoop()
        face = Gio.DBusNodeInfo.new_for_xml(XML).interfaces[0]
        bus.register_object(PATH, face, self.called, self.get, self.set)

    def called(self, _bus, _sender, _path, _face, method, parameters, invocation):
        if method == 'Fail':
            invocation.return_dbus_error(FAILED, 'as you wish')
            return
        if method == 'Fd':
            fds = invocation.get_message().get_unix_fd_list()
            invocation.return_value_with_unix_fd_list(parameters, fds)
            return
        if method == 'Emit':
            self.bus.emit_signal(None, PATH, FACE, 'Tick', parameters)
        invocation.return_value(parameters if method == 'Nest' else None)
        if method == 'Quit':
            driver(self.bus, 'ReleaseName', GLib.Variant('(s)', (self.name,)))
            self.bus.flush_sync()
            self.loop.quit()

    def get(self, *_):
        return GLib.Variant('u', self.level)

    def set(self, _bus, _sender, _path, _face, name, value):
        self.level = value.unpack()
        changed = GLib.Variant('(sa{sv}as)', (FACE, {name: value}, []))
        self.bus.emit_signal(None, PATH, 'org.freedesktop.DBus.Properties', 'PropertiesChanged',
                             changed)
        return True


def driver(bus, method, parameters):
    dbus = 'org.freedesktop.DBus'
    return bus.call_sync(dbus, '/org/freedesktop/DBus', dbus, method, parameters, None, 0, WAIT,
                         None)


def serve(name):
    bus = Gio.bus_get_sync(Gio.BusType.SESSION)
    service = Service(bus, name)
    assert driver(bus, 'RequestName', GLib.Variant('(su)', (name, 0))).unpack() == (1,)
    print('ready', flush=True)
    service.loop.run()


class Client:
    """Each check of the contract."""

    def __init__(self, name):
        self.bus = Gio.bus_get_sync(Gio.BusType.SESSION)
        self.name = name
        self.face = Gio.DBusProxy.new_sync(self.bus, 0, None, name, PATH, FACE, None)
        self.properties = Gio.DBusProxy.new_sync(self.bus, 0, None, name, PATH,
                                                 'org.freedesktop.DBus.Properties', None)

    def fails(self, method):
        try:
            self.face.call_sync(method, None, 0, WAIT, None)
        except GLib.Error as error:
            return Gio.DBusError.get_remote_error(error), error.message
        raise AssertionError(f'{method} succeeds')

    def signalled(self, sender, member, act, first=None):
        """The parameters of the signal that follows from act."""
        loop = GLib.MainLoop()
        seen = []

        def arrived(_bus, _sender, _path, _face, _member, parameters):
            seen.append(parameters.unpack())
            loop.quit()

        match = self.bus.signal_subscribe(sender, None, member, None, first, 0, arrived)
        act()
        loop.run()
        self.bus.signal_unsubscribe(match)
        return seen[0]

    def nested(self):
        inner = [(-1, GLib.Variant('s', 'text')), (2, GLib.Variant('ai', [3, 4]))]
        value = GLib.Variant('(a{sa(iv)})', ({'one': inner, 'none': []},))
        back = self.face.call_sync('Nest', value, 0, WAIT, None)
        assert back.get_type_string() == '(a{sa(iv)})', back
        assert back.unpack() == value.unpack(), back

    def error(self):
        name, text = self.fails('Fail')
        # GDBus does not read a text that something else follows, as ruby-dbus sends it.
        assert name == FAILED and ('as you wish' in text or '(sas)' in text), (name, text)

    def unknown(self):
        assert self.fails('Nothing')[0].endswith('.UnknownMethod')

    def fd(self):
        ends = os.pipe()
        fds = Gio.UnixFDList.new()
        fds.append(ends[0])
        answer, back = self.bus.call_with_unix_fd_list_sync(
            self.name, PATH, FACE, 'Fd', GLib.Variant('(h)', (0,)), None, 0, WAIT, fds, None)
        other = back.get(answer.unpack()[0])
        assert os.path.sameopenfile(other, ends[0])

    def get_level(self):
        return self.properties.call_sync('Get', GLib.Variant('(ss)', (FACE, 'Level')), 0, WAIT,
                                         None).unpack()[0]

    def set_level(self):
        self.properties.call_sync(
            'Set', GLib.Variant('(ssv)', (FACE, 'Level', GLib.Variant('u', 77))), 0, WAIT, None)

    def property(self):
        assert self.get_level() == 1
        self.set_level()
        assert self.get_level() == 77
        level = self.properties.call_sync('GetAll', GLib.Variant('(s)', (FACE,)), 0, WAIT, None)
        assert level.unpack()[0] == {'Level': 77}, level

    def changed(self):
        face, values, _ = self.signalled(self.name, 'PropertiesChanged', self.set_level)
        assert face == FACE and values == {'Level': 77}, values

    def signal(self):
        def emit():
            self.face.call_sync('Emit', GLib.Variant('(u)', (4711,)), 0, WAIT, None)

        assert self.signalled(self.name, 'Tick', emit) == (4711,)

    def introspection(self):
        xml = self.bus.call_sync(self.name, PATH, 'org.freedesktop.DBus.Introspectable',
                                 'Introspect', None, None, 0, WAIT, None).unpack()[0]
        face = Gio.DBusNodeInfo.new_for_xml(xml).lookup_interface(FACE)
        nest = face.lookup_method('Nest')
        assert [arg.signature for arg in nest.in_args + nest.out_args] == ['a{sa(iv)}'] * 2, xml

    def taken(self):
        reply = driver(self.bus, 'RequestName', GLib.Variant('(su)', (self.name, 4)))
        assert reply.unpack() == (3,), reply

    def gone(self):
        def leave():
            self.face.call_sync('Quit', None, 0, WAIT, None)

        _, before, after = self.signalled('org.freedesktop.DBus', 'NameOwnerChanged', leave,
                                          self.name)
        assert before and not after


def ask(name, *checks):
    client = Client(name)
    for check in checks:
        getattr(client, check)()
        print('ok', check, flush=True)


if __name__ == '__main__':
    {'serve': serve, 'ask': ask}[sys.argv[1]](*sys.argv[2:])
