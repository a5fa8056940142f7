"""Streams split among all cores of a port pair, or each port on cores of its own (``core_mask``)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lineproof.core.trial import Load
from lineproof.generators.base import directions_of
from lineproof.generators.trex.client.library import ALL_CORES
from lineproof.generators.trex.client.pypi import PypiLibrary
from lineproof.generators.trex.driver import TrexGenerator, TrexSettings
from support.catalogue import CATALOGUE
from support.embedded_server import embedded_server

EVEN, ODD = 0x5555555555555555, 0xAAAAAAAAAAAAAAAA


class Library(PypiLibrary):
    cores = 4

    def port_facts(self, port: int) -> dict[str, Any]:
        return {"cores": list(range(self.cores))}


@pytest.mark.parametrize(
    ("pins", "cores", "sending", "masks"),
    [
        (False, 4, (0, 1), [ALL_CORES, ALL_CORES]),
        (True, 4, (0, 1), [EVEN, ODD]),
        (True, 4, (2, 3), [EVEN, ODD]),
        (True, 4, (0, 2), [ALL_CORES, ALL_CORES]),  # nobody else sends from their pairs
        (True, 4, (1,), [ALL_CORES]),
        (True, 1, (0, 1), [ALL_CORES, ALL_CORES]),  # one core cannot be shared out
        (True, 0, (0, 1), [ALL_CORES, ALL_CORES]),  # not reported
    ],
)
def test_the_mask_of_each_port(pins: bool, cores: int, sending: tuple[int, ...], masks: list[int]) -> None:
    library = Library()
    library.pins_cores, library.cores = pins, cores
    assert [library.core_mask(port, sending) for port in sending] == masks


@pytest.mark.slow
@pytest.mark.parametrize("cores", [1, 2])
def test_a_server_with_few_cores_takes_the_masks(tmp_path: Path, cores: int) -> None:
    with embedded_server(tmp_path, bypass=True, clock_speed=20, places={"cores": cores}) as server:
        generator = TrexGenerator(
            TrexSettings(
                "127.0.0.1", server.rpc, server.facts["pub_port"], client="pypi", clock_speed=20, pins_cores=True
            )
        )
        try:
            assert [port.cores for port in generator.ports] == [tuple(range(cores))] * 2
            generator.prepare(CATALOGUE.profile(["64b"]), directions_of((0, 1), True))
            outcome = generator.measure(Load(1000.0), 1.0)
        finally:
            generator.close()
    assert [count.offered for count in outcome.directions] == [1000, 1000]
