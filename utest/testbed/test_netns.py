"""The netns testbed: namespaces, server and sshd are started together and removed together."""

import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from lineproof.errors import ConfigError, TestbedError
from lineproof.platforms import Platform, Software
from lineproof.system.children import environment
from lineproof.testbed import namespaces
from lineproof.testbed.opening import open_testbed
from lineproof.testbed.settings import NetnsSettings
from support.leftovers import left
from support.paths import SUPPORT, VARIABLES

PLATFORMS = VARIABLES / "platforms"
FILE = PLATFORMS / "netgate6100.yaml"
PLATFORM = Platform(
    platform="box",
    description="a box",
    port_speed="1 Gbps",
    software={
        "linux": Software(shell="linux", version="any", interfaces=("left", "right")),
        "vpp": Software(shell="vpp", version="any", interfaces=("left", "right")),
    },
)
SETTINGS = NetnsSettings(testbed="netns", kind="netns")


def test_other_software_than_linux_is_refused(runtime: Path) -> None:
    with pytest.raises(ConfigError, match="take a software with 'shell: linux'"):
        open_testbed(SETTINGS, PLATFORM, "vpp", platform_file=FILE)
    assert list(runtime.iterdir()) == []


def test_the_reason_against_namespaces_is_reported(runtime: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(namespaces, "reason_against", lambda: "making network namespaces needs root; run it with sudo")
    with pytest.raises(TestbedError, match=r"testbed 'netns' cannot be set up: .* run it with sudo"):
        open_testbed(SETTINGS, PLATFORM, "linux", platform_file=FILE)
    assert list(runtime.iterdir()) == []


@pytest.mark.netns
class TestNetnsTestbed:
    def test_opens_serves_and_closes(self, runtime: Path) -> None:
        others = psutil.Process().children(recursive=True)
        with open_testbed(SETTINGS, PLATFORM, "linux", platform_file=FILE) as testbed:
            facts = testbed.facts
            assert len(facts.namespaces) == 2
            assert not facts.simulated
            assert facts.link_bps == 1e9
            found = subprocess.run(ssh(testbed, "ip -o link"), capture_output=True, text=True, timeout=60, check=False)
            assert " left@" in found.stdout, found.stderr
            assert " right@" in found.stdout
            sleeper = subprocess.Popen(ssh(testbed, "sleep 60"), stdin=subprocess.DEVNULL)
            processes = [
                item
                for item in psutil.Process().children(recursive=True)
                if item not in others and item.pid != sleeper.pid
            ]
            assert testbed.problems() == ()
        assert testbed.failures == ()
        assert sleeper.wait(30) != 0
        assert left(runtime, processes) == []

    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
    def test_a_killed_owner_leaves_nothing(self, runtime: Path, number: int) -> None:
        """Nor a command of a session, which outlives sshd."""
        code = (
            "import subprocess, sys, time\n"
            "sys.path.insert(0, sys.argv[1])\n"
            "import testbed.test_netns as t\n"
            "testbed = t.open_testbed(t.SETTINGS, t.PLATFORM, 'linux', platform_file=t.FILE)\n"
            "sleeper = subprocess.Popen(t.ssh(testbed, 'echo begun; sleep 60'))\n"
            "time.sleep(60)\n"
        )
        owner = subprocess.Popen(
            [sys.executable, "-c", code, str(SUPPORT.parent)],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=environment(),
        )
        assert owner.stdout
        with owner.stdout:
            processes = list[psutil.Process]()
            assert owner.stdout.readline() == "begun\n"
            while not any(item.name() == "sleep" for item in processes):
                processes = psutil.Process(owner.pid).children(recursive=True)
            owner.send_signal(number)
        owner.wait(30)
        assert left(runtime, processes) == []


def ssh(testbed, command: str) -> list[str]:
    router = testbed.facts.router
    return [
        *("ssh", "-F", "none", "-i", str(router.key_path), "-o", f"UserKnownHostsFile={router.known_hosts_path}"),
        *("-o", "IdentitiesOnly=yes", "-o", "StrictHostKeyChecking=yes", "-o", "BatchMode=yes"),
        *("-p", str(router.port), f"{router.user}@{router.host}", command),
    ]
