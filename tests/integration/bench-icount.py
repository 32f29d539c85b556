#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""kdbus-bench icount: what it says of a table that was recorded, and what it refuses.

usage: bench-icount.py KDBUS-BENCH
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

BENCH = sys.argv[1]
TABLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'bench-data', 'icount')
RESULTS = []


def check(name, problems):
    RESULTS.append((name, [p for p in problems if p]))


def icount(*args, **environment):
    return subprocess.run([BENCH, 'icount', *args], env=dict(os.environ, **environment),
                          capture_output=True, text=True, check=False)


def rewritten(folder, change):
    """The recorded table with each line changed; without those that become empty."""
    path = os.path.join(folder, 'table')
    with open(TABLE, encoding='ascii') as old, open(path, 'w', encoding='ascii') as new:
        new.writelines(change(line) for line in old)
    return path


def scaled(kind, factor):
    def change(line):
        words = line.split()
        if words[0:2] == kind.split():
            words[2] = str(int(int(words[2]) * factor))
        return ' '.join(words) + '\n'
    return change


def reported(folder):
    path = os.path.join(folder, 'json')
    run = icount('--json', path, TABLE)
    problems = [run.stderr if run.returncode or run.stderr else '']
    kernels = re.findall(r'^Instructions on Linux (\S+),', run.stdout, re.M)
    with open(path, encoding='utf-8') as file:
        data = json.load(file)
    if [kernel['kernel'] for kernel in data['kernels']] != kernels or len(kernels) != 2:
        problems.append(f'{kernels}: {data}')
    for kernel in data['kernels']:
        goals = {goal['name']: goal for goal in kernel['goals']}
        counts = {(row['kind'], row['bytes']): row['instructions'] for row in kernel['counts']}
        small = next(goal for name, goal in goals.items() if '64 B, to a seqpacket' in name)
        ratio = counts['kdbus-round-trip', 64] / counts['socket-round-trip', 64]
        if abs(small['ratio'] - ratio) > 1e-6 or small['verdict'] != 'reached':
            problems.append(f'{small}, not {ratio}')
        if len(goals) != 5 or len(counts) != 31:
            problems.append(f'{len(goals)} goals, {len(counts)} counts')
        if not re.search(rf'^round trip of two processes +64 .* {ratio:.2f}$', run.stdout, re.M):
            problems.append(f'{ratio} is not in {run.stdout}')
    check('table, goals and JSON agree with what was counted', problems)


def judged(folder):
    cases = [('kdbus-round-trip 64', 1.03, 0, 'missed by less than 3 %'),
             ('kdbus-round-trip 64', 1.06, 1, 'MISSED'),
             ('kdbus-round-trip 8192', 1.2, 1, 'MISSED'),
             ('kdbus-round-trip 65536', 1.8, 1, 'MISSED'),
             ('kdbus-recv 1048576', 1.04, 1, 'MISSED'),
             ('kdbus-memfd-calls 1048576', 1.6, 1, 'MISSED')]
    for kind, factor, status, words in cases:
        run = icount(rewritten(folder, scaled(kind, factor)))
        check(f'{kind} x {factor:.2f}: {words}', [
            '' if run.returncode == status and words in run.stdout else f'{run}'])


def refused(folder):
    cases = [('nothing', lambda _: ''), ('no kernel', lambda line: '' if 'kernel' in line else line),
             ('a count is missing', lambda line: '' if 'kdbus-recv 64 ' in line else line),
             ('something else', lambda line: line.replace('socket', 'a socket'))]
    for what, change in cases:
        run = icount(rewritten(folder, change))
        check(f'no table: {what}', ['' if run.returncode == 2 and 'no complete table' in run.stderr
                                    else f'{run}'])
    run = icount(os.path.join(folder, 'none'))
    check('no file', ['' if run.returncode == 2 and 'cannot read' in run.stderr else f'{run}'])
    run = icount(TABLE, TABLE)
    check('two tables', ['' if run.returncode == 2 and 'at most 1' in run.stderr else f'{run}'])
    run = icount('--json', '/dev/full', TABLE)
    check('a full disk under --json', ['' if run.returncode == 1 and 'No space' in run.stderr
                                       else f'{run}'])


def missing(folder):
    """Nothing to emulate a machine with, and no source around the program."""
    programs = os.path.join(folder, 'bin')
    os.mkdir(programs)
    for name in ('dirname', 'head', 'sed'):
        os.symlink(shutil.which(name), os.path.join(programs, name))
    run = icount(PATH=programs)
    check('no QEMU: said, with what brings it', [
        '' if run.returncode == 1 and 'qemu-system-x86_64 is not installed; try: '
        'tools/setup/install check' in run.stderr and not run.stdout else f'{run}'])
    alone = os.path.join(folder, 'kdbus-bench')
    shutil.copy(BENCH, alone)
    library = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(BENCH))), 'lib')
    run = subprocess.run([alone, 'icount'], env=dict(os.environ, LD_LIBRARY_PATH=library),
                         capture_output=True, text=True, check=False)
    check('an installed program: said, with what to do', [
        '' if run.returncode == 1 and 'kdbus-bench icount TABLE' in run.stderr else f'{run}'])


def main():
    with tempfile.TemporaryDirectory() as folder:
        for test in (reported, judged, refused, missing):
            test(folder)
    print(f'1..{len(RESULTS)}')
    for number, (name, problems) in enumerate(RESULTS, 1):
        print(f'{"not ok" if problems else "ok"} {number} - {name}')
        for problem in problems:
            print('\n'.join(f'# {line}' for line in problem.splitlines()))
    sys.exit(any(problems for _, problems in RESULTS))


if __name__ == '__main__':
    main()
