"""Copies the client from the TRex installation on the server's host over SSH, once per release.

``<cache>/trex-client/trex-<version>/`` has the Python files of the client's own packages: no links, no other libraries.
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import tarfile
import tempfile
from pathlib import Path, PurePosixPath

import paramiko

from ...errors import TestbedError, system_words
from ...system.folders import CACHE_ELSEWHERE, cache_folder
from ...system.login import Login
from ...system.ssh import Connection
from .client_choice import CLIENT_FILE, CLIENT_PATH, FetchClient
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


def fetcher(login: Login, home: str = "") -> FetchClient:
    """A function that gets a server's client from the cache or through *login*.

    *home*: the folder of the installation; "": of the running server, else /opt/trex/<version>, /opt/trex.
    """

    def fetch(server: ServerFacts) -> Path:
        version = re.sub(r"[^A-Za-z0-9._]", "_", server.version)[:40] or "unknown"
        copy = copies_folder() / f"trex-{version}"
        return copy if copy.is_dir() else _copy(login, home, version)

    return fetch


def copies_folder() -> Path:
    """The folder of the copies."""
    return cache_folder() / "trex-client"


def latest_copy() -> Path | None:
    """The newest copy of any release, or None."""
    with contextlib.suppress(OSError, TestbedError):
        return max(copies_folder().glob("trex-*"), key=lambda copy: copy.stat().st_mtime, default=None)
    return None


def _copy(login: Login, home: str, version: str) -> Path:
    places = [home] if home else [f"/opt/trex/{version}", "/opt/trex"]
    running = "" if home else f"$({_RUNNING_SERVERS})"
    script = f"IFS='\n'; for h in {running} {shlex.join(places)}; do {_PRINT_CLIENT} done"
    try:
        with contextlib.closing(Connection(login, "the TRex server's host").open()) as connection:
            data, words, _ = connection.run(shlex.join(["sh", "-c", script]), COPY_LIMIT)
    except (OSError, EOFError, paramiko.SSHException) as error:
        reason = str(error) or type(error).__name__
        raise TestbedError(f"copying TRex's client from {login.where} failed: {reason}") from error
    if not data:
        tried = ", ".join(f"'{place}'" for place in places)
        reason = " ".join(words.decode(errors="replace").split())[:200]
        raise TestbedError(
            f"there is no TRex installation in {tried} at {login.host} that '{login.user}' may read (looked for"
            f" {CLIENT_PATH / CLIENT_FILE}{f'; it says: {reason}' if reason.isprintable() and reason else ''});"
            " expected its folder as 'trex_home', under 'generator' in the testbed file"
        )
    return store_copy(copies_folder() / f"trex-{version}", data)


def store_copy(copy: Path, data: bytes) -> Path:
    """Unpack the tar file *data* as the folder *copy* in one step; return it. Raises TestbedError."""
    try:
        copy.parent.mkdir(exist_ok=True, mode=0o700)
        with tempfile.TemporaryDirectory(prefix=".new-", dir=copy.parent) as folder:
            fresh = Path(folder) / copy.name
            with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as archive:
                for member in archive:
                    outside = {"/", ".."} & set(PurePosixPath(member.name).parts)
                    if member.isreg() and not outside and (content := archive.extractfile(member)):
                        (fresh / member.name).parent.mkdir(parents=True, exist_ok=True)
                        (fresh / member.name).write_bytes(content.read())
            if not copy.is_dir():  # else another process was faster
                fresh.rename(copy)
    except tarfile.TarError as error:
        raise TestbedError(f"what the TRex server's host sent is no copy of its client: {error}") from error
    except OSError as error:
        words = system_words(error, copy.parent, CACHE_ELSEWHERE)
        raise TestbedError(f"the copy of TRex's client cannot be kept in {words}") from error
    return copy
