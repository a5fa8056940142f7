"""How every other program is started: in the folder ``/`` if the caller names none, and with no secret handed on.

Only this module starts programs (``utest/test_layers.py``).
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import site
import subprocess
import sys
import sysconfig
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any, NoReturn

Child = subprocess.Popen
"""A running program."""

DEVNULL, PIPE, STDOUT = subprocess.DEVNULL, subprocess.PIPE, subprocess.STDOUT
TimeoutExpired = subprocess.TimeoutExpired

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
    """The environment of a program: what is handed on of this process's own, and *more* as it is.

    A secret that a program needs has to be named in *more*.
    """
    found = {name: text for name, text in os.environ.items() if is_handed_on(name)}
    return {**_importing(found), **(more or {})}


def users_environment() -> dict[str, str]:
    """This process's whole environment, for a program that runs in the user's own name: Robot, the bench's commands."""
    return _importing(os.environ)


def _importing(given: Mapping[str, str]) -> dict[str, str]:
    """*given*, with this package on Python's path, also where it is not installed."""
    # an installed one is found anyway, and site-packages must not come before the standard library
    if str(LIBRARIES) in (sysconfig.get_path("purelib"), site.getusersitepackages()):
        return dict(given)
    return {**given, "PYTHONPATH": os.pathsep.join(filter(None, (str(LIBRARIES), given.get("PYTHONPATH"))))}


def python(module: str, *words: str) -> tuple[str, ...]:
    """The command that runs *module* in this interpreter. ``-P``: nothing is imported from the current folder."""
    return (sys.executable, "-P", "-m", module, *words)


def find_program(program: str) -> str | None:
    """The absolute path of *program*, from PATH or :data:`SBIN_FOLDERS`; never one of the current folder."""
    folders = [*os.environ.get("PATH", os.defpath).split(os.pathsep), *SBIN_FOLDERS]
    return shutil.which(program, path=os.pathsep.join(filter(os.path.isabs, folders)))


def start(
    argv: Sequence[str], *, env: Mapping[str, str] | None = None, cwd: str | Path = "/", **options: Any
) -> Child[bytes]:
    """Start *argv*; *options* as of :class:`subprocess.Popen`. *env*: default :func:`environment`. Raises OSError."""
    return subprocess.Popen(list(argv), env=environment() if env is None else dict(env), cwd=cwd, **options)


def run(
    argv: Sequence[str], limit: float, *, env: Mapping[str, str] | None = None, cwd: str | Path = "/", text: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run *argv*, its input *text*, to its end. Raises OSError; TimeoutExpired after *limit* s.

    It is killed then, with all that it started.
    """
    with start(argv, env=env, cwd=cwd, stdin=PIPE, stdout=PIPE, stderr=PIPE, start_new_session=True) as child:
        try:
            printed = child.communicate(text.encode(), limit)
        finally:
            kill_group(child)
    return subprocess.CompletedProcess(argv, child.returncode, *(output.decode(errors="replace") for output in printed))


def end(child: subprocess.Popen[bytes], limit: float) -> bool:
    """End *child*, which has a session of its own, by the end of its input; return whether it did within *limit* s.

    If not, it is killed with all that it started.
    """
    with contextlib.suppress(OSError):
        if child.stdin is not None:
            child.stdin.close()
    try:
        child.wait(limit)
        return True
    except TimeoutExpired:
        kill_group(child)
        with contextlib.suppress(TimeoutExpired):
            child.wait(KILL_LIMIT)
        return False


KILL_LIMIT = 5.0
"""Seconds that a killed process has to be gone."""


def kill_group(child: subprocess.Popen[bytes]) -> None:
    """Kill *child*, which has a session of its own, and all it has started there. Nothing once it was waited for."""
    if child.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)


def pipes(child: subprocess.Popen[bytes]) -> tuple[IO[bytes], IO[bytes]]:
    """Input and output of *child*, which was started with pipes for both."""
    if child.stdin is None or child.stdout is None:
        raise ValueError("the program was started without pipes")
    return child.stdin, child.stdout


def send_line(child: subprocess.Popen[bytes], line: str) -> None:
    """Write *line* to the input of *child*; nothing if that is closed, or the child has ended."""
    with contextlib.suppress(OSError, ValueError):
        if child.stdin:
            child.stdin.write(line.encode() + b"\n")
            child.stdin.flush()


def become(argv: Sequence[str]) -> NoReturn:
    """Replace this process by *argv*, an absolute path first; it keeps the folder and the user's environment."""
    os.execve(argv[0], list(argv), users_environment())  # noqa: S606  (no shell)
