#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Random policies decide the same in kdbusd and in dbus-daemon.

usage: policy.py KDBUSD DBUS-DAEMON

Both get the same configuration, the same peers do the same things on both, and everybody must
receive the same messages and errors. POLICY_SEED and POLICY_SEEDS choose other and more
configurations.
"""
import os
import random
import struct
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'repo'))
from bus import Bus  # noqa: E402
from rawbus import CALL, DESTINATION, DRIVER, ERROR, ERROR_NAME, INTERFACE, MEMBER, Peer  # noqa: E402
from rawbus import open_to_all, Refused, REPLY_SERIAL, RETURN, SENDER, SIGNAL, text  # noqa: E402
from tap import Plan  # noqa: E402

SEED = int(os.environ.get('POLICY_SEED', '1'))
SEEDS = int(os.environ.get('POLICY_SEEDS', '25'))
STEPS = 60
NAMES = ['a.b', 'a.b.c', 'a.bc', 'x.y']
INTERFACES = ['i.a', 'i.b', DRIVER]
MEMBERS = ['M', 'N', 'GetId']
PATHS = ['/', '/a', '/a/b']
ERRORS = ['e.a', 'e.b']
TYPES = ['method_call', 'method_return', 'error', 'signal', '*']

# Values that make a rule one about some messages
FIELDS = NAMES + INTERFACES + MEMBERS + PATHS + ERRORS + TYPES[:-1] + ['a', 'org']

# Whatever the rules say, peers can find out that everything so far has happened.
ALWAYS = '''
<policy context="mandatory">
  <allow send_destination="org.freedesktop.DBus" send_interface="org.freedesktop.DBus.Peer"/>
  <allow send_destination="org.freedesktop.DBus" send_interface="org.freedesktop.DBus"
         send_member="AddMatch"/>
  <allow send_destination="org.freedesktop.DBus" send_interface="org.freedesktop.DBus"
         send_member="RequestName"/>
  <allow receive_sender="org.freedesktop.DBus"/>
</policy>'''


class Rules:
    """Random rules, each of which matches something some of the time."""

    def __init__(self, rng):
        self.rng = rng

    def maybe(self, chance, name, values):
        if self.rng.random() >= chance:
            return ''
        return f' {name}="{self.rng.choice(values)}"'

    def message_attributes(self, way, name):
        if self.rng.random() < 0.1:
            attributes = self.maybe(1, f'{way}_error', ERRORS)
        else:
            attributes = self.maybe(0.4, f'{way}_interface', INTERFACES + ['*'])
            if attributes:
                attributes += self.maybe(0.4, f'{way}_member', MEMBERS)
        attributes += self.maybe(0.2, f'{way}_path', PATHS)
        attributes += self.maybe(0.4, f'{way}_type', TYPES)
        attributes += self.maybe(0.4, f'{way}_{name}', NAMES + ['*', DRIVER])
        return attributes

    def send(self):
        attributes = self.message_attributes('send', 'destination')
        if 'send_destination' not in attributes:
            attributes += self.maybe(0.3, 'send_destination_prefix', ['a', 'a.b', 'org'])
        return attributes or ' send_type="*"'

    def receive(self):
        return self.message_attributes('receive', 'sender') or ' receive_type="*"'

    def own(self):
        return self.rng.choice([self.maybe(1, 'own', NAMES + ['*']),
                                self.maybe(1, 'own_prefix', ['a', 'a.b', 'x'])])

    def modifiers(self, kind):
        attributes = self.maybe(0.25, 'eavesdrop', ['true', 'false'])
        attributes += self.maybe(0.1, 'min_fds', ['1', '2'])
        attributes += self.maybe(0.1, 'max_fds', ['0', '1'])
        attributes += self.maybe(0.15, f'{kind}_requested_reply', ['true', 'false'])
        if kind == 'send':
            attributes += self.maybe(0.3, 'send_broadcast', ['true', 'false'])
        return attributes

    def rule(self):
        kind = self.rng.choice([self.own, self.send, self.send, self.receive, self.receive])
        attributes = kind()
        # dbus-daemon 1.14 takes a rule that names no field for one that always matches, and
        # forgets those before it, whatever modifies it.
        if kind != self.own and any(f'"{value}"' in attributes for value in FIELDS):
            attributes += self.modifiers(kind.__name__)
        if 'send_broadcast="true"' in attributes and 'destination' in attributes:
            attributes = attributes.replace('send_broadcast="true"', '')
        return f'  <{self.rng.choice(["allow", "deny"])}{attributes}/>\n'

    def section(self):
        who = self.rng.choice(['context="default"', 'context="default"', 'user="0"', 'user="1"',
                               'user="2"', 'group="1"', 'group="2"', 'context="mandatory"',
                               'at_console="false"'])
        rules = ''.join(self.rule() for _ in range(self.rng.randrange(1, 5)))
        return f'<policy {who}>\n{rules}</policy>\n'

    def all(self):
        basis = ('<policy context="default"><allow user="*"/>'
                 '<allow own="*"/><allow send_type="*"/><allow receive_type="*"/></policy>\n')
        sections = ''.join(self.section() for _ in range(self.rng.randrange(1, 8)))
        return basis + sections + ALWAYS


class World:
    """A bus with its peers."""

    def __init__(self, daemon, policy, users):
        self.folder = tempfile.TemporaryDirectory(prefix='policy-')
        open_to_all(self.folder.name)
        self.socket = os.path.join(self.folder.name, 'socket')
        config = os.path.join(self.folder.name, 'bus.conf')
        with open(config, 'w', encoding='utf-8') as file:
            file.write(f'<busconfig><listen>unix:path={self.socket}</listen>{policy}</busconfig>')
        self.bus = Bus(daemon, f'--config-file={config}')
        self.peers = [Peer(self.socket, uid, gids).hello() for uid, gids in users]
        for number, peer in enumerate(self.peers):
            rules = ["type='signal'"]
            if number == 0:
                rules.append("eavesdrop='true'")
            for rule in rules:
                peer.driver('AddMatch', 's', text(rule))
        for peer in self.peers:
            peer.sync()

    def step(self, action):
        """What everybody receives when one of them does something."""
        number, kind, details = action
        peer = self.peers[number]
        if kind == 'own':
            reply = peer.driver('RequestName', 'su', details)
            result = [show(reply)]
        else:
            fields, fds = details
            peer.send(kind, fds=fds, **fields)
            result = []
        # The sender first: then all that it has caused is on its way.
        for each in [peer] + [p for p in self.peers if p is not peer]:
            result.append([show(m) for m in each.sync()])
        return result

    def answer(self, number, to, serial, kind, name):
        fields = {'destination': to, 'reply_serial': serial}
        if kind == ERROR:
            fields['error_name'] = name
        return self.step((number, kind, (fields, ())))

    def close(self):
        for peer in self.peers:
            peer.close()
        problems = self.bus.stop()
        self.folder.cleanup()
        return problems


def show(m):
    """What must be the same on both buses. How many rules were looked at need not be."""
    fields = m.fields
    words = m.string().split(';')[0].split(',')[0] if m.kind == ERROR else ''
    return (m.kind, fields.get(SENDER), fields.get(DESTINATION), fields.get(INTERFACE),
            fields.get(MEMBER), fields.get(ERROR_NAME), fields.get(REPLY_SERIAL), words)


class Actions:
    """Random things to do."""

    def __init__(self, rng, n_peers, fds):
        self.rng, self.n_peers, self.fds = rng, n_peers, fds

    def next(self):
        rng = self.rng
        number = rng.randrange(self.n_peers)
        if rng.random() < 0.25:
            flags = rng.choice([0, 1, 2, 4])
            name = text(rng.choice(NAMES))
            body = name + bytes(-len(name) % 4) + struct.pack('<I', flags)
            return number, 'own', body
        fields = {'path': rng.choice(PATHS), 'member': rng.choice(MEMBERS)}
        kind = rng.choice([CALL, CALL, SIGNAL])
        if kind == SIGNAL or rng.random() < 0.7:
            fields['interface'] = rng.choice(INTERFACES)
        if kind == CALL or rng.random() < 0.3:
            names = NAMES + [f':1.{n}' for n in range(self.n_peers)] + [DRIVER] * (kind == CALL)
            fields['destination'] = rng.choice(names)
        fds = self.fds[:rng.choice([0, 0, 0, 1, 2])]
        return number, kind, (fields, fds)


def calls_among(result, action, world):
    """(receiver, caller) of calls that arrived at whom they are for."""
    order = [action[0]] + [n for n in range(len(world.peers)) if n != action[0]]
    inboxes = [r for r in result if isinstance(r, list)]
    return [(number, m[1]) for number, inbox in zip(order, inboxes) for m in inbox
            if m[0] == CALL and m[1] != DRIVER and (number or m[2] == world.peers[0].name)]


def run(seed, daemons, fds):
    rng = random.Random(seed)
    users = [(0, [0]), (1, [1]), (2, [2])] if os.geteuid() == 0 else [(None, ())] * 3
    policy = Rules(rng).all()
    worlds = [World(daemon, policy, users) for daemon in daemons]
    problems = []
    try:
        compare(rng, worlds, fds, problems)
    except Refused as refused:
        problems.append(f'a peer was {refused}')
    for world in worlds:
        problems += world.close()
    return [f'seed {seed}: {p}\n{policy}' for p in problems]


def compare(rng, worlds, fds, problems):
    actions = Actions(rng, len(worlds[0].peers), fds)
    for _ in range(STEPS):
        action = actions.next()
        results = [world.step(action) for world in worlds]
        if results[0] != results[1]:
            problems.append(f'{action}\nkdbusd:      {results[0]}\ndbus-daemon: {results[1]}')
            return
        if action[1] != CALL:
            continue
        # One of those who got the call answers it.
        serial = worlds[0].peers[action[0]].serial - 1
        for number, caller in calls_among(results[0], action, worlds[0])[:1]:
            kind, name = rng.choice([(RETURN, None), (ERROR, 'e.a'), (ERROR, 'e.b')])
            replies = [w.answer(number, caller, serial, kind, name) for w in worlds]
            if replies[0] != replies[1]:
                problems.append(f'reply {kind} to {action} by {number}\n'
                                f'kdbusd:      {replies[0]}\ndbus-daemon: {replies[1]}')
                return


def main():
    plan = Plan()
    daemons = sys.argv[1:3]
    fds = [os.open('/dev/null', os.O_RDONLY) for _ in range(2)]
    for seed in range(SEED, SEED + SEEDS):
        plan.check(f'configuration {seed}', run(seed, daemons, fds))
    plan.finish()


if __name__ == '__main__':
    main()
