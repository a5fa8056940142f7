"""Why frames were lost, by what the machine is: buses of cards, hyper-threads, buffers, a clock that is lowered."""

from __future__ import annotations

from dataclasses import replace

import pytest

from linerate.counts.causes import Stage
from linerate.routers.explain import explain
from support.why_evidence import TRIED, facts, ledger, load

# -- a port without a rate


@pytest.mark.parametrize("link_bps", [0.0, -0.0, float("nan")])
@pytest.mark.parametrize("stage", [*Stage, None])
def test_a_port_whose_rate_is_not_known_has_no_full_line(link_bps: float, stage: Stage | None) -> None:
    for seen in (None, load(0.2, 0.2), load(1.0, 0.1)):
        found = explain(replace(TRIED, link_bps=link_bps), ledger(stage), facts(), seen)
        assert "line" not in [row.rule for row in found]
