"""Programs as kinds of generators: the keys of a testbed's file, and how their ports are claimed."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, ClassVar, Self

from pydantic import Field, field_validator, model_validator

from ...config import MacAddress, load_config, matching
from ...core.traffic.profiles import PAIRS
from ...errors import TestbedError
from ...system.login_settings import HostSettings
from ..base import Generator
from ..kinds import GeneratorKind
from ..settings import GeneratorSettings
from ..site import Site
from ..switch.checked import SwitchChecked, SwitchSettings, switch_reader
from .driver import Description, ProgramGenerator, filled
from .port import Place, Port

_NO_OPTION_NOR_FOLDER = r"(?!-|\.\.?$)"

Interface = Annotated[
    str,
    matching(
        _NO_OPTION_NOR_FOLDER + "[A-Za-z0-9_.-]{1,15}",
        "expected the name of an interface: up to 15 letters, digits and any of _ . -",
    ),
]
Namespace = Annotated[
    str,
    matching(
        _NO_OPTION_NOR_FOLDER + "[A-Za-z0-9_.-]{1,64}",
        "expected the name of a network namespace, as 'ip netns' shows it",
    ),
]


def _host_of(settings: HostSettings) -> tuple[str | None, int]:
    """A host by its login: two may be behind one address."""
    return settings.address, settings.ssh.port if settings.ssh else 0


class ProgramPort(HostSettings):
    """A port: an ``interface``, in a network ``namespace`` of its host if it is in one.

    ``router_mac``: the MAC address that its frames go to, of the router's interface; a program that makes its frames
    itself needs it. ``address``, ``ssh``, ``sudo``: where it is, if it is not where the generator's other ports are.
    """

    sudo: bool = False
    interface: Interface
    namespace: Namespace | None = None
    router_mac: MacAddress | None = None


class ProgramSettings(HostSettings, GeneratorSettings):
    """A generator whose ports are interfaces: ``ports`` in pairs, each cabled to the side at its position.

    ``address`` and ``ssh``: the generator's host. ``sudo``: put ``sudo -n`` before what needs root. ``program``: its
    path on the hosts. ``switch``: what counts the same frames between generator and router; None: the
    host's counts stand alone.
    """

    sockets: ClassVar[bool] = False
    """Return whether it sends from sockets: in one network a kernel would deliver its frames to itself."""

    sudo: bool = False
    program: Annotated[str, Field(pattern=r"^[A-Za-z0-9_./-]{1,200}$")] | None = None
    ports: Annotated[tuple[ProgramPort, ...], Field(max_length=2 * PAIRS)]
    switch: SwitchSettings | None = None

    @field_validator("ports")
    @classmethod
    def _check_ports_in_pairs(cls, value: tuple[ProgramPort, ...]) -> tuple[ProgramPort, ...]:
        places = [(*_host_of(port), port.namespace, port.interface) for port in value]
        if not value or len(value) % 2 or len(set(places)) < len(places):
            raise ValueError("must be pairs of different ports, the first cabled to the first side, and so on")
        return value

    @model_validator(mode="after")
    def _check_kind(self) -> Self:
        places = [(*_host_of(self if port.address is None else port), port.namespace) for port in self.ports]
        for index, port in enumerate(self.ports):
            if not self.sockets and port.router_mac is None:
                raise ValueError(
                    f"port {index} ({port.interface}) has no 'router_mac', the MAC address of the router's interface at"
                    " the other end of its cable"
                )
            if self.sockets and places[index] in places[:index]:
                raise ValueError(
                    f"port {index} is in the same network as port {places.index(places[index])}, whose frames a kernel"
                    " delivers to itself; expected a 'namespace' for each port, or another host"
                )
        return self

    @model_validator(mode="after")
    def _check_switch(self) -> Self:
        if self.switch is not None and len(self.switch.ports) != len(self.ports):
            raise ValueError(
                f"'switch' has {len(self.switch.ports)} 'ports'; expected one for each of {len(self.ports)}"
            )
        return self

    @property
    def claimed(self) -> tuple[str, ...]:
        """Each port by its interface, namespace and host."""
        found = []
        for port in self.ports:
            address, number = _host_of(self if port.address is None else port)
            inside = f" in namespace {port.namespace}" if port.namespace else ""
            found.append(f"port {port.interface}{inside} of {f'{address}:{number}' if address else 'this machine'}")
        return tuple(sorted(found))

    @property
    def port_count(self) -> int:
        """The number of ``ports``."""
        return len(self.ports)

    def with_paths(self, absolute: Callable[[Path], Path]) -> Self:
        """With the files of all logins made *absolute*."""
        ports = tuple(port.with_paths(absolute) for port in self.ports)
        changed: dict[str, object] = {"ports": ports}
        if self.switch is not None:
            changed["switch"] = self.switch.with_paths(absolute)
        return super().with_paths(absolute).model_copy(update=changed)


class CardSettings(ProgramSettings):
    """Of a program that takes cards from the kernel. ``link_wait``: s until such a card has its link again."""

    link_wait: Annotated[int, Field(ge=0, le=60)] = 4


class NetnsProgramSettings(GeneratorSettings):
    """On a testbed of network namespaces, which makes the ports."""


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
