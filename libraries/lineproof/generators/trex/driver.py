"""Cisco TRex as a :class:`~lineproof.generators.base.Generator`. The client's process runs each trial.

Byte counts of sent frames include the 4-byte FCS on every card; those of received ones not on all (:mod:`...ceilings`).
"""

from __future__ import annotations

import contextlib
import getpass
import json
import math
import os
import time
from binascii import a2b_base64
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from ...core.counter_names import is_pause
from ...core.foreign import Heard
from ...core.step_down import CountSnapshot, StepDown
from ...core.traffic.profiles import Profile
from ...core.trial import DRAIN, DURING_READING, DirectionCount, During, Load, Outcome
from ...errors import TestbedError
from ...system import children
from ...system.cpu_clock import cpu_times, steal_percent
from ...system.network_namespace import inside, run_in_namespace
from ...visible import visible_data
from ..base import Direction, Generator, GeneratorPort, PortsTaken, Probe, ProbesRefused
from ..counting import grown
from ..streams import Stream, burst_streams, probe_groups, profile_streams
from .client.service import (
    CounterReading,
    NextHop,
    Refusal,
    TrialCounts,
    TrialRequest,
    read_message,
    search_limit,
)
from .clients import PYPI, FetchClient, ServerFacts, ask_server, choose_client, misfit
from .outcomes import make_outcome
from .port_claims import PortClaim, left_claims, write_claim

IMPORT_LIMIT = 30.0
"""Seconds for the client's process to import its library on a slow and busy machine."""

NEVER = 1e9
"""µs before the first frame of a stream that is stopped at once."""

STOP_LIMIT = 5.0
"""Seconds for the client to stop the traffic of a trial that failed or was interrupted; its end stops it too."""

_PORTS, _COUNTS = TypeAdapter(tuple[GeneratorPort, ...]), TypeAdapter(TrialCounts)

Sending = Callable[[float], None]
"""Is called once every port sends, with the time on the monotonic clock at which the start was asked for."""

MODULE = "lineproof.generators.trex.client"

CLOSE_LIMIT = 5.0
"""Seconds in which the client's process stops the traffic and releases the ports."""

CALL_LIMIT = 20.0
"""Seconds for any command except a trial; the client waits 5 s for each of the server's answers."""


def _username() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a container's user need not have a name
        return "lineproof"


@dataclass(frozen=True, slots=True)
class TrexSettings:
    """The generator's settings in a testbed file.

    ``server``: name or address; ``force``: take ports from another user; ``clock_speed``: seconds of the testbed's
    clock per second of the wall clock (not 1 on simulated testbeds); ``client``: see
    :func:`.clients.choose_client`; ``pins_cores``: each port of a pair sends from cores of its own;
    ``promiscuous``: the ports take frames for any MAC address; ``outlives_run``: the server goes on when a run is
    killed, so what it holds is written down; ``next_hops`` by port; ``namespace``: the path of the network namespace
    of this machine that the server is in; "": it is reached from here.
    """

    server: str
    sync_port: int = 4501
    async_port: int = 4500
    ports: tuple[int, ...] = (0, 1)
    force: bool = False
    username: str = field(default_factory=_username)
    client: str = ""
    clock_speed: float = 1.0
    pins_cores: bool = False
    promiscuous: bool = False
    outlives_run: bool = True
    next_hops: Mapping[int, NextHop] = field(default_factory=dict)
    namespace: str = ""

    @property
    def address(self) -> str:
        """``server:port``, for messages."""
        return f"{self.server}:{self.sync_port}{' of a network namespace' if self.namespace else ''}"


@dataclass(frozen=True, slots=True)
class _Prepared:
    """The streams on the sending ports."""

    profile: Profile
    directions: tuple[Direction, ...]
    probe: Probe | None
    streams: Mapping[int, list[dict[str, Any]]]


class TrexGenerator(Generator):
    """A connected TRex server with claimed ports. Connects when created; after a TestbedError nothing is left."""

    def __init__(self, settings: TrexSettings, fetch: FetchClient | None = None) -> None:
        """Connect. *fetch* gets the client that a server ships, if the settings or the server need it."""
        self.settings, self._fetch = settings, fetch
        self._prepared: _Prepared | None = None
        self._versions: dict[str, str] = {}
        self._handlers: dict[int, str] = {}
        self._claim: PortClaim | None = None
        self._process: ClientProcess | None = None
        self._connect()

    def _connect(self) -> None:
        """Start the client's process, connect and acquire the ports. Raises TestbedError."""
        setting = self.settings
        try:
            if setting.client == PYPI:
                # it imports during the request to the server
                self._process = ClientProcess(namespace=setting.namespace)
            server = run_in_namespace(setting.namespace, partial(ask_server, setting.server, setting.sync_port))
            folder = choose_client(server, setting.client, self._fetch)
            self._process = self._process or ClientProcess(folder, setting.namespace)
            try:
                self._versions = self._call(
                    "connect",
                    IMPORT_LIMIT + CALL_LIMIT,
                    server=setting.server,
                    sync_port=setting.sync_port,
                    async_port=setting.async_port,
                    username=setting.username,
                    pins_cores=setting.pins_cores,
                )
                self._acquire_ports()
            except Refusal as error:
                raise connection_error(error, setting.async_port, server, folder) from error
        except BaseException:
            self._end_process()
            raise

    def _acquire_ports(self) -> None:
        """Acquire the ports; what that needed becomes evidence (:attr:`versions`)."""
        setting, numbers = self.settings, list(self.settings.ports)
        left = left_claims(setting.address)
        former = {port: handler for claim in left for port, handler in claim.handlers.items() if port in numbers}
        owners = {port["index"]: port["owner"] for port in self._call("ports", ports=numbers) if port["owner"]}
        # handlers of this generator's own earlier connection replace older ones
        self._handlers = self._call(
            "acquire",
            ports=numbers,
            force=setting.force,
            former={**former, **self._handlers},
            promiscuous=setting.promiscuous,
            next_hops={port: asdict(hop) for port, hop in setting.next_hops.items()},
        )
        for claim in (*left, *filter(None, [self._claim])):
            claim.remove()
        self._claim = write_claim(setting.address, self._handlers) if setting.outlives_run else None
        if returned := {port: owner for port, owner in owners.items() if port in former}:
            runs = "; ".join(claim.run for claim in left)
            self._versions["leftover"] = f"ports {_owners_text(returned)} given back for a run that was killed: {runs}"
        modes = [port.promiscuous for port in self.ports]
        self._versions["promiscuous"] = "not known" if None in modes else f"{modes.count(True)} of {len(modes)} ports"
        if setting.force:
            self._versions["force"] = f"allowed; held when the run began: {_owners_text(owners) or 'none'}"

    # -- Generator -----------------------------------------------------------------------------------------------------

    @property
    def ports(self) -> tuple[GeneratorPort, ...]:
        """The claimed ports as they are now. Raises TestbedError."""
        return _PORTS.validate_python(self._ask("ports", ports=list(self.settings.ports)))

    @property
    def versions(self) -> Mapping[str, str]:
        """Versions of server, client, protocol and the libraries in the client's process."""
        return dict(self._versions)

    def prepare(self, profile: Profile, directions: tuple[Direction, ...], probe: Probe | None = None) -> None:
        """Put the profile's streams on the sending ports. Raises TestbedError.

        *probe* frames are part of the load: TRex subtracts their fixed rate before it multiplies the rest.
        """
        self._prepared = None
        try:
            streams = _streams_by_port(directions, partial(profile_streams, profile, probe=probe))
        except ValueError as error:
            raise TestbedError(f"{profile.name}: {error}") from None
        self._put(streams)
        self._prepared = _Prepared(profile, directions, probe, streams)

    def has_fine_latency(self, profile: Profile) -> bool:
        """Return whether the server counts the latency of *profile* in fine histograms. Raises TestbedError.

        Nothing is sent: the first frame is not due when the traffic is stopped. No streams are on the ports afterwards.
        """
        port, self._prepared = self.ports[0], None
        direction = Direction(port.index, port.index, destination=port.mac)
        streams = profile_streams(profile, direction, Probe(1.0))
        self._put({port.index: [replace(stream, gap=NEVER).to_json() for stream in streams]})
        groups = {port.index: probe_groups(profile, direction)}
        counts = self._counts_of(TrialRequest({port.index: 2.0}, [(port.index, port.index)], DRAIN, 0.1, groups=groups))
        self._put({})
        if not counts.latency:
            raise TestbedError(f"the TRex server at {self.settings.address} reports nothing of a packet group")
        return bool(counts.latency[0]["hdrh"])

    @property
    def streams(self) -> Mapping[str, object]:
        """The streams put on the ports by :meth:`prepare`: the client's own arguments."""
        return {str(port): streams for port, streams in self._prepared.streams.items()} if self._prepared else {}

    def measure(
        self, load: Load, duration: float, during: During | None = None, keep: int = 0, rates: Sequence[float] = ()
    ) -> Outcome:
        """Measure one trial of *duration* s of the testbed's clock. Raises TestbedError if there is no outcome.

        A trial with *during* has no latency, and keeps no frames. TRex keeps frames in software: on a card that counts
        in hardware at low loads only.
        """
        before, trial, readings = cpu_times(), self._trial(load, duration, rates), dict[str, float]()
        speed = self.settings.clock_speed
        if during is None:
            counts = self._counts_of(replace(trial, keep=keep))
        else:

            def do(asked: float) -> None:
                during(lambda seconds: time.sleep(seconds / speed))
                # both processes read the machine's monotonic clock
                readings[DURING_READING] = (time.monotonic() - asked) * speed

            try:
                counts = self._counts_of(replace(trial, groups={}, announced=True), do)
            except BaseException:
                with contextlib.suppress(TestbedError):
                    self._ask("stop", STOP_LIMIT)
                raise
        outcome = self._outcome(counts, load, duration, trial.rates)
        if (steal := steal_percent(before, cpu_times())) is not None:
            readings["cpu_steal"] = steal
        frames = {port: self._frames(kept) for port, kept in counts.frames.items()}
        return replace(outcome, readings={**outcome.readings, **readings}, frames=frames)

    def _frames(self, kept: Sequence[str]) -> tuple[bytes, ...]:
        """Return the frames *kept*, which the client's process does not read. Raises TestbedError."""
        try:
            return tuple(map(a2b_base64, kept))
        except ValueError as error:
            raise TestbedError(f"{self.settings.address} sent a captured frame that is not base64: {error}") from error

    def idle(self, seconds: float, keep: int = 0) -> Mapping[int, Heard]:
        """Send nothing, and count what comes (:meth:`..base.Generator.idle`). Raises TestbedError."""
        wall = seconds / self.settings.clock_speed
        heard = self._ask("idle", CALL_LIMIT + wall, seconds=wall, keep=keep).items()
        kept = {port: self._frames(one["kept"]) for port, one in heard}
        return {port: Heard(one["frames"], kept[port], one["group_frames"], one["total"]) for port, one in heard}

    def burst(self, frames: int, pps: float) -> Outcome:
        """Send *frames* frames from each sending port at *pps*, with TRex's single bursts. Raises TestbedError."""
        load, seconds, prepared = Load(pps), frames / pps, self._required
        trial = replace(self._trial(load, seconds), groups={}, frames=frames)
        self._prepared = None  # until the profile's streams are back
        self._put(_streams_by_port(prepared.directions, partial(burst_streams, prepared.profile, frames=frames)))
        counts = self._counts_of(trial)
        self._put(prepared.streams)
        self._prepared = prepared
        return self._outcome(counts, load, seconds)

    def step_down(
        self, first: Load, first_duration: float, second: Load, second_duration: float, interval: float
    ) -> StepDown:
        """Send at a load, then at a lower one (:meth:`..base.Generator.step_down`). Raises TestbedError."""
        duration, speed = first_duration + second_duration, self.settings.clock_speed
        trial = self._trial(first, duration)
        rates = dict.fromkeys(trial.rates, second.pps)
        counts = self._counts_of(
            replace(trial, groups={}, later_rates=rates, change_after=first_duration, interval=interval)
        )
        outcome, changed = self._outcome(counts, first, duration), counts.change
        if changed is None:
            raise TestbedError("the TRex client's process did not tell of the change of load")

        def snapshot(now: CounterReading) -> CountSnapshot:
            sent = tuple(grown(counts.before.ports, now.ports, tx, "opackets") for tx, _ in trial.directions)
            came = tuple(grown(counts.before.ports, now.ports, rx, "ipackets") for _, rx in trial.directions)
            return CountSnapshot(sent, came)

        before, after, *samples = map(snapshot, (changed.before, changed.after, *changed.samples))
        ends = [row.offered for row in outcome.directions]
        # counts read after the end of sending give no time
        samples = [count for count in samples if all(sent < end for sent, end in zip(count.offered, ends, strict=True))]
        # s of the second phase: the change lies between its request and its answer
        shortest = max(0.0, duration - (changed.answered - changed.start_asked) * speed)
        longest = max(0.0, duration - (changed.asked - changed.start_answered) * speed)
        by_direction, slowest, fastest = list[DirectionCount](), math.inf, 0.0
        for row, early, late in zip(outcome.directions, before.offered, after.offered, strict=True):
            most, least = row.offered - early, row.offered - late
            slowest = min(slowest, least / longest if longest else 0.0)
            fastest = max(fastest, most / shortest if shortest else math.inf)
            # any count of the first phase is enough: it only has to overload the router
            short, over = max(0.0, second.pps * shortest - most), max(0.0, least - second.pps * longest)
            by_direction.append(replace(row, intended=row.offered + round(short - over)))
        more = {"second_load_pps": second.pps, "change_uncertainty": longest - shortest}
        outcome = replace(outcome, directions=tuple(by_direction), readings={**outcome.readings, **more})
        return StepDown(outcome, second, before, after, tuple(samples), (slowest, fastest))

    def round_trips(self) -> list[float]:
        """Return the seconds of some requests for counters and their answers. Raises TestbedError."""
        return list(self._ask("distance"))

    def stop(self) -> None:
        """Stop all traffic now. Raises TestbedError."""
        self._ask("stop")

    def reconnect(self) -> None:
        """End the client's process, connect with a new one and acquire the ports. Raises TestbedError; may be repeated.

        Ports that this generator still holds are taken over; ports of other users only with the settings' ``force``.
        """
        self.close()
        self._connect()

    def close(self) -> None:
        """Stop traffic, release the ports, end the client's process. May be repeated."""
        self._prepared = None
        released = self._end_process()
        if not released and self._handlers:
            # it was killed: another one takes its ports over, and ends
            with contextlib.suppress(TestbedError):
                self._connect()
                released = self._end_process()
        if released and self._claim is not None:  # otherwise a later run releases the ports
            self._claim.remove()

    def _end_process(self) -> bool:
        """End the client's process; return whether it has released its ports."""
        process, self._process = self._process, None
        return process is None or process.close()

    # -- the process ---------------------------------------------------------------------------------------------------

    @property
    def _required(self) -> _Prepared:
        if self._prepared is None:
            raise TestbedError("the generator has no streams yet: prepare a profile before measuring")
        return self._prepared

    def _put(self, streams: Mapping[int, Any]) -> None:
        self._ask("prepare", CALL_LIMIT + search_limit(len(streams)), streams=streams)

    def _trial(self, load: Load, duration: float, rates: Sequence[float] = ()) -> TrialRequest:
        prepared = self._required
        directions, probe = prepared.directions, prepared.probe
        probed = directions if probe else ()
        of_each = zip(directions, rates or [load.pps] * len(directions), strict=True)
        return TrialRequest(
            rates={direction.tx_port: pps for direction, pps in of_each},
            directions=[(direction.tx_port, direction.rx_port) for direction in directions],
            drain=DRAIN,
            duration=duration,
            clock_speed=self.settings.clock_speed,
            groups={direction.tx_port: probe_groups(prepared.profile, direction) for direction in probed},
            times=probe is None or probe.times,
        )

    def _counts_of(self, trial: TrialRequest, sending: Sending | None = None) -> TrialCounts:
        # the client ends a trial after 1.5 x its duration + 5 s; this is longer, in case it does not
        limit = (1.5 * trial.duration + trial.drain) / trial.clock_speed + CALL_LIMIT + IMPORT_LIMIT / 2
        return _COUNTS.validate_python(self._ask("trial", limit, sending, **asdict(trial)))

    def _outcome(
        self, counts: TrialCounts, load: Load, duration: float, rates: Mapping[int, float] | None = None
    ) -> Outcome:
        has_pauses = any(is_pause(name) for of_card in counts.cards.values() for name in of_card)
        speeds = {port.index: port.speed_bps for port in self.ports} if has_pauses else {}
        directions = self._required.directions
        return make_outcome(counts, load, duration, directions, self.settings.clock_speed, rates, speeds)

    def _call(self, command: str, limit: float = CALL_LIMIT, sending: Sending | None = None, **arguments: Any) -> Any:
        if self._process is None:
            raise TestbedError("the generator is closed")
        try:
            return self._process.call(command, limit, sending, **arguments)
        except TestbedError as error:
            raise TestbedError(f"{error}; it was connected to the TRex server at {self.settings.address}") from error

    def _ask(self, command: str, limit: float = CALL_LIMIT, sending: Sending | None = None, **arguments: Any) -> Any:
        server = f"the TRex server at {self.settings.address}"
        try:
            return self._call(command, limit, sending, **arguments)
        except Refusal as error:
            kind, message = TestbedError, f"{server}, asked to {command}: {error}"
            if error.kind == "lost":
                # which request was the first without an answer depends on the moment, and says nothing
                more = "" if str(error).startswith(("[RPC]", "the server ")) else f": {error}"
                message = f"{server} no longer answers{more}"
            elif error.kind == "taken":
                message = f"the ports of {server} are no longer ours: {error}"
            elif "API handler" in str(error):
                # a server has a new handler after each start; the client still sends the old one
                message = f"{server} was started again meanwhile: {error}"
            elif remedy := remedy_of(str(error)):
                kind, message = ProbesRefused, f"{message}{remedy}"
            raise kind(message) from error


class ClientProcess(children.Child):
    """The running process. It imports its library in the background, which takes 1 to 2 s."""

    def __init__(self, folder: Path | None = None, namespace: str = "") -> None:
        """Start it with the client that TRex ships, in *folder* (:mod:`.clients`); None: trex-stl-lib 0.3 of PyPI.

        *namespace*: the network namespace of its server; "": none of its own.
        """
        # in memory: what it prints fills no disk
        self._log = os.fdopen(os.memfd_create("lineproof-client"), "w+b")
        # In a session of its own the library cannot kill the process group of its parent (see pypi.load_library).
        argv = children.python(MODULE, *([] if folder is None else [str(folder.absolute())]))
        self._number = 0
        super().__init__((*inside(namespace), *argv), stderr=self._log)

    def call(self, command: str, limit: float, sending: Sending | None = None, **arguments: Any) -> Any:
        """Return the answer to *command* within *limit* s. Raises Refusal for an error in the answer.

        *sending* is called once a trial says that every port sends, and has its own time.
        If the process has ended or does not answer in time, raises TestbedError and kills it.
        """
        self._number += 1
        until = time.monotonic() + limit
        message = {**arguments, "id": self._number, "command": command}
        answer: dict[str, Any] = {}
        try:
            self.send(json.dumps(message))
            while answer.get("id") != self._number or "sending" in answer:  # or an answer to an interrupted call
                if sending and answer.get("id") == self._number:
                    began = time.monotonic()
                    sending(answer["sending"])
                    until += time.monotonic() - began
                text = self.line(until - time.monotonic())
                answer = read_message(text)
        except TimeoutError:
            self._end_now()
            timed_out = f"the TRex client's process did not answer '{command}' within {limit:g} s and was ended"
            raise TestbedError(timed_out) from None
        except (EOFError, ValueError) as error:
            raise self._ended(command) from error
        if b"\\" in text or b"\x7f" in text:
            # else no text in it has a character that JSON escapes
            answer = visible_data(answer)
        if "error" in answer:
            raise Refusal(str(answer["error"]["kind"]), str(answer["error"]["message"]))
        return answer["ok"]

    def _ended(self, command: str) -> TestbedError:
        with contextlib.suppress(children.TimeoutExpired):
            self.wait(1)
        status, last = self.poll(), ""
        self._end_now()
        if not self._log.closed:
            self._log.seek(max(0, self._log.seek(0, os.SEEK_END) - 4000))
            lines = self._log.read().decode(errors="replace").strip().splitlines()
            last = " / ".join(line.strip() for line in lines[-3:])
        output = f"; its last output: {last}" if last else ""
        return TestbedError(f"the TRex client's process ended (status {status}) during '{command}'{output}")

    def close(self) -> bool:
        """End it in order within :data:`CLOSE_LIMIT`, then by force. May be repeated.

        Returns whether it released its ports before it ended.
        """
        self.end(CLOSE_LIMIT)  # it stops the traffic, releases the ports and ends
        self._log.close()
        return self.returncode == 0

    def _end_now(self) -> None:
        """Kill it and wait for its end. May be repeated."""
        self.kill_all()
        self.end(children.KILL_LIMIT)


def _streams_by_port(
    directions: Sequence[Direction], streams_of: Callable[[Direction], Sequence[Stream]]
) -> dict[int, list[dict[str, Any]]]:
    """Return the streams of each direction as data, by sending port."""
    return {direction.tx_port: [stream.to_json() for stream in streams_of(direction)] for direction in directions}


def _owners_text(owners: Mapping[int, str]) -> str:
    return ", ".join(f"{port} by '{owner}'" for port, owner in owners.items())


def connection_error(error: Refusal, async_port: int, server: ServerFacts, folder: Path | None) -> TestbedError:
    """Return *error* of the client's process, which connects and acquires, for a person. *folder*: of its library."""
    message = f"the TRex server at {server.where}: {error}"
    if error.kind == "install":
        message = f"{error}; expected trex-stl-lib 0.3 and what it requires: pip install trex-stl-lib==0.3"
    elif error.kind == "connect" and "mismatch" in str(error).lower():
        message = misfit(server, folder, str(error))
    elif error.kind == "connect" and "subscriber" in str(error):
        message = (
            f"the TRex server at {server.where} answers, but publishes nothing that trex-stl-lib 0.3 understands at"
            f" port {async_port}; fix 'async_port' in the testbed file ({error})"
        )
    elif error.kind == "taken":
        return PortsTaken(
            f"a port of the TRex server at {server.where} is taken: {error} (TRex does not report since when); have it"
            " released there, or set 'force: true' for the generator in the testbed file to take it away"
        )
    return TestbedError(message)


_REMEDIES = {
    "for flow stat": "; the card's filters cannot count such frames; expected TRex started with '--software'",
    "Failed allocating statistic counter": "; the card counts no more streams at a time ('lineproof doctor' shows how"
    " many); expected fewer streams with flow statistics, or TRex started with '--software'",
}


def remedy_of(refusal: str) -> str:
    """Return what to add to the server's words; "" where they say enough."""
    return next((remedy for text, remedy in _REMEDIES.items() if text in refusal), "")
