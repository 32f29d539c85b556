# SPDX-License-Identifier: LGPL-2.1-or-later
"""Run a tool to its end and keep what it says."""
import os
import signal
import subprocess


def on_signal(number, frame):
    raise SystemExit(128 + number)


def catch_signals():
    """Let SIGTERM and SIGHUP unwind, so that run() can end what it started."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, on_signal)


def run(argv, env=None, cwd=None):
    """Return (exit status, combined output) of a command; 127 if it is not there."""
    try:
        process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=dict(os.environ, **(env or {})),
            cwd=cwd,
            text=True,
            errors='replace',
        )
    except FileNotFoundError:
        return 127, f'{argv[0]}: not found'
    try:
        output, _ = process.communicate()
    except BaseException:
        process.terminate()
        process.communicate()
        raise
    return process.returncode, output
