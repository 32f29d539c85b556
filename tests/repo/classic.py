#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""doc/classic.md has every row of the feature list, and names tests that exist."""
import os
import re
import sys

sys.dont_write_bytecode = True
from tap import SOURCE, Plan, read  # noqa: E402

PAGE = 'doc/classic.md'
STATUSES = ('yes', 'part', 'no')
# How many rows each section of the feature list has
SECTIONS = {'0': 10, '1.1': 17, '1.2': 9, '1.3': 13, '1.4': 9, '1.5': 14, '1.6': 11, '1.7': 6,
            '1.8': 10}
FOLDERS = ('tests/classic', 'tests/unit', 'tests/integration')


def rows():
    for line in read(PAGE).splitlines():
        cells = [cell.strip() for cell in line.strip('|').split('|')]
        if line.startswith('|') and len(cells) == 4 and re.match(r'\d', cells[0]):
            yield cells


def row_problems():
    expected = [f'{section}.{n}' for section, count in SECTIONS.items()
                for n in range(1, count + 1)]
    found = [cells[0] for cells in rows()]
    if found != expected:
        yield f'rows are {", ".join(found)}'
    for number, feature, *_ in rows():
        if not feature:
            yield f'row {number} does not say what it is'


def status_problems():
    for number, _, status, tests in rows():
        if status not in STATUSES:
            yield f'row {number}: "{status}"'
        elif (status == 'no') == bool(re.findall('`', tests)):
            yield f'row {number}: "{status}" with tests "{tests}"'


def source(program):
    for folder in FOLDERS:
        for name in (f'{folder}/{program}', f'{folder}/{program}.c'):
            if os.path.exists(os.path.join(SOURCE, name)):
                return read(name)
    return None


def has_case(program, case):
    """A case of a C program is a function; elsewhere it is a text."""
    text = source(program)
    if text is None:
        return False
    if program.endswith('.py'):
        return case in text
    return re.search(rf'^static void (test_)?{case}\(', text, re.M)


def test_problems():
    for number, _, _, tests in rows():
        named = re.findall(r'`([^`:]+): ([^`]+)`', tests)
        if len(named) != tests.count('`') // 2:
            yield f'row {number}: "{tests}"'
        for program, case in named:
            if not has_case(program, case):
                yield f'row {number}: no test `{program}: {case}`'


def main():
    plan = Plan()
    plan.check('every row of the feature list is there', row_problems())
    plan.check('each says how far it is done', status_problems())
    plan.check('each test exists', test_problems())
    plan.finish()


main()
