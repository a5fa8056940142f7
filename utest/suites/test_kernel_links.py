"""This machine's kernel as the router: a neighbour that goes in a sentence, an interface whose link comes late."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from lineproof.core.rule import Ruling
from lineproof.errors import TestbedError
from lineproof.project import Project
from lineproof.session.plan import Plan
from lineproof.session.session import Session
from lineproof.system.network_namespace import configure
from support import kernel_router
from support.paths import ROOT
from support.simulated_session import judged

pytestmark = pytest.mark.netns


def test_a_neighbour_that_goes_in_a_sentence_makes_no_fail(tmp_path: Path) -> None:
    with kernel_router.configured(tmp_path) as session:
        session.traffic.check_reachability()
        side = session.testbed.facts.sides[1]

        def forget(*_: object) -> None:
            kernel_router.run_in_router(session, "sh", "-c", f"ip neigh del {side.peer} dev {side.interface} || true")

        found = judged(session, "64b unidirectional ≥ 2 kpps", on_trial=forget)
    assert found.ruling is Ruling.INCONCLUSIVE, found.message
    assert f"the router has no neighbour entry for {side.peer} on {side.interface}" in found.message, found.message
    fix = f"ip neigh replace {side.peer} lladdr {side.peer_mac} nud permanent dev {side.interface}"
    assert f"'{fix}' on the router sets it" in found.message


def test_an_interface_whose_link_comes_late_is_awaited_and_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    session = Session.start(Plan.read(Project(ROOT), "linux_router", "linux", "netns", "quick"))
    try:
        session.generator.connect()
        session.router.connect()
        name = session.testbed.facts.sides[0].interface
        # an end of a veth pair whose other end is down has no carrier
        _set_port(session, "down")
        back = threading.Timer(4.0, lambda: _set_port(session, "up"))
        back.start()
        session.router.configure()
        back.join()
        session.traffic.check_reachability()
        assert f"the router's {name} after " in session.router.links.noted_words
        _set_port(session, "down")
        session.router.links.limit = 1.0
        began = time.monotonic()
        with pytest.raises(TestbedError, match=rf"neither the router's interface {name} nor .* port 0 has a link"):
            session.router.configure(links_moved=True)
        assert time.monotonic() - began > 1.0
    finally:
        session.close()


def _set_port(session: Session, state: str) -> None:
    configure(session.testbed.facts.namespaces[0], f"link set port0 {state}")
