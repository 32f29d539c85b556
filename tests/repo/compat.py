#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""doc/compat.md names tests that exist, and claims nothing without one."""
import os
import re
import sys

sys.dont_write_bytecode = True
from tap import SOURCE, Plan, read  # noqa: E402

STATUSES = ('core', 'part', 'user', 'kernel', 'both', 'open')


def rows():
    for number, line in enumerate(read('doc/compat.md').splitlines(), 1):
        cells = [cell.strip() for cell in line.strip('|').split('|')]
        if line.startswith('|') and len(cells) >= 3 and cells[0] != 'spec row' \
                and not set(line) <= set('|- '):
            yield number, cells


def named(cell):
    return re.findall(r'`([\w-]+): (\w+)`', cell)


def sources(program):
    """Where the source of a test program may be."""
    short = program.split('-', 1)[-1]
    for name in (f'tests/unit/{program}.c', f'tests/unit/wire/{short}.c',
                 f'tests/conformance/{program}.c', f'tests/integration/{program}.c',
                 f'tests/stress/{program}.c',
                 f'tests/vm/{short}.c' if program.startswith('vm-') else ''):
        if name and os.path.exists(os.path.join(SOURCE, name)):
            yield name


def on_kernel(test):
    """Bare tests of the module, and those of tests/conformance, which run on both engines."""
    program = test[0]
    return program.startswith('vm-') or \
        os.path.exists(os.path.join(SOURCE, 'tests', 'conformance', program + '.c'))


def test_problems():
    for number, cells in rows():
        for program, function in named(cells[-1]):
            texts = [read(name) for name in sources(program)]
            if not any(re.search(rf'\b{function}\b', text) for text in texts):
                yield f'line {number}: no test `{program}: {function}`'


def status_problems():
    for number, cells in rows():
        if cells[1] not in STATUSES:
            yield f'line {number}: status "{cells[1]}"'
        elif (cells[1] == 'open') == bool(named(cells[-1])):
            yield f'line {number}: status "{cells[1]}" with tests "{cells[-1]}"'
        elif cells[1] in ('kernel', 'both') and not any(map(on_kernel, named(cells[-1]))):
            yield f'line {number}: status "{cells[1]}" without a test on the kernel'


def main():
    plan = Plan()
    plan.check('the table has rows', [] if len(list(rows())) > 100 else ['hardly any'])
    plan.check('each test that is named exists', test_problems())
    plan.check('a row is open or has a test', status_problems())
    plan.finish()


if __name__ == '__main__':
    main()
