"""Simulated VPP and FreeBSD take what ``set_up`` sends to real ones, and show it."""

from __future__ import annotations

import pytest

from lineproof.core.traffic.catalogue import Catalogue
from lineproof.core.traffic.frame_kinds import FrameKinds
from lineproof.routers import RouterKind, make_router
from lineproof.routers.base import Shell
from support.fake_router import SIDES, shell_of, simulated
from support.paths import VARIABLES

FRAMES = FrameKinds.of(Catalogue.read(VARIABLES / "profiles"), ("ipv6", "vlan", "mpls"))


@pytest.mark.parametrize("kind", ["vpp", "freebsd"])
def test_what_is_set_up_is_shown_and_taken_back(kind: RouterKind) -> None:
    shell = shell_of(simulated(kind)[0])
    first = planned(kind, shell)
    assert len(first) > 10
    router = make_router(kind, shell)
    router.configure(SIDES)
    router.configure_frames(SIDES, FRAMES)
    assert len(router.changes) >= len(first)
    # what is there is seen by the next one, which has nothing to do
    second = make_router(kind, shell)
    second.configure(SIDES)
    second.configure_frames(SIDES, FRAMES)
    assert second.changes == ()
    assert router.restore() == ""
    # a FreeBSD kernel keeps the routing tables that it has got
    assert planned(kind, shell) == [row for row in first if not row.startswith("sysctl net.fibs=")]


def planned(kind: RouterKind, shell: Shell) -> list[str]:
    router = make_router(kind, shell)
    with router.rehearsal() as found:
        router.configure(SIDES)
        router.configure_frames(SIDES, FRAMES)
    return [str(change) for change in found]
