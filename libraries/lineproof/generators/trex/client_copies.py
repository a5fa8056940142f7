"""Checked copies of the clients that servers ship, in the user's cache: one folder per release and content.

``<cache>/trex-client/<version>-<hash>/`` has the copy in ``client`` and its record in ``source.json``, with the SHA-256
over all names, sizes and bytes. A changed copy is never used: it is removed and fetched again.
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

from ...errors import TestbedError, system_words
from ...json_text import parse_json
from ...system.identity import CACHE_ELSEWHERE, cache_folder
from .client_folders import client_folder

_RECORD, _TREE = "source.json", "client"
_NOT_FOR_NAMES = re.compile(r"[^A-Za-z0-9._]")


def copies_folder() -> Path:
    """The folder of the copies."""
    return cache_folder() / "trex-client"


def content_hash(tree: Path) -> str:
    """SHA-256 over *tree* in hexadecimal digits. Raises TestbedError if it has links or devices."""
    found = hashlib.sha256()
    for path in sorted(tree.rglob("*")):
        if path.is_symlink() or not (path.is_dir() or path.is_file()):
            raise TestbedError(f"'{path}' is neither a file nor a folder")
        if path.is_file():
            data = path.read_bytes()
            found.update(f"{path.relative_to(tree).as_posix()}\0{len(data)}\0".encode() + data)
    return found.hexdigest()


def find_copy(version: str) -> Path | None:
    """The unchanged copy of the client of release *version*, or None. Changed copies are removed."""
    for entry in sorted(copies_folder().glob(f"{_folder_name(version)}-*")):
        if (found := _unchanged(entry, version)) is not None:
            return found
        shutil.rmtree(entry, ignore_errors=True)
    return None


def latest_copy() -> Path | None:
    """The newest unchanged copy of any release, or None."""
    try:
        entries = sorted(copies_folder().glob("*-*"), key=lambda entry: entry.stat().st_mtime, reverse=True)
    except (OSError, TestbedError):
        return None
    for entry in entries:
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            version = str(parse_json((entry / _RECORD).read_bytes(), own=True)["version"])
            if (found := _unchanged(entry, version)) is not None:
                return found
    return None


def store_copy(version: str, files: Mapping[str, bytes], source: str) -> Path:
    """Store *files* (relative POSIX path to content) of release *version* in one step; return the copy's folder.

    *source*: their origin, for the record. Raises TestbedError if the cache cannot be written.
    """
    try:
        copies_folder().mkdir(exist_ok=True, mode=0o700)
        fresh = Path(tempfile.mkdtemp(prefix=".new-", dir=copies_folder()))
    except OSError as error:
        raise _not_kept(error) from error
    try:
        for name, data in files.items():
            path = fresh / _TREE / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        digest = content_hash(fresh / _TREE)
        record = {"version": version, "sha256": digest, "files": len(files), "source": source}
        (fresh / _RECORD).write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
        entry = copies_folder() / f"{_folder_name(version)}-{digest[:16]}"
        for _ in range(2):
            with contextlib.suppress(OSError):
                fresh.rename(entry)  # fails if another process was faster, or a changed copy is there
            if (found := _unchanged(entry, version)) is not None:
                return found
            shutil.rmtree(entry, ignore_errors=True)
        raise TestbedError(f"the copy of TRex's client in '{entry}' changes while it is written; remove that folder")
    except OSError as error:
        raise _not_kept(error) from error
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def _not_kept(error: OSError) -> TestbedError:
    words = system_words(error, copies_folder(), CACHE_ELSEWHERE)
    return TestbedError(f"the copy of TRex's client cannot be kept in {words}")


def _unchanged(entry: Path, version: str) -> Path | None:
    try:
        if entry.is_symlink() or entry.stat().st_uid != os.getuid():
            return None
        record = parse_json((entry / _RECORD).read_bytes(), own=True)
        tree = entry / _TREE
        digest = content_hash(tree)
        unchanged = record["version"] == version and record["sha256"] == digest and entry.name.endswith(digest[:16])
    except (OSError, ValueError, KeyError, TypeError, TestbedError):
        return None
    return tree if unchanged and client_folder(tree) is not None else None


def _folder_name(version: str) -> str:
    return _NOT_FOR_NAMES.sub("_", version)[:40] or "unknown"
