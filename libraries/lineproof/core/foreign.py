"""Frames that no trial sent (spanning tree, ARP, LLDP), those of an earlier trial, and those received twice.

How many come is measured while nothing is sent, and whose; copies show beside the router's counts."""

from __future__ import annotations

import ipaddress
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from .counter_names import group_frames
from .doubts import FEW_FOREIGN
from .telemetry import Telemetry, risen
from .traffic.ip_header import ip_header
from .trial import DRAIN, LATE, DirectionCount, Fault, Outcome, Problem, Trial

HELLO_SECONDS = 2.0
"""The time between two of spanning tree's hellos (IEEE 802.1D): frames of as long may come at once."""

Ports = tuple[int, int]
"""Sending and receiving port of a direction."""

IDLE_SECONDS = 2 * HELLO_SECONDS
"""How long nothing is sent, in s of the testbed's clock."""

RECEIVED_AROUND = "received_around."
"""Readings of a trial: frames that a port received while its card's own counters grew, which are read outside."""

LARGEST_GROUP_SHARE = 0.5
"""Where more of the received frames than this share go to a group, they are those that were sent (multicast)."""


SLACK_RATIO = 0.0005
"""Ratio by which a router's counters may differ, because they are read one after the other."""

SLACK_FRAMES = 100
"""Frames that the router may send by itself, or count late."""


def most_counted(offered: int) -> int:
    """Return the most that a counter can rise by while *offered* frames are sent, and as many beside the trials."""
    return 2 * offered + SLACK_FRAMES


SETTLE_SECONDS = 2.5
"""Seconds in which drivers that update their counters periodically (Linux: every 2 s) have done so."""


@dataclass(frozen=True, slots=True)
class Heard:
    """``frames`` that a port received in a time in which the generator sent nothing; ``kept``: some, without FCS.

    ``group_frames``: those to a group of receivers, as its card counts them. ``total``: the port's counter in the end.
    """

    frames: int
    kept: tuple[bytes, ...] = ()
    group_frames: int = 0
    total: int | None = None

    def since(self, last: int | None) -> int:
        """Return how many frames came since the port's counter was *last*, if both are known."""
        return self.frames if last is None or self.total is None else self.total - last


@dataclass(frozen=True, slots=True)
class ForeignFrames:
    """Frames ``received`` by port in ``seconds`` in which the generator sent nothing.

    ``overcounting``: ports whose card counts frames to a group also where it then drops them: its count is of no use.
    """

    received: Mapping[int, int] = field(default_factory=dict)
    seconds: float = IDLE_SECONDS
    overcounting: frozenset[int] = frozenset()

    @classmethod
    def of(cls, heard: Mapping[int, Heard]) -> ForeignFrames:
        """From what came in IDLE_SECONDS."""
        # the card's counters are read a little earlier and later than the others
        over = frozenset(port for port, one in heard.items() if one.group_frames > one.frames + 1)
        return cls({port: one.frames for port, one in heard.items()}, overcounting=over)

    def budget(self, port: int, seconds: float) -> int:
        """Return the most such frames that are expected at *port* in so many *seconds*; 0 where none came.

        Of a period *p* at least ``floor(T / p)`` frames come in *T* s and at most ``floor(T / p) + 1``, whenever it
        begins; so *n* frames in *T* s are the least of any period above ``T / (n + 1)``.
        """
        received = self.received.get(port, 0)
        return math.floor((received + 1) / self.seconds * seconds) + 1 if received else 0

    def most(self, row: DirectionCount, seconds: float) -> float:
        """Return the most such frames that are no doubt at the receiving port of *row* in so many *seconds*.

        Those of a hello come at once; where few frames are offered, only as many as readings may differ by.
        """
        at_once = min(FEW_FOREIGN * HELLO_SECONDS, SLACK_RATIO * row.offered)
        return max(self.budget(row.rx_port, seconds + HELLO_SECONDS), FEW_FOREIGN * seconds + at_once)

    def heard_again(self, heard: Mapping[int, Heard]) -> ForeignFrames:
        """Return these with what came in another IDLE_SECONDS, the more of both."""
        again = ForeignFrames.of(heard)
        received = {port: max(count, self.received.get(port, 0)) for port, count in again.received.items()}
        return replace(again, received=received, overcounting=self.overcounting | again.overcounting)

    def with_budgets(self, outcome: Outcome) -> Outcome:
        """Return *outcome* with the budget of each direction, for the s in which its frames were counted.

        Where the card of a port counted frames to a group meanwhile, these are foreign ones in any case.
        """
        readings = outcome.readings
        seconds = max(outcome.duration, outcome.elapsed + readings.get("elapsed_uncertainty", 0.0))
        seconds += readings.get("drain", 0.0)
        rows = tuple(
            replace(
                row,
                foreign=min(row.forwarded, max(self._group_frames(row, readings), self.budget(row.rx_port, seconds))),
            )
            for row in outcome.directions
        )
        return replace(outcome, directions=rows)

    def _group_frames(self, row: DirectionCount, readings: Mapping[str, float]) -> int:
        """Return those of a trial at the receiving port of *row*; 0 where they are not known, or are what was sent."""
        if row.rx_port in self.overcounting:
            return 0
        start = f"card.{row.rx_port}."
        frames_of_groups = group_frames(
            {name.removeprefix(start): n for name, n in readings.items() if name.startswith(start)}
        )
        return frames_of_groups if frames_of_groups < LARGEST_GROUP_SHARE * row.forwarded else 0

    def __str__(self) -> str:
        received = {port: count for port, count in self.received.items() if count}
        if not received:
            return f"no frame came in {self.seconds:g} s without traffic"
        rows = ", ".join(f"{count} at port {port}" for port, count in received.items())
        return f"frames of other origin came in {self.seconds:g} s without traffic: {rows}"


LATEST = 10.0
"""Seconds after the last frame was sent until which late ones are looked for: TRex's latencies end there."""


@dataclass
class LateFrames:
    """Frames that come later than DRAIN: lost ones of their trial, and none of the next one's.

    ``come``: whether some do; None: nobody has looked yet. ``missing``: by receiving port, those that may still come.
    """

    come: bool | None = None
    missing: Counter[int] = field(default_factory=Counter)
    _last: Outcome | None = None

    def taken_off(self, outcome: Outcome, foreign: ForeignFrames, clock_speed: float) -> Outcome:
        """Return *outcome* of the next trial, in which frames of earlier ones that may have come are foreign.

        Some do come late, where some came between the last counters of a trial and the first ones of the next.
        """
        last, self._last = self._last, outcome
        if last is not None:
            spent = last.elapsed + last.readings.get("drain", 0.0)
            seconds = max(0.0, clock_speed * (outcome.started - last.started) - spent)
            for row in outcome.directions:
                if (came := _came_between(last, outcome, row)) > foreign.most(row, seconds):
                    self.come, self.missing[row.rx_port] = True, max(0, self.missing[row.rx_port] - came)
        rows = outcome.directions
        if self.come:
            rows = tuple(
                replace(row, foreign=min(row.forwarded, row.foreign + self.missing[row.rx_port])) for row in rows
            )
        self.missing.update({row.rx_port: row.lost for row in rows})
        return replace(outcome, directions=rows)

    def may_follow(self, outcome: Outcome) -> bool:
        """Return whether to look for frames that come after *outcome*: once, and wherever frames are known to.

        Late probe frames are none of the next trial's: as few lost ones as of all frames show that none were late.
        """
        if self.come is not None:
            return self.come and any(self.missing.values())
        lost = {(count.tx_port, count.rx_port): count.lost for count in outcome.latency}
        # without probe frames any lost one may come
        rows = ((row.lost, lost.get((row.tx_port, row.rx_port), 2 * row.lost)) for row in outcome.directions)
        return any(probes > frames for frames, probes in rows)

    def among(self, outcome: Outcome, heard: Mapping[int, Heard], foreign: ForeignFrames) -> dict[Ports, int]:
        """Return the late frames among those *heard* until LATEST, by direction, where more came than *foreign* ones.

        Later ones are not looked for.
        """
        late = dict[Ports, int]()
        for row in outcome.directions:
            last = outcome.counters.get("after", {}).get(f"{row.rx_port}.ipackets")
            came = min(heard[row.rx_port].since(last), self.missing[row.rx_port])
            if came > foreign.most(row, LATEST - DRAIN):
                late[row.tx_port, row.rx_port] = came
        return late

    def looked_for(self, outcome: Outcome, heard: Mapping[int, Heard], foreign: ForeignFrames) -> Outcome:
        """Return *outcome* with the late frames among those *heard*."""
        problems, readings, late = list(outcome.problems), dict(outcome.readings), self.among(outcome, heard, foreign)
        for ports, frames in late.items():
            readings[f"{LATE}{ports[1]}"] = float(frames)
            detail = f"{frames:,} came to port {ports[1]} more than {DRAIN:g} s after the last one was sent"
            problems.append(Problem(Fault.LATE, detail, 0, (ports,)))
        self.come = bool(late)
        self.missing.clear()
        self._last = None
        return replace(outcome, problems=tuple(problems), readings=readings)


def _came_between(last: Outcome, outcome: Outcome, row: DirectionCount) -> int:
    """Return how many frames came after the *last* trial and before *outcome*; 0 where some were sent, too."""
    ended, begun = last.counters.get("after", {}), outcome.counters.get("before", {})
    sent, came = f"{row.tx_port}.opackets", f"{row.rx_port}.ipackets"
    return begun[came] - ended[came] if sent in begun and begun[sent] == ended.get(sent) else 0


_MULTICAST = {
    "01:80:c2:00:00:00": "spanning tree",  # IEEE 802.1D, 7.12.3
    "01:80:c2:00:00:02": "slow protocol (LACP, OAM)",  # IEEE 802.3, annex 57A
    "01:80:c2:00:00:03": "802.1X",
    "01:00:0c:cc:cc:cc": "Cisco's CDP, VTP or UDLD",
    "01:00:0c:cc:cc:cd": "Cisco's spanning tree",
}
_TYPES = {0x0806: "ARP", 0x88CC: "LLDP", 0x8808: "pause frame", 0x9000: "loop test", 0x88F7: "PTP", 0x888E: "802.1X"}
_UDP = {67: "DHCP", 68: "DHCP", 546: "DHCPv6", 547: "DHCPv6", 1900: "SSDP", 5353: "mDNS", 5355: "LLMNR", 137: "NetBIOS"}
_IP = {1: "ICMP", 2: "IGMP", 58: "ICMPv6", 89: "OSPF", 103: "PIM", 112: "VRRP"}
_ICMPV6 = {133: "router solicitation", 134: "router advertisement", 135: "neighbour solicitation"}
_TAGS = (0x8100, 0x88A8)


def origin(frame: bytes) -> str:
    """Return ``ARP from 02:00:00:00:00:01``: the protocol of *frame*, without its FCS, and who sent it."""
    if len(frame) < 14:
        return "a damaged frame"
    target, sender = (":".join(f"{octet:02x}" for octet in frame[at : at + 6]) for at in (0, 6))
    at = 12
    while (kind := int.from_bytes(frame[at : at + 2], "big")) in _TAGS:
        at += 4
    kind_of_frame = _MULTICAST.get(target) or _TYPES.get(kind) or _of_ip(frame)
    return f"{kind_of_frame or f'type 0x{kind:04x}'} from {sender}"


def _of_ip(frame: bytes) -> str:
    """Protocol and sender of the IP packet in *frame*; "": there is none."""
    if (header := ip_header(frame)) is None:
        return ""
    protocol, at = header.payload(frame)
    if header.version == 6 and protocol == 0 and len(frame) > at + 8:  # hop-by-hop options, as of MLD
        protocol, at = frame[at], at + 8
    inner = frame[at:]
    name = _IP.get(protocol, f"IP protocol {protocol}")
    if protocol == 17 and len(inner) >= 4:
        ports = (int.from_bytes(inner[2:4], "big"), int.from_bytes(inner[:2], "big"))
        name = next((_UDP[port] for port in ports if port in _UDP), f"UDP to port {ports[0]}")
    if protocol == 58 and inner:
        name = f"{name} ({_ICMPV6[inner[0]]})" if inner[0] in _ICMPV6 else name
    return f"{name} of {ipaddress.ip_address(frame[header.addresses()[0]])}"


def origins(frames: Sequence[bytes], seconds: float) -> str:
    """Return ``ARP from 02:…, every 1 s; …``: the *frames* that came in *seconds*, the most frequent first."""
    senders = Counter(map(origin, frames)).most_common()
    return "; ".join(f"{name}, {_often(count, seconds)}" for name, count in senders)


def _often(count: int, seconds: float) -> str:
    if count == 1:
        return f"once in {seconds:g} s"
    return f"every {seconds / count:.2g} s" if count <= seconds else f"{count / seconds:.3g} a second"


def copied_frames(
    trials: Iterable[Trial], before: Telemetry, after: Telemetry, interfaces: Mapping[int, str]
) -> dict[int, tuple[int | None, str]]:
    """Return by receiving port how many frames more came than the router sent to it, and that in words.

    Those that came beyond the frames offered in a trial are in nobody's place, and are left out.
    *interfaces*: the router's, by the generator's port. One that counted less than half does not count forwarded frames
    (hardware offload) and proves nothing. None, where frames were lost: its counter was reset, so nobody knows.
    """
    received, beyond, offered = Counter[int](), Counter[int](), Counter[int]()
    for trial in trials:
        for direction in trial.outcome.directions:
            received[direction.rx_port] += direction.received
            beyond[direction.rx_port] += direction.surplus
            offered[direction.rx_port] += direction.offered
    copied = dict[int, tuple[int | None, str]]()
    for port, count in received.items():
        name = interfaces.get(port, "")
        if name not in before.interfaces or name not in after.interfaces:
            continue
        old, new = before.interfaces[name].tx_packets, after.interfaces[name].tx_packets
        sent = risen(old, new, most_counted(offered.total()))
        if sent is None:
            if count < offered[port]:
                copied[port] = None, f"the router's counters were reset, so what {name} sent is not known"
            continue
        copies = count - sent - beyond[port]
        if sent >= count / 2 and copies > count * SLACK_RATIO + SLACK_FRAMES:
            copied[port] = (
                copies,
                f"port {port} received {count:,} frames, the router counted only {sent:,} that {name} sent: frames come"
                " twice on the way, others send some (spanning tree, LLDP: 'lineproof doctor --listen 60' shows them),"
                " or the router's counters were reset",
            )
    return copied
