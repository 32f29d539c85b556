#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The test runner notices what goes wrong: each case is a test program made to misbehave."""
import contextlib
import io
import json
import os
import sys
import tempfile

sys.dont_write_bytecode = True
from tap import SOURCE, Plan  # noqa: E402

sys.path.insert(0, os.path.join(SOURCE, 'tests'))
from runner import lint, suites  # noqa: E402
from runner.tally import Tally  # noqa: E402

# name: (protocol, shell script, (passed, failed, skipped))
CASES = {
    'TAP, all well': ('tap', 'echo 1..2; echo ok 1 - a; echo ok 2', (2, 0, 0)),
    'TAP, one subtest fails': ('tap', 'echo 1..2; echo ok 1; echo not ok 2 - b', (1, 1, 0)),
    'TAP, crash after the results': ('tap', 'echo 1..1; echo ok 1; kill -SEGV $$', (1, 1, 0)),
    'TAP, crash before the results': ('tap', 'kill -ABRT $$', (0, 1, 0)),
    'TAP, bad status after good results': ('tap', 'echo 1..1; echo ok 1; exit 3', (1, 1, 0)),
    'TAP, end before the last result': ('tap', 'echo 1..2; echo ok 1', (1, 1, 0)),
    'TAP, no output at all': ('tap', 'true', (0, 1, 0)),
    'TAP, skip with a reason': ('tap', 'echo 1..1; echo "ok 1 - a # SKIP no fuse"', (0, 0, 1)),
    'TAP, skip without a reason': ('tap', 'echo 1..1; echo "ok 1 - a # SKIP"', (0, 1, 0)),
    'TAP, all skipped with a reason': ('tap', 'echo "1..0 # SKIP no kvm"', (0, 0, 1)),
    'status 0': ('exitcode', 'true', (1, 0, 0)),
    'status 1': ('exitcode', 'exit 1', (0, 1, 0)),
    'killed': ('exitcode', 'kill -SEGV $$', (0, 1, 0)),
    'status 77 with a reason': ('exitcode', 'echo SKIP: no kvm; exit 77', (0, 0, 1)),
    'status 77 without a reason': ('exitcode', 'exit 77', (0, 1, 0)),
    'a process left behind': ('exitcode', 'sleep 1000 & echo $! > ../left', (0, 1, 0)),
    'a daemon left behind': ('exitcode', '(setsid sleep 1000 &)', (0, 1, 0)),
}

PLANTED = 'int planted(int *p);\nint planted(int *p)\n{\n\tint a[2];\n\n\t%s\n}\n'


@contextlib.contextmanager
def project(files):
    with tempfile.TemporaryDirectory() as folder:
        for name, text in files.items():
            with open(os.path.join(folder, name), 'w', encoding='utf-8') as file:
                file.write(text)
            os.chmod(os.path.join(folder, name), 0o755)
        yield folder


def counts(tally):
    return tally.passed, tally.failed, tally.skipped


def run_case(protocol, script):
    isolate = os.path.join(SOURCE, 'tests', 'isolate')
    meson = (
        "project('case')\n"
        f"add_test_setup('isolated', exe_wrapper: find_program('{isolate}'), is_default: true)\n"
        f"test('case', find_program('case.sh'), protocol: '{protocol}', suite: 'unit',\n"
        "  workdir: meson.current_build_dir())\n"
    )
    said = io.StringIO()
    tally = Tally()
    with project({'meson.build': meson, 'case.sh': f'#!/bin/sh\n{script}\n'}) as folder:
        build = os.path.join(folder, 'build')
        with contextlib.redirect_stdout(said):
            if suites.build(folder, build, [], Tally()):
                suites.test(build, ('unit',), tally)
        left = os.path.join(folder, 'left')
        alive = []
        if os.path.exists(left):
            with open(left, encoding='utf-8') as file:
                pid = file.read().strip()
            alive = [f'process {pid} is still there'] if os.path.exists(f'/proc/{pid}') else []
    return tally, said.getvalue(), alive


def case_problems(protocol, script, expected):
    tally, said, problems = run_case(protocol, script)
    if counts(tally) != expected:
        problems.append(f'(passed, failed, skipped) is {counts(tally)}, not {expected}')
    for what, many in (('FAIL: ', tally.failed), ('SKIP: ', tally.skipped)):
        if said.count(what) != many:
            problems.append(f'{many} times {what}expected')
    return problems + [said] if problems else []


def summary_problems():
    # Added up as tests/run does: the last lines of a long log name what failed.
    total = Tally()
    with contextlib.redirect_stdout(io.StringIO()):
        for what in ('one', 'two'):
            own = Tally()
            own.ok()
            own.fail(what, 'why')
            total.add(own)
    expected = 'FAIL: one: why\nFAIL: two: why\n2 passed, 2 failed, 0 skipped'
    return [] if total.summary() == expected else [total.summary()]


def lint_problems(check, statement, expected):
    command = {'directory': '.', 'file': 'planted.c', 'command': 'cc -c planted.c'}
    said = io.StringIO()
    tally = Tally()
    with project({'planted.c': PLANTED % statement}) as folder:
        build = os.path.join(folder, 'build')
        os.mkdir(build)
        command['directory'] = folder
        with open(os.path.join(build, 'compile_commands.json'), 'w', encoding='utf-8') as file:
            json.dump([command], file)
        with contextlib.redirect_stdout(said):
            check(folder, build, tally)
    if counts(tally) == expected:
        return []
    return [f'(passed, failed, skipped) is {counts(tally)}, not {expected}', said.getvalue()]


def main():
    plan = Plan()
    os.environ['KDBUS_TEST_GRACE'] = '1'
    plan.check('the end names what failed', summary_problems())
    for name, case in CASES.items():
        plan.check(name, case_problems(*case))
    for check in (lint.tidy, lint.cppcheck):
        name = check.__name__
        bad = 'a[0] = 0; return a[2] + *p;'
        plan.check(f'{name}, a mistake', lint_problems(check, bad, (0, 1, 0)))
        good = 'a[0] = *p; return a[0];'
        plan.check(f'{name}, no mistake', lint_problems(check, good, (1, 0, 0)))
    plan.finish()


if __name__ == '__main__':
    main()
