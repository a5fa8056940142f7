"""``lineproof serve`` in a process of its own, and a project whose testbed ``lab`` of ``kind: hardware`` names it."""

from __future__ import annotations

import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from lineproof.system.login import Login
from support import robot_run
from support.command_line import PROGRAM, environment

PREPARED = """\
prepare: configure
sides:
  - {address: 100.65.1.1/24, peer: 100.65.1.2, peer_mac: "02:00:00:00:00:01", network: 16.0.0.0/8}
  - {address: 100.65.2.1/24, peer: 100.65.2.2, peer_mac: "02:00:00:00:00:02", network: 48.0.0.0/8}
"""


@dataclass(frozen=True)
class ServedBench:
    """Words that ``lineproof serve`` printed, and the TCP ports in it."""

    said: str
    sync: int
    events: int

    @property
    def router(self) -> Login:
        """The login of its router; over a cable one that is never asked."""
        login = re.search(r"-i (\S+) .*KnownHostsFile=(\S+) .*-p (\d+) (\w+)@", self.said)
        key, hosts, ssh, user = login.groups() if login else ("/nowhere", "/nowhere", "22", "nobody")
        return Login(address="127.0.0.1", port=int(ssh), user=user, key=Path(key), known_hosts=Path(hosts))

    def project(self, folder: Path) -> Path:
        home = robot_run.project(folder)
        robot_run.hardware(home, "lab", (self.sync, self.events), self.router, PREPARED)
        return home


@contextmanager
def served(folder: Path, *options: str, project: Path = robot_run.ROOT) -> Iterator[ServedBench]:
    """Provide the served Netgate 6100, until the context ends; *project*: whose files are read."""
    ports = ["--rpc-port", "0", "--pub-port", "0"]
    process = subprocess.Popen(
        [*PROGRAM, "serve", "--platform", "netgate6100", *ports, *options],
        stdout=subprocess.PIPE,
        text=True,
        env=environment(folder),
        cwd=project,
    )
    assert process.stdout is not None
    said = ""
    try:
        for line in process.stdout:
            said += line
            if line.startswith("Ctrl-C"):
                break
        shown = re.search(r"sync port (\d+), async port (\d+)", said)
        assert shown, said
        yield ServedBench(said, int(shown[1]), int(shown[2]))
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(20)
        process.stdout.close()
