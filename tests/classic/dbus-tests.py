#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Debian's reference suite (package dbus-tests) with kdbusd as its daemon.

usage: dbus-tests.py KDBUSD root|user own|external

Every case that faces a bus is run by itself, first with dbus-daemon, then with kdbusd. Each one
that passes with dbus-daemon must pass with kdbusd; what dbus-daemon skips or fails is not asked
of kdbusd, but it must not fail there where dbus-daemon skips.

 * own: the suite starts the daemon, with configurations of its own
 * external: one running session bus for all cases
"""
import os
import re
import shutil
import signal
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'repo'))
from tap import Plan  # noqa: E402

SUITE = '/usr/lib/dbus-1.0/installed-tests/dbus'
REFERENCE = '/usr/bin/dbus-daemon'
PROGRAMS = (
    'test-dbus-daemon',
    'test-dbus-daemon-eavesdrop',
    'test-fdpass',
    'test-header-fields',
    'test-monitor',
    'test-sd-activation',
    'test-uid-permissions',
)
# Only ends a hang.
PATIENCE = 300
NOBODY = 65534
ENDED_WELL = {0}


class User:
    """Who runs the suite, and where."""

    def __init__(self, name):
        self.scratch = os.path.join(os.environ['TMPDIR'], name)
        self.switch = {}
        os.mkdir(self.scratch)
        # Cases that root runs may turn into others: this is their /tmp.
        os.chmod(os.environ['TMPDIR'], 0o711)
        os.chmod(self.scratch, 0o1777)
        if name == 'user' and os.geteuid() == 0:
            self.switch = {'user': NOBODY, 'group': NOBODY, 'extra_groups': []}
            os.chown(self.scratch, NOBODY, NOBODY)
        self.environment = {
            'PATH': os.environ['PATH'],
            'HOME': self.scratch,
            'TMPDIR': self.scratch,
            'XDG_RUNTIME_DIR': self.scratch,
            'DBUS_TEST_DATA': f'{SUITE}/data',
            'DBUS_TEST_EXEC': SUITE,
            'DBUS_TEST_DATADIR': '/usr/share',
        }

    def start(self, command, **more):
        environment = {**self.environment, **more.pop('environment', {})}
        return subprocess.Popen(
            command, env=environment, cwd=self.scratch, stdin=subprocess.DEVNULL,
            start_new_session=True, **self.switch, **more,
        )

    def output(self, command, environment):
        """Exit status and all that a command writes; None: it hung."""
        run = self.start(command, environment=environment, stdout=subprocess.PIPE,
                         stderr=subprocess.STDOUT, text=True, errors='replace')
        try:
            text = run.communicate(timeout=PATIENCE)[0]
            status = run.returncode
        except subprocess.TimeoutExpired:
            os.killpg(run.pid, signal.SIGKILL)
            text, status = run.communicate()[0], None
        # What an aborted program leaves behind
        try:
            os.killpg(run.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        return status, text


class Bus:
    """A daemon as the suite finds it."""

    def __init__(self, user, binary, external):
        self.user = user
        self.environment = {'DBUS_TEST_DAEMON': binary}
        self.process = None
        if external:
            self.process = user.start([binary, '--session', '--nofork', '--print-address'],
                                      stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
            address = self.process.stdout.readline().strip()
            if not address:
                raise SystemExit(f'{binary} --session prints no address')
            self.environment = {'DBUS_TEST_DAEMON_ADDRESS': address}

    def run(self, program, case):
        """'pass', 'skip' or 'fail', and the output."""
        status, text = self.user.output([f'{SUITE}/{program}', '--tap', '-p', case],
                                        self.environment)
        lines = re.findall(rf'^(ok|not ok) \d+ {re.escape(case)}(?: (# .*))?$', text, re.M)
        if status is None:
            return 'fail', f'{text}\nit hung'
        if status not in ENDED_WELL or len(lines) != 1 or lines[0][0] != 'ok':
            return 'fail', f'{text}\nexit status {status}'
        return ('skip' if lines[0][1].upper().startswith('# SKIP') else 'pass'), text

    def stop(self):
        """Problems at the end."""
        if not self.process:
            return []
        died = self.process.poll()
        self.process.terminate()
        self.process.stdout.close()
        self.process.wait(PATIENCE)
        return [f'the daemon ended with {died} in the middle'] if died is not None else []


def cases(user, program):
    status, text = user.output([f'{SUITE}/{program}', '-l'], {})
    found = re.findall(r'^/\S+$', text, re.M)
    if status != 0 or not found:
        raise SystemExit(f'{program} -l: exit status {status}\n{text}')
    return found


def compare(plan, user, reference, ours):
    counts = {'pass': 0, 'skip': 0, 'fail': 0}
    for program in PROGRAMS:
        for case in cases(user, program):
            expected, _ = reference.run(program, case)
            counts[expected] += 1
            if expected == 'fail':
                print(f'# {program} {case}: fails with dbus-daemon, too: not asked')
                continue
            result, text = ours.run(program, case)
            if expected == 'pass':
                plan.check(f'{program} {case}', [] if result == 'pass' else [result, text])
            elif result == 'fail':
                plan.check(f'{program} {case}', ['dbus-daemon skips it, kdbusd fails', text])
    print(f'# dbus-daemon: {counts["pass"]} pass, {counts["skip"]} skip, {counts["fail"]} fail')
    if not counts['pass']:
        plan.check('the suite works', ['nothing passes with dbus-daemon'])


def main():
    binary, who, mode = sys.argv[1:]
    user = User(who)
    # Where an ordinary user can run it
    copy = os.path.join(user.scratch, 'kdbusd')
    shutil.copy(binary, copy)
    os.chmod(copy, 0o755)
    plan = Plan()
    reference = Bus(user, REFERENCE, mode == 'external')
    ours = Bus(user, copy, mode == 'external')
    compare(plan, user, reference, ours)
    reference.stop()
    plan.check('the daemon ends well', ours.stop())
    plan.finish()


if __name__ == '__main__':
    main()
