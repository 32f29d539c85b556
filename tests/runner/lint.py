# SPDX-License-Identifier: LGPL-2.1-or-later
"""Static analysis of everything that the compile commands of a build name."""
import concurrent.futures
import json
import os

from . import process

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TIDY_CONFIG = os.path.join(os.path.dirname(TESTS), '.clang-tidy')
SUPPRESSIONS = os.path.join(TESTS, 'cppcheck.suppressions')


def sources(source, directory):
    """C files of the project that this build compiles, each once."""
    with open(os.path.join(directory, 'compile_commands.json'), encoding='utf-8') as commands:
        paths = {
            os.path.realpath(os.path.join(entry['directory'], entry['file']))
            for entry in json.load(commands)
        }
    root = os.path.realpath(source) + os.sep
    build = os.path.realpath(directory) + os.sep
    return sorted(p for p in paths if p.startswith(root) and not p.startswith(build))


def tidy(source, directory, tally):
    """One clang-tidy run per file; .clang-tidy makes every finding an error."""

    def one(path):
        config = f'--config-file={TIDY_CONFIG}'
        return path, process.run(['clang-tidy', '--quiet', config, '-p', directory, path])

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for path, (status, output) in pool.map(one, sources(source, directory)):
            if status:
                tally.fail(f'clang-tidy: {os.path.relpath(path, source)}', output=output)
            else:
                tally.ok()


def cppcheck(source, directory, tally):
    """One cppcheck run over all; unchanged files are answered from its cache."""
    cache = os.path.join(directory, 'cppcheck')
    os.makedirs(cache, exist_ok=True)
    # Without this, a build directory that failed to configure would be an empty, clean project.
    if not sources(source, directory):
        raise RuntimeError(f'nothing to check in {directory}')
    status, output = process.run([
        'cppcheck',
        '--quiet',
        '--enable=warning,performance,portability',
        '--error-exitcode=1',
        '--inline-suppr',
        '--std=c11',
        f'--cppcheck-build-dir={cache}',
        f'-j{os.cpu_count()}',
        f'--suppressions-list={SUPPRESSIONS}',
        f'--project={directory}/compile_commands.json',
    ])
    if status:
        tally.fail('cppcheck', output=output)
    else:
        tally.ok()
