"""The ports of programs: a shell for each, which holds it, and what the programs need there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ...errors import TestbedError
from ..base import Generator
from ..site import Site
from ..switch.checked import SwitchChecked, switch_reader
from .agent import Agent, AgentPlace
from .counters import read_facts
from .driver import Port, ProgramGenerator
from .settings import ProgramSettings

PACKAGES = {"trafgen": "netsniff-ng", "tc": "iproute2", "ip": "iproute2", "iperf3": "iperf3", "python3": "python3"}
"""Debian's package of each program."""


def places_of(site: Site) -> tuple[tuple[AgentPlace, str], ...]:
    """Where each port is, and the MAC address that its frames go to ("": the kernel asks for it)."""
    access = site.endpoint
    if access.places:
        return tuple((AgentPlace(place.interface, place.namespace), place.far_mac) for place in access.places)
    settings = access.settings
    if not isinstance(settings, ProgramSettings):
        raise TestbedError(f"the generator '{access.type}' has no ports; expected 'ports' in the testbed's file")
    found = []
    for port in settings.ports:
        at = port if port.address is not None else settings
        login = at.ssh.login(at.address, access.secrets) if at.ssh is not None and at.address is not None else None
        sudo = port.sudo or settings.sudo
        found.append((AgentPlace(port.interface, port.namespace or "", login, sudo), port.router_mac or ""))
    return tuple(found)


def claim_ports(
    site: Site, programs: Sequence[str], read: Callable[[Agent], Mapping[str, str]] = read_facts
) -> tuple[Port, ...]:
    """A shell for each port of *site*, where *programs* are; *read* tells its MAC address.

    Raises TestbedError, with nothing left.
    """
    found: list[Port] = []
    try:
        for index, (place, router_mac) in zip(site.endpoint.ports, places_of(site), strict=True):
            agent = Agent(place, f"the generator's port {index}")
            port = Port(index, agent, router_mac, "")
            found.append(port)
            check_programs(agent, programs)
            facts = read(agent)
            found[-1] = Port(index, agent, router_mac, facts["address"])
    except BaseException:
        for port in found:
            port.agent.close()
        raise
    return tuple(found)


def check_programs(agent: Agent, programs: Sequence[str]) -> None:
    """Raise TestbedError for a program that the host of *agent* does not have."""
    agent.ask("PATH=$PATH:/usr/sbin:/sbin:/usr/local/sbin:/usr/local/bin; export PATH")
    for program in programs:
        if agent.result(f"command -v {program}")[0]:
            package = PACKAGES.get(program)
            hint = f"; install the package {package}" if package else "; install it"
            raise TestbedError(f"the program '{program}' is missing for {agent.place.text}{hint}")


def checked(generator: ProgramGenerator, site: Site) -> Generator:
    """*generator*, checked by the switch if the testbed's file names one. Raises TestbedError."""
    settings = site.endpoint.settings
    if not isinstance(settings, ProgramSettings) or settings.switch is None:
        return generator
    try:
        read = switch_reader(settings.switch, site.endpoint.ports, site.endpoint.secrets)
        return SwitchChecked(generator, settings.switch, read)
    except BaseException:
        generator.close()
        raise
