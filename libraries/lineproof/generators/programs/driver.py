"""Programs of a host as a :class:`~lineproof.generators.base.Generator`, by their descriptions.

What was sent is what the sending interface counted, and the program's own report is compared with it. What was
received is what the receiving interface counted, whoever sent it: frames of other origin are known by listening
(:mod:`...core.foreign`). The load is what was offered: a program that is late offers less, and takes longer. Where a
program takes the card from the kernel, the two programs count instead.
"""

from __future__ import annotations

import contextlib
import math
import re
import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from ipaddress import IPv4Address
from typing import Annotated

from pydantic import AfterValidator, Field

from ...command_values import compiled
from ...config import Config
from ...core.foreign import Heard
from ...core.live_traffic import LiveTraffic
from ...core.step_down import StepDown
from ...core.traffic.ip_header import ipv4_checksum
from ...core.traffic.profiles import ETHERNET, IP, TRANSPORT, Profile
from ...core.trial import DURING_READING, HOST_COUNTS, During, Fault, Load, Outcome, Problem
from ...errors import TestbedError
from ...units import FCS
from ..abilities import WORDS, Abilities, listing
from ..base import Direction, GeneratorPort, Probe
from ..kinds import Lacks, refusal
from ..site import Site
from ..streams import Stream, profile_streams
from .port import COMMAND_LIMIT, COUNTERS, STOPPED, Counts, Port, Ran, Sent, order_together, outcome_of

VALUES = {
    "program": "its path on the host",
    "interface": "of the port that the command is for",
    "mac": "of the sending port",
    "router_mac": 'that frames of the port go to; "": not known',
    "link_wait": "the testbed's key, s",
    "count": "frames, or datagrams, that a trial has of the flow",
    "pps": "frames/s of the load",
    "bits": "bit/s of the load, in frames without FCS",
    "payload_bits": "bit/s of the flow's load, in payload of UDP",
    "size": "bytes of a frame without FCS",
    "longest": "bytes of the longest without FCS",
    "length": "bytes of a datagram's payload",
    "source": "the flow's IPv4 address",
    "destination": "the flow's other IPv4 address",
    "source_port": "the flow's UDP port",
    "port": "the flow's other UDP port",
    "own": "the IPv4 address of the flow's end at the port",
    "far": "that of its other end",
    "router": "the router's IPv4 address at the port",
    "peer": "the port's own address and prefix length in the router's network",
    "control": 'the interface that goes past the router; "": there is none',
    "mtu": "bytes that the profile's fragments need",
    "own_mtu": "bytes of the interface before",
}
"""The ``{names}`` in a command, and what each stands for."""

BEYOND_PROGRAMS = ("own_frames", "latency", "capture", "live", "bursts", "own_counts", "promiscuous")
"""The abilities that no program of a host has."""

_NAME = re.compile(r"\{([a-z_]+)\}")


def filled(command: str, values: Mapping[str, object]) -> str:
    """Return *command* with *values* in place of its ``{names}``, each as one word of the shell."""
    return _NAME.sub(lambda name: shlex.quote(str(values[name[1]])), command)


def _checked_names(command: str) -> str:
    if unknown := sorted(set(_NAME.findall(command)) - VALUES.keys()):
        raise ValueError(f"'{{{unknown[0]}}}' stands for nothing; expected any of {', '.join(VALUES)}")
    return command


def _checked_report(pattern: str) -> str:
    if "frames" not in compiled(pattern).groupindex:
        raise ValueError("needs a group '(?P<frames>…)' around the number of frames")
    return pattern


def _checked_ability(name: str) -> str:
    if name not in WORDS:
        raise ValueError(f"'{name}' is no ability; expected any of {', '.join(WORDS)}")
    return name


Command = Annotated[str, Field(min_length=1), AfterValidator(_checked_names)]
Report = Annotated[str, AfterValidator(_checked_report)]


class PortChange(Config):
    """A command that sets something on a port, and the one that undoes it when the port is given back."""

    do: Command
    undo: Command


class Free(Config):
    """A command that prints nothing if a port is free, and why it is not: ``but``, with ``{found}``."""

    run: Command
    but: str


class Description(Config):
    """A program that sends frames, as its YAML file says: its commands, its report, and what it can.

    A command may have ``{names}`` of :data:`VALUES`. They are put into it here only, quoted for the shell of a port.

    ``needs``: programs that the host must have, and Debian's package of each. ``version``: a command that prints it.
    ``cannot``: abilities that it lacks beside :data:`BEYOND_PROGRAMS`; one that lacks ``flows`` is started once for
    each of up to ``most_flows``, one that has them sends the list ``frames.cfg``, in trafgen's language. ``sockets``:
    it sends from sockets, so that the kernel adds the headers, and its ports must be in different networks.
    ``fragments``: the change that lets a port send the two sizes of a datagram in fragments.

    ``free``: what must hold when a port is taken. Changes: ``prepare`` at both ends of each flow, ``pace`` before a
    trial at the port that sends. ``receive``: a program at the other port, for which ``ready`` waits. ``send``: one
    simple command, which ends when it has sent ``{count}``.

    ``report``: an expression whose last match in the output of ``send`` has groups ``frames``, ``seconds`` and
    ``bytes`` (without FCS). Without ``seconds`` the interface is watched for them; ``wrong_by``: s by which they may
    be too long and too short. ``received``: the same of ``receive``; then the card is not the kernel's while they run,
    and the programs count; else the interfaces do. ``failed``: an expression with the ``words`` of a failure.

    ``greetings``: frames that each sending and receiving program sends of its own before a trial's first;
    ``control_frames``: those that control it beside the trial's, where they pass the router.
    """

    program: str
    about: str
    needs: Mapping[str, str]
    version: Command
    cannot: tuple[Annotated[str, AfterValidator(_checked_ability)], ...] = ()
    most_flows: int = 1
    sockets: bool = False
    fragments: PortChange | None = None
    free: Free | None = None
    prepare: tuple[PortChange, ...] = ()
    pace: tuple[PortChange, ...] = ()
    receive: Command | None = None
    ready: Command = "true"
    send: Command
    report: Report
    received: Report | None = None
    failed: str | None = None
    wrong_by: tuple[float, float] = (0.0, 0.0)
    greetings: int = 0
    control_frames: int = 0

    @property
    def abilities(self) -> Abilities:
        """The abilities of the program."""
        lacking = dict.fromkeys((*BEYOND_PROGRAMS, *self.cannot), False)
        return Abilities(**lacking, most_flows=self.most_flows, fragments=self.fragments is not None)


DRAIN = 2.0
"""Seconds at most for residual frames after the last was sent (RFC 2544 23)."""

QUIET = 0.3
"""Seconds without a further frame after which no more are awaited."""

GRACE = 10.0
"""Seconds that a program may go on beyond its trial, before it is killed."""

CLOCK_JUMP = 1.0
"""Seconds by which the clock of day may move against the steady one in a trial."""

OPENING = 1.0
"""Seconds for a program to open a card that it takes from the kernel, beside the wait for its link."""

CONTROL = "control"
"""The interface past the router, where the testbed has made the ports."""


def longest(seconds: float) -> float:
    """Seconds after which a program that should have sent for *seconds* is asked to end: it is too slow."""
    return 1.1 * seconds + 1.0


def read_report(description: Description, pattern: str, ran: Ran, where: str) -> dict[str, str]:
    """Return the groups of the last match of *pattern* in what a program wrote. Raises TestbedError."""
    program, failed = description.program, description.failed
    if failed and ran.status != STOPPED and (failure := re.search(failed, ran.output)):
        raise TestbedError(f"{program} on {where}: {failure['words']}")
    reports = [match.groupdict(default="0") for match in re.finditer(pattern, ran.output, re.MULTILINE)]
    if not reports or ran.status not in (0, STOPPED):
        words = " ".join(ran.output.split())[-300:] or "nothing"
        raise TestbedError(f"{program} on {where} gave no report (status {ran.status}): {words}")
    return reports[-1]


@dataclass(frozen=True, slots=True)
class Prepared:
    """The traffic of a direction: the values of each ``flow``, for a program of its own, on ``cores`` (none: on any).

    ``length``: bytes of a datagram's payload, which takes so many ``frames``; ``size``: their mean in bytes with FCS.
    """

    flows: tuple[Mapping[str, object], ...]
    cores: tuple[str, ...]
    length: int
    frames: int
    size: float


class ProgramGenerator:
    """The program of *description* on ports that *claim* makes, also anew for :meth:`reconnect`.

    *path*: of the program on the hosts. *link_wait*: s until a card that it takes from the kernel has its link again.
    Raises TestbedError.
    """

    def __init__(
        self, description: Description, site: Site, path: str, link_wait: int, claim: Callable[[], tuple[Port, ...]]
    ) -> None:
        self._description, self._site, self._claim = description, site, claim
        self._settings = {"program": path, "link_wait": link_wait}
        self._opening = link_wait + OPENING if description.received else 0.0
        self._streams: Mapping[str, object] = {}
        self._ports: dict[int, Port] = {}
        self.reconnect()
        try:
            self._version = (
                next(iter(self._ports.values())).ask(filled(description.version, self._settings)).strip() or "?"
            )
        except BaseException:
            self.close()
            raise

    def reconnect(self) -> None:
        """See :meth:`..base.Generator.reconnect`. Raises TestbedError."""
        self.close()
        self._ports = {port.index: port for port in self._claim()}
        self._changed: dict[tuple[int, str], str] = {}
        self._own_mtu: dict[int, str] = {}
        # of programs that count themselves
        self._counts = {index: dict.fromkeys(COUNTERS, 0) for index in self._ports}

    def stop(self) -> None:
        """See :meth:`..base.Generator.stop`. Raises TestbedError."""
        for port in self._ports.values():
            port.ask("halt")

    def close(self) -> None:
        """See :meth:`..base.Generator.close`."""
        ports, self._ports, self._prepared = self._ports, {}, dict[Direction, Prepared]()
        for port in ports.values():
            port.close()

    @property
    def ports(self) -> tuple[GeneratorPort, ...]:
        """The claimed ports as they are now. Raises TestbedError."""
        ports = []
        for index, port in self._ports.items():
            facts = port.facts()
            speed = float(facts["speed"]) * 1e6 if facts["speed"].isdecimal() else 0.0
            driver, up = facts["driver"] or "virtual", facts["carrier"] == "1"
            ports.append(GeneratorPort(index, port.mac, speed, up, driver, destination=port.place.router_mac))
        return tuple(ports)

    @property
    def versions(self) -> Mapping[str, str]:
        """The program and its version, as evidence."""
        name = self._description.program
        return {"server": f"{name} {self._version}", name: self._version}

    @property
    def streams(self) -> Mapping[str, object]:
        """Return what is sent, by sending port."""
        return self._streams

    # -- preparing -----------------------------------------------------------------------------------------------------

    def prepare(self, profile: Profile, directions: tuple[Direction, ...], probe: Probe | None = None) -> None:
        """See :meth:`..base.Generator.prepare`. Raises TestbedError."""
        self._prepared = {}
        pairs, asked = len({row.pair for row in directions}), () if probe is None else ("latency",)

        def lacks(abilities: Abilities) -> tuple[str, ...]:
            return abilities.lacks(profile, len(directions) > pairs, pairs, *asked)

        if lacks(self._description.abilities):
            raise TestbedError(f"'{profile.name}': {self._refused(lacks)}")
        if self._description.sockets:
            self._set_mtu(profile, {row.tx_port for row in directions})
        prepared, streams = {}, {}
        for row in directions:
            listed = self._write_list(profile, row) if self._description.abilities.flows else {}
            prepared[row] = self._sending(profile, row)
            flows = [[flow[name] for name in _FLOW] for flow in prepared[row].flows]
            streams[str(row.tx_port)] = {"program": self._description.program, "flows": flows, **listed}
        self._streams, self._prepared = streams, prepared

    def _set_mtu(self, profile: Profile, sending: set[int]) -> None:
        """Let ports that send fragments make them; refuse what would become fragments. Raises TestbedError."""
        size, datagram = max(frame.size for frame in profile.frames) - FCS - ETHERNET, profile.fragmented_datagram
        for index, port in self._ports.items():
            mtu = self._own_mtu.get(index) or port.facts()["mtu"]
            if index in sending and not datagram and mtu.isdecimal() and size > int(mtu):
                raise TestbedError(
                    f"'{profile.name}': a datagram of {size - IP[4] - TRANSPORT['udp']} bytes does not fit the MTU of"
                    f" {mtu} bytes of {port.place.text}: it would be sent in fragments, which are more frames;"
                    " expected smaller frames, or a larger MTU"
                )
            if index in sending and datagram:
                self._own_mtu[index] = mtu
            if index in self._own_mtu and (change := self._description.fragments):
                wanted = size if index in sending and datagram else mtu
                self._change(port, (change,), {"mtu": wanted, "own_mtu": mtu})

    def _write_list(self, profile: Profile, direction: Direction) -> Mapping[str, object]:
        """Write the list of different frames where they are sent. Raises TestbedError."""
        port = self._ports[direction.tx_port]
        router_mac = direction.destination or port.place.router_mac
        try:
            frames = listed_frames(profile_streams(profile, direction), port.mac, router_mac)
        except ValueError as error:
            raise TestbedError(f"'{profile.name}': {error}") from None
        lines = "".join(f"{config_line(frame)}\n" for frame in frames)
        port.ask(f"cat > frames.cfg <<'@@'\n{lines}@@", COMMAND_LIMIT + len(lines) / 1e5)
        return {"frames": len(frames), "first": frames[0].hex()}

    def _sending(self, profile: Profile, direction: Direction) -> Prepared:
        tx, rx = self._ports[direction.tx_port], self._ports[direction.rx_port]
        flows = profile.flows.of_pair(direction.pair)
        flows = flows.reversed() if direction.swapped else flows
        datagram, size = profile.fragmented_datagram, profile.frames[0].size - FCS
        length = datagram or size - ETHERNET - IP[4] - TRANSPORT["udp"]
        whole = {
            "mac": tx.mac,
            "router_mac": direction.destination or tx.place.router_mac,
            "size": size,
            "longest": max(frame.size for frame in profile.frames) - FCS,
            "length": length,
        }
        values = list[Mapping[str, object]]()
        # one that sends many flows has a list of them
        for number in range(1 if self._description.abilities.flows else flows.count):
            ends = [str(IPv4Address(addresses.at(number))) for addresses in (flows.source, flows.destination)]
            udp_ports = (flows.source_port + number, flows.destination_port + number)
            values.append({**whole, **dict(zip(_FLOW, (*ends, *udp_ports), strict=True))})
            for port, (own, far) in ((tx, ends), (rx, ends[::-1])):
                self._change(port, self._description.prepare, {**self._ends(port), "own": own, "far": far})
        cores = tx.ask("cores").split() if len(values) > 1 else ()
        return Prepared(tuple(values), tuple(cores), length, 2 if datagram else 1, profile.mean_size)

    def _ends(self, port: Port) -> Mapping[str, object]:
        """Values of the cable between *port* and the router."""
        side = self._site.sides[self._site.endpoint.ports.index(port.index)]
        router, _, prefix = side.address.partition("/")
        control = CONTROL if self._passes_by else ""
        mac = port.place.router_mac
        return {"router": router, "router_mac": mac, "peer": f"{side.peer}/{prefix}", "control": control}

    @property
    def _passes_by(self) -> bool:
        """Return whether frames that control the program go past the router."""
        return bool(self._site.endpoint.places)

    def _values(self, port: Port, values: Mapping[str, object]) -> Mapping[str, object]:
        return {**self._settings, "interface": port.place.interface, **values}

    def _change(self, port: Port, changes: Sequence[PortChange], values: Mapping[str, object]) -> None:
        """Make *changes* that are not made; they are undone when the port is given back. Raises TestbedError."""
        for change in changes:
            do, undo = (filled(command, self._values(port, values)) for command in (change.do, change.undo))
            last = self._changed.get((port.index, undo))
            if last is None:
                port.undo(undo)
            if last != do:
                port.ask(do)
            self._changed[port.index, undo] = do

    # -- a trial -------------------------------------------------------------------------------------------------------

    def measure(self, load: Load, duration: float, during: During | None = None, keep: int = 0) -> Outcome:
        """See :meth:`..base.Generator.measure`. Raises TestbedError; it keeps no frames."""
        if keep:
            raise self._refused(lambda able: able.lacks_of("capture"))
        return self._trial(dict.fromkeys(self._prepared, load.pps), load, duration, during)

    def measure_rates(self, rates: Sequence[float], duration: float) -> Outcome:
        """See :meth:`..base.Generator.measure_rates`. Raises TestbedError."""
        return self._trial(dict(zip(self._prepared, rates, strict=True)), Load(max(rates)), duration, None)

    def _trial(self, rates: Mapping[Direction, float], load: Load, duration: float, during: During | None) -> Outcome:
        if not rates:
            raise TestbedError("a trial needs a prepared profile")
        frames = {direction: max(1, round(pps * duration)) for direction, pps in rates.items()}
        limit, readings = duration * 2 + GRACE + 2 * self._opening, dict[str, float]()
        before, started, began = self._counters(), time.time(), time.monotonic()
        try:
            order_together([self._ready(direction, frames[direction], pps) for direction, pps in rates.items()])
            asked = time.monotonic()
            if during is not None:
                self._await_first(before, limit)
                during(time.sleep)
                readings[DURING_READING] = time.monotonic() - asked
            sent = {direction: self._finish(direction, limit) for direction in rates}
        except BaseException:
            with contextlib.suppress(TestbedError):
                self.stop()
            raise
        ended = self._counters()
        drained = time.monotonic()
        after = self._drained(before, ended)
        outcome = outcome_of(load, duration, frames, sent, before, ended, after)
        jump = (time.time() - started) - (time.monotonic() - began)
        problems = list(outcome.problems)
        if abs(jump) > CLOCK_JUMP:
            problems.append(Problem(Fault.CLOCK, f"it moved by {jump:+.1f} s during the trial"))
        for port in self.ports:
            if not port.link_up:
                ports = tuple((row.tx_port, row.rx_port) for row in rates if port.index in (row.tx_port, row.rx_port))
                problems.append(Problem(Fault.LINK_DOWN, f"generator port {port.index}", directions=ports))
        spent = [row.cpu for row in sent.values() if row.cpu is not None]
        if len(spent) == len(sent):
            readings["sender_cpu_seconds"] = sum(spent)
            readings["sender_cores"] = float(sum(row.cores for row in sent.values()))
        readings |= {"drain": time.monotonic() - drained, HOST_COUNTS: 1.0}
        readings = {**outcome.readings, **readings}
        return replace(outcome, started=started, problems=tuple(problems), readings=readings)

    def _ready(self, direction: Direction, frames: int, pps: float) -> tuple[Port, str]:
        """Do all that comes before sending; return the command that starts it. Raises TestbedError."""
        description, sending = self._description, self._prepared[direction]
        tx, rx = self._ports[direction.tx_port], self._ports[direction.rx_port]
        limit, flows = longest(frames / pps) + self._opening, sending.flows
        count, starts = max(len(flows), frames // sending.frames), list[str]()
        bits = max(8, round(8 * (sending.size - FCS) * pps))
        payload_bits = max(1, round(8 * sending.length * pps / sending.frames / len(flows)))
        for number, flow in enumerate(flows):
            own = count // len(flows) + (number < count % len(flows))
            values = {**flow, "count": own, "pps": max(1, round(pps)), "bits": bits, "payload_bits": payload_bits}
            if description.receive:
                self._receive(rx, number, limit, self._values(rx, values))
            self._change(tx, description.pace, values)
            pinned = f"taskset -c {sending.cores[number % len(sending.cores)]} " if sending.cores else ""
            command = pinned + filled(description.send, self._values(tx, values))
            starts.append(f"start send{number} {limit:.3f} {shlex.quote(command)}")
        if description.received:
            time.sleep(self._opening)
        else:
            # a program greets, and the one beside it answers the other direction's
            greetings = len(flows) * self._description.greetings
            beside = any(row.tx_port == direction.rx_port for row in self._prepared)
            first = greetings * (1 + beside) // 2 if self._passes_by else 0
            others = first if self._passes_by else self._others(len(flows))
            tx.ask(f"watch_sending {frames + others} {2 * frames / pps + 5:.3f} {first}")
        return tx, "\n".join(starts)

    def _receive(self, port: Port, number: int, limit: float, values: Mapping[str, object]) -> None:
        """Start a receiver, and wait until it is ready. Raises TestbedError."""
        command, ready = (filled(each or "", values) for each in (self._description.receive, self._description.ready))
        port.ask(
            f"start receive{number} {limit + self._opening + GRACE + DRAIN:.0f} {shlex.quote(command)}\n"
            f"await 5 {shlex.quote(ready)} || {{ cat receive{number}.out; (exit 1); }}"
        )

    def _others(self, flows: int) -> int:
        """Frames that programs of so many *flows* may send beside those of the trial."""
        return flows * (self._description.greetings + (0 if self._passes_by else self._description.control_frames))

    def _finish(self, direction: Direction, limit: float) -> Sent:
        """Wait for the programs' end. Raises TestbedError."""
        description, sending, port = self._description, self._prepared[direction], self._ports[direction.tx_port]
        count = len(sending.flows)
        ends = [port.await_end(f"send{number}", limit) for number in range(count)]
        reports = [read_report(description, description.report, ran, port.place.text) for ran in ends]
        frames = sum(int(report["frames"]) for report in reports)
        spent = [ran.cpu for ran in ends if ran.cpu is not None]
        if description.received:
            time.sleep(DRAIN)
            self._count(port, "o", reports[0])
            self._count_received(self._ports[direction.rx_port])
            span = None
        else:
            span = port.watched_span()
        least, most = (span.least, span.most) if span else (0.0, 0.0)
        if "seconds" in reports[0]:
            seconds = max(float(report["seconds"]) for report in reports)
            early, late = description.wrong_by
            least, most = max(0.0, seconds - early), seconds + late
            # the frames that control it are sent in it, too; several programs begin one after the other
            span = span and span.lasting(least)
            most = max(most, span.most) if span and count > 1 else most
        if span and len(self._prepared) > 1:
            span = span.here(port.clock())
        others = self._others(count)
        return Sent(
            frames * sending.frames,
            least,
            most,
            others,
            round(sending.size) if others else 0,
            span,
            sum(spent) if len(spent) == count else None,
            # several on one core share it
            min(count, len(sending.cores) or 1),
        )

    # -- counts --------------------------------------------------------------------------------------------------------

    def _counters(self) -> Counts:
        if self._description.received:
            return {index: dict(counts) for index, counts in self._counts.items()}
        return {index: port.counters() for index, port in self._ports.items()}

    def _count(self, port: Port, way: str, report: Mapping[str, str]) -> int:
        """Add a report to the counters of *port*, of received (``i``) or sent frames (``o``); returns the frames."""
        frames = int(report["frames"])
        self._counts[port.index][f"{way}packets"] += frames
        self._counts[port.index][f"{way}bytes"] += int(report["bytes"]) + FCS * frames
        return frames

    def _count_received(self, port: Port) -> int:
        """End the receiver; returns the frames that it counted. Raises TestbedError."""
        port.ask("interrupt receive0")
        ran = port.await_end("receive0", GRACE)
        report = read_report(self._description, self._description.received or "", ran, port.place.text)
        return self._count(port, "i", report)

    def _await_first(self, before: Counts, limit: float) -> None:
        until = time.monotonic() + limit
        while time.monotonic() < until:
            now = self._counters()
            if all(now[row.tx_port]["opackets"] > before[row.tx_port]["opackets"] for row in self._prepared):
                return
            time.sleep(0.05)

    def _drained(self, before: Counts, ended: Counts) -> Counts:
        """The counters once all frames came back, no more come, or the time for them is over."""
        until, now, moved = time.monotonic() + DRAIN, ended, time.monotonic()
        while time.monotonic() < until:
            missing = [
                now[row.tx_port]["opackets"] - before[row.tx_port]["opackets"]
                > now[row.rx_port]["ipackets"] - before[row.rx_port]["ipackets"]
                for row in self._prepared
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
        ports = self._ports.values()
        if self._description.received:
            for port in ports:
                self._receive(port, 0, seconds, self._values(port, {}))
            time.sleep(seconds + self._opening)
            return {port.index: Heard(self._count_received(port)) for port in ports}
        before = self._counters()
        time.sleep(seconds)
        after = self._counters()
        return {index: Heard(max(0, after[index]["ipackets"] - before[index]["ipackets"])) for index in self._ports}

    # -- what no program can -------------------------------------------------------------------------------------------

    def burst(self, frames: int, pps: float) -> Outcome:
        """Refused."""
        raise self._refused(lambda able: able.lacks_of("bursts"))

    def step_down(
        self, first: Load, first_duration: float, second: Load, second_duration: float, interval: float
    ) -> StepDown:
        """Refused."""
        raise self._refused(lambda able: able.lacks_of("live"))

    def live(self) -> LiveTraffic:
        """Refused."""
        raise self._refused(lambda able: able.lacks_of("live"))

    def _refused(self, lacks: Lacks) -> TestbedError:
        return TestbedError(refusal(self._site.endpoint.type, lacks))


_FLOW = ("source", "destination", "source_port", "port")
"""The values of a flow, as :data:`VALUES` names them."""


def listed_frames(streams: Sequence[Stream], mac: str, router_mac: str) -> list[bytes]:
    """Return the frames of *streams*, each with all its flows. Raises ValueError where they are too many."""
    own = listing([stream.share for stream in streams], [_flows(stream) for stream in streams])
    weights = own.weights
    sent, frames = [0] * len(streams), list[bytes]()
    for step in range(own.frames):
        due = [weight * (step + 1) / sum(weights) - count for weight, count in zip(weights, sent, strict=True)]
        place = due.index(max(due))
        frames.append(_frame(streams[place], sent[place], mac, router_mac))
        sent[place] += 1
    return frames


def _flows(stream: Stream) -> int:
    return math.lcm(*((field.maximum - field.minimum) // field.step + 1 for field in stream.variables))


def _frame(stream: Stream, index: int, mac: str, router_mac: str) -> bytes:
    """Return frame *index* of *stream*, with its MAC addresses, without FCS."""
    frame = bytearray(bytes.fromhex(stream.frame))
    frame[0:6], frame[6:12] = (bytes.fromhex(address.replace(":", "")) for address in (router_mac, mac))
    for field in stream.variables:
        count = (field.maximum - field.minimum) // field.step + 1
        value = field.minimum + index % count * field.step
        frame[field.offset : field.offset + field.size] = value.to_bytes(field.size, "big")
    if stream.fix_ipv4 is not None:
        head = stream.fix_ipv4
        frame[head + 10 : head + 12] = b"\0\0"
        frame[head + 10 : head + 12] = ipv4_checksum(bytes(frame[head : head + 20])).to_bytes(2, "big")
    return bytes(frame)


def config_line(frame: bytes) -> str:
    """Return *frame* in trafgen's language; what it ends with is written as a filling."""
    rest = len(frame) - len(frame.rstrip(frame[-1:]))
    head = "".join(f"0x{octet:02x}, " for octet in frame[: len(frame) - rest])
    return f"{{ {head}fill(0x{frame[-1]:02x}, {rest}) }}"
