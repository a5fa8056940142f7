"""Programs as kinds of generators: the keys of a testbed's file, and how their ports are claimed."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from ...config import load_config
from ...errors import TestbedError
from ..base import Generator
from ..kinds import GeneratorKind
from ..site import Site
from ..switch.checked import SwitchChecked, switch_reader
from .description import Description, filled
from .driver import ProgramGenerator
from .port import Place, Port
from .settings import CardSettings, NetnsProgramSettings, ProgramSettings


def described(path: Path) -> GeneratorKind:
    """Return the program that the YAML file *path* describes as a kind of generator. Raises ConfigError."""
    description = load_config(path, Description)
    base = CardSettings if description.received else ProgramSettings
    keys = type(f"{description.program} settings", (base,), {"sockets": description.sockets, "__module__": __name__})
    return GeneratorKind(
        description.about,
        description.abilities,
        keys,
        partial(connect, description),
        # without the card the kernel of a namespace has no end of its cable
        None if description.received else NetnsProgramSettings,
        apart=description.sockets,
    )


def connect(description: Description, site: Site) -> Generator:
    """Claim the ports of *site* for a program; its counts are checked by a switch if the testbed's file names one.

    Raises TestbedError, with nothing left.
    """
    endpoint = site.endpoint
    settings = endpoint.settings if isinstance(endpoint.settings, ProgramSettings) else None
    path = (settings and settings.program) or description.program
    link_wait = settings.link_wait if isinstance(settings, CardSettings) else 0
    generator = ProgramGenerator(description, site, path, link_wait, lambda: claim(description, site, path))
    if settings is None or settings.switch is None:
        return generator
    try:
        read = switch_reader(settings.switch, endpoint.ports, endpoint.secrets)
        return SwitchChecked(generator, settings.switch, read)
    except BaseException:
        generator.close()
        raise


def places_of(site: Site) -> tuple[Place, ...]:
    """Where each port is. Raises TestbedError."""
    endpoint = site.endpoint
    if endpoint.places:
        return tuple(Place(place.interface, place.namespace, place.far_mac) for place in endpoint.places)
    settings = endpoint.settings
    if not isinstance(settings, ProgramSettings):
        raise TestbedError(f"the generator '{endpoint.type}' has no ports; expected 'ports' in the testbed's file")
    places = []
    for port in settings.ports:
        at = port if port.address is not None else settings
        login = at.ssh.login(at.address, endpoint.secrets) if at.ssh is not None and at.address is not None else None
        sudo = port.sudo or settings.sudo
        places.append(Place(port.interface, port.namespace or "", port.router_mac or "", login, sudo))
    return tuple(places)


def claim(description: Description, site: Site, path: str) -> tuple[Port, ...]:
    """Return a shell for each port of *site*, all checked. Raises TestbedError, with nothing left."""
    ports: list[Port] = []
    try:
        for index, place in zip(site.endpoint.ports, places_of(site), strict=True):
            ports.append(Port(index, place))
            check_host(ports[-1], description, path)
    except BaseException:
        for port in ports:
            port.close()
        raise
    return tuple(ports)


def check_host(port: Port, description: Description, path: str) -> None:
    """Raise TestbedError for a program that the host of *port* does not have, and a port that is not free."""
    for program, package in description.needs.items():
        program = path if program == description.program else program
        if not port.ask(filled("command -v {program} || :", {"program": program})):
            hint = f"; install the package {package}" if package else "; install it"
            raise TestbedError(f"the program '{program}' is missing for {port.place.text}{hint}")
    if description.free is not None:
        interface = port.place.interface
        if taken := port.ask(filled(description.free.run, {"interface": interface})).strip():
            words = description.free.but.replace("{interface}", interface).replace("{found}", taken)
            raise TestbedError(f"{port.place.text} {words}")


TRAFGEN, IPERF3, PKTGEN = (
    described(Path(__file__).with_name(f"{name}.yaml")) for name in ("trafgen", "iperf3", "pktgen")
)
