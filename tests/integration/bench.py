#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""kdbus-bench: every subcommand, tiny; what it must refuse; what it must leave behind: nothing.

usage: bench.py KDBUS-BENCH KDBUSD
"""
import json
import math
import os
import re
import shutil
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
    return run.stdout


def cell_of(data, row, subject):
    return next(c for c in data['cells'] if (c['row'], c['subject']) == (row, subject))


def floor(text):
    """The tables of the floor, next to the samples they come from."""
    data = read_json('rpc.json')
    problems = []
    for row in ('4k', '64k'):
        socket, relay = (cell_of(data, row, s)['samples'] for s in ('socket', 'socket dbus'))
        for library, name in (('libdbus', 'libdbus'), ('GLib', 'GDBus')):
            direct = cell_of(data, row, f'direct {name}')['samples']
            floors = [a + b - c for a, b, c in zip(direct, relay, socket)]
            shown = re.findall(rf'^ *{row} {library} +([\d.]+|-)  (.*)$', text, re.M)
            if len(shown) != 2:
                problems.append(f'{row} {library}: {len(shown)} lines')
            elif min(floors) <= 0:
                problems.append('' if shown[0][0] == '-' else f'{row} {library}: {shown[0]}')
            else:
                taken = cell_of(data, row, f'kdbusd {name}')['samples']
                ratio = math.prod(b / a for a, b in zip(floors, taken)) ** (1 / len(floors))
                if abs(float(shown[0][0]) - sum(floors) / len(floors) / 1000) > 0.02 or \
                        not re.search(rf'  {ratio:.2f} \([\d.]+ - [\d.]+\)$', shown[0][1]):
                    problems.append(f'{row} {library}: {floors}, {ratio}, but {shown[0]}')
    check('rpc: the floor is what it says', problems)


FLOORS = ('pipe', 'eventfd', 'futex', 'unix socket')
BUSES = ('dbus-daemon', 'dbus-broker', 'kdbusd')
CLIENTS = tuple(f'{bus} {client}' for bus in ('direct', 'daemon', 'broker', 'kdbusd')
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
    floor(measure('rpc', '--count', '5', '--sizes', '4k,64k', rows=['4k', '64k'],
                  subjects=('libkdbus', 'socket', 'socket dbus', *CLIENTS)))
    buses = ('libkdbus', *BUSES)
    measure('first', '--count', '3', rows=['connect', 'call 1', 'call 24', 'steady'],
            subjects=buses)
    measure('ways', '--count', '40', '--sizes', '64', '--only', 'libkdbus,no spin,relayed,socket',
            rows=['call 64', 'unread 1M', 'one way 4k'],
            subjects=('libkdbus', 'no spin', 'relayed', 'socket'))
    measure('ways', '--count', '5', '--sizes', '4k', '--only', ','.join(('memcpy', *BUSES)),
            rows=['call 4k', 'unread 1M'], subjects=('memcpy', *BUSES))
    measure('memfd', '--count', '3', '--sizes', '4k,4M',
            rows=['copy 64', 'pass 4k', 'pass 4M', 'new 4k', 'new 4M'],
            subjects=('socket', *buses))
    measure('fanout', '--count', '3', '--sizes', '1,20',
            rows=['1', '1 x16', '1 no match', '20', '20 x16', '20 no match'], subjects=buses)
    measure('storm', '--count', '3', subjects=buses,
            rows=['connect', 'idle connection', 'match rule', 'cycle', 'memory peak', 'fds after'])
    measure('storm', '--count', '3', subjects=BUSES, rows=['one write'])
    measure('scale', '--sizes', '3', rows=['1 pair', '3 pairs'], subjects=('socket', *buses))


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
    drawings()


SERIES = re.compile(r'<g id="gnuplot_plot_\w+" ><title>(.*?)</title>(.*?)(?=<g id="gnuplot_plot|$)',
                    re.S)


def series_problems(drawn):
    """Each series can be told from all others, and no mark lies on the axes or beyond."""
    number = r'([\d.]+)'
    left, top, bottom, right = re.search(
        f"stroke='black' +d='M{number},{number} L[^ ]+,{number} L{number},[^']+ Z", drawn).groups()
    looks = {}
    for title, body in SERIES.findall(drawn):
        stroke = re.search(r"<path stroke='(.*?)'( +stroke-dasharray='.*?')?", body)
        marks = re.findall(r"#(gpPt\d+)' transform='translate\(([\d.]+),([\d.]+)\)", body)
        look = (stroke.groups(), {mark for mark, _, _ in marks}.pop())
        if look in looks.values():
            yield f'{title} looks like another one: {look}'
        looks[title] = look
        # The last one stands in the key, right of all.
        for _, x, y in marks[:-1]:
            if not (float(left) + 3 < float(x) < float(right) - 3 and
                    float(top) + 3 < float(y) < float(bottom) - 3):
                yield f'{title}: {x},{y} is cut'
    if len(looks) < 2:
        yield f'{len(looks)} series'


def drawings():
    """Every subcommand's picture; file names with all that a shell or gnuplot could trip over."""
    problems = []
    for name, *args in (('chart', '--count', '2', '--sizes', '1,64k'), ('first', '--count', '2'),
                        ('rpc', '--count', '2', '--sizes', '4k'),
                        ('fanout', '--count', '2', '--sizes', '1,3'), ('storm', '--count', '2'),
                        ('scale', '--sizes', '1,2'), ('memfd', '--count', '2'),
                        ('socket', '--count', '9', '--sizes', '64,4k'),
                        ('pipe', '--count', '20')):
        file = path(f'a\'b" $x\\n%d {name}.svg')
        run = bench(name, '--quick', '--repeat', '2', '--plot', file, *args)
        if run.returncode or run.stderr:
            problems.append(f'{name}: status {run.returncode}: {run.stderr}')
            continue
        with open(file, encoding='utf-8') as svg:
            problems += [f'{name}: {problem}' for problem in series_problems(svg.read())]
    check('--plot: each series can be told from the others, none is cut', problems)


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
    run = bench('pipe', '--quick', '--count', '9', '--repeat', '1', '--corrupt', '1000000')
    if run.returncode != 1 or 'nothing was damaged' not in run.stderr:
        problems.append(f'request never sent: status {run.returncode}: {run.stderr}')
    check('a byte damaged on purpose fails the run over every transport', problems)


def all_options():
    return set(re.findall(r'^  --(\w+)', bench('--help').stdout, re.M))


SUBCOMMANDS = ('chart', 'latency', 'rpc', 'socket', 'pipe', 'first', 'ways', 'memfd', 'goals',
               'scale', 'fanout', 'storm', 'icount', 'tour', 'compare')


def helping():
    """--help works wherever it stands and names the options that are accepted, and no others."""
    problems = []
    options = all_options()
    for name in SUBCOMMANDS:
        run = bench(name, '--help')
        shown = set(re.findall(r'^  --(\w+)', run.stdout, re.M))
        problems += [run.stderr, '' if run.returncode == 0 and name in run.stdout else name]
        for option in options:
            run = bench(name, f'--{option}=1', '--help')
            known = 'has no option' not in run.stderr
            if known != (option in shown):
                problems.append(f'{name} --{option}: shown {option in shown}, known {known}')
        run = bench(name, '--version')
        if run.returncode or not run.stdout.startswith('kdbus-bench '):
            problems.append(f'{name} --version: {run.stdout}{run.stderr}')
    check('--help of each subcommand names its options', problems)


def full_disk():
    """What could not be printed is no success."""
    problems = []
    cases = [['--help'], ['--version'], ['pipe', '--quick', '--repeat', '1', '--count', '9'],
             ['compare', recorded('chart-1'), recorded('chart-2')],
             ['scale', '--quick', '--repeat', '1', '--sizes', '1', '--only', 'socket']]
    for args in cases + [[name, '--help'] for name in SUBCOMMANDS]:
        with open('/dev/full', 'w', encoding='ascii') as full:
            run = subprocess.run([BENCH, *args], env=dict(os.environ, KDBUSD=KDBUSD), stdout=full,
                                 stderr=subprocess.PIPE, text=True, check=False)
        if run.returncode != 1 or 'standard output' not in run.stderr:
            problems.append(f'{args}: status {run.returncode}: {run.stderr}')
    closed = subprocess.run(['sh', '-c', 'exec "$@" >&-', 'sh', BENCH, 'pipe', '--quick',
                             '--repeat', '1', '--count', '9'], env=dict(os.environ, KDBUSD=KDBUSD),
                            stderr=subprocess.PIPE, text=True, check=False)
    if closed.returncode != 1 or 'standard output' not in closed.stderr:
        problems.append(f'closed: status {closed.returncode}: {closed.stderr}')
    check('a full disk under the standard output fails', problems)
    full_files()


def full_files():
    """What did not arrive in a file is no success either."""
    few = ('--quick', '--repeat', '1', '--count', '9')
    os.mkdir(path('full'))
    os.symlink('/dev/full', path('full/chart.txt'))
    cases = [(['pipe', *few, '--json', '/dev/full'], '--json'),
             (['tour', '--count', '2', '--output', path('full')], 'chart.txt')]
    if shutil.which('gnuplot'):
        cases.append((['pipe', *few, '--plot', '/dev/full'], '--plot'))
    problems = []
    for args, words in cases:
        run = bench(*args)
        if run.returncode != 1 or words not in run.stderr or 'No space' not in run.stderr:
            problems.append(f'{args}: status {run.returncode}: {run.stderr}')
    check('a full disk under a file fails', problems)


def limits():
    """A size that a column cannot have is a line with the reason, in each subcommand."""
    problems = []
    for name, words in (('chart', 'COPY above 2M'), ('rpc', 'libkdbus above 2M'),
                        ('socket', 'libkdbus above 2M')):
        for size, told in (('2M', False), ('2097153', True), ('1,4M', True)):
            run = bench(name, '--quick', '--repeat', '1', '--count', '1', '--sizes', size,
                        '--only', 'libkdbus' if name != 'chart' else 'COPY')
            if run.returncode or (re.search(f'^{words} +not measured', run.stdout, re.M)
                                  is not None) != told:
                problems.append(f'{name} {size}: {run.stdout}{run.stderr}')
    # The largest ones in a row: no pool is too small for one that is not given back yet.
    run = bench('socket', '--quick', '--repeat', '1', '--count', '50', '--sizes', '2M',
                '--only', 'libkdbus')
    if run.returncode:
        problems.append(f'50 of 2M: {run.stdout}{run.stderr}')
    run = bench('chart', '--quick', '--repeat', '1', '--count', '1', '--sizes', '1',
                '--only', 'COPY,socket')
    if not re.search(r'^ +1 +\d+ +- +- +- +- +\d+ +[\d.]+ +-$', run.stdout, re.M):
        problems.append(f'--only a column: {run.stdout}{run.stderr}')
    check('sizes and columns that are not measured', problems)
    run = subprocess.run(['sh', '-c', 'ulimit -n 512; exec "$@"', 'sh', BENCH, 'fanout', '--quick',
                          '--sizes', '1,1000'], env=dict(os.environ, KDBUSD=KDBUSD),
                         capture_output=True, text=True, check=False)
    check('fanout: more receivers than descriptors are refused at once', [
        '' if run.returncode == 2 and not run.stdout and 'the limit is 512' in run.stderr
        else run.stdout + run.stderr])


def alone():
    """What is not measured next to libkdbus is no reason to measure nothing."""
    run = bench('storm', '--quick', '--repeat', '1', '--count', '3', '--only', 'libkdbus')
    check('storm: libkdbus alone', ['' if run.returncode == 0 and 'cycle' in run.stdout
                                    else run.stdout + run.stderr])


def losses():
    """What a pair loses is said of a single pair's rate, also if that was not asked for."""
    run = bench('scale', '--quick', '--repeat', '1', '--sizes', '2', '--only', 'socket',
                '--json', path('scale.json'))
    rates = {cell['row']: 1e9 / cell['median'] for cell in read_json('scale.json')['cells']}
    loss = re.search(r'^2 pairs .*?(-?\d+)%', run.stdout, re.M)
    wanted = 100 * (1 - rates['2 pairs'] / 2 / rates['1 pair'])
    check('scale: losses are against one pair', [
        '' if loss and abs(int(loss[1]) - wanted) < 1 else f'{wanted}: {run.stdout}{run.stderr}'])


def kernel_engine():
    """Where it cannot be had, that is a line, and the others are measured."""
    run = bench('latency', '--quick', '--repeat', '1', '--count', '5', '--engine', 'kernel',
                '--json', path('kernel.json'))
    problems = [run.stderr if run.returncode or run.stderr else '']
    if not run.returncode:
        data = read_json('kernel.json')
        peers = {peer['subject']: peer for peer in data['peers']}
        missing = re.search('^libkdbus +not measured: .*kdbusfs', run.stdout, re.MULTILINE)
        if bool(missing) == peers['libkdbus']['measured'] or not peers['socket']['measured']:
            problems.append(run.stdout)
        if data['options']['engine'] != 'kernel':
            problems.append(f'engine {data["options"]["engine"]}')
        with open('/proc/filesystems', encoding='ascii') as systems:
            if 'kdbusfs' not in systems.read() and not missing:
                problems.append('measured without kdbusfs')
    check('--engine kernel: says what is missing', problems)


def refusals():
    cases = (
        ([], 'no subcommand'),
        (['frobnicate'], 'frobnicate'),
        (['pipe', '--no-such'], 'no such option'),
        (['pipe', '--sizes', '4k'], 'has no option --sizes'),
        (['socket', '--sizes', '4x'], '4x'),
        (['socket', '--sizes', '0'], "'0'"),
        (['socket', '--sizes', '5M'], '5M'),
        (['chart', '--sizes', '4k,1,4096'], 'twice'),
        (['scale', '--sizes', '2,2'], 'twice'),
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
        (['tour', '--output', './' * 250 + path('t')], 'too long'),
        *((['chart', '--sizes', sizes], "'' is not valid") for sizes in ('', ',', '1,,2', '1,')),
        (['scale', '--pin', '0'], 'has no option --pin'),
        (['scale', '--sizes', '100'], 'at most 64'),
        (['pipe', 'surplus'], 'arguments'),
        (['pipe', '--repeat', '6'], 'only with --quick'),
        (['latency', '--seconds', '6'], 'only with --quick'),
        (['latency', '--seconds', '9', '--repeat', '9'], 'one of both'),
        (['pipe', '-x'], '-x: no such option'),
        (['pipe', '--only', 'spin', '--pin', '0', '--quick'], 'nothing to measure'),
        (['chart', '--quick', '--kdbusd', path('none')], 'cannot run'),
        (['tour', '--output', path('t'), '--kdbusd', path('none')], 'cannot run'),
        (['chart', '--quick', '--kdbusd', '/'], 'cannot run'),
        (['chart', '--quick', '--kdbusd', '/bin/true'], 'cannot start'),
        (['pipe', '--json', path('same'), '--plot', path('./same')], 'same file'),
        *(([name, '--only', names, '--quick'], "no subject '")
          for name in SUBCOMMANDS[:-3] for names in ('carrier pigeon', '', 'socket,', ',x')),
        (['pipe', '--json', path('no/such/file')], 'cannot write'),
    )
    problems = []
    for args, words in cases:
        run = bench(*args)
        if run.returncode != 2 or words not in run.stderr:
            problems.append(f'{args}: status {run.returncode}: {run.stderr}{run.stdout}')
    run = bench('chart', '--only', 'COPY,dbus-daemonX')
    names = ('libkdbus', 'COPY', 'MEMFD', *BUSES, 'socket')
    problems += [f'{name} is not listed' for name in names if name not in run.stderr]
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


def interrupted(*args, children, by=signal.SIGINT):
    """Interrupt a run once all its children are there; all are gone when it has ended."""
    environment = dict(os.environ, KDBUSD=KDBUSD)
    with subprocess.Popen([BENCH, *args], env=environment, stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE) as run:
        started = []
        while run.poll() is None and len(started) < children:
            started = descendants(run.pid)
            time.sleep(0.01)
        run.send_signal(by)
        stderr = run.communicate()[1]
    left = [pid for pid in started if os.path.exists(f'/proc/{pid}')]
    check(f'{args[0]}: nothing is left after {by.name}', [
        f'{len(started)} children, {stderr}' if len(started) < children else '',
        f'status {run.returncode}' if run.returncode != -by else '',
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
    helping()
    full_disk()
    limits()
    losses()
    alone()
    descriptors()
    corruption()
    kernel_engine()
    refusals()
    interrupted('pipe', '--busy', '2', children=12)
    interrupted('socket', children=8)
    interrupted('chart', children=11)
    interrupted('storm', children=9)
    interrupted('rpc', children=28)
    interrupted('tour', '--output', path('interrupted'), children=12)
    for by in (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        interrupted('chart', children=11, by=by)
    print(f'1..{len(RESULTS)}')
    for number, (name, problems) in enumerate(RESULTS, 1):
        print(f'{"not ok" if problems else "ok"} {number} - {name}')
        for problem in problems:
            print('\n'.join(f'# {line}' for line in problem.splitlines()))
    sys.exit(any(problems for _, problems in RESULTS))


if __name__ == '__main__':
    main()
