"""A testbed of hardware. It runs already, except its TRex server if the testbed file has ``start``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from ..errors import ConfigError
from ..generators.site import GeneratorEndpoint
from ..generators.trex.client_folders import client_folder
from ..platforms import Platform
from ..routers.base import Side
from ..system.login import ENVIRONMENT, Login, Secrets
from .facts import NO_ROUTER, RouterEndpoint, TestbedFacts
from .process import Belongings
from .settings import HardwareSettings, RouterSettings, next_hops
from .trex.server import ServerOrder
from .trex.settings import TrexGeneratorSettings
from .trex.wrapper import trex_arguments


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
        link_bps=platform.link_bps,
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
    """Start the TRex server of a testbed of hardware, here or over SSH; returns the facts. Raises TestbedError."""
    facts = replace(hardware_facts(settings, platform, software, secrets), runtime=belongings.folder)
    generator = settings.trex
    if generator is None:
        raise ConfigError(f"nothing is to be started for the generator '{settings.generator_type}'")
    server_order(generator, secrets).start(belongings)
    local = generator.start is not None and generator.start.host == "local"
    endpoint = facts.generator
    if local and not endpoint.client and client_folder(Path(endpoint.home)) is not None:
        # with the client of its installation
        return replace(facts, generator=replace(endpoint, client=endpoint.home))
    return facts


def server_order(generator: TrexGeneratorSettings, secrets: Secrets = ENVIRONMENT) -> ServerOrder:
    """The server that the testbed's file asks for. Raises ConfigError."""
    start = generator.start
    if start is None or generator.trex_home is None:
        raise ConfigError("nothing is to be started; expected 'start' and 'trex_home' for the generator")
    return ServerOrder(
        home=generator.trex_home,
        arguments=trex_arguments(start.cores, start.extra),
        config="",
        linux=False,
        address=generator.address,
        rpc_port=generator.sync_port,
        pub_port=generator.async_port,
        limit=start.limit,
        grace=start.stop,
        sudo=start.sudo,
        login=None if start.host == "local" else _host_login(generator, secrets),
    )


def _host_login(generator: TrexGeneratorSettings, secrets: Secrets) -> Login | None:
    return None if generator.ssh is None else generator.ssh.login(generator.address, secrets)
