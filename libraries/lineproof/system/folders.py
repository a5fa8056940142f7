"""The private folders of this user on this machine, and locks on files: of one process, freed however that ends."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pwd
import stat
import time
from pathlib import Path

from ..errors import TestbedError
from ..files import not_written

ELSEWHERE = "set XDG_RUNTIME_DIR to another folder of yours"
"""The other way out where :func:`runtime_folder` cannot be written."""

STATE_ELSEWHERE = "set XDG_STATE_HOME to another folder of yours that a reboot does not empty"
"""The other way out where :func:`state_folder` cannot be written."""

CACHE_ELSEWHERE = "set XDG_CACHE_HOME to another folder of yours that can be written"
"""The other way out where :func:`cache_folder` cannot be written."""


def runtime_folder() -> Path:
    """Return ``$XDG_RUNTIME_DIR/lineproof``, or ``/tmp/lineproof-<uid>`` if that is not this user's.

    Mode 0700. Raises TestbedError where that path is not a folder of this user alone, or cannot be made.
    """
    given = _own_folder("XDG_RUNTIME_DIR")
    return _private_folder(given / "lineproof" if given else Path(f"/tmp/lineproof-{os.getuid()}"), ELSEWHERE)  # noqa: S108


def state_folder(part: str) -> Path:
    """Return *part* of ``$XDG_STATE_HOME/lineproof`` or ``~/.local/state/lineproof``: a reboot leaves it.

    Mode 0700. Raises as :func:`runtime_folder`.
    """
    return _private_folder(_users("XDG_STATE_HOME", ".local/state", STATE_ELSEWHERE) / part, STATE_ELSEWHERE)


def cache_folder() -> Path:
    """Return ``$XDG_CACHE_HOME/lineproof`` or ``~/.cache/lineproof``. Raises as :func:`runtime_folder`."""
    return _private_folder(_users("XDG_CACHE_HOME", ".cache", CACHE_ELSEWHERE), CACHE_ELSEWHERE)


def _users(variable: str, default: str, elsewhere: str) -> Path:
    """Return this product's folder in the one that *variable* names, else in *default* of the home folder."""
    above = Path(os.environ.get(variable, ""))
    try:
        if not above.is_absolute():
            above = (_own_folder("HOME") or Path(pwd.getpwuid(os.getuid()).pw_dir)) / default
    except KeyError:
        raise TestbedError(
            f"the user {os.getuid()} has no account on this machine, and HOME names no folder of this user; {elsewhere}"
        ) from None
    return above / "lineproof"


def _own_folder(variable: str) -> Path | None:
    """Return the folder that *variable* names if it is this user's: under sudo it may be the caller's."""
    folder = Path(os.environ.get(variable, ""))
    return folder if folder.is_absolute() and folder.is_dir() and folder.stat().st_uid == os.getuid() else None


def _private_folder(folder: Path, elsewhere: str) -> Path:
    try:
        with contextlib.suppress(FileExistsError):
            folder.mkdir(mode=0o700, parents=True)
        status = folder.lstat()
    except OSError as error:
        raise not_written(folder, error, elsewhere) from error
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & 0o077:
        raise TestbedError(f"{folder} must be a folder of yours that no others can open; remove it, or {elsewhere}")
    return folder


def lock_within(descriptor: int, limit: float = 0.0) -> bool:
    """Lock the open file; False if another process has had it for *limit* s."""
    until = time.monotonic() + limit
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if time.monotonic() >= until:
                return False
            time.sleep(0.02)


def is_locked(descriptor: int) -> bool:
    """Return whether another process has the open file locked. Those who ask are not in each other's way."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False
