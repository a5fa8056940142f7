"""The netns testbed: namespaces, server and sshd are started together and removed together."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from lineproof.errors import ConfigError, TestbedError
from lineproof.platforms import Platform, Software
from lineproof.system.children import environment
from lineproof.testbed import leases, namespaces
from lineproof.testbed.netns import NetnsSetup
from lineproof.testbed.opening import open_testbed
from lineproof.testbed.settings import NetnsSettings
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


def clean(runtime: Path, tag: str) -> bool:
    return [path.name for path in runtime.iterdir()] == ["lock"] and namespaces.existing_namespaces(tag) == ()


def test_other_software_than_linux_is_refused(runtime: Path) -> None:
    with pytest.raises(ConfigError, match="take a software with 'shell: linux'"):
        open_testbed(SETTINGS, PLATFORM, "vpp", platform_file=FILE)
    assert [path.name for path in runtime.iterdir()] == ["lock"]


def test_the_reason_against_namespaces_is_reported(runtime: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(namespaces, "reason_against", lambda: "making network namespaces needs root; run it with sudo")
    with pytest.raises(TestbedError, match=r"testbed 'netns' cannot be set up: .* run it with sudo"):
        open_testbed(SETTINGS, PLATFORM, "linux", platform_file=FILE)
    assert [path.name for path in runtime.iterdir()] == ["lock"]


@pytest.mark.netns
class TestNetnsTestbed:
    def test_the_next_start_may_run_the_teardown(self, runtime: Path) -> None:
        lease = leases.create_lease(runtime)
        plan = NetnsSetup(SETTINGS, PLATFORM, "linux", lease).plan()
        assert plan.teardown
        assert all(leases.permitted_teardown(argv) for argv in plan.teardown)
        assert [process.name for process in plan.processes] == ["server", "sshd"]

    def test_opens_serves_and_closes(self, runtime: Path) -> None:
        others = psutil.Process().children(recursive=True)
        with open_testbed(SETTINGS, PLATFORM, "linux", platform_file=FILE) as testbed:
            facts = testbed.facts
            assert facts.runtime
            tag = facts.runtime.name
            assert len(namespaces.existing_namespaces(tag)) == 2
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
        assert psutil.wait_procs(processes, 30)[1] == []
        assert clean(runtime, tag)

    def test_leftovers_of_a_killed_keeper_are_removed(self, runtime: Path) -> None:
        others = psutil.Process().children(recursive=True)
        testbed = open_testbed(SETTINGS, PLATFORM, "linux", platform_file=FILE)
        assert testbed.facts.runtime
        tag = testbed.facts.runtime.name
        # its session outlives sshd: only the namespace knows of it
        sleeper = subprocess.Popen(ssh(testbed, "sleep 60"), stdin=subprocess.DEVNULL)
        processes = [
            item for item in psutil.Process().children(recursive=True) if item not in others and item.pid != sleeper.pid
        ]
        keeper = leases.Lease.read(next(runtime.glob("*.lease"))).holder
        psutil.Process(keeper.pid).kill()
        until = time.monotonic() + 30
        while keeper.alive and time.monotonic() < until:
            time.sleep(0.02)
        assert leases.clear_leftovers(runtime)
        assert psutil.wait_procs(processes, 30)[1] == []
        assert sleeper.wait(30) != 0
        assert clean(runtime, tag)
        testbed.close()

    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
    def test_a_killed_owner_leaves_no_namespace(self, runtime: Path, number: int) -> None:
        code = (
            "import sys, time\n"
            "sys.path.insert(0, sys.argv[1])\n"
            "import testbed.test_netns as t\n"
            "testbed = t.open_testbed(t.SETTINGS, t.PLATFORM, 'linux', platform_file=t.FILE)\n"
            "print(testbed.facts.runtime.name, flush=True)\n"
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
            tag = owner.stdout.readline().strip()
        assert len(namespaces.existing_namespaces(tag)) == 2
        owner.send_signal(number)
        owner.wait(30)
        until = time.monotonic() + 30
        while not clean(runtime, tag) and time.monotonic() < until:
            time.sleep(0.05)
        assert clean(runtime, tag)


def ssh(testbed, command: str) -> list[str]:
    router = testbed.facts.router
    return [
        *("ssh", "-F", "none", "-i", str(router.key_path), "-o", f"UserKnownHostsFile={router.known_hosts_path}"),
        *("-o", "IdentitiesOnly=yes", "-o", "StrictHostKeyChecking=yes", "-o", "BatchMode=yes"),
        *("-p", str(router.port), f"{router.user}@{router.host}", command),
    ]
