"""The kinds of generators: TRex, programs that YAML files describe, and those of other distributions by entry point.

A kind is the keys of a testbed's file, and what a generator is connected with.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, partial
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, ClassVar

from ..config import Config, did_you_mean, load_config
from ..core.registry import load
from ..errors import ConfigError
from ..project import Folder, listed
from ..system.login import ENVIRONMENT, Login, Secrets
from ..visible import shortened
from .base import WORDS, Abilities, Generator
from .trex.client.service import NextHop
from .trex.clients import fetcher
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
    connect: Callable[[Site], Generator]
    next_hops: Mapping[int, str] = field(default_factory=dict)
    """By port, where the testbed file names one: the router's address that is asked for its MAC address."""
    trex: TrexSettings | None = None
    login: Login | None = None
    home: str = ""
    places: tuple[Place, ...] = ()
    secrets: Secrets = ENVIRONMENT


@dataclass(frozen=True, slots=True)
class SiteSide:
    """The router's end of a port's cable: its address, the port's own address, and the network behind the port."""

    address: str
    peer: str
    network: str


@dataclass(frozen=True, slots=True)
class Site:
    """All that a generator is connected with. ``sides``: one for each port, in their order."""

    endpoint: GeneratorEndpoint
    sides: tuple[SiteSide, ...]


class GeneratorSettings(Config):
    """The keys of a kind of generator, a subclass: an entry point of :data:`..kinds.GROUP`, or a described program.

    ``type``: the kind's name. ``card``: the file of ``variables/generators`` on its network card; None: chosen by what
    it reports of the card. ``abilities``: what such a generator can. ``on_netns``: its keys on a testbed of network
    namespaces, which makes its ports; None: it cannot be there.
    """

    is_login: ClassVar[bool] = True
    abilities: ClassVar[Abilities] = Abilities()
    on_netns: ClassVar[Any] = None

    type: str = "trex"
    card: str | None = None

    def connect(self, site: Site) -> Generator:
        """Return the generator at *site*, with its ports claimed. Raises TestbedError, with nothing left."""
        raise NotImplementedError

    @property
    def port_count(self) -> int:
        """How many ports are cabled to the router."""
        return 2

    @property
    def claimed(self) -> tuple[str, ...]:
        """Return what no two runs may use at once, in words; none: it sees to that itself."""
        return ()


def connect_trex(site: Site) -> Generator:
    """Return the TRex server of *site*, with its ports claimed. Raises TestbedError, with nothing left."""
    at, hops = site.endpoint, dict[int, NextHop]()
    for port, side in zip(at.ports, site.sides, strict=False):
        named = at.next_hops.get(port)
        hops[port] = NextHop(side.peer, named or side.address.partition("/")[0], explicit=named is not None)
    if at.trex is None:
        raise ValueError("the generator's endpoint has no settings of a TRex server")
    return TrexGenerator(replace(at.trex, next_hops=hops), fetcher(at.login, at.home) if at.login else None)


GROUP = "lineproof.generators"
"""The group of entry points. Each is named as the ``type`` in a testbed's file, and is a :class:`GeneratorSettings`."""

Lacks = Callable[[Abilities], tuple[str, ...]]
"""Which of the abilities that something needs are not there."""

DEFAULT = "trex"
_OWN_DEFAULT = EntryPoint(DEFAULT, "lineproof.testbed.trex.settings:TrexGeneratorSettings", GROUP)
"""The default is there too where Lineproof runs from its source, without a distribution's entry points."""


def known_kinds(programs: Folder) -> Mapping[str, Callable[[], type[GeneratorSettings]]]:
    """Return what loads each kind, by its name; *programs*: the folder of their files."""
    entries = {DEFAULT: _OWN_DEFAULT} | {entry.name: entry for entry in entry_points(group=GROUP)}
    kinds = {name: partial(_loaded, entry) for name, entry in entries.items()}
    return dict(sorted((kinds | {path.stem: partial(_read, path) for path in listed(programs, "*.yaml")}).items()))


def generator_kind(name: str, programs: Folder) -> type[GeneratorSettings]:
    """Return the kind *name*. Raises ConfigError, which lists those there are, or says why it cannot be loaded."""
    if name == DEFAULT:  # without a look at all distributions, which takes 40 ms
        return _loaded(_OWN_DEFAULT)
    known = known_kinds(programs)
    if name not in known:
        raise ConfigError(
            f"there is no generator of type '{shortened(name)}'; {did_you_mean(name, known)}known: {', '.join(known)}"
            f" (others are files in variables/programs, or distributions with an entry point '{GROUP}')"
        )
    return known[name]()


@cache
def _loaded(entry: EntryPoint) -> type[GeneratorSettings]:
    kind: type[GeneratorSettings] = load(entry, type, "generator type")
    if not issubclass(kind, GeneratorSettings):
        raise ConfigError(
            f"the generator type '{entry.name}' ({entry.value}) is no GeneratorSettings; it must be fixed"
        )
    return kind


def _read(path: Path) -> type[GeneratorSettings]:
    # few testbeds have such a generator, and every run would import it: 15 ms
    from .programs.description import Description
    from .programs.kind import described

    return described(load_config(path, Description))


def refusal(name: str, lacks: Lacks, programs: Folder) -> str:
    """Why a generator of type *name* is refused: all that it lacks, and which kinds lack nothing of it."""
    able = list[str]()
    for kind, loaded in known_kinds(programs).items():
        try:
            if not lacks(loaded().abilities):
                able.append(kind)
        except ConfigError:
            continue
    *first, last = (WORDS[ability] for ability in lacks(generator_kind(name, programs).abilities))
    words = f"{', '.join(first)}, and {last}" if first else last
    return f"the generator '{name}' {words}; expected one that can: {' or '.join(able) or 'none that is known here'}"
