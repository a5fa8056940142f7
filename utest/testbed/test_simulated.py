"""The simulated testbed: one process, reached by TRex's ports and over SSH."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from lineproof.errors import ConfigError
from lineproof.platforms import read_platform
from lineproof.system.children import environment
from lineproof.testbed.opening import hardware_facts, open_testbed
from lineproof.testbed.settings import HardwareSettings, SimulatedSettings, read_testbed
from support.paths import ROOT
from support.patience import wait_until

PLATFORMS = ROOT / "variables" / "platforms"
FILE = PLATFORMS / "netgate6100.yaml"
PLATFORM = read_platform(PLATFORMS, "netgate6100")
SETTINGS = SimulatedSettings(testbed="simulated", kind="simulated", clock_speed=5.0)


def test_an_unknown_software_is_reported_with_the_known_ones() -> None:
    with pytest.raises(ConfigError, match="no software 'vp' here; known: vpp, vpp-1q, vpp-2q, linux, pfsense"):
        open_testbed(SETTINGS, PLATFORM, "vp", platform_file=FILE)


def test_hardware_starts_nothing(runtime: Path) -> None:
    testbed = read_testbed(ROOT / "variables" / "testbeds", "lab-example")
    assert isinstance(testbed, HardwareSettings)
    with open_testbed(testbed, PLATFORM, "vpp", platform_file=FILE) as opened:
        assert opened.facts == hardware_facts(testbed, PLATFORM, "vpp")
        assert opened.facts.generator.trex is not None and opened.facts.generator.trex.server == "192.0.2.10"
        assert opened.facts.sides[0].peer_mac == ""
        assert not opened.facts.simulated
        assert opened.problems() == ()
    assert {path.suffix for path in runtime.iterdir()} == {".in-use"}


@pytest.mark.slow
class TestSimulatedTestbed:
    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
    def test_serve_leaves_nothing_behind(self, runtime: Path, number: int) -> None:
        argv = ["serve", "--platform", "netgate6100", "--rpc-port", "0", "--pub-port", "0"]
        process = subprocess.Popen(
            [sys.executable, "-m", "lineproof", *argv],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment(),
            cwd=ROOT,
        )
        assert process.stdout
        output = []
        for line in process.stdout:
            output.append(line)
            if line.startswith("Ctrl-C"):
                break
        text = "".join(output)
        assert "SIMULATED" in text
        assert "sync port" in text
        process.send_signal(number)
        _, errors = process.communicate(timeout=15)
        assert process.returncode == (-9 if number == signal.SIGKILL else 0)
        assert errors == ""
        wait_until(lambda: list(runtime.iterdir()) == [])
