#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""kdbus-bench goals: a tiny run; each goal is what its samples say, in words too.

usage: bench-goals.py KDBUS-BENCH KDBUSD
"""
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile

BENCH, KDBUSD = sys.argv[1:3]
REPEAT = 3
GOALS = 17

# Goal: what it is a ratio of, as (row, subjects whose mean it is, nanoseconds on top)
SIDES = {
    'call 4 KiB, both asleep': (('asleep', ['libkdbus'], 0), ('asleep', ['futex'], 0)),
    'call 4 KiB, server in poll': (('in poll', ['libkdbus'], 0),
                                   ('in poll', ['futex', 'unix socket'], 0)),
    'sealed memfd 1 MiB, mapped': (('memfd 1M', ['libkdbus'], 0), ('memfd 64', ['libkdbus'], 0)),
    'the same over a bare socket': (('memfd 1M', ['socket'], 0), ('memfd 64', ['socket'], 0)),
    'third call': (('call 3', ['libkdbus'], 0), ('relayed 64', ['relayed'], 60000)),
    'call 4 KiB, both spinning': (('spinning', ['libkdbus'], 0), ('spinning', ['pipe'], 0)),
    'call 4 KiB, both CPUs busy': (('busy', ['libkdbus'], 0), ('busy', ['no spin'], 0)),
}


def run(*args):
    with tempfile.TemporaryDirectory() as scratch:
        path = os.path.join(scratch, 'goals.json')
        done = subprocess.run([BENCH, 'goals', '--quick', '--json', path, *args],
                              env=dict(os.environ, KDBUSD=KDBUSD), capture_output=True, text=True,
                              check=False)
        if done.returncode or done.stderr:
            return f'status {done.returncode}: {done.stderr}', None
        with open(path, encoding='utf-8') as file:
            return done.stdout, json.load(file)


def side(data, row, subjects, plus):
    samples = [c['samples'] for s in subjects for c in data['cells']
               if (c['row'], c['subject']) == (row, s)]
    return [statistics.mean(v) + plus for v in zip(*samples)]


def words(goal):
    if 'ratio' not in goal:
        return 'not measured'
    if 'goal' not in goal:
        return 'no goal'
    if goal['high'] <= goal['goal']:
        return 'reached'
    return 'missed' if goal['low'] > goal['goal'] else 'not certain'


def goal_problems(data, goal, text):
    name = goal['name']
    if goal['verdict'] != words(goal):
        yield f'{name}: {goal}'
    line = next((row for row in text.splitlines() if row.startswith(f'{name} ')), '')
    if goal['peer'] not in line or not line.endswith(goal['verdict']):
        yield f'{name}: {line!r}'
    if name not in SIDES or 'ratio' not in goal:
        return
    ours, peer = (side(data, *s) for s in SIDES[name])
    ratio = math.prod(a / b for a, b in zip(ours, peer)) ** (1 / len(ours))
    if len(ours) != REPEAT or not math.isclose(ratio, goal['ratio'], rel_tol=1e-6) or \
            not goal['low'] <= ratio <= goal['high']:
        yield f'{name}: {ours} and {peer}: {ratio}, not {goal}'
    for key, samples in (('kdbus_ns', ours), ('peer_ns', peer)):
        if not math.isclose(statistics.median(samples), goal[key], rel_tol=1e-6):
            yield f'{name}: {key} {goal[key]}, samples {samples}'


def lacks(data):
    """What nothing but the machine or the build excuses to be missing."""
    missing = {p['subject'] for p in data['peers'] if not p['measured']}
    two = len(os.sched_getaffinity(0)) > 1
    for goal in data['goals']:
        excused = missing & {'dbus-broker'} and 'broker' in goal['peer']
        excused = excused or not two and ('spinning' in goal['name'] or 'CPUs' in goal['name'])
        if goal['verdict'] == 'not measured' and not excused:
            yield f'{goal["name"]}: not measured'


def complete():
    text, data = run('--repeat', str(REPEAT), '--count', '20')
    if not data:
        return [text]
    problems = [] if len(data['goals']) == GOALS else [f'{len(data["goals"])} goals']
    for goal in data['goals']:
        problems += goal_problems(data, goal, text)
    return problems + list(lacks(data))


def partly():
    """Without its peer no goal is judged."""
    text, data = run('--repeat', '1', '--count', '5', '--only', 'libkdbus')
    if not data:
        return [text]
    return [f'{g["name"]}: {g["verdict"]}' for g in data['goals']
            if g['verdict'] != ('too few repetitions to say' if 'memfd 1 MiB' in g['name'] else
                                'not measured')]


def main():
    tests = (('every goal is what its samples say', complete),
             ('what was not measured is not judged', partly))
    print(f'1..{len(tests)}')
    failed = 0
    for number, (name, test) in enumerate(tests, 1):
        problems = test()
        failed += bool(problems)
        print(f'{"not ok" if problems else "ok"} {number} - {name}')
        for problem in problems:
            print(f'# {problem}')
    return failed > 0


sys.exit(main())
