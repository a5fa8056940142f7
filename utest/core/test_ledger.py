"""The ledger's sums for any counters, and its phrases and tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lineproof.core.bounds import Bounds
from lineproof.core.deciding import Asked
from lineproof.core.ledger import DirectionAccount, Drop, Ledger, ledger_without_router, lost_at_router, make_ledger
from lineproof.core.telemetry import Cause, InterfaceCounters, Role, Stage, Telemetry, risen
from lineproof.core.trial import DirectionCount, Load, Outcome, Trial
from lineproof.core.under_load import Confidence
from lineproof.core.verdict import where_lost
from lineproof.documents.document import Table
from lineproof.evidence.forms import ledgers_document
from lineproof.session.judging import MAX_LEDGERS, Bookkeeper
from support.made_testbeds import promised

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
    assert found.whole.lost == sum(offered - forwarded for offered, forwarded in directions)
    assert found.whole.lost == found.whole.explained + found.whole.unexplained
    assert found.whole.unexplained == sum(gap or 0 for gap in found.whole.gaps)
    assert all(direction.unexplained == sum(gap or 0 for gap in direction.gaps) for direction in found.directions)
    counted = {cause.label for cause in causes if cause.role is not Role.REASON and cause.interface != "eth9"}
    assert {drop.label for drop in found.drops} <= counted
    assert where_lost(found) and _shown(found)


WRAP = 2**32


# those of 32 bits go on at 0
@given(COUNT | st.integers(0, WRAP - 1), COUNT | st.integers(0, WRAP - 1), COUNT | st.just(2**64))
def test_a_rise_leads_from_the_one_count_to_the_other(before: int, after: int, most: int) -> None:
    rise = risen(before, after, most)
    if rise is None:
        assert after < before and not (before < WRAP and after + WRAP - before <= most)
    else:
        assert rise >= 0 and before + rise in ((after,) if after >= before else (after + WRAP,))


@given(CAUSES, CAUSES)
def test_a_place_whose_counter_began_anew_has_no_rest(before: list[Cause], after: list[Cause]) -> None:
    found = make_ledger(
        [trial((1000, 900))], reading((0, 0), (0, 0), *before), reading((950, 0), (0, 940), *after), INTERFACES
    )
    known = {(cause.stage, cause.label): cause.count for cause in after}
    unknown = {(drop.stage, drop.label) for drop in found.drops if drop.began_anew}
    assert unknown <= {at for cause in before if cause.count > known.get(at := (cause.stage, cause.label), 0)}
    (row,) = found.directions
    for drop in row.drops:
        assert not drop.began_anew or row.gaps[drop.stage is not Stage.ARRIVING] is None
    assert not unknown or found.whole.unexplained <= 0 or "not known" in where_lost(found)
    assert _shown(found)


@pytest.mark.parametrize(
    ("rx", "tx", "known"),
    [
        (100_000, 0, False),
        # hardware that forwards past the counters; more sent than received; fewer than came back
        (45_000, 90_000, False),
        (90_000, 100_000, False),
        (100_000, 89_000, False),
        # the slack of readings one after the other
        (90_000, 90_100, True),
        (89_900, 90_000, True),
        (100_000, 90_000, True),
    ],
)
@pytest.mark.parametrize("drops", [(), (Cause(Stage.PASSING, "no route", "eth1", 10_000),)])
def test_counts_that_contradict_each_other_show_no_place(
    rx: int, tx: int, known: bool, drops: tuple[Cause, ...]
) -> None:
    after = reading((5 + rx, 5), (5, 5 + tx), *drops)
    found = make_ledger([trial((100_000, 90_000))], reading((5, 5), (5, 5)), after, INTERFACES)
    assert ("lost is not known" not in where_lost(found)) is known is not bool(found.contradiction)
    assert found.without_counts().missing == found.contradiction


@pytest.mark.parametrize(("forth", "back"), [(100, None), (100, 0), (100, 100)])
def test_what_could_not_be_sent_by_the_port_that_frames_enter_is_of_no_certain_direction(
    forth: int, back: int | None
) -> None:
    counts = [(100_000, 100_000 - 10 * forth), *([(100_000, 100_000 - back)] if back is not None else [])]
    stray = Cause(Stage.LEAVING, "tx_drops", "eth1", 1000)
    after = reading((100_000, 100_000), (100_000 - (back or 0), 100_000 - 10 * forth), stray)
    found = make_ledger([trial(*counts)], reading(), after, INTERFACES)
    assert [drop.label for drop in found.shared] == ["tx_drops at eth1"]
    assert not any(row.drops for row in found.directions)
    assert found.whole.unexplained == (back or 0)


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
    assert (forth.unexplained, back.unexplained, found.whole.unexplained) == (30, 0, 0)
    assert [drop.label for drop in found.shared] == ["no route"]


@pytest.mark.parametrize(
    ("causes", "rx", "tx", "own", "shared"),
    [
        # 50 dropped on arrival explain 50 that the router did not receive
        ([missed(50)], 99_950, 99_950, {"rx-miss at eth1": 50}, []),
        ([Cause(Stage.PASSING, "no route", "", 30)], 100_000, 99_970, {"no route": 30}, []),
        # a counter of another place does not count the same frames
        (
            [missed(50), Cause(Stage.PASSING, "punt", "eth1", 40, Role.OVERLAPPING)],
            *(99_950, 99_910, {"rx-miss at eth1": 50, "punt at eth1": 40}, []),
        ),
        # no frame of the direction arrives at eth2; some of so many may have been to leave there
        (
            [missed(50), Cause(Stage.LEAVING, "tx_drops", "eth2", 5000), Cause(Stage.ARRIVING, "rx-miss", "eth2", 7)],
            *(99_950, 99_950, {"rx-miss at eth1": 50}, ["tx_drops at eth2"]),
        ),
    ],
)
def test_drops_explain_the_frames_that_are_missing_at_their_place(
    causes: list[Cause], rx: int, tx: int, own: dict[str, int], shared: list[str]
) -> None:
    found = make_ledger([trial((100_000, tx))], reading(), reading((rx, 0), (0, tx), *causes), INTERFACES)
    (row,) = found.directions
    assert ({drop.label: drop.frames for drop in row.drops}, row.gaps) == (own, (0, 0, 0))
    assert [drop.label for drop in found.shared] == shared


@pytest.mark.parametrize("lost", [0, 1000, -50])
@pytest.mark.parametrize("beyond", [0, 1])
def test_more_drops_on_leaving_than_a_direction_may_miss_are_of_no_certain_direction(lost: int, beyond: int) -> None:
    # counters are read one after the other: 100 frames and 0.05 % more may be missing
    stray = Cause(Stage.LEAVING, "tx_drops", "eth2", max(0, lost) + 150 + beyond)
    came = 100_000 - lost
    made = make_ledger([trial((100_000, came))], reading(), reading((100_000, 0), (0, came), stray), INTERFACES)
    assert (len(made.directions[0].drops), len(made.shared)) == (1 - beyond, beyond)


def test_a_drop_is_explained_by_its_largest_reason_at_its_place() -> None:
    reasons = [
        Cause(Stage.PASSING, name, interface, count, Role.REASON)
        for name, interface, count in (("large", "", 55), ("small", "eth1", 5), ("elsewhere", "eth2", 90))
    ]
    later = Cause(Stage.LEAVING, "later", "eth1", 90, Role.REASON)
    after = reading((1000, 0), (0, 940), Cause(Stage.PASSING, "drops", "eth1", 60), *reasons, later)
    (drop,) = make_ledger([trial((1000, 940))], reading(), after, INTERFACES).drops
    assert drop.meaning.split()[-1] == "large"


@pytest.mark.parametrize(
    ("before", "after", "gaps"),
    [
        (["eth1", "eth2"], ["eth1", "eth2"], (10, 30, 60)),
        (["eth1"], ["eth1", "eth2"], (10, None, None)),
        (["eth1", "eth2"], ["eth2"], (None, None, 60)),
    ],
)
def test_a_place_beside_an_interface_that_was_not_read_is_not_known(
    before: list[str], after: list[str], gaps: tuple[int | None, ...]
) -> None:
    def of(reading: Telemetry, names: list[str]) -> Telemetry:
        return replace(reading, interfaces={name: reading.interfaces[name] for name in names})

    end = of(reading((990, 0), (0, 960)), after)
    made = make_ledger([trial((1000, 900))], of(reading(), before), end, INTERFACES)
    assert made.directions[0].gaps == gaps


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
    assert found.whole.unexplained == 0
    assert lost_at_router(reading(), reading((0, 0), (0, 0), *causes), ["eth1"], 1000) == {"drops at eth1": 60}


@pytest.mark.parametrize("before", [5000, WRAP - 1, WRAP + 5000])
def test_counters_that_were_reset_explain_nothing(before: int) -> None:
    found = make_ledger([trial((1000, 990))], reading((before, 0)), reading((4000, 0)), INTERFACES)
    assert "went backwards" in found.missing and "not known" in where_lost(found)
    assert found.whole.lost == 10 and found.directions[0].gaps[0] is None and found.whole.gaps[1] is None


def test_a_router_without_these_interfaces_leaves_all_unexplained() -> None:
    found = make_ledger([trial((10, 5))], Telemetry(1.0, {}), Telemetry(2.0, {}), INTERFACES)
    assert (found.whole.unexplained, *found.whole.gaps) == (5, None, None, None)
    assert "received by the router" in _shown(found)


def test_a_router_that_gave_no_counts_has_no_rows_for_them() -> None:
    silent = ledger_without_router([trial((10, 5), number=7)], INTERFACES, "no answer")
    assert _shown(silent) == ["sent by the generator", "back at the generator", "lost"]


def _shown(ledger: Ledger) -> list[object]:
    """Return the names of the rows that the log shows of *ledger*."""
    (section,) = ledgers_document([ledger], "t").sections
    (table,) = (part for part in section.parts if isinstance(part, Table))
    return [row.cells[0] for row in table.rows]


SURE, LIKELY = Confidence.CERTAIN, Confidence.LIKELY


@pytest.mark.parametrize(
    ("here", "elsewhere", "counted", "how_sure", "are_most"),
    [
        # of 10 000 that are lost; counts of the same frames may differ by a hundredth
        (10_000, 0, True, SURE, True),
        (10_100, 0, True, SURE, True),
        (10_101, 0, True, LIKELY, True),
        (5001, 4999, True, SURE, True),
        (5000, 5000, True, SURE, False),
        # either explains all of them; the other one does
        (10_000, 10_000, True, LIKELY, True),
        (6000, 10_000, True, None, False),
        (6000, 9940, True, None, False),
        (6000, 9939, True, LIKELY, True),
        # frames that no counter has, beside those that one has
        (6000, 4000, False, SURE, True),
        (6000, 10_000, False, None, False),
    ],
)
def test_drops_at_one_place_are_lost_ones_unless_those_at_another_explain_them(
    here: int, elsewhere: int, counted: bool, how_sure: Confidence | None, are_most: bool
) -> None:
    drops = (*[Drop(Stage.PASSING, "here", "eth1", here)] * counted, Drop(Stage.LEAVING, "there", "eth2", elsewhere))
    row, other = (DirectionAccount(0, 1, "eth1", "eth2", sent, 90_000, drops=drops) for sent in (100_000, 80_000))
    # more came back in the other direction than were sent, which makes up for none
    for ledger in (Ledger(1, 1, (row,)), Ledger(1, 1, (row, replace(other, drops=())))):
        assert ledger.are_lost_ones(here, counted) is how_sure
        assert ledger.are_most(here, counted) is are_most
    anew = Drop(Stage.ARRIVING, "anew", "eth1", 0, began_anew=True)
    assert Ledger(1, 1, (row,), (anew,)).are_lost_ones(here, counted) is (how_sure and LIKELY)


class CountingRouter:
    """A router whose missed frames rise by *rise* between readings."""

    def __init__(self, rise: int = 10) -> None:
        self.readings, self._rise = 0, rise

    def __call__(self, moment: str) -> Telemetry:
        self.readings += 1
        return reading((90 * self.readings, 0), (0, 90 * self.readings), missed(self._rise * self.readings))


def keep(
    router: CountingRouter, outcomes: str, settle: Callable[[], None] | None = None, unread: str = ""
) -> tuple[Ledger, ...]:
    """Trials that lose 10 of 100 frames (``b``) or none (``g``), between which the book may read."""
    book = Bookkeeper(router, reading(), INTERFACES, settle, unread)
    asked = Asked(promised("64b 1-flow ≥ 1 Mpps"))
    for number, kind in enumerate(outcomes, 1):
        book.account()
        one = trial((100, 90 if kind == "b" else 100), number=number)
        book.add_trial(one, asked.add(one))
    book.account(router("after"))
    # each trial is between two readings
    assert [one.number for span, _, _ in book.spans for one in span] == list(range(1, len(outcomes) + 1))
    return tuple(book.ledgers)


def test_the_router_is_read_only_after_bad_trials_and_once_at_the_end() -> None:
    router = CountingRouter()
    found = keep(router, "gbggb")
    assert [(ledger.first_trial, ledger.last_trial) for ledger in found] == [(1, 2), (3, 5)]
    assert router.readings == 2
    for outcomes, ledgers in (("b" * 40, MAX_LEDGERS), ("ggg", 0)):
        router = CountingRouter()
        assert len(keep(router, outcomes)) == ledgers and router.readings == ledgers + 1
    assert len(keep(CountingRouter(), "gbb", unread="not counted")) == 2


@pytest.mark.parametrize(("rise", "readings", "waits"), [(10, 1, 0), (200, 2, 1)])
def test_counters_that_lag_are_read_again_once(rise: int, readings: int, waits: int) -> None:
    router, waited = CountingRouter(rise), list[int]()
    keep(router, "b", lambda: waited.append(1))
    assert (router.readings, len(waited)) == (readings, waits)
