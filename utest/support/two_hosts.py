"""Two hosts of a generator, each a network namespace with an SSH server, whose ports are the ends of one cable."""

from __future__ import annotations

import contextlib
import subprocess
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import yaml

from lineproof.errors import TestbedError
from lineproof.generators.base import Generator
from lineproof.platforms import read_platform
from lineproof.session.generator import connect_generator
from lineproof.testbed import netns, sshd
from lineproof.testbed.opening import OpenTestbed, hardware_facts
from lineproof.testbed.process import Belongings
from lineproof.testbed.settings import HardwareSettings, read_testbed
from support.paths import ROOT


@dataclass(frozen=True)
class TwoHosts:
    """``ports``: each as a testbed's file names it from this machine; ``remote``: over SSH; ``names``: namespaces."""

    folder: Path
    names: tuple[str, str]
    ports: list[dict[str, object]]
    remote: list[dict[str, object]]

    def write(self, kind: str, over_ssh: bool = False, **keys: object) -> None:
        generator = {"type": kind, "ports": self.remote if over_ssh else self.ports, **keys}
        testbed = {"testbed": "lab", "kind": "hardware", "generator": generator, "prepare": "none"}
        router = {"address": "192.0.2.1", "user": "nobody", "key": "id"}
        (self.folder / "lab.yaml").write_text(yaml.safe_dump({**testbed, "router": router}), encoding="utf-8")

    def connect(self) -> Generator:
        """Yield the generator of the testbed ``lab``, with its ports claimed."""
        testbed = read_testbed(self.folder, "lab")
        assert isinstance(testbed, HardwareSettings)
        platform = read_platform(ROOT / "variables" / "platforms", "linux_router")
        return connect_generator(OpenTestbed(hardware_facts(testbed, platform, "linux")))

    def running(self, program: str) -> list[str]:
        running = []
        for name in self.names:
            pids = subprocess.run(["ip", "netns", "pids", name], capture_output=True, text=True, check=True).stdout
            for pid in pids.split():
                with contextlib.suppress(OSError):
                    arguments = Path(f"/proc/{pid}/cmdline").read_text().split("\0")
                    running += [pid] if any(Path(argument).name == program for argument in arguments[:2]) else []
        return running

    def shown(self, *command: str) -> str:
        """Return what *command* of ``ip netns exec`` shows in the first namespace."""
        done = subprocess.run(
            ["ip", "netns", "exec", self.names[0], *command], capture_output=True, text=True, check=True
        )
        return done.stdout


@cache
def no_namespaces() -> str | None:
    """Return why there can be no network namespaces here, by trying it once."""
    try:
        netns.build_topology(bypass=True).close()
    except TestbedError as error:
        return str(error)
    return None


@contextlib.contextmanager
def two_hosts(folder: Path) -> Iterator[TwoHosts]:
    """Both hosts, as root, until the end."""
    names, ports, remote = [], [], []
    with contextlib.ExitStack() as stack:
        belongings = stack.enter_context(contextlib.closing(Belongings()))
        topology = netns.build_topology(bypass=True, apart=True)
        belongings.later(topology.close)
        first, second = topology.cables
        for own, other in ((first, second), (second, first)):
            where: dict[str, object] = {"interface": own.port, "router_mac": other.port_mac}
            # a testbed's file tells a namespace by its name
            names.append(f"lr-test-{uuid.uuid4().hex[:6]}")
            subprocess.run(
                ["ip", "netns", "attach", names[-1], Path(own.namespace).parents[1].readlink().name], check=True
            )
            stack.callback(subprocess.run, ["ip", "netns", "del", names[-1]], check=False)
            ports.append({**where, "namespace": names[-1]})
            server = sshd.start(belongings, own.namespace, f"ssh{own.index}")
            ssh = server.model_dump(mode="json", include={"user", "port", "key", "known_hosts"})
            remote.append({**where, "address": server.address, "ssh": ssh})
        yield TwoHosts(folder, (names[0], names[1]), ports, remote)
