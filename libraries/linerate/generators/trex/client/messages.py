# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-or-later
"""What the server says of its own accord, and what the library says in its own way, made plain."""

from __future__ import annotations

import re
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

JOB_DONE, ACQUIRED, ERROR, ATTRIBUTES, SERVER_STOPPED = 4, 5, 7, 8, 100
"""Types of ``trex-event`` messages."""


def clean(error: object) -> str:
    """The one sentence in what the library raises or returns. Its errors fail in ``str()`` and are painted."""
    text = getattr(error, "msg", None)
    if text is None and hasattr(error, "rc_list"):
        text = "; ".join(str(item.data) for item in error.rc_list if not item.rc)
    if text is None:
        text = f"{type(error).__name__}: {error}" if isinstance(error, Exception) else str(error)
    text = re.sub(r"\x1b\[[0-9;]*m", "", str(text)).replace("***", "")
    lines = (" ".join(line.split()).replace(" : ", ": ") for line in text.splitlines())
    return "; ".join(line for line in lines if line)


def busiest(cores: Iterable[Sequence[float]], seconds: float) -> float:
    """The highest load of a core in the last *seconds* (at least the last whole one), in per cent.

    *cores*: the load of each second, the latest first. Means over seconds and cores hide a core that falls behind.
    """
    count = max(1, int(seconds))
    return max((load for core in cores for load in core[:count]), default=0.0)


def busy_in(cores: Iterable[Sequence[float]], ago: float, took: float, second: float) -> float:
    """The highest load of a core in a time that ended *ago* s and *took* so many, in per cent, at most.

    *cores*: the loads of periods of *second* s, the latest first, which is over now. Of a period that reaches beyond
    the time, as much is counted for it as can have been.
    """
    found = 0.0
    for core in cores:
        busy = 0.0
        for number, load in enumerate(core):
            latest, earliest = number * second, (number + 1) * second
            within = min(earliest, ago + took) - max(latest, ago)
            busy += min(load / 100 * second, max(0.0, within))
        found = max(found, 100 * busy / took)
    return round(found, 1)


class Watch:
    """What the server said of its own accord since the trial began. Filled by the library's subscriber thread."""

    def __init__(self, session_id: int) -> None:
        self._session_id = session_id
        self.changed = threading.Condition()
        self.heard = time.monotonic()
        self.clear()

    def clear(self) -> None:
        """Forget the last trial's."""
        self.done: dict[int, float] = {}
        self.complaints: list[str] = []
        self.down: set[int] = set()
        """Ports whose link was seen down."""
        self.doubtful = False
        """Something about a port has changed, so that its link is to be asked for."""

    def wrap(self, original: Callable[[int, Any], None]) -> Callable[[int, Any], None]:
        """The handler of events that the library is to call instead of *original*."""

        def seen(kind: int, data: Any) -> None:
            self.heard = now = time.monotonic()
            try:
                original(kind, data)
            except Exception as error:  # an event that the library cannot digest must not end its thread
                print(f"event {kind}: {type(error).__name__}: {error}", file=sys.stderr)
            with self.changed:
                self._note(kind, data if isinstance(data, dict) else {}, now)
                self.changed.notify_all()

        return seen

    def hear(self, original: Callable[[Any, bool], None]) -> Callable[[Any, bool], None]:
        """The handler of published counters that the library is to call instead of *original*."""

        def heard(data: Any, baseline: bool) -> None:
            self.heard = time.monotonic()
            try:
                original(data, baseline)
            except Exception as error:
                print(f"counters: {type(error).__name__}: {error}", file=sys.stderr)

        return heard

    def _note(self, kind: int, data: Mapping[str, Any], now: float) -> None:
        port = data.get("port_id")
        if kind == JOB_DONE and port is not None:
            self.done[int(port)] = now
        elif kind == ACQUIRED and data.get("session_id") != self._session_id:
            self.complaints.append(f"port {port} was taken by '{data.get('who')}'")
        elif kind == ERROR:
            self.complaints.append(f"port {port} reports an error")
        elif kind == ATTRIBUTES and port is not None:
            # of any attribute; it holds the port's link at that moment
            if _link(data) is False:
                self.down.add(int(port))
            self.doubtful = True
        elif kind == SERVER_STOPPED:
            self.complaints.append(f"the server was shut down ({data.get('cause')})")


def _link(data: Mapping[str, Any]) -> object:
    """The link in the data of an ATTRIBUTES event: True, False, or None where it does not tell."""
    link = data["attr"].get("link") if isinstance(data.get("attr"), dict) else None
    return link.get("up") if isinstance(link, dict) else None
