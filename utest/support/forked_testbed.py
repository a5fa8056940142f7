"""The processes of a simulated testbed, forked from one that has imported what they need: most of a session's time.

They are TRex's client of PyPI, who has labgrid's place, and ``lineproof_bench``. A forked one has its own streams,
environment, folder and session, and runs the program's ``main`` as it is. Its command line is that of this process, so
tests of processes themselves have them started as users do (:func:`not_forked`).
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import IO, Any, NoReturn

from lineproof.system import children
from support.paths import LIBRARIES, SUPPORT

CLIENT, BENCH = "lineproof.generators.trex.client", "lineproof_bench"
HOLDER = "lineproof.testbed.lab.holder"
NEEDS: Mapping[str, Sequence[str]] = {
    CLIENT: (),  # see _import
    HOLDER: ("lineproof.testbed.lab.coordinator",),
    BENCH: (),
}
"""The programs, and what is imported once for each, beside the program itself."""

MAINS = {CLIENT: f"{CLIENT}.__main__", BENCH: f"{BENCH}.__main__", HOLDER: HOLDER}
"""Program -> the module with its ``main``."""

_start = children.start


class Forks:
    """Where they are forked. Starts that process when the first is asked for."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._ours: socket.socket | None = None

    def use(self, channel: int) -> None:
        """Fork where another process of the tests does: its *channel*."""
        self._ours = socket.socket(fileno=channel)

    def channel(self) -> int:
        """The descriptor of the channel to the process that forks."""
        with self._lock:
            if self._ours is None:
                self._ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
                path = os.pathsep.join([str(LIBRARIES), str(SUPPORT.parent)])
                self._process = subprocess.Popen(
                    [sys.executable, "-P", "-m", __name__, str(theirs.fileno())],
                    env={**os.environ, "PYTHONPATH": path, "OPENBLAS_NUM_THREADS": "1"},
                    stdin=subprocess.DEVNULL,
                    pass_fds=[theirs.fileno()],
                    start_new_session=True,
                )
                theirs.close()
                atexit.register(self.close)
            return self._ours.fileno()

    def start(self, argv: Sequence[str], **options: Any) -> children.Child[bytes] | ForkedChild:
        """As :func:`lineproof.system.children.start`: forked if it is one of these programs."""
        program = _program(argv)
        if program is None:
            return _start(argv, **options)
        return ForkedChild(self.channel(), program, options)

    def close(self) -> None:
        """End the process that forks."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait(10)


FORKS = Forks()
"""Of this process."""


def install() -> None:
    """From now on testbeds that this process opens have forked processes."""
    children.start = FORKS.start  # type: ignore[assignment]


@contextmanager
def not_forked() -> Iterator[None]:
    """Testbeds that are opened in the context have processes as users have them."""
    before, children.start = children.start, _start
    try:
        yield
    finally:
        children.start = before


class ForkedChild:
    """What :mod:`lineproof` uses of :class:`subprocess.Popen`."""

    def __init__(self, channel: int, program: str, options: Mapping[str, Any]) -> None:
        self.returncode: int | None = None
        (far_in, near_in), (near_out, far_out), (status, told) = os.pipe(), os.pipe(), os.pipe()
        request = json.dumps([program, options.get("env") or children.environment()]).encode()
        with socket.socket(fileno=os.dup(channel)) as sender, Path(os.devnull).open("w") as nothing:
            errors = nothing if options["stderr"] == children.DEVNULL else options["stderr"]
            socket.send_fds(sender, [request], [far_in, far_out, errors.fileno(), told])
        for number in (far_in, far_out, told):
            os.close(number)
        buffering = options.get("bufsize", -1)
        self.stdin: IO[bytes] = os.fdopen(near_in, "wb", buffering)
        self.stdout: IO[bytes] = os.fdopen(near_out, "rb", buffering)
        self._status = os.fdopen(status, "rb", 0)
        self._lock = threading.Lock()
        self.pid = int(self._status.readline())

    def poll(self) -> int | None:
        """Its exit status, None while it runs."""
        with self._lock:
            if self.returncode is None and select.select([self._status], [], [], 0)[0]:
                # nothing: who waited for it was killed
                self.returncode = int(self._status.readline() or -signal.SIGKILL)
                self._status.close()
            return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Its exit status. Raises TimeoutExpired after *timeout* s."""
        if self.poll() is None:
            select.select([self._status], [], [], timeout)
        if (found := self.poll()) is None:
            raise children.TimeoutExpired([str(self.pid)], timeout or 0.0)
        return found

    def send_signal(self, number: int) -> None:
        """Unless it has ended."""
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def terminate(self) -> None:
        """SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """SIGKILL."""
        self.send_signal(signal.SIGKILL)


def _program(argv: Sequence[str]) -> str | None:
    """The program of :data:`MAINS` that *argv* runs, without any word."""
    return argv[-1] if argv[-1] in MAINS and tuple(argv) == children.python(argv[-1]) else None


def _run(program: str, env: Mapping[str, str]) -> NoReturn:
    """Be *program*, to the end of this process."""
    gc.enable()
    os.environ.clear()
    os.environ.update(env)
    # by this the process is found (see :func:`support.robot_run.processes_of`)
    with suppress(OSError):
        os.open(env.get("XDG_RUNTIME_DIR", "/"), os.O_RDONLY)
    children.start = _start
    sys.argv = [program]
    status: Any = 1
    try:
        status = importlib.import_module(MAINS[program]).main()
    except SystemExit as error:
        status = error.code
    except BaseException:
        traceback.print_exc()
    finally:
        with suppress(OSError, ValueError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(status if isinstance(status, int) else int(status is not None))


def _serve(channel: socket.socket) -> None:
    """Fork what is asked for, until nobody can ask any more."""
    signal.signal(signal.SIGCHLD, _collect)
    while True:
        request, streams, _, _ = socket.recv_fds(channel, 1 << 20, 4)
        if not request:
            return
        program, env = json.loads(request)
        _import(program)
        if not os.fork():
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            channel.close()
            _be_parent(program, env, streams)
        for stream in streams:
            os.close(stream)


def _collect(*_: object) -> None:
    """Take note of what has ended."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _be_parent(program: str, env: Mapping[str, str], streams: Sequence[int]) -> NoReturn:
    """Fork *program*, and write its id and its exit status to the last of *streams*."""
    *standard, told = streams
    child = os.fork()
    if not child:
        os.setsid()
        for number, stream in enumerate(standard):
            os.dup2(stream, number)
        os.closerange(3, max(streams) + 1)
        os.chdir("/")
        _run(program, env)
    for stream in standard:
        os.close(stream)
    os.write(told, b"%d\n" % child)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    with suppress(OSError):
        os.write(told, b"%d\n" % status)
    os._exit(0)


@cache
def _import(program: str) -> None:
    """Import what *program* imports, once."""
    if program == CLIENT:
        from lineproof.generators.trex.client import pypi

        kill_group = os.killpg
        pypi.load_library(pypi.BASIC_LAYERS)
        setattr(os, "killpg", kill_group)  # noqa: B010  # the client's own process does without it
    for name in (MAINS[program], *NEEDS[program]):
        importlib.import_module(name)
    gc.freeze()


if __name__ == "__main__":
    # the module of this name would be another one
    sys.modules[__spec__.name] = sys.modules["__main__"]
    with socket.socket(fileno=int(sys.argv[1])) as requests:
        _serve(requests)
