"""What ``lineproof doctor`` says of a generator's card: what matters at the testbed's rates, in short lines."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from lineproof.ceilings.cards import CardChoice, read_cards
from lineproof.ceilings.published_limits import PublishedLimits
from lineproof.commands.doctor import _card
from lineproof.commands.host_checks import Check, State
from lineproof.project import packaged_variables

FILES = {file.card.card: file for file in read_cards(packaged_variables() / "generators")}


def said(card: str, link_bps: float = 10e9, calibrated: bool = False) -> list[Check]:
    limits = PublishedLimits(CardChoice(FILES[card], "named"), link_bps, "v3.06")
    headroom = SimpleNamespace(why_unfit="") if calibrated else None
    generator = SimpleNamespace(known_limits=limits, headroom=headroom)
    return list(_card(cast(Any, SimpleNamespace(generator=generator, link_bps=link_bps))))


@pytest.mark.parametrize("card", FILES)
def test_a_source_is_in_the_details_alone(card: str) -> None:
    found = said(card)
    assert all("http" not in str(check) and len(str(check)) < 330 for check in found), max(map(str, found), key=len)
    assert all("https://" in check.details for check in found[1:])


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
