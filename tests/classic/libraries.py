#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Client libraries of other languages, as Debian has them, on private session buses.

usage: libraries.py LIBRARY DAEMON...

LIBRARY is a program of the folder libraries/, by its name without a suffix; what must be compiled
is compiled here. It meets itself and GDBus, which is libraries/gio.py, in both roles. The same is
expected on every DAEMON. Each program is both sides:

    PROGRAM serve NAME              owns NAME, writes "ready" and serves until Quit
    PROGRAM ask NAME CHECK...       asks the service NAME, writes "ok CHECK" for each

Interface org.example.Library on /org/example/library:
    Nest(a{sa(iv)}) -> a{sa(iv)}    the same
    Fail() -> error                 org.example.Error.Failed, "as you wish"
    Fd(h) -> h                      the same file
    Emit(u)                         signal Tick(u)
    Quit()                          gives up the name, and ends
    Level, a property (u)           1 at first; PropertiesChanged when set
"""
import os
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, '..', 'repo'))
from bus import Bus, PATIENCE  # noqa: E402
from tap import Plan  # noqa: E402

FOLDER = os.path.join(HERE, 'libraries')
# The checks in their order: Quit ends a service.
CHECKS = ('nested', 'error', 'unknown', 'fd', 'property', 'changed', 'signal', 'introspection',
          'taken', 'gone')
# What a library cannot do, as a service or as a client, on any bus.
CANNOT = {
    'net-dbus': {'serve': ('fd',), 'ask': ('fd',)},
    'ruby-dbus': {'serve': ('fd',), 'ask': ('fd',)},
}


def build_env(scratch, **more):
    """Debian's compilers, also where a user has others; nothing in the user's home."""
    home = os.path.join(scratch, 'home')
    os.makedirs(home, exist_ok=True)
    return {**os.environ, 'HOME': home, 'PATH': '/usr/bin:/bin', **more}


def compiled(command, **more):
    result = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, text=True, **more)
    if result.returncode:
        raise SystemExit(f'{" ".join(command)}: status {result.returncode}\n{result.stdout}')
    return result.stdout


def qt(scratch):
    flags = compiled(['pkg-config', '--cflags', '--libs', 'Qt5DBus']).split()
    prefix = compiled(['pkg-config', '--variable=host_bins', 'Qt5Core']).strip()
    source = os.path.join(FOLDER, 'qt.cc')
    compiled([f'{prefix}/moc', source, '-o', f'{scratch}/qt.moc'])
    compiled(['g++', '-O1', '-fPIC', f'-I{scratch}', source, *flags, '-o', f'{scratch}/qt'])
    return [f'{scratch}/qt']


def sdbus_cpp(scratch):
    flags = compiled(['pkg-config', '--cflags', '--libs', 'sdbus-c++']).split()
    source = os.path.join(FOLDER, 'sdbus-cpp.cc')
    compiled(['g++', '-std=c++17', '-O1', '-pthread', source, *flags, '-o', f'{scratch}/sdbus-cpp'])
    return [f'{scratch}/sdbus-cpp']


def zbus(scratch):
    """With the crates that Debian packages, and no network."""
    folder = f'{scratch}/zbus'
    shutil.copytree(os.path.join(FOLDER, 'zbus'), folder)
    env = build_env(scratch, CARGO_HOME=f'{scratch}/cargo', CARGO_TARGET_DIR=f'{scratch}/target')
    compiled(['/usr/bin/cargo', 'build', '--offline', '--quiet'], cwd=folder, env=env)
    return [f'{scratch}/target/debug/zbus-library']


def godbus(scratch):
    """With the packages that Debian has in /usr/share/gocode, and no network."""
    env = build_env(scratch, GOPATH='/usr/share/gocode', GO111MODULE='off', GOPROXY='off',
                    GOFLAGS='-buildvcs=false', GOCACHE=f'{scratch}/gocache', CGO_ENABLED='0')
    source = os.path.join(FOLDER, 'godbus.go')
    compiled(['/usr/bin/go', 'build', '-o', f'{scratch}/godbus', source], env=env)
    return [f'{scratch}/godbus']

BUILD = {'qt': qt, 'sdbus-cpp': sdbus_cpp, 'zbus': zbus, 'godbus': godbus}
# -P: jeepney.py is not what it imports.
SCRIPTS = {'.py': [sys.executable, '-P'], '.pl': ['/usr/bin/perl'], '.rb': ['/usr/bin/ruby']}


def program(library):
    """The command that runs a library's program."""
    if library in BUILD:
        return BUILD[library](os.environ['TMPDIR'])
    for suffix, interpreter in SCRIPTS.items():
        path = os.path.join(FOLDER, library + suffix)
        if os.path.exists(path):
            return [*interpreter, path]
    raise SystemExit(f'no program for {library}')


class Program:
    """One side of a meeting. What it says on stderr counts only if something else is wrong."""

    def __init__(self, bus, command, *arguments):
        env = build_env(os.environ['TMPDIR'], PYTHONDONTWRITEBYTECODE='1', LC_ALL='C.UTF-8',
                        DBUS_SESSION_BUS_ADDRESS=bus.address)
        self.errors = tempfile.TemporaryFile('w+')
        self.process = subprocess.Popen([*command, *arguments], env=env, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=self.errors, text=True)

    def line(self):
        return self.process.stdout.readline()

    def kill(self):
        self.process.kill()

    def finish(self):
        """Status, output and errors; a hang ends, and shows."""
        end = ''
        try:
            output = self.process.communicate(timeout=PATIENCE)[0]
        except subprocess.TimeoutExpired:
            self.process.kill()
            output = self.process.communicate()[0]
            end = 'it hung\n'
        self.errors.seek(0)
        return self.process.returncode, output, self.errors.read() + end


def meet(bus, server, client, cannot):
    """Problems of a client with a server; both are commands."""
    name = 'org.example.Meeting'
    checks = [check for check in CHECKS if check not in cannot]
    service = Program(bus, server, 'serve', name)
    if service.line() != 'ready\n':
        service.kill()
        yield f'the service is not ready:\n{"".join(service.finish()[1:])}'
        return
    status, output, errors = Program(bus, client, 'ask', name, *checks).finish()
    if status != 0 or output.splitlines() != [f'ok {check}' for check in checks]:
        service.kill()
        yield f'the client ended with {status}, of {", ".join(checks)}:\n{output}{errors}'
    status, output, errors = service.finish()
    if status or output:
        yield f'the service ended with {status}:\n{output}{errors}'


def main():
    library, *daemons = sys.argv[1:]
    plan = Plan()
    command = program(library)
    partner = program('gio')
    cannot = CANNOT.get(library, {'serve': (), 'ask': ()})
    for daemon in daemons:
        bus = Bus(daemon)
        kind = os.path.basename(daemon)
        plan.check(f'{library} and itself on {kind}',
                   meet(bus, command, command, (*cannot['serve'], *cannot['ask'])))
        plan.check(f'{library} asks GDBus on {kind}', meet(bus, partner, command, cannot['ask']))
        plan.check(f'GDBus asks {library} on {kind}', meet(bus, command, partner, cannot['serve']))
        plan.check(f'{kind} ends well', bus.stop())
    plan.finish()


if __name__ == '__main__':
    main()
