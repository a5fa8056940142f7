"""Keywords that drive the traffic generator."""

from __future__ import annotations

import getpass
from collections.abc import Mapping

from robot.api import logger
from robot.api.deco import keyword, library

from ForwardedFrames import frames_of
from linerate.errors import BenchError
from linerate.generators.base import Generator
from linerate.generators.trex.driver import TrexGenerator, TrexSettings
from linerate.generators.trex.fetch import fetcher
from linerate.requirement import Requirement
from linerate.session import Session
from linerate.testbed.bench import Bench
from linerate.trial import Load

STRAY = 32
"""Frames of the router's own (neighbour discovery and the like) that a capture has room for beside the profile's."""


@library(scope="GLOBAL", version="0.1")
class TrafficGenerator:
    """Drives Cisco TRex (stateless) through its Python client, which runs in a process of its own."""

    @keyword
    def connect_generator(self, bench: Session) -> None:
        """Connect to the TRex server of *bench* and take its ports.

        Fails with one sentence where no server answers, the server wants another client, another user holds a port, a
        link is down, or a port's speed is not the platform's.
        """
        bench.connect_generator(_trex)
        for port in bench.generator.ports if bench.generator else ():
            logger.info(f"port {port.index}: {port.mac}, {port.speed_bps / 1e9:g} Gbit/s, {port.driver}")

    @keyword
    def put_traffic_on_ports(self, bench: Session, requirement: Requirement) -> None:
        """Put the streams of the sentence on the generator's ports.

        A generator that was lost in an earlier sentence is connected again first, once; log and evidence say so.
        """
        bench.put_traffic_of(requirement)
        if bench.recovery.note:
            logger.warn(bench.recovery.note)
        profile = requirement.profile
        flows = f"{profile.flows.count} flows" if profile.flows.known else "an unknown number of flows"
        logger.info(f"{profile.name}: mean frame {profile.mean_size:g} bytes with FCS, {flows}")

    @keyword
    def check_reachability(self, bench: Session) -> None:
        """Send slow traffic each way for a second; some of it must come back, whatever the router's speed.

        Fails with one sentence where a way carries nothing (cables, addresses, routes, neighbours): that is the bench's
        fault and must never read as loss.
        """
        bench.check_reachability()

    @keyword
    def capture_forwarded_frames(
        self, bench: Session, traffic: str, pps: float, limit: int = 8, bidirectional: bool = False
    ) -> Mapping[int, tuple[bytes, ...]]:
        """Send *traffic* (``64b``, ``imix``, …) at *pps* frames/s for a second and return frames that came back.

        Returns a mapping of generator port to frames (bytes without FCS), at most *limit* each: IPv4 frames with the
        addresses of *traffic* only, not what the router says of its own accord. Fails where a port that should receive
        saw none of them.
        """
        profile = bench.plan.catalogue.profile(traffic.split())
        seen = bench.capture(profile, bidirectional, Load(pps), limit + STRAY)
        expected = {way.rx_port for way in bench.ways(bidirectional)}
        frames = {port: frames_of(profile, seen.get(port, ()))[:limit] for port in sorted(expected)}
        missing = [str(port) for port, found in frames.items() if not found]
        if missing:
            raise BenchError(
                f"no frame of {traffic} came back at the generator's port {' and '.join(missing)}, of {pps:g} frames/s"
                f" sent; is the router configured for it?"
            )
        return frames

    @keyword
    def release_generator(self, bench: Session | None) -> None:
        """Stop traffic and release the ports. Harmless when repeated."""
        if bench is not None:
            bench.release_generator()


def _trex(bench: Bench) -> Generator:
    access = bench.facts.generator
    return TrexGenerator(
        TrexSettings(
            server=access.host,
            sync_port=access.sync_port,
            async_port=access.async_port,
            ports=access.ports,
            force=access.force,
            username=getpass.getuser(),
            client=access.client,
            clock_speed=bench.facts.clock_speed,
        ),
        fetch=fetcher(access.login, access.home) if access.login else None,
    )
