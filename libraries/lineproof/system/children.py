"""How every other program is started: in the folder ``/`` if the caller names none, and with no secret handed on.

Only this module starts programs (``utest/test_layers.py``). Beside them how pip adds an extra that one needs.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import signal
import site
import subprocess
import sys
import sysconfig
import time
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NoReturn

from ..errors import TestbedError

PIPE, STDOUT, DEVNULL = subprocess.PIPE, subprocess.STDOUT, subprocess.DEVNULL
TimeoutExpired = subprocess.TimeoutExpired

KILL_LIMIT = 5.0
"""Seconds that a killed process has to be gone."""

LIBRARIES = Path(__file__).resolve().parents[2]
"""The folder of the package ``lineproof``, which may not be installed."""

SBIN_FOLDERS = ("/usr/sbin", "/sbin", "/usr/local/sbin")
"""Folders of administrators' programs, which a plain user's PATH may lack."""

HANDED_ON = frozenset(
    {"HOME", "USER", "LOGNAME", "SHELL", "PATH", "LD_LIBRARY_PATH", "LANG", "LANGUAGE", "TZ", "TERM", "TMPDIR"}
    | {"XDG_RUNTIME_DIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "TREX_HOME"}
    | {"PYTHONHOME", "PYTHONPATH", "PYTHONUSERBASE", "PYTHONNOUSERSITE", "PYTHONUTF8", "PYTHONDONTWRITEBYTECODE"}
    | {"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"}
)
"""Variables that a program gets, and those of the locale (``LC_…``): none that a person would give a password."""


def is_handed_on(name: str) -> bool:
    """Return whether every program gets the environment variable *name*."""
    return name in HANDED_ON or name.startswith("LC_")


def environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return a program's environment: the harmless part of this process's, and *more* as it is.

    A secret that a program needs has to be named in *more*.
    """
    variables = {name: text for name, text in os.environ.items() if is_handed_on(name)}
    return {**_importing(variables), **(more or {})}


def users_environment() -> dict[str, str]:
    """Return the whole environment, for a program in the user's own name: Robot, the bench's commands."""
    return _importing(os.environ)


def _importing(given: Mapping[str, str]) -> dict[str, str]:
    """Return *given* with this package on Python's path, also if it is not installed."""
    # an installed one is found anyway, and site-packages must not come before the standard library
    if str(LIBRARIES) in (sysconfig.get_path("purelib"), site.getusersitepackages()):
        return dict(given)
    return {**given, "PYTHONPATH": os.pathsep.join(filter(None, (str(LIBRARIES), given.get("PYTHONPATH"))))}


def python(module: str, *arguments: str) -> tuple[str, ...]:
    """Return the command that runs *module* here. ``-P``: imports nothing from the current folder."""
    return (sys.executable, "-P", "-m", module, *arguments)


def find_program(program: str) -> str | None:
    """Return the path of *program* in PATH or :data:`SBIN_FOLDERS`, never in the current folder."""
    folders = [*os.environ.get("PATH", os.defpath).split(os.pathsep), *SBIN_FOLDERS]
    return shutil.which(program, path=os.pathsep.join(filter(os.path.isabs, folders)))


class Child(subprocess.Popen[bytes]):
    """A program that has to end with its standard input; *options* of :class:`subprocess.Popen`.

    It has a session of its own: no Ctrl-C of a terminal ends it before its owner, who ends it in order. *env*: default
    :func:`environment`.
    """

    def __init__(
        self, argv: Sequence[str], *, env: Mapping[str, str] | None = None, cwd: str | Path = "/", **options: Any
    ) -> None:
        self._received = [b""]
        options = {"stdin": PIPE, "stdout": PIPE, **options}
        env = environment() if env is None else env
        super().__init__(list(argv), env=env, cwd=cwd, start_new_session=True, **options)

    def send(self, line: str) -> None:
        """Write *line* to its input; nothing if that is closed, or it has ended."""
        with contextlib.suppress(OSError, ValueError):
            if self.stdin:
                self.stdin.write(line.encode() + b"\n")
                self.stdin.flush()

    def line(self, limit: float) -> bytes:
        """Return the next line that it writes. Raises TimeoutError after *limit* s, EOFError at its end."""
        until = time.monotonic() + limit
        while b"\n" not in self._received[-1]:
            if self.stdout is None or self.stdout.closed:
                raise EOFError
            poll = select.poll()
            poll.register(self.stdout, select.POLLIN)
            if not poll.poll(1000 * max(0.0, until - time.monotonic())):
                raise TimeoutError
            if not (received := os.read(self.stdout.fileno(), 1 << 20)):
                raise EOFError
            self._received.append(received)
        line, _, rest = b"".join(self._received).partition(b"\n")
        self._received = [rest]
        return line

    def ask_end(self) -> None:
        """Ask it to end, by the end of its input. May be repeated."""
        with contextlib.suppress(OSError):
            if self.stdin is not None:
                self.stdin.close()

    def end(self, limit: float) -> bool:
        """End it by the end of its input; return whether it did within *limit* s. May be repeated.

        If not, it is killed with all that it started.
        """
        self.ask_end()
        try:
            self.wait(limit)
            in_order = True
        except TimeoutExpired:
            self.kill_all()
            with contextlib.suppress(TimeoutExpired):
                self.wait(KILL_LIMIT)
            in_order = False
        if self.stdout is not None:
            self.stdout.close()
        return in_order

    def kill_all(self) -> None:
        """Kill it and all it has started in its session. Nothing once it was waited for."""
        if self.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)


def run(
    argv: Sequence[str], limit: float, *, env: Mapping[str, str] | None = None, cwd: str | Path = "/", text: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run *argv*, its input *text*, to its end. Raises OSError; TimeoutExpired after *limit* s.

    It is killed then, with all that it started.
    """
    with Child(argv, env=env, cwd=cwd, stderr=PIPE) as child:
        try:
            printed = child.communicate(text.encode(), limit)
        finally:
            child.kill_all()
    return subprocess.CompletedProcess(argv, child.returncode, *(output.decode(errors="replace") for output in printed))


def become(argv: Sequence[str]) -> NoReturn:
    """Replace this process by *argv*, an absolute path first, with the same folder and environment."""
    os.execve(argv[0], list(argv), users_environment())  # noqa: S606  (no shell)


# -- extras of this package, and the bench that one of them brings


def requirement(extra: str) -> str:
    """Return pip's words for Lineproof with *extra*: ``lineproof[bench] @ file:///srv/lineproof``.

    The source is read from ``direct_url.json`` (PEP 610); an index leaves none, and the name alone is returned.
    """
    # takes 20 ms, and most processes need no extra
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        origin = json.loads(distribution("lineproof").read_text("direct_url.json") or "{}")
    except PackageNotFoundError:
        origin = {}
    name = f"lineproof[{extra}]"
    if "url" not in origin:
        return name
    repository = origin.get("vcs_info")
    prefix, suffix = (f"{repository['vcs']}+", f"@{repository['commit_id']}") if repository else ("", "")
    return f"{name} @ {prefix}{origin['url']}{suffix}"


def remedy(extra: str) -> str:
    """Return the command that brings the packages of *extra*."""
    return f"pip install '{requirement(extra)}'"


BENCH = ("lineproof_bench", "asyncssh")
"""Packages of the extra ``bench``, the bench's own first."""


def bench_command(part: str = "") -> tuple[str, ...]:
    """Return the command that starts the bench, or another program of it (``serve``, ``model.check``).

    Raises TestbedError where the extra ``bench`` is not installed.
    """
    if missing := [name for name in BENCH if find_spec(name) is None]:
        raise TestbedError(
            f"this needs the bench without hardware, and {' and '.join(missing)} is not installed; install it with:"
            f" {remedy('bench')}"
        )
    return python(".".join(filter(None, (BENCH[0], part))))
