"""A network namespace with the two interfaces of a router, for tests of commands on a real kernel."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from lineproof.routers.base import Result, Shell


@contextmanager
def kernel_namespace() -> Iterator[Shell]:
    """A shell in a namespace with ``eth1`` and ``eth2``, which goes with the context. Needs root."""
    name = f"lr-test-{os.getpid()}"
    commands = [
        f"ip netns add {name}",
        f"ip -n {name} link add eth1 type veth peer name peer1",
        f"ip -n {name} link add eth2 type veth peer name peer2",
    ]

    def shell(command: str, limit: float) -> Result:
        argv = ["ip", "netns", "exec", name, "sh", "-c", command]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=limit, check=False)
        return Result(done.stdout, done.stderr, done.returncode, 0.0)

    try:
        for command in commands:
            subprocess.run(command.split(), check=True, capture_output=True, timeout=60)
        yield shell
    finally:
        subprocess.run(["ip", "netns", "del", name], capture_output=True, timeout=60, check=False)
