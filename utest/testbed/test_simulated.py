"""The simulated testbed: one process, reached by TRex's ports and over SSH."""

import signal
from pathlib import Path

import pytest

from lineproof.errors import ConfigError
from lineproof.platforms import read_platform
from lineproof.system import children
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
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_serve_leaves_nothing_behind(runtime: Path, number: int) -> None:
    argv = (*children.python("lineproof"), "serve", "--platform", "netgate6100", "--rpc-port", "0", "--pub-port", "0")
    with children.Child(argv, stderr=children.PIPE, cwd=ROOT) as process:
        output = list[bytes]()
        while not output or not output[-1].startswith(b"Ctrl-C"):
            output.append(process.line(60))
        assert b"SIMULATED" in b"".join(output) and b"sync port" in b"".join(output)
        process.send_signal(number)
        assert process.communicate(timeout=15)[1] == b""
    assert process.returncode == (-9 if number == signal.SIGKILL else 0)
    wait_until(lambda: list(runtime.iterdir()) == [])
