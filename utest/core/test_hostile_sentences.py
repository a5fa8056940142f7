"""Whatever stands in a sentence: it is understood, or refused in one paragraph, soon."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lineproof.core.sentence import LONGEST, is_sentence, parse_traffic
from lineproof.errors import SentenceError
from lineproof.project import Project
from lineproof.session.plan import Plan
from support import hostile
from support.paths import VARIABLES

SENTENCES = (
    "64b 1-flow unidirectional ≥ 5 Mpps",
    "imix bidirectional on 2 pairs forwards ≥ 9.5 Gbps L1 in total for 2 min",
    "64b vlan ipv6 bidirectional loses ≤ 0.1% at 50% line rate each way",
    "1514b 2000-flows latency p99.9 <= 100 us at 1 Mpps",
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


@pytest.fixture(scope="module")
def plan() -> Plan:
    return Plan.read(Project(VARIABLES.parent), "netgate6100", "vpp", "simulated", "standard")


@st.composite
def sentences(draw: st.DrawFn) -> str:
    words = draw(st.sampled_from(SENTENCES)).split(" ")
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(words)))
        change = draw(st.sampled_from(("word", "drop", "double", "text", "inside")))
        if change == "word":
            words[at : at + draw(st.integers(0, 1))] = [draw(st.sampled_from(WORDS))]
        elif change == "drop":
            del words[at : at + 1]
        elif change == "double":
            words[at:at] = words[: draw(st.integers(1, 9))]
        elif change == "text":
            words.insert(at, draw(st.text(max_size=8)))
        elif words:
            word = words[at % len(words)]
            cut = draw(st.integers(0, len(word)))
            words[at % len(words)] = word[:cut] + draw(st.sampled_from(WORDS)) + word[cut:]
    return draw(st.sampled_from((" ", " ", "  ", "\u3000"))).join(words)


def refused(read: Callable[[str], object], text: str) -> str:
    """Return what the refusal says; "" if *text* is understood."""
    began = time.process_time()
    try:
        read(text)
        found = ""
    except SentenceError as error:
        found = str(error)
        assert found.isprintable() and len(found) < 1500, found
    assert time.process_time() - began < 1
    return found


@hostile.of(150)
@given(text=sentences())
def test_a_mutated_sentence_is_understood_or_one_paragraph(plan: Plan, text: str):
    is_sentence(text)
    refused(plan.requirement, text)
    refused(lambda words: parse_traffic(words, plan.catalogue), text)
    refused(lambda words: plan.catalogue.profile(words.split()), text)


PIECES = (" ", "1", "1,", "a ", "on 1 pair ", "≥ ", "5 % at ", "each way ", "for 1 s ", "x", "p9", ".", "\t")


@pytest.mark.parametrize("around", ["{}", "64b unidirectional ≥ {}", "64b {} ≥ 5 Mpps", "64b ≥ 5 {}Mpps for 1 min"])
def test_no_repetition_takes_long(plan: Plan, around: str):
    for length, piece in itertools.product((LONGEST - len(around), 100_000), PIECES):
        text = around.format((piece * length)[:length])
        began = time.process_time()
        is_sentence(text)
        assert time.process_time() - began < 1
        refused(plan.requirement, text)


@pytest.mark.parametrize(
    "text",
    [
        "64b unidirectional ≥ ٣ Mpps",
        "٦٤b unidirectional ≥ 3 Mpps",
        "64b bidirectional on ٢ pairs ≥ 3 Mpps each way",
        "64b unidirectional latency p٩٩ ≤ 50 µs at 1 Mpps",
        "64b unidirectional ≥ 3 Mpps for ٣ min",
    ],
)
def test_a_digit_is_one_of_ascii(plan: Plan, text: str):
    assert refused(plan.requirement, text)


def test_a_very_long_sentence_is_shown_in_part(plan: Plan):
    found = refused(plan.requirement, "64b unidirectional ≥ " + "x" * 100_000)
    assert f"has 100021 characters; expected at most {LONGEST}" in found and len(found) < 400
