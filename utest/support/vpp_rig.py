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

from lineproof.session.session import Session
from lineproof.system.network_namespace import inside
from lineproof.testbed import netns, sshd
from lineproof.testbed.process import Belongings
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
PLATFORM = """\
platform: vpp-box
description: a real VPP with af_packet interfaces
ports: {{port1: 10 Gbps, port2: 10 Gbps}}
software:
  vpp: {{shell: vpp, version: as found, interfaces: [{interfaces}]}}
"""


def program(name: str) -> str | None:
    home = os.environ.get("VPP_HOME", "")
    return shutil.which(name, path=str(Path(home) / "bin")) if home else shutil.which(name)


def missing() -> str:
    """Return why no VPP can run here; "" if it can."""
    if program("vpp") is None or program("vppctl") is None:
        return "needs VPP: vpp and vppctl on PATH, or VPP_HOME has to name its installation"
    return ""


@dataclass(frozen=True)
class Rig:
    """A running testbed. ``options``: Robot's, for suites of platform ``vpp-box``."""

    folder: Path
    options: tuple[str, ...]

    def cli(self, *words: str) -> str:
        command = [str(self.folder / "bin" / "vppctl"), *words]
        return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout


@contextlib.contextmanager
def rig(folder: Path, polling: bool = False) -> Iterator[Rig]:
    """Provide a running testbed, and remove it afterwards. *polling*: a worker that polls all the time."""
    with contextlib.ExitStack() as stack:
        belongings = stack.enter_context(contextlib.closing(Belongings()))
        topology = netns.build_topology(INTERFACES)
        belongings.later(topology.close)
        _vpp(stack, folder, topology, polling)
        router = sshd.start(belongings, topology.router)
        session = belongings.folder / "ssh" / "session"
        session.write_text(session.read_text().replace("#!/bin/sh\n", f"#!/bin/sh\nPATH={folder}/bin:$PATH\n", 1))
        sides = [default_side(cable.index).of_router("", cable.port_mac) for cable in topology.cables]
        server = netns.start_embedded(belongings, topology, sides, (10e9, 10e9))
        home, ports = robot_run.project(folder), (server["rpc_port"], server["pub_port"])
        robot_run.hardware(home, "vpp-lab", ports, router, "tolerance: {under: 0.01, over: 0.01}")
        names = ", ".join(f"host-{name}" for name in INTERFACES)
        (home / "variables" / "platforms" / "vpp-box.yaml").write_text(PLATFORM.format(interfaces=names))
        yield Rig(folder, ("-v", f"PROJECT:{home}", "-v", "TESTBED:vpp-lab"))


def _vpp(stack: contextlib.ExitStack, folder: Path, topology: netns.Topology, polling: bool) -> None:
    cpu = "cpu { main-core 0 corelist-workers 1 }" if polling else ""
    (folder / "startup.conf").write_text(STARTUP.format(folder=folder, tag=f"v{uuid.uuid4().hex[:6]}", cpu=cpu))
    (folder / "bin").mkdir()
    wrapper = folder / "bin" / "vppctl"
    wrapper.write_text(f'#!/bin/sh\nexec {program("vppctl")} -s {folder}/cli.sock "$@"\n')
    wrapper.chmod(0o755)
    command = (*inside(topology.router), str(program("vpp")), "-c", str(folder / "startup.conf"))
    nothing = subprocess.DEVNULL
    vpp = subprocess.Popen(command, start_new_session=True, stdin=nothing, stdout=nothing, stderr=nothing)
    stack.callback(vpp.wait, 30)
    stack.callback(vpp.terminate)
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


@contextlib.contextmanager
def opened_session(rig: Rig, folder: Path, goal: str = "quick") -> Iterator[Session]:
    """Provide a session on it that is connected to nothing yet, with *folder* as its runtime folder."""
    with started(folder, ("vpp-box", "vpp", "vpp-lab"), home=rig.folder / "project", goal=goal) as opened:
        yield opened
