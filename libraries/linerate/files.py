"""Files that users and vendors write, read with bounds: plain files only, and no more of them than they can need."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from .errors import ConfigError


def read_file(path: Path, most: int) -> bytes:
    """The content of the plain file *path*. Raises ConfigError for all else, and for more than *most* bytes.

    It does not wait for a writer (FIFO) and does not read a device.
    """
    try:
        _check_plain(path, path.stat())
        # O_NONBLOCK: should a FIFO take the file's place meanwhile, opening it must not wait
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            _check_plain(path, os.fstat(file.fileno()))
            content = file.read(most + 1)
    except OSError as error:
        reason = "is a link to a file that does not exist" if path.is_symlink() and not path.exists() else None
        raise ConfigError(reason or f"cannot be read: {error.strerror}", path) from None
    except ValueError:
        raise ConfigError("is not the name of a file; expected one without NUL", path) from None
    if len(content) > most:
        raise ConfigError(f"has more than {most >> 10} KiB, the most that is read of such a file; shorten it", path)
    return content


def _check_plain(path: Path, found: os.stat_result) -> None:
    if stat.S_ISDIR(found.st_mode):
        raise ConfigError("is a folder; expected a file", path)
    if not stat.S_ISREG(found.st_mode):
        raise ConfigError("is a device, a pipe or a socket; expected a file", path)


def read_text(path: Path, most: int) -> str:
    """The file *path* as UTF-8 text, without a byte order mark. Raises ConfigError as :func:`read_file`."""
    try:
        return read_file(path, most).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(f"is not UTF-8 text (byte {error.start}); save it as UTF-8", path) from None


def is_folder(path: Path) -> bool:
    """Whether *path* is one; unlike `Path.is_dir` no error for a path that cannot be one."""
    return os.path.isdir(path)  # noqa: PTH112


def require_folder(path: Path, what: str) -> Path:
    """*path*, if it is a folder. *what*: for messages. Raises ConfigError."""
    if not is_folder(path):
        problem = "is not a folder" if os.path.lexists(path) else "does not exist"
        raise ConfigError(f"{what} {problem}; expected an existing folder", path)
    return path
