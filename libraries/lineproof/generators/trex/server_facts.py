"""Finds a TRex server and its API version, before a client library is chosen.

The library itself waits 10 s for an answer and repeats the server's words of a mismatch. This module opens a TCP
connection and sends the handshake ``api_sync`` itself.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import Any

from ...errors import TestbedError
from ...visible import shortened
from .client.service import Refusal
from .client.sockets import Pipe

PYPI_API = (4, 1)
"""Core API (major, minor) of trex-stl-lib 0.3."""

CONNECT_LIMIT = 1.2
"""Seconds for a TCP connection."""

HANDSHAKE_LIMIT = 2.5
"""Seconds for the answer to the handshake."""


LONGEST_TEXT = 500
"""Characters of an answer to the handshake that a message repeats."""


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """Facts that a TRex server reports before a client is chosen."""

    where: str
    """``host:port``."""
    takes_pypi: bool
    """True: the server accepts the handshake of trex-stl-lib 0.3."""
    api: tuple[int, int] | None = None
    """The STL API (major, minor) that it named when it refused that handshake."""
    version: str = ""
    """The release, such as ``v3.08``."""
    refusal: str = ""
    """The server's message when it refused."""

    @property
    def description(self) -> str:
        """The server and its API, for messages."""
        release = f" {self.version}" if self.version else ""
        if self.api:
            speaks = f"speaks STL API {self.api[0]}.{self.api[1]}"
        else:
            speaks = "takes trex-stl-lib 0.3" if self.takes_pypi else "refuses trex-stl-lib 0.3"
        return f"the TRex server{release} at {self.where} {speaks}"


def ask_server(server: str, sync_port: int) -> ServerFacts:
    """The facts of the server. Raises TestbedError if none answers within 7 s, with a fix."""
    where = f"{server}:{sync_port}"
    _connect(server, sync_port)
    pypi = {"type": "core", "major": PYPI_API[0], "minor": PYPI_API[1]}
    text = ""
    try:
        call_server(server, sync_port, "api_sync", {"api_vers": [pypi]})
    except Refusal as refusal:
        text = shortened(refusal, LONGEST_TEXT)
    found = {}
    with suppress(Refusal):
        found = call_server(server, sync_port, "get_version", {})
    version = shortened(found.get("version", ""), 60) if isinstance(found, dict) else ""
    if not text:
        return ServerFacts(where, True, version=version)
    if mode := re.search(r"server RPC configuration: '(?!STL')(\w{1,20})'", text):
        raise TestbedError(
            f"the TRex server {version} at {where} runs in the mode {mode[1]}, not in stateless mode; expected to"
            " start it with: ./t-rex-64 -i --stl"
        )
    wanted = re.search(r"server: '(\d{1,4})\.(\d{1,4})'", text)
    return ServerFacts(where, False, (int(wanted[1]), int(wanted[2])) if wanted else None, version, text)


def _connect(server: str, port: int) -> None:
    try:
        socket.create_connection((server, port), CONNECT_LIMIT).close()
    except socket.gaierror as error:
        raise TestbedError(
            f"no TRex server answers at {server}:{port}: the name '{server}' is not known ({error.strerror}); fix"
            " 'address' in the testbed file"
        ) from error
    except OSError as error:
        reason = "no answer" if isinstance(error, TimeoutError) else (error.strerror or str(error)).lower()
        raise TestbedError(
            f"no TRex server answers at {server}:{port}, its port for requests ({reason}); start it there"
            " (t-rex-64 -i), or fix 'address' in the testbed file"
        ) from error


def call_server(server: str, port: int, method: str, parameters: Mapping[str, object]) -> Any:
    """The server's result of a single request. Raises Refusal for its error, TestbedError if no answer comes."""
    where = f"{server}:{port}"
    with closing(Pipe(f"tcp://{where}")) as pipe:
        pipe.ask([{"jsonrpc": "2.0", "id": 1, "method": method, "params": dict(parameters)}])
        try:
            reply = pipe.answer(HANDSHAKE_LIMIT)
        except ValueError:
            raise TestbedError(
                f"what answers at {where} is not a TRex server; fix 'address' in the testbed file"
            ) from None
    if reply is None:
        raise TestbedError(
            f"something listens at {where}, but it does not answer like a TRex server within"
            f" {HANDSHAKE_LIMIT:g} s; fix 'address' in the testbed file, or start TRex in interactive mode there"
        )
    return reply.results[0]
