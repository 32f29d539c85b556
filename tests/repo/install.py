#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What a user gets: a build without the tests, and make install."""
import json
import os
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
from tap import SOURCE, Plan  # noqa: E402

PREFIX = '/opt/kdbus'
HEADER_COMPILERS = {
    'C99': ['gcc', '-std=c99', '-pedantic', '-xc'],
    'C++': ['g++', '-std=c++11', '-pedantic', '-xc++'],
}


def problems(argv, stdin=''):
    """What a command that should succeed says when it does not."""
    # The variables of an outer make would reach the inner one.
    env = {k: v for k, v in os.environ.items() if not k.startswith(('MAKE', 'MFLAGS'))}
    result = subprocess.run(
        argv, cwd=SOURCE, env=env, input=stdin, text=True, check=False,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )
    return [f'status {result.returncode}: {result.stdout}'] if result.returncode else []


def make(folder, *args):
    return problems([
        'make', f'BUILD={folder}/build', f'PREFIX={PREFIX}', f'DESTDIR={folder}/root',
        'MESONFLAGS=-Dtests=disabled', *args,
    ])


def leaves(folder):
    return sorted(os.path.join(f, name) for f, _, names in os.walk(folder) for name in names)


def place_problems(root):
    installed = leaves(root)
    if not installed:
        yield 'nothing was installed'
    for path in installed:
        if not path.startswith(f'{root}{PREFIX}/'):
            yield f'{path[len(root):]} is not below {PREFIX}'


def header_problems(include, header, compiler):
    name = os.path.relpath(header, include)
    argv = [*compiler, '-Wall', '-Wextra', '-Werror', f'-I{include}', '-fsyntax-only', '-']
    return [f'{name}: {p}' for p in problems(argv, f'#include <{name}>\n')]


def programs(build):
    targets = subprocess.run(
        ['meson', 'introspect', build, '--targets'], check=True, stdout=subprocess.PIPE, text=True,
    ).stdout
    return [
        path for target in json.loads(targets) if target['type'] == 'executable'
        for path in target['filename']
    ]


def manner_problems(program):
    for option, expected in (('--help', 0), ('--version', 0), ('--no-such-option', 2)):
        result = subprocess.run(
            [program, option], check=False, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )
        if result.returncode != expected:
            yield f'{option}: status {result.returncode}, not {expected}'
        if bool(result.stdout) != (expected == 0) or bool(result.stderr) == (expected == 0):
            yield f'{option}: stdout is "{result.stdout}", stderr is "{result.stderr}"'


def main():
    plan = Plan()
    with tempfile.TemporaryDirectory() as folder:
        root = os.path.join(folder, 'root')
        plan.check('make builds without the tests', make(folder, 'all'))
        plan.check('make install does', make(folder, 'install'))
        plan.check('everything goes below DESTDIR and PREFIX', place_problems(root))
        include = f'{root}{PREFIX}/include'
        headers = [path for path in leaves(include) if path.endswith('.h')]
        for language, compiler in HEADER_COMPILERS.items():
            plan.check(
                f'each installed header compiles alone as {language}',
                (p for header in headers for p in header_problems(include, header, compiler)),
            )
        for program in programs(f'{folder}/build'):
            plan.check(f'{os.path.basename(program)} explains itself', manner_problems(program))
        plan.check('make demo works', make(folder, 'demo'))
    plan.finish()


if __name__ == '__main__':
    main()
