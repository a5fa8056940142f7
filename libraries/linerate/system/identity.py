"""Processes that can be told from later ones of the same number, and the private folder of this user's runs."""

from __future__ import annotations

import contextlib
import os
import stat
import sys
from dataclasses import dataclass
from pathlib import Path

import psutil

from ..errors import TestbedError


@dataclass(frozen=True, slots=True)
class Identity:
    """A process: ``start`` tells it from a later one with the same ``pid``; ``where`` is the boot and PID namespace."""

    pid: int
    start: str
    where: str

    @property
    def alive(self) -> bool:
        """Whether this very process still runs. One of another PID namespace cannot be seen and counts as alive."""
        boot, _, space = self.where.partition(" ")
        here_boot, _, here_space = _where().partition(" ")
        if boot != here_boot:
            return False
        return space != here_space or _start(self.pid) == self.start


def identify(pid: int) -> Identity:
    """The process *pid* of now. Raises ProcessLookupError where there is none."""
    start = _start(pid)
    if start is None:
        raise ProcessLookupError(pid)
    return Identity(pid, start, _where())


def runtime_folder() -> Path:
    """``$XDG_RUNTIME_DIR/linerate``, else ``/tmp/linerate-<uid>``; made with mode 0700 where missing.

    Raises TestbedError where something else than a folder of this user is in that place.
    """
    given = os.environ.get("XDG_RUNTIME_DIR", "")
    # under sudo the variable may still name the folder of the user who called it
    if given and Path(given).is_absolute() and Path(given).is_dir() and Path(given).stat().st_uid == os.getuid():
        return _own(Path(given) / "linerate")
    return _own(Path("/tmp") / f"linerate-{os.getuid()}")  # noqa: S108  (verified by _own)


def _own(folder: Path) -> Path:
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode):
        raise TestbedError(
            f"{folder} must be a folder and is not; remove it, or set XDG_RUNTIME_DIR to a folder of yours"
        )
    if found.st_uid != os.getuid():
        raise TestbedError(
            f"{folder} belongs to user {found.st_uid}, not to you ({os.getuid()}), so nothing secret can be kept there;"
            " have it removed, or set XDG_RUNTIME_DIR to a folder of yours"
        )
    if found.st_mode & 0o077:
        folder.chmod(0o700)
    return folder


def _start(pid: int) -> str | None:
    """When *pid* started, in a form that only compares; None where it is gone (a zombie has gone)."""
    if sys.platform != "linux":
        try:
            process = psutil.Process(pid)
            return None if process.status() == psutil.STATUS_ZOMBIE else f"{process.create_time():.2f}"
        except psutil.Error:
            return None
    try:
        # field 2 is the name in brackets and may hold anything; field 3 is the state, 22 the start in ticks since boot,
        # which no step of the clock changes
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else fields[19]


def _where() -> str:
    if sys.platform != "linux":
        return f"{psutil.boot_time():.0f} "
    boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    return f"{boot} {Path('/proc/self/ns/pid').readlink()}"
