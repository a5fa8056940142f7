"""The explanation of a failure against what limits the modelled router, for the published rows."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from linerate_bench.model.limits import Limit, binding_limits
from linerate_bench.studies import modelled_rows, published, why
from linerate_bench.studies.traffic import loads_at
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
    assert not [row for row in wrong if row.outcome == "wrong"], why.text_of(wrong)


def test_every_published_rate_is_a_row() -> None:
    found = {row.name.partition(" ")[2] for row in modelled_rows.modelled_rows(PROJECT)}
    titles = ("Netgate 6100", "Gowin N305")
    wanted = {row.name for table in published.tables(PROJECT) if table.title in titles for row in table.rows}
    assert {name for name in wanted if "saturated" not in name} <= found
    boxes = {row.name.partition(" ")[0] for row in modelled_rows.modelled_rows(PROJECT)}
    assert {"netgate6100", "gowin_n305", "freebsd_dell_r630", "freebsd_apu2"} <= boxes


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("netgate6100 64b 1-flow bidirectional, vpp_3q", "shared worker"),
        ("netgate6100 64b 1-flow unidirectional, vpp_3q", "one flow"),
        ("netgate6100 64b unidirectional, vpp_1q", "few queues"),
        ("netgate6100 64b unidirectional, linux", "all workers"),
        ("netgate6100 1514b unidirectional, linux", "generator"),
        ("gowin_n305 1514b bidirectional, cx5_dpdk", "bus"),
        ("gowin_n305 64b-single unidirectional, cx5_dpdk", "card"),
        ("gowin_n305 one queue, cx5_rdma_tuned", "tx slots"),
        ("freebsd_dell_r630 cxgbe, generic", "locks"),
        ("freebsd_hp_dl360p cxgbe, bridge", "locks"),
        ("freebsd_apu2 igb, tuned", "all workers"),
    ],
)
def test_what_the_sources_of_the_rows_say_is_what_is_named(name: str, rule: str) -> None:
    explanation = explained(name).explanation
    assert explanation is not None and explanation.rule == rule
    assert explanation.figures and explanation.remedy


def test_the_model_says_which_of_its_limits_binds() -> None:
    row = next(row for row in modelled_rows.modelled_rows(PROJECT) if row.name == "freebsd_dell_r630 ixgbe, tuned")
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
