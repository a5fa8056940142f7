"""Routers that outlive a run, as testbeds of ``kind: hardware``: this machine's kernel, and simulated ones.

Their configuration can be read and changed beside the run.
"""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil

from lineproof.platforms import read_platform
from lineproof.project import Project
from lineproof.routers.ssh_shell import SshShell
from lineproof.system.known_hosts import write_known_hosts
from lineproof.system.network_namespace import inside
from lineproof.testbed import namespaces, sshd
from lineproof.testbed.files import read_testbed
from lineproof.testbed.opening import open_testbed
from support import robot_run
from support.command_line import lineproof
from support.far_server import TcpRelay
from support.fork_server import ForkedProcess
from support.paths import ROOT
from support.vpp_rig import start_process, start_server

TESTBED = """\
testbed: lab
kind: hardware
generator: {{address: 127.0.0.1, sync_port: {rpc}, async_port: {pub}, client: pypi}}
router: {{address: 127.0.0.1, port: {port}, user: {user}, key: {key}, known_hosts: {known_hosts}}}
prepare: configure
{more}
"""
SUITE = f"""\
*** Settings ***
Resource          {ROOT}/resources/acceptance.resource
Suite Setup       Prepare
Suite Teardown    Close Testbed

*** Test Cases ***
It Is Configured
    Configure Router

*** Keywords ***
Prepare
    Read Plan    box    ${{NONE}}    lab    quick
    Start Testbed
    Connect Generator
    Connect Router
"""
KERNEL_BOX = """\
platform: box
description: this machine's kernel
ports: {port1: 10 Gbps, port2: 10 Gbps}
software:
  linux: {shell: linux, version: as found, interfaces: [kr0, kr1]}
"""
TUNING = "tuning: {queues: 1, offloads: {tso: off, gro: on}, sysctls: {net.ipv4.ip_default_ttl: 65}}"
"""Settings that a veth pair and its namespace can be given."""
SETTLE = (
    "for i in $(seq 200); do"
    " ip -o link show | grep -E 'kr[01]@' | grep -Eq 'NO-CARRIER|state (DOWN|LOWERLAYERDOWN)' || break; sleep 0.1; done"
)
"""Both ends of each cable are up, but a kernel says a second or more later that a link has a carrier."""
HARDENED = (
    "sysctl -w net.ipv4.conf.all.accept_redirects=0 net.ipv4.conf.kr1.forwarding=1 net.ipv6.conf.kr1.forwarding=1"
)
"""Settings that the kernel forgets where forwarding is switched on and off again."""
KERNEL_STATE = (
    "ip -o -4 addr show; ip -o -6 addr show; ip -o -4 route show table all; ip -6 route show table all; ip rule show;"
    " ip -6 rule show; ip neigh show nud permanent; ip -o link show | sed 's/ qlen.*//';"
    " sysctl -a -r '(ip_forward|forwarding|accept_redirects|rp_filter|ipv6.*(disable_ipv6|accept_ra|addr_gen_mode"
    "|router_solicitations))$'; sysctl net.ipv4.ip_default_ttl; for name in kr0 kr1; do ethtool -k $name;"
    " ethtool -l $name; done; ip -f mpls route show; cat /proc/sys/net/mpls/platform_labels"
)
"""The commands whose output is compared before and after: all that a run may change."""
SIMULATED_STATE = {
    "vpp": "vppctl show interface address; vppctl show ip neighbors | cut -c13-; vppctl show ip fib 16.0.0.0/8;"
    " vppctl show ip fib 48.0.0.0/8",
    "linux": "ip addr; ip route; ip neigh; sysctl net.ipv4.ip_forward net.ipv4.conf.all.rp_filter; ethtool -k {card}",
    "freebsd": "ifconfig; netstat -rnW -f inet; arp -an; sysctl net.inet.ip.forwarding; pfctl -s info",
}


@dataclass(frozen=True)
class Rig:
    """A running testbed. ``state``: the router's configuration now; ``run``: what a shell on it prints.

    ``cut``: ends the SSH links of a run.
    """

    folder: Path
    run: Callable[[str], str]
    state: Callable[[], str]
    cut: Callable[[], None]

    def start(self) -> ForkedProcess:
        """A run that configures the router and restores it. Wait for it before the next, or before a command."""
        suite = self.folder / "suite.robot"
        suite.write_text(SUITE, encoding="utf-8")
        return robot_run.start(self.folder, suite, "-v", f"PROJECT:{self.folder / 'project'}")

    def lineproof(self, *words: str) -> subprocess.CompletedProcess[str]:
        """``lineproof WORDS`` in the project."""
        return lineproof(self.folder, *words, cwd=self.folder / "project")

    def restore(self, *words: str) -> subprocess.CompletedProcess[str]:
        """``lineproof restore``."""
        return self.lineproof("restore", "lab", "--platform", "box", *words)

    @property
    def journals(self) -> list[Path]:
        """The journals that are there."""
        return list((self.folder / "runtime" / "state" / "lineproof" / "routers").glob("*.jsonl"))


def _write(folder: Path, testbed: str, platform: str) -> None:
    variables = robot_run.project(folder) / "variables"
    (variables / "testbeds" / "lab.yaml").write_text(testbed)
    (variables / "platforms" / "box.yaml").write_text(platform)


@contextlib.contextmanager
def kernel(folder: Path, more: str = "") -> Iterator[Rig]:
    """This machine's kernel as the router, in a namespace. *more*: lines of the testbed's file."""
    with contextlib.ExitStack() as stack:
        topology = stack.enter_context(contextlib.closing(namespaces.build_topology(("kr0", "kr1"))))
        argv, ssh = sshd.prepare(folder / "ssh", topology.router)
        server = start_process(stack, *argv)
        ports = start_server(stack, topology)
        login = {"port": ssh.port, "user": ssh.user, "key": ssh.key_path, "known_hosts": ssh.known_hosts_path}
        _write(
            folder,
            TESTBED.format(rpc=ports["rpc_port"], pub=ports["pub_port"], more=more, **login),
            KERNEL_BOX.replace("kr1]", f"kr1], {TUNING}"),
        )

        def run(text: str) -> str:
            argv = (*inside(topology.router), "sh", "-c", text)
            return subprocess.run(argv, check=False, capture_output=True, text=True, timeout=120).stdout

        def cut() -> None:
            for session in psutil.Process(server.pid).children(recursive=True):
                with contextlib.suppress(psutil.Error):
                    session.kill()

        run(HARDENED)
        yield Rig(folder, run, lambda: run(f"{SETTLE}; {KERNEL_STATE}"), cut)


@contextlib.contextmanager
def simulated(folder: Path, software: str) -> Iterator[Rig]:
    """A simulated Netgate 6100 that outlives runs: it ends here. Its runtime folder is this process's."""
    project = Project(ROOT)
    platform = read_platform(project.platforms, "netgate6100")
    file = project.platforms / "netgate6100.yaml"
    testbed = read_testbed(project.testbeds, "simulated")
    opened = open_testbed(testbed, platform, software, platform_file=file)
    with opened as bench, contextlib.closing(TcpRelay(bench.facts.router.port)) as link:
        router, generator = bench.facts.router, bench.facts.generator.trex
        assert generator is not None
        known = folder / "known_hosts"
        write_known_hosts(known, "127.0.0.1", link.port, router.known_hosts_path.read_text().split(maxsplit=1)[1])
        login = {"port": link.port, "user": router.user, "key": router.key_path}
        text = TESTBED.format(rpc=generator.sync_port, pub=generator.async_port, known_hosts=known, more="", **login)
        kind = platform.software[software].shell
        names = ", ".join(platform.software[software].interfaces)
        one = "linux: {shell: linux, version: as found, interfaces: [kr0, kr1]}"
        here = f"{software}: {{shell: {kind}, version: as found, interfaces: [{names}]}}"
        _write(folder, text, KERNEL_BOX.replace(one, here))
        with contextlib.closing(SshShell(router)) as shell:

            def run(words: str) -> str:
                return shell(words, 10.0).stdout

            card = platform.software[software].interfaces[0]
            if kind == "linux":
                # the kernel switches it off when it begins to forward
                run(f"ethtool -K {card} lro on")
            yield Rig(folder, run, lambda: run(SIMULATED_STATE[kind].format(card=card)), link.cut)
