"""A real VPP between the embedded server's veth pairs, as a running testbed of ``kind: hardware``.

VPP is found on PATH or in ``bin`` of ``VPP_HOME``; Debian has no package of it, FD.io has.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lineproof.session.session import Session
from lineproof.system.network_namespace import inside
from lineproof.testbed import namespaces, sshd
from lineproof.testbed.settings import default_side
from support import robot_run
from support.embedded_server import bench_process
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
ports: {port1: 10 Gbps, port2: 10 Gbps}
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
def rig(folder: Path) -> Iterator[Rig]:
    """A running testbed; everything is ended and removed afterwards."""
    tag = f"v{uuid.uuid4().hex[:6]}"
    with contextlib.ExitStack() as stack:
        topology = stack.enter_context(namespaces.build_topology(INTERFACES))
        _vpp(stack, folder, tag, topology)
        argv, ssh = sshd.prepare(folder / "ssh", topology.router)
        session = folder / "ssh" / "session"
        session.write_text(session.read_text().replace("#!/bin/sh\n", f"#!/bin/sh\nPATH={folder}/bin:$PATH\n", 1))
        _start(stack, *argv)
        ports = _server(stack, topology)
        testbeds = robot_run.project(folder) / "variables" / "testbeds"
        login = {"port": ssh.port, "user": ssh.user, "key": ssh.key_path, "known_hosts": ssh.known_hosts_path}
        (testbeds / "vpp-lab.yaml").write_text(TESTBED.format(rpc=ports["rpc_port"], pub=ports["pub_port"], **login))
        names = ", ".join(f"host-{name}" for name in INTERFACES)
        (testbeds.parent / "platforms" / "vpp-box.yaml").write_text(PLATFORM.format(interfaces=names))
        yield Rig(folder, ("-v", f"PROJECT:{folder / 'project'}", "-v", "TESTBED:vpp-lab"))


def _vpp(stack: contextlib.ExitStack, folder: Path, tag: str, topology: namespaces.Topology) -> None:
    (folder / "startup.conf").write_text(STARTUP.format(folder=folder, tag=tag))
    (folder / "bin").mkdir()
    wrapper = folder / "bin" / "vppctl"
    wrapper.write_text(f'#!/bin/sh\nexec {program("vppctl")} -s {folder}/cli.sock "$@"\n')
    wrapper.chmod(0o755)
    _start(stack, *inside(topology.router), str(program("vpp")), "-c", str(folder / "startup.conf"))
    version = [str(wrapper), "show", "version"]
    wait_until(
        lambda: subprocess.run(version, capture_output=True, check=False, timeout=60).returncode == 0,
        lambda: (folder / "vpp.log").read_text(),
    )
    for cable in topology.cables:
        made = ("create", "host-interface", "name", cable.router_interface, "hw-addr", cable.router_mac)
        subprocess.run([wrapper, *made], check=True, capture_output=True, timeout=60)


def _server(stack: contextlib.ExitStack, topology: namespaces.Topology) -> dict[str, Any]:
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
    specification = {"backend": "wire", "ports": ports, "clock_speed": 1.0, "host": "127.0.0.1"}
    _, facts = stack.enter_context(bench_process({**specification, "rpc_port": 0, "pub_port": 0}))
    return facts


def _start(stack: contextlib.ExitStack, *command: str) -> None:
    """Start *command*, which ends with *stack*."""
    nothing = subprocess.DEVNULL
    process = subprocess.Popen(command, start_new_session=True, stdin=nothing, stdout=nothing, stderr=nothing)

    def end() -> None:
        process.terminate()
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    stack.callback(end)


@contextlib.contextmanager
def opened_session(found: Rig, folder: Path) -> Iterator[Session]:
    """A session on it that is connected to nothing yet, with *folder* as its runtime folder."""
    with started(folder, ("vpp-box", "vpp", "vpp-lab"), home=found.folder / "project") as opened:
        yield opened
