import pytest
from hypothesis import given
from hypothesis import strategies as st

from lineproof.errors import SentenceError
from lineproof.sla.requirement import Quantity, Requirement, Scope, Unit
from lineproof.sla.sentence import parse
from lineproof.traffic.catalogue import Catalogue
from support.paths import ROOT

CATALOGUE = Catalogue.read(ROOT / "variables" / "profiles")
TEN_GIG = 10e9


def read(sentence: str) -> Requirement:
    return parse(sentence, CATALOGUE)


def test_example_sentences_are_parsed():
    imix = read("imix unidirectional ≥ 95% line rate")
    assert imix.profile.name == "imix" and not imix.bidirectional
    assert imix.quantity is Quantity.THROUGHPUT and imix.threshold.unit is Unit.PERCENT_LINE
    flow = read("1-flow 64b ≥ 5 Mpps")
    assert flow.profile.is_one_flow and not flow.bidirectional
    assert flow.threshold_load(TEN_GIG).pps == 5e6


def test_frame_size_and_flow_may_be_in_either_order():
    assert read("64b 1-flow ≥ 5 Mpps").profile == read("1-flow 64b ≥ 5 Mpps").profile


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
    ],
)
def test_threshold_as_load_of_each_sending_port(sentence: str, pps: float):
    assert read(sentence).threshold_load(TEN_GIG).pps == pytest.approx(pps, rel=1e-6)


def test_load_after_at_is_of_each_sending_port():
    loses = read("imix bidirectional loses ≤ 0.1% at 50% line rate each way")
    assert loses.quantity is Quantity.LOSS and loses.threshold.number == 0.1
    assert loses.named_load(TEN_GIG).pps == pytest.approx(0.5 * 3_273_679.6, rel=1e-6)
    assert read("64b unidirectional loses ≤ 0% at 1 Mpps").named_load(TEN_GIG).pps == 1e6


@pytest.mark.parametrize(
    ("sentence", "message"),
    [
        ("imix unidirectional = 95% line rate", "'=' is not a comparison here"),
        ("imix unidirectional ≥ 95", "is not a figure with a unit"),
        ("imix unidirectional ≥ 95%", "'%' does not fit 'throughput'"),
        ("imix unidirectional ≥ 5 Mbps", "expected 'Mbps L1' or 'Mbps L2'"),
        ("imix unidirectional ≥ 5 mpps", "did you mean 'Mpps'?"),
        ("imix unidirectional ≥ 5 furlongs", "the unit 'furlongs' is not known"),
        ("imix unidirectional latency p99 ≤ 100 ns at 1 Mpps", "did you mean 'µs'?"),
        ("imxi unidirectional ≥ 5 Mpps", "did you mean 'imix'?"),
        ("imix unidirectoinal ≥ 5 Mpps", "did you mean 'unidirectional'?"),
        ("imix ≥ 5 Mpps", "says no direction"),
        ("unidirectional ≥ 5 Mpps", "no frame size"),
        ("64b imix unidirectional ≥ 5 Mpps", "both say which frames"),
        ("64b var1 var2 unidirectional ≥ 5 Mpps", "both say which flows"),
        ("63b unidirectional ≥ 5 Mpps", "frames are 64 to 9216 bytes"),
        ("64b bidirectional ≥ 80% line rate", "'80% line rate each way'"),
        ("64b bidirectional ≥ 8 Mpps", "'8 Mpps in total'"),
        ("64b unidirectional ≥ 8 Mpps in total", "fits a bidirectional sentence only"),
        ("64b unidirectional ≤ 8 Mpps", "takes ≥, not ≤"),
        ("64b unidirectional costs ≥ 8 cycles/packet", "takes ≤, not ≥"),
        ("64b unidirectional loses ≤ 1%", "needs a load"),
        ("64b unidirectional ≥ 1 Mpps at 5 Mpps", "throughput takes no 'at'"),
        ("64b unidirectional latency ≤ 10 µs at 1 Mpps", "'latency' says no statistic"),
        ("64b unidirectional costs ≤ 1.5 µW/packet", "did you mean 'µJ/packet'?"),
        ("64b unidirectional ≥ 0 Mpps", "more than 0"),
        ("64b unidirectional ≥ 1 Mpps ≥ 2 Mpps", "a sentence compares once"),
    ],
)
def test_wrong_sentence_is_refused_with_a_fix(sentence: str, message: str):
    with pytest.raises(SentenceError) as caught:
        read(sentence)
    assert message in str(caught.value)
    assert str(caught.value).startswith(f"'{sentence}': ")


@pytest.mark.parametrize(
    "sentence",
    [
        "64b unidirectional ≥ 101% line rate",
        "64b unidirectional ≥ 15 Mpps",
        "64b bidirectional ≥ 201% line rate in total",
        "64b bidirectional ≥ 101% line rate each way",
        "64b unidirectional loses ≤ 0% at 20 Mpps",
    ],
)
def test_rate_above_line_rate_is_refused(sentence: str):
    with pytest.raises(SentenceError, match="more than the ports can carry"):
        read(sentence).check(TEN_GIG)


@pytest.mark.parametrize("sentence", ["64b unidirectional ≥ 100% line rate", "64b unidirectional ≥ 14.88 Mpps"])
def test_line_rate_is_accepted(sentence: str):
    read(sentence).check(TEN_GIG)


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


@given(st.text(max_size=60))
def test_any_text_is_parsed_or_refused_with_a_message(text: str):
    try:
        read(text)
    except SentenceError as error:
        assert str(error)


@pytest.mark.parametrize(
    ("sentence", "message"),
    [
        ("64b 1-flow ≥ 5,5 Mpps", "'5,5' has a comma; figures have a decimal point, as in '5.5'"),
        ("64b 1-flow forwards ≥ 5 Mpps at 1,000,000 pps", "as in '1000000'"),
        ("64b unidirectional latency mean ≤ 1 s at 1 Mpps", "does not fit 'latency'; expected 'µs' (ms)"),
    ],
)
def test_wrong_figure_is_refused_with_the_expected_form(sentence: str, message: str):
    with pytest.raises(SentenceError) as error:
        read(sentence)
    assert message in str(error.value)


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
