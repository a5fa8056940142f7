"""The generator's end of a session: its ports claimed, checked, released, and claimed again."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from ..ceilings import MeasuredLimits, PublishedLimits, choose_card
from ..errors import TestbedError
from ..generators.base import Generator, GeneratorPort, PortsTaken
from ..generators.site import GeneratorSettings
from ..generators.switch import Switch
from ..simulation import simulation_signs
from ..testbed.opening import OpenTestbed
from ..testbed.settings import HardwareSettings, NetnsSettings
from ..testbed.waiting_time import WaitProgress
from .links import LinkWait
from .plan import Plan

PORTS_POLL = 1.0
"""Seconds between two tries to claim ports that another user has."""

AFTER_OTHERS = 5.0
"""Seconds after another user gave the ports back: a run of Lineproof restores its router then."""


def connect_generator(testbed: OpenTestbed) -> Generator:
    """Return the generator of *testbed*, with its ports claimed. Raises TestbedError in one sentence."""
    facts = testbed.facts
    return facts.generator.connect(facts.generator, facts.sides)


def measured_limits(
    plan: Plan, server: str | None, simulated: bool, now: datetime | None = None
) -> MeasuredLimits | None:
    """Return what the plan's calibration says *now* of the generator; None: it was not calibrated.

    *server*: its version; *simulated*: whether it is.
    """
    if plan.calibration is None:
        return None
    return MeasuredLimits(plan.calibration, plan.catalogue, plan.testbed.kind, plan.fastest, server, simulated, now)


@dataclass
class GeneratorConnection:
    """The generator of *testbed*. *bypassed*: its ports are connected to each other, without a router."""

    plan: Plan
    testbed: OpenTestbed
    bypassed: bool = False
    known_limits: PublishedLimits | None = None
    """The published limits of the generator's card; None before :meth:`connect`."""

    _driver: Generator | None = field(default=None, repr=False)
    _said: tuple[str, ...] = field(default=(), repr=False)
    _card_macs: Mapping[int, str] = field(default_factory=dict, repr=False)

    def connect(self, connect: Callable[[OpenTestbed], Generator] = connect_generator) -> None:
        """Claim the generator's ports, and compare them with the platform. Raises TestbedError.

        Ports that another user has are waited for, as long as the testbed's file allows.
        """
        self._driver = self._free_generator(connect)
        if self.switch is not None:
            self.switch.read()  # one that does not answer is found before any traffic
        if self.bypassed:
            self.await_own_links()
        else:
            # links may be down until the router's interfaces are configured; they are awaited then
            self.check_links()

    def _free_generator(self, connect: Callable[[OpenTestbed], Generator]) -> Generator:
        testbed = self.plan.testbed
        limit = testbed.wait_for_testbed if isinstance(testbed, HardwareSettings) else 0.0
        progress = WaitProgress(f"testbed '{testbed.testbed}'", limit, self.testbed.say)
        while True:
            try:
                generator = connect(self.testbed)
            except PortsTaken as error:
                if progress.is_over:
                    raise
                progress.note(str(error))
                time.sleep(PORTS_POLL)
                continue
            if progress.noted:
                # whoever had them may be restoring the router
                time.sleep(AFTER_OTHERS)
            return generator

    def reconnect(self) -> None:
        """Connect again in place of a connection that failed, with no streams yet. Raises TestbedError."""
        self.driver.reconnect()
        # its server may have been started again
        self.await_own_links()

    def release(self) -> None:
        """Stop traffic and release the ports. Harmless when repeated."""
        driver, self._driver = self._driver, None
        if driver is not None:
            driver.close()

    @property
    def switch(self) -> Switch | None:
        """Return what counts its frames beside it; None: nothing does."""
        settings, endpoint = getattr(self.plan.testbed, "generator", None), self.testbed.facts.generator
        own = settings.switch if isinstance(settings, GeneratorSettings) else None
        return None if own is None else Switch(own, endpoint.ports, endpoint.secrets)

    @property
    def connected(self) -> bool:
        """Return whether its ports are claimed."""
        return self._driver is not None

    @property
    def driver(self) -> Generator:
        """The generator. Raises TestbedError if none is connected."""
        if self._driver is None:
            raise TestbedError("no generator is connected; call 'Start Testbed' first")
        return self._driver

    @property
    def ports(self) -> tuple[GeneratorPort, ...]:
        """The claimed ports; none before :meth:`connect`."""
        return self._driver.ports if self._driver else ()

    @property
    def card_macs(self) -> Mapping[int, str]:
        """The MAC address that each claimed port's card takes frames for."""
        if not self._card_macs:
            self._card_macs = {port.index: port.card_mac or port.mac for port in self.ports}
        return self._card_macs

    @property
    def versions(self) -> Mapping[str, str]:
        """The versions that server and client report; none before :meth:`connect`."""
        return self._driver.versions if self._driver else {}

    @property
    def streams(self) -> Mapping[str, object]:
        """Return what it was told to send, by sending port; nothing before :meth:`connect`."""
        return self._driver.streams if self._driver else {}

    @property
    def started(self) -> bool:
        """Return whether its server was started for this run, which takes its links down and up."""
        testbed = self.plan.testbed
        if isinstance(testbed, HardwareSettings):
            return testbed.starts_generator
        return isinstance(testbed, NetnsSettings) and testbed.generator == "trex"

    def await_own_links(self) -> None:
        """Wait until every port has a link, ``link_wait`` s at most. Raises TestbedError."""
        LinkWait(self.plan.link_wait, self.plan.testbed.link_wait).await_all(self.links)
        self.check_links()

    def links(self) -> dict[str, bool]:
        """Return whether each of its ports has a link, by its name."""
        return {f"the generator's port {port.index}": port.link_up for port in self.driver.ports}

    @property
    def simulation_signs(self) -> tuple[str, ...]:
        """Signs that it is a simulation, in words: of the testbed, of its clock, of the generator once connected.

        A sign stays, also if a generator without one is connected later.
        """
        facts = self.testbed.facts
        kind = ("the testbed is simulated",) if facts.simulated else ()
        speed = f"the testbed's clock runs {facts.clock_speed:g} times as fast as real time"
        return (*kind, *((speed,) if facts.clock_speed != 1 else ()), *self._said)

    @property
    def headroom(self) -> MeasuredLimits | None:
        """Return what the generator carries by itself; None if it was not calibrated."""
        server, simulated = self.versions.get("server"), bool(self.simulation_signs)
        return measured_limits(self.plan, server, simulated)

    def check_links(self) -> None:
        """Raise TestbedError for a port with a link that is slower than the platform's."""
        ports = self.driver.ports
        said = {"the generator's server": self.versions.get("server", "")}
        for port in ports:
            said[f"driver of the generator's port {port.index}"] = port.driver
            said[f"the generator's port {port.index}"] = port.description
        self._said = tuple(dict.fromkeys((*self._said, *simulation_signs(said))))
        card, why = choose_card(self.plan.cards, ports, self.plan.card)
        self.known_limits = PublishedLimits(card, why, ports, self.plan.fastest, self.versions.get("server"))
        for port in ports:
            if port.link_up and (slower := self.slower_words(port)):
                raise TestbedError(f"the generator's port {port.index} {slower}")

    def slower_words(self, port: GeneratorPort) -> str:
        """Return that *port* is certainly slower than the router's port that it is cabled to; "": it is not."""
        platform = self.plan.platform
        name, speed = dict(zip(self.testbed.facts.generator.ports, platform.ports.items(), strict=False))[port.index]
        if not port.is_slower_than(speed):
            return ""
        return (
            f"runs at {port.speed_text}, the platform '{platform.platform}' says {speed / 1e9:g} of {name}; fix 'ports'"
            " or the cabling"
        )
