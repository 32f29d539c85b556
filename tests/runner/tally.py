# SPDX-License-Identifier: LGPL-2.1-or-later
"""What passed, failed and was skipped, and the line that says so."""


class Tally:
    """Counts outcomes. Each failure and each skip is printed as it is noted."""

    def __init__(self):
        self.passed = 0
        self.failed = 0
        self.skipped = 0
        self.failures = []

    def ok(self, count=1):
        self.passed += count

    def fail(self, what, why='', output=''):
        self.failed += 1
        self.failures.append(f'FAIL: {what}' + (f': {why}' if why else ''))
        print(self.failures[-1])
        for line in output.rstrip().splitlines():
            print(f'    {line}')

    def skip(self, what, reason):
        # A skip that does not say why could hide anything.
        if not reason:
            self.fail(what, 'skipped without a reason')
            return
        self.skipped += 1
        print(f'SKIP: {what}: {reason}')

    def add(self, other):
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped
        self.failures += other.failures

    def summary(self):
        """The failures once more, so that the end of a long log names them, and the line."""
        return '\n'.join([*self.failures, self.line()])

    def line(self):
        return f'{self.passed} passed, {self.failed} failed, {self.skipped} skipped'
