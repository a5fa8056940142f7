"""The embedded server in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from support.paths import LIBRARIES, VARIABLES


@dataclass(frozen=True)
class EmbeddedServer:
    """A running server and its first line."""

    process: subprocess.Popen[bytes]
    facts: dict[str, Any]
    log: Path

    @property
    def rpc(self) -> int:
        return int(self.facts["rpc_port"])

    @property
    def runs(self) -> bool:
        return self.process.poll() is None


@contextmanager
def bench_process(
    specification: dict[str, Any], errors: IO[bytes] | None = None
) -> Iterator[tuple[subprocess.Popen[bytes], dict[str, Any]]]:
    """Provide a process of the bench and its first line, until the context ends; *errors*: its standard error."""
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "lineproof_bench"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=errors,
        env=os.environ | {"PYTHONPATH": str(LIBRARIES)},
    )
    assert process.stdin is not None and process.stdout is not None
    try:
        process.stdin.write(json.dumps(specification).encode() + b"\n")
        process.stdin.flush()
        yield process, json.loads(process.stdout.readline())
    finally:
        process.stdin.close()
        try:
            process.wait(20)
        finally:
            process.kill()
            process.stdout.close()


@contextmanager
def embedded_server(folder: Path, **specification: Any) -> Iterator[EmbeddedServer]:
    """Provide a simulated Netgate 6100, or what *specification* says, until the context ends."""
    platform = VARIABLES / "platforms" / "netgate6100.yaml"
    chosen = {"backend": "model", "platform_file": str(platform), "software": "vpp", "seed": 1, **specification}
    log = folder / "server.log"
    with log.open("wb") as out, bench_process(chosen, out) as (process, facts):
        yield EmbeddedServer(process, facts, log)
