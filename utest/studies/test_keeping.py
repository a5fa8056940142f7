"""The pages of a study's run: do they say what its records say?"""

from __future__ import annotations

from pathlib import Path

import pytest

from lineproof.commands.main import main
from lineproof.errors import LineproofError
from lineproof.evidence.run_files import DERIVED_SUMS, STUDY_FORMS, sha256_of
from lineproof.evidence.verification import derived_note
from lineproof.studies.history import read_results
from lineproof.studies.page import check_forms, write_results
from support.study_runs import kept, prepared_in


def run_in(folder: Path, **changed: object) -> Path:
    run = kept(prepared_in(folder), folder / "results", (33.4, 33.6, 33.5, 33.3), **changed).folder
    write_results(read_results(run))
    return run


def edit(run: Path, name: str, before: str, after: str) -> None:
    """Change a page, and its sum as well, as somebody would who knows of it."""
    path, sums = run / name, run / DERIVED_SUMS
    digest, text = sha256_of(path), path.read_text(encoding="utf-8")
    assert before in text
    path.write_text(text.replace(before, after), encoding="utf-8")
    sums.write_text(sums.read_text(encoding="utf-8").replace(digest, sha256_of(path)), encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("study.html", "SIMULATED", "MEASURED"),
        ("study.txt", "33.45", "35.45"),
        ("study.csv", ",true,", ",false,"),
        ("study.md", "INCOMPLETE", "COMPLETE"),
    ],
)
def test_a_page_that_says_something_else_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, before: str, after: str
) -> None:
    run = run_in(tmp_path)
    assert main(["verify", str(run)]) == 0
    assert "as the run left it" in capsys.readouterr().out
    edit(run, name, before, after)
    assert main(["verify", str(run)]) == 1
    shown = capsys.readouterr().out
    assert f"  {name} is not what the records come to; 'lineproof study report {run.name}' makes it again" in shown
    write_results(read_results(run))
    assert main(["verify", str(run)]) == 0


@pytest.mark.slow
def test_what_is_no_page_of_the_run_is_named(tmp_path: Path) -> None:
    run = run_in(tmp_path)
    (run / "study.md").unlink()
    (run / "study.md").symlink_to(tmp_path / "elsewhere")
    assert [item.file for item in check_forms(run)[0]] == ["study.md"]
    (run / "measurements.jsonl").unlink()
    assert {item.file for item in check_forms(run)[0]} == {*STUDY_FORMS}
    assert main(["verify", str(run)]) == 1


@pytest.mark.slow
def test_altered_records_have_no_results(tmp_path: Path) -> None:
    run = run_in(tmp_path)
    records = run / "measurements.jsonl"
    records.write_text(records.read_text(encoding="utf-8").replace('"value": 33.4', '"value": 35.4'), encoding="utf-8")
    assert main(["verify", str(run)]) == 1
    with pytest.raises(LineproofError, match=r"measurements\.jsonl"):
        read_results(run)


@pytest.mark.slow
def test_a_page_of_another_lineproof_is_known_by_its_sum(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its words may be others. Whoever changed it since is found out."""
    run = run_in(tmp_path)
    monkeypatch.setattr("lineproof.studies.page.code_digest", lambda: "another")
    edit(run, "study.txt", "33.45", "35.45")
    problems, (note,) = check_forms(run)
    assert problems == () and note.startswith("study.txt is not what") and "another Lineproof made the run" in note
    assert main(["verify", str(run)]) == 0
    path = run / "study.html"
    path.write_text(path.read_text(encoding="utf-8").replace("33.45", "35.45"), encoding="utf-8")
    assert main(["verify", str(run)]) == 1
    (run / DERIVED_SUMS).unlink()
    assert {item.file for item in check_forms(run)[0]} == {"study.txt", "study.html"}
    assert main(["verify", str(run)]) == 1


@pytest.mark.slow
def test_what_rounds_differently_is_the_same(tmp_path: Path) -> None:
    run = run_in(tmp_path)
    edit(run, "study.csv", "33.45", "33.450000000001")
    assert check_forms(run) == ((), ())


@pytest.mark.slow
def test_sums_of_pages_are_not_taken_for_those_of_all_else(tmp_path: Path) -> None:
    run = run_in(tmp_path)
    assert derived_note(run) == ""
    (run / "allure").mkdir()
    assert "does not name allure, by which" in derived_note(run)
