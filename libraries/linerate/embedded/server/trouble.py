"""What the server itself does about faults that were asked for: events, ports given away, its own end."""

from __future__ import annotations

import os
from typing import Any, Protocol

from ..faults import Fault
from ..faulty import THIEF, Notice
from .publisher import Event, Publisher
from .service import Service

STATUS = 70
"""The exit status of a server that was asked to die."""


class Faulty(Protocol):
    """What has faults to tell of."""

    def notices(self) -> tuple[Notice, ...]:
        """What is to be done since the last question."""
        ...

    def hold(self) -> float | None:
        """Seconds of wall time that the answer just made is to be kept back."""
        ...

    def cause(self, faults: tuple[Fault, ...]) -> None:
        """Let these happen too."""
        ...


def act(faulty: Faulty, service: Service, publisher: Publisher) -> None:
    """Do what is to be done."""
    for notice in faulty.notices():
        if notice.what == "end":
            os._exit(STATUS)
        port = service.ports[notice.port]
        data: dict[str, Any] = {"port_id": port.index}
        if notice.what == "link":
            publisher.event(Event.ATTRIBUTES, data | {"attr": port.attributes(notice.up)})
        else:
            # a session that no client has: 32 bits are what theirs fit in
            session = 2**32
            port.acquire(THIEF, session, force=True)
            publisher.event(Event.ACQUIRED, data | {"who": THIEF, "session_id": session, "force": True})
