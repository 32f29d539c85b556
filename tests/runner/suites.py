# SPDX-License-Identifier: LGPL-2.1-or-later
"""Configure, build and test one build directory with meson."""
import json
import os
import re

from . import process, tap

# Tests never depend on speed, so a slow machine only needs more patience.
TIMEOUT_MULTIPLIER = '10'
SANITIZER_ENV = {
    'ASAN_OPTIONS': 'detect_leaks=1:strict_string_checks=1:detect_stack_use_after_return=1',
    'UBSAN_OPTIONS': 'halt_on_error=1:print_stacktrace=1',
    'TSAN_OPTIONS': 'halt_on_error=1:second_deadlock_stack=1',
}


def configure(source, directory, options, tally, env=None):
    """Configure; True if it can be built."""
    configured = os.path.exists(os.path.join(directory, 'build.ninja'))
    argv = ['meson', 'setup', *(['--reconfigure'] if configured else []), *options]
    status, output = process.run([*argv, directory, source], env)
    if status:
        tally.fail(f'{os.path.basename(directory)}: configure', output=output)
    return not status


def build(source, directory, options, tally, env=None):
    """Configure and build; True if tests can run. Warnings are errors."""
    if not configure(source, directory, options, tally, env):
        return False
    status, output = process.run(['ninja', '-C', directory], env)
    if status:
        tally.fail(f'{os.path.basename(directory)}: build', output=output)
        return False
    tally.ok()
    return True


def known_tests(directory, suites, names=None):
    """The tests that meson knows of these suites and with these names (None: all), by what the log
    calls them."""
    status, output = process.run(['meson', 'introspect', directory, '--tests'])
    if status:
        raise RuntimeError(f'meson introspect {directory}: {output}')
    tests = {}
    for test in json.loads(output):
        suite = test['suite'][0].rpartition(':')[2]
        if (suites is None or suite in suites) and (names is None or test['name'] in names):
            tests[f'{suite}/{test["name"]}'] = test
    return tests


def read_log(directory):
    """The entries of meson's log, by suite/name; none if there is no log."""
    entries = {}
    path = os.path.join(directory, 'meson-logs', 'testlog.json')
    if not os.path.exists(path):
        return entries
    with open(path, encoding='utf-8', errors='replace') as log:
        for line in log:
            try:
                entry = json.loads(line)
            except ValueError:
                continue
            entries[entry['name'].rpartition(' / ')] = entry
    return entries


def find(entries, key):
    """Meson writes "project:suite / name", or "name" where there is one suite only."""
    suite, _, name = key.partition('/')
    for (head, _, tail), entry in entries.items():
        if tail == name and (not head or re.split(r'[:+]', head)[-1] == suite):
            return entry
    return None


def skip_reason(entry):
    lines = (entry.get('stdout', '') + '\n' + entry.get('stderr', '')).splitlines()
    reasons = [line for line in lines if line.startswith('SKIP: ')]
    return reasons[-1][len('SKIP: '):] if reasons else ''


def judge(what, protocol, entry, tally):
    """Add one entry of the log to tally."""
    result = entry['result']
    output = entry.get('stdout', '') + entry.get('stderr', '')
    broken = '' if result in ('OK', 'SKIP') else f'{result}, status {entry.get("returncode")}'
    if protocol == 'tap':
        good = tap.count(what, entry.get('stdout', ''), broken, tally)
    elif result == 'SKIP':
        tally.skip(what, skip_reason(entry))
        return
    elif broken:
        tally.fail(what, broken)
        good = False
    else:
        tally.ok()
        good = True
    if not good:
        print('\n'.join(f'    {line}' for line in output.rstrip().splitlines()[-200:]))


def test(directory, suites, tally, env=None, names=None):
    """Run the tests of suites (None: all) in an already built directory. With names only those,
    for which what they need is built."""
    label = os.path.basename(directory)
    tests = known_tests(directory, suites, names)
    if not tests:
        return
    log = os.path.join(directory, 'meson-logs', 'testlog.json')
    if os.path.exists(log):
        os.unlink(log)
    argv = ['meson', 'test', '-C', directory, '--quiet', *(names or ['--no-rebuild'])]
    argv += ['--timeout-multiplier', TIMEOUT_MULTIPLIER]
    for suite in suites or ():
        argv += ['--suite', suite]
    status, output = process.run(argv, dict(SANITIZER_ENV, **(env or {})))
    before = tally.failed
    entries = read_log(directory)
    for key, known in sorted(tests.items()):
        entry = find(entries, key)
        if entry is None:
            tally.fail(f'{label}: {key}', 'did not run', output)
        else:
            judge(f'{label}: {key}', known['protocol'], entry, tally)
    if status and tally.failed == before:
        tally.fail(f'{label}: meson test', f'status {status}', output)
