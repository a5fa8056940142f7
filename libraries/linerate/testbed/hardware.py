"""A testbed of hardware: there already, but for a TRex server where its file says that one is to be started."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from ..errors import ConfigError
from ..generators.trex.client_folders import interactive
from ..platforms import Platform
from ..routers.base import Side
from ..system.ssh import Login
from .facts import GeneratorEndpoint, RouterEndpoint, TestbedFacts
from .keeper_plan import Facts, KeeperPlan
from .leases import Lease
from .settings import GeneratorSettings, HardwareSettings, SideSettings
from .trex.config_file import PortInfo, TrexConfig
from .trex.server import Order
from .trex.settings import PortSettings, StartSettings
from .trex.wrapper import arguments

UNUSED = "02:00:00:00:00:00"
"""A locally administered MAC address that nothing here has."""


def hardware_facts(testbed: HardwareSettings, platform: Platform, software: str) -> TestbedFacts:
    """A testbed that is there already: facts from its file."""
    generator, router = testbed.generator, testbed.router
    sides = tuple(
        Side(interface, side.address, side.peer, side.peer_mac or "", side.network)
        for interface, side in zip(platform.software[software].interfaces, testbed.cabled_sides, strict=False)
    )
    return TestbedFacts(
        generator=GeneratorEndpoint(
            generator.address,
            generator.sync_port,
            generator.async_port,
            generator.ports,
            generator.client,
            generator.force,
            _login(generator),
            generator.trex_home or "",
        ),
        router=RouterEndpoint(
            router.address,
            router.port,
            router.user,
            router.key,
            router.known_hosts,
            router.password_from,
            router.sudo,
        ),
        sides=sides,
        link_bps=platform.link_bps,
        label=f"{platform.description}, {software}, on {testbed.testbed}",
    )


class HardwareBlueprint:
    """A testbed that is there but for its TRex server, which is started. Raises TestbedError, ConfigError."""

    def __init__(self, settings: HardwareSettings, platform: Platform, software: str, lease: Lease) -> None:
        self._generator, self._sides, self._lease = settings.generator, settings.cabled_sides, lease
        self._facts = replace(hardware_facts(settings, platform, software), runtime=lease.folder)

    def plan(self) -> KeeperPlan:
        """One process: what holds the server, here or over SSH."""
        process = order(self._generator, self._sides).process(self._lease.folder)
        return KeeperPlan(lease=str(self._lease.path), processes=(process,), folders=self._lease.folders)

    def facts(self, ready: Facts) -> TestbedFacts:
        """From the testbed's file; with the client of the installation here, if the server is started here."""
        generator = self._facts.generator
        here = self._generator.start is not None and self._generator.start.host == "local"
        if here and not generator.client and interactive(Path(generator.home)) is not None:
            return replace(self._facts, generator=replace(generator, client=generator.home))
        return self._facts


def order(generator: GeneratorSettings, sides: tuple[SideSettings, ...]) -> Order:
    """What to start, as the testbed's file says. Raises ConfigError."""
    start = generator.start
    if start is None or generator.trex_home is None:
        raise ConfigError("nothing is to be started; expected 'start' and 'trex_home' for the generator")
    prefix = start.prefix or (f"linerate-{generator.sync_port}" if start.on_kernel else "")
    config = TrexConfig(
        interfaces=start.interfaces,
        ports=_port_infos(generator, start, sides),
        rpc_port=generator.sync_port,
        pub_port=generator.async_port,
        low_end=start.is_low_end,
        low_end_core=start.low_end_core,
        threads=start.threads.threads() if start.threads else None,
        prefix=prefix,
        memory=start.memory,
    )
    return Order(
        home=generator.trex_home,
        arguments=arguments(start.cores, start.is_software, start.is_low_end, start.extra),
        config=config.text() if start.interfaces else "",
        linux=start.on_kernel,
        address=generator.address,
        rpc_port=generator.sync_port,
        pub_port=generator.async_port,
        limit=start.limit,
        grace=start.stop,
        prefix="" if start.prefix else prefix,
        sudo=start.sudo,
        restarts=start.restarts,
        login=None if start.host == "local" else _login(generator),
    )


def _port_infos(
    generator: GeneratorSettings, start: StartSettings, sides: tuple[SideSettings, ...]
) -> tuple[PortInfo, ...]:
    """Of every interface: the sides' addresses for the ports in use, what ``ports`` says for each."""
    found = []
    said = start.ports or tuple(PortSettings() for _ in start.interfaces)
    cabled = dict(zip(generator.ports, sides, strict=True))
    for index, port in enumerate(said):
        side = cabled.get(index)
        if side is None:
            # TRex wants every port described: one that nobody uses sends to itself
            found.append(port.info("", "", "") if port.dest_mac or port.default_gw else PortInfo(dest_mac=UNUSED))
        else:
            found.append(port.info(side.peer, side.address.partition("/")[0], side.peer_mac or ""))
    return tuple(found)


def _login(generator: GeneratorSettings) -> Login | None:
    ssh = generator.ssh
    if ssh is None:
        return None
    return Login(generator.address, ssh.port, ssh.user, ssh.key, ssh.known_hosts, ssh.password_from)
