"""TRex as a generator: its settings from those of a testbed, and connected."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import cast

from ...generators.base import Generator
from ...generators.site import GeneratorEndpoint, Site
from ...generators.trex.client_fetch import fetcher
from ...generators.trex.driver import TrexGenerator, TrexSettings
from ...generators.trex.next_hops import NextHop
from ...system.login import Login
from ..settings import SideSettings


def trex_endpoint(
    settings: TrexSettings, sides: Iterable[SideSettings], login: Login | None = None, home: str = ""
) -> GeneratorEndpoint:
    """Return the endpoint of a TRex server with *settings*, whose ports are cabled to *sides*, in their order."""
    hops = {
        port: NextHop(side.peer, side.next_hop or side.address.partition("/")[0], explicit=side.next_hop is not None)
        for port, side in zip(settings.ports, sides, strict=False)
    }
    named = {port: hop.address for port, hop in hops.items() if hop.explicit}
    return GeneratorEndpoint(settings.ports, _connect, named, replace(settings, next_hops=hops), login, home)


def _connect(site: Site) -> Generator:
    """The TRex server of *site*, with its ports claimed. Raises TestbedError in one sentence."""
    access = site.endpoint
    return TrexGenerator(cast(TrexSettings, access.trex), fetcher(access.login, access.home) if access.login else None)
