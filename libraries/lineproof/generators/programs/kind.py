"""Programs as kinds of generators: the keys of a testbed's file, and how their ports are claimed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, ClassVar, Self

from pydantic import Field, model_validator

from ...config import MacAddress
from ...core.telemetry import Side
from ...core.traffic.profiles import PAIRS
from ...system.login import ENVIRONMENT, HostSettings, Secrets
from ..base import Abilities
from ..site import GeneratorEndpoint, GeneratorSettings, Place
from .description import Description
from .driver import ProgramGenerator


class ProgramPort(HostSettings):
    """A port: an ``interface``, in a network ``namespace`` of its host if it is in one.

    ``router_mac``: the MAC address that its frames go to, of the router's interface; a program that makes its frames
    itself needs it. ``address``, ``ssh``, ``sudo``: where it is, if it is not where the generator's other ports are.
    """

    sudo: bool = False
    interface: str
    namespace: str | None = None
    router_mac: MacAddress | None = None


class ProgramSettings(GeneratorSettings):
    """A program, on a testbed that makes its ports; so there are no keys."""

    description: ClassVar[Description]

    def connect(self, endpoint: GeneratorEndpoint, sides: Sequence[Side]) -> ProgramGenerator:
        """Claim the ports that the testbed has made. Raises TestbedError, with nothing left."""
        return ProgramGenerator(self.description, endpoint, sides, endpoint.places, self.description.program)


class HostProgramSettings(ProgramSettings, HostSettings):
    """A program whose ports are interfaces: ``ports`` in pairs, each cabled to the side at its position.

    ``address`` and ``ssh``: the generator's host. ``sudo``: put ``sudo -n`` before what needs root. ``program``: its
    path on the hosts. ``link_wait``: s until a card that it takes from the kernel has its link again.
    """

    sudo: bool = False
    program: str | None = None
    link_wait: Annotated[int, Field(ge=0, le=60)] = 4
    ports: Annotated[tuple[ProgramPort, ...], Field(max_length=2 * PAIRS)]

    @model_validator(mode="after")
    def _check_ports(self) -> Self:
        if not self.ports or len(self.ports) % 2 or len(set(self.claimed)) < len(self.ports):
            raise ValueError("'ports' must be pairs of different ones, the first cabled to the first side, and so on")
        networks = [(place.namespace, place.login and place.login.where) for place in self._places(ENVIRONMENT)]
        for index, port in enumerate(self.ports):
            if not self.description.sockets and port.router_mac is None:
                raise ValueError(
                    f"port {index} ({port.interface}) has no 'router_mac', the MAC address of the router's interface at"
                    " the other end of its cable"
                )
            if self.description.sockets and networks[index] in networks[:index]:
                raise ValueError(
                    f"port {index} is in the same network as port {networks.index(networks[index])}, whose frames a"
                    " kernel delivers to itself; expected a 'namespace' for each port, or another host"
                )
        return self

    @property
    def claimed(self) -> tuple[str, ...]:
        """Each port by its interface, namespace and host."""
        return tuple(sorted(f"port {place.text}" for place in self._places(ENVIRONMENT)))

    def _places(self, secrets: Secrets) -> list[Place]:
        places = []
        for port in self.ports:
            host = self if port.address is None else port
            login = host.ssh.with_secrets(secrets) if host.ssh else None
            sudo = port.sudo or self.sudo
            places.append(Place(port.interface, port.namespace or "", port.router_mac or "", login, sudo))
        return places

    def connect(self, endpoint: GeneratorEndpoint, sides: Sequence[Side]) -> ProgramGenerator:
        """Claim the ports of the file. Raises TestbedError."""
        path, places = self.program or self.description.program, self._places(endpoint.secrets)
        return ProgramGenerator(self.description, endpoint, sides, places, path, self.link_wait)


def described(description: Description) -> type[GeneratorSettings]:
    """Return the kind of generator that *description* makes."""
    abilities = Abilities(frozenset(description.can), description.most_flows, description.fragments)
    kind = {"description": description, "abilities": abilities, "__module__": __name__}
    # without the card the kernel of a namespace has no end of its cable
    on_netns = None if description.received else type("program on namespaces", (ProgramSettings,), kind)
    return type("program", (HostProgramSettings,), {**kind, "on_netns": on_netns})
