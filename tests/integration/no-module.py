#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What daemon and library say when the kernel engine is asked for and there is no module.

usage: no-module.py PROGRAM

PROGRAM connects to the user's own bus; KDBUSD names the daemon.
"""
import os
import re
import signal
import subprocess
import sys
import tempfile

RESULTS = []
MISSING = r'this kernel has no kdbusfs: load the module kdbus \(modprobe kdbus\)'
UNPRIVILEGED = r'kdbusfs is not mounted at \S+, and only root can: mount -t kdbusfs kdbusfs \S+'


def run(argv, **variables):
    environment = dict(os.environ, **variables)
    for name in ('KDBUS_DOMAIN', 'KDBUS_ENGINE', 'DBUS_SESSION_BUS_ADDRESS'):
        if name not in variables:
            environment.pop(name, None)
    return subprocess.run(argv, env=environment, capture_output=True, text=True, check=False)


def check(name, result, status, words):
    good = result.returncode == status and not result.stdout and \
        re.fullmatch(words, result.stderr)
    RESULTS.append((name, '' if good else f'{result}'))


def daemon():
    kdbusd = os.environ['KDBUSD']
    line = f'kdbusd: ({MISSING}|{UNPRIVILEGED})\n'
    check('--engine kernel: one line, status 1', run([kdbusd, '--engine', 'kernel']), 1, line)
    check('KDBUS_ENGINE=kernel is the same', run([kdbusd], KDBUS_ENGINE='kernel'), 1, line)
    check('an engine that is not known', run([kdbusd, '--engine', 'warp']), 2,
          r"kdbusd: no engine 'warp', there are user and kernel.*\n")
    check('a variable that is not understood', run([kdbusd], KDBUS_ENGINE='warp'), 2,
          r"kdbusd: no engine 'warp', there are user and kernel.*\n")


def library(program):
    check('the library names the path it tried', run([program], KDBUS_ENGINE='kernel'), 1,
          rf'no bus at /sys/fs/kdbus/{os.geteuid()}-user/bus: kdbusfs is not mounted there; .*\n')
    check('a path below the mount point says the same',
          run([program], KDBUS_DOMAIN='/sys/fs/kdbus'), 1,
          rf'no bus at /sys/fs/kdbus/{os.geteuid()}-user/bus: kdbusfs is not mounted there; .*\n')


def other_engine(program):
    with tempfile.TemporaryDirectory() as folder:
        domain = f'{folder}/domain'
        with subprocess.Popen([os.environ['KDBUSD'], '--domain', domain, '--print-address'],
                              stdout=subprocess.PIPE, text=True) as server:
            server.stdout.readline()
            check('a bus of the user engine is not of this one',
                  run([program], KDBUS_DOMAIN=domain, KDBUS_ENGINE='kernel'), 1,
                  rf'{domain}/{os.geteuid()}-user/bus is not on kdbusfs, .*\n')
            server.send_signal(signal.SIGTERM)


def main():
    with open('/proc/filesystems', encoding='ascii') as systems:
        if 'kdbusfs' in systems.read():
            print('1..0 # SKIP this kernel has kdbusfs')
            return
    daemon()
    library(sys.argv[1])
    other_engine(sys.argv[1])
    print(f'1..{len(RESULTS)}')
    for number, (name, problem) in enumerate(RESULTS, 1):
        print(f'{"not ok" if problem else "ok"} {number} - {name}')
        for line in problem.splitlines():
            print(f'# {line}')
    sys.exit(any(problem for _, problem in RESULTS))


if __name__ == '__main__':
    main()
