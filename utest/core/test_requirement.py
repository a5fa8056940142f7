"""Sentences and traffic become requirements, or are refused with what is expected."""

from __future__ import annotations

import contextlib
import itertools
import re
import time
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lineproof.core.quantity import Requirement, Scope
from lineproof.core.sentence import LONGEST, is_sentence, parse, parse_traffic
from lineproof.core.traffic.catalogue import Catalogue
from lineproof.errors import SentenceError
from lineproof.project import Layers
from support.catalogue import CATALOGUE
from support.model_bench import PROJECT

TEN_GIG = 10e9


def read(sentence: str) -> Requirement:
    return parse(sentence, CATALOGUE)


@pytest.mark.parametrize(
    ("sentence", "pps"),
    [
        ("64b unidirectional ≥ 100% line rate", 14_880_952.38),
        ("64b unidirectional ≥ 50 % of line rate", 7_440_476.19),
        ("1514b unidirectional ≥ 100% line rate", 10e9 / (8 * 1538)),
        ("1518b unidirectional >= 100% line rate", 10e9 / (8 * 1538)),
        ("64b bidirectional ≥ 80% line rate in total", 0.4 * 14_880_952.38),
        ("64b bidirectional ≥ 80% line rate each way", 0.8 * 14_880_952.38),
        ("64b bidirectional ≥ 10 Mpps in total", 5e6),
        ("64b unidirectional ≥ 1 Gbps L2", 1e9 / 512),
        ("64b unidirectional ≥ 672 Mbit/s L1", 1e6),
        ("imix unidirectional ≥ 100% line rate", 10e9 / (8 * (361.8333333 + 20))),
        ("64b unidirectional on 2 pairs ≥ 10 Mpps each way", 10e6),
        ("64b unidirectional on 2 pairs ≥ 10 Mpps in total", 5e6),
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
        ("recovers in <= 2 s at 6 Mpps", "recovers", 2.0, None),
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


REFUSED = """\
imix unidirectional = 95% line rate -> '=' is not a comparison here
imix unidirectional ≥ 95 -> is not a figure with a unit
64b unidirectional loses ≤ 0.01 at 1 Mpps -> '0.01' has no unit; expected '%'
imix unidirectional ≥ 95% -> '%' does not fit 'throughput'
imix unidirectional ≥ 5 Mbps -> expected 'Mbps L1' or 'Mbps L2'
imix unidirectional ≥ 5 Mppps -> did you mean 'Mpps'?
64b bidirectional ≥ 8 Mpps per way -> 'per way' after 'Mpps' is not understood; expected 'each way' or 'in total'
64b unidirectional ≥ 8 Mpps per cores -> did you mean 'Mpps per core'?
imix unidirectional ≥ 5 furlongs -> the unit 'furlongs' is not known
imix unidirectional latency p99 ≤ 100 ns at 1 Mpps -> did you mean 'µs'?
imxi unidirectional ≥ 5 Mpps -> did you mean 'imix'?
imix ≥ 5 Mpps -> says no direction
unidirectional ≥ 5 Mpps -> no frame size
64b imix unidirectional ≥ 5 Mpps -> both say which frames
64b var1 var2 unidirectional ≥ 5 Mpps -> both say which flows
63b unidirectional ≥ 5 Mpps -> frames are 64 to 9216 bytes
64b bidirectional ≥ 80% line rate -> '80% line rate each way'
64b bidirectional ≥ 8 Mpps -> '8 Mpps in total'
64b unidirectional ≥ 8 Mpps in total -> fits a bidirectional sentence only
64b unidirectional ≤ 8 Mpps -> takes ≥, not ≤
64b 1-flow unidirectional costs ≤ 20 vectors/call -> does not fit 'costs'
64b 1-flow unidirectional gathers ≤ 20 vectors/call -> 'gathers' takes ≥
64b unidirectional loses ≤ 1% -> needs a load
64b unidirectional ≥ 1 Mpps at 5 Mpps -> throughput takes no 'at'
64b unidirectional costs ≤ 1.5 µW/packet -> did you mean 'µJ/packet'?
64b unidirectional ≥ 0 Mpps -> more than 0
64b unidirectional ≥ 1 Mpps ≥ 2 Mpps -> a sentence compares once
64b unidirectional bidirectional ≥ 1 Mpps in total -> says the direction twice
64b 1-flow ≥ 5,5 Mpps -> '5,5' has a comma; figures have a decimal point, as in '5.5'
64b 1-flow forwards ≥ 5 Mpps at 1,000,000 pps -> as in '1000000'
64b unidirectional latency ≤ 10 µs at 1 Mpps -> 'latency' says no statistic
64b unidirectional latency mean ≤ 1 s at 1 Mpps -> does not fit 'latency'; expected 'µs' (ms)
64b unidirectional latency p99 ≤ 10 µs -> needs a load; expected for example 'at 5 Mpps' or
64b unidirectional latency p99 ≥ 10 µs at 1 Mpps -> takes ≤, not ≥
64b bidirectional latency p99 ≤ 10 µs in total at 1 Mpps each way -> expected '10 µs each way'
64b unidirectional latency p99 pdv p99 ≤ 10 µs at 1 Mpps -> keep one
64b unidirectional pdv ≤ 10 µs at 1 Mpps -> 'pdv' says no statistic; expected for example 'pdv p99.9 ≤
64b unidirectional pdv min ≤ 10 µs at 1 Mpps -> 'min' is no statistic here; expected p50
64b unidirectional jitter ≤ 10 µs at 1 Mpps -> 'pdv p99.9 ≤ 50 µs at 1 Mpps'
64b unidirectional ≥ 1 Mpps for a while -> is not a time; expected for example 'for 30 min'
64b unidirectional ≥ ٣ Mpps -> is not a figure
٦٤b unidirectional ≥ 3 Mpps -> is not understood
64b bidirectional on ٢ pairs ≥ 3 Mpps each way -> 'on ٢ pairs': expected
64b unidirectional latency p٩٩ ≤ 50 µs at 1 Mpps -> 'p٩٩'
64b unidirectional ≥ 3 Mpps for ٣ min -> is not a time
64b unidirectional ≥ 1 Mpps for 25 h -> at most 24 h
64b unidirectional recovers ≤ 2 s -> 'recovers' needs 'in'; expected for example 'recovers in ≤ 2 s'
64b bidirectional recovers in ≤ 2 s in total -> 'recovers' has no total
64b unidirectional recovers in ≤ 2 s for 30 min -> takes no 'for'
64b unidirectional on 2 pairs ≥ 10 Mpps -> 10 Mpps each way' (the worst direction) or '10 Mpps in total'
64b unidirectional ≥ 10 Mpps each way -> fits a bidirectional sentence only, or one on several port pairs
64b bidirectional on two pairs ≥ 10 Mpps in total -> 'on two pairs': expected 'on 1 pair' to 'on 16
64b bidirectional on 17 pairs ≥ 10 Mpps in total -> 'on 17 pairs': expected
64b on 2 pairs bidirectional on 2 pairs ≥ 1 Mpps in total -> says the number of port pairs twice
64b bidirectional on 2 ≥ 10 Mpps in total -> 'on' is not understood
64b unidirectional on 2 pairs loses ≤ 1% at 1 Mpps -> must say how the directions count
64b unidirectional on 2 pairs loses ≤ 1% -> 'at 5 Mpps each way'
"""
NO_TRAFFIC = """\
64b -> says no direction
unidirectional -> no frame size
64b unidirectional ≥ 5 Mpps -> expected traffic alone, as '64b unidirectional'
64b unidirectional loses -> 'loses' belongs to a sentence
64b unidirectionl -> did you mean 'unidirectional'
 -> no frame size
"""


@pytest.mark.parametrize("row", REFUSED.splitlines())
def test_a_wrong_sentence_is_refused_with_a_fix(row: str):
    sentence, _, words = row.partition(" -> ")
    # a suggestion stands alone
    end = "$" if "did you mean" in words else ""
    with pytest.raises(SentenceError, match=f"^{re.escape(repr(sentence))}: .*{re.escape(words)}{end}"):
        read(sentence)


@pytest.mark.parametrize("row", NO_TRAFFIC.splitlines())
def test_what_is_not_traffic_is_refused_with_what_is_expected(row: str):
    traffic, _, words = row.partition(" -> ")
    with pytest.raises(SentenceError, match=f"'{traffic}'.*{words}"):
        parse_traffic(traffic, CATALOGUE)


TOO_MUCH = (
    "64b unidirectional ≥ 101% line rate",
    "64b unidirectional ≥ 100.04% line rate",
    "64b unidirectional ≥ 14.89 Mpps",
    "64b bidirectional ≥ 201% line rate in total",
    "64b bidirectional ≥ 101% line rate each way",
    "64b unidirectional loses ≤ 0% at 20 Mpps",
    "64b bidirectional on 2 pairs ≥ 401% line rate in total",
    "64b unidirectional on 2 pairs ≥ 101% line rate each way",
)


@pytest.mark.parametrize("sentence", TOO_MUCH)
def test_rate_above_line_rate_is_refused(sentence: str):
    with pytest.raises(SentenceError, match="more than the ports can carry"):
        read(sentence).check(TEN_GIG)


def test_line_rate_is_accepted():
    for rate in ("unidirectional ≥ 100% line rate", "unidirectional ≥ 14.885 Mpps"):
        read(f"64b {rate}").check(TEN_GIG)
    read("64b bidirectional on 2 pairs ≥ 400% line rate in total").check(TEN_GIG)


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


def test_a_mix_of_a_project_is_found_whatever_its_case(tmp_path):
    own = tmp_path / "profiles"
    own.mkdir()
    (own / "mine.yaml").write_text(
        "entries:\n  - {kind: mix, name: MyMix, about: mine, frames: [{size: 64, weight: 1}]}\n", encoding="utf-8"
    )
    catalogue = Catalogue.read(Layers(own, PROJECT.profiles.packaged))
    assert parse("mymix unidirectional ≥ 1 Mpps", catalogue).profile.name == "MyMix"


def test_forwarding_rate_above_the_named_load_is_refused():
    for sentence in (
        "64b 1-flow forwards ≥ 5 Mpps at 4 Mpps",
        "64b bidirectional forwards ≥ 5 Mpps each way at 9 Mpps in total",
        "64b unidirectional forwards ≥ 50% line rate at 4 Mpps",
    ):
        with pytest.raises(SentenceError, match=r"less than the .* to be forwarded; expected at least"):
            read(sentence).check(TEN_GIG)
    read("64b 1-flow forwards ≥ 5 Mpps at 5 Mpps").check(TEN_GIG)
    read("64b bidirectional forwards ≥ 9 Mpps in total at 5 Mpps each way").check(TEN_GIG)


def test_traffic_and_direction_are_understood():
    found = parse_traffic("  64b   1-flow  bidirectional", CATALOGUE)
    assert found.sentence == "64b 1-flow bidirectional"
    assert found.profile.name == "64b 1-flow" and found.bidirectional
    assert not parse_traffic("imix unidirectional", CATALOGUE).bidirectional
    assert not parse_traffic("64b 1-flow", CATALOGUE).bidirectional


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


SENTENCES = (
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


@given(st.sampled_from(SENTENCES), st.integers(min_value=0))
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


PIECES = (" ", "1", "1,", "a ", "on 1 pair ", "≥ ", "5 % at ", "each way ", "for 1 s ", "x", "p9", ".", "\t")


@pytest.mark.parametrize("around", ["{}", "64b unidirectional ≥ {}", "64b {} ≥ 5 Mpps", "64b ≥ 5 {}Mpps for 1 min"])
def test_no_repetition_takes_long(around: str):
    for length, piece in itertools.product((LONGEST - len(around), 100_000), PIECES):
        text, began = around.format((piece * length)[:length]), time.process_time()
        is_sentence(text)
        with contextlib.suppress(SentenceError):
            read(text)
        assert time.process_time() - began < 1


def test_a_very_long_sentence_is_shown_in_part():
    with pytest.raises(SentenceError, match=f"has 100021 characters; expected at most {LONGEST}") as caught:
        read("64b unidirectional ≥ " + "x" * 100_000)
    assert len(str(caught.value)) < 400
