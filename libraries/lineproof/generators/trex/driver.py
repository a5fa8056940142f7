"""Cisco TRex as a :class:`~lineproof.generators.base.Generator`. The client's process runs each trial.

Byte counts of sent frames include the 4-byte FCS on every card; those of received ones not on all (:mod:`...ceilings`).
"""

from __future__ import annotations

import contextlib
import getpass
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from ...core.foreign import Heard
from ...core.step_down import CountSnapshot, StepDown
from ...core.traffic.profiles import Profile
from ...core.trial import DURING_READING, During, Load, Outcome
from ...errors import TestbedError
from ...system.cpu_clock import cpu_times, steal_percent
from ...system.network_namespace import run_in_namespace
from ..base import Direction, Generator, GeneratorPort, PortsTaken, Probe, ProbesRefused
from ..streams import Stream, burst_streams, probe_groups, profile_streams
from .client.service import CounterReading, LoadStep, NextHop, TrialCounts, TrialRequest, search_limit
from .client_process import ClientError, ClientProcess
from .clients import PYPI, FetchClient, ServerFacts, ask_server, choose_client, misfit
from .outcomes import make_outcome
from .port_claims import PortClaim, read_claims, write_claim

IMPORT_LIMIT = 30.0
"""Seconds for the client's process to import its library on a slow and busy machine."""

NEVER = 1e9
"""µs before the first frame of a stream that is stopped at once."""

BEGIN_WAIT = 0.1
"""Seconds of the testbed's clock from the answer to the start to a look whether every port sends, and between looks."""

STOP_LIMIT = 5.0
"""Seconds for the client to stop the traffic of a trial that failed or was interrupted; its end stops it too."""

_PORTS, _READINGS = TypeAdapter(tuple[GeneratorPort, ...]), TypeAdapter(list[CounterReading])
_STEP, _COUNTS = TypeAdapter(LoadStep), TypeAdapter(TrialCounts)

CALL_LIMIT = 20.0
"""Seconds for any command except a trial; the client waits 5 s for each of the server's answers."""


def _default_username() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return "lineproof"


@dataclass(frozen=True, slots=True)
class TrexSettings:
    """The generator's settings in a testbed file.

    ``server``: name or address; ``force``: take ports from another user; ``clock_speed``: seconds of the testbed's
    clock per second of the wall clock (not 1 on simulated testbeds); ``drain``: limit of the wait for missing frames
    after the last was sent, s of the testbed's clock (RFC 2544 23: 2 s); ``client``: see
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
    username: str = field(default_factory=_default_username)
    client: str = ""
    clock_speed: float = 1.0
    drain: float = 2.0
    pins_cores: bool = False
    promiscuous: bool = False
    outlives_run: bool = True
    next_hops: Mapping[int, NextHop] = field(default_factory=dict)
    namespace: str = ""

    @property
    def address(self) -> str:
        """``server:port``, for messages."""
        return f"{self.server}:{self.sync_port}{' of a network namespace' if self.namespace else ''}"


class TrexGenerator(Generator):
    """A connected TRex server with claimed ports. Connects when created; after a TestbedError nothing is left."""

    def __init__(self, settings: TrexSettings, fetch: FetchClient | None = None) -> None:
        """Connect. *fetch* gets the client that a server ships, if the settings or the server need it."""
        self.settings = settings
        self._fetch = fetch
        self._directions: tuple[Direction, ...] = ()
        self._profile: Profile | None = None
        self._streams: dict[int, list[dict[str, Any]]] = {}
        self._groups: dict[int, list[int]] = {}
        self._times = True
        self._speeds: dict[int, float] = {}
        self._versions: dict[str, str] = {}
        self._handlers: dict[int, str] = {}
        self._claim: PortClaim | None = None
        self._process: ClientProcess | None = None
        self._connect()

    def _connect(self) -> None:
        try:
            self._open()
        except BaseException:
            self.close()
            raise

    def _open(self) -> None:
        """Start the client's process, connect and acquire the ports. Raises TestbedError."""
        setting = self.settings
        if setting.client == PYPI:
            self._process = ClientProcess(namespace=setting.namespace)  # imports during the request to the server
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
        except ClientError as error:
            raise connection_error(error, setting.async_port, server, folder) from error

    def _acquire_ports(self) -> None:
        """Acquire the ports; what that needed becomes evidence (:attr:`versions`)."""
        setting, numbers = self.settings, list(self.settings.ports)
        ended, _ = read_claims(setting.address)
        former = {port: handler for claim in ended for port, handler in claim.handlers.items() if port in numbers}
        owners = {item["index"]: item["owner"] for item in self._call("ports", ports=numbers)}
        # handlers of this generator's own earlier connection replace older ones
        self._handlers = self._call(
            "acquire",
            ports=numbers,
            force=setting.force,
            former={**former, **self._handlers},
            promiscuous=setting.promiscuous,
            next_hops={port: asdict(hop) for port, hop in setting.next_hops.items()},
        )
        self._remove_claim()
        self._claim = write_claim(setting.address, self._handlers) if setting.outlives_run else None
        held = {port: owner for port, owner in owners.items() if owner}
        for claim in ended:
            claim.remove()
        if returned := {port: owner for port, owner in held.items() if port in former}:
            runs = "; ".join(map(str, ended))
            self._versions["leftover"] = f"ports {_owners_text(returned)} given back for a run that was killed: {runs}"
        modes = [item["promiscuous"] for item in self._call("ports", ports=numbers)]
        self._versions["promiscuous"] = "not known" if None in modes else f"{sum(modes)} of {len(modes)} ports"
        if setting.force:
            self._versions["force"] = f"allowed; held when the run began: {_owners_text(held) or 'none'}"

    def _remove_claim(self) -> None:
        if self._claim is not None:
            self._claim.remove()
            self._claim = None

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
        self._directions = ()
        try:
            data = _streams_by_port(directions, partial(profile_streams, profile, probe=probe))
        except ValueError as error:
            raise TestbedError(f"{profile.name}: {error}") from None
        self._put(data)
        self._streams = data
        self._speeds = {port.index: port.speed_bps for port in self.ports}
        self._directions, self._profile = directions, profile
        self._groups = {item.tx_port: probe_groups(profile, item) for item in directions} if probe else {}
        self._times = probe is None or probe.times

    def has_fine_latency(self, profile: Profile) -> bool:
        """Return whether the server counts the latency of *profile* in fine histograms. Raises TestbedError.

        Nothing is sent: the first frame is not due when the traffic is stopped. No streams are on the ports afterwards.
        """
        port, self._directions = self.ports[0], ()
        direction = Direction(port.index, port.index, destination=port.mac)
        streams = profile_streams(profile, direction, Probe(1.0))
        self._put({port.index: [replace(stream, gap=NEVER).to_json() for stream in streams]})
        (group,) = groups = probe_groups(profile, direction)
        trial = TrialRequest({port.index: 2.0}, [(port.index, port.index)], groups={port.index: groups})
        live = TrexLive(self._ask, trial)
        try:
            live.begin()
            (now,) = live.readings()
        finally:
            live.stop()
            self._put({})
        if not (counts := (now.groups.get("latency") or {}).get(group)):
            raise TestbedError(f"the TRex server at {self.settings.address} reports nothing of a packet group")
        return bool((counts.get("lat") or {}).get("hdrh"))

    @property
    def streams(self) -> Mapping[str, object]:
        """The streams put on the ports by :meth:`prepare`: the client's own arguments."""
        return {str(port): streams for port, streams in self._streams.items()}

    def measure(
        self,
        load: Load,
        duration: float,
        during: During | None = None,
        keep: int = 0,
        rates: Sequence[float] = (),
    ) -> Outcome:
        """One trial of *duration* s of the testbed's clock. Raises TestbedError if there is no outcome.

        A trial with *during* has no latency, and keeps no frames. TRex keeps frames in software: on a card that counts
        in hardware at low loads only.
        """
        before, trial, limit = cpu_times(), self._trial(load, duration, rates), self._trial_limit(duration)
        readings = dict[str, float]()
        if during is not None:
            counts, readings = self._trial_during(trial, during, limit)
        else:
            counts = _COUNTS.validate_python(self._ask("trial", limit, **asdict(replace(trial, keep=keep))))
        outcome = make_outcome(counts, load, duration, self._directions, trial.clock_speed, trial.rates, self._speeds)
        if (steal := steal_percent(before, cpu_times())) is not None:
            readings["cpu_steal"] = steal
        frames = {port: tuple(map(bytes.fromhex, rows)) for port, rows in counts.frames.items()}
        return replace(outcome, readings={**outcome.readings, **readings}, frames=frames)

    def idle(self, seconds: float, keep: int = 0) -> Mapping[int, Heard]:
        """See :meth:`..base.Generator.idle`. Raises TestbedError."""
        wall = seconds / self.settings.clock_speed
        heard = self._ask("idle", CALL_LIMIT + wall, seconds=wall, keep=keep).items()
        kept = {port: tuple(map(bytes.fromhex, one["kept"])) for port, one in heard}
        return {port: Heard(one["frames"], kept[port], one["group_frames"]) for port, one in heard}

    def burst(self, frames: int, pps: float) -> Outcome:
        """*frames* frames from each sending port at *pps*, with TRex's single bursts. Raises TestbedError."""
        if frames < 1 or self._profile is None or not self._directions:
            raise TestbedError(f"a burst needs a prepared profile and at least 1 frame, not {frames}")
        load, seconds = Load(pps), frames / pps
        trial, directions = replace(self._trial(load, seconds), groups={}, frames=frames), self._directions
        self._directions = ()  # until the profile's streams are back
        self._put(_streams_by_port(directions, partial(burst_streams, self._profile, frames=frames)))
        answer = self._ask("trial", self._trial_limit(seconds), **asdict(trial))
        self._put(self._streams)
        self._directions = directions
        return make_outcome(_COUNTS.validate_python(answer), load, seconds, directions, self.settings.clock_speed)

    def step_down(
        self, first: Load, first_duration: float, second: Load, second_duration: float, interval: float
    ) -> StepDown:
        """See :meth:`..base.Generator.step_down`. Raises TestbedError."""
        duration, speed = first_duration + second_duration, self.settings.clock_speed
        trial, limit = self._trial(first, duration), self._trial_limit(duration)
        with TrexLive.begun(self._ask, trial) as live:
            live.readings(first_duration / speed, first_duration / speed, limit)
            changed = live.change(second)
            # until the generator itself has ended, after the whole duration, with a limit
            readings = live.readings(1.5 * duration / speed + 5, interval / speed, limit)
            counts = live.finish(limit)
        outcome = make_outcome(counts, first, duration, self._directions, speed)
        before, after, *samples = map(live.snapshot, (changed.before, changed.after, *readings))
        ends = [item.offered for item in outcome.directions]
        # counts read after the end of sending give no time
        samples = [item for item in samples if all(sent < end for sent, end in zip(item.offered, ends, strict=True))]
        # s of the second phase: the change lies between its request and its answer
        shortest = duration - (changed.answered - live.began.asked) * speed
        longest = duration - (changed.asked - live.began.answered) * speed
        rows, rates = [], []
        for index, row in enumerate(outcome.directions):
            most, least = row.offered - before.offered[index], row.offered - after.offered[index]
            rates.append((least / longest if longest > 0 else 0.0, most / shortest if shortest > 0 else math.inf))
            # any count of the first phase is enough: it only has to overload the router
            short, over = second.pps * max(shortest, 0.0) - most, least - second.pps * max(longest, 0.0)
            rows.append(replace(row, intended=row.offered + round(max(short, 0.0) - max(over, 0.0))))
        more = {"second_load_pps": second.pps, "change_uncertainty": longest - shortest}
        outcome = replace(outcome, directions=tuple(rows), readings={**outcome.readings, **more})
        second_rate = (min(low for low, _ in rates), max(high for _, high in rates))
        return StepDown(outcome, second, before, after, tuple(samples), second_rate)

    def round_trips(self) -> list[float]:
        """Seconds of some requests for counters and their answers. Raises TestbedError."""
        return list(self._ask("distance"))

    def stop(self) -> None:
        """Stop all traffic now. Raises TestbedError."""
        self._ask("stop")

    def reconnect(self) -> None:
        """End the client's process, connect with a new one and acquire the ports. Raises TestbedError; may be repeated.

        Ports that this generator still holds are taken over; ports of other users only with the settings' ``force``.
        """
        self.close()
        self._directions, self._profile = (), None
        self._connect()

    def close(self) -> None:
        """Stop traffic, release the ports, end the client's process. May be repeated."""
        released = self._end_process()
        if not released and self._handlers:
            # it was killed: another one takes its ports over, and ends
            try:
                self._open()
            except TestbedError:
                self._end_process()
            else:
                released = self._end_process()
        if released:
            self._remove_claim()  # otherwise a later run releases the ports

    def _end_process(self) -> bool:
        """End the client's process; return whether it has released its ports."""
        process, self._process = self._process, None
        return process is None or process.close()

    def __enter__(self) -> TrexGenerator:
        """Itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close."""
        self.close()

    def _trial_during(self, trial: TrialRequest, during: During, limit: float) -> tuple[TrialCounts, dict[str, float]]:
        """Return the counts of *trial*, in which *during* is called, and DURING_READING; *limit*: s for its end."""
        speed, readings = trial.clock_speed, dict[str, float]()
        with TrexLive.begun(self._ask, trial) as live:

            def since_start() -> float:
                # both processes read the machine's monotonic clock
                return (time.monotonic() - live.began.asked) * speed

            while since_start() < (trial.duration or 0.0):
                live.wait(BEGIN_WAIT)
                (now,) = live.readings()
                if all(live.snapshot(now).offered):
                    during(live.wait)
                    readings[DURING_READING] = since_start()
                    break
            return live.finish(limit), readings

    # -- the process ---------------------------------------------------------------------------------------------------

    def _put(self, streams: Mapping[int, Any]) -> None:
        self._ask("prepare", CALL_LIMIT + search_limit(len(streams)), streams=streams)

    def _trial(self, load: Load, duration: float | None, rates: Sequence[float] = ()) -> TrialRequest:
        if not self._directions:
            raise TestbedError("the generator has no streams yet: prepare a profile before measuring")
        of_each = dict(zip(self._directions, rates or [load.pps] * len(self._directions), strict=True))
        return TrialRequest(
            rates={direction.tx_port: pps for direction, pps in of_each.items()},
            directions=[(direction.tx_port, direction.rx_port) for direction in self._directions],
            duration=duration,
            clock_speed=self.settings.clock_speed,
            drain=self.settings.drain,
            groups=self._groups,
            times=self._times,
        )

    def _trial_limit(self, duration: float) -> float:
        # the client ends a trial after 1.5 x its duration + 5 s; this is longer, in case it does not
        return (1.5 * duration + self.settings.drain) / self.settings.clock_speed + CALL_LIMIT + IMPORT_LIMIT / 2

    def _call(self, command: str, limit: float = CALL_LIMIT, **arguments: Any) -> Any:
        if self._process is None:
            raise TestbedError("the generator is closed")
        try:
            return self._process.call(command, limit, arguments)
        except ClientError:
            raise
        except TestbedError as error:
            raise TestbedError(f"{error}; it was connected to the TRex server at {self.settings.address}") from error

    def _ask(self, command: str, limit: float = CALL_LIMIT, **arguments: Any) -> Any:
        where = self.settings.address
        try:
            return self._call(command, limit, **arguments)
        except ClientError as error:
            if error.kind == "lost":
                # which request was the first without an answer depends on the moment, and says nothing
                more = "" if str(error).startswith(("[RPC]", "the server ")) else f": {error}"
                raise TestbedError(f"the TRex server at {where} no longer answers{more}") from error
            if error.kind == "taken":
                raise TestbedError(f"the ports of the TRex server at {where} are no longer ours: {error}") from error
            if "API handler" in str(error):
                # a server has a new handler after each start; the client still sends the old one
                raise TestbedError(f"the TRex server at {where} was started again meanwhile: {error}") from error
            remedy = remedy_of(str(error))
            words = f"the TRex server at {where}, asked to {command}: {error}{remedy}"
            raise (ProbesRefused if remedy else TestbedError)(words) from error


class TrexLive:
    """Running traffic of *trial*, which the client's process is asked to watch."""

    def __init__(self, ask: Callable[..., Any], trial: TrialRequest) -> None:
        self._ask, self._trial = ask, trial

    @classmethod
    @contextlib.contextmanager
    def begun(cls, ask: Callable[..., Any], trial: TrialRequest) -> Iterator[TrexLive]:
        """Begin *trial*, without packet groups. What fails or is interrupted inside is stopped."""
        live = cls(ask, replace(trial, groups={}))
        try:
            live.begin()
            yield live
        except BaseException:
            with contextlib.suppress(TestbedError):
                ask("stop", STOP_LIMIT)
            raise

    def begin(self) -> None:
        """Begin the trial."""
        self.began = _STEP.validate_python(self._ask("begin", **asdict(self._trial)))

    def readings(self, seconds: float = 0.0, interval: float = 0.0, limit: float = CALL_LIMIT) -> list[CounterReading]:
        """Return the counters of each *interval* in *seconds*, both in s of the wall clock; by default those of now."""
        return _READINGS.validate_python(self._ask("sample", limit, seconds=seconds, interval=interval))

    def change(self, load: Load) -> LoadStep:
        """Change to *load* without a pause."""
        return _STEP.validate_python(self._ask("change", rates=dict.fromkeys(self._trial.rates, load.pps)))

    def finish(self, limit: float) -> TrialCounts:
        """Return the counts once the trial has ended, within *limit* s."""
        return _COUNTS.validate_python(self._ask("finish", limit))

    def snapshot(self, now: CounterReading) -> CountSnapshot:
        """Return the frames of each direction that were counted since the start."""

        def since(port: int, name: str) -> int:
            return max(0, now.since(self.began.before, port, name))

        ports = self._trial.directions
        return CountSnapshot(
            tuple(since(tx, "opackets") for tx, _ in ports), tuple(since(rx, "ipackets") for _, rx in ports)
        )

    def wait(self, seconds: float) -> None:
        """Wait *seconds* of the testbed's clock; in parts of the wall clock, so that each call keeps its limit."""
        left = seconds / self._trial.clock_speed
        while left > 0:
            part = min(left, 5.0)
            self.readings(part, 2 * part)
            left -= part

    def stop(self) -> None:
        """Stop sending. Harmless when repeated."""
        self._ask("stop")


def _streams_by_port(
    directions: Sequence[Direction], streams_of: Callable[[Direction], Sequence[Stream]]
) -> dict[int, list[dict[str, Any]]]:
    """The streams of each direction as data, by sending port."""
    return {direction.tx_port: [item.to_json() for item in streams_of(direction)] for direction in directions}


def _owners_text(owners: Mapping[int, str]) -> str:
    return ", ".join(f"{port} by '{owner}'" for port, owner in owners.items())


def connection_error(error: ClientError, async_port: int, server: ServerFacts, folder: Path | None) -> TestbedError:
    """*error* of the client's process that connects and acquires ports, for a person. *folder*: of its library."""
    address = server.where
    if error.kind == "install":
        return TestbedError(
            f"{error}; expected trex-stl-lib 0.3 and what it requires, which every client here needs:"
            " pip install trex-stl-lib==0.3"
        )
    if error.kind == "connect" and "mismatch" in str(error).lower():
        return misfit(server, folder, str(error))
    if error.kind == "connect" and "subscriber" in str(error):
        return TestbedError(
            f"the TRex server at {address} answers, but publishes nothing that trex-stl-lib 0.3 understands at port"
            f" {async_port}; fix 'async_port' in the testbed file ({error})"
        )
    if error.kind == "taken":
        own_claims = "; ".join(f"port {claim.ports}: {claim}" for claim in read_claims(address)[1])
        return PortsTaken(
            f"a port of the TRex server at {address} is taken: {error}"
            + (f" (runs of your own hold {own_claims})" if own_claims else " (TRex does not report since when)")
            + "; have it released there, or set 'force: true' for the generator in the testbed file to take it away"
        )
    return TestbedError(f"the TRex server at {address}: {error}")


_REMEDIES = {
    "for flow stat": "; the card's filters cannot count such frames; expected TRex started with '--software'",
    "Failed allocating statistic counter": "; the card counts no more streams at a time ('lineproof doctor' shows how"
    " many); expected fewer streams with flow statistics, or TRex started with '--software'",
}


def remedy_of(refusal: str) -> str:
    """Return what to add to the server's words; "" where they say enough."""
    return next((remedy for words, remedy in _REMEDIES.items() if words in refusal), "")
