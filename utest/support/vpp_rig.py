"""A real VPP between the embedded server's veth pairs, as a running testbed of ``kind: hardware``.

VPP is found on PATH or in ``bin`` of ``VPP_HOME``; Debian has no package of it, FD.io has.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from lineproof.session.session import Session
from lineproof.system.network_namespace import inside
from lineproof.testbed import namespaces, sshd
from lineproof.testbed.settings import default_side
from support import robot_run
from support.patience import wait_until
from support.simulated_session import started

INTERFACES = ("vr0", "vr1")
STARTUP = """\
unix {{ nodaemon nosyslog cli-listen {folder}/cli.sock runtime-dir {folder} log {folder}/vpp.log }}
api-segment {{ prefix {tag} }}
socksvr {{ socket-name {folder}/api.sock }}
statseg {{ socket-name {folder}/stats.sock size 32m page-size 4k }}
memory {{ main-heap-size 256m main-heap-page-size 4k }}
buffers {{ buffers-per-numa 8192 page-size 4k }}
{cpu}
plugins {{ plugin default {{ disable }} plugin af_packet_plugin.so {{ enable }} }}
"""
TESTBED = """\
testbed: vpp-lab
kind: hardware
generator: {{address: 127.0.0.1, sync_port: {rpc}, async_port: {pub}, client: pypi}}
router: {{address: 127.0.0.1, port: {port}, user: {user}, key: {key}, known_hosts: {known_hosts}}}
tolerance: {{under: 0.01, over: 0.01}}
"""
PLATFORM = """\
platform: vpp-box
description: a real VPP with af_packet interfaces
ports: {{port1: 10 Gbps, port2: 10 Gbps}}
software:
  vpp: {{shell: vpp, version: as found, interfaces: [{interfaces}]}}
"""


def program(name: str) -> str | None:
    """The path of VPP's program *name*."""
    home = os.environ.get("VPP_HOME", "")
    return shutil.which(name, path=str(Path(home) / "bin")) if home else shutil.which(name)


def missing() -> str:
    """Why no VPP can run here; "" if it can."""
    if program("vpp") is None or program("vppctl") is None:
        return "needs VPP: vpp and vppctl on PATH, or VPP_HOME has to name its installation"
    return ""


@dataclass(frozen=True)
class Rig:
    """A running testbed. ``options``: Robot's, for suites of platform ``vpp-box``."""

    folder: Path
    options: tuple[str, ...]

    def cli(self, *words: str) -> str:
        """VPP's output for *words*."""
        command = [str(self.folder / "bin" / "vppctl"), *words]
        return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout


@contextlib.contextmanager
def rig(folder: Path, polling: bool = False) -> Iterator[Rig]:
    """A running testbed; everything is ended and removed afterwards. *polling*: a worker that polls all the time."""
    tag = f"v{uuid.uuid4().hex[:6]}"
    with contextlib.ExitStack() as stack:
        topology = stack.enter_context(contextlib.closing(namespaces.build_topology(INTERFACES)))
        _vpp(stack, folder, tag, topology, polling)
        argv, ssh = sshd.prepare(folder / "ssh", topology.router)
        session = folder / "ssh" / "session"
        session.write_text(session.read_text().replace("#!/bin/sh\n", f"#!/bin/sh\nPATH={folder}/bin:$PATH\n", 1))
        start_process(stack, *argv)
        ports = start_server(stack, topology)
        testbeds = robot_run.project(folder) / "variables" / "testbeds"
        login = {"port": ssh.port, "user": ssh.user, "key": ssh.key_path, "known_hosts": ssh.known_hosts_path}
        (testbeds / "vpp-lab.yaml").write_text(TESTBED.format(rpc=ports["rpc_port"], pub=ports["pub_port"], **login))
        names = ", ".join(f"host-{name}" for name in INTERFACES)
        (testbeds.parent / "platforms" / "vpp-box.yaml").write_text(PLATFORM.format(interfaces=names))
        yield Rig(folder, ("-v", f"PROJECT:{folder / 'project'}", "-v", "TESTBED:vpp-lab"))


def _vpp(stack: contextlib.ExitStack, folder: Path, tag: str, topology: namespaces.Topology, polling: bool) -> None:
    cpu = "cpu { main-core 0 corelist-workers 1 }" if polling else ""
    (folder / "startup.conf").write_text(STARTUP.format(folder=folder, tag=tag, cpu=cpu))
    (folder / "bin").mkdir()
    wrapper = folder / "bin" / "vppctl"
    wrapper.write_text(f'#!/bin/sh\nexec {program("vppctl")} -s {folder}/cli.sock "$@"\n')
    wrapper.chmod(0o755)
    start_process(stack, *inside(topology.router), str(program("vpp")), "-c", str(folder / "startup.conf"))
    version = [str(wrapper), "show", "version"]
    wait_until(
        lambda: subprocess.run(version, capture_output=True, check=False, timeout=60).returncode == 0,
        lambda: (folder / "vpp.log").read_text(),
    )
    for cable in topology.cables:
        made = ("create", "host-interface", "name", cable.router_interface, "hw-addr", cable.router_mac)
        subprocess.run([wrapper, *made], check=True, capture_output=True, timeout=60)
        if polling:
            mode = ("set", "interface", "rx-mode", f"host-{cable.router_interface}", "polling")
            subprocess.run([wrapper, *mode], check=True, capture_output=True, timeout=60)


def start_server(stack: contextlib.ExitStack, topology: namespaces.Topology) -> dict[str, int]:
    """The embedded server on *topology*'s ports; returns its TCP ports. It ends with *stack*."""
    ports = [
        {
            "index": cable.index,
            "interface": cable.port,
            "netns": topology.generator,
            "mac": cable.port_mac,
            "peer_mac": cable.router_mac,
            "ipv4": default_side(cable.index).peer,
            "peer_ipv4": default_side(cable.index).address.partition("/")[0],
            "speed_bps": 10e9,
        }
        for cable in topology.cables
    ]
    specification = {
        "backend": "wire",
        "ports": ports,
        "clock_speed": 1.0,
        "host": "127.0.0.1",
        "rpc_port": 0,
        "pub_port": 0,
    }
    server = start_process(stack, sys.executable, "-P", "-m", "lineproof_bench")
    assert server.stdin and server.stdout
    server.stdin.write(json.dumps(specification).encode() + b"\n")
    server.stdin.flush()
    facts: dict[str, int] = json.loads(server.stdout.readline())
    return facts


def start_process(stack: contextlib.ExitStack, *command: str) -> subprocess.Popen[bytes]:
    """*command*, which ends with *stack*."""
    pipe, nothing = subprocess.PIPE, subprocess.DEVNULL
    found = subprocess.Popen(command, start_new_session=True, stdin=pipe, stdout=pipe, stderr=nothing)

    def end() -> None:
        if found.stdin:
            found.stdin.close()
        found.terminate()
        try:
            found.wait(5)
        except subprocess.TimeoutExpired:
            found.kill()
            found.wait()
        if found.stdout:
            found.stdout.close()

    stack.callback(end)
    return found


@contextlib.contextmanager
def opened_session(found: Rig, folder: Path, goal: str = "quick") -> Iterator[Session]:
    """A session on it that is connected to nothing yet, with *folder* as its runtime folder."""
    with started(folder, ("vpp-box", "vpp", "vpp-lab"), home=found.folder / "project", goal=goal) as opened:
        yield opened
