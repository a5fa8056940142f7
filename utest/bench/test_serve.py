"""``linerate serve``: a testbed for other clients, whose router forwards unless it is left bare."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from linerate.counts.trial import Load
from linerate.generators.base import Direction
from linerate.generators.trex.driver import TrexGenerator, TrexSettings
from linerate.traffic.catalogue import Catalogue
from support.robot_run import ROOT, environment

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
    ports = ["--rpc-port", "0", "--pub-port", "0", "--clock-speed", "20"]
    process = subprocess.Popen(
        [sys.executable, "-m", "linerate", "serve", "--platform", "netgate6100", *ports, *options],
        stdout=subprocess.PIPE,
        text=True,
        env={**environment(folder), "PYTHONPATH": str(ROOT / "libraries")},
        cwd=ROOT,
    )
    assert process.stdout is not None
    said = ""
    try:
        for line in process.stdout:
            said += line
            if line.startswith("Ctrl-C"):
                break
        found = re.search(r"sync port (\d+), async port (\d+)", said)
        assert found, said
        says = {"--bare": "is bare", "--cable": "a cable in the router's place"}
        assert says.get(options[0], "is configured") in said
        settings = TrexSettings("127.0.0.1", int(found[1]), int(found[2]), clock_speed=20.0)
        with TrexGenerator(settings) as generator:
            profile = Catalogue.read(ROOT / "variables" / "profiles").profile(["64b"])
            generator.prepare(profile, (Direction(0, 1),))
            (direction,) = generator.measure(Load(1000.0), 1.0).directions
        assert direction.offered == 1000
        return direction.forwarded
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(20)
