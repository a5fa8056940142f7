"""A testbed of hardware. It runs already, except its TRex server if the testbed file has ``start``."""

from __future__ import annotations

from dataclasses import replace

from ..generators.site import GeneratorEndpoint
from ..platforms import Platform
from ..routers.base import Side
from ..system.login import ENVIRONMENT, Secrets
from .facts import NO_ROUTER, RouterEndpoint, TestbedFacts
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
        login = RouterEndpoint(**router.fields_of_login(router.address, secrets), sudo=router.sudo)
    sides = tuple(
        Side(interface, side.address, side.peer, side.peer_mac or "", side.network)
        for interface, side in zip(platform.software[software].interfaces, testbed.cabled_sides, strict=False)
    )
    return TestbedFacts(
        generator=generator_endpoint(testbed, secrets),
        router=login,
        sides=sides,
        label=f"{platform.description}, {software}, on {testbed.testbed}",
    )


def generator_endpoint(testbed: HardwareSettings, secrets: Secrets) -> GeneratorEndpoint:
    """How the generator is reached, of whatever kind it is."""
    generator = testbed.trex
    if generator is None:
        other = testbed.generator
        ports = tuple(range(other.port_count))
        hops = next_hops(ports, testbed.cabled_sides)
        return GeneratorEndpoint("", 0, 0, ports, next_hops=hops, connect=other.connect, secrets=secrets)
    return GeneratorEndpoint(
        generator.address,
        generator.sync_port,
        generator.async_port,
        generator.ports,
        generator.client,
        generator.force,
        generator.ssh.login(generator.address, secrets) if generator.ssh else None,
        generator.trex_home or "",
        pins_cores=generator.core_mask == "pin",
        promiscuous=generator.promiscuous,
        outlives_run=generator.start is None,
        next_hops=next_hops(generator.ports, testbed.cabled_sides),
    )


def start_hardware(testbed: HardwareSettings, facts: TestbedFacts, belongings: Belongings) -> TestbedFacts:
    """Start the TRex server that *testbed* has ``start`` for; returns its *facts*. Raises TestbedError."""
    generator, command = facts.generator, testbed.trex and testbed.trex.start
    if generator.login and command:
        start_over_ssh(belongings, generator.login, generator.home, command, generator.host, generator.sync_port)
    return replace(facts, runtime=belongings.folder)
