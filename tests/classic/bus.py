# SPDX-License-Identifier: LGPL-2.1-or-later
"""A private session bus for tests."""
import os
import subprocess
import tempfile

# Only ends a hang.
PATIENCE = 300


class Bus:
    """A private bus, of the standard session unless options say otherwise."""

    def __init__(self, daemon, *options):
        self.folder = tempfile.TemporaryDirectory(prefix='bus-')
        if not options:
            options = '--session', f'--address=unix:path={self.folder.name}/socket'
        self.process = subprocess.Popen([daemon, *options, '--nofork', '--print-address'],
                                        stdout=subprocess.PIPE, text=True)
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
