"""A kind of generator: its keys in a testbed's file, and what it is connected with."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, Self

from pydantic import model_validator

from ..config import Config
from ..core.telemetry import Side
from ..system.login import ENVIRONMENT, Login, Secrets
from .base import Abilities, Generator
from .switch import SwitchSettings
from .trex.client.service import NextHop
from .trex.clients import fetch_client
from .trex.driver import TrexGenerator, TrexSettings


@dataclass(frozen=True, slots=True)
class Place:
    """Where a port is that a program sends from: ``interface`` in ``namespace`` of the machine of ``login``.

    ``namespace``: the name of one of ip-netns(8); a path is that of one that this process made; "": none. ``login``:
    None: this machine. ``router_mac``: the MAC address that its frames go to; "": the kernel asks for it.
    """

    interface: str
    namespace: str = ""
    router_mac: str = ""
    login: Login | None = None
    sudo: bool = False

    @property
    def text(self) -> str:
        """For messages."""
        inside = f" in namespace {self.namespace}" if self.namespace else ""
        return f"{self.interface}{inside} on {self.login.where if self.login else 'this machine'}"


@dataclass(frozen=True, slots=True)
class GeneratorEndpoint:
    """A generator. ``ports``: those that are used, in pairs, the first cabled to the first side and so on.

    ``connect`` claims its ports. ``trex``: its settings, if it is a TRex server; ``login``: to its host; ``home``: the
    folder of its installation there ("": not known). ``places`` of the ports, where the testbed made them.
    """

    ports: tuple[int, ...]
    connect: Callable[[GeneratorEndpoint, Sequence[Side]], Generator]
    next_hops: Mapping[int, str] = field(default_factory=dict)
    """By port, where the testbed file names one: the router's address that is asked for its MAC address."""
    trex: TrexSettings | None = None
    login: Login | None = None
    home: str = ""
    places: tuple[Place, ...] = ()
    secrets: Secrets = ENVIRONMENT


class GeneratorSettings(Config):
    """The keys of a kind of generator, a subclass: an entry point of :data:`..kinds.GROUP`, or a described program.

    ``type``: the kind's name. ``card``: the file of ``variables/generators`` on its network card; None: chosen by what
    it reports of the card. ``switch``: what counts the same frames between generator and router; None: nothing does.
    ``abilities``: what such a generator can. ``on_netns``: its keys on a testbed of network namespaces, which makes its
    ports; None: it cannot be there.
    """

    is_login: ClassVar[bool] = True
    abilities: ClassVar[Abilities] = Abilities()
    on_netns: ClassVar[Any] = None

    type: str = "trex"
    card: str | None = None
    switch: SwitchSettings | None = None

    def connect(self, endpoint: GeneratorEndpoint, sides: Sequence[Side]) -> Generator:
        """Return the generator at *endpoint*, with its ports claimed. Raises TestbedError, with nothing left.

        *sides*: one for each port, in their order. A subclass names the class of its generator as the return type.
        """
        raise NotImplementedError

    @property
    def port_count(self) -> int:
        """How many ports are cabled to the router: those of the key ``ports``, if the kind has it."""
        return len(getattr(self, "ports", (0, 1)))

    @model_validator(mode="after")
    def _check_switch(self) -> Self:
        count = len(self.switch.ports) if self.switch else self.port_count
        if count != self.port_count:
            raise ValueError(f"'switch' has {count} 'ports'; expected one for each of {self.port_count}")
        return self

    @property
    def claimed(self) -> tuple[str, ...]:
        """Return what no two runs may use at once, in words; none: it sees to that itself."""
        return ()


def connect_trex(at: GeneratorEndpoint, sides: Sequence[Side]) -> TrexGenerator:
    """Return the TRex server at an endpoint, with its ports claimed. Raises TestbedError, with nothing left."""
    hops = dict[int, NextHop]()
    for port, side in zip(at.ports, sides, strict=False):
        named = at.next_hops.get(port)
        hops[port] = NextHop(side.peer, named or side.address.partition("/")[0], explicit=named is not None)
    if at.trex is None:
        raise ValueError("the generator's endpoint has no settings of a TRex server")
    return TrexGenerator(
        replace(at.trex, next_hops=hops), partial(fetch_client, at.login, at.home) if at.login else None
    )
