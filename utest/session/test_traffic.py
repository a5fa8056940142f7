"""What TRex reports that its ports can measure, before a sentence about latency sends anything."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from lineproof.errors import TestbedError
from lineproof.generators.base import GeneratorPort, directions_of
from lineproof.session.traffic import Traffic
from lineproof.traffic.catalogue import Catalogue
from support import robot_run

PROFILE = Catalogue.read(robot_run.ROOT / "variables" / "profiles").profile(["64b"])


def session(*measures: frozenset[str] | None) -> Traffic:
    ports = tuple(
        GeneratorPort(index, f"02:00:00:00:00:0{index}", 10e9, True, "net_x", measures=found)
        for index, found in enumerate(measures)
    )
    nothing: Any = None
    generator: Any = SimpleNamespace(ports=ports)
    return Traffic(nothing, nothing, generator, nothing)


LATENCY, OTHER = frozenset({"latency", "flow_stats"}), frozenset({"flow_stats"})


@pytest.mark.parametrize("measures", [(LATENCY, LATENCY), (None, None), (OTHER, LATENCY)])
def test_the_receiving_port_measures(measures: tuple[frozenset[str] | None, ...]):
    session(*measures)._refuse_latency(PROFILE, directions_of((0, 1), bidirectional=False))


@pytest.mark.parametrize(
    ("measures", "port"), [((LATENCY, OTHER), 1), ((OTHER, LATENCY), 0), ((LATENCY, frozenset()), 1)]
)
def test_a_port_that_measures_no_latency_is_named(measures: tuple[frozenset[str], ...], port: int):
    with pytest.raises(
        TestbedError, match=rf"'64b' was not sent: TRex reports that its port {port} \(driver net_x\) measures"
    ):
        session(*measures)._refuse_latency(PROFILE, directions_of((0, 1), bidirectional=True))
