#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Manual pages: complete, true to the library and its examples, and they build."""
import os
import re
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
from tap import SOURCE, Plan, read  # noqa: E402

sys.path.insert(0, os.path.join(SOURCE, 'doc', 'man'))
import page as pages  # noqa: E402

MAN = os.path.join(SOURCE, 'doc', 'man')
SECTIONS = ('NAME', 'SYNOPSIS', 'DESCRIPTION', 'RETURN VALUE', 'ERRORS', 'THREADS', 'EXAMPLE')
EXAMPLE_LINES = 80
# The roff that scdoc makes of one literal block.
BLOCK = re.compile(r'^\.nf\n\.RS 4\n(.*?)^\.fi\n\.RE$', re.MULTILINE | re.DOTALL)


def sources():
    return sorted(name for name in os.listdir(MAN) if name.endswith('.scd'))


def names_of(text):
    return text.split('# NAME\n\n')[1].split(' - ')[0].replace('\n', ' ').split(', ')


def symbols():
    return re.findall(r'^\t(libkdbus_\w+);$', read('lib/libkdbus.map'), re.MULTILINE)


def prototypes():
    """Function name: prototype, on one line, as the header has it."""
    header = re.sub(r'/\*.*?\*/', '', read('lib/libkdbus.h'), flags=re.DOTALL)
    found = re.findall(r'^((?:[\w ]+[ *])(libkdbus_\w+)\([^;{]*\));$', header, re.MULTILINE)
    return {name: ' '.join(text.split()) for text, name in found}


def comment_problems():
    """Each prototype of the public header has its own kernel-doc, parameters included."""
    header = read('lib/libkdbus.h')
    for name, prototype in prototypes().items():
        found = re.search(
            rf'/\*\*\n \* {name}\(\) - (?:(?!\*/).)*?\*/\n[^;/]*?\b{name}\(', header, re.DOTALL)
        if not found:
            yield f'{name}: no comment right before it'
            continue
        for parameter in re.findall(r'(\w+)[,)]', prototype.partition('(')[2]):
            if f'@{parameter}:' not in found[0] and parameter != 'void':
                yield f'{name}: @{parameter} is not described'
        if not prototype.startswith('void ') and 'Return:' not in found[0]:
            yield f'{name}: what it returns is not described'


def title_problems(texts):
    for name, text in texts.items():
        title, section = name.split('.scd')[0].rsplit('.', 1)
        if not text.startswith(f'{title}({section})\n'):
            yield f'{name}: does not begin with {title}({section})'
        if title not in names_of(text):
            yield f'{name}: {title} is not in its NAME section'


def symbol_problems(texts):
    functions = {n: t for n, t in texts.items() if n.endswith('.3.scd')}
    known = prototypes()
    exported = symbols()
    for symbol in exported:
        homes = [name for name, text in functions.items() if symbol in names_of(text)]
        if len(homes) != 1:
            yield f'{symbol}: described in {len(homes)} pages, not in one'
        elif known.get(symbol) not in ' '.join(functions[homes[0]].split()):
            yield f'{symbol}: {homes[0]} has another prototype than lib/libkdbus.h'
    for name, text in functions.items():
        for symbol in names_of(text):
            if symbol not in exported:
                yield f'{name}: {symbol} is not exported'


def section_problems(texts):
    for name, text in texts.items():
        for section in SECTIONS if name.endswith('.3.scd') else ('NAME', 'DESCRIPTION'):
            if f'\n# {section}\n' not in text:
                yield f'{name}: no section {section}'


def reference_problems(texts):
    known = {tuple(name.split('.scd')[0].rsplit('.', 1)) for name in texts}
    known |= {(n, '3') for name, text in texts.items() if '.3.' in name for n in names_of(text)}
    for name, text in texts.items():
        for target, section in re.findall(r'\*((?:lib)?kdbus[\w.]*)\*\((\d)\)', text):
            if (target, section) not in known:
                yield f'{name}: there is no {target}({section})'


def unroff(text):
    return text.replace('\\&', '').replace('\\(aq', "'").replace('\\-', '-').replace('\\\\', '\\')


def example_problems(texts):
    tested = read('tests/integration/meson.build')
    for name, text in texts.items():
        if not name.endswith('.3.scd'):
            continue
        used = pages.MARK.findall(text)
        if len(used) != 1:
            yield f'{name}: {len(used)} examples, not one'
        for example in used:
            program = read(f'lib/examples/{example}.c')
            if len(program.splitlines()) > EXAMPLE_LINES:
                yield f'{example}.c: more than {EXAMPLE_LINES} lines'
            if not re.search(rf"^  '{example}',$", tested, re.MULTILINE):
                yield f'{example}.c: no test runs it'
            try:
                roff = pages.render('scdoc', os.path.join(MAN, name))
            except RuntimeError as error:
                yield str(error)
                continue
            if program not in map(unroff, BLOCK.findall(roff)):
                yield f'{name}: {example}.c is not in the page as it is'


def build_problems(texts):
    listed = re.findall(r"^  '([\w.-]+)',$", read('doc/man/meson.build'), re.MULTILINE)
    if sorted(f'{name}.scd' for name in listed) != sorted(texts):
        yield 'doc/man/meson.build lists other pages than there are'
    for name in texts:
        try:
            roff = pages.render('scdoc', os.path.join(MAN, name))
        except RuntimeError as error:
            yield str(error)
            continue
        if shutil.which('groff'):
            said = subprocess.run(
                ['groff', '-man', '-Tutf8', '-ww', '-z'], input=roff, text=True, check=False,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            ).stdout
            if said:
                yield f'{name}: {said}'


def main():
    texts = {name: read(f'doc/man/{name}') for name in sources()}
    plan = Plan()
    plan.check('each page is named after itself', title_problems(texts))
    plan.check('each exported function has one page, with its prototype', symbol_problems(texts))
    plan.check('each function is described in the header', comment_problems())
    plan.check('each page has the sections that belong there', section_problems(texts))
    plan.check('pages refer to pages that exist', reference_problems(texts))
    if shutil.which('scdoc'):
        plan.check('each page builds', build_problems(texts))
        plan.check('examples are in their pages, short, and run by a test', example_problems(texts))
    else:
        plan.check('each page builds # SKIP scdoc is not installed', [])
    plan.finish()


if __name__ == '__main__':
    main()
