"""Frames that came back, compared with those that were sent: counts of bytes, captured frames, and kinds of them.

RFC 2544 section 10 and RFC 1242 count a frame as forwarded only if it is the one that was sent. Each captured frame is
compared with those that the direction sent: addresses, ports, other fields of the IP header, length and payload, a time
to live that is less by one (a bridge's is the same), a right header checksum, and the MAC address of the port that it
came to. The generator counts flows in order, so one that comes out of its turn came in the place of another.
"""

from __future__ import annotations

import ipaddress
import math
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from itertools import pairwise

from ..core.bounds import highest_share, least_mean
from ..core.doubts import name, ports
from ..core.foreign import Ports
from ..core.traffic.ip_header import IpHeaderPosition, ip_header, ipv4_checksum
from ..core.traffic.profiles import LABEL, TAG, AddressRange, Profile
from ..core.trial import EXAMINED, EXAMINED_SLOWLY, SEEN_CHANGED, DirectionCount, Fault, Outcome, Problem, Trial
from ..errors import TestbedError
from ..generators.base import Direction, GeneratorPort, Probe
from ..generators.streams import PROBE_PAYLOAD, Stream, profile_streams, sizes_sent
from ..units import FCS

SHORTEST = 64
"""Bytes with FCS of the shortest frame of Ethernet (IEEE 802.3 4.2.3.3)."""

MOST_KEPT, MOST_BYTES = 1000, 500_000
"""Frames of each direction that are looked at, and their bytes: four turns of the usual 251 flows of short frames."""


def frames_kept(profile: Profile) -> int:
    """Return the frames of each direction that are looked at."""
    return max(1, min(MOST_KEPT, round(MOST_BYTES / profile.mean_size)))


CUT, LENGTH = "cut short", "of another length"
PAYLOAD, HEADER = "with another payload", "with another IP header"
ADDRESSES, TAGS = "with other addresses or ports (address translation?)", "with other tags or labels"
COPIES, FEW_LOST = "copies of others, or frames out of their turn", 0.01
OTHER, FEW = "of other origin", 2
"""Words for frames that are wrong; how many of other origin are no matter beside those that came without traffic."""

_NEAR, _WORKERS, _IN_ORDER, _BEHIND = 8, 32, 0.65, 1.5
"""A flow does not come again within so many frames, while each of so many workers has a part of the flows. Where one
alone has them, more than this share comes next to the one before; of two workers half. A flow comes so many times as
often as its turn where its worker is behind the others as sending ends."""

_PORTS = 4
"""Bytes of the ports, after the IP header."""

_PROBE, _MAGIC = b"\xff\xff", 0xAB
"""TRex gives probe frames this identification, or end of the flow label, a bit of ECN, and a payload that begins so."""

_Flow = tuple[int, ...]
"""The variable addresses of a frame, each as its number in its range."""


class SentFrames:
    """The frames of one *stream*, compared from the IP header on: tags and labels may be the router's own.

    ``packet``: the first frame's; of other protocols all after the MAC addresses.
    """

    def __init__(self, stream: Stream) -> None:
        self.stream, self.data = stream, bytes.fromhex(stream.frame)
        self.header = ip_header(self.data)
        self.packet, _ = _packet(self.data, self.header)

    def is_kin(self, header: IpHeaderPosition | None, packet: bytes) -> bool:
        """Return whether *packet* has protocol and ports, or all after them, of these frames."""
        if self.header is None or header is None:
            return self.header is header
        at, protocol = (20, 9) if header.version == 4 else (40, 6)
        mine, end = self.packet, at + _PORTS
        is_like = packet[at:end] == mine[at:end] or packet[end:] == mine[end:]
        same = packet[protocol : protocol + 1] == mine[protocol : protocol + 1]
        return self.header.version == header.version and is_like and same

    def differs(self, packet: bytes) -> str:
        """Return in what *packet* differs from those that were sent; "": in nothing."""
        if self.header is None:
            return "" if packet == self.packet else PAYLOAD
        expected, shown, begin = bytearray(self.packet), bytearray(packet), self.header.offset
        for variable in self.stream.variables:
            at = variable.offset - begin
            beyond = int.from_bytes(packet[at : at + 4], "big") - variable.minimum
            if not 0 <= beyond <= variable.maximum - variable.minimum or beyond % variable.step:
                return ADDRESSES
            expected[at : at + 4] = shown[at : at + 4] = bytes(4)
        source, destination = self.header.addresses()
        end = destination.stop - begin + _PORTS
        if expected[source.start - begin : end] != shown[source.start - begin : end]:
            return ADDRESSES
        if len(packet) != len(self.packet):
            return LENGTH
        # a probe's last bytes are its number and its time
        is_probe = self.stream.group is not None
        last = len(shown) - PROBE_PAYLOAD if is_probe else len(shown)
        if expected[end:last] != shown[end:last] or (is_probe and shown[last] != _MAGIC):
            return PAYLOAD
        # DSCP, ECN, identification and flags; of IPv6 the traffic class and the flow label
        was, now = (
            bytes(item[1:2] + item[4:8] if self.header.version == 4 else item[:4]) for item in (expected, shown)
        )
        return "" if now == was or (is_probe and _PROBE in now) else HEADER

    def flow(self, packet: bytes) -> _Flow:
        """Return which flow *packet* is of."""
        if self.header is None:
            return ()
        places = ((item, item.offset - self.header.offset) for item in self.stream.variables)
        return tuple((int.from_bytes(packet[at : at + 4], "big") - item.minimum) // item.step for item, at in places)


def _packet(frame: bytes, header: IpHeaderPosition | None) -> tuple[bytes, int]:
    """Return the packet in *frame* without padding, as far as it came, and its length by its own header."""
    if header is None:
        return frame[12:], len(frame) - 12
    end = header.packet_end(frame)
    return frame[header.offset : end], end - header.offset


@dataclass
class Content:
    """Captured frames of *profile*, sent in *directions*, compared with what was sent."""

    profile: Profile
    directions: Sequence[Direction]
    probe: Probe | None
    generator_ports: Mapping[int, GeneratorPort]

    def __post_init__(self) -> None:
        # the frames of a flow are often the same, in one trial and in the next
        self._compare = lru_cache(4 * MOST_KEPT)(self._compared)

    @cached_property
    def _sent(self) -> Mapping[Direction, tuple[SentFrames, ...]]:
        streams = ((way, profile_streams(self.profile, way, self.probe)) for way in self.directions)
        return {way: tuple(map(SentFrames, of_way)) for way, of_way in streams}

    @property
    def is_kept_at_any_load(self) -> bool:
        """Return whether the ports receive in software, so that they keep frames at any load."""
        return all(self.generator_ports[item.rx_port].is_virtual for item in self.directions)

    def wrong(
        self, direction: Direction, frames: Iterable[bytes], lost: int = MOST_KEPT, share: float = 0.0
    ) -> Counter[str]:
        """Return how many of *frames*, received at the end of *direction*, are none that it sent, by what is wrong.

        *lost*: the most frames that are missing among them, and their *share* of those that were sent.
        """
        wrong, came = Counter[str](), defaultdict[SentFrames, list[tuple[bytes, _Flow]]](list)
        for word, place in map(partial(self._compare, direction), frames):
            wrong[word] += 1
            if place is not None:
                came[place[0]].append(place[1:])
        del wrong[""]
        lost += wrong.total()
        for sent, those in came.items():
            wrong[COPIES] += self._copies(sent.stream, [flow for _, flow in those], lost, share)
            # a router may take tags off or have its own, but of all frames
            wrong[TAGS] += len(those) - max(Counter(tags for tags, _ in those).values())
        return +wrong

    def _copies(self, stream: Stream, turns: Sequence[_Flow], lost: int, share: float) -> int:
        """Return how many frames of *stream* came in the place of another flow's, by the order of their flows.

        Where more than a few are lost, the flows that are left come so much sooner, and a slow worker's at the end.
        """
        if not stream.variables:
            return 0
        flows, first = math.floor(self.profile.flows.count * (1 - share)), stream.variables[0]
        values = (first.maximum - first.minimum) // first.step + 1
        next_ones = sum((flow[0] - before[0]) % values == 1 for before, flow in pairwise(turns))
        apart = min(_NEAR, flows // _WORKERS)
        if share <= FEW_LOST and apart and next_ones > _IN_ORDER * len(turns):
            # a frame may be late by half a turn; where some are missing, a turn is shorter
            apart = max(apart, flows // 2 - lost)
        last, repeated = dict[_Flow, int](), 0
        for place, flow in enumerate(turns):
            repeated += place - last.get(flow, -math.inf) <= apart
            last[flow] = place
        if share > FEW_LOST:
            return repeated
        # of two workers, or two cores of the generator, one may be behind
        most = math.ceil(_BEHIND * len(turns) / flows) + 1
        beyond = sum(max(0, count - most) for count in Counter(turns).values())
        return max(repeated, beyond)

    def _compared(self, direction: Direction, frame: bytes) -> tuple[str, tuple[SentFrames, bytes, _Flow] | None]:
        """Return what is wrong with *frame*, and of one that was sent which ones it is of, its tags and flow."""
        header = ip_header(frame)
        packet, length = _packet(frame, header)
        differences = set[str]()
        for sent in self._sent[direction]:
            if sent.is_kin(header, packet):
                if not (difference := sent.differs(packet)):
                    tags = frame[12 : header.offset] if header else b""
                    return self._wrong_on_the_way(direction, sent, frame, header), (sent, tags, sent.flow(packet))
                differences.add(difference)
        others = (sent for way in self.directions if way != direction for sent in self._sent[way])
        if any(sent.is_kin(header, packet) and not sent.differs(packet) for sent in others):
            return "of another direction", None
        if len(packet) < length:
            return CUT, None
        return next((word for word in (HEADER, PAYLOAD, LENGTH, ADDRESSES) if word in differences), OTHER), None

    def _wrong_on_the_way(
        self, direction: Direction, sent: SentFrames, frame: bytes, header: IpHeaderPosition | None
    ) -> str:
        """Return what is wrong with MAC addresses, length, IP checksum or time to live; "": nothing."""
        sender, receiver = (self.generator_ports[port] for port in (direction.tx_port, direction.rx_port))
        macs = {mac.lower() for mac in (receiver.mac, receiver.card_mac, sender.destination, direction.destination)}
        is_group = bool(sent.data[0] & 1)
        if not receiver.promiscuous and not is_group and frame[:6].hex(":") not in macs:
            return "with another MAC address"
        if header is None or sent.header is None:
            return ""
        if len(frame) > max(SHORTEST, len(sent.data) + header.offset - sent.header.offset + FCS):
            return "longer than they were sent"
        if header.version == 4 and ipv4_checksum(frame[header.offset :][: 4 * (frame[header.offset] & 15)]):
            return "with a wrong checksum"
        place = 8 if header.version == 4 else 7
        was, now = sent.data[sent.header.offset + place], frame[header.offset + place]
        is_bridged = frame[6:12].hex(":") == sender.mac.lower()
        # after labels the outer time to live counts (RFC 3443)
        return "" if self.profile.headers.labels or now == was - (not is_bridged) else "with a wrong time to live"


def with_content(outcome: Outcome, content: Content | None, slow: Mapping[int, tuple[Counter[str], int]]) -> Outcome:
    """Return *outcome* with the frames that came back and are none that was sent, as its bytes and frames show.

    *slow*: by receiving port, what was wrong with how many frames that were sent slowly before.
    """
    if content is None:
        return outcome
    problems, readings, rows = list(outcome.problems), dict(outcome.readings), list[DirectionCount]()
    for row in outcome.directions:
        changed, shortened = _by_bytes(row, content)
        problems += shortened
        frames = outcome.frames.get(row.rx_port, ())
        wrong, looked_at = slow.get(row.rx_port, (Counter[str](), 0))
        if looked_at:
            readings[f"{EXAMINED_SLOWLY}{row.rx_port}"] = looked_at
        if frames:
            direction = next(item for item in content.directions if item.tx_port == row.tx_port)
            lost, looked_at = max(0, row.offered - row.received), len(frames)
            wrong = content.wrong(direction, frames, lost, lost / max(1, row.offered))
            # few others are told by their number in all (:func:`..core.doubts.foreign_frames`)
            wrong[OTHER] = wrong[OTHER] if wrong[OTHER] > row.foreign + FEW else 0
            readings[f"{EXAMINED}{row.rx_port}"] = looked_at
            # which of two alike frames came late is not known, and others may be the testbed's: both may only hide
            certain = wrong.total() - wrong[COPIES] - wrong[OTHER]
            readings |= {f"{SEEN_CHANGED}{row.rx_port}": certain} if certain else {}
            changed = max(changed, min(certain, row.forwarded))
        if wrong := +wrong:
            kinds = ", ".join(f"{count} {word}" for word, count in wrong.most_common())
            detail = f"{name(row)}: of {looked_at} captured frames {kinds}"
            share = highest_share(min(wrong.total(), looked_at), looked_at)
            problems.append(Problem(Fault.CHANGED, detail, max(0.0, share * row.received - changed), ports(row)))
        rows.append(replace(row, forwarded=row.forwarded - changed, changed=changed))
    # a soak keeps thousands of trials
    return replace(outcome, directions=tuple(rows), problems=tuple(problems), readings=readings, frames={})


def _by_bytes(row: DirectionCount, content: Content) -> tuple[int, list[Problem]]:
    """Return how many frames of *row* certainly came back shorter than they were sent, and what that may hide."""
    headers = content.profile.headers
    _, largest = sizes_sent(content.profile, content.probe is not None)
    # some cards count no FCS of what they receive, and a router may take tags and labels off
    spare = FCS + TAG * len(headers.tags) + LABEL * len(headers.labels)
    lost = max(0, row.offered - row.received)
    short = row.offered_bytes - largest * lost - spare * row.received - row.forwarded_bytes
    if short <= 0 or not row.offered_bytes or not row.forwarded_bytes:
        return 0, []
    least = math.ceil(short / max(1, largest - SHORTEST))
    detail = f"{name(row)}: {row.forwarded} frames have {row.forwarded_bytes} bytes, {short} fewer than they may have"
    return least, [Problem(Fault.CHANGED, detail, min(row.forwarded, short) - least, ports(row))]


def surely_changed(trials: Sequence[Trial]) -> list[Trial]:
    """Return *trials* with the changed frames that their captured ones show together, where each was seen to have some.

    Captured frames are neighbours, and may be of a rare burst: only the ends of several trials are a sample of time.
    """
    shares = defaultdict[int, list[float]](list)
    for trial in trials:
        readings = trial.outcome.readings
        for row in trial.outcome.directions:
            if looked_at := readings.get(f"{EXAMINED}{row.rx_port}", 0):
                shares[row.rx_port].append(readings.get(f"{SEEN_CHANGED}{row.rx_port}", 0) / looked_at)
    least = {port: least_mean(of_port) for port, of_port in shares.items() if any(of_port)}

    def shown(trial: Trial) -> Trial:
        rows, problems = list[DirectionCount](), trial.problems
        for row in trial.outcome.directions:
            is_seen = f"{SEEN_CHANGED}{row.rx_port}" in trial.outcome.readings
            more = max(0, math.floor(least[row.rx_port] * row.received) - row.changed) if is_seen else 0
            rows.append(replace(row, forwarded=row.forwarded - more, changed=row.changed + more))
            # those that surely changed hide no more
            problems = tuple(
                replace(item, frames=max(0.0, item.most_frames - more))
                if item.fault is Fault.CHANGED and item.concerns(row)
                else item
                for item in problems
            )
        return replace(trial, outcome=replace(trial.outcome, directions=tuple(rows)), problems=problems)

    return [shown(trial) for trial in trials] if least else list(trials)


def changed_shares(trials: Sequence[Trial]) -> dict[Ports, tuple[float, str]]:
    """Return by direction the largest share of the received frames that may have changed, and the same in words."""
    shares: dict[Ports, tuple[float, str]] = {}
    for trial in trials:
        for row in trial.outcome.directions:
            (direction,) = ports(row)
            for problem in trial.problems:
                if problem.fault is Fault.CHANGED and problem.concerns(row) and row.received:
                    share = min(1.0, (problem.most_frames + row.changed) / row.received)
                    detail = f"{problem.detail} (in trial {trial.number})"
                    shares[direction] = max(shares.get(direction, (0.0, "")), (share, detail))
    return shares


def not_looked_at(trial: Trial, shares: Mapping[Ports, tuple[float, str]]) -> Iterator[Problem]:
    """Yield that as many frames of *trial* may have changed as in one whose frames were looked at."""
    known = {direction for item in trial.problems if item.fault is Fault.CHANGED for direction in item.directions}
    for row in trial.outcome.directions:
        (direction,) = ports(row)
        if direction in shares and direction not in known and f"{EXAMINED}{row.rx_port}" not in trial.outcome.readings:
            share, detail = shares[direction]
            detail += "; those of others were not looked at"
            yield Problem(Fault.CHANGED, detail, share * row.received, (direction,))


class SeenFrames:
    """Frames that came through; *networks*: those behind the router, to which it has a route if it forwards any."""

    def __init__(self, networks: Iterable[str]) -> None:
        self._networks = tuple(ipaddress.ip_network(network) for network in networks)
        self._longest: dict[Hashable, int] = {}

    def knows(self, profile: Profile, directions: Iterable[Direction]) -> bool:
        """Return whether all frames of *profile* are known to come through in *directions*."""
        size = longest_size(profile)
        return all(self._longest.get(self._kind(profile, direction), 0) >= size for direction in directions)

    def note(self, profile: Profile, directions: Iterable[Direction]) -> None:
        """Frames of *profile* came through in *directions*."""
        for direction in directions:
            kind = self._kind(profile, direction)
            self._longest[kind] = max(longest_size(profile), self._longest.get(kind, 0))

    def forget(self) -> None:
        """Forget all, because the router may be set up otherwise now."""
        self._longest.clear()

    def likely_cause(self, profile: Profile, directions: Sequence[Direction]) -> str:
        """Return what to look at on a router that forwards no frame of *profile* in one of *directions*."""
        size, flows = longest_size(profile), profile.flows
        if any(self._kind(profile, direction) in self._longest for direction in directions):
            check = "shorter ones came through: check MTU and routes"
        else:
            check = "check its routes, neighbours, filters and MTU"
        return (
            f"{check} for frames with {profile.headers}, of {size} bytes with FCS (packets of"
            f" {size - FCS - profile.headers.ip} bytes), between {flows.source.first} and {flows.destination.first}"
        )

    def _kind(self, profile: Profile, direction: Direction) -> Hashable:
        if profile.has_own_addresses:
            return profile, direction
        flows = profile.flows
        networks = (self._network(flows.source), self._network(flows.destination))
        return profile.headers, networks, flows.source_port, flows.destination_port, direction

    def _network(self, addresses: AddressRange) -> Hashable:
        """Return the testbed's network that *addresses* are in; else the first and the last of them."""
        ends = ipaddress.IPv4Address(addresses.first), ipaddress.IPv4Address(addresses.last)
        return next((network for network in self._networks if all(end in network for end in ends)), ends)


def longest_size(profile: Profile) -> int:
    """Bytes with FCS of the longest frames of *profile*."""
    return max(frame.size for frame in profile.frames)


def longest_frames(profile: Profile) -> Profile:
    """Return *profile* with its longest frames only; itself if it has only one kind of them."""
    if len(profile.frames) == 1:
        return profile
    frame = max(profile.frames, key=lambda item: item.size)
    return replace(profile, name=f"{profile.name} ({frame.size} bytes)", frames=(frame,))


_SOURCE_MAC, _ADDRESSES = slice(6, 12), slice(26, 34)

BYPASS_REMEDY = "connect the generator's two ports to each other, without the router, and run this again"


def check_router_bypassed(
    frames: Mapping[int, Sequence[bytes]],
    profile: Profile,
    directions: Sequence[Direction],
    ports: Sequence[GeneratorPort],
) -> None:
    """Raise TestbedError unless *frames* (by receiving port, without FCS) of *profile*, one flow, came back as sent.

    Of untagged IPv4: whatever routes a frame sends it from a MAC address of its own.
    """
    macs = {port.index: port.mac.lower() for port in ports}
    for direction in directions:
        sent = bytes.fromhex(profile_streams(profile, direction)[0].frame)
        received = (item for item in frames.get(direction.rx_port, ()) if item[_ADDRESSES] == sent[_ADDRESSES])
        senders = {frame[_SOURCE_MAC].hex(":") for frame in received}
        way = f"from the generator's port {direction.tx_port} to its port {direction.rx_port}"
        if not senders:
            raise TestbedError(f"no frame came {way}; {BYPASS_REMEDY}")
        if others := sorted(senders - {macs[direction.tx_port]}):
            raise TestbedError(
                f"a router is still between the generator's ports: frames {way} came from {' and '.join(others)},"
                f" sent by {macs[direction.tx_port]}; {BYPASS_REMEDY}"
            )
