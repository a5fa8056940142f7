"""The contract of every quantity that is registered: a new one passes it before its author writes a test."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lineproof.core.bounds import Bounds
from lineproof.core.deciding import ask
from lineproof.core.ledger import DirectionAccount, Ledger
from lineproof.core.phrases import percent
from lineproof.core.quantity import Need, Promise, Quantity, Requirement, Scope
from lineproof.core.registry import built_in_quantities, quantities
from lineproof.core.rule import Ruling
from lineproof.core.sentence import parse, parse_traffic
from lineproof.core.traffic.catalogue import Catalogue
from lineproof.core.trial import (
    DirectionCount,
    Fault,
    Load,
    Outcome,
    Problem,
    Trial,
    loss_ratio,
)
from lineproof.core.verdict import verdict_of
from lineproof.errors import SentenceError
from lineproof.project import Layers
from support.catalogue import CATALOGUE
from support.made_testbeds import promised
from support.made_trials import BAD, FAILED_BY, FRAMES, SENTENCES, Made, Way, ruling_of
from support.model_bench import PROJECT

TEN_GIG = 10e9


def read(sentence: str) -> Requirement:
    return parse(sentence, CATALOGUE)


@pytest.mark.parametrize(
    ("sentence", "pps"),
    [
        ("64b unidirectional ≥ 100% line rate", 14_880_952.38),
        ("1518b unidirectional >= 100% line rate", 10e9 / (8 * 1538)),
        ("64b bidirectional ≥ 80% line rate in total", 0.4 * 14_880_952.38),
        ("64b bidirectional ≥ 80% line rate each way", 0.8 * 14_880_952.38),
        ("64b unidirectional ≥ 1 Gbps L2", 1e9 / 512),
        ("64b unidirectional ≥ 672 Mbit/s L1", 1e6),
        ("imix unidirectional ≥ 100% line rate", 10e9 / (8 * (361.8333333 + 20))),
        ("64b unidirectional on 2 pairs ≥ 10 Mpps each way", 10e6),
        ("64b bidirectional on 2 port pairs ≥ 10 Mpps in total", 2.5e6),
        ("on 3 pairs 64b bidirectional ≥ 60% line rate in total", 1_488_095.24),
        ("64b bidirectional on 1 pair ≥ 10 Mpps in total", 5e6),
    ],
)
def test_threshold_as_load_of_each_sending_port(sentence: str, pps: float):
    assert read(sentence).threshold_load(TEN_GIG).pps == pytest.approx(pps, rel=1e-6)


def test_load_after_at_is_of_each_sending_port():
    loses = read("imix bidirectional loses ≤ 0.1% at 50% line rate each way")
    assert loses.quantity.name == "loses" and loses.threshold.number == 0.1
    assert loses.named_load(TEN_GIG).pps == pytest.approx(0.5 * 3_273_679.6, rel=1e-6)
    assert read("64b unidirectional loses ≤ 0% at 1 Mpps").named_load(TEN_GIG).pps == 1e6
    assert read("64b bidirectional on 2 pairs loses ≤ 1% at 8 Mpps in total").named_load(TEN_GIG).pps == 2e6


@pytest.mark.parametrize(
    ("sentence", "quantity", "number", "seconds"),
    [
        ("latency p99.9 <= 1.5 ms at 50% line rate for 2 min", "latency", 1500.0, 120.0),
        ("recovers in <= 250 ms at 6 Mpps", "recovers", 0.25, None),
        ("recovers in <= 1.5s at 6 Mpps", "recovers", 1.5, None),
    ],
)
def test_times_are_read_in_the_unit_of_their_quantity(
    sentence: str, quantity: str, number: float, seconds: float | None
):
    found = read(f"64b unidirectional {sentence}")
    assert (found.quantity.name, found.duration_sum) == (quantity, seconds)
    assert found.threshold.number == pytest.approx(number)


RATES = st.sampled_from(["% line rate", "kpps", "Mpps", "Gbps L1", "Mbit/s L2"])
NUMBERS = st.decimals(min_value="0.001", max_value="999", places=3).map(lambda number: f"{number.normalize():f}")


@given(
    size=st.integers(64, 9216),
    flow=st.sampled_from(["", "1-flow", "var1", "var2"]),
    scope=st.sampled_from(["unidirectional", "each way", "in total"]),
    quantity=st.sampled_from(["", "forwards"]),
    compare=st.sampled_from(["≥", ">=", " >=", "≥ "]),
    number=NUMBERS,
    unit=RATES,
    gap=st.sampled_from([" ", "  ", ""]),
)
def test_every_sentence_of_the_grammar_is_parsed(size, flow, scope, quantity, compare, number, unit, gap):
    direction = "unidirectional" if scope == "unidirectional" else "bidirectional"
    scope_words = "" if scope == "unidirectional" else scope
    found = read(f"{size}b {flow} {direction} {quantity} {compare} {number}{gap}{unit} {scope_words}")
    assert found.bidirectional is (direction == "bidirectional")
    assert found.scope.value == scope_words
    assert found.at_least
    each = found.threshold_load(TEN_GIG).pps
    assert found.threshold_pps(TEN_GIG) == pytest.approx(each * (2 if found.scope is Scope.IN_TOTAL else 1))


def test_words_of_a_project_take_the_place_of_packaged_ones_whatever_the_files_are_called(tmp_path):
    own = tmp_path / "profiles"
    own.mkdir()
    text = (PROJECT.profiles.own / "bench.yaml").read_text(encoding="utf-8")
    (own / "mine.yaml").write_text(text.replace("16.0.0.4", "16.0.0.7"), encoding="utf-8")
    found = Catalogue.read(Layers(own, PROJECT.profiles.packaged))
    assert found.profile(["64b"]).flows.source.first == "16.0.0.7"
    assert set(CATALOGUE.words()) == set(found.words())
    # a default of the project's own, under a name of its own
    (own / "mine.yaml").write_text(
        "entries:\n  - {kind: flows, name: mine, default: true, about: mine, source: {first: 16.0.0.9, last: 16.0.0.9},"
        " destination: {first: 48.0.0.9, last: 48.0.0.9}}\n",
        encoding="utf-8",
    )
    found = Catalogue.read(Layers(own, PROJECT.profiles.packaged))
    assert found.profile(["64b"]).flows.source.first == "16.0.0.9"
    assert found.profile(["64b", "var2"]).flows.source.first == "16.0.0.4"


# -- whatever stands in a sentence, a stranger's record too: it is understood, or refused in one paragraph, soon


WELL_FORMED = (
    "64b 1-flow unidirectional ≥ 5 Mpps",
    "imix bidirectional on 2 pairs forwards ≥ 9.5 Gbps L1 in total for 2 min",
    "70b vlan ipv6 bidirectional loses ≤ 0.1% at 50% line rate each way",
    "1514b 2000-flows unidirectional latency p99.9 <= 100 us at 1 Mpps",
    "genome:aabbc unidirectional pdv mean ≤ 50 µs at 10% line rate for 1 h",
    "64b bidirectional recovers in ≤ 2 s",
    "64b 1-flow unidirectional costs ≤ 450 cycles/packet",
)
WORDS = (
    *("≥", "≤", ">=", "<=", "=", "<", "٣", "٣b", "９", "9" * 30, "9" * 400, "1e999", "inf", "nan", "-5", "0", "0.0"),
    *("1,5", "0x10", "1_000", ".", "..", "on", "pairs", "on ٣ pairs", "on 0 pairs", "on 9999999999 pairs"),
    *("on two pairs", "for", "for ٣ min", "for 1e5 h", "at", "at at", "each way", "in total", "p", "p101", "p-1"),
    *("p99.9.9", "p٣", "p" + "9" * 50, "genome:", "genome:" + "a" * 200, "genome:Z", "0b", "63b", "99999b"),
    *("9" * 300 + "b", "1k-flows", "9M-flows", "9" * 300 + "-flows", "${x}", "%{HOME}", "\x00", "\x1b[31m", "\n", "\t"),
    *("\u2028", "\u202e", "\ud800", "\xa0", "'", '"', "{}", "%s", "x" * 3000, " " * 500, "1," * 200, ">=" * 50, "b"),
    *("pps", "Gbps", "%", "line rate", "jitter", "costs", "in"),
)


@given(st.sampled_from(WELL_FORMED), st.integers(min_value=0))
def test_case_does_not_matter(sentence: str, capitals: int):
    # the letters of a genome mean sizes
    fixed = [word.startswith("genome:") for word in sentence.split(" ")]
    words = [
        word
        if keep
        else "".join(letter.upper() if capitals >> at & 1 else letter.lower() for at, letter in enumerate(word))
        for keep, word in zip(fixed, sentence.split(" "), strict=True)
    ]
    assert replace(read(" ".join(words)), sentence=sentence) == read(sentence)


@given(
    st.lists(st.sampled_from((*WORDS, *" ".join(SENTENCES).split())) | st.text(max_size=8), max_size=12).map(" ".join)
)
def test_any_words_are_a_sentence_or_a_short_error(text: str):
    for read_it in (parse, parse_traffic):
        try:
            read_it(text, CATALOGUE)
        except SentenceError as error:
            assert str(error).isprintable() and len(str(error)) < 1500


ALL = list(quantities().values())
GOOD = Made((Way(),))
every = pytest.mark.parametrize("quantity", ALL, ids=str)


def sentences_of(quantity: Quantity) -> tuple[str, ...]:
    """Return the sentences of a quantity that the tests know, or its example."""
    return SENTENCES.get(quantity.name, (quantity.example,))


def promises_of(quantity: Quantity) -> list[Promise]:
    """Return :func:`sentences_of` a quantity in numbers."""
    return [promised(f"64b unidirectional {one}") for one in sentences_of(quantity)]


@every
def test_its_declaration_is_whole_and_its_example_is_its_sentence(quantity: Quantity) -> None:
    is_known = quantity.name in SENTENCES.keys() & FAILED_BY.keys() or quantity.name not in built_in_quantities()
    assert is_known, "it lacks sentences, or what fails it, in utest/support/made_trials.py"
    assert quantity.title and quantity.units and quantity.chart in ("rates", "range", "histogram")
    assert quantity.name == quantity.name.strip().lower() and " " not in quantity.word
    requirement = parse(f"64b unidirectional {quantity.example}", CATALOGUE)
    assert requirement.quantity is quantity and quantity.needs <= set(get_args(Need))
    assert quantity.probes(requirement, 0.05) >= ("probes" in quantity.needs)
    for promise in promises_of(quantity):
        assert promise.quantity is quantity and promise.load_pps > 0 and quantity.trial_seconds(promise) > 0
        assert 0 < quantity.gentle_load(Load(promise.load_pps)).pps <= promise.load_pps
        assert quantity.plain(promise, "≤ 1", "at a load")


@every
def test_a_good_router_passes_and_one_that_is_bad_at_it_fails(quantity: Quantity) -> None:
    for promise, words in zip(promises_of(quantity), sentences_of(quantity), strict=True):
        if promise.load_pps == FRAMES or quantity.name == "recovers":  # else too little was offered to convict
            assert ruling_of(promise, [GOOD] * 60) is Ruling.PASS, (
                f"a router with nothing wrong does not pass '{words}'"
            )
            failed = {bad for bad, made in BAD.items() if ruling_of(promise, [made] * 60) is Ruling.FAIL}
            assert failed, f"no bad router fails '{words}': tried {', '.join(BAD)}"
            if quantity.name in FAILED_BY:  # a lost frame may be late, and makes each other one cost more
                assert failed - {"lossy"} == {FAILED_BY[quantity.name]} - {"lossy"}, f"what fails '{words}'"


@every
def test_a_fail_has_figures_and_place_of_trials_that_the_testbed_did_not_spoil(quantity: Quantity) -> None:
    requirement = parse(f"64b unidirectional {quantity.example}", CATALOGUE)
    failing = BAD[FAILED_BY.get(quantity.name, "lossy")]
    bad = replace(failing, ways=(replace(failing.ways[0], lost=40_000, probes_lost=400),))
    lost = replace(bad, ways=(Way(lost=FRAMES, probes_lost=1000),), problems=((Fault.LINK_DOWN, None, (), 0.0),))
    ledgers = tuple(Ledger(at, at, (DirectionAccount(0, 8, "", "", FRAMES, 0),)) for at in (1, 2))
    for promise in promises_of(quantity):
        if promise.load_pps == FRAMES or quantity.name == "recovers":
            trials = [lost.trial(1), bad.trial(2)]
            alone, both, only = (
                verdict_of(replace(ask(promise, some), ruling=Ruling.FAIL), promise, requirement)
                for some in (trials[1:], trials, trials[:1])
            )
            assert (alone.reason.summary, alone.figures) == (both.reason.summary, both.figures)
            for verdict, named in ((both, 2), (only, 1)):
                ledger = replace(verdict, ledgers=ledgers).worst_ledger
                assert ledger and ledger.last_trial == named


@every
def test_its_words_have_one_line_and_its_record_names_units(quantity: Quantity) -> None:
    bare = replace(GOOD.trial(), outcome=replace(GOOD.trial().outcome, readings={}, latency=()))
    for promise in promises_of(quantity):
        for ruling in Ruling:
            for trials in ([GOOD.trial()], [GOOD.trial(1), GOOD.trial(2)], [bare]):
                reason = quantity.reason(promise, ruling, trials)
                assert reason.summary and all("\n" not in line for line in (reason.summary, *reason.details))
        figures = quantity.named_figures(promise, [GOOD.trial()])
        assert all(isinstance(value, (int, float)) for value in figures.values())
        assert quantity.shown(promise, [GOOD.trial()]).low <= quantity.shown(promise, [GOOD.trial()]).high


@pytest.mark.parametrize(
    "words",
    ["each way", "in total", "loses ≤ 1% each way at 1 Mpps each way", "loses ≤ 1% in total at 1 Mpps each way"],
)
def test_a_fail_says_the_figure_of_what_its_trials_lost_that_was_judged(words: str) -> None:
    promise = promised(f"64b bidirectional {'' if 'loses' in words else '≥ 1 Mpps '}{words}")
    rows = tuple(DirectionCount(at, 1 - at, FRAMES, FRAMES, FRAMES - lost) for at, lost in ((0, FRAMES // 3), (1, 0)))
    doubt = Problem(Fault.OVER_OFFERED, "made up", FRAMES / 1000)
    trial = Trial(1, Outcome(Load(FRAMES), 1.0, 1.0, 0.0, rows), (doubt,), Bounds(1, 1))
    reason = promise.quantity.reason(promise, Ruling.FAIL, [trial])
    where, lost = "" if promise.in_total else " in the worst direction", loss_ratio([trial], promise.in_total)
    assert f"lost {percent(lost)}{where} (" in str(reason)
    assert promise.worst([replace(trial, problems=())]) == Bounds(lost, lost)


@pytest.mark.parametrize("words", ["≥ 1 Mpps", "loses ≤ 0.01% at 1 Mpps", "forwards ≥ 1 Mpps"])
@pytest.mark.parametrize(("missing", "changed"), [(0, 1000), (20_000, 300)])
def test_a_fail_tells_lost_frames_from_those_that_came_back_changed(words: str, missing: int, changed: int) -> None:
    row = DirectionCount(0, 1, 10**6, 10**6, 10**6 - missing - changed, changed=changed)
    # of few frames that were looked at all may have changed, so no figure is the whole
    doubt = Problem(Fault.CHANGED, "made up", row.forwarded)
    trial = Trial(1, Outcome(Load(1e6), 1.0, 1.0, 0.0, (row,)), (doubt,), Bounds(1, 1))
    requirement, promise = parse(f"64b unidirectional {words}", CATALOGUE), promised(f"64b unidirectional {words}")
    decision = replace(ask(promise, [trial]), ruling=Ruling.FAIL)
    summary, *details = str(verdict_of(decision, promise, requirement).reason).splitlines()
    assert f"{changed:,} frames or more came back changed" in summary and re.search("at (most|least)", summary)
    if promise.quantity.judges_loss:
        assert any(f"lost {percent(missing / 10**6)} ({missing:,} of 1,000,000 frames)" in line for line in details)
