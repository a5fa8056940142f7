"""Habits of cards and of TRex's server: frames for other MAC addresses are dropped, a histogram has its quirks."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from lineproof.core.rule import Ruling
from lineproof.core.traffic.profiles import Traffic
from lineproof.core.trial import Load
from lineproof.errors import TestbedError
from lineproof.generators.base import Probe
from lineproof.procedures.calibrate import _check_bypassed
from lineproof.project import Project
from lineproof.session.plan import Plan
from lineproof.session.session import Session
from lineproof.simulation import Habit, parse_fault
from support import robot_run
from support.simulated_session import judged, opened, started
from support.trex_profile_support import CLIENTS

HABITS = (Habit(kind="own frames only"), Habit(kind="promiscuous off at acquire"))

pytestmark = pytest.mark.slow


@contextmanager
def with_habits(folder: Path, client: str, bypass: bool = True, **keys: Any) -> Iterator[Session]:
    with started(folder, bypass=bypass, habits=HABITS, client=client, **keys) as session:
        session.generator.connect()
        yield session


def came_back(session: Session) -> bool:
    """Return whether all frames of a trial in both directions came back, or none."""
    rows = session.traffic.measure(Load(10_000.0), 1.0).directions
    assert len(rows) == 2 and all(row.offered > 9_000 for row in rows)
    lost = {row.offered - row.forwarded for row in rows}
    assert lost in ({0}, {row.offered for row in rows})
    return lost == {0}


@pytest.mark.parametrize("client", CLIENTS)
def test_on_a_cable_each_frame_carries_the_other_ports_own_address(tmp_path: Path, client: str) -> None:
    with with_habits(tmp_path, client) as session:
        _check_bypassed(session)
        for words in (["64b"], ["imix"], ["128b", "vlan"]):
            session.traffic.put(Traffic(session.plan.catalogue.profile(words), True))
            assert came_back(session)
        session.traffic.put(session.plan.probe, Probe(1000.0))
        outcome = session.traffic.measure(Load(10_000.0), 1.0)
        assert [row.received for row in outcome.latency] == [row.sent for row in outcome.latency] and outcome.latency
        # the server's own destinations stay as they were: there is nothing to put back
        assert all(port.destination.startswith("02:00:00:00:01:") for port in session.generator.ports)
        assert session.generator.versions["promiscuous"] == "0 of 2 ports"


@pytest.mark.parametrize(
    ("peer", "promiscuous", "measured"),
    [("", False, True), ("02:00:00:00:99:99", True, True), ("02:00:00:00:99:99", False, False)],
)
def test_a_router_is_measured_where_it_sends_to_an_address_that_the_card_takes(
    tmp_path: Path, peer: str, promiscuous: bool, measured: bool
) -> None:
    sides = Plan.read(Project.find(robot_run.ROOT), "netgate6100", "vpp", "simulated", "quick").testbed.cabled_sides
    wrong = {"sides": tuple(side.model_copy(update={"peer_mac": peer}) for side in sides)} if peer else {}
    with with_habits(tmp_path, "pypi", bypass=False, promiscuous=promiscuous, **wrong) as session:
        session.router.connect()
        session.router.configure()
        error = "none of \\d+ frames of '64b' sent slowly from the generator's port 0 came back"
        with contextlib.nullcontext() if measured else pytest.raises(TestbedError, match=error):
            session.traffic.check_reachability()


SENTENCE = "64b 1-flow unidirectional latency {} at 100 kpps"
"""At this load the modelled router takes less than 10 µs: many probe frames are in the bucket 0."""

COARSE = (Habit(kind="coarse latency"),)


@pytest.mark.parametrize("client", CLIENTS)
def test_frames_that_a_coarse_histogram_does_not_place_prove_nothing(tmp_path: Path, client: str) -> None:
    with opened(tmp_path, client=client, habits=COARSE) as session:
        for late in (False, True):
            if late:
                session.cause_fault(parse_fault("changed frames", what="late", hold=1.5, share=0.05, start=0))
            found = judged(session, SENTENCE.format("p99 ≤ 100 µs"))
            (count,) = found.trials[-1].outcome.latency
            assert count.unplaced > 0 and (count.maximum > 1.5e6) is late
            assert found.ruling is Ruling.INCONCLUSIVE, found.message
            assert "later than 1 s" in str(found.reason) and "'--hdrh'" in str(found.reason)
