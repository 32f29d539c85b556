#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Run an example of the man pages against a private kdbusd.

usage: example.py PROGRAM OUTPUT

KDBUSD names the daemon. OUTPUT is a file with what the program is to print.
"""
import os
import signal
import subprocess
import sys
import tempfile


def start_daemon(domain):
    daemon = subprocess.Popen(
        [os.environ['KDBUSD'], '--domain', domain, '--print-address'],
        stdout=subprocess.PIPE, text=True,
    )
    address = daemon.stdout.readline()
    if not address.startswith(f'kdbus:path={domain}/'):
        sys.exit(f'kdbusd did not start: "{address}"')
    return daemon


def main():
    program, expected = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        daemon = start_daemon(f'{folder}/domain')
        result = subprocess.run(
            [program], check=False, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
            env=dict(os.environ, KDBUS_DOMAIN=f'{folder}/domain'),
        )
        daemon.send_signal(signal.SIGTERM)
        status = daemon.wait()
        left = os.path.exists(f'{folder}/domain')
    with open(expected, encoding='utf-8') as file:
        wanted = file.read()
    if result.returncode or result.stdout != wanted:
        sys.exit(f'status {result.returncode}, it printed "{result.stdout}", not "{wanted}"')
    if status or left:
        sys.exit(f'kdbusd: status {status}, domain {"left behind" if left else "removed"}')


if __name__ == '__main__':
    main()
