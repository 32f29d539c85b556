# SPDX-License-Identifier: LGPL-2.1-or-later
"""What outlives those who started it: services of a bus, daemons of daemons, mounts."""
import ctypes
import os
import signal
import time

PR_SET_CHILD_SUBREAPER = 36
CLONE_NEWNS = 0x20000
MS_REC = 0x4000
MS_PRIVATE = 0x40000

libc = ctypes.CDLL(None, use_errno=True)


def adopt():
    """From now on what is orphaned among our descendants becomes our child."""
    if libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        raise OSError('PR_SET_CHILD_SUBREAPER')


def own_mounts():
    """From now on what is mounted is seen, and lives, among our descendants. None, or why not."""
    if libc.unshare(CLONE_NEWNS) or libc.mount(b'none', b'/', None, MS_REC | MS_PRIVATE, None):
        return os.strerror(ctypes.get_errno())
    return None


def mount(what, where, kind=None, flags=0, data=None):
    encoded = [text and text.encode() for text in (what, where, kind)]
    if libc.mount(*encoded, flags, data and data.encode()):
        raise OSError(ctypes.get_errno(), f'mount {what} {where}')


def children():
    with open(f'/proc/self/task/{os.getpid()}/children', encoding='ascii') as file:
        return [int(pid) for pid in file.read().split()]


def bury(patience):
    """Waits for all children; tells them to end, in the end kills them."""
    start = time.monotonic()
    told = False
    while True:
        try:
            if os.waitpid(-1, os.WNOHANG)[0]:
                continue
        except ChildProcessError:
            return
        late = time.monotonic() - start > patience
        if not told or late:
            told = True
            for pid in children():
                os.kill(pid, signal.SIGKILL if late else signal.SIGTERM)
        time.sleep(0.01)
