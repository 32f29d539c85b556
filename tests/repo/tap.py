# SPDX-License-Identifier: LGPL-2.1-or-later
"""TAP output and file lists for the checks of the source tree."""
import os
import subprocess
import sys

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def files():
    """Files of the project, relative to SOURCE: what git tracks or would add."""
    if os.path.exists(os.path.join(SOURCE, '.git')):
        # The clone may belong to another user than the one who runs the test.
        listing = subprocess.run(
            ['git', '-c', 'safe.directory=*', '-C', SOURCE, 'ls-files', '-z', '--cached',
             '--others', '--exclude-standard'],
            check=True, stdout=subprocess.PIPE, text=True,
        ).stdout
        names = listing.rstrip('\0').split('\0')
    else:
        names = []
        for folder, folders, leaves in os.walk(SOURCE):
            folders[:] = [f for f in folders if not f.startswith('build') and f != '__pycache__']
            names += [os.path.relpath(os.path.join(folder, leaf), SOURCE) for leaf in leaves]
    return sorted(n for n in names if os.path.isfile(os.path.join(SOURCE, n)))


def read(name):
    """Text of a file, or None if it is not text."""
    with open(os.path.join(SOURCE, name), 'rb') as file:
        try:
            return file.read().decode()
        except UnicodeDecodeError:
            return None


class Plan:
    """Named results, printed at the end; a name with problems is a failure."""

    def __init__(self):
        self.results = []

    def check(self, name, problems):
        self.results.append((name, list(problems)))

    def finish(self):
        print(f'1..{len(self.results)}')
        for number, (name, problems) in enumerate(self.results, 1):
            print(f'{"not ok" if problems else "ok"} {number} - {name}')
            for problem in problems:
                for line in problem.splitlines():
                    print(f'# {line}')
        sys.exit(any(problems for _, problems in self.results))
