"""Finds a TRex server and its API version, before a client library is chosen.

The library itself waits 10 s for an answer and repeats the server's words of a mismatch. This module opens a TCP
connection to each port and sends the handshake ``api_sync`` (JSON-RPC 2.0 in a ZeroMQ REQ socket).
"""

from __future__ import annotations

import json
import re
import socket
from dataclasses import dataclass

import zmq

from ...errors import TestbedError
from ...visible import visible_data

PYPI_API = (4, 1)
"""Core API (major, minor) of trex-stl-lib 0.3."""

CONNECT_LIMIT = 1.2
"""Seconds for a TCP connection, per port."""

HANDSHAKE_LIMIT = 2.5
"""Seconds for the answer to the handshake."""


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """What a TRex server reports before a client is chosen."""

    where: str
    """``host:port``."""
    takes_pypi: bool
    """Whether it accepts the handshake of trex-stl-lib 0.3."""
    api: tuple[int, int] | None = None
    """The STL API (major, minor) that it named when it refused that handshake."""
    version: str = ""
    """Its release, such as ``v3.08``."""
    refusal: str = ""
    """Its message when it refused."""

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
    _connect(server, sync_port, "requests")
    pypi = {"type": "core", "major": PYPI_API[0], "minor": PYPI_API[1]}
    answer = _call(server, sync_port, "api_sync", {"api_vers": [pypi]})
    found = _call(server, sync_port, "get_version", {}).get("result")
    version = str(found.get("version", "")) if isinstance(found, dict) else ""
    if "error" not in answer:
        return ServerFacts(where, True, version=version)
    text = _text(answer["error"])
    if mode := re.search(r"server RPC configuration: '(?!STL')(\w+)'", text):
        raise TestbedError(
            f"the TRex server {version} at {where} runs in the mode {mode[1]}, not in stateless mode; expected to"
            " start it with: ./t-rex-64 -i --stl"
        )
    wanted = re.search(r"server: '(\d+)\.(\d+)'", text)
    return ServerFacts(where, False, (int(wanted[1]), int(wanted[2])) if wanted else None, version, text)


def check_events_port(server: str, async_port: int) -> None:
    """Raise TestbedError with a fix, unless the port for events answers."""
    _connect(server, async_port, "events")


def _connect(server: str, port: int, role: str) -> None:
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
            f"no TRex server answers at {server}:{port}, its port for {role} ({reason}); start it there"
            " (t-rex-64 -i), or fix 'address' in the testbed file"
        ) from error


def _call(server: str, port: int, method: str, parameters: dict[str, object]) -> dict[str, object]:
    request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": parameters}
    with zmq.Context() as context, context.socket(zmq.REQ) as link:
        link.setsockopt(zmq.LINGER, 0)
        link.connect(f"tcp://{server}:{port}")
        link.send_string(json.dumps(request))
        if not link.poll(round(HANDSHAKE_LIMIT * 1000)):
            raise TestbedError(
                f"something listens at {server}:{port}, but it does not answer like a TRex server within"
                f" {HANDSHAKE_LIMIT:g} s; fix 'address' in the testbed file, or start TRex in interactive mode there"
            )
        try:
            answer = visible_data(json.loads(link.recv()))
        except ValueError:
            answer = None
    if not isinstance(answer, dict) or not ("error" in answer or "result" in answer):
        raise TestbedError(f"what answers at {server}:{port} is not a TRex server; fix 'address' in the testbed file")
    return answer


def _text(error: object) -> str:
    found = ""
    if isinstance(error, dict):
        found = str(error.get("specific_err") or error.get("message") or "")
    return " ".join(found.split())
