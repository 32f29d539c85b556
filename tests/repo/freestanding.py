#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""core/ stands alone: its own headers and uapi/, no library, no hidden state."""
import glob
import os
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
from tap import SOURCE, Plan  # noqa: E402

# The one file that ties core/ to the C library; programs link it, core/ does not.
HOSTED = {'core/shim/slab-libc.c'}
FLAGS = [
    '-std=gnu11', '-O2', '-Wall', '-Wextra', '-Werror', '-Wno-unused-parameter',
    '-Wno-missing-field-initializers', '-Wno-sign-compare', '-fno-strict-aliasing',
    # Position-independent code keeps constant tables with pointers in writable data.
    '-fno-pie', '-ffreestanding', '-nostdinc', '-Icore', '-Iuapi', '-Icore/shim/uapi',
]
# What a compiler may call by itself, and what the kernel offers under the same name.
PROVIDED = {
    'memchr', 'memcmp', 'memcpy', 'memmove', 'memset',
    'strchr', 'strcmp', 'strlen', 'strncmp', 'strnlen', 'strrchr',
    'kfree', 'kmalloc',
}


def command(*argv):
    result = subprocess.run(
        argv, cwd=SOURCE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
    )
    return result.returncode, result.stdout


def sources():
    found = glob.glob('core/**/*.c', root_dir=SOURCE, recursive=True)
    return sorted(set(found) - HOSTED)


def compile_problems(compiler, source, target):
    status, output = command(compiler, *FLAGS, '-c', source, '-o', target)
    return [output or f'status {status}'] if status else []


def include_problems(source):
    """Everything a file includes, in any way, is a file of core/ or uapi/."""
    status, output = command('gcc', *FLAGS, '-M', source)
    if status:
        return [output]
    paths = output.replace('\\\n', ' ').split(':', 1)[1].split()
    inside = [os.path.join(SOURCE, folder) + os.sep for folder in ('core', 'uapi')]
    return [
        f'{source} includes {path}' for path in paths
        if not os.path.realpath(os.path.join(SOURCE, path)).startswith(tuple(inside))
    ]


def symbols(objects, *flags):
    status, output = command('nm', '--format=posix', *flags, *objects)
    if status:
        raise RuntimeError(output)
    return {(f[0], f[1]) for f in map(str.split, output.splitlines()) if len(f) > 1}


def outside_problems(objects):
    """What core/ calls and does not define."""
    needed = {name for name, _ in symbols(objects, '--undefined-only')}
    own = {name for name, _ in symbols(objects, '--defined-only')}
    return [f'{name} comes from outside' for name in sorted(needed - own - PROVIDED)]


def global_problems(objects):
    """Writable data would be state shared between buses."""
    return [
        f'{name} is writable data' for name, kind in sorted(symbols(objects, '--defined-only'))
        if kind in 'bBdDcCsS'
    ]


def main():
    plan = Plan()
    objects = []
    with tempfile.TemporaryDirectory() as folder:
        for source in sources():
            target = os.path.join(folder, source.replace('/', '-') + '.o')
            problems = compile_problems('gcc', source, target)
            plan.check(f'{source} compiles with gcc against core/ and uapi/ alone', problems)
            if not problems:
                objects.append(target)
            problems = compile_problems('clang', source, os.devnull)
            plan.check(f'{source} compiles with clang against core/ and uapi/ alone', problems)
            plan.check(f'{source} includes nothing else', include_problems(source))
        plan.check('core/ calls nothing but itself', outside_problems(objects))
        plan.check('core/ has no global state', global_problems(objects))
    plan.finish()


if __name__ == '__main__':
    main()
