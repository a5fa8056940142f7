"""What the server itself does about faults that were asked for: events, ports given away, its own end."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from typing import Any, Protocol

from linerate.simulation.faults import InjectedFault

from ..faults.notices import THIEF, Notice
from .publisher import Event, Publisher
from .service import ServerMethods

STATUS = 70
"""The exit status of a server that was asked to die."""

SESSION = 2**32
"""The thief's: one that no client has, for 32 bits are what theirs fit in."""


class Faulty(Protocol):
    """What has faults to tell of."""

    def notices(self) -> tuple[Notice, ...]:
        """What is to be done since the last question."""
        ...

    def hold(self) -> float | None:
        """Seconds of wall time that the answer just made is to be kept back."""
        ...

    def drop(self) -> bool:
        """Whether the answer just made is never to be sent."""
        ...

    def cause(self, faults: tuple[InjectedFault, ...]) -> None:
        """Let these happen too."""
        ...


def act(faulty: Faulty, service: ServerMethods, publisher: Publisher, addresses: Mapping[str, Any]) -> None:
    """Do what is to be done. *addresses*: what a specification needs for another server to take this one's place."""
    for notice in faulty.notices():
        if notice.what == "end":
            os._exit(STATUS)
        if notice.what == "restart":
            again = {"after": notice.after, "specification": {**notice.specification, **addresses}}
            sys.stdout.write(json.dumps({"again": again}) + "\n")
            sys.stdout.flush()
            os._exit(STATUS)
        port = service.ports[notice.port]
        data: dict[str, Any] = {"port_id": port.index}
        if notice.what == "link":
            publisher.event(Event.ATTRIBUTES, data | {"attr": port.told(notice.up)})
        elif notice.what == "free":
            if port.owner == THIEF:
                port.release()
                publisher.event(Event.RELEASED, data | {"who": THIEF, "session_id": SESSION})
        else:
            port.acquire(THIEF, SESSION, force=True)
            publisher.event(Event.ACQUIRED, data | {"who": THIEF, "session_id": SESSION, "force": True})
