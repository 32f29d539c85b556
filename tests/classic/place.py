# SPDX-License-Identifier: LGPL-2.1-or-later
"""A place for a bus daemon: a directory with its configuration, which tests change."""
import os
import signal
import struct
import subprocess
import sys
import tempfile
import time

from rawbus import open_to_all, PATIENCE, Peer, RETURN, text

DAEMON = os.path.abspath(sys.argv[1])
REFERENCE = os.path.basename(DAEMON) == 'dbus-daemon'
OPEN = ('<policy context="default"><allow user="*"/><allow own="*"/>'
        '<allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/></policy>')
ROOT = os.geteuid() == 0


class Place:
    """A directory with a configuration in it, and daemons that are ended with it."""

    def __init__(self, content=OPEN):
        self.folder = tempfile.TemporaryDirectory(prefix='startup-')
        open_to_all(self.folder.name)
        self.socket = self.path('socket')
        self.config(content)
        self.pids = []

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        for pid in self.pids:
            try:
                os.kill(pid, signal.SIGTERM)
            except ProcessLookupError:
                pass
            gone(pid)
        self.folder.cleanup()

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def write(self, name, content):
        path = self.path(name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path + '.new', 'w', encoding='utf-8') as file:
            file.write(content)
        os.rename(path + '.new', path)

    def config(self, content, listen=None):
        listen = listen or f'unix:path={self.socket}'
        self.write('bus.conf', f'<busconfig><listen>{listen}</listen>\n{content}</busconfig>')

    def run(self, *options, **more):
        """To the end, or into the background."""
        return subprocess.run([DAEMON, f'--config-file={self.path("bus.conf")}', *options],
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=PATIENCE, **more)

    def start(self, *options):
        """In the foreground; the process once it serves."""
        process = subprocess.Popen(
            [DAEMON, f'--config-file={self.path("bus.conf")}', '--nofork', '--print-address',
             *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.pids.append(process.pid)
        process.address = process.stdout.readline().strip()
        return process

    def peer(self, **who):
        return Peer(self.socket, **who).hello()


def gone(pid):
    """Wait for the end of a process, a child or not."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        try:
            if os.waitpid(pid, os.WNOHANG)[0]:
                return True
        except ChildProcessError:
            # One that is dead and not waited for yet has gone as well.
            try:
                with open(f'/proc/{pid}/stat', encoding='utf-8') as file:
                    if file.read().rsplit(')', 1)[1].split()[0] == 'Z':
                        return True
            except (FileNotFoundError, ProcessLookupError):
                return True
        time.sleep(0.01)
    return False


def until(condition):
    """Whether it comes true."""
    end = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def may_own(peer, name):
    body = text(name)
    body += bytes(-len(body) % 4) + struct.pack('<I', 0)
    reply = peer.driver('RequestName', 'su', body)
    if reply.kind == RETURN:
        peer.driver('ReleaseName', 's', text(name))
    return reply.kind == RETURN


DENY = OPEN.replace('</policy>', '<deny own="a.b"/></policy>')
