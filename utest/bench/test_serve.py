"""``lineproof serve``: a testbed for other clients, whose router forwards unless it is left bare."""

from __future__ import annotations

from pathlib import Path

import pytest

from lineproof.counts.trial import Load
from lineproof.generators.base import Direction
from lineproof.generators.trex.driver import TrexGenerator, TrexSettings
from lineproof.traffic.catalogue import Catalogue
from support.robot_run import ROOT
from support.served_bench import served

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("software", ["vpp", "linux"])
def test_frames_come_back_from_a_configured_router(tmp_path: Path, software: str):
    assert forwarded(tmp_path, "--software", software) == 1000


def test_nothing_comes_back_from_a_bare_router(tmp_path: Path):
    assert forwarded(tmp_path, "--bare") == 0


def test_every_frame_comes_back_over_a_cable(tmp_path: Path):
    assert forwarded(tmp_path, "--cable") == 1000


def forwarded(folder: Path, *options: str) -> int:
    """Of 1000 frames sent through a testbed that is served."""
    with served(folder, "--clock-speed", "20", *options) as bench:
        says = {"--bare": "is bare", "--cable": "a cable in the router's place"}
        assert says.get(options[0], "is configured") in bench.said
        with TrexGenerator(TrexSettings("127.0.0.1", bench.sync, bench.events, clock_speed=20.0)) as generator:
            profile = Catalogue.read(ROOT / "variables" / "profiles").profile(["64b"])
            generator.prepare(profile, (Direction(0, 1),))
            (direction,) = generator.measure(Load(1000.0), 1.0).directions
    assert direction.offered == 1000
    return direction.forwarded
