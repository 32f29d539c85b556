#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The contract of libraries.py with dbus-next, on asyncio."""
import asyncio
import os
import sys

from dbus_next import DBusError, NameFlag, RequestNameReply, Variant
from dbus_next.aio import MessageBus
from dbus_next.service import ServiceInterface, dbus_property, method, signal

FACE = 'org.example.Library'
PATH = '/org/example/library'
FAILED = 'org.example.Error.Failed'


class Service(ServiceInterface):
    """What the client asks. Annotations are signatures here."""

    def __init__(self):
        super().__init__(FACE)
        self.level = 1
        self.leaving = asyncio.Event()

    @method()
    def Nest(self, value: 'a{sa(iv)}') -> 'a{sa(iv)}':
        return value

    @method()
    def Fail(self):
        raise DBusError(FAILED, 'as you wish')

    @method()
    def Fd(self, fd: 'h') -> 'h':
        return fd

    @method()
    def Emit(self, value: 'u'):
        self.Tick(value)

    @signal()
    def Tick(self, value) -> 'u':
        return value

    @method()
    def Quit(self):
        self.leaving.set()

    @dbus_property()
    def Level(self) -> 'u':
        return self.level

    @Level.setter
    def Level(self, value: 'u'):
        self.level = value
        self.emit_properties_changed({'Level': value})


async def serve(name):
    bus = await MessageBus(negotiate_unix_fd=True).connect()
    service = Service()
    bus.export(PATH, service)
    assert await bus.request_name(name) == RequestNameReply.PRIMARY_OWNER
    print('ready', flush=True)
    await service.leaving.wait()
    await bus.release_name(name)


class Client:
    """Each check of the contract."""

    def __init__(self, bus, name):
        self.bus = bus
        self.name = name

    async def connect(self):
        xml = await self.bus.introspect(self.name, PATH)
        self.object = self.bus.get_proxy_object(self.name, PATH, xml)
        self.face = self.object.get_interface(FACE)
        self.xml = xml
        dbus = 'org.freedesktop.DBus'
        xml = await self.bus.introspect(dbus, '/org/freedesktop/DBus')
        self.driver = self.bus.get_proxy_object(dbus, '/org/freedesktop/DBus',
                                                xml).get_interface(dbus)

    async def fails(self, call):
        try:
            await call()
        except DBusError as error:
            return error.type, error.text
        raise AssertionError('success')

    async def nested(self):
        value = {'one': [[-1, Variant('s', 'text')], [2, Variant('ai', [3, 4])]], 'none': []}
        assert await self.face.call_nest(value) == value

    async def error(self):
        assert await self.fails(self.face.call_fail) == (FAILED, 'as you wish')

    async def unknown(self):
        # Not in what introspection says, so that the name of another method is lent.
        method = next(m for i in self.object.introspection.interfaces if i.name == FACE
                      for m in i.methods if m.name == 'Fail')
        method.name = 'Nothing'
        self.face._add_method(method)
        assert (await self.fails(self.face.call_nothing))[0].endswith('.UnknownMethod')

    async def fd(self):
        ends = os.pipe()
        back = await self.face.call_fd(ends[0])
        assert back != ends[0] and os.path.sameopenfile(back, ends[0])

    async def property(self):
        assert await self.face.get_level() == 1
        await self.face.set_level(77)
        assert await self.face.get_level() == 77
        properties = self.object.get_interface('org.freedesktop.DBus.Properties')
        assert await properties.call_get_all(FACE) == {'Level': Variant('u', 77)}

    async def changed(self):
        seen = asyncio.get_running_loop().create_future()
        properties = self.object.get_interface('org.freedesktop.DBus.Properties')
        properties.on_properties_changed(lambda face, values, _: seen.set_result((face, values)))
        await self.face.set_level(77)
        assert await seen == (FACE, {'Level': Variant('u', 77)})

    async def signal(self):
        seen = asyncio.get_running_loop().create_future()
        self.face.on_tick(seen.set_result)
        await self.face.call_emit(4711)
        assert await seen == 4711

    async def introspection(self):
        nest = next(m for i in self.xml.interfaces if i.name == FACE
                    for m in i.methods if m.name == 'Nest')
        assert nest.in_signature == nest.out_signature == 'a{sa(iv)}'

    async def taken(self):
        reply = await self.bus.request_name(self.name, NameFlag.DO_NOT_QUEUE)
        assert reply == RequestNameReply.EXISTS

    async def gone(self):
        seen = asyncio.get_running_loop().create_future()

        def changed(name, before, after):
            if name == self.name:
                seen.set_result((before, after))

        self.driver.on_name_owner_changed(changed)
        await self.face.call_quit()
        before, after = await seen
        assert before and not after


async def ask(name, *checks):
    client = Client(await MessageBus(negotiate_unix_fd=True).connect(), name)
    await client.connect()
    for check in checks:
        await getattr(client, check)()
        print('ok', check, flush=True)


if __name__ == '__main__':
    asyncio.run({'serve': serve, 'ask': ask}[sys.argv[1]](*sys.argv[2:]))
