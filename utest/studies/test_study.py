"""The file of a study: what it must have, what is said of a wrong one, and that each shipped one has a suite."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lineproof.errors import ConfigError
from lineproof.studies.forms import text
from lineproof.studies.results import results_of
from lineproof.studies.study import Step, Study, left_of, load_study, mean_places, read_study, visits_of
from support.model_bench import PROJECT
from support.paths import ROOT
from support.study_builders import SMALL, study_of

STUDY = """\
study: small
title: A small study
platform: netgate6100
baseline: linux
measures:
  one flow: {forwards: 64b 1-flow unidirectional}
  cost: {cycles: 64b 1-flow unidirectional, at: 1 Mpps, tolerance: {percent: 10}}
variants:
  linux: {software: linux, measures: [one flow]}
  vpp: {software: vpp}
published:
  rows:
    one flow: {linux: 4.3, vpp: [33.6, 33.7]}
"""


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "small.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_study_knows_what_is_measured_on_what(tmp_path: Path) -> None:
    found = load_study(write(tmp_path, STUDY))
    assert found.rows_of("linux") == ("one flow",) and found.rows_of("vpp") == ("one flow", "cost")
    assert found.unit_of("one flow") == "percent of line" and found.unit_of("cost") == "cycles/packet"
    assert found.published_figure("one flow", "vpp") == (33.6, 33.7)
    assert found.tolerance_of("cost").percent == 10 and found.tolerance_of("one flow").percent == 5
    assert read_study(tmp_path, "small") == found


@pytest.mark.parametrize(
    ("before", "after", "line", "says"),
    [
        ("baseline: linux", "baseline: lnux", 4, "'baseline': no variant 'lnux'; known: linux, vpp"),
        ("[one flow]", "[two]", 9, "'variants.linux.measures.0': no row 'two' in 'measures'"),
        ("platform: netgate6100\n", "", 8, "'variants.linux': has no 'platform', and neither has the study"),
        ("{software: vpp}", "{software: vpp, baseline: lnux}", 10, "'variants.vpp.baseline': no variant 'lnux'"),
        ("{software: vpp}", "{software: vpp, value: 3}", 10, "'variants.vpp.value': needs 'parameter'"),
        ("baseline: linux", "parameter: {name: rules}", 4, "fewer than two variants have a 'value'"),
        ("one flow: {linux", "a flow: {linux", 13, "'published.rows.a flow': no row 'a flow'"),
        ("{linux: 4.3,", "{lnux: 4.3,", 13, "'published.rows.one flow.lnux': no variant 'lnux'"),
        ("    one flow: {linux", "    cost: {linux", 13, "'linux' is not measured in this row"),
        ("{forwards: 64b 1-flow unidirectional}", "{at: 1 Mpps}", 6, "'measures.one flow': has none of ramp"),
        ("1 Mpps,", "1 Mpps, steps: 5,", 7, "steps is for ramp, not for 'cycles'; remove it"),
        ("[33.6, 33.7]", "quick", 13, "'published.rows.one flow.vpp'"),
        ("33.7]}", "33.7]}\n  explained:\n    cost: {vpp: a reason}", 15, "a figure that 'rows' does not have"),
        ("forwards:", "sends:", 6, "'measures.one flow': is 'sends', and the study does not bypass the router"),
        ("baseline: linux", "bypass: true", 6, "'measures.one flow': is 'forwards', and the study bypasses the router"),
        ("  vpp: {software: vpp}", "  a/b: {software: vpp}", 10, "variants.a/b"),
        ("  vpp: {software: vpp}", "  vpp: {commands: [{do: ls}]}", 10, "'variants.vpp.commands.0.undo' is missing"),
    ],
)
def test_a_wrong_study_is_refused_with_file_line_and_key(
    tmp_path: Path, before: str, after: str, line: int, says: str
) -> None:
    assert before in STUDY
    path = write(tmp_path, STUDY.replace(before, after, 1))
    with pytest.raises(ConfigError) as caught:
        load_study(path)
    assert str(caught.value).startswith(f"{path}:{line}: ")
    assert says in str(caught.value)


def test_a_study_without_a_router_has_nothing_of_one(tmp_path: Path) -> None:
    text = (
        "study: small\ntitle: A\nplatform: a\nbypass: true\nmeasures:\n  64b: {sends: 64b}\nvariants:\n  a: {VARIANT}\n"
    )
    assert load_study(write(tmp_path, text.replace("VARIANT", "testbed: netns"))).unit_of("64b") == "percent of line"
    with pytest.raises(ConfigError) as caught:
        load_study(write(tmp_path, text.replace("VARIANT", "software: vpp")))
    assert "small.yaml:8: 'variants.a.software': is of a router, which the study bypasses; remove it" in str(
        caught.value
    )


def test_the_flows_of_a_variant_take_the_place_of_the_rows_own(tmp_path: Path) -> None:
    found = load_study(write(tmp_path, STUDY.replace("{software: vpp}", "{software: vpp, flows: 10k-flows}")))
    assert found.traffic_of("one flow", "vpp") == "64b 10k-flows unidirectional"
    assert found.traffic_of("one flow", "linux") == "64b 1-flow unidirectional"
    with pytest.raises(ConfigError, match=r"variants\.vpp\.flows"):
        load_study(write(tmp_path, STUDY.replace("{software: vpp}", "{software: vpp, flows: many}")))


SUITES = ROOT / "tests" / "studies"
COMPARED = ("Difference Should Be Proven", "No Difference Should Be Proven")


def claims(suite: Path) -> list[list[str]]:
    lines = (re.split(r" {2,}", line.strip()) for line in suite.read_text(encoding="utf-8").splitlines())
    return [words for words in lines if words[0] in (*COMPARED, "Figure Should Be")]


def test_every_platform_is_opened_by_a_suite() -> None:
    texts = [path.read_text(encoding="utf-8") for path in (ROOT / "tests").glob("*.robot")]
    for path in PROJECT.platforms.glob("*.yaml"):
        assert any(f"Open Testbed For    {path.stem}    " in text for text in texts), path.stem


def test_every_study_has_a_suite() -> None:
    studies = {path.stem for path in PROJECT.studies.glob("*.yaml")}
    assert {path.stem for path in SUITES.glob("*.robot")} == studies
    for name in studies:
        assert re.search(rf"^Suite Setup +Run Study +{name}\b", (SUITES / f"{name}.robot").read_text(), re.MULTILINE)


@pytest.mark.parametrize("suite", sorted(SUITES.glob("*.robot")), ids=lambda path: path.stem)
def test_its_claims_are_of_rows_and_variants_that_the_study_has(suite: Path) -> None:
    study = load_study(PROJECT.studies / f"{suite.stem}.yaml")
    for keyword, row, variant, *_ in claims(suite):
        assert row in study.measures and variant in study.variants and row in study.rows_of(variant), (row, variant)
        assert keyword not in COMPARED or study.baseline_of(variant) is not None


def test_a_suite_on_a_real_kernel_names_its_testbed() -> None:
    for suite in SUITES.glob("*.robot"):
        own = load_study(PROJECT.studies / f"{suite.stem}.yaml").testbed
        assert bool(own) == bool(re.search(rf"^\$\{{TESTBED\}} +{own}$", suite.read_text(), re.MULTILINE))


# -- the order of a study's measurements: from its seed, in blocks, with the baseline first and last


MANY = Study.model_validate(
    {
        "study": "many",
        "title": "many",
        "platform": "netgate6100",
        "repeats": 4,
        "baseline": "b",
        "measures": {"long": {"ramp": "64b", "repeats": 1}, "short": {"forwards": "64b"}},
        "variants": {name: {} for name in "abcdef"},
    }
)


def test_a_block_begins_and_ends_with_the_baseline() -> None:
    for block in range(1, 5):
        visits = [visit for visit in visits_of(MANY) if visit.block == block]
        assert (visits[0].variant, visits[0].turn) == ("b", "first")
        assert (visits[-1].variant, visits[-1].turn) == ("b", "last")
        assert sorted(visit.variant for visit in visits[1:-1]) == ["a", "c", "d", "e", "f"]


def test_a_row_is_measured_as_often_as_it_says() -> None:
    steps = [step for visit in visits_of(MANY) for step in visit.steps]
    assert len(steps) == len(set(steps))
    assert sum(step.row == "long" for step in steps) == 6
    assert sum(step.row == "short" for step in steps) == 4 * 7


def test_blocks_and_seeds_have_orders_of_their_own() -> None:
    orders = {
        tuple(visit.variant for visit in visits_of(MANY.model_copy(update={"seed": seed})) if visit.block == block)
        for seed in range(5)
        for block in (1, 2)
    }
    assert len(orders) > 5


@given(st.data())
def test_what_is_left_is_what_is_not_done(data: st.DataObject) -> None:
    every = [step for visit in visits_of(MANY) for step in visit.steps]
    done = frozenset(data.draw(st.sets(st.sampled_from(every))))
    left = [step for visit in left_of(visits_of(MANY), done) for step in visit.steps]
    assert left == [step for step in every if step not in done]


def test_a_study_without_a_baseline_has_all_variants_once(tmp_path: Path) -> None:
    study = study_of(tmp_path, SMALL.replace("baseline: vpp\n", ""))
    assert {(visit.variant, visit.turn) for visit in visits_of(study)} == {("vpp", ""), ("linux", "")}
    assert Step(1, "", "vpp", "ramp") in [step for visit in visits_of(study) for step in visit.steps]


def test_the_mean_place_of_each_variant_is_said(tmp_path: Path) -> None:
    """A seed that always has one variant first is seen."""
    again = "  linux: {software: linux}\n  again: {software: vpp}"
    study = study_of(tmp_path, SMALL.replace("  linux: {software: linux}", again))
    seeds = [study.model_copy(update={"seed": seed}) for seed in range(20)]
    assert all(sum(mean_places(one).values()) == 3 for one in seeds)
    first = next(one for one in seeds if mean_places(one)["linux"] == 1)
    says = f"Order by seed {first.seed}; mean place in the blocks: linux 1, again 2."
    assert says in " ".join(text(results_of(first, [])).split())
