#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""A configuration that is read again while others connect, call, wait and are denied.

usage: reload.py DAEMON
"""
import os
import signal
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'repo'))
from place import DENY, OPEN, Place, REFERENCE, may_own, until  # noqa: E402
from rawbus import CALL, DRIVER, DRIVER_PATH, ERROR, ERROR_NAME, RETURN  # noqa: E402
from tap import Plan  # noqa: E402

ROUNDS = 20
BURST = 50


def ask(peer):
    """ReloadConfig, without waiting for it; its serial."""
    return peer.send(CALL, destination=DRIVER, path=DRIVER_PATH, interface=DRIVER,
                     member='ReloadConfig')


def ended(process):
    """What it had logged."""
    process.terminate()
    return process.communicate()[1]


def barrier():
    with Place() as place:
        process = place.start()
        peer, caller = place.peer(), place.peer()
        for number in range(ROUNDS):
            place.config(OPEN if number % 2 else DENY)
            caller.driver('ReloadConfig')
            if may_own(peer, 'a.b') != bool(number % 2):
                yield f'round {number}: answered before it was done'
        ended(process)


def while_clients_connect():
    with Place() as place:
        process = place.start()
        caller, peers = place.peer(), []
        for _ in range(ROUNDS):
            serials = [ask(caller) for _ in range(3)]
            process.send_signal(signal.SIGHUP)
            peers += [place.peer(), place.peer()]
            for serial in serials:
                reply = caller.wait(serial)
                if reply.kind != RETURN:
                    yield reply.string()
        names = {peer.name for peer in peers}
        if len(names) != len(peers):
            yield f'names: {names}'
        for peer in peers:
            if not may_own(peer, 'a.b'):
                yield f'{peer.name} may not own a name'
        ended(process)


def while_policy_denies():
    """A call at a time is denied or not, by the one configuration or the other."""
    with Place(DENY) as place:
        process = place.start()
        peer, caller = place.peer(), place.peer()
        for number in range(ROUNDS):
            place.config(OPEN if number % 2 else DENY)
            serial = ask(caller)
            may_own(peer, 'a.b')
            if not may_own(peer, 'a.c'):
                yield f'round {number}: a.c is denied'
            caller.wait(serial)
        place.config(DENY)
        caller.driver('ReloadConfig')
        if may_own(peer, 'a.b'):
            yield 'the last one does not count'
        ended(process)


def broken_in_a_burst():
    with Place(DENY) as place:
        process = place.start()
        peer = place.peer()
        place.config(OPEN + '<bogus/>')
        for _ in range(BURST):
            process.send_signal(signal.SIGHUP)
        for serial in [ask(peer) for _ in range(BURST)]:
            reply = peer.wait(serial)
            if reply.kind != ERROR or reply.fields[ERROR_NAME] != DRIVER + '.Error.Failed':
                yield f'{reply.fields}'
        if may_own(peer, 'a.b') or not may_own(peer, 'a.c'):
            yield 'the rules have changed'
        place.config(OPEN)
        peer.driver('ReloadConfig')
        if not may_own(peer, 'a.b'):
            yield 'it does not recover'
        ended(process)


def service(name, line):
    return f'[D-BUS Service]\nName={name}\nExec={line}\n'


def many_files_at_once():
    with Place() as place:
        os.mkdir(place.path('services'))
        place.config(OPEN + '<servicedir>services</servicedir>')
        process = place.start()
        peer = place.peer()
        expected = [f'a.b{number}' for number in range(4 * BURST)]

        def listed():
            return peer.driver('ListActivatableNames').body

        for name in expected:
            place.write(f'services/{name}.service', service(name, '/bin/false'))
        if not until(lambda: all(name.encode() + b'\0' in listed() for name in expected)):
            yield 'some are missing'
        for name in expected[1:]:
            os.unlink(place.path(f'services/{name}.service'))
        if not until(lambda: not any(name.encode() + b'\0' in listed()
                                     for name in expected[1:])):
            yield 'some have stayed'
        if b'a.b0\0' not in listed():
            yield 'one too many has gone'
        ended(process)


def while_a_service_starts():
    """Its file goes, and comes back with another program; who waits for it still gets an answer."""
    with Place() as place:
        os.mkdir(place.path('services'))
        os.mkfifo(place.path('gate'))
        line = f"/bin/sh -c 'read x <{place.path('gate')}; exit 7'"
        place.write('services/a.b.service', service('a.b', line))
        place.config(OPEN + '<servicedir>services</servicedir>')
        process = place.start()
        caller, peer = place.peer(), place.peer()
        serials = [caller.send(CALL, destination='a.b', path='/a', interface='a.b', member='M')
                   for _ in range(3)]
        caller.sync()
        # Open once its reader is there: the program runs.
        with open(place.path('gate'), 'w', encoding='utf-8') as gate:
            os.unlink(place.path('services/a.b.service'))
            peer.driver('ReloadConfig')
            place.write('services/a.b.service', service('a.b', '/bin/true'))
            peer.driver('ReloadConfig')
            gate.write('on\n')
        for serial in serials:
            reply = caller.wait(serial)
            if reply.kind != ERROR or '.Spawn.ChildExited' not in reply.fields[ERROR_NAME]:
                yield f'{reply.fields}'
        if caller.sync():
            yield 'something else came'
        ended(process)


RULES = '''<policy context="default">
<allow user="*"/><allow own="*"/><allow send_destination="*"/>
<allow receive_type="method_call"/><allow receive_type="method_return"/>
<allow receive_type="error"/><allow receive_sender="org.freedesktop.DBus"/>
<deny send_interface="a.Sent"/>
<deny receive_interface="a.Received"/>
</policy>'''


def denials():
    """In the log: by rule, or by none."""
    with Place(RULES) as place:
        process = place.start()
        peer, other = place.peer(), place.peer()
        for interface in 'a.Sent', 'a.Received':
            serial = peer.send(CALL, destination=other.name, path='/a', interface=interface,
                               member='M')
            reply = peer.wait(serial)
            if reply.fields.get(ERROR_NAME) != DRIVER + '.Error.AccessDenied':
                yield f'{interface}: {reply.fields}'
            for word in 'matched rules', f'interface="{interface}"', 'sender=":1.0"', 'uid=':
                if word not in reply.string():
                    yield f'{interface}: no {word} in {reply.string()}'
        # A signal, which no rule lets anybody receive
        peer.send(4, destination=other.name, path='/a', interface='a.Other', member='M')
        peer.sync()
        log = ended(process).splitlines()
        config = place.path('bus.conf')
        for what, where in (('send message', f'{config}:6'), ('receive message', f'{config}:7'),
                            ('receive message', 'no rule allows it')):
            if not any(f'Rejected {what}' in line and where in line for line in log):
                yield f'nothing about a {what} with {where} in {log}'


def main():
    plan = Plan()
    plan.check('a reload is a barrier', barrier())
    plan.check('while clients connect', while_clients_connect())
    plan.check('while policy denies', while_policy_denies())
    plan.check('a broken file keeps the old one', broken_in_a_burst())
    plan.check('many files at once', many_files_at_once())
    plan.check('while a service starts', while_a_service_starts())
    if not REFERENCE:
        plan.check('denials name their rule', denials())
    plan.finish()


main()
