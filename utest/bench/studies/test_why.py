"""The explanation of a failure against what limits the modelled router, for the published rows."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from lineproof_bench.model.limits import Limit, binding_limits
from lineproof_bench.studies import modelled_rows, published, why
from lineproof_bench.studies.traffic import loads_at
from support.model_bench import PROJECT


@cache
def rows() -> tuple[why.ExplainedRow, ...]:
    return why.explained_rows(PROJECT)


def explained(name: str) -> why.ExplainedRow:
    """The row called *name* at all that the generator sends."""
    return next(row for row in reversed(rows()) if row.name == name)


def test_at_least_95_percent_of_the_failing_rows_name_the_limit_that_binds() -> None:
    wrong = [row for row in rows() if row.outcome != "right"]
    assert len(rows()) > 150
    assert why.enough_right(rows()), why.text_of(wrong)
    assert sum(row.outcome == "wrong" for row in wrong) <= 0.025 * len(rows()), why.text_of(wrong)


def test_every_published_rate_without_a_firewall_is_a_row() -> None:
    found = {row.name for row in modelled_rows.modelled_rows(PROJECT)}
    wanted = {
        f"{variant.study.study} {variant.name}"
        for variant in published.modelled_variants(PROJECT, published.published_studies(PROJECT))
        if not re.search(r"\b(ipfw|pf|ipf)\b|^(cycles|packets|energy)", variant.name)
    }
    assert len(wanted) > 300
    assert wanted == found


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("netgate6100 64b 1-flow bidirectional, vpp-3q", "shared worker"),
        ("netgate6100 64b 1-flow unidirectional, vpp-3q", "one flow"),
        ("netgate6100 64b unidirectional, vpp-1q", "few queues"),
        ("netgate6100 64b unidirectional, linux", "all workers"),
        ("netgate6100 1514b unidirectional, linux", "generator"),
        ("gowin_n305 1514b bidirectional, ConnectX-5 DPDK", "bus"),
        ("gowin_n305 64b 1-flow unidirectional, ConnectX-5 DPDK", "card"),
        ("gowin_n305 64b saturated, 1 receive queue", "tx slots"),
        ("freebsd_before_after dell_cxgbe as released", "locks"),
        ("freebsd_virtual inet4, hp_cxgbe, in a bridge", "locks"),
        ("freebsd_before_after apu2 tuned", "all workers"),
    ],
)
def test_what_the_sources_of_the_rows_say_is_what_is_named(name: str, rule: str) -> None:
    explanation = explained(name).explanation
    assert explanation is not None and explanation.rule == rule
    assert explanation.figures and explanation.remedy


def test_the_model_says_which_of_its_limits_binds() -> None:
    row = next(
        row for row in modelled_rows.modelled_rows(PROJECT) if row.name == "freebsd_before_after dell_ixgbe tuned"
    )
    loads = loads_at(row.model, row.profile, bidirectional=False)
    assert binding_limits(row.model, loads(1.0)) == {Limit.PORT}
    assert binding_limits(row.model, loads(0.1)) == frozenset()
    assert binding_limits(row.model, loads(0.1), asked=1e9) == {Limit.GENERATOR}
    slow_bus = replace(row.model, nic=row.model.nic.model_copy(update={"bus_gbps": 1.0}))
    assert binding_limits(slow_bus, loads(1.0)) == {Limit.BUS}


def test_too_many_wrong_rows_are_reported(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    found = list(rows())
    assert why.LEAST_RIGHT < 1
    broken = [replace(row, limits=frozenset({Limit.LINE})) for row in found[: len(found) // 10]]
    monkeypatch.setattr(why, "explained_rows", lambda project: (*broken, *found[len(broken) :]))
    assert why.main(["--root", str(PROJECT.root)]) == 1
    assert "WRONG" in capsys.readouterr().out
    monkeypatch.setattr(why, "explained_rows", lambda project: tuple(found))
    assert why.main(["--markdown", "--root", str(PROJECT.root)]) == 0
    assert capsys.readouterr().out.startswith("| row |")
    monkeypatch.setattr(why, "explained_rows", lambda project: ())
    assert why.main(["--root", str(Path(PROJECT.root))]) == 1
