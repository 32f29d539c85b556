#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""tools/setup/packages, doc/dependencies.md and the installer agree."""
import os
import re
import subprocess
import sys

sys.dont_write_bytecode = True
from tap import SOURCE, Plan, read  # noqa: E402


def setup(tool, *args):
    return subprocess.run(
        [os.path.join(SOURCE, 'tools', 'setup', tool), *args],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
    )


def list_problems():
    seen = set()
    for line in read('tools/setup/packages').splitlines():
        if not line or line.startswith('#'):
            continue
        if not re.fullmatch(r'[a-z0-9][a-z0-9.+*-]+ \| (build|check|demo|debug-kernel) \| \S.*', line):
            yield f'not "package | purpose | reason": {line}'
        package = line.split(' ')[0]
        if package in seen:
            yield f'{package} is listed twice'
        seen.add(package)


def document_problems():
    if setup('dependencies').stdout not in read('doc/dependencies.md'):
        yield 'doc/dependencies.md is out of date; run: tools/setup/dependencies --write'


def installer_problems():
    result = setup('install', '--list', 'build', 'check')
    if result.returncode:
        yield f'--list: status {result.returncode}: {result.stdout}'
    result = setup('install', 'no-such-purpose')
    if result.returncode != 2 or 'no-such-purpose' not in result.stdout:
        yield f'unknown purpose: status {result.returncode}: {result.stdout}'


def main():
    plan = Plan()
    plan.check('each package has one purpose and a reason', list_problems())
    plan.check('the document repeats the list', document_problems())
    plan.check('the installer reads the list and refuses what is not in it', installer_problems())
    plan.finish()


if __name__ == '__main__':
    main()
