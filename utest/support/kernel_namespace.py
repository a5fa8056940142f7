"""A network namespace with the two interfaces of a router, for tests of commands on a real kernel."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager

from lineproof.routers.base import Result, Shell
from lineproof.system.network_namespace import Namespace, configure, inside


@contextmanager
def kernel_namespace() -> Iterator[Shell]:
    """A shell in a namespace with ``eth1`` and ``eth2``, which goes with the context. Needs root."""
    with closing(Namespace.start()) as namespace:

        def shell(command: str, limit: float) -> Result:
            argv = [*inside(namespace.path), "sh", "-c", command]
            done = subprocess.run(argv, capture_output=True, text=True, timeout=limit, check=False)
            return Result(done.stdout, done.stderr, done.returncode, 0.0)

        configure(namespace.path, *(f"link add eth{index} type veth peer name peer{index}" for index in (1, 2)))
        yield shell
