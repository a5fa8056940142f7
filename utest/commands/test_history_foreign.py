"""What others measured: imported, marked, compared, never mixed with own runs."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from lineproof.commands.main import main
from lineproof.errors import ConfigError
from support.history_runs import around, write_run

SAMPLE = "10970686\n10945136\n10966472\n10934052\n10917371.5\n"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("LINEPROOF_HISTORY", raising=False)
    return tmp_path


def loadtest(path: Path, received: list[float], simulated: bool = False, one_way: bool = True) -> Path:
    """A ramp of 1 Mpps more in each second, of which *received* came back."""
    stats = {
        str(number): {
            "0": {"tx_pps": 1e6 * (number + 1), "rx_pps": 0.0 if one_way else 1e6 * (number + 1), "tx_util": 1.0},
            "1": {"tx_pps": 0.0 if one_way else 1e6 * (number + 1), "rx_pps": rate, "tx_util": 1.0},
        }
        for number, rate in enumerate(received)
    }
    settings = {"profile_file": "bench/64B.py", "unidirectional": one_way, "simulated": simulated}
    path.write_text(json.dumps({"vars": settings, "stats": stats}))
    return path


def netbenches(folder: Path) -> Path:
    where = folder / "Xeon_E5" / "Chelsio" / "firewalls" / "results" / "fbsd11.1"
    where.mkdir(parents=True)
    (where / "forwarding.inet4.pps").write_text(SAMPLE)
    (where / "overloaded.pps").write_text("")
    (where / "README.md").write_text("words")
    return where


def rows(capsys: pytest.CaptureFixture[str], *words: str) -> list[dict[str, Any]]:
    capsys.readouterr()
    assert main(["history", "compare", "--json", *words]) == 0
    found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["rows"]
    return found


def test_both_kinds_are_imported_marked_and_compared(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_run(project / "results", 1, around(5.2e6, 1))
    # a gap that closes is none; from 5 Mpps on the router is overloaded
    found = loadtest(project / "netgate6100-64B.json", [1e6, 1.9e6, 3e6, 4e6, 4.5e6, 4.6e6])
    for given in (["results"], [str(found), "--date", "2021-11-26"], [str(netbenches(project))]):
        assert main(["history", "import", *given]) == 0
    assert capsys.readouterr().out.count("FOREIGN") == 2
    known = {(row["origin"], row["platform"], row["sentence"]): row["value"] for row in rows(capsys)}
    assert known == {
        ("netbenches", "Xeon_E5/Chelsio", "forwarding.inet4 forwards"): pytest.approx(10946743.5),
        ("lineproof", "box", "64b unidirectional forwards ≥ 5 Mpps"): pytest.approx(5.2e6, rel=0.01),
        ("trex-loadtest", "netgate6100", "64B unidirectional forwards"): 4.6e6,
        ("trex-loadtest", "netgate6100", "64B unidirectional throughput, loss ≤ 0.1 %"): 4e6,
    }
    assert main(["history", "compare", "--svg", "c.svg", "--csv", "c.csv"]) == 0
    assert "[FOREIGN (netbenches)]" in capsys.readouterr().out
    assert "FOREIGN (trex-loadtest)" in (project / "c.svg").read_text(encoding="utf-8")
    with (project / "c.csv").open(encoding="utf-8") as file:
        assert {row["origin"] for row in csv.DictReader(file)} == {"lineproof", "netbenches", "trex-loadtest"}
    assert main(["history", "trend"]) == 0
    assert capsys.readouterr().out.count("FOREIGN: measured by others") == 4


def test_the_same_again_changes_nothing_and_other_labels_are_asked_about(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(loadtest(project / "box-64B.json", [1e6, 1.5e6], simulated=True, one_way=False))
    assert main(["history", "import", path]) == 0
    assert main(["history", "import", path]) == 0
    assert "unchanged" in capsys.readouterr().out
    with pytest.raises(ConfigError, match=r"with another platform, software or date \(as box\); --replace"):
        main(["history", "import", path, "--platform", "other"])
    assert main(["history", "import", path, "--platform", "other", "--replace"]) == 0
    assert {(row["platform"], row["simulated"]) for row in rows(capsys)} == {("other", True)}


@pytest.mark.parametrize(
    "text",
    [
        *("", "{}", "[]", '{"vars": {}, "stats": {}}', '{"vars": {"profile_file": "a"}, "stats": {}}'),
        '{"vars": {"profile_file": "a"}, "stats": {"0": {"0": {"tx_pps": "x"}, "1": {}}}}',
        '{"vars": {"profile_file": "a"}, "stats": {"0": {"0": {"tx_pps": -1, "rx_pps": 1e999}, "1": {}}}}',
    ],
)
def test_what_is_no_load_test_is_refused_by_name(project: Path, text: str) -> None:
    (project / "x-64B.json").write_text(text)
    with pytest.raises(ConfigError, match=r"x-64B\.json"):
        main(["history", "import", "x-64B.json"])


@pytest.mark.parametrize("text", ["fast\n", "1e6\n-1\n", "nan\n", "inf\n", "\x00\n"])
def test_what_is_no_sample_is_refused_with_its_line(project: Path, text: str) -> None:
    (netbenches(project) / "bad.pps").write_text(text)
    with pytest.raises(ConfigError, match=r"bad\.pps:\d: .*frames/s"):
        main(["history", "import", str(project / "Xeon_E5/Chelsio/firewalls/results/fbsd11.1")])


def test_a_ramps_own_file_says_its_platform(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = loadtest(project / "003-net-6100-64b-1-flow-loadtest.json", [1e6], simulated=True)
    path.write_text(path.read_text().replace("bench/64B.py", "64b 1-flow"))
    assert main(["history", "import", str(path)]) == 0
    assert {(row["platform"], row["simulated"]) for row in rows(capsys)} == {("net-6100", True)}


def test_labels_are_for_foreign_files_only(project: Path) -> None:
    write_run(project / "results", 1, [5e6, 5e6])
    with pytest.raises(ConfigError, match="foreign files"):
        main(["history", "import", "results", "--platform", "other"])
