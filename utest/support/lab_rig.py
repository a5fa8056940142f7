"""A labgrid coordinator and an exporter on loopback, real ones, with a place for each of some benches."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
import yaml
from labgrid.remote.generated import labgrid_coordinator_pb2, labgrid_coordinator_pb2_grpc

from support.patience import wait_until

LIMIT = 60.0
"""Seconds that anything of labgrid's may take."""


def client(address: str, *words: str, user: str = "tester") -> str:
    """Return what ``labgrid-client`` prints as *user* of the host ``here``."""
    done = subprocess.run(
        [sys.executable, "-m", "labgrid.remote.client", "-x", address, *words],
        env={**os.environ, "LG_USERNAME": user, "LG_HOSTNAME": "here"},
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(done.stdout + done.stderr)
    return done.stdout


@dataclass
class Lab:
    """A lab whose processes keep their files in *folder*."""

    folder: Path
    port: int = 0
    coordinator: subprocess.Popen[bytes] | None = None
    _opened: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def start_coordinator(self) -> None:
        """Start it, with the places that it had before, at the port that it had before."""
        self.coordinator = self._start("coordinator", "-l", f"127.0.0.1:{self.port}")
        self.port = int(_awaited(self.folder / "coordinator.log", rb"listening on \S+:(\d+)"))

    def start_exporter(self, resources: str) -> None:
        (self.folder / "exporter.yaml").write_text(resources, encoding="utf-8")
        self._start("exporter", "-c", self.address, "-n", "exporter", "--hostname", "127.0.0.1", "exporter.yaml")

    def _start(self, part: str, *words: str) -> subprocess.Popen[bytes]:
        argv = [sys.executable, "-u", "-m", f"labgrid.remote.{part}", *words]
        with (self.folder / f"{part}.log").open("wb") as log:
            process = subprocess.Popen(argv, cwd=self.folder, stdout=log, stderr=subprocess.STDOUT)
        self._opened.append(process)
        return process

    def holders(self) -> dict[str, str]:
        """Place -> who has it, ``host/user``."""
        # not by labgrid's client, which takes most of a second to start
        with grpc.insecure_channel(self.address) as channel:
            coordinator: Any = labgrid_coordinator_pb2_grpc.CoordinatorStub(channel)
            answer = coordinator.GetPlaces(labgrid_coordinator_pb2.GetPlacesRequest(), timeout=LIMIT)
        return {place.name: place.acquired for place in answer.places if place.acquired}

    def close(self) -> None:
        for process in reversed(self._opened):
            process.kill()
            process.wait(10)


@contextlib.contextmanager
def lab(folder: Path, names: Sequence[str], resources: str = "") -> Iterator[Lab]:
    """Provide a lab with the places *names*, tagged ``kind=bench``; *resources*: an exporter's, if any."""
    folder.mkdir(exist_ok=True)
    # each has the exporter's group of its name
    match, now = {"exporter": "exporter", "cls": "*", "name": None, "rename": None}, time.time()
    made = {"aliases": [], "comment": "", "tags": {"kind": "bench"}, "created": now, "changed": now}
    places = {name: {**made, "matches": [{**match, "group": name}]} for name in names}
    (folder / "places.yaml").write_text(yaml.safe_dump(places), encoding="utf-8")
    rig = Lab(folder)
    try:
        rig.start_coordinator()
        if resources:
            rig.start_exporter(resources)
        yield rig
    finally:
        rig.close()


def _awaited(log: Path, pattern: bytes) -> bytes:
    wait_until(lambda: re.search(pattern, log.read_bytes()), lambda: log.read_text(errors="replace"), LIMIT)
    matches: list[bytes] = re.findall(pattern, log.read_bytes())
    return matches[0]
