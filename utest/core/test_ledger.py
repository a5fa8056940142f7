"""The ledger's sums for any counters, and its phrases and tables."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lineproof.core.bounds import Bounds
from lineproof.core.causes import Cause, Role, Stage
from lineproof.core.deciding import Asked
from lineproof.core.goal import read_goal
from lineproof.core.ledger import Ledger, ledger_without_router, lost_at_router, make_ledger
from lineproof.core.quantity import Reason
from lineproof.core.rule import Ruling
from lineproof.core.sentence import parse
from lineproof.core.telemetry import InterfaceCounters, Telemetry
from lineproof.core.trial import DirectionCount, Load, Outcome, Trial
from lineproof.core.verdict import Verdict, where_lost
from lineproof.errors import TestbedError
from lineproof.evidence.document import Table
from lineproof.evidence.forms import ledgers_document
from lineproof.session.afterwards import MAX_LEDGERS, Bookkeeper
from support.catalogue import CATALOGUE
from support.made_testbeds import promised
from support.model_bench import PROJECT

INTERFACES = {0: "eth1", 1: "eth2"}
COUNT = st.integers(0, 10**12)


def trial(*directions: tuple[int, int], number: int = 1) -> Trial:
    counts = tuple(
        DirectionCount(at, 1 - at, offered, offered, forwarded) for at, (offered, forwarded) in enumerate(directions)
    )
    return Trial(number, Outcome(Load(1e6), 1.0, 1.0, 1_795_000_000.0, counts), (), Bounds(1.0, 1.0))


def reading(rx: Sequence[int] = (0, 0), tx: Sequence[int] = (0, 0), *causes: Cause) -> Telemetry:
    rows = zip(INTERFACES.values(), rx, tx, strict=True)
    return Telemetry(1.0, {name: InterfaceCounters(rx_packets=r, tx_packets=t) for name, r, t in rows}, causes=causes)


def missed(count: int) -> Cause:
    return Cause(Stage.ARRIVING, "rx-miss", "eth1", count, Role.LOSS)


CAUSES = st.lists(
    st.builds(
        Cause,
        st.sampled_from(Stage),
        st.sampled_from("abc"),
        st.sampled_from(["", "eth1", "eth2", "eth9"]),
        COUNT,
        st.sampled_from(Role),
    ),
    max_size=12,
    unique_by=lambda cause: (cause.stage, cause.name, cause.interface),
)


@given(
    st.lists(st.tuples(COUNT, COUNT), min_size=1, max_size=2), st.tuples(COUNT, COUNT), st.tuples(COUNT, COUNT), CAUSES
)
def test_the_sums_balance_whatever_was_counted(
    directions: list[tuple[int, int]], rx: tuple[int, int], tx: tuple[int, int], causes: list[Cause]
) -> None:
    found = make_ledger([trial(*directions)], reading(), reading(rx, tx, *causes), INTERFACES)
    assert found.lost == sum(offered - forwarded for offered, forwarded in directions)
    assert found.lost == found.explained + found.unexplained
    assert found.unexplained == sum(gap or 0 for gap in found.gaps)
    assert all(direction.unexplained == sum(gap or 0 for gap in direction.gaps) for direction in found.directions)
    counted = {cause.label for cause in causes if cause.role is not Role.REASON and cause.interface != "eth9"}
    assert {drop.label for drop in found.drops} <= counted
    assert where_lost(found) and _shown(found)


@pytest.mark.parametrize(
    ("rx", "tx", "known"), [(0, 0, False), (1000, 0, False), (449, 900, False), (450, 900, True), (1000, 450, True)]
)
def test_counters_that_do_not_move_while_frames_come_back_are_not_these_interfaces(
    rx: int, tx: int, known: bool
) -> None:
    found = make_ledger([trial((1000, 900))], reading((5, 5), (5, 5)), reading((5 + rx, 5), (5, 5 + tx)), INTERFACES)
    assert ("lost is not known" not in where_lost(found)) is known


def test_a_drop_belongs_to_the_direction_of_its_interface_or_is_shared() -> None:
    unrouted = Cause(Stage.PASSING, "no route", "", 30)
    full = Cause(Stage.LEAVING, "tx-error", "eth1", 20, Role.LOSS, "full")
    found = make_ledger(
        [trial((1000, 960), (1000, 980))],
        reading(),
        reading((990, 1000), (980, 960), missed(10), unrouted, full),
        INTERFACES,
    )
    forth, back = found.directions
    assert [drop.label for drop in forth.drops] == ["rx-miss at eth1"]
    assert [drop.label for drop in back.drops] == ["tx-error at eth1"]
    assert (forth.unexplained, back.unexplained, found.unexplained) == (30, 0, 0)
    assert [drop.label for drop in found.shared] == ["no route"]
    alone = make_ledger([trial((1000, 960))], reading(), reading((990, 0), (0, 960), missed(10), unrouted), INTERFACES)
    assert not alone.shared and alone.directions[0].unexplained == 0


def test_a_frame_that_two_counters_count_is_subtracted_once() -> None:
    causes = (
        Cause(Stage.LEAVING, "tx-error", "eth2", 40, Role.LOSS),
        Cause(Stage.LEAVING, "eth2-tx: no slots", "eth2", 45, Role.OVERLAPPING),
        Cause(Stage.PASSING, "drops", "eth1", 60, Role.LOSS),
        Cause(Stage.PASSING, "null-node: blackholed packets", "", 55, Role.REASON),
        Cause(Stage.PASSING, "acl: denied", "", 5, Role.REASON),
    )
    found = make_ledger([trial((1000, 895))], reading(), reading((1000, 0), (0, 895), *causes), INTERFACES)
    assert {drop.label: drop.frames for drop in found.drops} == {
        "drops at eth1": 60,
        "tx-error at eth2": 40,
        "eth2-tx: no slots at eth2": 5,
    }
    assert found.unexplained == 0
    assert lost_at_router(reading(), reading((0, 0), (0, 0), *causes), ["eth1"]) == {"drops at eth1": 60}


def test_counters_that_were_reset_explain_nothing() -> None:
    found = make_ledger([trial((1000, 990))], reading((500, 0)), reading((400, 0)), INTERFACES)
    assert "went backwards" in found.missing and "not known" in where_lost(found)
    assert found.lost == 10 and found.directions[0].gaps[0] is None and found.gaps[1] is None


def test_a_router_without_these_interfaces_leaves_all_unexplained() -> None:
    found = make_ledger([trial((10, 5))], Telemetry(1.0, {}), Telemetry(2.0, {}), INTERFACES)
    assert (found.unexplained, *found.gaps) == (5, None, None, None)
    assert "received by the router" in _shown(found)


def test_a_router_that_gave_no_counts_has_no_rows_for_them() -> None:
    silent = ledger_without_router([trial((10, 5), number=7)], INTERFACES, "no answer")
    assert _shown(silent) == ["sent by the generator", "back at the generator", "lost"]


def _shown(ledger: Ledger) -> list[object]:
    """Return the names of the rows that the log shows of *ledger*."""
    (section,) = ledgers_document([ledger], "t").sections
    (table,) = (part for part in section.parts if isinstance(part, Table))
    return [row.cells[0] for row in table.rows]


class CountingRouter:
    """A router whose missed frames rise by *rise* between readings; *fails*: numbers of the readings that fail."""

    def __init__(self, rise: int = 10, fails: frozenset[int] = frozenset()) -> None:
        self.readings, self._rise, self._fails = 0, rise, fails

    def __call__(self, moment: str) -> Telemetry:
        self.readings += 1
        if self.readings in self._fails:
            raise TestbedError("no answer")
        return reading((90 * self.readings, 0), (0, 90 * self.readings), missed(self._rise * self.readings))


def keep(router: CountingRouter, outcomes: str, book: Bookkeeper) -> tuple[Ledger, ...]:
    """Trials that lose 10 of 100 frames (``b``) or none (``g``), between which the book may read."""
    asked = Asked(promised("64b 1-flow ≥ 1 Mpps"))
    for number, kind in enumerate(outcomes, 1):
        book.account()
        one = trial((100, 90 if kind == "b" else 100), number=number)
        book.add_trial(one, asked.add(one))
    book.account(router("after"))
    return tuple(book.ledgers)


def test_the_router_is_read_only_after_bad_trials_and_once_at_the_end() -> None:
    router = CountingRouter()
    found = keep(router, "gbggb", Bookkeeper(router, reading(), INTERFACES))
    assert [(ledger.first_trial, ledger.last_trial) for ledger in found] == [(1, 2), (3, 5)]
    assert router.readings == 2
    router = CountingRouter()
    assert len(keep(router, "b" * 40, Bookkeeper(router, reading(), INTERFACES))) == MAX_LEDGERS
    assert router.readings == MAX_LEDGERS + 1
    router = CountingRouter()
    assert keep(router, "ggg", Bookkeeper(router, reading(), INTERFACES)) == () and router.readings == 1


def test_a_failed_reading_leaves_its_reason_and_is_not_repeated() -> None:
    router = CountingRouter(fails=frozenset({2}))
    found = keep(router, "bbbb", Bookkeeper(router, reading(), INTERFACES))
    assert [bool(ledger.missing) for ledger in found] == [False, True, True, True]
    assert "could not be read after trial 2: no answer" in found[1].missing
    assert router.readings == 3


@pytest.mark.parametrize(("rise", "readings", "waits"), [(10, 1, 0), (200, 2, 1)])
def test_counters_that_lag_are_read_again_once(rise: int, readings: int, waits: int) -> None:
    router, waited = CountingRouter(rise), []
    book = Bookkeeper(router, reading(), INTERFACES, lambda: waited.append(1))
    keep(router, "b", book)
    assert (router.readings, len(waited)) == (readings, waits)


def test_a_fail_quotes_the_ledger_of_its_worst_trial_and_the_trials_it_covers() -> None:
    router = CountingRouter()
    ledgers = keep(router, "ggggbb", Bookkeeper(router, reading(), INTERFACES))
    assert [(ledger.first_trial, ledger.last_trial) for ledger in ledgers] == [(1, 5), (6, 6)]
    requirement = parse("64b unidirectional ≥ 5 Mpps", CATALOGUE)

    def message(fifth: int, sixth: int) -> str:
        trials = (trial((100, 100 - fifth), number=5), trial((100, 100 - sixth), number=6))
        promise = requirement.promise(read_goal(PROJECT.goals, "quick"), Load(5e6), 10e9)
        return Verdict(requirement, promise, Ruling.FAIL, Reason("lost"), trials, ledgers=ledgers).message

    assert "\n  in trials 1 to 5 together, " in message(10, 9)
    assert "\n  in trial 6, " in message(10, 11)
