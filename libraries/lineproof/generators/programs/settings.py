"""The testbed's keys of generators that are programs on a host's own interfaces."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Self

from pydantic import Field, field_validator, model_validator

from ...config import Config, MacAddress, matching
from ...core.traffic.profiles import PAIRS
from ...system.login_settings import HostName, LoginSettings
from ..settings import GeneratorSettings
from ..switch.settings import SwitchSettings

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


class HostSettings(Config):
    """Where programs run. ``address`` and ``ssh``: the generator's host; without them it is this machine.

    ``sudo``: put ``sudo -n`` before what needs root.
    """

    address: HostName | None = None
    ssh: LoginSettings | None = None
    sudo: bool = False

    @model_validator(mode="after")
    def _check_login(self) -> Self:
        if (self.address is None) != (self.ssh is None):
            raise ValueError("'address' and 'ssh' belong together; without both it is this machine")
        return self

    def with_paths(self, absolute: Callable[[Path], Path]) -> Self:
        """With the login's files made *absolute*."""
        return self if self.ssh is None else self.model_copy(update={"ssh": self.ssh.with_paths(absolute)})


def _host_of(settings: HostSettings) -> tuple[str | None, int]:
    """A host by its login: two may be behind one address."""
    return settings.address, settings.ssh.port if settings.ssh else 0


class ProgramPort(HostSettings):
    """A port: an ``interface``, in a network ``namespace`` of its host if it is in one.

    ``router_mac``: the MAC address that its frames go to, of the router's interface; a program that makes its frames
    itself needs it. ``address``, ``ssh``, ``sudo``: where it is, if it is not where the generator's other ports are.
    """

    interface: Interface
    namespace: Namespace | None = None
    router_mac: MacAddress | None = None


class ProgramSettings(HostSettings, GeneratorSettings):
    """A generator whose ports are interfaces: ``ports`` in pairs, each cabled to the side at its position.

    ``switch``: what counts the same frames between generator and router; None: the host's counts stand alone.
    """

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


class OwnMacSettings(ProgramSettings):
    """Of a program that makes its frames itself: it has to know where they go."""

    @model_validator(mode="after")
    def _check_macs(self) -> Self:
        for index, port in enumerate(self.ports):
            if port.router_mac is None:
                raise ValueError(
                    f"port {index} ({port.interface}) has no 'router_mac', the MAC address of the router's interface at"
                    " the other end of its cable"
                )
        return self


class ApartSettings(ProgramSettings):
    """Of a program that sends from a socket: within one network a kernel would deliver its frames to itself."""

    @model_validator(mode="after")
    def _check_apart(self) -> Self:
        places = [(*_host_of(self if port.address is None else port), port.namespace) for port in self.ports]
        for index, place in enumerate(places):
            if place in places[:index]:
                raise ValueError(
                    f"port {index} is in the same network as port {places.index(place)}, whose frames a kernel delivers"
                    " to itself; expected a 'namespace' for each port, or another host"
                )
        return self


class NetnsProgramSettings(GeneratorSettings):
    """On a testbed of network namespaces, which makes the ports."""
