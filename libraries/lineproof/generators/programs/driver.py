"""Programs of a host as a :class:`~lineproof.generators.base.Generator`, by their descriptions.

What was sent is what the sending interface counted, and the program's own report is compared with it. What was
received is what the receiving interface counted, whoever sent it: frames of other origin are known by listening
(:mod:`...core.foreign`). The load is what was offered: a program that is late offers less, and takes longer. Where a
program takes the card from the kernel, the two programs count instead.
"""

from __future__ import annotations

import contextlib
import math
import shlex
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from ipaddress import IPv4Address

from ...core.foreign import Heard
from ...core.traffic.ip_header import ipv4_checksum
from ...core.traffic.profiles import ETHERNET, IP, TRANSPORT, Profile
from ...core.trial import DURING_READING, HOST_COUNTS, DirectionCount, During, Fault, Load, Outcome, Problem
from ...errors import TestbedError
from ...units import FCS
from ..base import Direction, Generator, GeneratorPort, Probe, listing
from ..site import GeneratorEndpoint, Place, SiteSide
from ..streams import Stream, Variable, profile_streams
from .description import Description, PortChange, filled
from .port import COMMAND_LIMIT, COUNTERS, Port, Span

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

_FLOW = ("source", "destination", "source_port", "port")
"""The values of a flow."""


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


class ProgramGenerator(Generator):
    """The program of *description* on ports at *places*, claimed anew by :meth:`reconnect`.

    *path*: of the program on the hosts. *link_wait*: s until a card that it takes from the kernel has its link again.
    *checked*: what holds a trial against other counts of the same frames. Raises TestbedError.
    """

    def __init__(
        self,
        description: Description,
        endpoint: GeneratorEndpoint,
        sides: Sequence[SiteSide],
        places: tuple[Place, ...],
        path: str,
        link_wait: int = 0,
        checked: Callable[[Callable[[], Outcome]], Outcome] | None = None,
    ) -> None:
        self._description, self._numbers, self._sides, self._places = description, endpoint.ports, sides, places
        self._checked = checked or (lambda measure: measure())
        self._settings: dict[str, str | int] = {"program": path, "link_wait": link_wait}
        self._opening = link_wait + OPENING if description.received else 0.0
        # frames that control the program go past the router
        self._passes_by = bool(endpoint.places)
        self._streams: Mapping[str, object] = {}
        self._ports: dict[int, Port] = {}
        self.reconnect()

    def reconnect(self) -> None:
        """See :meth:`..base.Generator.reconnect`. Raises TestbedError."""
        self.close()
        try:
            for index, place in zip(self._numbers, self._places, strict=True):
                self._ports[index] = Port(index, place)
                self._check_host(self._ports[index])
            version = self._ports[index].ask(filled(self._description.version, self._settings))
        except BaseException:
            self.close()
            raise
        self._version = version.strip() or "?"
        self._values: dict[int, Mapping[str, object]] = {}
        for port, side in zip(self._ports.values(), self._sides, strict=False):
            router, _, prefix = side.address.partition("/")
            self._values[port.index] = {
                **self._settings,
                "interface": port.place.interface,
                "mac": port.mac,
                "router_mac": port.place.router_mac,
                "router": router,
                "peer": f"{side.peer}/{prefix}",
                "control": CONTROL if self._passes_by else "",
                "own_mtu": port.mtu,
            }
        self._changed: dict[tuple[int, str], str] = {}
        # of programs that count themselves
        self._counts = {index: dict.fromkeys(COUNTERS, 0) for index in self._ports}

    def _check_host(self, port: Port) -> None:
        """Raise TestbedError for a program that the host of *port* does not have, and a port that is not free."""
        description, interface = self._description, port.place.interface
        for program, package in description.needs.items():
            program = str(self._settings["program"]) if program == description.program else program
            if not port.ask(filled("command -v {program} || :", {"program": program})):
                hint = f"; install the package {package}" if package else "; install it"
                raise TestbedError(f"the program '{program}' is missing for {port.place.text}{hint}")
        if (free := description.free) and (taken := port.ask(filled(free.run, {"interface": interface})).strip()):
            words = free.but.replace("{interface}", interface).replace("{found}", taken)
            raise TestbedError(f"{port.place.text} {words}")

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
        """See :meth:`..base.Generator.prepare`; the plan has refused what the program cannot. Raises TestbedError."""
        self._prepared = {}
        if self._description.sockets and not profile.fragmented_datagram:
            self._check_mtu(profile, directions)
        prepared, streams = {}, {}
        for row in directions:
            listed = self._write_list(profile, row) if "flows" in self._description.can else {}
            prepared[row] = self._sending(profile, row, {other.tx_port for other in directions})
            flows = [[flow[name] for name in _FLOW] for flow in prepared[row].flows]
            streams[str(row.tx_port)] = {"program": self._description.program, "flows": flows, **listed}
        self._streams, self._prepared = streams, prepared

    def _check_mtu(self, profile: Profile, directions: Sequence[Direction]) -> None:
        """Refuse what a kernel would send in fragments. Raises TestbedError."""
        size = max(frame.size for frame in profile.frames) - FCS - ETHERNET
        for port in (self._ports[row.tx_port] for row in directions):
            if port.mtu.isdecimal() and size > int(port.mtu):
                raise TestbedError(
                    f"'{profile.name}': a datagram of {size - IP[4] - TRANSPORT['udp']} bytes does not fit the MTU of"
                    f" {port.mtu} bytes of {port.place.text}: it would be sent in fragments, which are more frames;"
                    " expected smaller frames, or a larger MTU"
                )

    def _write_list(self, profile: Profile, direction: Direction) -> Mapping[str, object]:
        """Write the list of different frames where they are sent. Raises TestbedError."""
        port = self._ports[direction.tx_port]
        router_mac = direction.destination or port.place.router_mac
        frames = listed_frames(profile_streams(profile, direction), port.mac, router_mac)
        lines = "".join(f"{config_line(frame)}\n" for frame in frames)
        port.ask(f"cat > frames.cfg <<'@@'\n{lines}@@", COMMAND_LIMIT + len(lines) / 1e5)
        return {"frames": len(frames), "first": frames[0].hex()}

    def _sending(self, profile: Profile, direction: Direction, sending: set[int]) -> Prepared:
        tx, rx = self._ports[direction.tx_port], self._ports[direction.rx_port]
        flows = profile.flows.of_pair(direction.pair)
        flows = flows.reversed() if direction.swapped else flows
        datagram, size = profile.fragmented_datagram, profile.frames[0].size - FCS
        longest = max(frame.size for frame in profile.frames) - FCS
        length = datagram or size - ETHERNET - IP[4] - TRANSPORT["udp"]
        whole = {**self._values[tx.index], "size": size, "longest": longest, "length": length}
        whole["router_mac"] = direction.destination or whole["router_mac"]
        values = list[Mapping[str, object]]()
        # one that sends many flows has a list of them
        for number in range(1 if "flows" in self._description.can else flows.count):
            ends = [str(IPv4Address(addresses.at(number))) for addresses in (flows.source, flows.destination)]
            udp_ports = (flows.source_port + number, flows.destination_port + number)
            values.append({**whole, **dict(zip(_FLOW, (*ends, *udp_ports), strict=True))})
            for port, (own, far) in ((tx, ends), (rx, ends[::-1])):
                mtu = longest - ETHERNET if datagram and port.index in sending else port.mtu
                at_port = {**self._values[port.index], "own": own, "far": far, "mtu": mtu}
                self._change(port, self._description.prepare, at_port)
        cores = tx.ask("cores").split() if len(values) > 1 else ()
        return Prepared(tuple(values), tuple(cores), length, 2 if datagram else 1, profile.mean_size)

    def _change(self, port: Port, changes: Sequence[PortChange], values: Mapping[str, object]) -> None:
        """Make *changes* that are not made; they are undone when the port is given back. Raises TestbedError."""
        for change in changes:
            do, undo = filled(change.do, values), filled(change.undo, values)
            last = self._changed.get((port.index, undo))
            if last is None:
                port.undo(undo)
            if last != do:
                port.ask(do)
            self._changed[port.index, undo] = do

    # -- a trial -------------------------------------------------------------------------------------------------------

    def measure(
        self,
        load: Load,
        duration: float,
        during: During | None = None,
        keep: int = 0,
        rates: Sequence[float] = (),
    ) -> Outcome:
        """See :meth:`..base.Generator.measure`. Raises TestbedError; it keeps no frames."""
        of_each = dict(zip(self._prepared, rates or [load.pps] * len(self._prepared), strict=True))
        return self._checked(lambda: self._counted(of_each, load, duration, during))

    def _counted(self, rates: Mapping[Direction, float], load: Load, duration: float, during: During | None) -> Outcome:
        if not rates:
            raise TestbedError("a trial needs a prepared profile")
        frames = {direction: max(1, round(pps * duration)) for direction, pps in rates.items()}
        limit, readings = duration * 2 + GRACE + 2 * self._opening, {HOST_COUNTS: 1.0}
        before, started, began = self._counters(), time.time(), time.monotonic()
        try:
            ready = [self._ready(direction, frames[direction], pps) for direction, pps in rates.items()]
            # all are asked to start before the first has answered
            for answer in [port.order(command) for port, command in ready]:
                answer()
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
        readings["drain"] = time.monotonic() - drained
        outcome = outcome_of(load, duration, frames, sent, before, ended, after)
        problems, jump = list(outcome.problems), (time.time() - started) - (time.monotonic() - began)
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
        readings = {**outcome.readings, **readings}
        return replace(outcome, started=started, problems=tuple(problems), readings=readings)

    def _ready(self, direction: Direction, frames: int, pps: float) -> tuple[Port, str]:
        """Do all that comes before sending; return the command that starts it. Raises TestbedError."""
        description, sending = self._description, self._prepared[direction]
        tx, rx = self._ports[direction.tx_port], self._ports[direction.rx_port]
        # a program that should have ended by then is asked to: it is too slow
        limit, flows = 1.1 * frames / pps + 1.0 + self._opening, sending.flows
        count, starts = max(len(flows), frames // sending.frames), list[str]()
        bits = max(8, round(8 * (sending.size - FCS) * pps))
        payload_bits = max(1, round(8 * sending.length * pps / sending.frames / len(flows)))
        for number, flow in enumerate(flows):
            own = count // len(flows) + (number < count % len(flows))
            values = {**flow, "count": own, "pps": max(1, round(pps)), "bits": bits, "payload_bits": payload_bits}
            if description.receive:
                self._receive(rx, number, limit, {**values, **self._values[rx.index]})
            self._change(tx, description.pace, values)
            pinned = f"taskset -c {sending.cores[number % len(sending.cores)]} " if sending.cores else ""
            starts.append(f"start send{number} {limit:.3f} {shlex.quote(pinned + filled(description.send, values))}")
        if description.received:
            time.sleep(self._opening)
        else:
            # a program greets, and the one beside it answers the other direction's
            beside = any(row.tx_port == direction.rx_port for row in self._prepared)
            first = len(flows) * description.greetings * (1 + beside) // 2 if self._passes_by else 0
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
        count, span = len(sending.flows), None
        ends = [port.await_end(f"send{number}", limit) for number in range(count)]
        reports = [description.read(ran, port.place.text) for ran in ends]
        if description.received:
            time.sleep(DRAIN)
            self._count(port, "o", reports[0])
            self._count_received(self._ports[direction.rx_port])
        else:
            span = port.watched_span()
        least, most = span.seconds if span else (0.0, 0.0)
        if "seconds" in reports[0]:
            seconds = max(float(report["seconds"]) for report in reports)
            early, late = description.wrong_by
            least, most = max(0.0, seconds - early), seconds + late
            # the frames that control it are sent in it, too; several programs begin one after the other
            span = span and span.lasting(least)
            most = max(most, span.seconds[1]) if span and count > 1 else most
        if span and len(self._prepared) > 1:
            span = span.here(port.clock())
        others, spent = self._others(count), [ran.cpu for ran in ends if ran.cpu is not None]
        return Sent(
            sum(int(report["frames"]) for report in reports) * sending.frames,
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
        return self._count(port, "i", self._description.read(ran, port.place.text, "received"))

    def _await_first(self, before: Counts, limit: float) -> None:
        until, sending = time.monotonic() + limit, {row.tx_port for row in self._prepared}
        while time.monotonic() < until:
            now = self._counters()
            if all(now[port]["opackets"] > before[port]["opackets"] for port in sending):
                return
            time.sleep(0.05)

    def _drained(self, before: Counts, ended: Counts) -> Counts:
        """The counters once all frames came back, no more come, or the time for them is over."""
        until, now, moved = time.monotonic() + DRAIN, ended, time.monotonic()

        def more(port: int, name: str) -> int:
            return now[port][name] - before[port][name]

        while time.monotonic() < until and time.monotonic() - moved <= QUIET:
            if all(more(row.tx_port, "opackets") <= more(row.rx_port, "ipackets") for row in self._prepared):
                break
            time.sleep(0.02)
            last, now = now, self._counters()
            moved = moved if now == last else time.monotonic()
        return now

    def idle(self, seconds: float, keep: int = 0) -> Mapping[int, Heard]:
        """See :meth:`..base.Generator.idle`; no frame is kept. Raises TestbedError."""
        if self._description.received:
            for port in self._ports.values():
                self._receive(port, 0, seconds, self._values[port.index])
            time.sleep(seconds + self._opening)
            return {port.index: Heard(self._count_received(port)) for port in self._ports.values()}
        before = self._counters()
        time.sleep(seconds)
        after = self._counters()
        return {index: Heard(max(0, after[index]["ipackets"] - before[index]["ipackets"])) for index in self._ports}


def listed_frames(streams: Sequence[Stream], mac: str, router_mac: str) -> list[bytes]:
    """Return the frames of *streams*, each with all its flows. Raises ValueError where they are too many."""
    weights, rounds = listing(
        [stream.share for stream in streams], [math.lcm(*map(_count, stream.variables)) for stream in streams]
    )
    turn, sent, frames = sum(weights), [0] * len(streams), list[bytes]()
    for step in range(rounds * turn):
        due = [weight * (step + 1) / turn - count for weight, count in zip(weights, sent, strict=True)]
        place = due.index(max(due))
        frames.append(_frame(streams[place], sent[place], mac, router_mac))
        sent[place] += 1
    return frames


def _count(field: Variable) -> int:
    return (field.maximum - field.minimum) // field.step + 1


def _frame(stream: Stream, index: int, mac: str, router_mac: str) -> bytes:
    """Return frame *index* of *stream*, with its MAC addresses, without FCS."""
    frame = bytearray(bytes.fromhex(stream.frame))
    frame[0:6], frame[6:12] = (bytes.fromhex(address.replace(":", "")) for address in (router_mac, mac))
    for field in stream.variables:
        value = field.minimum + index % _count(field) * field.step
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


Counts = Mapping[int, Mapping[str, int]]
"""By port, its counters."""


@dataclass(frozen=True, slots=True)
class Sent:
    """A program's report of its sending: ``frames``, and the ``least`` and ``most`` seconds that it took.

    ``others``: frames that it may have sent besides, as those of a connection that controls it; then ``size`` is the
    bytes with FCS of its own. ``span``: when, by the interface; None: not asked, or nothing was sent. ``cpu``: seconds
    of CPU time that it took on so many ``cores``.
    """

    frames: int
    least: float
    most: float
    others: int = 0
    size: int = 0
    span: Span | None = None
    cpu: float | None = None
    cores: int = 1


def outcome_of(
    load: Load,
    duration: float,
    frames: Mapping[Direction, int],
    sent: Mapping[Direction, Sent],
    before: Counts,
    ended: Counts,
    after: Counts,
) -> Outcome:
    """Return the outcome of a trial that asked for so many *frames*, by what was *sent* and the counters.

    They are those *before* it, when all programs had *ended*, and *after* the last frames had arrived.
    """
    problems: list[Problem] = []
    rows: list[DirectionCount] = []
    controlling: dict[Direction, int] = {}

    def difference(port: int, name: str, ports: tuple[tuple[int, int], ...] = ()) -> int:
        counted = after[port][name] - before[port][name]
        if counted < 0:
            words = f"{name} of generator port {port} fell by {-counted}"
            problems.append(Problem(Fault.COUNTERS, words, directions=ports))
        return max(0, counted)

    for direction, report in sent.items():
        tx, rx = direction.tx_port, direction.rx_port
        ports = ((tx, rx),)
        counted, received = difference(tx, "opackets", ports), difference(rx, "ipackets", ports)
        surplus = counted - report.frames
        if not 0 <= surplus <= report.others:
            words = f"port {tx} sent {counted} frames by its counters, {report.frames} by its program"
            problems.append(Problem(Fault.MISCOUNTED, words, directions=ports))
        if failed := difference(tx, "oerrors", ports):
            problems.append(Problem(Fault.UNSENT, f"port {tx} failed to send {failed} frames", failed, ports))
        # frames that control the program are sent and received beside those of the trial: their loss counts, too
        others = controlling[direction] = min(max(0, surplus), report.others)
        offered, forwarded = counted - others, max(0, received - others)
        if (missed := difference(rx, "ierrors", ports)) and forwarded < offered:
            words = f"port {rx} received {missed} frames with errors, or missed them"
            problems.append(Problem(Fault.GENERATOR, words, missed, ports))
        mean = report.size or difference(tx, "obytes", ports) / max(1, counted)
        mean_back = report.size or difference(rx, "ibytes", ports) / max(1, received)
        sizes = round(mean * offered), round(mean_back * forwarded)
        rows.append(DirectionCount(tx, rx, frames[direction], offered, forwarded, *sizes))
    spare = max((report.others for report in sent.values()), default=0)
    for port in after.keys() - {direction.tx_port for direction in sent}:
        if (stray := difference(port, "opackets")) > spare:
            words = f"port {port} sent {stray} frames that nobody asked it for; does another program use it?"
            # they may be lost in the place of others, and come back in the place of others
            problems += [Problem(fault, words, stray) for fault in (Fault.OVER_OFFERED, Fault.FOREIGN)]
    least, most = _together(sent.values())
    counters = {
        "before": _evidence(before, {}),
        "ended": _evidence(ended, controlling),
        "after": _evidence(after, controlling),
    }
    readings = {"elapsed_uncertainty": (most - least) / 2}
    elapsed = (least + most) / 2
    return Outcome(load, duration, elapsed, 0.0, tuple(rows), tuple(problems), readings, counters=counters)


def _together(sent: Collection[Sent]) -> tuple[float, float]:
    """Return the least and the most seconds from the first frame of any direction to the last of any.

    A router has less to do while one of them does not send.
    """
    least, most = max(row.least for row in sent), max(row.most for row in sent)
    spans = [row.span for row in sent if row.span is not None]
    if len(spans) > 1:
        least = max(least, max(span.ends for span in spans) - min(span.began for span in spans))
        most = max(most, max(span.ended for span in spans) - min(span.begins for span in spans))
    return least, most


def _evidence(counts: Counts, others: Mapping[Direction, int]) -> dict[str, int]:
    """*counts* as keys like ``0.opackets``, without the frames *others*, which stand beside them.

    Evidence is checked against them: what is neither offered nor forwarded is the counter ``others`` of the sender.
    """
    evidence = {f"{port}.{name}": count for port, row in counts.items() for name, count in row.items()}
    for direction, frames in others.items():
        if frames:
            evidence[f"{direction.tx_port}.opackets"] -= frames
            evidence[f"{direction.rx_port}.ipackets"] -= frames
            evidence[f"{direction.tx_port}.others"] = frames
    return evidence
