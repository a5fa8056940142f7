"""Files: read with bounds, plain ones only, and no more of them than they can need; written whole or not at all."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import stat
from pathlib import Path

from .errors import ConfigError, TestbedError, system_words

_ROBOT_BLOCK = re.compile(
    r"^[ \t]*(?P<fence>`{3,}|~{3,})[ \t]*robot(framework)?(?!\S).*\n"
    r"(?P<lines>(.*\n)*?)([ \t]*(?P=fence)[`~]*[ \t]*$|\Z)",
    re.MULTILINE | re.IGNORECASE,
)
"""The blocks that Robot reads of a Markdown file."""


def read_file(path: Path, most: int | None = None) -> bytes:
    """Return the content of the plain file *path*. Raises ConfigError for all else, and for more than *most* bytes.

    *most*: None for a run's own files, which may have any size.

    It does not wait for a writer (FIFO) and does not read a device.
    """
    try:
        _check_plain(path, path.stat())
        # O_NONBLOCK: should a FIFO take the file's place meanwhile, opening it must not wait
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            _check_plain(path, os.fstat(file.fileno()))
            content = file.read() if most is None else file.read(most + 1)
    except OSError as error:
        reason = "is a link to a file that does not exist" if path.is_symlink() and not path.exists() else None
        raise ConfigError(reason or f"cannot be read: {_words(path, error)}", path) from None
    except ValueError:
        raise ConfigError("is not the name of a file; expected one without NUL", path) from None
    except MemoryError:
        raise ConfigError("is larger than the memory of this machine", path) from None
    if most is not None and len(content) > most:
        raise ConfigError(f"has more than {most >> 10} KiB, the most that is read of such a file; shorten it", path)
    return content


def _check_plain(path: Path, status: os.stat_result) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise ConfigError("is a folder; expected a file", path)
    if not stat.S_ISREG(status.st_mode):
        raise ConfigError("is a device, a pipe or a socket; expected a file", path)


def read_text(path: Path, most: int) -> str:
    """Return the file *path* as UTF-8 text, without a byte order mark. Raises ConfigError as :func:`read_file`."""
    try:
        return read_file(path, most).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(f"is not UTF-8 text (byte {error.start}); save it as UTF-8", path) from None


def exists(path: Path) -> bool:
    """Return whether there is a *path*; unlike `Path.exists` no error for a path that cannot be one."""
    return os.path.exists(path)  # noqa: PTH110  (Path's raises)


def is_folder(path: Path) -> bool:
    """Return whether *path* is one; unlike `Path.is_dir` no error for a path that cannot be one."""
    return os.path.isdir(path)  # noqa: PTH112  (Path's raises)


def require_folder(path: Path, what: str) -> Path:
    """Return *path*, if it is a folder. *what*: for messages. Raises ConfigError."""
    if not is_folder(path):
        problem = "is not a folder" if os.path.lexists(path) else "does not exist"
        raise ConfigError(f"{what} {problem}; expected an existing folder", path)
    return path


def write_whole(
    path: Path, content: str | bytes, instead: str = "", mode: int = 0o644, fresh: Path | None = None
) -> None:
    """Write or replace *path*: its folder is made, and the content is on the disk when this returns.

    A reader sees the former content or the new one; nothing else stays where it fails. *mode*: of the file. *fresh*:
    where the content is until it is whole. Raises TestbedError naming the file, the space left and what to do:
    *instead*, as ``set TMPDIR to another folder``.
    """
    # a short name of its own: that of the file may be as long as names can be, and two processes may write it at once
    fresh = fresh or path.with_name(f".{os.getpid()}-{secrets.token_hex(6)}.part")
    try:
        write_beside(fresh, path, content, instead, mode)
        put_in_place(fresh, path, instead)
    except BaseException:
        with contextlib.suppress(OSError):
            fresh.unlink()
        raise


def write_beside(fresh: Path, path: Path, content: str | bytes, instead: str = "", mode: int = 0o644) -> None:
    """Write the new content of *path* to *fresh* beside it, for :func:`put_in_place`; whatever it wrote stays there.

    Raises TestbedError as :func:`write_whole` does.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(os.open(fresh, flags, mode), "wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise not_written(path, error, instead) from error


def put_in_place(fresh: Path, path: Path, instead: str = "") -> None:
    """Let *fresh* take the place of *path*, on the disk too. Raises TestbedError as :func:`write_whole` does."""
    try:
        fresh.replace(path)
        sync_folder(path.parent)
    except OSError as error:
        raise not_written(path, error, instead) from error


def check_writable(folder: Path) -> None:
    """Raise TestbedError unless a file can be written in *folder*, which is made: before work that ends with one."""
    probe = folder / f".{secrets.token_hex(6)}.part"
    write_whole(probe, bytes(1 << 16))
    with contextlib.suppress(OSError):
        probe.unlink()


def append_line(path: Path, line: bytes, instead: str = "") -> None:
    """Append *line* to *path*, which may be missing: it is on the disk when this returns, or nothing of it is.

    Raises TestbedError as :func:`write_whole` does.
    """
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            size, written = os.lseek(descriptor, 0, os.SEEK_END), 0
            try:
                while written < len(line):  # a full disk first takes a part, and then gives the reason
                    written += os.write(descriptor, line[written:])
                os.fsync(descriptor)
            except BaseException:
                # half a line would damage the next one
                os.ftruncate(descriptor, size)
                raise
        finally:
            os.close(descriptor)
    except OSError as error:
        raise not_written(path, error, instead) from error


def not_written(path: Path, error: OSError, instead: str = "") -> TestbedError:
    """Return the error that *path* cannot be written, because of *error*."""
    return TestbedError(f"{path} cannot be written: {_words(path, error, instead)}")


def _words(path: Path, error: OSError, instead: str = "") -> str:
    return system_words(error, path, instead).removeprefix(f"{path}: ")


def sync_folder(folder: Path) -> None:
    """Put the names in *folder* on the disk: a new one is there only then."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def place(source: object, line: int | None) -> str:
    """Return ``file:line`` of a suite's *line*, as Robot counts: of Markdown, lines in blocks and one between two."""
    path, numbers = Path(str(source)), list[int]()
    if line and path.suffix.lower() in (".md", ".markdown"):
        text = path.read_text(encoding="utf-8-sig", errors="replace")
        for block in _ROBOT_BLOCK.finditer(text):
            first = text.count("\n", 0, block.start("lines")) + 1
            numbers += [*([first] if numbers else []), *range(first, first + block["lines"].count("\n"))]
    return f"{path}:{numbers[line - 1] if line and line <= len(numbers) else line}"
