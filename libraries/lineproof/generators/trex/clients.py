"""The TRex client for a server: what the server says of itself, which client fits it, and how that is copied.

Each of TRex's own clients gives a misleading error for a server of the other API. So this module opens a TCP
connection and sends the handshake ``api_sync`` itself. A client that TRex ships is a folder of an installation, or of
the user's cache: ``<cache>/trex-client/trex-<version>/`` has the Python files of the client's own packages, copied over
SSH once per release: no links, no other libraries.
"""

from __future__ import annotations

import io
import os
import re
import shlex
import socket
import tarfile
import tempfile
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import paramiko

from ...errors import TestbedError, system_words
from ...system.folders import CACHE_ELSEWHERE, cache_folder
from ...system.login import Login
from ...system.ssh import Connection
from ...visible import shortened
from .client.service import Refusal
from .client.shipped import CLIENT_FILE, CLIENT_PATH, client_folder
from .client.sockets import Pipe

PYPI_API = {"type": "core", "major": 4, "minor": 1}
"""API of trex-stl-lib 0.3."""

CONNECT_LIMIT, HANDSHAKE_LIMIT = 1.2, 2.5
"""Seconds for a TCP connection, and for the answer to the handshake."""

LONGEST_TEXT = 500
"""Characters of an answer to the handshake that a message repeats."""


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """Facts that a TRex server at ``where`` (``host:port``) reports before a client is chosen.

    ``takes_pypi``: it accepts the handshake of trex-stl-lib 0.3, else its message is in ``refusal``; ``version``: the
    release, such as ``v3.08``.
    """

    where: str
    takes_pypi: bool
    version: str = ""
    refusal: str = ""

    @property
    def description(self) -> str:
        """The server and whether it takes PyPI's client, for messages."""
        release = f" {self.version}" if self.version else ""
        return f"the TRex server{release} at {self.where} {'takes' if self.takes_pypi else 'refuses'} trex-stl-lib 0.3"


def ask_server(server: str, sync_port: int) -> ServerFacts:
    """Return the facts of the server. Raises TestbedError if none answers within 7 s, with a fix."""
    where = f"{server}:{sync_port}"
    try:
        socket.create_connection((server, sync_port), CONNECT_LIMIT).close()
    except OSError as error:
        why = "no answer" if isinstance(error, TimeoutError) else (error.strerror or str(error)).lower()
        reason = f", its port for requests ({why}); start it there (t-rex-64 -i), or"
        if isinstance(error, socket.gaierror):
            reason = f": the name '{server}' is not known ({error.strerror});"
        raise TestbedError(f"no TRex server answers at {where}{reason} fix 'address' in the testbed file") from error
    text, answer = "", {}
    try:
        call_server(server, sync_port, "api_sync", {"api_vers": [PYPI_API]})
    except Refusal as refusal:
        text = shortened(refusal, LONGEST_TEXT)
    with suppress(Refusal):
        answer = call_server(server, sync_port, "get_version", {})
    version = shortened(answer.get("version", ""), 60) if isinstance(answer, dict) else ""
    if mode := re.search(r"server RPC configuration: '(?!STL')(\w{1,20})'", text):
        raise TestbedError(
            f"the TRex server {version} at {where} runs in the mode {mode[1]}, not in stateless mode; expected to"
            " start it with: ./t-rex-64 -i --stl"
        )
    return ServerFacts(where, not text, version, text)


def call_server(server: str, port: int, method: str, parameters: Mapping[str, object]) -> Any:
    """Return the server's result of a single request. Raises Refusal for its error, TestbedError if no answer comes."""
    where = f"{server}:{port}"
    wrong = f"something listens at {where}, but it does not answer like a TRex server within {HANDSHAKE_LIMIT:g} s"
    with closing(Pipe(f"tcp://{where}")) as pipe:
        pipe.ask([{"jsonrpc": "2.0", "id": 1, "method": method, "params": dict(parameters)}])
        try:
            reply = pipe.answer(HANDSHAKE_LIMIT)
        except ValueError:
            reply, wrong = None, f"what answers at {where} is not a TRex server"
    if reply is None:
        raise TestbedError(f"{wrong}; fix 'address' in the testbed file, or start TRex in interactive mode there")
    return reply.results[0]


PYPI, FROM_SERVER = "pypi", "from server"

HOME_VARIABLE = "TREX_HOME"
"""Environment variable that names a local TRex installation, for testbeds that name no client."""

FetchClient = Callable[[ServerFacts], Path]
"""Copies the client of a server's installation and returns the copy's folder. Raises TestbedError."""


def choose_client(server: ServerFacts, client: str, fetch: FetchClient | None = None) -> Path | None:
    """Return the folder of the client to use; None: trex-stl-lib 0.3 of PyPI. Raises TestbedError, one sentence.

    *client*: ``pypi``, ``from server``, a folder, or "": the PyPI client if the server accepts it, else the
    installation of TREX_HOME, else the server's own client. The handshake shows whether it fits (:func:`misfit`).
    """
    if client in ("", PYPI) and server.takes_pypi:
        return None
    if client not in ("", PYPI, FROM_SERVER):
        return named_client(client)
    if not client and (home := home_client()):
        return home
    if client != PYPI and fetch is not None:
        return fetch(server)
    if client == FROM_SERVER:
        raise TestbedError(
            "'client: from server' needs a login on the TRex server's host: expected, under 'generator' in"
            " the testbed file, 'ssh: {user: …, key: …}'"
        )
    raise TestbedError(
        f"{server.description} and wants the client it ships; trex-stl-lib 0.3 of PyPI speaks core API"
        " 4.1, which servers up to v2.87 take; expected, under 'generator' in the testbed file,"
        " 'client: /path/of/a/TRex/installation' with that client, or without 'client: pypi' a login on the server's"
        f" host, 'ssh: {{user: …, key: …}}', from where it is copied; or its folder in {HOME_VARIABLE}"
        + (f" (there is no client in '{named}', which that names)" if (named := os.environ.get(HOME_VARIABLE)) else "")
        + (f" ({server.refusal})" if server.refusal else "")
    )


def home_client() -> Path | None:
    """Return the installation that TREX_HOME names, if there is a client in it."""
    home = os.environ.get(HOME_VARIABLE, "")
    return Path(home) if home and client_folder(Path(home)) is not None else None


def named_client(client: str) -> Path:
    """Return the folder *client* that a testbed file names. Raises TestbedError if it has no TRex client."""
    folder = Path(client).expanduser()
    if client_folder(folder) is None:
        raise TestbedError(
            f"there is no TRex client in '{folder}', which the testbed file names as 'client'; expected the"
            " folder of a TRex installation, or its automation/trex_control_plane/interactive"
        )
    return folder


def misfit(server: ServerFacts, folder: Path | None, refusal: str) -> str:
    """Return that *server* does not take *folder*'s client, in words; *refusal*: its own, which name both versions."""
    ours = "trex-stl-lib 0.3" if folder is None else f"the client in '{folder}'"
    return (
        f"{server.description}, but not {ours}: {refusal}; expected the client of the server's own installation: its"
        " folder as 'client', or 'client: from server'"
    )


PACKAGES = "trex trex_stl_lib"
UNNEEDED = "__pycache__ cmds_server console examples pybird pybird_server scapy_server unit_tests wireless"
"""Folders of the client that a stateless session does not need."""

_PRINT_CLIENT = (
    f'for h in "$@"; do for e in "$h" "$h/scripts"; do if [ -r "$e/{CLIENT_PATH / CLIENT_FILE}" ]; then'
    f' cd "$e/{CLIENT_PATH}" && find {PACKAGES} -type d \\( -name {" -o -name ".join(UNNEEDED.split())} \\) -prune'
    " -o -type f -name '*.py' -print | tar -cf - -T -; exit; fi; done; done"
)
"""Prints a tar file of the client of the first installation of those that are its arguments, and ends."""


def fetch_client(login: Login, home: str, server: ServerFacts) -> Path:
    """Return the client of *server* from the cache, or copied through *login*. Raises TestbedError.

    *home*: the folder of the installation; "": /opt/trex/<version>, /opt/trex.
    """
    version = re.sub(r"[^A-Za-z0-9._]", "_", server.version)[:40] or "unknown"
    copy = copies_folder() / f"trex-{version}"
    if copy.is_dir():
        return copy
    places = [home] if home else [f"/opt/trex/{version}", "/opt/trex"]
    try:
        with closing(Connection(login, "the TRex server's host").open()) as connection:
            # v3.08 has about 300 files, 4 MB
            data, errors, _ = connection.run(shlex.join(["sh", "-c", _PRINT_CLIENT, "sh", *places]), 120.0)
    except (OSError, EOFError, paramiko.SSHException) as error:
        reason = str(error) or type(error).__name__
        raise TestbedError(f"copying TRex's client from {login.where} failed: {reason}") from error
    if not data:
        tried = ", ".join(f"'{place}'" for place in places)
        reason = shortened(" ".join(errors.decode(errors="replace").split()))
        raise TestbedError(
            f"there is no TRex installation in {tried} at {login.address} that '{login.user}' may read (looked for"
            f" {CLIENT_PATH / CLIENT_FILE}{f'; it says: {reason}' if reason else ''}); expected its folder as"
            " 'trex_home', under 'generator' in the testbed file"
        )
    return store_copy(copy, data)


def copies_folder() -> Path:
    """Return the folder of the copies."""
    return cache_folder() / "trex-client"


def latest_copy() -> Path | None:
    """Return the newest copy of any release, or None."""
    with suppress(OSError, TestbedError):
        return max(copies_folder().glob("trex-*"), key=lambda copy: copy.stat().st_mtime, default=None)
    return None


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
        message = system_words(error, copy.parent, CACHE_ELSEWHERE)
        raise TestbedError(f"the copy of TRex's client cannot be kept in {message}") from error
    return copy
