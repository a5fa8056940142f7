"""``lineproof history``: import and trend, as a person uses them."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from lineproof.commands.main import main
from lineproof.errors import ConfigError
from lineproof.evidence.history.store import HistoryStore, store_url
from support.made_runs import SENTENCE, few, write_run
from support.paths import ROOT


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("LINEPROOF_HISTORY", raising=False)
    return tmp_path


def output(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    capsys.readouterr()
    assert main(["history", *words]) == 0
    return capsys.readouterr().out


def trend(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    output(capsys, "import", "results")
    found: dict[str, Any] = json.loads(output(capsys, "trend", "--json", *words))
    return found


def test_unlike_things_have_tables_of_their_own(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for day in range(3):
        write_run(project / "results", day, few(5.4e6, day), name=f"real{day}")
        write_run(project / "results", day, few(9.9e6, day), name=f"sim{day}", simulated=True)
        write_run(project / "results", day, few(5.4e6, day), name=f"quick{day}", goal="quick")
        write_run(project / "results", day, few(5.4e6, day), name=f"other{day}", platform="other")
    output(capsys, "import", "results")
    tables = [line for line in output(capsys, "trend").splitlines() if ", goal " in line]
    goals = [f"{platform} vpp on lab, goal {goal}" for platform, goal in (("box", "quick"), ("box", "standard"))]
    assert tables == [*goals, "other vpp on lab, goal standard", "box vpp on lab, goal standard"]
    assert output(capsys, "trend").count("SIMULATED – not a measurement") == 1
    for words, points in (
        (("--platform", "other"), 3),
        (("--sentence", "FORWARDS ≥ 5"), 12),
        (("--since", "2026-09-22"), 8),
    ):
        assert len(trend(capsys, *words)["points"]) == points
    with pytest.raises(ConfigError, match="no sentence of these"):
        main(["history", "trend", "--sentence", "5%"])  # a letter, no wildcard


def test_a_pass_without_a_search_is_no_change_among_margins(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for day in range(12):
        margin = None if day in (4, 5, 6) else (1.08, 1.09)
        write_run(project / "results", day, few(5e6, day), sentence="64b unidirectional ≥ 5 Mpps", margin=margin)
    found = trend(capsys)
    assert {point["kind"] for point in found["points"]} == {"capacity", "at least"}
    assert found["changes"] == []


@pytest.mark.parametrize("sentence", [SENTENCE, "64b unidirectional loses ≤ 60 % at 5 Mpps"])
def test_fewer_frames_forwarded_is_worse_in_either_sense(
    project: Path, capsys: pytest.CaptureFixture[str], sentence: str
) -> None:
    for day in range(12):
        write_run(project / "results", day, few(6e6 if day < 6 else 5e6, day), sentence=sentence)
    (change,) = trend(capsys)["changes"]
    assert change["worse"] and change["run"] == "run-0006" and abs(change["percent"]) > 15


def test_without_the_extra_it_is_named(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith(("sqlalchemy", "lineproof.evidence.history"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "sqlalchemy", None)
    with pytest.raises(ConfigError, match=r"pip install 'lineproof\[history\]"):
        main(["history", "trend"])


def test_the_pages_queries_run(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_run(project / "results", 1, [5e6, 5e6])
    output(capsys, "import", "results")
    store = HistoryStore(store_url(None, project / "results"))
    page = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
    queries = re.findall(r"```sql\n(.*?)```", page, re.DOTALL)
    assert queries
    for statement in filter(str.strip, ";".join(queries).split(";")):
        assert store.rows(text(statement))
