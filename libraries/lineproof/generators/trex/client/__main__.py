# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-or-later
"""The process that runs TRex's Python client: trex-stl-lib 0.3 of PyPI, or the client that a server ships.

Run as ``python -m lineproof.generators.trex.client [FOLDER]`` in its own session; FOLDER has the client that TRex ships
(see :mod:`.shipped`). Protocol: :mod:`.service`. It stops its traffic and releases its ports before it ends.
"""

from __future__ import annotations

import contextlib
import gc
import json
import math
import os
import queue
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, TextIO

from .answers import plain_message
from .library import ClientLibrary
from .running_traffic import (
    COUNT_PERIOD,
    UPDATE_PERIOD,
    RunningTraffic,
    all_back,
    all_placed,
    counted_since,
    group_counts,
)
from .service import NextHop, Refusal, TrialCounts, TrialRequest, read_message

END_LIMIT = 3.0
"""Seconds for an orderly end, before the process ends itself in any case."""

UNEXPECTED = (TypeError, LookupError, ValueError, AttributeError, ArithmeticError)
"""Errors of whoever reads an answer that has another form than a TRex server's."""

CAPTURED = 1.25
"""Frames that a capture of several ports keeps, as a ratio to those that are wanted of all together."""


class ClientCommands(RunningTraffic):
    """The commands of a connection to one TRex server. Counters are totals; times are s of the wall clock."""

    def command(self, name: str) -> Callable[..., Any]:
        """The command called *name*."""

        def checked(**arguments: Any) -> Any:
            try:
                return getattr(self, name)(**arguments)
            except Refusal as error:
                self._gone |= error.kind == "lost"
                raise
            except Exception as error:
                text = plain_message(error)
                if hasattr(error, "msg"):  # an error of a library
                    raise Refusal("lost" if self._library.lost else "refused", text) from error
                if not isinstance(error, UNEXPECTED):
                    raise
                traceback.print_exc()
                raise Refusal("refused", f"its answer is not a TRex server's, or not understood: {text}") from error

        return checked

    # -- connection and ports ------------------------------------------------------------------------------------------

    def connect(self, server: str, sync_port: int, async_port: int, username: str, pins_cores: bool) -> dict[str, str]:
        """Connect; return the versions of server, client and libraries."""
        self._library.pins_cores = pins_cores
        return self._library.connect(server, sync_port, async_port, username)

    def ports(self, ports: list[int] | None = None) -> list[dict[str, Any]]:
        """Current number, MAC, speed in bit/s, link, driver and owner of the server's ports, or of *ports*."""
        library = self._connected()
        existing = library.port_numbers()
        for number in ports or ():
            if number not in existing:
                raise Refusal("request", f"the server has no port {number}; it has {list(existing)}")
        return [{"index": number, **library.port_facts(number)} for number in (existing if ports is None else ports)]

    def acquire(
        self,
        ports: list[int],
        force: bool,
        former: Mapping[int, str],
        promiscuous: bool,
        next_hops: Mapping[int, Mapping[str, Any]],
    ) -> dict[int, str]:
        """Acquire *ports*, stop their traffic, remove their streams; return their handlers.

        *former*: handlers of an earlier connection, whose ports are released first. A port that another user has
        acquired since has another handler and is not released. *promiscuous* and *next_hops*: see
        :class:`.library.ClientLibrary`.
        """
        library = self._connected()
        self.ports(ports)  # raises Refusal for ports that do not exist
        library.next_hops = {port: NextHop(**hop) for port, hop in next_hops.items()}
        self._held = list(ports)  # an attempt that fails may hold some of them
        return library.acquire(ports, force, former, promiscuous)

    def distance(self) -> list[float]:
        """Seconds of some requests for counters and their answers."""
        return [self._round_trip for _ in range(9) if self._counters()]

    def release(self) -> dict[str, Any]:
        """Stop the traffic and release the ports."""
        held, self._held = self._held, []
        if held and self._reachable():
            self._library.stop_traffic(held)
            self._library.release(held)
        return {}

    def stop(self) -> dict[str, Any]:
        """Stop all traffic."""
        self._cancelled.clear()
        self._running = None
        if self._reachable():
            self._library.stop_traffic(self._held)
        return {}

    def close(self) -> bool:
        """Release, then disconnect; return whether no port is held any more."""
        released = not self._held
        with contextlib.suppress(Exception):
            reachable = self._reachable()
            self.release()
            released |= reachable
        with contextlib.suppress(Exception):
            self._library.disconnect()
        return released

    # -- traffic -------------------------------------------------------------------------------------------------------

    def trial(self, **request: Any) -> TrialCounts:
        """Run a :class:`.service.TrialRequest`; return what it counted, with its frames and its packet groups."""
        trial = TrialRequest(**request)
        receivers = sorted({port for _, port in trial.directions})
        # one capture has them all, and its last frames may be a few more of one port
        most = math.ceil(trial.keep * len(receivers) * CAPTURED)
        with self._connected().capturing(receivers, most) as capture:
            if trial.groups and (trial.times or self._counted is None):
                self.prepare(self._streams)  # removing the streams resets the counts of their groups
            earlier = self._counted or []
            self._begin(trial)
            counts, groups = self._finish()
            latency = self._latency(trial, groups, earlier)
            kept = self._library.captured(capture, most)
        held = {port: [one.hex() for one in kept.get(port, ())[-trial.keep :]] for port in receivers if trial.keep}
        return replace(counts, latency=latency, frames=held)

    def _latency(
        self, trial: TrialRequest, stats: Mapping[str, Any], earlier: Sequence[Mapping[str, Any]]
    ) -> list[dict[str, Any]]:
        """Return the counts of the packet groups in *stats*, or in later ones where some frames are not there yet.

        Where no times matter, streams stay, and only what was counted since the *earlier* counts is the trial's.
        """
        if not trial.groups:
            return []
        counts = _group_counts(stats, trial)
        period = UPDATE_PERIOD if trial.times else COUNT_PERIOD
        if not all(map(all_placed, counts) if trial.times else map(all_back, counted_since(earlier, counts))):
            time.sleep(period / trial.clock_speed)
            counts = _group_counts(self._library.read_counters(self._held, trial.group_numbers).groups, trial)
        if trial.times:
            return counts
        self._counted = counts or None
        return counted_since(earlier, counts)


def _group_counts(stats: Mapping[str, Any], trial: TrialRequest) -> list[dict[str, Any]]:
    """Return the counts of the packet groups of those directions of *trial* all of whose groups are in *stats*."""
    reported: list[dict[str, Any]] = []
    for tx_port, rx_port in trial.directions:
        counts = [group_counts(stats, group, tx_port, rx_port) for group in trial.groups[tx_port]]
        reported += () if None in counts else [count for count in counts if count]
    return reported


class ClientService:
    """Reads commands, runs them one by one and answers, until the end."""

    def __init__(self, answers: TextIO) -> None:
        self._answers = answers
        self._commands: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        self.cancelled = threading.Event()

    def end(self, *_: object) -> None:
        """Begin the orderly end, with a time limit. For any thread and for signals."""
        watchdog = threading.Timer(END_LIMIT, os._exit, (1,))
        watchdog.daemon = True
        watchdog.start()
        self.cancelled.set()
        self._commands.put(None)

    def read(self) -> None:
        """Read commands until standard input ends."""
        with contextlib.suppress(OSError, ValueError):
            for line in sys.stdin:
                message = read_message(line)
                if message.get("command") == "stop":
                    self.cancelled.set()
                self._commands.put(message)
        self.end()

    def serve(self, find: Callable[[str], Callable[..., Any]]) -> None:
        """Run commands with the function that *find* returns, until the end."""
        while (message := self._commands.get()) is not None:
            number, command = message.pop("id", None), str(message.pop("command", ""))
            try:
                answer = {"id": number, "ok": find(command)(**message)}
            except Refusal as error:
                answer = {"id": number, "error": {"kind": error.kind, "message": str(error)}}
            except Exception as error:  # every request gets an answer
                text = f"{command}: {type(error).__name__}: {error}"
                answer = {"id": number, "error": {"kind": "internal", "message": text}}
            try:
                line = json.dumps(answer, allow_nan=False, default=asdict)
            except ValueError:
                text = "one of its readings is no number (NaN or infinite)"
                line = json.dumps({"id": number, "error": {"kind": "refused", "message": text}})
            # if the driver is gone, the end of standard input follows
            with contextlib.suppress(BrokenPipeError):
                self._answers.write(line + "\n")
                self._answers.flush()


def _library() -> ClientLibrary:
    """Return the client of the folder that this process is given, or PyPI's. Only one of them is imported."""
    if sys.argv[1:]:
        from .shipped import ShippedLibrary

        return ShippedLibrary(Path(sys.argv[1]))
    from .pypi import PypiLibrary

    return PypiLibrary()


def main() -> int:
    """Serve until the end; the process's exit status."""
    # The libraries print: only the protocol may use the real standard output.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the libraries send it to their own process
    service = ClientService(answers)
    library = _library()
    session = ClientCommands(library, service.cancelled)
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, service.end)
    threading.Thread(target=service.read, daemon=True, name="commands").start()
    with bulk_import(), contextlib.suppress(Refusal):
        library.load()  # before the first command, which reports its failure
    service.serve(session.command)
    released = session.close()
    sys.stderr.flush()
    os._exit(0 if released else 1)  # does not wait for the library's threads


@contextlib.contextmanager
def bulk_import() -> Iterator[None]:
    """Let the imports of a whole program happen inside the block; a tenth of their time would go into that search.

    They leave no garbage, and what they leave stays until the end: later searches do not look at it again.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if was_enabled:
            gc.enable()


if __name__ == "__main__":
    sys.exit(main())
