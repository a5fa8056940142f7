# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-or-later
"""Processes that load profiles, forked from one that has imported trex-stl-lib, which takes a second of each.

A forked process runs the program that :mod:`linerate.generators.trex.profile_loader` starts, to its end. Suites with
such traffic, and clients that TRex ships, have it started as users do.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from typing import Any

from linerate.system import children
from support.fork_server import ForkServer

NOBODY = 1 << 30
"""A process id that no process has: beyond Linux's highest. Signals to 0 or -1 would go to this process too."""


class ProfileProcesses:
    """Starts those processes. Stands for :mod:`linerate.system.children` in the loader; :meth:`close` it."""

    PIPE = children.PIPE
    TimeoutExpired = children.TimeoutExpired
    python = staticmethod(children.python)
    environment = staticmethod(children.environment)

    def __init__(self) -> None:
        self.server = ForkServer(__name__)

    def start(self, argv: Sequence[str], **options: Any) -> ProfileProcess:
        """As :func:`linerate.system.children.start`; the process begins with its input."""
        return ProfileProcess(self.server, argv, options)

    def close(self) -> None:
        """End the process from which they are forked."""
        self.server.close()


class ProfileProcess:
    """What the loader needs of :class:`subprocess.Popen`."""

    def __init__(self, server: ForkServer, argv: Sequence[str], options: Mapping[str, Any]) -> None:
        self._server, self._argv, self._options = server, argv, options
        self._started: subprocess.Popen[bytes] | None = None
        self._status: int | None = None
        self.pid = NOBODY

    def __enter__(self) -> ProfileProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.wait()

    @property
    def returncode(self) -> int:
        return self.wait()

    def communicate(self, request: bytes, timeout: float) -> tuple[bytes, bytes]:
        """Output and errors. Raises TimeoutExpired."""
        if json.loads(request)["client"]:
            self._started = subprocess.Popen(self._argv, **self._options)
            self.pid = self._started.pid
            return self._started.communicate(request, timeout)
        with tempfile.TemporaryFile() as asked, tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
            asked.write(request)
            files = (asked, output, errors)
            for file in files:
                file.seek(0)
            streams = [file.fileno() for file in files]
            self.pid = self._server.fork([], self._options["env"], self._options["cwd"], streams)
            self._status = self._server.wait(timeout)
            if self._status is None:
                raise subprocess.TimeoutExpired(list(self._argv), timeout)
            output.seek(0)
            errors.seek(0)
            return output.read(), errors.read()

    def wait(self) -> int:
        """The exit status, once it has ended; negative: by that signal."""
        if self._started is not None:
            return self._started.wait()
        if self._status is None:
            self._status = self._server.wait()
        assert self._status is not None
        return self._status


def preload() -> None:
    """Import what loads profiles."""
    from linerate.generators.trex.client import pypi, scapy_bridge

    scapy_bridge.fix_addresses()  # before a packet is made: the first one keeps the defaults
    pypi.load_library()
    import trex_stl_lib.api  # noqa: F401


def main(argv: Sequence[str]) -> None:
    """Run the loader's program, which ends its process."""
    from linerate.generators.trex.client import profile_program

    profile_program.main()
