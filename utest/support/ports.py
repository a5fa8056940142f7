"""TCP ports for servers of tests, several of which run at the same time."""

from __future__ import annotations

import contextlib
import random
import socket

LOWEST, HIGHEST = 20_000, 32_000
"""Below the ports that Linux gives those who name none, which servers of other tests are."""


def free_port() -> int:
    """Return a port of this machine that nothing listens at, and that no other process is given meanwhile."""
    for port in random.sample(range(LOWEST, HIGHEST), 100):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise OSError(f"no port of {LOWEST} to {HIGHEST} is free")


def reachable(port: int) -> bool:
    with contextlib.suppress(OSError):
        socket.create_connection(("127.0.0.1", port), 1).close()
        return True
    return False
