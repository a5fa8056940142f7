"""Routers that outlive a run, as testbeds of ``kind: hardware``: this machine's kernel, and simulated ones.

Their configuration can be read and changed beside the run.
"""

from __future__ import annotations

import contextlib
import re
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil

from lineproof.platforms import read_platform
from lineproof.project import Project
from lineproof.system.network_namespace import inside
from lineproof.system.ssh_shell import SshShell
from lineproof.testbed.opening import OpenTestbed, open_testbed
from lineproof.testbed.settings import read_testbed
from support import robot_run
from support.command_line import lineproof
from support.fork_server import ForkedProcess
from support.paths import ROOT

SUITE = f"""\
*** Settings ***
Resource          {ROOT}/resources/acceptance.resource
Suite Setup       Read Plan    box    ${{NONE}}    lab    quick
Suite Teardown    Close Testbed

*** Test Cases ***
It Is Configured
    Start Testbed
"""
BOX = """\
platform: box
description: a router that outlives runs
ports: {{port1: 10 Gbps, port2: 10 Gbps}}
software:
  {software}: {{shell: {software}, version: as found, interfaces: [{names}]{more}}}
"""
SET_UP = "set_up: [ipv6, vlan, mpls]"
TUNING = ", tuning: {queues: 1, offloads: {tso: off, gro: on}, sysctls: {net.ipv4.ip_default_ttl: 65}}"
"""Settings that a veth pair and its namespace can be given."""
SETTLE = (
    "for i in $(seq 200); do ip -o link show | grep -E 'lr-r[01]@' |"
    " grep -Eq 'NO-CARRIER|state (DOWN|LOWERLAYERDOWN)' || break; sleep 0.1; done"
)
"""Both ends of each cable are up, but a kernel says a second or more later that a link has a carrier."""
HARDENED = (
    "sysctl -w net.ipv4.conf.all.accept_redirects=0 net.ipv4.conf.lr-r1.forwarding=1 net.ipv6.conf.lr-r1.forwarding=1"
)
"""Settings that the kernel forgets where forwarding is switched on and off again."""
KERNEL_STATE = (
    "ip -o -4 addr show; ip -o -6 addr show; ip -o -4 route show table all; ip -6 route show table all; ip rule show;"
    " ip -6 rule show; ip neigh show nud permanent; ip -o link show | sed 's/ qlen.*//';"
    " sysctl -a -r '(ip_forward|forwarding|accept_redirects|rp_filter|ipv6.*(disable_ipv6|accept_ra|addr_gen_mode"
    "|router_solicitations))$'; sysctl net.ipv4.ip_default_ttl; for name in lr-r0 lr-r1; do ethtool -k $name;"
    " ethtool -l $name; done; ip -f mpls route show; cat /proc/sys/net/mpls/platform_labels"
)
"""The commands whose output is compared before and after: all that a run may change."""
VPP_STATE = "vppctl show interface address", "vppctl show ip neighbors", "vppctl show ip fib 16.0.0.0/8"
"""The same of VPP; the first figure of a neighbour is its age."""


@dataclass(frozen=True)
class Rig:
    """A running testbed. ``state``: the router's configuration now; ``run``: what a shell on it prints.

    ``cut``: ends the SSH links of a run, where a test can.
    """

    folder: Path
    run: Callable[[str], str]
    state: Callable[[], str]
    cut: Callable[[], None] = lambda: None

    def start(self) -> ForkedProcess:
        """Start a run that configures the router and restores it. Wait for it before the next, or a command."""
        suite = self.folder / "suite.robot"
        suite.write_text(SUITE, encoding="utf-8")
        return robot_run.start(self.folder, suite, "-v", f"PROJECT:{self.folder / 'project'}")

    def lineproof(self, *words: str) -> subprocess.CompletedProcess[str]:
        return lineproof(self.folder, *words, cwd=self.folder / "project")

    def restore(self, *words: str) -> subprocess.CompletedProcess[str]:
        return self.lineproof("restore", "lab", "--platform", "box", *words)

    @property
    def journals(self) -> list[Path]:
        return list((self.folder / "runtime" / "state" / "lineproof" / "routers").glob("[!.]*"))


@contextlib.contextmanager
def _beside(folder: Path, testbed: str, platform: str, software: str, more: str = "") -> Iterator[OpenTestbed]:
    """Provide a testbed that outlives runs, and a project whose testbed ``lab`` is it. *more*: lines of both files."""
    project = Project(ROOT)
    box, file = read_platform(project.platforms, platform), project.platforms / f"{platform}.yaml"
    with open_testbed(read_testbed(project.testbeds, testbed), box, software, platform_file=file) as bench:
        router, generator, known = bench.facts.router, bench.facts.generator.trex, folder / "known_hosts"
        assert generator is not None
        known.write_text(router.known_hosts.read_text())
        home, ports = robot_run.project(folder), (generator.sync_port, generator.async_port)
        robot_run.hardware(home, "lab", ports, router.model_copy(update={"known_hosts": known}), SET_UP * bool(more))
        names = ", ".join(box.software[software].interfaces[:2])
        (home / "variables" / "platforms" / "box.yaml").write_text(
            BOX.format(software=software, names=names, more=more)
        )
        yield bench


@contextlib.contextmanager
def kernel(folder: Path) -> Iterator[Rig]:
    """Provide this machine's kernel as the router, in a namespace. A run sets it up for all frames, and tunes it."""
    with _beside(folder, "netns", "linux_router", "linux", TUNING) as bench:

        def run(text: str) -> str:
            argv = (*inside(bench.facts.namespaces[-1]), "sh", "-c", text)
            return subprocess.run(argv, check=False, capture_output=True, text=True, timeout=120).stdout

        def cut() -> None:
            for process in psutil.Process().children(recursive=True):
                # each of them may end meanwhile
                with contextlib.suppress(psutil.Error):
                    names = process.name(), psutil.Process(process.ppid()).name()
                    if all(name.startswith("sshd") for name in names):
                        process.kill()

        run(HARDENED)
        yield Rig(folder, run, lambda: run(f"{SETTLE}; {KERNEL_STATE}"), cut)


@contextlib.contextmanager
def simulated(folder: Path) -> Iterator[Rig]:
    """Provide a simulated Netgate 6100 with VPP. Its runtime folder is this process's."""
    with (
        _beside(folder, "simulated", "netgate6100", "vpp") as bench,
        contextlib.closing(SshShell(bench.facts.router)) as shell,
    ):

        def run(words: str) -> str:
            return shell(words, 10.0).stdout

        yield Rig(folder, run, lambda: re.sub(r"(?m)^ *[0-9.]+(?= )", "", "".join(map(run, VPP_STATE))))
