"""Copies the client from the TRex installation on the server's host, over SSH and SFTP, once per release.

Only Python files of the client's own packages are copied: no links, no other libraries, within limits of number, size
and time. The host key must be known.

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
import stat
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath

import paramiko

from ...errors import TestbedError, system_words
from ...json_text import parse_json
from ...system.identity import CACHE_ELSEWHERE, cache_folder
from ...system.login import Login
from ...system.ssh import CONNECT_LIMIT, connect
from ...system.worker_thread import run_in_worker_thread
from .client_choice import FetchClient
from .client_folders import CLIENT_FILE, CLIENT_PATH, client_folder
from .server_facts import ServerFacts

ANSWER_LIMIT, COPY_LIMIT = 15.0, 120.0
"""Seconds for one answer, and for the whole copy."""

MAX_FILES, MAX_BYTES, MAX_DEPTH = 3000, 64 << 20, 8
"""Limits of a client (v3.08 has about 300 files, 4 MB)."""

MAX_ENTRIES = 10_000
"""Entries of one folder."""

PACKAGES = ("trex", "trex_stl_lib")
EXCLUDED_FOLDERS = frozenset(
    {"__pycache__", "cmds_server", "console", "examples", "pybird", "pybird_server", "scapy_server", "unit_tests"}
    | {"wireless"}
)
"""Folders of the client that a stateless session does not need."""

FIND_RUNNING_SERVERS = (
    'for c in /proc/[0-9]*/comm; do n=; read -r n < "$c"; case "$n" in _t-rex-64*) readlink "${c%/comm}/cwd";; esac;'
    " done 2>/dev/null | sort -u"
)
"""Prints the folders in which TRex servers run; Linux shows them to root and to the user who started the server."""

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")


def fetcher(login: Login, home: str = "") -> FetchClient:
    """A function that gets a server's client from the cache or through *login*.

    *home*: the folder of the installation; "": of the running server, else /opt/trex/<version>, /opt/trex.
    """

    def fetch(server: ServerFacts) -> Path:
        version = server.version or "unknown"
        if server.version and (found := find_copy(version)) is not None:
            return found
        return run_in_worker_thread(
            lambda: _copy(login, home, version), COPY_LIMIT + 2 * CONNECT_LIMIT, "copying TRex's client"
        )

    return fetch


def _copy(login: Login, home: str, version: str) -> Path:
    until = time.monotonic() + COPY_LIMIT
    with contextlib.closing(connect(login, "the TRex server's host")) as client:
        try:
            with contextlib.closing(_sftp(client)) as sftp:
                channel = sftp.get_channel()
                if channel is not None:
                    channel.settimeout(ANSWER_LIMIT)
                place = _find_installation(client, sftp, login, home, version)
                files: dict[str, bytes] = {}
                for package in PACKAGES:
                    for path, size in _python_files(sftp, place / CLIENT_PATH / package, MAX_DEPTH, until):
                        if len(files) >= MAX_FILES or size + sum(map(len, files.values())) > MAX_BYTES:
                            raise TestbedError(
                                f"what is in '{place / CLIENT_PATH}' at {login.host} is more than a TRex client"
                                f" ({MAX_FILES} files, {MAX_BYTES >> 20} MB); fix 'trex_home' in the testbed file"
                            )
                        files[str(path.relative_to(place / CLIENT_PATH))] = _read(sftp, path, size)
        except (OSError, EOFError, paramiko.SSHException) as error:
            reason = str(error) or type(error).__name__
            raise TestbedError(f"copying TRex's client from {login.where} failed: {reason}") from error
    return store_copy(version, files, f"{login.user}@{login.where}:{place}")


def _sftp(client: paramiko.SSHClient) -> paramiko.SFTPClient:
    try:
        return client.open_sftp()
    except (EOFError, paramiko.SSHException) as error:
        raise TestbedError(
            f"the TRex server's host offers no SFTP ({str(error).rstrip('.') or type(error).__name__}), by which TRex's"
            " client is copied; write 'Subsystem sftp internal-sftp' into its sshd_config, or name a copy of the client"
            " on this machine as 'client', under 'generator' in the testbed file"
        ) from error


def _find_installation(
    client: paramiko.SSHClient, sftp: paramiko.SFTPClient, login: Login, home: str, version: str
) -> PurePosixPath:
    tried = [home] if home else [*_running_server_folders(client), f"/opt/trex/{version}", "/opt/trex"]
    for place in map(PurePosixPath, tried):
        for candidate in (place, place / "scripts"):
            with contextlib.suppress(FileNotFoundError, PermissionError):
                if stat.S_ISREG(sftp.stat(str(candidate / CLIENT_PATH / CLIENT_FILE)).st_mode or 0):
                    return candidate
    named = ", ".join(f"'{place}'" for place in tried)
    raise TestbedError(
        f"there is no TRex installation in {named} at {login.host} that '{login.user}' may read (looked for"
        f" {CLIENT_PATH / CLIENT_FILE}); expected its folder as 'trex_home', under 'generator' in the testbed file"
    )


def _running_server_folders(client: paramiko.SSHClient) -> list[str]:
    """Folders in which TRex servers run, as far as this user can see them."""
    with contextlib.suppress(OSError, EOFError, paramiko.SSHException):
        _, output, _ = client.exec_command(FIND_RUNNING_SERVERS, timeout=ANSWER_LIMIT)
        lines = output.read(4096).decode(errors="replace").splitlines()
        return [line for line in lines if line.startswith("/") and line.isprintable()][:8]
    return []


def _python_files(
    sftp: paramiko.SFTPClient, place: PurePosixPath, depth: int, until: float
) -> Iterator[tuple[PurePosixPath, int]]:
    """Python files below *place* with their sizes, without links."""
    rows: list[paramiko.SFTPAttributes] = []
    try:
        for row in sftp.listdir_iter(str(place)):
            rows.append(row)
            if time.monotonic() > until:
                raise TestbedError(f"copying TRex's client took more than {COPY_LIMIT:g} s")
            if len(rows) > MAX_ENTRIES:
                raise TestbedError(f"'{place}' on the TRex server's host has more than {MAX_ENTRIES} entries")
    except FileNotFoundError:
        return
    for row in sorted(rows, key=lambda item: item.filename):
        mode, name = row.st_mode or 0, row.filename
        if not _NAME.fullmatch(name):
            continue
        if stat.S_ISDIR(mode) and depth > 0 and name not in EXCLUDED_FOLDERS:
            yield from _python_files(sftp, place / name, depth - 1, until)
        elif stat.S_ISREG(mode) and name.endswith(".py"):
            yield place / name, int(row.st_size or 0)


def _read(sftp: paramiko.SFTPClient, path: PurePosixPath, size: int) -> bytes:
    with sftp.open(str(path), "rb") as file:
        data = file.read(size + 1)
    if len(data) != size:
        raise TestbedError(f"'{path}' on the TRex server's host changed while it was copied; try again")
    return data


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
