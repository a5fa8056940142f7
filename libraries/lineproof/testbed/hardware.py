"""A testbed of hardware. It runs already, except its TRex server if the testbed file has ``start``."""

from __future__ import annotations

from dataclasses import replace

from ..errors import ConfigError
from ..generators.site import GeneratorEndpoint
from ..platforms import Platform
from ..routers.base import Side
from ..system.login import ENVIRONMENT, Login, Secrets
from .facts import NO_ROUTER, RouterEndpoint, TestbedFacts
from .process import Belongings
from .settings import HardwareSettings, RouterSettings, next_hops
from .trex.settings import TrexGeneratorSettings
from .trex.start import start_over_ssh


def hardware_facts(
    testbed: HardwareSettings, platform: Platform, software: str, secrets: Secrets = ENVIRONMENT
) -> TestbedFacts:
    """The facts in the testbed's file."""
    router = testbed.router
    sides = tuple(
        Side(interface, side.address, side.peer, side.peer_mac or "", side.network)
        for interface, side in zip(platform.software[software].interfaces, testbed.cabled_sides, strict=False)
    )
    return TestbedFacts(
        generator=generator_endpoint(testbed, secrets),
        router=NO_ROUTER if router is None else _endpoint(router, secrets),
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
        _host_login(generator, secrets),
        generator.trex_home or "",
        pins_cores=generator.core_mask == "pin",
        promiscuous=generator.promiscuous,
        outlives_run=generator.start is None,
        next_hops=next_hops(generator.ports, testbed.cabled_sides),
    )


def _endpoint(router: RouterSettings, secrets: Secrets) -> RouterEndpoint:
    return RouterEndpoint(**router.fields_of_login(router.address, secrets), sudo=router.sudo)


def start_hardware(
    settings: HardwareSettings, platform: Platform, software: str, belongings: Belongings, secrets: Secrets
) -> TestbedFacts:
    """Start the TRex server of a testbed of hardware; returns the facts. Raises TestbedError."""
    facts = replace(hardware_facts(settings, platform, software, secrets), runtime=belongings.folder)
    login, command = facts.generator.login, settings.trex and settings.trex.start
    if login is None or not command:
        raise ConfigError("nothing is to be started; expected 'start' and 'ssh' for the generator")
    generator = facts.generator
    start_over_ssh(belongings, login, generator.home, command, generator.host, generator.sync_port)
    return facts


def _host_login(generator: TrexGeneratorSettings, secrets: Secrets) -> Login | None:
    return None if generator.ssh is None else generator.ssh.login(generator.address, secrets)
