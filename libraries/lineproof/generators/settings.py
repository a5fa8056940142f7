"""Keys that every kind of generator has in a testbed's file: the key ``generator``."""

from __future__ import annotations

from typing import Any, ClassVar

from ..config import Config
from .abilities import Abilities
from .base import Generator
from .site import Site


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
