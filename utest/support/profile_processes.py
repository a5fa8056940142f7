"""Processes that load profiles, forked from one that has imported trex-stl-lib, which takes a second of each.

A forked process runs the program that :mod:`lineproof.generators.trex.profile_loader` starts, to its end. Suites with
such traffic, and clients that TRex ships, have it started as users do.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from lineproof.system import children
from support.fork_server import ForkServer


class ProfileProcesses:
    """Starts those processes. Stands for :mod:`lineproof.system.children` in the loader; :meth:`close` it."""

    TimeoutExpired = children.TimeoutExpired
    python = staticmethod(children.python)
    environment = staticmethod(children.environment)

    def __init__(self) -> None:
        self.server = ForkServer(__name__)

    def run(
        self, argv: Sequence[str], limit: float, *, env: Mapping[str, str], cwd: Path
    ) -> subprocess.CompletedProcess[str]:
        """Run as :func:`lineproof.system.children.run` does; forked, unless the client is one that TRex ships."""
        arguments = argv[len(children.python("")) :]
        if len(arguments) > 1:
            return children.run(argv, limit, env=env, cwd=cwd)
        return self.server.run(arguments, env, cwd, limit)

    def close(self) -> None:
        self.server.close()


def preload() -> None:
    from lineproof.generators.trex.client import profile_program, pypi

    profile_program.fix_addresses()  # before a packet is made: the first one keeps the defaults
    pypi.load_library()
    import trex_stl_lib.api  # noqa: F401


def main(argv: Sequence[str]) -> None:
    """Run the loader's program, which ends its process."""
    from lineproof.generators.trex.client import profile_program

    sys.argv = [profile_program.__file__, *argv]
    profile_program.main()
