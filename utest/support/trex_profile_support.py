"""Profiles in TRex's format, for tests."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from lineproof.core.traffic.catalogue import Catalogue
from lineproof.core.traffic.profiles import Profile
from lineproof.generators.trex.driver import TrexGenerator, TrexSettings
from lineproof.generators.trex.profile_loader import TrexProfileLoader
from support import robot_run
from support.paths import VARIABLES
from support.server_support import FakeBackend, serving

HOME = os.environ.get("TREX_HOME", "")
NEEDED = "needs the client that TRex ships: TREX_HOME has to name TRex's scripts folder"
CLIENTS = ["pypi", pytest.param(HOME, id="official", marks=pytest.mark.skipif(not HOME, reason=NEEDED))]

WORDS = VARIABLES / "profiles"

# the common part of the profiles below: UDP frames, the addresses of direction 1 swapped
HEAD = """\
from trex_stl_lib.api import *

def stream(size=64, direction=0, mode=None, vm=None, **more):
    ends = ["16.0.0.1", "48.0.0.1"]
    head = Ether() / IP(src=ends[direction], dst=ends[1 - direction]) / UDP(sport=1025, dport=12)
    packet = STLPktBuilder(pkt=head / (b"x" * (size - 4 - len(head))), vm=vm)
    return STLStream(packet=packet, mode=mode or STLTXCont(pps=1), **more)

"""
TAIL = """
def register():
    return Ours()
"""


class Own:
    """A project with its own profile, ``mine``."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.traffic = folder, folder / "traffic"
        self.traffic.mkdir()
        for path in WORDS.glob("*.yaml"):
            (folder / path.name).write_text(path.read_text())

    def read(
        self, text: str, tunables: str = "{}", client: str = "", name: str = "mine.py", more: str = ""
    ) -> Catalogue:
        (self.traffic / name).write_text(text)
        entry = f"{{kind: trex, name: mine, file: traffic/{name}, tunables: {tunables}, about: ours, {more}}}"
        (self.folder / "own.yaml").write_text(f"entries:\n  - {entry}\n")
        return Catalogue.read(self.folder, TrexProfileLoader("" if client == "pypi" else client))

    def profile(self, *words: str, **named: str) -> Profile:
        return self.read(*words, **named).profile(["mine"])


@contextmanager
def sending(backend: FakeBackend, client: str) -> Iterator[TrexGenerator]:
    """Provide a generator that uses *client* with a server over *backend*."""
    with serving(backend) as server:
        settings = TrexSettings("127.0.0.1", server.rpc_port, server.pub_port, client=client)
        with closing(TrexGenerator(settings)) as generator:
            yield generator


def project_with(folder: Path, client: str = "", **profiles: str) -> None:
    """Copy this project's variables to *folder*, with *profiles* as words; *client* of the simulated testbed."""
    shutil.copytree(robot_run.ROOT / "variables", folder / "variables")
    if client:
        testbed = folder / "variables" / "testbeds" / "simulated.yaml"
        testbed.write_text(f"{testbed.read_text(encoding='utf-8')}client: {client}\n", encoding="utf-8")
    entries = []
    for name, text in profiles.items():
        (folder / f"{name}.py").write_text(text)
        entries.append(f"  - {{kind: trex, name: {name}, file: ../../{name}.py, about: a test}}\n")
    (folder / "variables" / "profiles" / "own.yaml").write_text(f"entries:\n{''.join(entries)}")


def ours(body: str, signature: str = "self, direction=0, **kwargs", head: str = HEAD) -> str:
    lines = "\n".join(f"        {line}" for line in body.splitlines())
    return f"{head}class Ours(object):\n    def get_streams({signature}):\n{lines}\n{TAIL}"


ARGPARSE = """\
import argparse
parser = argparse.ArgumentParser()
parser.add_argument('--size', type=int, default=64)
parser.add_argument('--both', action='store_true')
given = parser.parse_args(tunables)
size, direction = given.size, kwargs.get('direction', locals().get('direction', 0))
return [stream(size, direction)]
"""

LATENCY = """\
return [stream(64, direction, STLTXCont(pps=4), flow_stats=STLFlowStats(pg_id=5 + direction)),
        stream(64, direction, STLTXCont(pps=1000), flow_stats=STLFlowLatencyStats(pg_id=7 + direction))]"""
