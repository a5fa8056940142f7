"""Every shipped platform and study has a Robot suite; claims name rows and variants that their study has.

A dry run of all suites is that of ``lineproof check`` (utest/commands/test_check.py), which does not look into a study.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lineproof.studies.study import load_study
from support.model_bench import PROJECT
from support.paths import ROOT

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
