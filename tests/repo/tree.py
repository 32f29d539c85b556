#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Rules that every file of the tree keeps."""
import os
import re
import sys

sys.dont_write_bytecode = True
from tap import Plan, files, read  # noqa: E402

LGPL = 'LGPL-2.1-or-later'
SOURCE_SUFFIXES = ('.c', '.h', '.cc', '.py', '.sh', '.build', '.awk', '.scd')
SOURCE_NAMES = ('Makefile', 'Kbuild', 'meson_options.txt', '.clang-format', '.clang-tidy')
COLUMNS = 100
README_LINES = 120

# Spelled in halves, so that this file passes its own check.
FORBIDDEN = [
    re.compile(r'(?<![\w.])/wo' r'rk/'),
    re.compile(r'(?<![\w.$}])/ho' r'me/\w'),
    re.compile(r'(?<![\w.$}])/ro' r'ot/\w'),
    re.compile(r'(?<![\w.$}])/tm' r'p/\w'),
    re.compile(r'\bTO' r'DO\b|\bFIX' r'ME\b'),
]


def licence(name):
    if name.startswith('module/'):
        return 'GPL-2.0-only'
    if name.startswith('uapi/') and name.endswith('.h'):
        return f'{LGPL} WITH Linux-syscall-note'
    return LGPL


def is_source(name, text):
    return (
        name.endswith(SOURCE_SUFFIXES)
        or os.path.basename(name) in SOURCE_NAMES
        or text.startswith('#!')
    )


def spdx_problems(name, text):
    expected = f'SPDX-License-Identifier: {licence(name)}'
    for line in text.splitlines()[:3]:
        if 'SPDX-License-Identifier:' in line:
            if re.sub(r'^\W*|\s*(\*/|-->)?$', '', line) != expected:
                yield f'{name}: not "{expected}"'
            return
    yield f'{name}: no "{expected}" in the first three lines'


def c_problems(name, text):
    for number, line in enumerate(text.splitlines(), 1):
        if len(line.expandtabs(8)) > COLUMNS:
            yield f'{name}:{number}: more than {COLUMNS} columns'
        if line.startswith(' ' * 8):
            yield f'{name}:{number}: spaces where tabs belong'


def text_problems(name, text):
    if text and not text.endswith('\n'):
        yield f'{name}: no newline at the end'
    for number, line in enumerate(text.splitlines(), 1):
        if line.endswith((' ', '\t', '\r')):
            yield f'{name}:{number}: white space at the end of the line'
        for pattern in FORBIDDEN:
            found = pattern.search(line)
            if found:
                yield f'{name}:{number}: "{found[0]}" has no place here'


def main():
    texts = {name: read(name) for name in files()}
    texts = {
        name: text for name, text in texts.items()
        if text is not None and not name.startswith(('LICENSES/', 'tests/fuzz/corpus/'))
    }
    sources = {name: text for name, text in texts.items() if is_source(name, text)}
    plan = Plan()
    plan.check(
        'each source file names the licence of its folder',
        (p for name, text in sources.items() for p in spdx_problems(name, text)),
    )
    plan.check(
        f'C is indented with tabs and at most {COLUMNS} columns wide',
        (p for name, text in sources.items() if name.endswith(('.c', '.h'))
         for p in c_problems(name, text)),
    )
    plan.check(
        'no stray white space, machine paths or loose ends',
        (p for name, text in texts.items() for p in text_problems(name, text)),
    )
    lines = len(texts['README.md'].splitlines())
    plan.check(
        f'README.md has at most {README_LINES} lines',
        [f'it has {lines}'] if lines > README_LINES else [],
    )
    plan.finish()


if __name__ == '__main__':
    main()
