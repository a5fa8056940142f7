"""Copies the client out of the TRex installation on the server's host, over SSH and SFTP, once per release.

Only Python files of the client's own packages are taken: no links, no libraries of others, within limits of number,
size and time. The host must show a key that is known.
"""

from __future__ import annotations

import contextlib
import re
import stat
import time
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import paramiko

from ...errors import TestbedError
from ...system.ssh import CONNECT_LIMIT, Login, connect
from ...system.uninterrupted import uninterrupted
from . import client_copies as copies
from .client_choice import Fetch
from .client_folders import CLIENT, INSIDE
from .probe import ServerFacts

ANSWER_LIMIT, WHOLE_LIMIT = 15.0, 120.0
"""Seconds for any one answer, and for the whole copy."""

MOST_FILES, MOST_BYTES, DEEPEST = 3000, 64 << 20, 8
"""What a client may be at most (that of v3.08: some 300 files, 4 MB)."""

PACKAGES = ("trex", "trex_stl_lib")
LEFT_OUT = frozenset(
    {"__pycache__", "cmds_server", "console", "examples", "pybird", "pybird_server", "scapy_server", "unit_tests"}
    | {"wireless"}
)
"""Folders of the client that a stateless session does not need."""

FIND = (
    'for c in /proc/[0-9]*/comm; do n=; read -r n < "$c"; case "$n" in _t-rex-64*) readlink "${c%/comm}/cwd";; esac;'
    " done 2>/dev/null | sort -u"
)
"""Asks for the folder in which a TRex server runs; Linux tells it to root and to the user who started it."""

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")


def fetcher(login: Login, home: str = "") -> Fetch:
    """What gets the client that a server ships, from the cache or through *login*.

    *home*: the folder of the installation there; "": that of the running server, else /opt/trex/<version>, /opt/trex.
    """

    def fetch(server: ServerFacts) -> Path:
        version = server.version or "unknown"
        if server.version and (found := copies.known(version)) is not None:
            return found
        return uninterrupted(
            lambda: _copy(login, home, version), WHOLE_LIMIT + 2 * CONNECT_LIMIT, "copying TRex's client"
        )

    return fetch


def _copy(login: Login, home: str, version: str) -> Path:
    until = time.monotonic() + WHOLE_LIMIT
    with contextlib.closing(connect(login, "the TRex server's host")) as client:
        try:
            with contextlib.closing(client.open_sftp()) as sftp:
                channel = sftp.get_channel()
                if channel is not None:
                    channel.settimeout(ANSWER_LIMIT)
                place = _find(client, sftp, login, home, version)
                files: dict[str, bytes] = {}
                for package in PACKAGES:
                    for path, size in _walk(sftp, place / INSIDE / package, DEEPEST, until):
                        if len(files) >= MOST_FILES or size + sum(map(len, files.values())) > MOST_BYTES:
                            raise TestbedError(
                                f"what is in '{place / INSIDE}' at {login.host} is more than a TRex client"
                                f" ({MOST_FILES} files, {MOST_BYTES >> 20} MB); fix 'trex_home' in the testbed file"
                            )
                        files[str(path.relative_to(place / INSIDE))] = _read(sftp, path, size)
        except (OSError, EOFError, paramiko.SSHException) as error:
            said = str(error) or type(error).__name__
            raise TestbedError(f"copying TRex's client from {login.where} was broken off: {said}") from error
    return copies.keep(version, files, f"{login.user}@{login.where}:{place}")


def _find(
    client: paramiko.SSHClient, sftp: paramiko.SFTPClient, login: Login, home: str, version: str
) -> PurePosixPath:
    tried = [home] if home else [*_running(client), f"/opt/trex/{version}", "/opt/trex"]
    for place in map(PurePosixPath, tried):
        for candidate in (place, place / "scripts"):
            with contextlib.suppress(FileNotFoundError, PermissionError):
                if stat.S_ISREG(sftp.stat(str(candidate / INSIDE / CLIENT)).st_mode or 0):
                    return candidate
    named = ", ".join(f"'{place}'" for place in tried)
    raise TestbedError(
        f"there is no TRex installation in {named} at {login.host} that '{login.user}' may read (looked for"
        f" {INSIDE / CLIENT}); expected its folder as 'trex_home', under 'generator' in the testbed file"
    )


def _running(client: paramiko.SSHClient) -> list[str]:
    """Folders in which TRex servers run there, as far as this user may know them."""
    with contextlib.suppress(OSError, EOFError, paramiko.SSHException):
        _, said, _ = client.exec_command(FIND, timeout=ANSWER_LIMIT)
        lines = said.read(4096).decode(errors="replace").splitlines()
        return [line for line in lines if line.startswith("/") and line.isprintable()][:8]
    return []


def _walk(
    sftp: paramiko.SFTPClient, place: PurePosixPath, depth: int, until: float
) -> Iterator[tuple[PurePosixPath, int]]:
    """Python files beneath *place* with their sizes. Links are passed over, wherever they lead."""
    if time.monotonic() > until:
        raise TestbedError(f"copying TRex's client took more than {WHOLE_LIMIT:g} s")
    try:
        rows = sftp.listdir_attr(str(place))
    except FileNotFoundError:
        return
    for row in sorted(rows, key=lambda item: item.filename):
        mode, name = row.st_mode or 0, row.filename
        if not _NAME.fullmatch(name):
            continue
        if stat.S_ISDIR(mode) and depth > 0 and name not in LEFT_OUT:
            yield from _walk(sftp, place / name, depth - 1, until)
        elif stat.S_ISREG(mode) and name.endswith(".py"):
            yield place / name, int(row.st_size or 0)


def _read(sftp: paramiko.SFTPClient, path: PurePosixPath, size: int) -> bytes:
    with sftp.open(str(path), "rb") as file:
        data = file.read(size + 1)
    if len(data) != size:
        raise TestbedError(f"'{path}' on the TRex server's host changed while it was copied; try again")
    return data
