"""Whether a router has restarted since it was changed: only what is certain counts, and doubt is said."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace

import pytest

from lineproof.errors import TestbedError
from lineproof.routers.base import Result
from lineproof.routers.change_journal import ChangeJournal, Occasion, look
from support.journals import CHANGE, ROUTER, occasion, undone

HOUR, DAY = 3600.0, 86400.0


def later(earlier: Occasion, seconds: float, uptime: float, clock: float = 0.0, boot: str = "") -> Occasion:
    """*seconds* after *earlier* in this machine's same run; the router has *uptime*. *clock*: s by which it was set."""
    since = earlier.since + seconds + clock
    return replace(earlier, uptime=uptime, boot=boot, here=earlier.here + seconds, since=since)


def here_restarted(now: Occasion) -> Occasion:
    """*now*, with this machine restarted before."""
    return replace(now, here=30.0, holder=replace(now.holder, where="another boot"))


@pytest.mark.parametrize(
    ("then", "now", "restarted"),
    [(100.0, 96.0, False), (100.0, 94.0, True), (100.0, 200.0, False), (None, 1.0, False), (100.0, None, False)],
)
def test_only_what_is_certain_counts_as_a_restart(then: float | None, now: float | None, restarted: bool) -> None:
    earlier = occasion(then)
    assert earlier.restarted_since(replace(occasion(now), here=earlier.here)) is restarted


def test_time_that_has_passed_here_shows_a_restart_whatever_the_clock_says() -> None:
    earlier = occasion(100.0)
    assert earlier.restarted_since(later(earlier, 1000, 300, clock=-HOUR)) is True
    assert earlier.restarted_since(later(earlier, 1000, 1100, clock=HOUR)) is False
    assert earlier.restarted_since(replace(later(earlier, 1000, 300), kind="vpp")) is False
    assert replace(earlier, kind="generic").restarted_since(replace(later(earlier, 1000, 300), kind="generic")) is False


def test_clocks_that_drift_over_days_are_no_restart() -> None:
    earlier = occasion(HOUR)
    for drift in (-300, 0, 300):
        assert earlier.restarted_since(later(earlier, 10 * DAY, 10 * DAY + HOUR + drift)) is False
    assert earlier.restarted_since(later(earlier, 10 * DAY, 10 * DAY - 60)) is True
    # changed a minute after its start: that is within what the clocks may differ by
    young = occasion(60.0)
    assert young.restarted_since(later(young, 10 * DAY, 10 * DAY - 60)) is None
    assert young.restarted_since(later(young, 60, 120)) is False


def test_after_a_restart_here_too_it_is_told_by_the_clock_or_not_at_all() -> None:
    earlier = occasion(100.0)
    assert earlier.restarted_since(here_restarted(later(earlier, 1000, 1098))) is False
    assert earlier.restarted_since(here_restarted(later(earlier, 1000, 50))) is True
    # both restarted: its uptime is longer than it was when it was changed
    assert earlier.restarted_since(here_restarted(later(earlier, 1000, 300))) is None
    assert earlier.restarted_since(here_restarted(later(earlier, 1000, 1098, clock=-HOUR))) is None
    assert earlier.restarted_since(here_restarted(later(earlier, 1000, 1098, clock=HOUR))) is None


@pytest.mark.parametrize(("kind", "same"), [("linux", False), ("vpp", None)])
def test_the_name_of_a_kernels_run_tells_it_for_certain(kind: str, same: bool | None) -> None:
    earlier = replace(occasion(100.0, kind), boot="first")
    odd = here_restarted(later(earlier, 1000, 300, boot="first"))
    assert earlier.restarted_since(odd) is same
    for now in (replace(odd, boot="second"), later(earlier, 1000, 1100, boot="second")):
        assert earlier.restarted_since(now) is True
        assert earlier.restarted_since(replace(now, kind="vpp")) is True


@pytest.mark.usefixtures("state")
def test_in_doubt_nothing_is_undone_until_a_person_asks() -> None:
    earlier = occasion(100.0, "vpp")
    killed = ChangeJournal.claim(ROUTER)
    killed.begin(earlier)
    killed.add(CHANGE)
    os.close(killed._descriptor)
    now, ran = here_restarted(later(earlier, 1000, 300)), list[str]()
    shell: Callable[[str, float], Result] = lambda command, limit: ran.append(command) or Result("", "", 0, 0.0)  # noqa: E731
    with pytest.raises(TestbedError, match=r"cannot be told whether the router has restarted .* 'lineproof restore'"):
        undone(shell, now)
    assert not ran and look(ROUTER) is not None
    assert undone(shell, now, asked=True).startswith("undid ")
    assert ran == ["ip link set dev eth1 down"] and look(ROUTER) is None
