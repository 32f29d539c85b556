#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Run a program on a private session bus.

usage: with-bus.py DAEMON [--OPTION...] PROGRAM [ARGUMENT...]

DAEMON takes dbus-daemon's options. The program finds the bus in DBUS_SESSION_BUS_ADDRESS and
DBUS_ADDRESS; BUS_IS_REFERENCE is set if it is dbus-daemon. That the daemon is still there at the
end, and ends well when told to, is part of the test.
"""
import itertools
import subprocess
import sys

sys.dont_write_bytecode = True
from bus import Bus  # noqa: E402


def main():
    daemon, *rest = sys.argv[1:]
    options = list(itertools.takewhile(lambda word: word.startswith('--'), rest))
    bus = Bus(daemon, *options)
    status = subprocess.run(rest[len(options):], env=bus.environment).returncode
    problems = bus.stop()
    for problem in problems:
        print(f'Bail out! {problem}')
    sys.exit(status or bool(problems))


if __name__ == '__main__':
    main()
