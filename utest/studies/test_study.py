"""The file of a study: what it must have, what is said of a wrong one, and that each shipped one has a suite."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lineproof.errors import ConfigError
from lineproof.studies.study import load_study, read_study
from support.model_bench import PROJECT
from support.paths import ROOT

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
