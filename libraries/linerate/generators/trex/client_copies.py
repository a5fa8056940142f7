"""Checked copies of the clients that servers ship, in the user's cache: one folder per release and content.

``<cache>/trex-client/<version>-<hash>/`` holds ``client``, the copy, and ``source.json``, what it is: SHA-256 over all
names, sizes and bytes. A copy that is no longer what it was is never used: it is thrown away, and fetched again.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from ...errors import TestbedError
from .client_folders import cache, interactive

_RECORD, _TREE = "source.json", "client"
_UNSAFE = re.compile(r"[^A-Za-z0-9._]")


def folder() -> Path:
    """Where the copies are."""
    return cache() / "trex-client"


def content_hash(tree: Path) -> str:
    """SHA-256 over *tree* in hexadecimal digits. Raises TestbedError where it holds anything but folders and files."""
    found = hashlib.sha256()
    for path in sorted(tree.rglob("*")):
        if path.is_symlink() or not (path.is_dir() or path.is_file()):
            raise TestbedError(f"'{path}' is neither a file nor a folder")
        if path.is_file():
            data = path.read_bytes()
            found.update(f"{path.relative_to(tree).as_posix()}\0{len(data)}\0".encode() + data)
    return found.hexdigest()


def known(version: str) -> Path | None:
    """The unchanged copy of the client of release *version*; None where there is none. Changed ones are removed."""
    for entry in sorted(folder().glob(f"{_safe(version)}-*")):
        if (found := _checked(entry, version)) is not None:
            return found
        shutil.rmtree(entry, ignore_errors=True)
    return None


def latest() -> Path | None:
    """The unchanged copy that was made last, of whatever release; None where there is none."""
    try:
        entries = sorted(folder().glob("*-*"), key=lambda entry: entry.stat().st_mtime, reverse=True)
    except (OSError, TestbedError):
        return None
    for entry in entries:
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            version = str(json.loads((entry / _RECORD).read_text(encoding="utf-8"))["version"])
            if (found := _checked(entry, version)) is not None:
                return found
    return None


def keep(version: str, files: Mapping[str, bytes], source: str) -> Path:
    """Put *files* (relative POSIX path to content) of release *version* into the cache, at once and whole; the copy.

    *source*: where they are from, for the record. Raises TestbedError where the cache cannot be written.
    """
    try:
        folder().mkdir(parents=True, exist_ok=True, mode=0o700)
        fresh = Path(tempfile.mkdtemp(prefix=".new-", dir=folder()))
    except OSError as error:
        raise TestbedError(
            f"the copy of TRex's client cannot be kept in '{folder()}': {error.strerror or error}; expected a"
            " folder that can be written, named by XDG_CACHE_HOME"
        ) from error
    try:
        for name, data in files.items():
            path = fresh / _TREE / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        digest = content_hash(fresh / _TREE)
        record = {"version": version, "sha256": digest, "files": len(files), "source": source}
        (fresh / _RECORD).write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
        entry = folder() / f"{_safe(version)}-{digest[:16]}"
        for _ in range(2):
            with contextlib.suppress(OSError):
                fresh.rename(entry)  # fails where somebody else was faster, or a broken copy is in the way
            if (found := _checked(entry, version)) is not None:
                return found
            shutil.rmtree(entry, ignore_errors=True)
        raise TestbedError(f"the copy of TRex's client in '{entry}' changes while it is made; remove that folder")
    except OSError as error:
        raise TestbedError(f"the copy of TRex's client cannot be kept in '{folder()}': {error}") from error
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def _checked(entry: Path, version: str) -> Path | None:
    try:
        if entry.is_symlink() or entry.stat().st_uid != os.getuid():
            return None
        record = json.loads((entry / _RECORD).read_text(encoding="utf-8"))
        tree = entry / _TREE
        digest = content_hash(tree)
        right = record["version"] == version and record["sha256"] == digest and entry.name.endswith(digest[:16])
    except (OSError, ValueError, KeyError, TypeError, TestbedError):
        return None
    return tree if right and interactive(tree) is not None else None


def _safe(version: str) -> str:
    return _UNSAFE.sub("_", version)[:40] or "unknown"
