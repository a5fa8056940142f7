"""TRex as a generator, connected."""

from __future__ import annotations

from ...generators.base import Generator
from ...generators.site import Site
from ...generators.trex.client_fetch import fetcher
from ...generators.trex.driver import TrexGenerator, TrexSettings
from ...generators.trex.next_hops import NextHop


def connect_trex(site: Site) -> Generator:
    """The TRex server of *site*, with its ports claimed. Raises TestbedError in one sentence."""
    access, hops = site.endpoint, {}
    for port, side in zip(access.ports, site.sides, strict=False):
        named = access.next_hops.get(port)
        hops[port] = NextHop(side.peer, named or side.address.partition("/")[0], explicit=named is not None)
    return TrexGenerator(
        TrexSettings(
            server=access.host,
            sync_port=access.sync_port,
            async_port=access.async_port,
            ports=access.ports,
            force=access.force,
            client=access.client,
            clock_speed=site.clock_speed,
            pins_cores=access.pins_cores,
            promiscuous=access.promiscuous,
            outlives_run=access.outlives_run,
            next_hops=hops,
        ),
        fetch=fetcher(access.login, access.home) if access.login else None,
    )
