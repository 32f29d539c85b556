#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Make a manual page: put the example programs into its source, then run scdoc.

usage: page.py SCDOC SOURCE PAGE

A line "@example NAME@" stands for lib/examples/NAME.c and, below it, what the
program prints (lib/examples/NAME.out).
"""
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
EXAMPLES = os.path.join(os.path.dirname(os.path.dirname(HERE)), 'lib', 'examples')
MARK = re.compile(r'^@example (\w+)@$', re.MULTILINE)


def read(path):
    with open(path, encoding='utf-8') as file:
        return file.read()


def literal(text):
    return '```\n' + text.replace('\\', '\\\\') + '```'


def example(match):
    path = os.path.join(EXAMPLES, match[1])
    return f'{literal(read(path + ".c"))}\n\nIt prints:\n\n{literal(read(path + ".out"))}'


def source(path):
    """The text that scdoc gets: the page without its licence line, with its examples."""
    lines = [line for line in read(path).splitlines() if not line.startswith('; ')]
    return MARK.sub(example, '\n'.join(lines) + '\n')


def render(scdoc, path):
    result = subprocess.run(
        [scdoc], input=source(path), check=False, text=True, encoding='utf-8',
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )
    if result.returncode:
        raise RuntimeError(f'{os.path.basename(path)}: {result.stderr.strip()}')
    return result.stdout


def main():
    scdoc, path, page = sys.argv[1:]
    try:
        text = render(scdoc, path)
    except RuntimeError as error:
        sys.exit(str(error))
    with open(page, 'w', encoding='utf-8') as file:
        file.write(text)


if __name__ == '__main__':
    main()
