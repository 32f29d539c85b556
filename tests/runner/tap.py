# SPDX-License-Identifier: LGPL-2.1-or-later
"""Read the output of one test program that speaks TAP."""
import re

LINE = re.compile(
    r'^(?P<bad>not )?ok\b\s*(?P<number>\d+)?\s*(?:-\s*)?(?P<name>[^#]*?)\s*'
    r'(?:#\s*(?P<directive>SKIP|TO[D]O)\S*\s*(?P<reason>.*))?$',
    re.IGNORECASE,
)
PLAN = re.compile(r'^1\.\.(?P<count>\d+)\s*(?:#\s*(?:SKIP\S*)?\s*(?P<reason>.*))?$', re.IGNORECASE)


def count(what, output, broken, tally):
    """Add the subtests in output to tally.

    broken: what is wrong with the program as a whole, '' for nothing. A
    program that crashed after its last "ok" has failed all the same.
    """
    failed = tally.failed
    planned = None
    seen = 0
    for line in output.splitlines():
        plan = PLAN.match(line)
        if plan:
            planned = int(plan['count'])
            if planned == 0:
                tally.skip(what, plan['reason'])
            continue
        point = LINE.match(line)
        if not point:
            continue
        seen += 1
        name = f'{what}: {point["name"] or point["number"]}'
        if (point['directive'] or '').upper() == 'SKIP':
            tally.skip(name, point['reason'])
        elif point['bad'] or point['directive']:
            tally.fail(name)
        else:
            tally.ok()
    if not broken and seen != planned:
        broken = f'{seen} results, but planned were {planned}'
    if broken and tally.failed == failed:
        tally.fail(what, broken)
    return tally.failed == failed
