"""A run is killed while it configures or restores a router that outlives it: the router is as it was, byte for byte.

The default is a sample. ``LINERATE_ROUTER_KILLS=50 pytest utest/suites/test_router_kills.py``: so many on each router.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from support import router_rig, vpp_rig
from support.router_rig import Rig

COUNT = int(os.environ.get("LINERATE_ROUTER_KILLS", "2"))
EARLIER = """\
ip addr add 192.0.2.1/24 dev kr0
ip addr add 192.0.2.65/26 dev kr1
ip route add 16.0.0.0/8 via 192.0.2.9 dev kr0
ip route add 48.0.0.0/8 metric 100 nexthop via 192.0.2.70 dev kr1 nexthop via 192.0.2.71 dev kr1
ip neigh add 100.65.1.2 lladdr 02:00:00:00:00:77 nud permanent dev kr0
sysctl -qw net.ipv4.conf.kr0.rp_filter=2
"""
"""What a router may have already where a run sets something else."""


def strike(rig: Rig, run: subprocess.Popen[bytes], chance: random.Random) -> str:
    """Kill *run* or, on a router with an SSH server of its own, its link, at a moment of its work on the router."""
    target = chance.choice(["robot", "ssh"] if rig.sshd else ["robot"])
    lines, after = chance.randint(1, 30), chance.uniform(0, 0.01)
    while run.poll() is None:
        with contextlib.suppress(OSError, IndexError):
            if rig.journals[0].read_bytes().count(b"\n") >= lines:
                break
        time.sleep(0.0005)
    time.sleep(after)
    if target == "robot" or rig.sshd is None:
        run.kill()
    else:
        for session in psutil.Process(rig.sshd[0].pid).children(recursive=True):
            with contextlib.suppress(psutil.Error):
                session.kill()
    return f"{target} at line {lines}"


def check(rig: Rig, seed: int) -> None:
    chance = random.Random(seed)
    before = rig.state()
    for _ in range(COUNT):
        run = rig.start()
        what = strike(rig, run, chance)
        run.wait(60)
        if rig.state() != before or rig.journals:
            listed = rig.restore("--dry-run")
            if rig.state() != before:
                assert listed.returncode == 1 and "left by a run that was killed" in listed.stdout, (what, listed)
            assert rig.restore().returncode == 0, what
        assert rig.state() == before, what
        assert not rig.journals, what


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    with router_rig.kernel(tmp_path_factory.mktemp("kernel"), "set_up: [ipv6, vlan, mpls]") as rig:
        yield rig


@pytest.mark.netns
def test_a_linux_kernel(kernel: Rig) -> None:
    check(kernel, 1)


@pytest.mark.netns
def test_a_linux_kernel_that_has_a_configuration_of_its_own(kernel: Rig) -> None:
    kernel.run(EARLIER)
    check(kernel, 2)


@pytest.mark.netns
def test_the_next_run_undoes_it(kernel: Rig) -> None:
    before = kernel.state()
    run = kernel.start()
    while not kernel.journals or kernel.journals[0].read_bytes().count(b"\n") < 5:
        assert run.poll() is None
        time.sleep(0.001)
    run.send_signal(signal.SIGKILL)
    run.wait()
    assert kernel.state() != before
    status, console = kernel.start().wait(60), (kernel.folder / "console.txt").read_text()
    assert status == 0 and "undid " in console, console
    assert kernel.state() == before and not kernel.journals


@pytest.mark.slow
@pytest.mark.parametrize("software", ["vpp", "linux", "pfsense"])
def test_a_simulated_router(software: str, tmp_path: Path) -> None:
    with router_rig.simulated(tmp_path, software) as rig:
        check(rig, 3)


@pytest.mark.netns
@pytest.mark.skipif(vpp_rig.missing() != "", reason=vpp_rig.missing())
def test_a_real_vpp(tmp_path: Path) -> None:
    with router_rig.real_vpp(tmp_path) as rig:
        rig.run("set interface state host-vr0 up")
        rig.run("set interface ip address host-vr0 192.0.2.1/24")
        rig.run("set ip neighbor host-vr0 100.65.1.2 02:00:00:00:00:77 static")
        rig.run("ip route add 48.0.0.0/8 via 192.0.2.9")
        check(rig, 4)
