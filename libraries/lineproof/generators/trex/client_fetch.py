"""Copies the client from the TRex installation on the server's host over SSH, once per release.

``<cache>/trex-client/<version>-<hash>/`` has the Python files of the client's own packages: no links, no other
libraries. The hash is of all their names and bytes.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import re
import shlex
import shutil
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import paramiko

from ...errors import TestbedError, system_words
from ...system.identity import CACHE_ELSEWHERE, cache_folder
from ...system.login import Login
from ...system.ssh import Connection
from .client_choice import CLIENT_FILE, CLIENT_PATH, FetchClient, client_folder
from .server_facts import ServerFacts

COPY_LIMIT = 120.0
"""Seconds for the whole copy (v3.08 has about 300 files, 4 MB)."""

PACKAGES = ("trex", "trex_stl_lib")
UNNEEDED = (
    *("__pycache__", "cmds_server", "console", "examples", "pybird", "pybird_server", "scapy_server", "unit_tests"),
    "wireless",
)
"""Folders of the client that a stateless session does not need."""

_RUNNING_SERVERS = (
    'for c in /proc/[0-9]*/comm; do n=; read -r n < "$c"; case "$n" in _t-rex-64*) readlink "${c%/comm}/cwd";; esac;'
    " done 2>/dev/null | sort -u"
)
"""Prints the folders in which TRex servers run; Linux shows them to root and to the user who started the server."""

_PRINT_CLIENT = (
    f'for e in "$h" "$h/scripts"; do if [ -r "$e/{CLIENT_PATH / CLIENT_FILE}" ]; then cd "$e/{CLIENT_PATH}" &&'
    f" find {' '.join(PACKAGES)} -type d \\( {' -o '.join(f'-name {name}' for name in UNNEEDED)} \\) -prune"
    " -o -type f -name '*.py' -print | tar -cf - -T -; exit; fi; done;"
)
"""Prints a tar file of the client of the installation ``$h``, if there is one, and ends."""

_NAME, _NOT_IN_A_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}"), re.compile(r"[^A-Za-z0-9._]")


def fetcher(login: Login, home: str = "") -> FetchClient:
    """A function that gets a server's client from the cache or through *login*.

    *home*: the folder of the installation; "": of the running server, else /opt/trex/<version>, /opt/trex.
    """

    def fetch(server: ServerFacts) -> Path:
        version = _NOT_IN_A_NAME.sub("_", server.version)[:40] or "unknown"
        copies = sorted(copies_folder().glob(f"{version}-*")) if server.version else ()
        return next(iter(copies), None) or _copy(login, home, version)

    return fetch


def copies_folder() -> Path:
    """The folder of the copies."""
    return cache_folder() / "trex-client"


def latest_copy() -> Path | None:
    """The newest copy of any release, or None."""
    with contextlib.suppress(OSError, TestbedError):
        return max(copies_folder().glob("[!.]*-*"), key=lambda copy: copy.stat().st_mtime, default=None)
    return None


def _copy(login: Login, home: str, version: str) -> Path:
    places = [home] if home else [f"/opt/trex/{version}", "/opt/trex"]
    running = "" if home else f"$({_RUNNING_SERVERS})"
    script = f"IFS='\n'; for h in {running} {shlex.join(places)}; do {_PRINT_CLIENT} done"
    try:
        with contextlib.closing(Connection(login, "the TRex server's host").open()) as connection:
            data, words, _ = connection.run(shlex.join(["sh", "-c", script]), COPY_LIMIT)
        files = dict(_python_files(data))
    except (OSError, EOFError, ValueError, paramiko.SSHException, tarfile.TarError) as error:
        reason = str(error) or type(error).__name__
        raise TestbedError(f"copying TRex's client from {login.where} failed: {reason}") from error
    if str(CLIENT_FILE) not in files:
        tried = ", ".join(f"'{place}'" for place in places)
        reason = " ".join(words.decode(errors="replace").split())[:200]
        raise TestbedError(
            f"there is no TRex installation in {tried} at {login.host} that '{login.user}' may read (looked for"
            f" {CLIENT_PATH / CLIENT_FILE}{f'; it says: {reason}' if reason.isprintable() and reason else ''});"
            " expected its folder as 'trex_home', under 'generator' in the testbed file"
        )
    return store_copy(version, files)


def _python_files(data: bytes) -> Iterator[tuple[str, bytes]]:
    """Path and content of each Python file of a package in a tar file; nothing else is read."""
    if not data:
        return
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as archive:
        for member in archive:
            parts = PurePosixPath(member.name).parts
            if member.isreg() and parts[0] in PACKAGES and all(map(_NAME.fullmatch, parts)):
                content = archive.extractfile(member)
                yield member.name, content.read() if content else b""


def store_copy(version: str, files: dict[str, bytes]) -> Path:
    """Store *files* (relative POSIX path to content) of release *version* in one step; return the copy's folder.

    Raises TestbedError if the cache cannot be written.
    """
    try:
        copies_folder().mkdir(exist_ok=True, mode=0o700)
        fresh = Path(tempfile.mkdtemp(prefix=".new-", dir=copies_folder()))
        try:
            digest = hashlib.sha256()
            for name, data in sorted(files.items()):
                digest.update(f"{name}\0{len(data)}\0".encode() + data)
                path = fresh / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)
            copy = copies_folder() / f"{version}-{digest.hexdigest()[:16]}"
            if client_folder(copy) is None:  # else another process was faster
                fresh.rename(copy)
            return copy
        finally:
            shutil.rmtree(fresh, ignore_errors=True)
    except OSError as error:
        words = system_words(error, copies_folder(), CACHE_ELSEWHERE)
        raise TestbedError(f"the copy of TRex's client cannot be kept in {words}") from error
