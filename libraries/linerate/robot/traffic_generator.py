"""Keywords that drive the traffic generator."""

from __future__ import annotations

from collections.abc import Mapping

from robot.api import logger
from robot.api.deco import keyword, library

from ..counts.trial import Load
from ..errors import TestbedError
from ..session.session import Session
from ..sla.requirement import Requirement
from .forwarded_frames import frames_of

OTHER_FRAMES = 32
"""Room in a capture for frames of the router's own (neighbour discovery and the like) beside the profile's."""


@library(scope="GLOBAL", version="0.1")
class TrafficGenerator:
    """Drives Cisco TRex (stateless) through its Python client, which runs in a process of its own."""

    @keyword
    def connect_generator(self, session: Session) -> None:
        """Connect to the TRex server of *session* and claim its ports.

        Fails with one sentence if no server answers, the server needs another client, another user holds a port, a
        link is down, or a port's speed is not the platform's.
        """
        session.generator.connect()
        for port in session.generator.ports:
            logger.info(f"port {port.index}: {port.mac}, {port.speed_bps / 1e9:g} Gbit/s, {port.driver}")

    @keyword
    def put_traffic_on_ports(self, session: Session, requirement: Requirement) -> None:
        """Put the streams of the sentence on the generator's ports.

        A generator that was lost in an earlier sentence is connected again first, once; log and evidence say so.
        """
        session.traffic.put_for(requirement)
        if session.traffic.reconnection.note:
            logger.warn(session.traffic.reconnection.note)
        profile = requirement.profile
        flows = f"{profile.flows.count} flows" if profile.flows.known else "an unknown number of flows"
        logger.info(f"{profile.name}: mean frame {profile.mean_size:g} bytes with FCS, {flows}")

    @keyword
    def check_reachability(self, session: Session) -> None:
        """Send slow traffic in each direction for a second; some of it must come back, whatever the router's speed.

        Fails with one sentence if a direction carries nothing (cables, addresses, routes, neighbours): that is the
        testbed's fault and must not count as loss.
        """
        session.traffic.check_reachability()

    @keyword
    def capture_forwarded_frames(
        self, session: Session, traffic: str, pps: float, limit: int = 8, bidirectional: bool = False
    ) -> Mapping[int, tuple[bytes, ...]]:
        """Send *traffic* (``64b``, ``imix``, …) at *pps* frames/s for a second and return frames that came back.

        Returns a mapping of generator port to frames (bytes without FCS), at most *limit* each: IPv4 frames with the
        addresses of *traffic*, no frames of the router's own. Fails if a port that should receive got none of them.
        """
        profile = session.plan.catalogue.profile(traffic.split())
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

    @keyword
    def release_generator(self, session: Session | None) -> None:
        """Stop traffic and release the ports. Harmless when repeated."""
        if session is not None:
            session.release_generator()
