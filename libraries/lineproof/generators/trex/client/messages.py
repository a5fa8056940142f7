# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-or-later
"""Events of the server, errors of the libraries as plain text, and core loads."""

from __future__ import annotations

import math
import re
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

JOB_DONE, ACQUIRED, ERROR, ATTRIBUTES, SERVER_STOPPED = 4, 5, 7, 8, 100
"""Types of ``trex-event`` messages."""

LONGEST_MESSAGE = 2000
"""Characters of a server's own words that a message repeats."""

MOST_COMPLAINTS = 20
"""Events of a trial that are repeated in words."""

PORTS = range(256)
"""Numbers that a port may have."""


def plain_message(error: object) -> str:
    """The text of an error or result of the library in one line. Its errors fail in ``str()`` and have colours."""
    text = getattr(error, "msg", None)
    if text is None and hasattr(error, "rc_list"):
        text = "; ".join(str(item.data) for item in error.rc_list if not item.rc)
    if text is None:
        text = f"{type(error).__name__}: {error}" if isinstance(error, Exception) else str(error)
    text = re.sub(r"\x1b\[[0-9;]*m", "", str(text)).replace("***", "")
    lines = (" ".join(line.split()).replace(" : ", ": ") for line in text[: 2 * LONGEST_MESSAGE].splitlines())
    found = "".join(each if each.isprintable() else "?" for each in "; ".join(line for line in lines if line))
    return found if len(found) <= LONGEST_MESSAGE else found[: LONGEST_MESSAGE - 1] + "…"


def peak_load(cores: Iterable[Sequence[float]], seconds: float) -> float | None:
    """The highest load of a core in the last *seconds* (at least the last whole one), in per cent; None: not reported.

    *cores*: the load of each second, the latest first. A mean would hide a core that falls behind.
    """
    count = max(1, int(seconds))
    return max((load for core in cores for load in core[:count] if math.isfinite(load)), default=None)


def peak_load_during(cores: Iterable[Sequence[float]], ago: float, took: float, second: float) -> float | None:
    """The highest possible load of a core, in per cent, in a time of *took* s that ended *ago* s ago; None: unknown.

    *cores*: the loads of periods of *second* s, the latest first, which ends now. Of a period that is partly outside
    of the time, as much work as possible counts.
    """
    found: float | None = None
    for core in cores:
        busy = 0.0
        for number, load in enumerate(core):
            latest, earliest = number * second, (number + 1) * second
            within = min(earliest, ago + took) - max(latest, ago)
            busy += min(load / 100 * second, max(0.0, within))
        found = max(found or 0.0, 100 * busy / took) if core else found
    return None if found is None else round(found, 1)


class ServerEvents:
    """Events of the server since the trial began. A thread of the library may fill it."""

    def __init__(self, session_id: int) -> None:
        self._session_id = session_id
        self.changed = threading.Condition()
        self.clear()

    def clear(self) -> None:
        """Remove the events of the last trial."""
        self.ended: dict[int, float] = {}
        self.complaints: list[str] = []
        self.links_down: set[int] = set()
        """Ports whose link was down."""
        self.links_in_doubt = False
        """An attribute of a port has changed: links have to be checked."""

    def wrap_event_handler(self, original: Callable[[int, Any], None]) -> Callable[[int, Any], None]:
        """A handler of events for the library, which records them and calls *original*."""

        def handle(kind: int, data: Any) -> None:
            now = time.monotonic()
            try:
                original(kind, data)
            except Exception as error:  # an error of the library must not end its thread
                print(f"event {kind}: {type(error).__name__}: {error}", file=sys.stderr)
            with self.changed:
                self._record(kind, data if isinstance(data, dict) else {}, now)
                self.changed.notify_all()

        return handle

    def _record(self, kind: int, data: Mapping[str, Any], now: float) -> None:
        port = data.get("port_id")
        if not isinstance(port, int) or port not in PORTS:
            port = None
        if kind == JOB_DONE and port is not None:
            self.ended[port] = now
        elif kind == ACQUIRED and data.get("session_id") != self._session_id:
            self._complain(f"port {port} was taken by '{str(data.get('who'))[:80]}'")
        elif kind == ERROR:
            self._complain(f"port {port} reports an error")
        elif kind == ATTRIBUTES and port is not None:
            # some attribute has changed; the event has the link's current state
            if _link_up(data) is False:
                self.links_down.add(port)
            self.links_in_doubt = True
        elif kind == SERVER_STOPPED:
            self._complain(f"the server was shut down ({str(data.get('cause'))[:200]})")

    def _complain(self, text: str) -> None:
        if len(self.complaints) < MOST_COMPLAINTS:
            self.complaints.append(plain_message(text))


def _link_up(data: Mapping[str, Any]) -> object:
    """The link in the data of an ATTRIBUTES event: True, False, or None if unknown."""
    link = data["attr"].get("link") if isinstance(data.get("attr"), dict) else None
    return link.get("up") if isinstance(link, dict) else None
