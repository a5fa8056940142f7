"""Releases the ports of a client's process that was killed: without it they stay held, and in service mode."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...errors import TestbedError
from .server_facts import PYPI_API, ask_server, call_server


def release_ports(host: str, sync_port: int, handlers: Mapping[str, str]) -> bool:
    """Stop traffic, captures and service mode of the ports of *handlers*, by number, and release them.

    Returns whether the server has released all. A port that somebody else has taken since has another handler, and
    nothing of it changes.
    """
    try:
        handshake = _handshake(host, sync_port)
        own = [(int(port), handler) for port, handler in handlers.items()]

        def ask(method: str, **parameters: object) -> Any:
            return call_server(host, sync_port, method, {**handshake, **parameters})

        held = [(port, handler) for port, handler in own if "error" not in _stop(ask, port, handler)]
        mask = sum(1 << port for port, _ in held)
        for number in _captures(ask("capture", command="status").get("result"), mask):
            ask("capture", command="remove", capture_id=number)
        for port, handler in held:
            ask("service", port_id=port, handler=handler, enabled=False)
        answers = [ask("release", port_id=port, handler=handler) for port, handler in held]
    except TestbedError:
        return False
    return len(held) == len(own) and all("error" not in answer for answer in answers)


def _handshake(host: str, sync_port: int) -> dict[str, object]:
    """The API's handler, as a parameter of every request. Raises TestbedError."""
    facts = ask_server(host, sync_port)
    if facts.api is None:
        api = {"type": "core", "major": PYPI_API[0], "minor": PYPI_API[1]}
        found = call_server(host, sync_port, "api_sync", {"api_vers": [api]}).get("result")
        rows = found.get("api_vers") if isinstance(found, dict) else None
        found = rows[0] if isinstance(rows, list) and rows else None
    else:
        name = {"name": "STL", "major": facts.api[0], "minor": facts.api[1]}
        found = call_server(host, sync_port, "api_sync_v2", name).get("result")
    if not isinstance(found, dict) or "api_h" not in found:
        raise TestbedError(f"the TRex server at {host}:{sync_port} gives no API handler")
    return {"api_h": found["api_h"]}


def _stop(ask: Any, port: int, handler: str) -> Mapping[str, Any]:
    found: Mapping[str, Any] = ask("stop_traffic", port_id=port, handler=handler, profile_id="*")
    return found


def _captures(status: object, mask: int) -> list[object]:
    """The numbers of the captures that look at ports of *mask* only."""
    found = []
    for row in status if isinstance(status, list) else ():
        ports = row.get("filter") if isinstance(row, dict) else None
        both = [ports.get(word) for word in ("rx", "tx")] if isinstance(ports, dict) else [None]
        seen = 0
        for item in both:
            seen |= item if isinstance(item, int) else ~mask
        if seen and not seen & ~mask:
            found.append(row["id"])
    return found
