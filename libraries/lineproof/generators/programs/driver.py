"""Programs of a host as a :class:`~lineproof.generators.base.Generator`: frames counted by the host's own interfaces.

What was sent is what the sending interface counted, and the program's own report is compared with it. What was
received is what the receiving interface counted, whoever sent it: frames of other origin are known by listening
(:mod:`...core.foreign`). The load is what was offered: a program that is late offers less, and takes longer.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn, Protocol

from ...core.foreign import Heard
from ...core.live_traffic import LiveTraffic
from ...core.step_down import StepDown
from ...core.traffic.profiles import Profile
from ...core.trial import DURING_READING, HOST_COUNTS, During, Fault, Load, Outcome, Problem
from ...errors import TestbedError
from ...units import FCS
from ..abilities import Abilities
from ..base import Direction, GeneratorPort, Probe
from .agent import Agent, Launch, start_together
from .counters import read_counters, read_facts
from .outcome import Sent, flat, others_of, outcome_of, without

ABILITIES = Abilities(
    own_frames=False, latency=False, capture=False, live=False, bursts=False, own_counts=False, promiscuous=False
)
"""The most that a program of a host can do."""

DRAIN = 2.0
"""Seconds at most for residual frames after the last was sent (RFC 2544 23)."""

QUIET = 0.3
"""Seconds without a further frame after which no more are awaited."""

GRACE = 10.0
"""Seconds that a program may go on beyond its trial, before it is killed."""

CLOCK_JUMP = 1.0
"""Seconds by which the clock of day may move against the steady one in a trial."""


@dataclass(frozen=True, slots=True)
class Port:
    """A claimed port: its shell, and the MAC addresses at both ends of its cable."""

    index: int
    agent: Agent
    router_mac: str
    mac: str


class Program(Protocol):
    """How one program is told to send, and what it reports."""

    name: str

    def check(self, profile: Profile, directions: Sequence[Direction]) -> None:
        """Raise TestbedError for what it cannot send."""
        ...

    def prepare(self, profile: Profile, directions: Sequence[Direction]) -> Mapping[str, Any]:
        """Get ready to send; what is sent, as JSON data by sending port. Raises TestbedError."""
        ...

    def ready(self, direction: Direction, frames: int, pps: float) -> Launch:
        """Do all that comes before sending so many *frames*, *pps* of them per second. Raises TestbedError."""
        ...

    def finish(self, direction: Direction, limit: float) -> Sent:
        """Wait for its end. Raises TestbedError."""
        ...

    def counters(self, port: Port) -> Mapping[str, int]:
        """``opackets``, ``obytes``, ``ipackets``, ``ibytes`` (with FCS), ``ierrors`` and ``oerrors`` of a port."""
        ...

    def facts(self, port: Port) -> Mapping[str, str]:
        """See :func:`.counters.read_facts`. Raises TestbedError."""
        ...

    def listen(self, seconds: float) -> Mapping[int, Heard]:
        """Return what each port receives in *seconds* in which nothing is sent. Raises TestbedError."""
        ...


@dataclass
class LinuxPorts:
    """What programs that send from Linux interfaces have in common."""

    ports: Mapping[int, Port]

    def counters(self, port: Port) -> Mapping[str, int]:
        """Return those of the interface. Raises TestbedError."""
        return interface_counters(port)

    def facts(self, port: Port) -> Mapping[str, str]:
        """Return those of the interface. Raises TestbedError."""
        return read_facts(port.agent)

    def listen(self, seconds: float) -> Mapping[int, Heard]:
        """Return what the interfaces count meanwhile. Raises TestbedError."""
        before = {port.index: self.counters(port)["ipackets"] for port in self.ports.values()}
        time.sleep(seconds)
        after = {port.index: self.counters(port)["ipackets"] for port in self.ports.values()}
        return {index: Heard(max(0, count - before[index])) for index, count in after.items()}


def longest(seconds: float) -> float:
    """Seconds after which a program that should have sent for *seconds* is asked to end: it is too slow."""
    return 1.1 * seconds + 1.0


def interface_counters(port: Port) -> Mapping[str, int]:
    """A port's counters, of its Linux interface. Raises TestbedError."""
    found = read_counters(port.agent)
    return {
        "opackets": found["tx_packets"],
        "obytes": found["tx_bytes"] + FCS * found["tx_packets"],
        "ipackets": found["rx_packets"],
        "ibytes": found["rx_bytes"] + FCS * found["rx_packets"],
        "ierrors": found["rx_errors"] + found["rx_missed_errors"],
        "oerrors": found["tx_errors"],
    }


@dataclass
class ProgramGenerator:
    """A generator of one *program*, with claimed *claimed* ports. *switched*: a switch counts the frames as well."""

    program: Program
    claimed: tuple[Port, ...]
    software: Mapping[str, str]
    claim: Callable[[], tuple[Program, tuple[Port, ...]]]
    """Makes program and ports anew, for :meth:`reconnect`."""
    _directions: tuple[Direction, ...] = ()
    _streams: Mapping[str, object] = field(default_factory=dict)

    @property
    def ports(self) -> tuple[GeneratorPort, ...]:
        """The claimed ports as they are now. Raises TestbedError."""
        found = []
        for port in self.claimed:
            facts = self.program.facts(port)
            speed = float(facts["speed"]) * 1e6 if facts["speed"].isdecimal() else 0.0
            driver = facts["driver"] or "virtual"
            up = facts["carrier"] == "1"
            found.append(GeneratorPort(port.index, port.mac, speed, up, driver, destination=port.router_mac))
        return tuple(found)

    @property
    def versions(self) -> Mapping[str, str]:
        """The program and its version, as evidence."""
        return {"server": f"{self.program.name} {self.software.get(self.program.name, '')}".strip(), **self.software}

    @property
    def streams(self) -> Mapping[str, object]:
        """Return what is sent, by sending port."""
        return self._streams

    def prepare(self, profile: Profile, directions: tuple[Direction, ...], probe: Probe | None = None) -> None:
        """See :meth:`..base.Generator.prepare`. Raises TestbedError."""
        if probe is not None:
            self._refuse("measures no latency")
        self._directions = ()
        self.program.check(profile, directions)
        self._streams = self.program.prepare(profile, directions)
        self._directions = directions

    def measure(self, load: Load, duration: float, during: During | None = None) -> Outcome:
        """See :meth:`..base.Generator.measure`. Raises TestbedError."""
        return self._trial(dict.fromkeys(self._directions, load.pps), load, duration, during)

    def measure_rates(self, rates: Sequence[float], duration: float) -> Outcome:
        """See :meth:`..base.Generator.measure_rates`. Raises TestbedError."""
        return self._trial(dict(zip(self._directions, rates, strict=True)), Load(max(rates)), duration, None)

    def _trial(self, rates: Mapping[Direction, float], load: Load, duration: float, during: During | None) -> Outcome:
        if not rates:
            raise TestbedError("a trial needs a prepared profile")
        frames = {direction: max(1, round(pps * duration)) for direction, pps in rates.items()}
        limit, readings = duration * 2 + GRACE, dict[str, float]()
        before, started, began = self._counters(), time.time(), time.monotonic()
        try:
            launches = [self.program.ready(direction, frames[direction], pps) for direction, pps in rates.items()]
            start_together(launches)
            asked = time.monotonic()
            if during is not None:
                self._await_first(before, limit)
                during(time.sleep)
                readings[DURING_READING] = time.monotonic() - asked
            sent = {direction: self.program.finish(direction, limit) for direction in rates}
        except BaseException:
            with contextlib.suppress(TestbedError):
                self.stop()
            raise
        ended = self._counters()
        drained = time.monotonic()
        after = self._drained(before, ended, sent)
        found = outcome_of(load, duration, frames, self._here(sent), before, after)
        jump = (time.time() - started) - (time.monotonic() - began)
        problems = list(found.problems)
        if abs(jump) > CLOCK_JUMP:
            problems.append(Problem(Fault.CLOCK, f"it moved by {jump:+.1f} s during the trial"))
        for port in self.ports:
            if not port.link_up:
                ports = tuple((row.tx_port, row.rx_port) for row in rates if port.index in (row.tx_port, row.rx_port))
                problems.append(Problem(Fault.LINK_DOWN, f"generator port {port.index}", directions=ports))
        if (spent := [row.cpu for row in sent.values()]) and all(cpu is not None for cpu in spent):
            readings["sender_cpu_seconds"] = sum(cpu or 0.0 for cpu in spent)
            readings["sender_cores"] = float(sum(row.cores for row in sent.values()))
        readings |= {"drain": time.monotonic() - drained, HOST_COUNTS: 1.0}
        # evidence is checked against them: what is neither offered nor forwarded stands beside them
        others = {row: others_of(row, report, before, after) for row, report in sent.items()}
        moments = {"before": before, "ended": without(ended, others), "after": without(after, others)}
        return replace(
            found,
            started=started,
            problems=tuple(problems),
            readings={**found.readings, **readings},
            counters={moment: flat(counts) for moment, counts in moments.items()},
        )

    def _here(self, sent: Mapping[Direction, Sent]) -> Mapping[Direction, Sent]:
        """*sent*; where several sent, when they did is by the clock of this machine. Raises TestbedError."""
        if len(sent) == 1:
            return sent
        clocks = {port.index: port.agent.clock() for port in self.claimed}
        return {
            row: replace(report, span=report.span and report.span.here(clocks[row.tx_port]))
            for row, report in sent.items()
        }

    def _await_first(self, before: Mapping[int, Mapping[str, int]], limit: float) -> None:
        until = time.monotonic() + limit
        while time.monotonic() < until:
            now = self._counters()
            if all(now[row.tx_port]["opackets"] > before[row.tx_port]["opackets"] for row in self._directions):
                return
            time.sleep(0.05)

    def _counters(self) -> dict[int, Mapping[str, int]]:
        return {port.index: dict(self.program.counters(port)) for port in self.claimed}

    def _drained(
        self,
        before: Mapping[int, Mapping[str, int]],
        ended: Mapping[int, Mapping[str, int]],
        sent: Mapping[Direction, Sent],
    ) -> dict[int, Mapping[str, int]]:
        """The counters once all frames came back, no more come, or the time for them is over."""
        until, now, moved = time.monotonic() + DRAIN, dict(ended), time.monotonic()
        while time.monotonic() < until:
            missing = [
                now[row.tx_port]["opackets"] - before[row.tx_port]["opackets"]
                > now[row.rx_port]["ipackets"] - before[row.rx_port]["ipackets"]
                for row in sent
            ]
            if not any(missing) or time.monotonic() - moved > QUIET:
                break
            time.sleep(0.02)
            last, now = now, self._counters()
            if now != last:
                moved = time.monotonic()
        return now

    def idle(self, seconds: float, keep: int = 0) -> Mapping[int, Heard]:
        """See :meth:`..base.Generator.idle`; no frame is kept. Raises TestbedError."""
        del keep
        return self.program.listen(seconds)

    def burst(self, frames: int, pps: float) -> Outcome:
        """Refused."""
        self._refuse("sends no bursts of an exact length")

    def step_down(
        self, first: Load, first_duration: float, second: Load, second_duration: float, interval: float
    ) -> StepDown:
        """Refused."""
        self._refuse("cannot change its load while it sends")

    def live(self) -> LiveTraffic:
        """Refused."""
        self._refuse("cannot change its load while it sends")

    def capture(self, load: Load, duration: float, limit: int) -> Mapping[int, tuple[bytes, ...]]:
        """Refused."""
        self._refuse("keeps no received frames")

    def _refuse(self, words: str) -> NoReturn:
        raise TestbedError(f"the generator '{self.program.name}' {words}; expected TRex for it")

    def stop(self) -> None:
        """See :meth:`..base.Generator.stop`. Raises TestbedError."""
        for port in self.claimed:
            port.agent.stop()

    def reconnect(self) -> None:
        """See :meth:`..base.Generator.reconnect`. Raises TestbedError."""
        self.close()
        self.program, self.claimed = self.claim()

    def close(self) -> None:
        """See :meth:`..base.Generator.close`."""
        ports, self.claimed, self._directions = self.claimed, (), ()
        for port in ports:
            port.agent.close()
