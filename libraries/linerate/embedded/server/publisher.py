"""What is told to clients without being asked: events, barriers and counters, in the form of TRex's API 4.

Every message has a name that the 0.3 client knows: one that it does not know makes it kill its parent's process group.
Newer clients fetch the same events with ``get_async_events``, numbered for each session.
"""

from __future__ import annotations

import time
from collections import deque
from enum import IntEnum
from typing import Any

import zmq

from .rpc import ZIP_ABOVE, encode, zip_message

SESSIONS, KEPT = 32, 10_000
LATE = 1.0
"""Seconds for which a barrier is said again to a subscriber that has just arrived."""


PERIOD, PERIOD_NEWER = 0.4, 0.7
"""Seconds of wall time between two publications of the counters. Clients of API 4 expect one each 0.5 s; those of API 5
ask for events only when nothing was published for 0.5 s, so while one is there the pause must be longer."""
NEWER_FOR = 5.0
"""Seconds after its last word for which a client of API 5 counts as being there."""


class Event(IntEnum):
    """TRex's event types. The profile's are the twins that API 5 expects before the port's."""

    STARTED = 0
    STOPPED = 1
    PAUSED = 2
    RESUMED = 3
    JOB_DONE = 4
    ACQUIRED = 5
    RELEASED = 6
    ERROR = 7
    PROFILE_STARTED = 10
    PROFILE_STOPPED = 11
    PROFILE_PAUSED = 12
    PROFILE_RESUMED = 13
    PROFILE_DONE = 14
    SERVER_STOPPED = 100


TWIN = {
    Event.STARTED: Event.PROFILE_STARTED,
    Event.STOPPED: Event.PROFILE_STOPPED,
    Event.PAUSED: Event.PROFILE_PAUSED,
    Event.RESUMED: Event.PROFILE_RESUMED,
    Event.JOB_DONE: Event.PROFILE_DONE,
}


class Publisher:
    """Publishes on *socket*, an XPUB, so that it learns of new subscribers."""

    def __init__(self, socket: zmq.Socket[bytes]) -> None:
        self._socket = socket
        self._sessions: dict[int, tuple[deque[dict[str, Any]], list[int]]] = {}
        self._barrier: tuple[float, dict[str, Any]] | None = None
        self._newer = -NEWER_FOR

    def _send(self, message: dict[str, Any]) -> None:
        data = encode(message)
        self._socket.send(zip_message(data) if len(data) > ZIP_ABOVE else data, zmq.NOBLOCK)

    def subscribed(self) -> None:
        """Read what subscribers say. A new one may have missed the barrier it waits for: it is said again.

        Without this the 0.3 client repeats its first ``publish_now`` only after 100 ms.
        """
        while self._socket.poll(0):
            said = self._socket.recv()
            if said[:1] == b"\x01" and self._barrier and time.monotonic() - self._barrier[0] < LATE:
                self._send(self._barrier[1])

    def arrival(self) -> None:
        """A client has just said hello: barriers before this moment are other clients'.

        The 0.3 client dies of a barrier that it sees before it has asked for its own.
        """
        self._barrier = None

    def newer_client(self) -> None:
        """A client of API 5 has just spoken."""
        self._newer = time.monotonic()

    @property
    def period(self) -> float:
        """Seconds of wall time until the counters are to be published again."""
        return PERIOD_NEWER if time.monotonic() - self._newer < NEWER_FOR else PERIOD

    def counters(self, data: dict[str, Any], baseline: bool = False) -> None:
        """Publish all counters (``trex-global``)."""
        self._send({"name": "trex-global", "type": 0, "baseline": baseline, "data": data})

    def barrier(self, key: int) -> None:
        """Publish the answer to ``publish_now``: whoever sees it has seen everything before."""
        message = {"name": "trex-barrier", "type": key, "data": {}}
        self._barrier = time.monotonic(), message
        self._send(message)

    def event(self, kind: Event, data: dict[str, Any]) -> None:
        """Publish an event of *kind*, after its twin."""
        if kind in TWIN:
            self._event(TWIN[kind], {**data, "profile_id": "_"})
        self._event(kind, data)

    def _event(self, kind: Event, data: dict[str, Any]) -> None:
        message = {"name": "trex-event", "type": int(kind), "data": data}
        self._send(message)
        for queue, following in self._sessions.values():
            queue.append({**message, "seq": following[0]})
            following[0] += 1

    def events_of(self, session: int) -> list[dict[str, Any]]:
        """Events since this session last asked; from its first question on."""
        self.newer_client()
        if session not in self._sessions:
            while len(self._sessions) >= SESSIONS:
                self._sessions.pop(next(iter(self._sessions)))
            self._sessions[session] = deque(maxlen=KEPT), [0]
        queue, _ = self._sessions[session]
        found = list(queue)
        queue.clear()
        return found
