"""The model against the published figures of real routers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import pytest
import yaml

from support import published
from support.model_bench import PROJECT


@cache
def tables() -> tuple[published.Table, ...]:
    return published.tables(PROJECT)


def outside(rows: Sequence[published.PublishedRow]) -> str:
    return published.text_of([row for row in rows if not row.inside])


def test_at_most_two_rows_of_the_netgate_are_outside() -> None:
    found = next(table for table in tables() if table.study == "netgate6100")
    assert found.strict
    assert len(found.rows) == 53
    assert sum(not row.inside for row in found.rows) <= 2, outside(found.rows)


@pytest.mark.parametrize(
    ("of", "least"),
    [("", 0.95), ("freebsd_", 0.945), ("freebsd_firewalls", 0.95), ("freebsd_rules", 0.9), ("freebsd_tables", 1.0)],
)
def test_enough_rows_are_inside(of: str, least: float) -> None:
    rows = [row for table in tables() if table.study.startswith(of) for row in table.rows]
    assert len(rows) >= {"": 600, "freebsd_": 540}.get(of, 20)
    assert sum(row.inside for row in rows) >= least * len(rows), outside(rows)
    assert published.enough_inside(tables())


def test_slow_rows_are_close_by_their_own_rate() -> None:
    """Points of line rate alone would let rows pass that are off by half of what they forward."""
    slow = [row for table in tables() for row in table.rows if row.rate and 0 < row.published < 30 and row.inside]
    assert len(slow) > 200
    assert [row.name for row in slow if row.pair.percent > 10 and "dropped" not in row.name] == []


def test_the_page_has_these_rows() -> None:
    page = (PROJECT.root / "docs" / "fidelity.md").read_text(encoding="utf-8")
    for table in tables():
        assert published.text_of(table.rows, markdown=True) in page, f"python -m validation.fidelity: {table.title}"
        assert all(f"\n{row.name}: {row.explained}\n" in page for row in table.rows if row.explained)


def test_every_row_outside_is_explained_in_its_study_and_no_other() -> None:
    for table in tables():
        if table.study.startswith("freebsd_"):
            assert [row.name for row in table.rows if row.inside == bool(row.explained)] == []


def test_the_rows_of_the_freebsd_servers_are_those_of_five_runs() -> None:
    studies = [study for study in published.published_studies(PROJECT) if study.study.startswith("freebsd_")]
    figures = [
        figure
        for study in studies
        if study.published
        for row in study.published.rows.values()
        for figure in row.values()
    ]
    assert len(studies) == 8
    assert sum(isinstance(figure, tuple) and len(figure) >= 4 for figure in figures) >= 520


def numbers(data: Any) -> list[float]:
    if isinstance(data, dict):
        return [number for value in data.values() for number in numbers(value)]
    if isinstance(data, list | tuple):
        return [number for value in data for number in numbers(value)]
    return [float(data)] if isinstance(data, int | float) and not isinstance(data, bool) else []


def test_no_published_value_is_a_parameter() -> None:
    modules = list((PROJECT.root / "libraries" / "lineproof_bench" / "model").glob("*.py"))
    assert modules
    for path in modules:
        assert "studies" not in path.read_text(encoding="utf-8")
    figures = {
        number
        for study in published.published_studies(PROJECT)
        if study.published
        for each in numbers(study.published.model_dump()["rows"])
        for number in (each, each / 1e6)
        if number not in (0.0, 1.0, 256.0) and number < 1000
    }
    rates = 0
    for name in ("netgate6100", "gowin_n305", *(path.stem for path in PROJECT.platforms.glob("freebsd_*.yaml"))):
        model = yaml.safe_load((PROJECT.platforms / f"{name}.yaml").read_text(encoding="utf-8"))["model"]
        for section in model["software"].values():
            found = {key: value for key, value in section.get("nic", {}).items() if key.endswith("_mpps")}
            rates += len(found)
            assert not figures & set(found.values()), f"{name}: {found}"
    assert 0 < rates <= 10


def test_each_worker_has_a_sending_ring_of_its_own() -> None:
    """What one worker's ring is emptied at, two workers send twice: the second found more than the line of one ring."""
    (table,) = (table for table in tables() if table.study == "gowin_n305")
    sent = {row.name: row.modelled for row in table.rows if row.name.startswith("64b saturated")}
    one, two = (sent[f"64b saturated, {name}"] for name in ("1 receive queue", "2 receive queues"))
    assert 1.6 * one < two <= 2 * one
