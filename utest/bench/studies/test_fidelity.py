"""The model against the published figures of real routers."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from linerate_bench.studies import fidelity, published
from support.model_bench import PROJECT


@cache
def tables() -> tuple[published.Table, ...]:
    return published.tables(PROJECT)


def test_at_least_41_of_the_43_rates_of_the_netgate_are_inside() -> None:
    found = tables()[0]
    assert found.strict
    assert len(found.rows) == 43
    assert sum(row.inside for row in found.rows) >= 41, fidelity.text_of([row for row in found.rows if not row.inside])


def test_at_least_95_percent_of_all_rows_are_inside() -> None:
    rows = [row for table in tables() for row in table.rows]
    assert len(rows) > 120
    assert sum(row.inside for row in rows) >= 0.95 * len(rows)
    assert fidelity.enough_inside(tables())


@pytest.mark.parametrize("number", [1, 2, 3, 4, 6])
def test_telemetry_gowin_and_changes_are_inside_altogether(number: int) -> None:
    table = tables()[number]
    assert table.rows
    assert all(row.inside for row in table.rows), fidelity.text_of([row for row in table.rows if not row.inside])


def test_the_page_holds_what_the_study_prints(capsys: pytest.CaptureFixture[str]) -> None:
    assert fidelity.main(["--markdown", "--root", str(PROJECT.root)]) == 0
    page = (PROJECT.root / "docs" / "fidelity.md").read_text(encoding="utf-8")
    assert capsys.readouterr().out.strip() in page


def test_every_row_outside_is_explained() -> None:
    page = (PROJECT.root / "docs" / "fidelity.md").read_text(encoding="utf-8").partition("## The rows")[0]
    for table in tables():
        for row in table.rows:
            assert row.inside or f"| {row.name} |" in page


def test_a_wrong_model_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("platforms", "profiles"):
        (tmp_path / "variables" / name).mkdir(parents=True)
        for path in (PROJECT.root / "variables" / name).glob("*.yaml"):
            (tmp_path / "variables" / name / path.name).write_text(path.read_text(encoding="utf-8"), encoding="utf-8")
    platform = tmp_path / "variables" / "platforms" / "netgate6100.yaml"
    platform.write_text(platform.read_text(encoding="utf-8").replace("clock_mhz: 2200", "clock_mhz: 1100"))
    assert fidelity.main(["--root", str(tmp_path)]) == 1
    assert "NO" in capsys.readouterr().out


def numbers(data: Any) -> list[float]:
    if isinstance(data, dict):
        return [number for value in data.values() for number in numbers(value)]
    if isinstance(data, list):
        return [number for value in data for number in numbers(value)]
    return [float(data)] if isinstance(data, int | float) and not isinstance(data, bool) else []


def test_no_published_value_is_a_parameter() -> None:
    modules = list((PROJECT.root / "libraries" / "linerate_bench" / "model").glob("*.py"))
    assert modules
    for path in modules:
        assert "studies" not in path.read_text(encoding="utf-8")
    figures = {
        number
        for path in published.DATA.glob("*.yaml")
        for number in numbers(yaml.safe_load(path.read_text(encoding="utf-8")))
        if number not in (0.0, 1.0, 256.0) and number < 1000
    }
    rates = 0
    for name in ("netgate6100", "gowin_n305", *(path.stem for path in PROJECT.platforms.glob("freebsd_*.yaml"))):
        model = yaml.safe_load((PROJECT.platforms / f"{name}.yaml").read_text(encoding="utf-8"))["model"]
        for section in model["software"].values():
            found = {key: value for key, value in section.get("nic", {}).items() if key.endswith("_mpps")}
            rates += len(found)
            assert not figures & set(found.values()), f"{name}: {found}"
    assert rates < 6
