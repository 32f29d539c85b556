#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The contract of libraries.py with jeepney, which knows messages and no objects."""
import os
import sys

from jeepney import (DBusAddress, DBusErrorResponse, HeaderFields, MatchRule, MessageType,
                     message_bus, new_error, new_method_call, new_method_return, new_signal)
from jeepney.io.blocking import Proxy, open_dbus_connection

FACE = 'org.example.Library'
PATH = '/org/example/library'
PROPERTIES = 'org.freedesktop.DBus.Properties'
FAILED = 'org.example.Error.Failed'
# One second by default.
PATIENCE = 300
XML = '''<node><interface name="org.example.Library">
  <method name="Nest"><arg type="a{sa(iv)}" direction="in"/>
    <arg type="a{sa(iv)}" direction="out"/></method>
  <property name="Level" type="u" access="readwrite"/>
</interface></node>'''


class Service:
    """What the client asks."""

    def __init__(self, bus):
        self.bus = bus
        self.level = 1
        self.leaving = False
        self.here = DBusAddress(PATH, interface=FACE)

    def answer(self, call):
        fields = call.header.fields
        method = getattr(self, 'do_' + fields[HeaderFields.member].lower(), None)
        if not method:
            return new_error(call, 'org.freedesktop.DBus.Error.UnknownMethod', 's', ('what?',))
        return method(call)

    def do_nest(self, call):
        return new_method_return(call, 'a{sa(iv)}', call.body)

    def do_fail(self, call):
        return new_error(call, FAILED, 's', ('as you wish',))

    def do_fd(self, call):
        return new_method_return(call, 'h', call.body)

    def do_emit(self, call):
        self.bus.send(new_signal(self.here, 'Tick', 'u', call.body))
        return new_method_return(call)

    def do_quit(self, call):
        self.leaving = True
        return new_method_return(call)

    def do_introspect(self, call):
        return new_method_return(call, 's', (XML,))

    def do_get(self, call):
        return new_method_return(call, 'v', (('u', self.level),))

    def do_getall(self, call):
        return new_method_return(call, 'a{sv}', ({'Level': ('u', self.level)},))

    def do_set(self, call):
        value = call.body[2]
        self.level = value[1]
        self.bus.send(new_signal(DBusAddress(PATH, interface=PROPERTIES), 'PropertiesChanged',
                                 'sa{sv}as', (FACE, {'Level': value}, [])))
        return new_method_return(call)


def serve(name):
    with open_dbus_connection(enable_fds=True, auth_timeout=PATIENCE) as bus:
        service = Service(bus)
        assert Proxy(message_bus, bus).RequestName(name) == (1,)
        print('ready', flush=True)
        while not service.leaving:
            message = bus.receive()
            if message.header.message_type == MessageType.method_call:
                bus.send(service.answer(message))
        assert Proxy(message_bus, bus).ReleaseName(name) == (1,)


class Client:
    """Each check of the contract."""

    def __init__(self, bus, name):
        self.bus = bus
        self.name = name
        self.driver = Proxy(message_bus, bus)

    def call(self, method, signature=None, body=(), face=FACE):
        there = DBusAddress(PATH, bus_name=self.name, interface=face)
        answer = self.bus.send_and_get_reply(new_method_call(there, method, signature, body))
        if answer.header.message_type == MessageType.error:
            raise DBusErrorResponse(answer)
        return answer.body

    def fails(self, method):
        try:
            self.call(method)
        except DBusErrorResponse as error:
            return error.name, error.data
        raise AssertionError(f'{method} succeeds')

    def signalled(self, rule, act):
        self.driver.AddMatch(rule)
        with self.bus.filter(rule) as queue:
            act()
            return self.bus.recv_until_filtered(queue).body

    def nested(self):
        value = {'one': [(-1, ('s', 'text')), (2, ('ai', [3, 4]))], 'none': []}
        assert self.call('Nest', 'a{sa(iv)}', (value,)) == (value,)

    def error(self):
        assert self.fails('Fail') == (FAILED, ('as you wish',))

    def unknown(self):
        assert self.fails('Nothing')[0].endswith('.UnknownMethod')

    def fd(self):
        ends = os.pipe()
        back, = self.call('Fd', 'h', (ends[0],))
        assert os.path.sameopenfile(back.to_raw_fd(), ends[0])

    def set_level(self):
        self.call('Set', 'ssv', (FACE, 'Level', ('u', 77)), PROPERTIES)

    def property(self):
        assert self.call('Get', 'ss', (FACE, 'Level'), PROPERTIES) == (('u', 1),)
        self.set_level()
        assert self.call('Get', 'ss', (FACE, 'Level'), PROPERTIES) == (('u', 77),)
        assert self.call('GetAll', 's', (FACE,), PROPERTIES) == ({'Level': ('u', 77)},)

    def changed(self):
        rule = MatchRule(type='signal', interface=PROPERTIES, path=PATH)
        assert self.signalled(rule, self.set_level)[:2] == (FACE, {'Level': ('u', 77)})

    def signal(self):
        rule = MatchRule(type='signal', interface=FACE, member='Tick')
        assert self.signalled(rule, lambda: self.call('Emit', 'u', (4711,))) == (4711,)

    def introspection(self):
        xml, = self.call('Introspect', face='org.freedesktop.DBus.Introspectable')
        assert 'Nest' in xml and 'a{sa(iv)}' in xml, xml

    def taken(self):
        assert self.driver.RequestName(self.name, 4) == (3,)

    def gone(self):
        rule = MatchRule(type='signal', sender='org.freedesktop.DBus', member='NameOwnerChanged')
        rule.add_arg_condition(0, self.name)
        _, before, after = self.signalled(rule, lambda: self.call('Quit'))
        assert before and not after


def ask(name, *checks):
    with open_dbus_connection(enable_fds=True, auth_timeout=PATIENCE) as bus:
        client = Client(bus, name)
        for check in checks:
            getattr(client, check)()
            print('ok', check, flush=True)


if __name__ == '__main__':
    {'serve': serve, 'ask': ask}[sys.argv[1]](*sys.argv[2:])
