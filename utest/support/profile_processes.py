# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-or-later
"""Processes that load profiles, forked from one that has imported trex-stl-lib, which takes a second of each.

A forked process runs the program that :mod:`linerate.generators.trex.profile_loader` starts, to its end. Suites with
such traffic, and clients that TRex ships, have it started as users do.
"""

from __future__ import annotations

import json
import os
import select
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from support.paths import LIBRARIES, SUPPORT

NOBODY = 1 << 30
"""A process id that no process has: beyond Linux's highest. Signals to 0 or -1 would go to this process too."""


class ForkServer:
    """Starts those processes. Stands for :mod:`subprocess` in the loader; :meth:`close` it."""

    PIPE = subprocess.PIPE
    TimeoutExpired = subprocess.TimeoutExpired

    def __init__(self) -> None:
        self.ours, self._theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._process: subprocess.Popen[bytes] | None = None

    def Popen(self, argv: Sequence[str], **options: Any) -> ProfileProcess:
        """As :class:`subprocess.Popen`; the process begins with its input."""
        return ProfileProcess(self, argv, options)

    def fork(self, env: Mapping[str, str], cwd: Path, streams: Sequence[int]) -> int:
        """A new process with these standard *streams*; its id. Its exit status comes when it ends."""
        if self._process is None:
            path = os.pathsep.join([str(LIBRARIES), str(SUPPORT.parent)])
            argv = [sys.executable, "-P", "-m", "support.profile_processes", str(self._theirs.fileno())]
            descriptors, environment = [self._theirs.fileno()], {**os.environ, "PYTHONPATH": path}
            self._process = subprocess.Popen(argv, env=environment, pass_fds=descriptors)
        socket.send_fds(self.ours, [json.dumps([dict(env), str(cwd)]).encode()], list(streams))
        return int(self.ours.recv(100))

    def close(self) -> None:
        """End the process from which they are forked."""
        self._theirs.close()
        self.ours.close()
        if self._process is not None:
            self._process.wait(10)


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
            self.pid = self._server.fork(self._options["env"], self._options["cwd"], streams)
            if not select.select([self._server.ours], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(list(self._argv), timeout)
            self.wait()
            output.seek(0)
            errors.seek(0)
            return output.read(), errors.read()

    def wait(self) -> int:
        """The exit status, once it has ended; negative: by that signal."""
        if self._started is not None:
            return self._started.wait()
        if self._status is None:
            self._status = int(self._server.ours.recv(100))
        return self._status


def main(descriptor: int) -> None:
    """Fork a process for each request, one after the other, until the other end is closed."""
    from linerate.generators.trex.client import profile_program, pypi, scapy_bridge

    scapy_bridge.fix_addresses()  # before a packet is made: the first one keeps the defaults
    pypi.load_library()
    import trex_stl_lib.api  # noqa: F401

    with socket.socket(fileno=descriptor) as channel:
        while True:
            request, streams, _, _ = socket.recv_fds(channel, 1 << 20, 3)
            if not request:
                return
            child = os.fork()
            if not child:
                channel.close()
                env, cwd = json.loads(request)
                _run(profile_program.main, env, cwd, streams)
            for stream in streams:
                os.close(stream)
            channel.send(str(child).encode())
            channel.send(str(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])).encode())


def _run(program: Any, env: dict[str, str], cwd: str, streams: Sequence[int]) -> None:
    os.setsid()
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    try:
        program()
    finally:
        os._exit(70)  # not reached: the program ends its process


if __name__ == "__main__":
    main(int(sys.argv[1]))
