# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-or-later
"""Processes that load profiles, forked from one that has imported trex-stl-lib, which takes a second of each.

A forked process runs the program that :mod:`lineproof.generators.trex.profile_process` starts, to its end. Suites with
such traffic, and clients that TRex ships, have it started as users do.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from typing import IO, Any

from lineproof.system import children
from support.fork_server import ForkServer


class ProfileProcesses:
    """Starts those processes. Stands for :mod:`lineproof.system.children` in the loader; :meth:`close` it."""

    PIPE = children.PIPE
    TimeoutExpired = children.TimeoutExpired
    python = staticmethod(children.python)
    environment = staticmethod(children.environment)
    pipes = staticmethod(children.pipes)
    send_line = staticmethod(children.send_line)

    def __init__(self) -> None:
        self.server = ForkServer(__name__)

    def start(self, argv: Sequence[str], **options: Any) -> ProfileProcess | children.Child[bytes]:
        """As :func:`lineproof.system.children.start`; forked, unless the client is one that TRex ships."""
        if len(argv) > len(children.python("")):
            return children.start(argv, **options)
        return ProfileProcess(self.server, options)

    def close(self) -> None:
        """End the process from which they are forked."""
        self.server.close()


class ProfileProcess:
    """What the loader needs of :class:`subprocess.Popen`."""

    def __init__(self, server: ForkServer, options: Mapping[str, Any]) -> None:
        self._server = server
        self.returncode: int | None = None
        (far_in, near_in), (near_out, far_out) = os.pipe(), os.pipe()
        self.stdin: IO[bytes] = os.fdopen(near_in, "wb", 0)
        self.stdout: IO[bytes] = os.fdopen(near_out, "rb", 0)
        self.pid = server.fork([], options["env"], options["cwd"], [far_in, far_out, options["stderr"].fileno()])
        os.close(far_in)
        os.close(far_out)

    def wait(self, timeout: float | None = None) -> int:
        """The exit status, once it has ended; negative: by that signal. Raises TimeoutExpired."""
        if self.returncode is None:
            self.returncode = self._server.wait(timeout)
        if self.returncode is None:
            raise children.TimeoutExpired("a profile", timeout or 0.0)
        return self.returncode


def preload() -> None:
    """Import what loads profiles."""
    from lineproof.generators.trex.client import pypi, scapy_bridge

    scapy_bridge.fix_addresses()  # before a packet is made: the first one keeps the defaults
    pypi.load_library()
    import trex_stl_lib.api  # noqa: F401


def main(argv: Sequence[str]) -> None:
    """Run the loader's program, which ends its process."""
    from lineproof.generators.trex.client import profile_program

    sys.argv = [profile_program.__file__]
    profile_program.main()
