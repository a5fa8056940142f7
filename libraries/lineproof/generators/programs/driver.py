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
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from ipaddress import IPv4Address

from ...core.foreign import Heard
from ...core.telemetry import Side
from ...core.traffic.ip_header import ipv4_checksum
from ...core.traffic.profiles import ETHERNET, IP, TRANSPORT, Profile
from ...core.trial import DRAIN, DURING_READING, HOST_COUNTS, DirectionCount, During, Fault, Load, Outcome, Problem
from ...errors import TestbedError
from ...units import FCS
from ..base import Direction, Generator, GeneratorPort, Probe, listing
from ..counting import Totals, by_moment, counted, counter_problems, grown, missed_problem
from ..site import GeneratorEndpoint, Place
from ..streams import Stream, Variable, profile_streams, with_number
from .description import Description, Ran, filled
from .port import COMMAND_LIMIT, Port, Span, start

DRAIN_GAP = 0.1
"""Seconds between two readings while frames are missing."""

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


@dataclass(frozen=True, slots=True, eq=False)
class SendingPrograms:
    """The programs that send a direction from port ``tx`` to ``rx``: one with the values of each of ``flows``.

    ``cores``: those that they run on, in turn (none: on any). A datagram takes so many ``frames``; ``size``: their mean
    in bytes with FCS.
    """

    direction: Direction
    tx: Port
    rx: Port
    flows: tuple[Mapping[str, object], ...]
    cores: tuple[str, ...]
    frames: int
    size: float

    @property
    def cores_used(self) -> int:
        """How many cores they have: several on one share it."""
        return min(len(self.flows), len(self.cores) or 1)


@dataclass(frozen=True, slots=True)
class Sent:
    """The programs' report of a direction: its ``frames``, and the ``least`` and ``most`` s that they took.

    ``others``: frames that they may have sent besides, to control them; then ``size`` is the bytes with FCS of the
    trial's own. ``span``: when, by the interface; None: not watched, or nothing was sent.
    """

    frames: int
    least: float
    most: float
    others: int = 0
    size: float = 0.0
    span: Span | None = None


class ProgramGenerator(Generator):
    """The program of *description* on ports at *places*, claimed anew by :meth:`reconnect`.

    *path*: of the program on the hosts. *link_wait*: s until a card that it takes from the kernel has its link again.
    Raises TestbedError.
    """

    def __init__(
        self,
        description: Description,
        endpoint: GeneratorEndpoint,
        sides: Sequence[Side],
        places: Sequence[Place],
        path: str,
        link_wait: int = 0,
    ) -> None:
        self._description = description
        self._places = dict(zip(endpoint.ports, places, strict=True))
        # a platform may have fewer interfaces than the generator has ports
        self._sides = dict(zip(endpoint.ports, sides, strict=False))
        # the kernel of a namespace that the testbed has made has a way past the router
        control = CONTROL if endpoint.places else ""
        self._settings: dict[str, object] = {"program": path, "link_wait": link_wait, "control": control}
        self._opening = link_wait + OPENING if description.received else 0.0
        self._ports: dict[int, Port] = {}
        self.reconnect()

    def reconnect(self) -> None:
        """Connect again after a failed call (:meth:`..base.Generator.reconnect`). Raises TestbedError."""
        self.close()
        try:
            for index, place in self._places.items():
                port = self._ports[index] = Port(index, place, counts=not self._description.received)
                self._prepare_port(port)
            self._version = port.ask(filled(self._description.version, self._settings)).strip() or "?"
        except BaseException:
            self.close()
            raise

    def _prepare_port(self, port: Port) -> None:
        """Put together the values of *port*. Raises TestbedError where it is not free, or its host lacks a program."""
        description, place = self._description, port.place
        address, peer = (side.address, side.peer) if (side := self._sides.get(port.index)) else ("", "")
        router, _, prefix = address.partition("/")
        of_router = {"router": router, "router_mac": place.router_mac, "peer": f"{peer}/{prefix}"}
        of_port = {"interface": place.interface, "mac": port.mac, "own_mtu": port.mtu}
        port.values = {**self._settings, **of_port, **of_router}
        for program, package in description.needs.items():
            path = self._settings["program"] if program == description.program else program
            if not port.ask(filled("command -v {program} || :", {"program": path})):
                hint = f"install the package {package}" if package else "install it"
                raise TestbedError(f"the program '{path}' is missing for {place.text}; {hint}")
        if taken := port.ask(filled(description.free, port.values)).strip():
            raise TestbedError(f"{place.text} {taken}")

    def stop(self) -> None:
        """Stop sending (:meth:`..base.Generator.stop`). Raises TestbedError."""
        for port in self._ports.values():
            port.ask("halt")

    def close(self) -> None:
        """Give the ports back (:meth:`..base.Generator.close`)."""
        ports, self._ports, self._senders = self._ports, {}, list[SendingPrograms]()
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
        name = self._description.program
        return {
            str(sender.tx.index): {
                "program": name,
                "flows": [[flow[name] for name in _FLOW] for flow in sender.flows],
                **sender.tx.listed,
            }
            for sender in self._senders
        }

    # -- preparing -----------------------------------------------------------------------------------------------------

    def prepare(self, profile: Profile, directions: tuple[Direction, ...], probe: Probe | None = None) -> None:
        """Prepare the ports to send *profile*: the plan has refused what the program cannot. Raises TestbedError."""
        self._senders = []
        sending = {direction.tx_port for direction in directions}
        self._senders = [self._sender(profile, direction, sending) for direction in directions]

    def _write_list(self, profile: Profile, direction: Direction) -> None:
        """Write the list of different frames where they are sent. Raises TestbedError."""
        port = self._ports[direction.tx_port]
        router_mac = direction.destination or port.place.router_mac
        frames = listed_frames(profile_streams(profile, direction), port.mac, router_mac)
        lines = "".join(f"{config_line(frame)}\n" for frame in frames)
        port.ask(f"cat > frames.cfg <<'@@'\n{lines}@@", COMMAND_LIMIT + len(lines) / 1e5)
        port.listed = {"frames": len(frames), "first": frames[0].hex()}

    def _sender(self, profile: Profile, direction: Direction, sending: Collection[int]) -> SendingPrograms:
        """Return what sends *profile* in *direction*, with both of its ports set up. *sending*: those of all."""
        tx, rx = self._ports[direction.tx_port], self._ports[direction.rx_port]
        if self._description.lists_flows:
            self._write_list(profile, direction)
        ranges = profile.flows.of_pair(direction.pair)
        ranges = ranges.reversed() if direction.swapped else ranges
        datagram, size = profile.fragmented_datagram, profile.frames[0].size - FCS
        longest = max(frame.size for frame in profile.frames) - FCS
        length = datagram or size - ETHERNET - IP[4] - TRANSPORT["udp"]
        whole = {**tx.values, "size": size, "longest": longest, "length": length}
        whole["router_mac"] = direction.destination or whole["router_mac"]
        flows = list[Mapping[str, object]]()
        for number in range(1 if self._description.lists_flows else ranges.count):
            ends = [str(IPv4Address(addresses.at(number))) for addresses in (ranges.source, ranges.destination)]
            udp_ports = (ranges.source_port + number, ranges.destination_port + number)
            flows.append({**whole, **dict(zip(_FLOW, (*ends, *udp_ports), strict=True))})
            for port, (own, far) in ((tx, ends), (rx, ends[::-1])):
                # a longer datagram than the MTU leaves in fragments, which are frames of their own
                cut = bool(datagram) and port.index in sending
                mtu = longest - ETHERNET if cut else max(int(port.mtu or 0), longest - ETHERNET)
                port.change(self._description.prepare, {**port.values, "own": own, "far": far, "mtu": mtu})
        cores = tx.ask("cores").split() if len(flows) > 1 else ()
        return SendingPrograms(direction, tx, rx, tuple(flows), tuple(cores), 2 if datagram else 1, profile.mean_size)

    # -- a trial -------------------------------------------------------------------------------------------------------

    def measure(
        self, load: Load, duration: float, during: During | None = None, keep: int = 0, rates: Sequence[float] = ()
    ) -> Outcome:
        """Measure one trial (:meth:`..base.Generator.measure`). Raises TestbedError. No frames are kept."""
        if not self._senders:
            raise TestbedError("a trial needs a prepared profile")
        senders = dict(zip(self._senders, rates or [load.pps] * len(self._senders), strict=True))
        frames = {sender.direction: max(1, round(pps * duration)) for sender, pps in senders.items()}
        limit, readings = duration * 2 + GRACE + 2 * self._opening, {HOST_COUNTS: 1.0}
        before, started, began = self._totals(), time.time(), time.monotonic()
        try:
            commands = [self._make_ready(sender, frames[sender.direction], pps) for sender, pps in senders.items()]
            # all are asked to start before the first has answered
            answers = [sender.tx.order(command) for sender, command in zip(senders, commands, strict=True)]
            for answer in answers:
                answer()
            asked = time.monotonic()
            if during is not None:
                self._await_first(before, limit)
                during(time.sleep)
                readings[DURING_READING] = time.monotonic() - asked
            ends = {sender: self._ended(sender, limit) for sender in senders}
            # before anything else is asked: queues empty meanwhile
            ended, sending_ended = self._totals(), time.monotonic()
            sent = {sender.direction: self._report(sender, ran) for sender, ran in ends.items()}
        except BaseException:
            with contextlib.suppress(TestbedError):
                self.stop()
            raise
        after = self._drained(before)
        readings["drain"] = time.monotonic() - sending_ended
        ran_all = [ran for of_sender in ends.values() for ran in of_sender]
        spent = [ran.cpu for ran in ran_all if ran.cpu is not None]
        if len(spent) == len(ran_all):
            readings["sender_cpu_seconds"] = sum(spent)
            readings["sender_cores"] = float(sum(sender.cores_used for sender in senders))
        jump = (time.time() - started) - (time.monotonic() - began)
        clock = [Problem(Fault.CLOCK, f"it moved by {jump:+.1f} s during the trial")] if abs(jump) > CLOCK_JUMP else []
        links = {port.index: port.link_up for port in self.ports}
        outcome = outcome_of(load, duration, frames, sent, before, ended, after, links)
        problems, readings = (*outcome.problems, *clock), {**outcome.readings, **readings}
        return replace(outcome, started=started, problems=problems, readings=readings)

    def _make_ready(self, sender: SendingPrograms, frames: int, pps: float) -> str:
        """Do all that comes before sending so many *frames*; return the command that starts it. Raises TestbedError."""
        description, count = self._description, len(sender.flows)
        # a program that should have ended by then is asked to: it is too slow
        limit, starts = 1.1 * frames / pps + 1.0 + self._opening, list[str]()
        datagrams = max(count, frames // sender.frames)
        for number, flow in enumerate(sender.flows):
            of_trial = {
                "pps": max(1, round(pps)),
                "bits": max(8, round(8 * (sender.size - FCS) * pps)),
                "payload_bits": max(1, round(8 * int(str(flow["length"])) * pps / sender.frames / count)),
                "count": datagrams // count + (number < datagrams % count),
            }
            values = {**flow, **of_trial}
            if description.receive:
                self._receive(sender.rx, number, limit, {**values, **sender.rx.values})
            sender.tx.change(description.pace, values)
            pinned = f"taskset -c {sender.cores[number % len(sender.cores)]} " if sender.cores else ""
            starts.append(start(f"send{number}", limit, pinned + filled(description.send, values)))
        if description.received:
            time.sleep(self._opening)
        else:
            sender.tx.ask(f"watch_sending {frames + count * description.control_frames} {2 * frames / pps + 5:.3f}")
        return "\n".join(starts)

    def _receive(self, port: Port, number: int, limit: float, values: Mapping[str, object]) -> None:
        """Start a receiver, and wait until it is ready. Raises TestbedError."""
        command, ready = (filled(text or "", values) for text in (self._description.receive, self._description.ready))
        name = f"receive{number}"
        port.ask(
            f"{start(name, limit + self._opening + GRACE + DRAIN, command)}\n"
            f"await 5 {shlex.quote(ready)} || {{ cat {name}.out; (exit 1); }}"
        )

    def _ended(self, sender: SendingPrograms, limit: float) -> list[Ran]:
        """Wait for the end of the programs of *sender*. Raises TestbedError."""
        return [sender.tx.await_end(f"send{number}", limit) for number in range(len(sender.flows))]

    def _report(self, sender: SendingPrograms, ends: Sequence[Ran]) -> Sent:
        """Return what the programs of *sender* sent, which have ended. Raises TestbedError."""
        description, port, count = self._description, sender.tx, len(ends)
        reports = [description.read(ran, port.place.text) for ran in ends]
        span = None
        if description.received:
            time.sleep(DRAIN)
            port.count("o", reports[0])
            self._count_received(sender.rx)
        else:
            span = port.watched_span()
        least, most = span.seconds if span else (0.0, 0.0)
        if "seconds" in reports[0]:
            seconds = max(float(report["seconds"]) for report in reports)
            early, late = description.wrong_by
            least, most = max(0.0, seconds - early), seconds + late
            # other frames than those of the trial are sent in it, too; several programs begin one after the other
            span = span and span.lasting(least)
            most = max(most, span.seconds[1]) if span and count > 1 else most
        if span and len(self._senders) > 1:
            span = span.here(port.clock())
        frames = sum(int(report["frames"]) for report in reports) * sender.frames
        return Sent(frames, least, most, count * description.control_frames, sender.size, span)

    # -- counts --------------------------------------------------------------------------------------------------------

    def _totals(self) -> dict[int, dict[str, int]]:
        return {index: port.counters() for index, port in self._ports.items()}

    def _count_received(self, port: Port) -> int:
        """End the receiver; return the frames that it counted. Raises TestbedError."""
        port.ask("interrupt receive0")
        ran = port.await_end("receive0", GRACE)
        return port.count("i", self._description.read(ran, port.place.text, "received"))

    def _await_first(self, before: Totals, limit: float) -> None:
        """Wait until every sending port has sent a frame, or the time for it is over. Raises TestbedError."""
        until = time.monotonic() + limit
        while time.monotonic() < until:
            now = self._totals()
            if all(grown(before, now, sender.tx.index, "opackets") for sender in self._senders):
                return
            time.sleep(0.05)

    def _drained(self, before: Totals) -> dict[int, dict[str, int]]:
        """Return the counters once all frames came back, or the time for them is over."""
        until, now = time.monotonic() + DRAIN, self._totals()
        while time.monotonic() < until and any(
            grown(before, now, sender.tx.index, "opackets") > grown(before, now, sender.rx.index, "ipackets")
            for sender in self._senders
        ):
            time.sleep(DRAIN_GAP)
            now = self._totals()
        return now

    def idle(self, seconds: float, keep: int = 0) -> Mapping[int, Heard]:
        """Send nothing, and count what comes, keeping no frame (:meth:`..base.Generator.idle`). Raises TestbedError."""
        if self._description.received:
            for port in self._ports.values():
                self._receive(port, 0, seconds, port.values)
            time.sleep(seconds + self._opening)
            return {port.index: Heard(self._count_received(port)) for port in self._ports.values()}
        before = self._totals()
        time.sleep(seconds)
        after = self._totals()
        return {index: Heard(grown(before, after, index, "ipackets")) for index in self._ports}


def outcome_of(
    load: Load,
    duration: float,
    frames: Mapping[Direction, int],
    sent: Mapping[Direction, Sent],
    before: Totals,
    ended: Totals,
    after: Totals,
    links: Mapping[int, bool],
) -> Outcome:
    """Return the outcome of a trial that asked for so many *frames*, by what was *sent* and the counters.

    They are those *before* it, when all programs had *ended*, and *after* the last frames had arrived. *links*: by
    port, whether it was up.
    """
    problems, by_direction = list[Problem](), list[DirectionCount]()
    moments = {
        name: {port: dict(of) for port, of in totals.items()} for name, totals in (("ended", ended), ("after", after))
    }
    for direction, report in sent.items():
        tx, rx = direction.tx_port, direction.rx_port
        more = grown(before, after, tx, "opackets") - report.frames
        if not 0 <= more <= report.others:
            detail = f"port {tx} sent {report.frames + more} frames by its counters, {report.frames} by its program"
            problems.append(Problem(Fault.MISCOUNTED, detail, directions=((tx, rx),)))
        # frames that control the program are sent and received beside those of the trial: their loss counts, too
        control = min(max(0, more), report.others)
        for totals in moments.values():
            totals[tx]["opackets"] -= control
            totals[rx]["ipackets"] -= min(control, grown(before, totals, rx, "ipackets"))
        row = counted(before, moments["after"], (tx, rx), frames[direction])
        if report.span is not None:
            # some are paced by a queue of the port itself; what a program counts itself is known in the end only
            paced, came = (
                grown(moments["ended"], moments["after"], *key) for key in ((tx, "opackets"), (rx, "ipackets"))
            )
            row = replace(row, backlog=max(0, came - paced))
        if report.others:
            sizes = (round(report.size * count) for count in (row.offered, row.forwarded))
            row = replace(row, **dict(zip(("offered_bytes", "forwarded_bytes"), sizes, strict=True)))
        by_direction.append(row)
    ways, spare = [(row.tx_port, row.rx_port) for row in by_direction], max(report.others for report in sent.values())
    problems += counter_problems((before, moments["after"]), ways, links, spare=spare)
    problems += [problem for row in by_direction for problem in missed_problem(before, after, row)]
    least, most = _together(sent.values())
    counters = by_moment(before=before, **moments)
    readings = {"elapsed_uncertainty": (most - least) / 2}
    elapsed = (least + most) / 2
    return Outcome(load, duration, elapsed, 0.0, tuple(by_direction), tuple(problems), readings, counters=counters)


def _together(sent: Collection[Sent]) -> tuple[float, float]:
    """Return the least and the most seconds from the first frame of any direction to the last of any.

    A router has less to do while one of them does not send.
    """
    least, most = max(report.least for report in sent), max(report.most for report in sent)
    spans = [report.span for report in sent if report.span is not None]
    if len(spans) > 1:
        least = max(least, max(span.ends for span in spans) - min(span.began for span in spans))
        most = max(most, max(span.ended for span in spans) - min(span.begins for span in spans))
    return least, most


# -- the frames of a profile, written out one by one for a program that sends them in turn


def listed_frames(streams: Sequence[Stream], mac: str, router_mac: str) -> list[bytes]:
    """Return the frames of *streams*, each with all its flows. Raises ValueError where they are too many."""
    flows = [math.lcm(*map(_count, stream.variables)) for stream in streams]
    sent, frames = [0] * len(streams), list[bytes]()
    for place in listing([stream.share for stream in streams], flows):
        frames.append(_frame(streams[place], sent[place], mac, router_mac))
        sent[place] += 1
    return frames


def _count(field: Variable) -> int:
    return (field.maximum - field.minimum) // field.step + 1


def _frame(stream: Stream, index: int, mac: str, router_mac: str) -> bytes:
    """Return frame *index* of *stream*, with its MAC addresses, without FCS."""
    frame = bytes.fromhex((router_mac + mac).replace(":", "") + stream.frame[24:])
    for field in stream.variables:
        value = field.minimum + index % _count(field) * field.step
        frame = with_number(frame, field.offset, value, field.size)
    if (head := stream.fix_ipv4) is not None:
        frame = with_number(frame, head + 10, 0)
        frame = with_number(frame, head + 10, ipv4_checksum(frame[head : head + 20]))
    return frame


def config_line(frame: bytes) -> str:
    """Return *frame* in trafgen's language; what it ends with is written as a filling."""
    rest = len(frame) - len(frame.rstrip(frame[-1:]))
    head = "".join(f"0x{octet:02x}, " for octet in frame[: len(frame) - rest])
    return f"{{ {head}fill(0x{frame[-1]:02x}, {rest}) }}"
