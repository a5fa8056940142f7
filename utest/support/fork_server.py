"""Processes that are forked from one which has imported what they need: to import it takes most of a short run's time.

A program is a module with ``preload`` and ``main(argv)``. A forked process has its own session, environment, folder
and streams, runs ``main`` and ends as any Python program does. Its command line is the server's.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from support.paths import LIBRARIES, SUPPORT


class ForkServer:
    """Forks processes that run the module *program*, one after the other; :meth:`close` it."""

    def __init__(self, program: str) -> None:
        self._program = program
        self._ours, self._theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._process: subprocess.Popen[bytes] | None = None

    def start(
        self,
        argv: Sequence[str],
        env: Mapping[str, str],
        cwd: str | Path,
        output: IO[bytes],
        errors: IO[bytes] | None = None,
    ) -> ForkedProcess:
        """Start a process with nothing to read; *errors*: default *output*. Wait for it before the next."""
        if self._process is None:
            # one thread only: a fork takes no other along
            environment = os.environ | {
                "PYTHONPATH": os.pathsep.join([str(LIBRARIES), str(SUPPORT.parent)]),
                "OPENBLAS_NUM_THREADS": "1",
            }
            command = [sys.executable, "-P", "-m", "support.fork_server", str(self._theirs.fileno()), self._program]
            self._process = subprocess.Popen(command, env=environment, pass_fds=[self._theirs.fileno()])
        request = json.dumps([list(argv), dict(env), str(cwd)]).encode()
        with Path(os.devnull).open() as empty:
            streams = [empty.fileno(), output.fileno(), (errors or output).fileno()]
            socket.send_fds(self._ours, [request], streams)
        return ForkedProcess(self._ours, int(self._ours.recv(100)))

    def run(
        self, argv: Sequence[str], env: Mapping[str, str], cwd: Path, limit: float
    ) -> subprocess.CompletedProcess[str]:
        """Run such a process to its end; raises subprocess.TimeoutExpired after *limit* s, when it is killed."""
        with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
            process = self.start(argv, env, cwd, output, errors)
            try:
                status = process.wait(limit)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                raise
            texts = [os.pread(file.fileno(), 1 << 30, 0).decode() for file in (output, errors)]
        return subprocess.CompletedProcess(argv, status, *texts)

    def close(self) -> None:
        """End the process from which they are forked."""
        self._theirs.close()
        self._ours.close()
        if self._process is not None:
            self._process.wait(60)


class ForkedProcess:
    """A forked process, with the names of ``subprocess.Popen``; *statuses*: where its exit status comes."""

    def __init__(self, statuses: socket.socket, pid: int) -> None:
        self._statuses, self.pid = statuses, pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Return its exit status, negative: by that signal; None while it runs."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, limit: float | None = None) -> int:
        """Return its exit status. Raises subprocess.TimeoutExpired after *limit* seconds."""
        if self.returncode is None:
            if not select.select([self._statuses], [], [], limit)[0]:
                raise subprocess.TimeoutExpired([f"process {self.pid}"], limit or 0.0)
            self.returncode = int(self._statuses.recv(100))
        return self.returncode

    def kill(self) -> None:
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)


def _forked(channel: socket.socket) -> list[str] | None:
    """Fork for each request; in the new process, its arguments. None when the other end is closed."""
    while True:
        request, streams, _, _ = socket.recv_fds(channel, 1 << 20, 3)
        if not request:
            return None
        child = os.fork()
        if not child:
            argv, env, cwd = json.loads(request)
            os.setsid()
            for number, stream in enumerate(streams):
                os.dup2(stream, number)
                os.close(stream)
            os.chdir(cwd)
            os.environ.clear()
            os.environ.update(env)
            return [str(word) for word in argv]
        for stream in streams:
            os.close(stream)
        channel.send(str(child).encode())
        channel.send(str(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])).encode())


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)
    module = importlib.import_module(sys.argv[2])
    module.preload()
    with socket.socket(fileno=int(sys.argv[1])) as requests:
        argv = _forked(requests)
    if argv is not None:
        sys.exit(module.main(argv))
