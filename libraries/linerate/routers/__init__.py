"""Routers under test: telemetry, configure, restore. A router knows nothing of generators."""

from __future__ import annotations

from typing import Literal

from .base import Router, Shell
from .black_box import BlackBox
from .freebsd import FreeBsd
from .linux import Linux
from .shell_commands import EXCHANGE_LIMIT
from .vpp import Vpp

RouterKind = Literal["vpp", "linux", "freebsd", "none"]


def make_router(
    kind: RouterKind, shell: Shell, interfaces: tuple[str, ...] = (), limit: float = EXCHANGE_LIMIT, sudo: bool = False
) -> Router:
    """A router of *kind* behind *shell*; ``none``: one that has no shell.

    *limit*: s per exchange; *sudo*: the user is not root but may ``sudo -n``.
    """
    if kind == "none":
        return BlackBox()
    classes: dict[str, type[Vpp | Linux | FreeBsd]] = {"vpp": Vpp, "linux": Linux, "freebsd": FreeBsd}
    return classes[kind](shell, limit=limit, interfaces=interfaces, sudo=sudo)
