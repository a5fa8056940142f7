"""What line rate rests on: a speed that the router shows ends a run that has another, and its lack is said."""

from __future__ import annotations

import re

import pytest

from lineproof.errors import TestbedError
from lineproof.generators.base import GeneratorPort
from lineproof.routers.link_state import LinkState
from lineproof.session.router import check_line_rate
from support.ceilings import ports


def ends(router: float | None, generator: float) -> list[tuple[LinkState, GeneratorPort | None]]:
    (port, *_) = ports("net_virtio", generator / 1e9)
    return [(LinkState("eth1", speed_bps=router, speed_from="ethtool"), port)]


@pytest.mark.parametrize(
    ("router", "generator", "words"),
    [
        (10e9, 10e9, ""),
        (10e9, 0.0, ""),
        (None, 10e9, ""),
        (None, 0.0, "'% line rate' is of the 10 Gbit/s that 'port_speed' of the platform 'box' says: neither end of"),
        # a switch between
        (25e9, 10e9, "eth1 runs at 25 Gbit/s ('ethtool'); line rate is that of the generator's port, 10 Gbit/s"),
    ],
)
def test_speeds_that_do_not_contradict(router: float | None, generator: float, words: str) -> None:
    found = check_line_rate(ends(router, generator), 10e9, "box")
    assert (words in found) if words else not found


@pytest.mark.parametrize(
    ("router", "generator", "words"),
    [
        (25e9, 0.0, "port 0 runs at a speed that its driver does not report; fix 'port_speed' or the cabling"),
        (1e9, 0.0, "eth1 runs at 1 Gbit/s ('ethtool'), and 'port_speed' of the platform 'box' says 10 Gbit/s"),
        (1e9, 10e9, "port 0 runs at 10 Gbit/s"),
    ],
)
def test_a_contradiction_names_both_figures_and_who_says_them(router: float, generator: float, words: str) -> None:
    with pytest.raises(TestbedError, match=re.escape(words)):
        check_line_rate(ends(router, generator), 10e9, "box")
