#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Run a program on a private session bus.

usage: with-bus.py DAEMON PROGRAM [ARGUMENT...]

DAEMON takes dbus-daemon's options. The program finds the bus in DBUS_SESSION_BUS_ADDRESS and
DBUS_ADDRESS; BUS_IS_REFERENCE is set if it is dbus-daemon. That the daemon is still there at the
end, and ends well when told to, is part of the test.
"""
import os
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
# Only ends a hang.
PATIENCE = 60


class Bus:
    """A private session bus."""

    def __init__(self, daemon, *options):
        self.folder = tempfile.TemporaryDirectory(prefix='bus-')
        socket = os.path.join(self.folder.name, 'socket')
        self.process = subprocess.Popen(
            [daemon, '--session', '--nofork', '--print-address', f'--address=unix:path={socket}',
             *options], stdout=subprocess.PIPE, text=True)
        self.address = self.process.stdout.readline().strip()
        if not self.address:
            raise SystemExit(f'{daemon} prints no address')
        self.environment = {**os.environ, 'DBUS_SESSION_BUS_ADDRESS': self.address,
                            'DBUS_ADDRESS': self.address}
        if os.path.basename(daemon) == 'dbus-daemon':
            self.environment['BUS_IS_REFERENCE'] = '1'

    def stop(self):
        """Problems with the end of the daemon."""
        died = self.process.poll()
        self.process.terminate()
        self.process.stdout.close()
        status = self.process.wait(PATIENCE)
        self.folder.cleanup()
        if died is not None:
            return [f'the daemon ended with status {died} in the middle']
        return [f'the daemon ended with status {status}'] if status else []


def main():
    bus = Bus(sys.argv[1])
    status = subprocess.run(sys.argv[2:], env=bus.environment).returncode
    problems = bus.stop()
    for problem in problems:
        print(f'Bail out! {problem}')
    sys.exit(status or bool(problems))


if __name__ == '__main__':
    main()
