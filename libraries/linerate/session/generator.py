"""The generator's end of a session: its ports taken and checked, what is known of their limits, and their release."""

from __future__ import annotations

import getpass
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ..ceilings.cards import choose
from ..ceilings.headroom import Ceilings, Headroom
from ..ceilings.published_limits import PublishedLimits
from ..errors import TestbedError
from ..generators.base import Generator, GeneratorPort
from ..generators.trex.client_fetch import fetcher
from ..generators.trex.driver import TrexGenerator, TrexSettings
from ..testbed.opening import OpenTestbed
from .plan import Plan

LINK_LIMIT, LINK_LOOK = 15.0, 0.1
"""Seconds that links may take to come up once the router's interfaces are (IEEE 802.3 28: some seconds of negotiation),
and between two looks at them."""


def trex(testbed: OpenTestbed) -> Generator:
    """The TRex server of *testbed*, with its ports taken. Raises TestbedError in one sentence."""
    access = testbed.facts.generator
    return TrexGenerator(
        TrexSettings(
            server=access.host,
            sync_port=access.sync_port,
            async_port=access.async_port,
            ports=access.ports,
            force=access.force,
            username=getpass.getuser(),
            client=access.client,
            clock_speed=testbed.facts.clock_speed,
        ),
        fetch=fetcher(access.login, access.home) if access.login else None,
    )


@dataclass
class GeneratorConnection:
    """The generator of *testbed*. *bypassed*: its ports are connected to each other, without a router."""

    plan: Plan
    testbed: OpenTestbed
    bypassed: bool = False
    known_limits: PublishedLimits | None = None
    """What is published of the generator's card; None before it is connected."""

    _driver: Generator | None = field(default=None, repr=False)

    def connect(self, connect: Callable[[OpenTestbed], Generator] = trex) -> None:
        """Take the generator's ports, and check that they are what the platform says. Raises TestbedError.

        A router that is yet to be configured may have its interfaces down, and with them the generator's links: these
        are looked at once it is.
        """
        self._driver = connect(self.testbed)
        self._check_ports(linked=self.bypassed or self.plan.testbed.prepare == "none")

    def reconnect(self) -> None:
        """A new connection in place of one that failed, with no streams yet. Raises TestbedError."""
        self.driver.reconnect()
        self._check_ports()

    def release(self) -> None:
        """Stop traffic and release the ports. Harmless when repeated."""
        driver, self._driver = self._driver, None
        if driver is not None:
            driver.close()

    @property
    def connected(self) -> bool:
        """Whether its ports are taken."""
        return self._driver is not None

    @property
    def driver(self) -> Generator:
        """The generator. Raises TestbedError where none is connected."""
        if self._driver is None:
            raise TestbedError("no generator is connected; call 'Connect Generator' first")
        return self._driver

    @property
    def ports(self) -> tuple[GeneratorPort, ...]:
        """The ports taken; none before :meth:`connect`."""
        return self._driver.ports if self._driver else ()

    @property
    def versions(self) -> Mapping[str, str]:
        """What server and client say of themselves; nothing before :meth:`connect`."""
        return self._driver.versions if self._driver else {}

    def await_links(self) -> None:
        """Wait until every port has its link, LINK_LIMIT s at most. Raises TestbedError."""
        limit = time.monotonic() + LINK_LIMIT
        while not all(port.link_up for port in self.driver.ports) and time.monotonic() < limit:
            time.sleep(LINK_LOOK)
        self._check_ports()

    @property
    def headroom(self) -> Headroom | None:
        """What the generator is known to carry by itself; None where nobody has calibrated it."""
        plan = self.plan
        if plan.calibration is None:
            return None
        link_bps, server = self.testbed.facts.link_bps, self.versions.get("server")
        return Headroom.of(plan.calibration, plan.catalogue, plan.testbed.kind, link_bps, server)

    @property
    def ceilings(self) -> tuple[Ceilings, ...]:
        """Who knows of the generator's own ceilings, what was measured before what is published."""
        return tuple(source for source in (self.headroom, self.known_limits) if source is not None)

    def _check_ports(self, linked: bool = True) -> None:
        ports, link_bps = self.driver.ports, self.testbed.facts.link_bps
        choice = choose(self.plan.cards, ports, self.plan.card)
        self.known_limits = PublishedLimits.of(choice, ports, link_bps, self.versions.get("server"))
        for port in ports:
            if not port.link_up and not linked:
                continue
            if not port.link_up:
                raise TestbedError(
                    f"the generator's port {port.index} has no link; check the cable and the router's port"
                )
            if port.speed_bps and abs(port.speed_bps - link_bps) > 0.01 * link_bps:
                raise TestbedError(
                    f"the generator's port {port.index} runs at {port.speed_bps / 1e9:g} Gbit/s, the platform"
                    f" '{self.plan.platform.platform}' says {link_bps / 1e9:g}; fix 'port_speed' or the cabling"
                )
