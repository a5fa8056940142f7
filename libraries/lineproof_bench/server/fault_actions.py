"""The server's own part in the faults of the simulated bench: events, stolen ports, its end."""

from __future__ import annotations

from typing import Any

from ..backend import SimulatedBackend
from ..server_actions import THIEF, ServerAction
from .publisher import Event, Publisher
from .service import ServerMethods

THIEF_SESSION = 2**32
"""The thief's session: no client has it, since clients' sessions fit into 32 bits."""


def carry_out(faults: SimulatedBackend, service: ServerMethods, publisher: Publisher) -> ServerAction | None:
    """Carry out the actions that are due. Returns the one that ends the server."""
    for action in faults.server_actions():
        if action.what in ("end", "restart"):
            return action
        port = service.ports[action.port]
        data: dict[str, Any] = {"port_id": port.index}
        if action.what == "link":
            publisher.event(Event.ATTRIBUTES, data | {"attr": port.attributes_json(action.up)})
        elif action.what == "free":
            if port.owner == THIEF:
                port.release()
                publisher.event(Event.RELEASED, data | {"who": THIEF, "session_id": THIEF_SESSION})
        else:
            port.acquire(THIEF, THIEF_SESSION, force=True)
            publisher.event(Event.ACQUIRED, data | {"who": THIEF, "session_id": THIEF_SESSION, "force": True})
    return None
