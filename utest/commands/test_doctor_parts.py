"""Parts of 'lineproof doctor' by themselves: cards, flow control; and its listening while nothing is sent."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from lineproof.ceilings import PublishedLimits, read_cards
from lineproof.commands.doctor import Check, State, _card, _planned_changes, _router
from lineproof.generators.base import GeneratorPort
from lineproof.project import packaged_variables
from lineproof.routers.journal import Change
from lineproof.session.links import dropped_by_card
from support import robot_run
from support.command_line import lineproof
from support.described_router import description

NOISY = """\
testbed: noisy
description: a bridge beside a ConnectX that Linux lets send pause frames
kind: simulated
nic: mlx5
faults:
  - {kind: foreign frames, start: 0, port: 1}
"""


@pytest.mark.slow
def test_what_comes_unasked_is_named_and_flow_control_with_its_remedy(tmp_path: Path) -> None:
    home = robot_run.project(tmp_path)
    (home / "variables" / "testbeds" / "noisy.yaml").write_text(NOISY)
    found = lineproof(tmp_path, "doctor", "noisy", "--platform", "netgate6100", "--listen", "20", cwd=home)
    assert found.returncode == 0, found.stdout + found.stderr
    shown = found.stdout
    assert "ok       noise: port 0: no frame came in 20 s without traffic" in shown
    # five or six hellos in 10 s, whenever the first comes
    assert re.search(r"warning  noise: port 1: spanning tree from 02:00:00:00:00:fe, every (1\.[6-9]|2)", shown), shown
    assert "a trial of 10 s may count 6 of them" in shown or "a trial of 10 s may count 7 of them" in shown
    assert "flow control is on (rx and tx); switch it off: 'portattr -p 0 --fc none' in TRex's console" in shown


@pytest.mark.parametrize(
    ("card", "addressed", "promiscuous", "dropped"),
    [
        ("02:00:00:00:00:01", "02:00:00:00:00:01", False, False),
        ("02:00:00:00:00:0A", "02:00:00:00:00:0a", False, False),
        ("02:00:00:00:00:01", "02:00:00:00:00:99", False, True),
        ("02:00:00:00:00:01", "02:00:00:00:00:99", None, True),
        ("02:00:00:00:00:01", "02:00:00:00:00:99", True, False),
        ("", "02:00:00:00:00:99", False, False),
    ],
)
def test_a_card_that_would_drop_what_the_router_sends_is_named(
    card: str, addressed: str, promiscuous: bool | None, dropped: bool
) -> None:
    port = GeneratorPort(0, addressed, 10e9, True, "net_i40e", card_mac=card, promiscuous=promiscuous)
    assert ("'promiscuous: true'" in dropped_by_card(port, addressed)) is dropped


FILES = {card.card: card for card in read_cards(packaged_variables() / "generators")}


def said(card: str, link_bps: float = 10e9, calibrated: bool = False) -> list[Check]:
    limits = PublishedLimits(FILES[card], "named", (), link_bps, "v3.06")
    headroom = SimpleNamespace(why_unfit="") if calibrated else None
    generator = SimpleNamespace(known_limits=limits, headroom=headroom)
    return list(_card(cast(Any, SimpleNamespace(generator=generator))))


@pytest.mark.parametrize("card", FILES)
def test_a_source_is_in_the_details_alone(card: str) -> None:
    found = said(card)
    assert all("http" not in str(check) and len(str(check)) < 330 for check in found), max(map(str, found), key=len)
    assert all("https://" in str(check.details) for check in found[1:])


@pytest.mark.parametrize(
    ("link_bps", "calibrated", "state"),
    [(10e9, False, State.WARNING), (1e9, False, State.WARNING), (1e8, False, State.OK), (10e9, True, State.OK)],
)
def test_a_virtual_card_is_a_warning_where_the_line_rate_asks_for_more(
    link_bps: float, calibrated: bool, state: State
) -> None:
    slow, dropping = (
        next(check for check in said("virtual", link_bps, calibrated) if part in check.finding)
        for part in ("a vSwitch in between", "frames that the host drops")
    )
    assert slow.state is dropping.state is state


@pytest.mark.parametrize(("name", "saved"), [("saving", True), ("in reverse", False)])
def test_a_dry_run_lists_what_is_saved_before_the_changes(name: str, saved: bool) -> None:
    change = Change(("a", "b"), ("c",))
    session: Any = SimpleNamespace(
        plan=SimpleNamespace(testbed=SimpleNamespace(prepare="configure"), command_file=description(name)),
        generator=SimpleNamespace(connected=True),
        router=SimpleNamespace(planned_changes=lambda: ((change,), "")),
    )
    (check,) = _planned_changes(session)
    first, *lines = check.finding.splitlines()
    assert first.startswith("a run makes 1 change, undone at its end")
    expected = ["copy running-config flash:before    (before them, so that they can be undone)"] if saved else []
    assert [line.strip() for line in lines] == [*expected, "a / b    (undone by: c)"]


def test_a_dry_run_says_that_nothing_is_changed_on_a_router_without_a_login() -> None:
    router = SimpleNamespace(
        is_black_box=True,
        connect=lambda: {},
        restore=lambda: None,
        leftovers=lambda: (),
        journal_name="",
        driver=SimpleNamespace(link_states=lambda: ()),
    )
    plan = SimpleNamespace(
        command_file=None,
        platform=SimpleNamespace(platform="box"),
        testbed=SimpleNamespace(testbed="lab", prepare="none", power=None),
    )
    facts, generator = SimpleNamespace(router=None), SimpleNamespace(connected=False)
    session: Any = SimpleNamespace(plan=plan, testbed=SimpleNamespace(facts=facts), generator=generator, router=router)
    *_, last = _router(session, traffic=False, dry_run=True)
    assert str(last) == "ok       router configuration: a run changes nothing: the testbed file says 'prepare: none'"
