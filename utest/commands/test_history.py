"""``lineproof history``: import, trend and list, as a person uses them."""

from __future__ import annotations

import csv
import io
import json
import re
import sys
import xml.etree.ElementTree as ET
from collections import Counter
from pathlib import Path

import pytest

from lineproof.commands.main import main
from lineproof.errors import ConfigError
from lineproof.evidence.history.address import store_address
from lineproof.evidence.history.store import HistoryStore
from support.history_runs import SENTENCE, around, two_releases, write_run
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


def imported(project: Path, capsys: pytest.CaptureFixture[str]) -> str:
    return output(capsys, "import", str(project / "results"))


def points(capsys: pytest.CaptureFixture[str], *words: str) -> list[dict[str, object]]:
    found: list[dict[str, object]] = json.loads(output(capsys, "trend", "--json", *words))["points"]
    return found


def test_simulated_runs_other_goals_and_platforms_are_trends_of_their_own(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for day in range(3):
        write_run(project / "results", day, around(5.4e6, day), name=f"real{day}")
        write_run(project / "results", day, around(9.9e6, day), name=f"sim{day}", simulated=True)
        write_run(project / "results", day, around(5.4e6, day), name=f"quick{day}", goal="quick")
        write_run(project / "results", day, around(5.4e6, day), name=f"other{day}", platform="other")
    assert imported(project, capsys).count("SIMULATED") == 3
    found = Counter((item["platform"], item["goal"], item["simulated"]) for item in points(capsys))
    assert list(found.items()) == [
        (("box", "quick", False), 3),
        (("box", "standard", False), 3),
        (("other", "standard", False), 3),
        (("box", "standard", True), 3),
    ]
    assert output(capsys, "trend").count("SIMULATED – not a measurement") == 1
    assert len(points(capsys, "--platform", "other")) == 3
    assert len(points(capsys, "--sentence", "FORWARDS ≥ 5")) == 12
    assert points(capsys, "--since", "2026-09-22")[0]["run"] == "quick1"
    with pytest.raises(ConfigError, match="no sentence of these"):
        main(["history", "trend", "--sentence", "5%"])  # a letter, no wildcard


def test_a_pass_without_a_search_is_no_change_among_margins(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for day in range(12):
        margin = None if day in (4, 5, 6) else (1.08, 1.09)
        write_run(project / "results", day, around(5e6, day), sentence="64b unidirectional ≥ 5 Mpps", margin=margin)
    imported(project, capsys)
    found = json.loads(output(capsys, "trend", "--json"))
    assert {point["kind"] for point in found["points"]} == {"capacity", "at least"}
    assert found["changes"] == []


def test_a_release_is_named_by_what_is_new_in_it(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    system, other = "Linux box 6.1.0 #1 SMP, x86", "Linux box 6.1.9 #1 SMP, x86"
    releases = [("24.02", system), ("24.06", system), ("24.06", other)]
    for day, (version, kernel) in enumerate(releases):
        versions = {"router.version": version, "router.kernel": kernel}
        write_run(project / "results", day, around(5e6, day), versions=versions)
    imported(project, capsys)
    told = output(capsys, "trend")
    assert "new release: version 24.06\n" in told and "new release: kernel Linux box 6.1.9 #1 SMP\n" in told
    lines = output(capsys, "list").splitlines()
    assert "24.06" in lines[-2] and "kernel" not in lines[-2]
    assert points(capsys)[1]["release"] == f"kernel {system}, version 24.06"


def test_more_latency_is_worse(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sentence = "64b unidirectional loses ≤ 60 % at 5 Mpps"
    for day in range(12):
        write_run(project / "results", day, around(6e6 if day < 6 else 5e6, day), sentence=sentence)
    imported(project, capsys)
    assert "WORSE +2" in output(capsys, "trend")


def test_the_files_say_the_same(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    two_releases(project / "results", words="=64b <b> $x$ unidirectional forwards ≥ 5 Mpps")
    imported(project, capsys)
    shown = output(capsys, "trend", "--svg", "out/t.svg", "--csv", "out/t.csv")
    assert "<b> $x$" in shown
    rows = list(csv.DictReader(io.StringIO((project / "out" / "t.csv").read_text(encoding="utf-8"))))
    assert len(rows) == 20
    assert rows[0]["sentence"].startswith("'=64b <b>")
    assert float(rows[0]["value"]) == pytest.approx(5.4e6, rel=0.01)
    assert [row["run"] for row in rows if row["change_percent"]] == ["run-0010"]
    picture = ET.fromstring((project / "out" / "t.svg").read_bytes())
    words = " ".join(item.text or "" for item in picture.iter("{http://www.w3.org/2000/svg}text"))
    assert "vpp 24.06" in words and "worse" in words and "<b>" in words


def test_a_picture_is_marked_and_has_room_for_so_many(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number in range(13):
        write_run(project / "results", 1, [5e6, 5e6], name=f"r{number}", platform=f"p{number}", simulated=True)
    imported(project, capsys)
    with pytest.raises(ConfigError, match="13 trends are too many"):
        main(["history", "trend", "--svg", "t.svg"])
    output(capsys, "trend", "--svg", "t.svg", "--platform", "p1")
    assert "SIMULATED" in (project / "t.svg").read_text(encoding="utf-8")


def test_altered_runs_are_named_and_the_others_imported(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_run(project / "results", 1, [5e6, 5e6])
    bad = write_run(project / "results", 2, [5e6, 5e6])
    (bad / "requirements.jsonl").write_text("")
    assert main(["history", "import", "results"]) == 1
    shown = capsys.readouterr().out
    assert "REFUSED" in shown and "run-0002" in shown and "1 of 2 runs added" in shown


def test_without_the_extra_it_is_named(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "sqlalchemy"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "sqlalchemy", None)
    with pytest.raises(ConfigError, match=r"pip install 'lineproof\[history\]"):
        main(["history", "list"])


def test_the_pages_queries_run(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_run(project / "results", 1, [5e6, 5e6])
    imported(project, capsys)
    store = HistoryStore.open(store_address(str(project / "results" / "history.db"), project))
    page = (ROOT / "docs" / "history.md").read_text(encoding="utf-8")
    queries = re.findall(r"```sql\n(.*?)```", page, re.DOTALL)
    assert queries
    for query in queries:
        for statement in filter(str.strip, query.split(";")):
            store.query(statement)
    assert SENTENCE in str(store.query("SELECT * FROM latest"))
