"""Keywords that drive the traffic generator, and that look at frames which came through the router."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping

from robot.api import logger
from robot.api.deco import keyword

from ..core.traffic.profiles import AddressRange, Profile
from ..core.trial import Load
from ..errors import Inconclusive, SentenceError, SlaFailure, TestbedError
from ..evidence.document import as_html
from ..evidence.forms import host_document
from ..generators.abilities import Method
from .shared import Component

OTHER_FRAMES = 32
"""Room in a capture for frames of the router's own (neighbour discovery and the like) beside the profile's."""


class GeneratorKeywords(Component):
    """Drives Cisco TRex (stateless) through its Python client, which runs in a process of its own."""

    @keyword(tags=["testbed"])
    def connect_generator(self) -> None:
        """Connect to the TRex server and claim its ports.

        Fails with one sentence if no server answers, the server needs another client, another user holds a port, a
        link is down, or a port's speed is not the platform's. Example:
        | Connect Generator
        """
        generator = self.shared.session.generator
        try:
            generator.connect()
        finally:
            self.shared.note_simulation()
        if (host := self.shared.session.testbed.host) is not None:
            if host.problem:
                logger.info(f"the generator's host is not read: {host.problem}")
            else:
                logger.info(as_html(host_document(host.facts)), html=True)
        for port in generator.ports:
            logger.info(f"port {port.index}: {port.mac}, {port.speed_text}, {port.driver}")

    @keyword(tags=["testbed"])
    def check_reachability(self) -> None:
        """Send slow traffic in each direction for a second; some of it must come back, whatever the router's speed.

        Then nothing is sent for four seconds: frames that come all the same (spanning tree, ARP, LLDP) are expected in
        trials too, and no surplus.

        Fails with one sentence if a direction carries nothing (cables, addresses, routes, neighbours): that is the
        testbed's fault and must not count as loss. Example:
        | Check Reachability
        """
        traffic = self.shared.session.traffic
        traffic.check_reachability()
        logger.info(str(traffic.foreign))

    @keyword(tags=["frames"])
    def capture_forwarded_frames(
        self, traffic: str, pps: float, limit: int = 8, bidirectional: bool = False
    ) -> Mapping[int, tuple[bytes, ...]]:
        """Send *traffic* (words of a sentence) at *pps* frames/s for a second and return frames that came back.

        Returns a mapping of generator port to frames (bytes without FCS), at most *limit* each: IPv4 frames with the
        addresses of *traffic*, no frames of the router's own. Fails if a port that should receive got none;
        ``INCONCLUSIVE:`` if the testbed's generator keeps no frames. Example:
        | ${frames} =    Capture Forwarded Frames    64b    1000    bidirectional=True
        """
        session = self.shared.session
        profile = session.plan.catalogue.profile(traffic.split())
        try:
            session.plan.check_method(Method.CAPTURE, profile.name)
        except SentenceError as error:
            # nothing is known of the router: as of a sentence that the testbed could not prove
            raise Inconclusive(f"INCONCLUSIVE: {error}") from None
        captured = session.traffic.capture(profile, bidirectional, Load(pps), limit + OTHER_FRAMES)
        expected = {direction.rx_port for direction in session.traffic.directions(bidirectional)}
        frames = {port: frames_of(profile, captured.get(port, ()))[:limit] for port in sorted(expected)}
        missing = [str(port) for port, found in frames.items() if not found]
        if missing:
            raise TestbedError(
                f"no frame of {traffic} came back at the generator's port {' and '.join(missing)}, of {pps:g} frames/s"
                f" sent; is the router configured for it?"
            )
        return frames

    @keyword(tags=["testbed"])
    def release_generator(self) -> None:
        """Stop traffic and release the ports. Harmless when repeated, or without a testbed. Example:
        | Release Generator
        """
        if session := self.shared.own_session:
            session.release_generator()


ETHERNET = 14
IPV4 = bytes.fromhex("0800")
IPV4_HEADER = 20
IPV4_ADDRESSES = ETHERNET + 12
IPV4_TTL = ETHERNET + 8


class FrameKeywords(Component):
    """What a router must change in each frame it forwards (RFC 1812 5.3.1 and 4.2.2.5; new link-layer addresses).

    The keywords judge what `Capture Forwarded Frames` returns. A wrong frame fails with ``FAIL:``; a port without any
    frame is a problem of the testbed and fails without that word.
    """

    @keyword(tags=["frames"])
    def time_to_live_should_be(self, frames: Mapping[int, tuple[bytes, ...]], expected: int) -> None:
        """Each frame's IPv4 time to live is *expected*, and its header checksum is right.

        Fails with ``FAIL:`` if one is not. Example:
        | Time To Live Should Be    ${frames}    63
        """
        for port, frame in _each(frames):
            if frame[IPV4_TTL] != expected:
                raise SlaFailure(f"FAIL: port {port}: time to live {frame[IPV4_TTL]}, expected {expected}")
            if _sum16(frame[ETHERNET : ETHERNET + IPV4_HEADER]) != 0xFFFF:
                raise SlaFailure(f"FAIL: port {port}: the IPv4 header checksum is wrong: {frame[:34].hex(' ')}")

    @keyword(tags=["frames"])
    def link_addresses_should_be_rewritten(self, frames: Mapping[int, tuple[bytes, ...]], *router: str) -> None:
        """Each frame is addressed to the generator's port that received it, by one of the *router*'s own addresses.

        Fails with ``FAIL:`` if one is not. Example:
        | Link Addresses Should Be Rewritten    ${frames}    02:00:00:00:01:01    02:00:00:00:02:01
        """
        ports = {port.index: port for port in self.shared.session.generator.ports}
        senders = {mac.strip().lower() for mac in router}
        for port, frame in _each(frames):
            to, sender = _mac(frame[0:6]), _mac(frame[6:12])
            if to != ports[port].mac.lower():
                raise SlaFailure(f"FAIL: port {port}: sent to {to}, expected {ports[port].mac}")
            if sender not in senders:
                known = ", ".join(sorted(senders))
                raise SlaFailure(f"FAIL: port {port}: sent by {sender}, expected one of the router's: {known}")


def frames_of(profile: Profile, frames: Iterable[bytes]) -> tuple[bytes, ...]:
    """Return those of *frames* that are *profile*'s: IPv4 with its addresses, of either direction.

    Neighbour discovery, routing protocols and other frames of the router's own are left out.
    """
    ranges = [_numbers(profile.flows.source), _numbers(profile.flows.destination)]
    found = []
    for frame in frames:
        if len(frame) < ETHERNET + IPV4_HEADER or frame[12:14] != IPV4:
            continue
        source, destination = struct.unpack_from("!II", frame, IPV4_ADDRESSES)
        if (source in ranges[0] and destination in ranges[1]) or (source in ranges[1] and destination in ranges[0]):
            found.append(frame)
    return tuple(found)


def _numbers(addresses: AddressRange) -> range:
    return range(addresses.at(0), addresses.at(addresses.count - 1) + 1, addresses.step)


def _each(frames: Mapping[int, tuple[bytes, ...]]) -> list[tuple[int, bytes]]:
    """Every frame with its port. Raises TestbedError if a port has none."""
    if not frames:
        raise TestbedError("no frame was captured; take what 'Capture Forwarded Frames' returns")
    for port, captured in frames.items():
        if not captured:
            raise TestbedError(f"no frame was captured at the generator's port {port}; there is nothing to judge")
    return [(port, frame) for port, captured in frames.items() for frame in captured]


def _mac(data: bytes) -> str:
    return data.hex(":")


def _sum16(data: bytes) -> int:
    total: int = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total
