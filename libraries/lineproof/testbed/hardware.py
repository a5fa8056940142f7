"""A testbed of hardware. It runs already, except its TRex server if the testbed file has ``start``."""

from __future__ import annotations

from dataclasses import replace

from ..generators.kinds import GeneratorEndpoint, connect_trex
from ..generators.trex.driver import TrexSettings
from ..platforms import Platform
from ..system.login import ENVIRONMENT, Secrets
from .facts import NO_ROUTER, TestbedFacts
from .process import Belongings
from .settings import HardwareSettings, next_hops
from .trex.start import start_over_ssh


def hardware_facts(
    testbed: HardwareSettings, platform: Platform, software: str, secrets: Secrets = ENVIRONMENT
) -> TestbedFacts:
    """The facts in the testbed's file."""
    router = testbed.router
    login = NO_ROUTER
    if router is not None:
        login = replace(router.login(router.address, secrets), sudo=router.sudo)
    interfaces = platform.software[software].interfaces
    sides = tuple(side.of_router(name) for name, side in zip(interfaces, testbed.cabled_sides, strict=False))
    return TestbedFacts(
        generator=generator_endpoint(testbed, secrets),
        router=login,
        sides=sides,
        label=f"{platform.description}, {software}, on {testbed.testbed}",
    )


def generator_endpoint(testbed: HardwareSettings, secrets: Secrets) -> GeneratorEndpoint:
    """How the generator is reached, of whatever kind it is."""
    generator, other = testbed.trex, testbed.generator
    ports = tuple(range(other.port_count)) if generator is None else generator.ports
    hops = next_hops(ports, testbed.cabled_sides)
    if generator is None:
        return GeneratorEndpoint(ports, other.connect, hops, secrets=secrets)
    settings = TrexSettings(
        generator.address,
        pins_cores=generator.core_mask == "pin",
        outlives_run=generator.start is None,
        **generator.model_dump(include={"sync_port", "async_port", "ports", "force", "client", "promiscuous"}),
    )
    login = generator.ssh.login(generator.address, secrets) if generator.ssh else None
    return GeneratorEndpoint(ports, connect_trex, hops, settings, login, generator.trex_home or "")


def start_hardware(testbed: HardwareSettings, facts: TestbedFacts, belongings: Belongings) -> None:
    """Start the TRex server that *testbed* has ``start`` for. Raises TestbedError."""
    generator, server = facts.generator, testbed.trex
    if generator.login and server and server.start:
        start_over_ssh(belongings, generator.login, generator.home, server.start, server.address, server.sync_port)
