"""The model against the published figures of the Netgate 6100."""

from __future__ import annotations

from pathlib import Path

import pytest

from linerate.studies import fidelity
from model_bench import PROJECT


def test_at_least_41_of_43_rows_are_inside() -> None:
    found = fidelity.rows(PROJECT)
    assert len(found) == 43
    assert sum(row.inside for row in found) >= 41, fidelity.table(row for row in found if not row.inside)


def test_the_page_holds_what_the_study_prints(capsys: pytest.CaptureFixture[str]) -> None:
    assert fidelity.main(["--markdown", "--root", str(PROJECT.root)]) == 0
    table = [line for line in capsys.readouterr().out.splitlines() if line.startswith("|")]
    page = (PROJECT.root / "docs" / "fidelity.md").read_text(encoding="utf-8")
    assert "\n".join(table) in page


def test_a_model_that_is_wrong_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("platforms", "profiles"):
        (tmp_path / "variables" / name).mkdir(parents=True)
        for path in (PROJECT.root / "variables" / name).glob("*.yaml"):
            (tmp_path / "variables" / name / path.name).write_text(path.read_text(encoding="utf-8"), encoding="utf-8")
    platform = tmp_path / "variables" / "platforms" / "netgate6100.yaml"
    platform.write_text(platform.read_text(encoding="utf-8").replace("clock_mhz: 2200", "clock_mhz: 1100"))
    assert fidelity.main(["--root", str(tmp_path)]) == 1
    assert "NO" in capsys.readouterr().out


def test_no_published_value_is_a_parameter() -> None:
    sources = list((PROJECT.root / "libraries" / "linerate" / "embedded").glob("model*/*.py"))
    sources.append(PROJECT.root / "libraries" / "linerate" / "embedded" / "model_backend.py")
    for path in sources:
        assert "published-figures" not in path.read_text(encoding="utf-8")
