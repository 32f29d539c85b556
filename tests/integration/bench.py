#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""kdbus-bench: every subcommand, tiny; what it must refuse; what it must leave behind: nothing.

usage: bench.py KDBUS-BENCH KDBUSD
"""
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

BENCH, KDBUSD = sys.argv[1:3]
RESULTS = []
SCRATCH = tempfile.mkdtemp()


def check(name, problems):
    RESULTS.append((name, [p for p in problems if p]))


def bench(*args):
    environment = dict(os.environ, KDBUSD=KDBUSD)
    return subprocess.run([BENCH, *args], env=environment, capture_output=True, text=True,
                          check=False)


def path(name):
    return os.path.join(SCRATCH, name)


def read_json(name):
    with open(path(name), encoding='utf-8') as file:
        return json.load(file)


def cell_problems(cell, repeat):
    what = f'{cell["row"]}/{cell["subject"]}'
    if len(cell['samples']) != repeat or min(cell['samples']) < 0:
        yield f'{what}: samples {cell["samples"]}'
    low, high = min(cell['samples']), max(cell['samples'])
    for key in ('mean', 'median'):
        if not low * 0.999 <= cell[key] <= high * 1.001:
            yield f'{what}: {key} {cell[key]} is outside of the samples'
    histogram = cell.get('histogram_ns')
    if histogram and sum(n for _, n in histogram['counts']) != histogram['total']:
        yield f'{what}: the histogram does not add up'


def measure(name, *args, rows=(), subjects=()):
    """A tiny run: JSON complete and consistent, each row and subject there and in the text."""
    run = bench(name, '--quick', '--repeat', '2', '--json', path(name + '.json'), *args)
    problems = [run.stderr if run.returncode or run.stderr else '']
    if run.returncode == 0:
        data = read_json(name + '.json')
        if data['schema'] != 'kdbus-bench/1' or data['subcommand'] != name:
            problems.append(f'schema {data["schema"]}, subcommand {data["subcommand"]}')
        for cell in data['cells']:
            problems += cell_problems(cell, 2)
        missing = {p['subject'] for p in data['peers'] if not p['measured']}
        there = {(c['row'], c['subject']) for c in data['cells']}
        for row in rows:
            for subject in subjects:
                if subject not in missing and (row, subject) not in there:
                    problems.append(f'no cell {row}/{subject}')
                if not re.search(rf'^{re.escape(row)} +{re.escape(subject)} ', run.stdout, re.M) \
                        and subject not in missing:
                    problems.append(f'{row}/{subject} is not printed')
    check(f'{name}: rows, subjects, statistics', problems)


FLOORS = ('pipe', 'eventfd', 'futex', 'unix socket')
BUSES = ('dbus-daemon', 'dbus-broker')
CLIENTS = tuple(f'{bus} {client}' for bus in ('daemon', 'broker')
                for client in ('libdbus', 'sd-bus', 'GDBus'))


def measurements():
    measure('pipe', '--count', '50', rows=['ping-pong'], subjects=FLOORS)
    measure('pipe', '--threads', '--count', '50', rows=['ping-pong'], subjects=FLOORS)
    measure('socket', '--count', '40', '--sizes', '1,4k,64k',
            rows=['sync 1', 'async 1', 'sync 4k', 'async 64k'],
            subjects=('socket single', 'socket dbus', 'libkdbus'))
    measure('chart', '--count', '5', '--sizes', '1,4k,1M', rows=['1', '4k', '1M'],
            subjects=('COPY', 'MEMFD', 'socket', *BUSES))
    measure('chart', '--count', '2', '--sizes', '4M', rows=['4M'],
            subjects=('MEMFD', 'socket', *BUSES))
    measure('latency', '--count', '20', rows=['bounce'], subjects=('libkdbus', 'socket', *BUSES))
    measure('rpc', '--count', '5', '--sizes', '4k,64k', rows=['4k', '64k'],
            subjects=('libkdbus', 'socket', *CLIENTS))
    buses = ('libkdbus', *BUSES)
    measure('first', '--count', '3', rows=['connect', 'call 1', 'call 24', 'steady'],
            subjects=buses)
    measure('memfd', '--count', '3', '--sizes', '4k,4M',
            rows=['copy 64', 'pass 4k', 'pass 4M', 'new 4k', 'new 4M'],
            subjects=('socket', *buses))
    measure('fanout', '--count', '3', '--sizes', '1,20',
            rows=['1', '1 no match', '20', '20 no match'], subjects=buses)
    measure('storm', '--count', '3', rows=['cycle', 'memory peak', 'fds after'], subjects=buses)
    measure('scale', '--sizes', '1,3', rows=['1 pair', '3 pairs'], subjects=('socket', *buses))


def rewrite(name, source, change):
    """A copy of a recorded file with changed samples."""
    with open(source, encoding='utf-8') as file:
        data = json.load(file)
    for cell in data['cells']:
        change(cell)
    with open(path(name), 'w', encoding='utf-8') as file:
        json.dump(data, file)
    return path(name)


def slower(row, subject, factor):
    def change(cell):
        if (cell['row'], cell['subject']) == (row, subject):
            cell['samples'] = [sample * factor for sample in cell['samples']]
    return change


def recorded(name):
    here = os.path.dirname(os.path.abspath(__file__))
    return os.path.join(here, 'bench-data', name + '.json')


def compared(*args):
    """The status of compare, and which rows it calls slower."""
    run = bench('compare', *args)
    return run.returncode, re.findall(r'^SLOWER +(\(all rows\)|\S+) +(\S+)', run.stdout, re.M), run


def quiet_on_the_same():
    """Two runs of the same, on an idle and on a very busy machine, in both directions."""
    problems = []
    for name in ('chart', 'quick', 'busy'):
        one, two = recorded(name + '-1'), recorded(name + '-2')
        for first, second in ((one, one), (one, two), (two, one)):
            status, found, run = compared(first, second)
            if status or found or run.stderr:
                problems.append(f'{first}, {second}: {run.stdout}{run.stderr}')
    check('compare: two runs of the same are no regression', problems)


def finds_planted():
    """Each cell of the recorded runs in turn; a slow one may hide only in its own noise."""
    problems = []
    for name, factor, share in (('chart', 1.1, 0.5), ('chart', 1.3, 0.85), ('chart', 1.7, 0.9),
                                ('quick', 1.7, 0.7)):
        with open(recorded(name + '-1'), encoding='utf-8') as file:
            cells = [(c['row'], c['subject']) for c in json.load(file)['cells']]
        missed = []
        for row, subject in cells[::3]:
            planted = rewrite('planted.json', recorded(name + '-2'), slower(row, subject, factor))
            status, found, run = compared(recorded(name + '-1'), planted)
            if status != (1 if found else 0) or set(found) - {(row, subject),
                                                              ('(all rows)', subject)}:
                problems.append(f'{name}, {row}, {subject}: {run.stdout}{run.stderr}')
            if (row, subject) not in found:
                missed.append((row, subject))
        if len(missed) > (1 - share) * len(cells[::3]):
            problems.append(f'{name}: x {factor} is missed in {missed}')
    check('compare: a planted regression is found, and nothing else', problems)


def finds_slow_subject():
    """All rows of a subject a little slower."""
    def change(cell):
        if cell['subject'] == 'COPY':
            cell['samples'] = [sample * 1.15 for sample in cell['samples']]
    planted = rewrite('planted.json', recorded('chart-2'), change)
    status, found, run = compared(recorded('chart-1'), planted)
    check('compare: a subject is found that is a little slower everywhere', [
        '' if status == 1 and ('(all rows)', 'COPY') in found and
        {subject for _, subject in found} == {'COPY'} else run.stdout + run.stderr])


def comparisons():
    quiet_on_the_same()
    finds_planted()
    finds_slow_subject()
    one = recorded('quick-1')
    planted = rewrite('planted.json', recorded('quick-2'), slower('4k', 'COPY', 1.7))
    run = bench('compare', planted, one)
    check('compare: what got faster is no regression', [
        '' if run.returncode == 0 and re.search('^faster +4k +COPY', run.stdout, re.M)
        else run.stdout])
    status, _, run = compared('--threshold', '100', one, planted)
    check('compare: a difference below the threshold is no regression',
          ['' if status == 0 else run.stdout])
    planted = rewrite('planted.json', recorded('chart-2'), slower('4k', 'COPY', 1.7))
    drifted = rewrite('drifted.json', planted,
                      lambda cell: cell.update(samples=[3 * s for s in cell['samples']]))
    status, found, run = compared('--against', 'socket', recorded('chart-1'), drifted)
    check('compare --against: a machine three times as slow is no regression', [
        '' if status == 1 and found == [('4k', 'COPY')] else run.stdout + run.stderr])
    single = [rewrite(f'single-{i}.json', recorded(f'busy-{i}'),
                      lambda cell: cell.update(samples=cell['samples'][:1])) for i in (1, 2)]
    run = bench('compare', *single)
    check('compare: samples that can prove nothing are no success', [
        '' if run.returncode == 2 and 'larger --repeat' in run.stderr else run.stdout + run.stderr])
    empty = rewrite('empty.json', one, lambda cell: cell.update(samples=[0, -1, None]))
    run = bench('compare', empty, one)
    check('compare: cells without usable samples are no success', [
        '' if run.returncode == 2 and 'no row' in run.stderr else run.stdout + run.stderr])


def differing():
    """Whatever the two files do not have in common is said."""
    changes = (
        (lambda d: d['machine'].update(cpu='abacus'), "machine, cpu: 'AMD EPYC' in A, 'abacus'"),
        (lambda d: d['machine'].update(kernel='2.4'), "machine, kernel"),
        (lambda d: d['machine'].update(cpus_usable=64), 'machine, cpus_usable: 2 in A, 64 in B'),
        (lambda d: d['options'].update(pin=[0, 1]), 'options, pin: 1 in A, 0 1 in B'),
        (lambda d: d['options'].update(busy=3), 'options, busy: 0 in A, 3 in B'),
        (lambda d: d['options'].pop('quick'), 'options, quick: yes in A, nothing in B'),
        (lambda d: d['options'].update(new=1), 'options, new: nothing in A, 1 in B'),
        (lambda d: d.update(version='9'), "version: "),
        (lambda d: d.update(libraries='none'), "libraries: "),
        (lambda d: d.update(compiler='tcc'), "compiler: 'gcc"),
        (lambda d: d['peers'][1].update(version='9'), 'version of dbus-daemon: '),
        (lambda d: d['peers'][2].update(measured=False), 'dbus-broker measured: yes in A, no'),
        (lambda d: d['machine'].update(load=[64, 1, 1]), 'other work ran'),
    )
    problems = []
    for change, words in changes:
        with open(recorded('quick-1'), encoding='utf-8') as file:
            data = json.load(file)
        data['machine']['load'] = [0, 0, 0]
        with open(path('first.json'), 'w', encoding='utf-8') as file:
            json.dump(data, file)
        change(data)
        with open(path('second.json'), 'w', encoding='utf-8') as file:
            json.dump(data, file)
        run = bench('compare', path('first.json'), path('second.json'))
        if run.returncode or run.stdout.count('note:') != 1 or words not in run.stdout:
            problems.append(f'{words}: {run.stdout}{run.stderr}')
    data['schema'] = 'kdbus-bench/2'
    with open(path('second.json'), 'w', encoding='utf-8') as file:
        json.dump(data, file)
    run = bench('compare', path('first.json'), path('second.json'))
    if run.returncode != 2 or 'kdbus-bench/2' not in run.stderr:
        problems.append(f'schema: {run.stdout}{run.stderr}')
    check('compare: says what else is different', problems)


def pictures():
    """The page of the tour shows five pictures that are there and are SVG."""
    if subprocess.run(['sh', '-c', 'command -v gnuplot'], stdout=subprocess.DEVNULL,
                      check=False).returncode:
        run = bench('pipe', '--plot', path('pipe.svg'))
        check('--plot without gnuplot: names the package', [
            '' if run.returncode == 2 and 'gnuplot-nox' in run.stderr else run.stderr])
        return
    run = bench('tour', '--count', '5', '--output', path('tour'))
    problems = [run.stderr if run.returncode or run.stderr else '']
    if not run.returncode:
        with open(path('tour/index.html'), encoding='utf-8') as file:
            page = file.read()
        for picture in ('chart.svg', 'rpc.svg', 'latency.svg', 'socket.svg', 'pipe.svg'):
            with open(path('tour/' + picture), encoding='utf-8') as file:
                drawn = file.read()
            # A curve is a path of more than a few points.
            if picture not in page or '</svg>' not in drawn or drawn.count('<path') < 20:
                problems.append(picture)
        problems += ['' if path('tour/index.html') in run.stdout else 'the folder is not named']
    check('tour: tables, pictures, page', problems)
    for name, *args in (('first', '--count', '2'), ('fanout', '--count', '2', '--sizes', '1,3'),
                        ('storm', '--count', '2'), ('scale', '--sizes', '1,2'),
                        ('memfd', '--count', '2')):
        run = bench(name, '--quick', '--repeat', '1', '--plot', path(name + '.svg'), *args)
        with open(path(name + '.svg'), encoding='utf-8') as file:
            drawn = file.read()
        check(f'{name}: --plot draws', [
            '' if run.returncode == 0 and not run.stderr and '</svg>' in drawn else run.stderr])


def descriptors():
    """More memfds than a process may have descriptors: none may stay open.

    The limit leaves room for those that a busy daemon's helper thread has not closed yet.
    """
    run = subprocess.run(
        ['sh', '-c', 'ulimit -n 1024; exec "$@"', 'sh', BENCH, 'memfd', '--quick', '--repeat', '1',
         '--sizes', '4k', '--count', '1500'],
        env=dict(os.environ, KDBUSD=KDBUSD), capture_output=True, text=True, check=False)
    check('memfd: descriptors do not pile up',
          ['' if run.returncode == 0 and not run.stderr else run.stderr])


def corruption():
    cases = [('pipe', subject) for subject in FLOORS]
    cases += [('socket', 'socket single'), ('socket', 'socket dbus'), ('socket', 'libkdbus')]
    cases += [('chart', subject) for subject in ('libkdbus', 'socket', *BUSES)]
    cases += [('rpc', subject) for subject in CLIENTS]
    cases += [('fanout', subject) for subject in ('libkdbus', *BUSES)]
    problems = []
    for name, subject in cases:
        run = bench(name, '--quick', '--count', '9', '--repeat', '1', '--only', subject,
                    '--corrupt', '5')
        missing = run.returncode == 2 and re.search('not installed|build', run.stderr)
        if not missing and (run.returncode != 1 or not re.search('request.*(damaged|not)',
                                                                 run.stderr)):
            problems.append(f'{name}, {subject}: status {run.returncode}: {run.stderr}')
    check('a byte damaged on purpose fails the run over every transport', problems)


def refusals():
    cases = (
        ([], 'no subcommand'),
        (['frobnicate'], 'frobnicate'),
        (['pipe', '--no-such'], 'no such option'),
        (['pipe', '--sizes', '4k'], 'has no option --sizes'),
        (['socket', '--sizes', '4x'], '4x'),
        (['socket', '--sizes', '0'], "'0'"),
        (['socket', '--sizes', '5M'], '5M'),
        (['pipe', '--repeat', '0'], '--repeat'),
        (['pipe', '--repeat'], 'value is missing'),
        (['pipe', '--pin', '1023'], 'CPU 1023'),
        (['pipe', '--engine', 'warp'], 'warp'),
        (['compare', path('none.json'), path('none.json')], 'cannot read'),
        (['compare', BENCH, BENCH], 'was not written by'),
        (['compare', path('pipe.json'), path('chart.json')], 'compare like with like'),
        (['compare', path('pipe.json')], 'takes 2 arguments'),
        (['compare', '--against', 'pigeon', path('pipe.json'), path('pipe.json')], 'pigeon'),
        (['tour'], '--output'),
        (['tour', '--output', path('no/such/folder')], 'cannot make'),
        (['scale', '--pin', '0'], 'has no option --pin'),
        (['scale', '--sizes', '100'], 'at most 64'),
        (['pipe', 'surplus'], 'arguments'),
        (['pipe', '--only', 'carrier pigeon', '--quick'], 'nothing to measure'),
        (['pipe', '--json', path('no/such/file')], 'cannot write'),
    )
    problems = []
    for args, words in cases:
        run = bench(*args)
        if run.returncode != 2 or words not in run.stderr:
            problems.append(f'{args}: status {run.returncode}: {run.stderr}{run.stdout}')
    check('wrong usage: a clear message and status 2', problems)


def descendants(pid):
    found = []
    for entry in filter(str.isdigit, os.listdir('/proc')):
        try:
            with open(f'/proc/{entry}/stat', encoding='ascii', errors='replace') as stat:
                parent = int(stat.read().rpartition(')')[2].split()[1])
        except OSError:
            continue
        if parent == pid:
            found += [int(entry), *descendants(int(entry))]
    return found


def interrupted(*args, children):
    """Interrupt a run once all its children are there; all are gone when it has ended."""
    environment = dict(os.environ, KDBUSD=KDBUSD)
    with subprocess.Popen([BENCH, *args], env=environment, stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE) as run:
        started = []
        while run.poll() is None and len(started) < children:
            started = descendants(run.pid)
            time.sleep(0.01)
        run.send_signal(signal.SIGINT)
        stderr = run.communicate()[1]
    left = [pid for pid in started if os.path.exists(f'/proc/{pid}')]
    check(f'{args[0]}: nothing is left after SIGINT', [
        f'{len(started)} children, {stderr}' if len(started) < children else '',
        f'status {run.returncode}' if run.returncode != -signal.SIGINT else '',
        f'left: {left}' if left else '',
        f'files: {os.listdir(os.environ["XDG_RUNTIME_DIR"])}'
        if [f for f in os.listdir(os.environ['XDG_RUNTIME_DIR'])
            if f.startswith(('kdbus-', 'kdbus-bench-'))] else '',
    ])


def main():
    check('help and version', ['' if bench('--help').returncode == 0 else 'status',
                               '' if 'kdbus-bench' in bench('--version').stdout else 'version'])
    measurements()
    comparisons()
    differing()
    pictures()
    descriptors()
    corruption()
    refusals()
    interrupted('pipe', '--busy', '2', children=12)
    interrupted('socket', children=8)
    interrupted('chart', children=11)
    interrupted('storm', children=9)
    print(f'1..{len(RESULTS)}')
    for number, (name, problems) in enumerate(RESULTS, 1):
        print(f'{"not ok" if problems else "ok"} {number} - {name}')
        for problem in problems:
            print('\n'.join(f'# {line}' for line in problem.splitlines()))
    sys.exit(any(problems for _, problems in RESULTS))


if __name__ == '__main__':
    main()
