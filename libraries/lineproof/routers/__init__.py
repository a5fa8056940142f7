"""Routers under test: telemetry, configure, restore. A router knows nothing of generators."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path

from ..errors import TestbedError
from ..platforms import RouterKind as RouterKind
from ..system.ssh_shell import Result, Shell
from .described import Router
from .description import RouterDescription, load_description
from .freebsd import FreeBsd
from .linux import Linux
from .vpp import Vpp

BUILT_IN: dict[str, type[Router]] = {"vpp": Vpp, "linux": Linux, "freebsd": FreeBsd}

WHY_UNREAD = "the router is a black box (shell: none), whose own counts are not read"


def make_router(
    kind: RouterKind,
    shell: Shell,
    interfaces: tuple[str, ...] = (),
    sudo: bool = False,
    file: RouterDescription | None = None,
) -> Router:
    """A router of *kind* behind *shell*; ``none``: one that has no shell; ``generic``: one that *file* describes.

    *sudo*: the user is not root but may ``sudo -n``.
    """
    if kind == "none":
        return _BlackBox(no_shell, RouterDescription(shell=kind), interfaces)
    if kind == "generic" and file is None:
        raise TestbedError("a router of 'shell: generic' is not simulated; expected a testbed of 'kind: hardware'")
    return BUILT_IN.get(kind, Router)(shell, file or described(kind), interfaces, sudo)


@functools.cache
def described(kind: str) -> RouterDescription:
    """Return the description of a router of :data:`BUILT_IN`."""
    return load_description(Path(__file__).parent / kind / f"{kind}.yaml")[0]


class _BlackBox(Router):
    """A router that is judged from outside: nobody logs in to it, and a plan that configures one is refused."""

    def identify(self) -> Mapping[str, str]:
        """Return that it was not asked."""
        return {"software": "not asked: a black box (shell: none)"}


def no_shell(command: str, limit: float) -> Result:
    """In place of the shell of a black box. Raises TestbedError."""
    raise TestbedError(
        f"'{command[:80]}' cannot be run: {WHY_UNREAD}; expected a platform whose software has a 'shell'"
    )
