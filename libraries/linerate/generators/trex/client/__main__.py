# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-or-later
"""The process that holds TRex's Python client: trex-stl-lib 0.3 of PyPI, or the client that a server ships.

Run as ``python -m linerate.generators.trex.client [FOLDER]`` in a session of its own; FOLDER holds the client that TRex
ships (see :mod:`.official`). Protocol: :mod:`.service`. It stops its traffic and releases its ports before it ends.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from .library import ClientLibrary
from .messages import clean
from .official import OfficialLibrary
from .packet_groups import group_counts
from .pypi import PypiLibrary
from .running_traffic import RunningTraffic
from .service import ClientService, Refusal

FIELDS = ("opackets", "ipackets", "obytes", "ibytes", "oerrors", "ierrors")


class ClientCommands(RunningTraffic):
    """A connection to one TRex server, as commands. Counters are totals, never rates; times are s of the wall clock."""

    def __init__(self, link: ClientLibrary, cancelled: threading.Event) -> None:
        super().__init__()
        self._link = link
        self._cancelled = cancelled
        self._connected_once = self._gone = False
        self._held: list[int] = []
        self._streams: dict[str, list[dict[str, Any]]] = {}
        self._trip = 0.0  # s that the last question for counters took, there and back

    def command(self, name: str) -> Callable[..., Any]:
        """The command called *name*. Raises Refusal."""
        known = (
            *("connect", "acquire", "ports", "prepare", "rates", "stop", "release"),
            *("trial", "capture", "burst", "begin", "change", "watch", "finish"),
        )
        if name not in known:
            raise Refusal("request", f"no command '{name}'; there are {', '.join(known)} and quit")

        def carry_out(**arguments: Any) -> Any:
            try:
                return getattr(self, name)(**arguments)
            except Refusal as error:
                self._gone |= error.kind == "lost"
                raise
            except Exception as error:
                if hasattr(error, "msg"):  # every error of the libraries
                    raise Refusal("lost" if self._link.lost else "refused", clean(error)) from error
                raise

        return carry_out

    # -- connection and ports ------------------------------------------------------------------------------------------

    def load(self) -> None:
        """Import the library, once."""
        self._link.load()

    def connect(self, server: str, sync_port: int, async_port: int, username: str) -> dict[str, str]:
        """Connect; the versions of all that takes part."""
        self._connected_once = True
        return self._link.connect(server, sync_port, async_port, username)

    def ports(self, ports: list[int] | None = None) -> list[dict[str, Any]]:
        """Number, MAC, speed in bit/s, link, driver and owner of the server's ports (or of *ports*), asked now."""
        link = self._connected()
        there = link.numbers()
        for number in ports or ():
            if number not in there:
                raise Refusal("request", f"the server has no port {number}; it has {list(there)}")
        return [{"index": number, **link.facts(number)} for number in (there if ports is None else ports)]

    def acquire(self, ports: list[int], force: bool = False, former: Mapping[str, str] | None = None) -> dict[str, str]:
        """Take *ports*, stop and forget what ran on them; the handler of each.

        *former*: the handlers of an earlier connection. A port that is still held by one of them is given back first;
        one that somebody took since is not, for its handler is another.
        """
        link = self._connected()
        self.ports(ports)  # says which of them do not exist
        self._held = []
        handlers = link.acquire(ports, force, former or {})
        self._held = list(ports)
        return handlers

    def release(self) -> dict[str, Any]:
        """Stop the traffic and give the ports back."""
        held, self._held = self._held, []
        if held and self._reachable():
            self._link.halt(held)
            self._link.release(held)
        return {}

    def stop(self) -> dict[str, Any]:
        """Stop all traffic."""
        self._cancelled.clear()
        self.forget()
        if self._reachable():
            self._link.halt(self._held)
        return {}

    def close(self) -> bool:
        """Release, then disconnect. Whether no port is held any more."""
        released = not self._held
        with contextlib.suppress(Exception):
            reachable = self._reachable()
            self.release()
            released |= reachable
        with contextlib.suppress(Exception):
            self._link.disconnect()
        return released

    # -- traffic -------------------------------------------------------------------------------------------------------

    def prepare(self, streams: Mapping[str, list[dict[str, Any]]]) -> dict[str, Any]:
        """Replace all streams: per port number, a list of :class:`linerate.generators.streams.Stream` as data."""
        link = self._connected()
        self._streams = dict(streams)
        link.streams(self._held, {int(port): items for port, items in streams.items()})
        return {}

    def rates(self, ports: list[int]) -> dict[str, dict[str, float]]:
        """What the server says that the streams of each port amount to, as :func:`.layers.check_layers` takes it."""
        link = self._connected()
        found: dict[str, dict[str, float]] = {}
        for port in ports:
            told = link.rates(port)
            names = ("pps", "bps_l1", "bps_l2", "line_util")
            rate = {name: float(told[f"max_{name}"]) for name in names}
            found[str(port)] = {**rate, "speed_bps": float(link.facts(port)["speed_bps"])}
        return found

    def trial(
        self,
        rates: Mapping[str, float],
        directions: list[tuple[int, int]],
        duration: float,
        clock_speed: float = 1.0,
        drain: float = 2.0,
        groups: Mapping[str, int] | None = None,
        intended: Mapping[str, int] | None = None,
    ) -> dict[str, Any]:
        """Send *rates* (frames/s per port number) for *duration* s of the testbed's clock, drain, count.

        *directions*: sending and receiving port of each way; *drain*: see :func:`.drain.drained`; *intended*: see
        :meth:`.under_way.RunningTraffic.begin`. Answers what :meth:`.under_way.RunningTraffic.finish` does and ``latency``: what
        the server says of *groups* (sending port -> packet group) as :mod:`.groups` reads it.
        """
        if groups:
            self.prepare(self._streams)  # what a group counted before goes with its last stream
        self.begin(rates, directions, duration, intended=intended)
        answer = self.finish(drain, clock_speed)
        return {**answer, "latency": self._latency(groups or {}, directions)}

    def _latency(self, groups: Mapping[str, int], directions: list[tuple[int, int]]) -> list[dict[str, Any]]:
        if not groups:
            return []
        said = self._link.groups(list(groups.values()))
        return [
            found
            for direction in directions
            if (found := group_counts(said, groups[str(direction[0])], *direction)) is not None
        ]

    def capture(self, directions: list[tuple[int, int]], keep: int, **trial: Any) -> dict[str, Any]:
        """A trial during which up to *keep* frames of each receiving port are kept, as hexadecimal digits."""
        link, frames = self._connected(), {}
        receivers = sorted({port for _, port in directions})
        try:
            kept = link.capture(receivers, keep)
            answer = self.trial(directions=directions, **trial)
            for port, number in kept.items():
                frames[str(port)] = [data.hex() for data in link.captured(number)]
        finally:
            link.service_off(receivers)
        return {**answer, "frames": frames}

    # -- small things --------------------------------------------------------------------------------------------------

    def _counters(self) -> dict[str, Any]:
        """Totals of every held port as they are at this moment, and the server's global readings."""
        self._check_cancelled()
        link, asked = self._connected(), time.monotonic()
        fresh = link.fresh(self._held)
        self._trip = time.monotonic() - asked
        found: dict[str, Any] = {
            str(port): {field: int(fresh.get(f"{field}-{port}", 0)) for field in FIELDS} for port in self._held
        }
        found["global"] = {key: value for key, value in fresh.items() if key.startswith("m_") and "-" not in key}
        return found

    def _reachable(self) -> bool:
        return self._connected_once and not self._gone and self._link.reachable

    def _connected(self) -> ClientLibrary:
        if self._gone:
            raise Refusal("lost", "the connection was lost before")
        if not self._link.reachable:
            raise Refusal("lost", f"not connected to the server: {self._link.cause}")
        return self._link

    def _check_cancelled(self) -> None:
        if self._cancelled.is_set():
            self._link.halt(self._held)
            raise Refusal("cancelled", "stopped on request")


def main() -> int:
    """Serve until the end; the process's exit status."""
    # The library prints. The protocol keeps the real standard output, everybody else gets standard error.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the libraries send it to their own process
    service = ClientService(answers)
    session = ClientCommands(OfficialLibrary(Path(sys.argv[1])) if sys.argv[1:] else PypiLibrary(), service.cancelled)
    signal.signal(signal.SIGTERM, service.end)
    threading.Thread(target=service.read, daemon=True, name="commands").start()
    with contextlib.suppress(Refusal):
        session.load()  # now, so that the first command need not wait; its failure is that command's answer
    service.serve(session.command)
    released = session.close()
    sys.stderr.flush()
    os._exit(0 if released else 1)  # the library's threads are not waited for


if __name__ == "__main__":
    sys.exit(main())
