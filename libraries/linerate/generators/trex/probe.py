"""Is there a TRex server, and does it speak this client's language? Asked before the client's library is involved.

The library itself waits 10 s for an answer and words a mismatch as the server does. This asks by hand: a TCP
connection to each port, then the handshake ``api_sync`` (JSON-RPC 2.0 in a ZeroMQ REQ socket).
"""

from __future__ import annotations

import json
import re
import socket

import zmq

from ...errors import BenchError

API = (4, 1)
"""Core API, (major, minor), that trex-stl-lib 0.3 speaks."""

CONNECT_LIMIT = 1.2
"""Seconds for a TCP connection, per port."""

HANDSHAKE_LIMIT = 2.5
"""Seconds for the answer to the handshake."""


def probe(server: str, sync_port: int, async_port: int) -> None:
    """Return if a server answers there that accepts this client. Raises BenchError, within 5 s, with the remedy."""
    for port, role in ((sync_port, "requests"), (async_port, "events")):
        _connect(server, port, role)
    answer = _handshake(server, sync_port)
    if "error" in answer:
        raise BenchError(_refused(f"{server}:{sync_port}", answer["error"]))


def _connect(server: str, port: int, role: str) -> None:
    try:
        socket.create_connection((server, port), CONNECT_LIMIT).close()
    except socket.gaierror as error:
        raise BenchError(
            f"no TRex server answers at {server}:{port}: the name '{server}' is not known ({error.strerror}); mend"
            " 'address' in the testbed file"
        ) from error
    except OSError as error:
        reason = "no answer" if isinstance(error, TimeoutError) else (error.strerror or str(error)).lower()
        raise BenchError(
            f"no TRex server answers at {server}:{port}, its port for {role} ({reason}); start it there"
            " (t-rex-64 -i), or mend 'address' in the testbed file"
        ) from error


def _handshake(server: str, port: int) -> dict[str, object]:
    request = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "api_sync",
        "params": {"api_vers": [{"type": "core", "major": API[0], "minor": API[1]}]},
    }
    with zmq.Context() as context, context.socket(zmq.REQ) as link:
        link.setsockopt(zmq.LINGER, 0)
        link.connect(f"tcp://{server}:{port}")
        link.send_string(json.dumps(request))
        if not link.poll(round(HANDSHAKE_LIMIT * 1000)):
            raise BenchError(
                f"something listens at {server}:{port}, but it does not answer as a TRex server does within"
                f" {HANDSHAKE_LIMIT:g} s; mend 'address' in the testbed file, or start TRex in interactive mode there"
            )
        try:
            answer = json.loads(link.recv())
        except ValueError:
            answer = None
    if not isinstance(answer, dict) or not ("error" in answer or "result" in answer):
        raise BenchError(f"what answers at {server}:{port} is not a TRex server; mend 'address' in the testbed file")
    return answer


def _refused(where: str, error: object) -> str:
    text = ""
    if isinstance(error, dict):
        text = str(error.get("specific_err") or error.get("message") or "")
    text = " ".join(text.split())
    wanted = re.search(r"server: '([\d.]+)'", text)
    ours = ".".join(str(part) for part in API)
    if wanted:
        return (
            f"the TRex server at {where} speaks STL API {wanted[1]} and wants the client it ships (handshake"
            f" api_sync_v2); this testbed uses trex-stl-lib 0.3 from PyPI (handshake api_sync, core API {ours})."
            f" Right would be a TRex release that speaks API {API[0]}.x (up to v2.87)"
        )
    return f"the TRex server at {where} refuses the handshake of trex-stl-lib 0.3 (api_sync, core API {ours}): {text}"
