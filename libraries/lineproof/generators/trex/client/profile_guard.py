# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-or-later
"""The parent of the process that runs a user's profile: limits what that may take, and ends all that it started.

It is the parent of every process that the profile leaves, however it left (:mod:`lineproof.system.descendants`). Where
it may (as root), it gives the profile a PID namespace of its own: what is in there ends with the profile, and cannot
send a signal to anything outside. It ends with its standard input, so with the process that asked for the profile.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import resource
import select
import signal
import sys
import traceback
from collections.abc import Callable
from typing import NoReturn

from ....system.descendants import become_subreaper, kill_descendants

MEMORY, FILE_SIZE, FILES = 2 << 30, 64 << 20, 256
"""Bytes of address space, bytes of a file, open files: each for one process."""

TAIL = 4096
"""Bytes that are kept from the end of the profile's own output."""

_POLL, _KILL_LIMIT = 0.05, 2.0

_DEATH_SIGNAL, _NO_NEW_PRIVILEGES = 1, 38
_NEW_PID_NAMESPACE = 0x20000000


def run_guarded(work: Callable[[], NoReturn]) -> NoReturn:
    """Run *work* in a forked process whose own output comes here; end when it or standard input has ended.

    Then, with nothing of it left, a line ``{"ended": status, "output": …}`` goes to standard output, which *work* has
    for its answer. The status is 0, or 1 if something is left.
    """
    become_subreaper()
    guard = 0 if isolate_children() else os.getpid()  # 0: a parent outside of the namespace
    output, far = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.close(output)
            os.dup2(far, 2)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            _limit_this_process(guard)
            work()
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(1)
    os.close(far)
    signal.signal(signal.SIGTERM, lambda *_: os.dup2(os.open(os.devnull, os.O_RDONLY), 0))  # as the end of its input
    tail, status, ends = b"", None, [0, output]
    while status is None:
        found = select.select(ends, [], [], _POLL)[0]
        if output in found:
            received = os.read(output, 1 << 16)
            tail = (tail + received)[-TAIL:]
            ends = ends if received else [0]
        if 0 in found and not os.read(0, 4096):
            break
        if (ended := os.waitpid(child, os.WNOHANG))[0]:
            status = os.waitstatus_to_exitcode(ended[1])
    is_clean = kill_descendants(_KILL_LIMIT)
    while select.select([output], [], [], 0)[0] and (received := os.read(output, 1 << 16)):
        tail = (tail + received)[-TAIL:]
    said = {"ended": status, "output": tail.decode(errors="replace")}
    with contextlib.suppress(OSError):
        # the answer may have been cut off
        os.write(1, f"\n{json.dumps(said)}\n".encode())
    os._exit(0 if is_clean else 1)


def isolate_children() -> bool:
    """Give the next process that is forked a PID namespace (unshare(2), Linux); False where that is not permitted."""
    return sys.platform == "linux" and bool(ctypes.CDLL(None).unshare(_NEW_PID_NAMESPACE) == 0)


def _limit_this_process(guard: int) -> None:
    """Limits that descend to what this process starts. It ends with *guard*, and gains no rights by ``sudo``."""
    bounds = {
        resource.RLIMIT_AS: MEMORY,
        resource.RLIMIT_FSIZE: FILE_SIZE,
        resource.RLIMIT_NOFILE: FILES,
        resource.RLIMIT_CORE: 0,
    }
    for kind, most in bounds.items():
        _, hard = resource.getrlimit(kind)
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(kind, (most, most))
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
        ctypes.CDLL(None).prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    if os.getppid() != guard:
        os._exit(1)
