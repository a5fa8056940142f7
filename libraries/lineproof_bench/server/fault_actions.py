"""The server's own part in the faults of the simulated bench: events, stolen ports, its end."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from typing import Any, Protocol

from lineproof.simulation.faults import InjectedFault

from ..faults.server_actions import THIEF, ServerAction
from .publisher import Event, Publisher
from .service import ServerMethods

FAULT_EXIT_STATUS = 70
"""Exit status of a server that ends because of a fault."""

THIEF_SESSION = 2**32
"""The thief's session: no client has it, since clients' sessions fit into 32 bits."""


class FaultSource(Protocol):
    """A backend with faults."""

    def server_actions(self) -> tuple[ServerAction, ...]:
        """What the server has to do since the last call."""
        ...

    def reply_delay(self) -> float | None:
        """Seconds of wall time to delay the present reply; None: do not delay it."""
        ...

    def drops_reply(self) -> bool:
        """Whether the present reply is not sent at all."""
        ...

    def cause(self, faults: tuple[InjectedFault, ...]) -> None:
        """Let these happen too."""
        ...


def carry_out(faults: FaultSource, service: ServerMethods, publisher: Publisher, addresses: Mapping[str, Any]) -> None:
    """Carry out the actions that are due. *addresses*: of this server, for one that replaces it."""
    for action in faults.server_actions():
        if action.what == "end":
            os._exit(FAULT_EXIT_STATUS)
        if action.what == "restart":
            again = {"after": action.after, "specification": {**action.specification, **addresses}}
            sys.stdout.write(json.dumps({"again": again}) + "\n")
            sys.stdout.flush()
            os._exit(FAULT_EXIT_STATUS)
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
