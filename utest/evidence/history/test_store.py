"""Runs in the store: as they are, once, whole or not at all; several writers lose nothing."""

from __future__ import annotations

import shutil
import sqlite3
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from lineproof.errors import ConfigError, TestbedError
from lineproof.evidence.history.address import store_address
from lineproof.evidence.history.importing import find_runs, import_all, stored_run
from lineproof.evidence.history.store import Added, HistoryStore
from lineproof.evidence.history.tables import StoredRun
from lineproof.evidence.integrity import check_integrity
from lineproof.evidence.run import RunFolder
from support import postgres
from support.history_runs import SENTENCE, around, trial_records, write_run


def open_store(url: str) -> HistoryStore:
    return HistoryStore.open(store_address(url, Path("results")), create=True)


def counts(store: HistoryStore) -> list[int]:
    return [store.query(f"SELECT COUNT(*) AS n FROM {name}")[0]["n"] for name in ("runs", "sentences", "trials")]


def stored_run_in(folder: Path) -> StoredRun:
    return stored_run(check_integrity(folder))


def whole(store: HistoryStore) -> list[object]:
    return [store.query(f"SELECT * FROM {name} ORDER BY 1, 2") for name in ("runs", "sentences", "trials")]


def test_a_run_is_stored_with_its_figures(store_url: str, tmp_path: Path) -> None:
    store = open_store(store_url)
    run = write_run(tmp_path, 3, [5.1e6, 5.2e6, 5.3e6], margin=(1.08, 1.09))
    assert store.add(stored_run_in(run)) is Added.NEW
    (row,) = store.query("SELECT * FROM trend")
    assert (row["run"], row["sentence"], row["release"]) == ("run-0003", SENTENCE, "vpp 24.02")
    assert (row["kind"], row["value"], row["high"]) == ("capacity", pytest.approx(5.4e6), pytest.approx(5.45e6))
    assert not row["simulated"] and row["closed"]
    (sentence,) = store.query("SELECT * FROM sentences")
    assert sentence["measured"] == pytest.approx(5.2e6) and sentence["low"] < 5.2e6 < sentence["high"]
    trials = store.query("SELECT * FROM trials ORDER BY line")
    assert [row["measured"] for row in trials] == [5.1e6, 5.2e6, 5.3e6]
    assert [row["lost"] for row in trials] == [4_900_000, 4_800_000, 4_700_000]
    assert all(row["counted"] for row in trials)


def test_the_same_run_again_changes_nothing(store_url: str, tmp_path: Path) -> None:
    store = open_store(store_url)
    run = write_run(tmp_path, 1, around(5e6, 1))
    assert store.add(stored_run_in(run)) is Added.NEW
    before = whole(store)
    assert store.add(stored_run_in(run)) is Added.SAME
    copy = shutil.copytree(run, tmp_path / "copy")
    assert store.add(stored_run_in(copy)) is Added.SAME
    assert whole(store) == before


def test_an_unclosed_run_is_replaced_by_its_later_states_and_never_by_an_earlier_one(
    store_url: str, tmp_path: Path
) -> None:
    store = open_store(store_url)
    run = write_run(tmp_path, 1, [5e6, 5.1e6], close=False)
    first = stored_run_in(run)
    assert store.add(first) is Added.NEW
    assert [row["closed"] for row in store.query("SELECT closed FROM trend")] in ([False], [0])
    shutil.rmtree(run)
    second = stored_run_in(write_run(tmp_path, 1, [5e6, 5.1e6, 5.2e6], close=False))
    assert store.add(second) is Added.REPLACED
    assert store.add(first) is Added.OLDER
    assert counts(store) == [1, 1, 3]
    shutil.rmtree(run)
    assert store.add(stored_run_in(write_run(tmp_path, 1, [5e6, 5.1e6, 5.2e6]))) is Added.REPLACED
    assert store.add(second) is Added.OLDER
    assert counts(store) == [1, 1, 3]


def test_a_closed_run_of_the_same_name_is_refused_unless_asked_for(store_url: str, tmp_path: Path) -> None:
    store = open_store(store_url)
    store.add(stored_run_in(write_run(tmp_path / "one", 1, [5e6, 5e6])))
    other = stored_run_in(write_run(tmp_path / "two", 1, [6e6, 6e6, 6e6]))
    before = whole(store)
    with pytest.raises(ConfigError, match=r"differs from the run run-0001.*--replace"):
        store.add(other)
    assert whole(store) == before
    assert store.add(other, replace=True) is Added.REPLACED
    assert counts(store) == [1, 1, 3]


def test_a_run_that_fails_halfway_leaves_nothing(
    store_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store(store_url)
    run = stored_run_in(write_run(tmp_path, 1, [5e6, 5e6]))
    twice = replace(run, trials=(*run.trials, run.trials[0]))
    with pytest.raises(TestbedError, match="does not answer"):
        store.add(twice)
    assert counts(store) == [0, 0, 0]


def test_two_writers_at_once_lose_nothing(store_url: str, tmp_path: Path) -> None:
    """Both make the store, both add the same runs and own ones."""
    paths = [write_run(tmp_path / "runs", day, around(5e6, day)) for day in range(12)]
    start = threading.Barrier(3)
    failed: list[BaseException] = []

    def write(own: list[Path]) -> None:
        try:
            start.wait(20)
            store = open_store(store_url)
            for path in own:
                store.add(stored_run_in(path))
        except BaseException as error:
            failed.append(error)

    shares = [paths[:8], paths[4:], [*reversed(paths[2:10])]]
    threads = [threading.Thread(target=write, args=(share,)) for share in shares]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert failed == []
    store = open_store(store_url)
    assert counts(store) == [12, 12, 60]
    assert all(row["n"] == 5 for row in store.query("SELECT COUNT(*) AS n FROM trials GROUP BY run_id"))


def test_an_import_says_of_each_run_what_became_of_it(tmp_path: Path) -> None:
    paths = [write_run(tmp_path / "runs", day, around(5e6, day)) for day in range(2)]
    address = store_address(str(tmp_path / "history.db"), tmp_path)
    for added, trials in (("imported", 5), ("unchanged", 0)):
        found = import_all(address, paths)
        assert [(item.run, item.added, item.trials) for item in found] == [
            (f"run-000{day}", added, trials) for day in range(2)
        ]


@pytest.mark.slow
def test_what_postgresql_answers_shows_no_password(database: str) -> None:
    gone = database.replace("/t", "/none")
    with pytest.raises(TestbedError, match="does not answer") as error:
        open_store(gone)
    assert postgres.SECRET not in str(error.value)
    assert postgres.SECRET not in store_address(database, Path()).shown


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:topsecret@db.example/lab",
        "postgres://me@db.example/lab?password=topsecret",
        "postgresql+psycopg://me:top%20secret@db.example/lab",
    ],
)
def test_no_address_shows_its_password(url: str) -> None:
    found = store_address(url, Path())
    assert "secret" not in found.shown and "db.example/lab" in found.shown
    assert "secret" not in found.masked(f"connection failed: {found.url}")


@pytest.mark.parametrize(
    "url", ["mysql://a:pw@b/c", "postgresql://a:pw@b:port/c", "sqlite://", "sqlite:///", "http://pw"]
)
def test_a_wrong_address_says_what_is_expected_and_no_password(url: str) -> None:
    with pytest.raises(ConfigError, match="expected a file") as error:
        store_address(url, Path())
    assert "pw" not in str(error.value)


def test_the_store_is_named_by_option_variable_or_project(tmp_path: Path) -> None:
    given = {"LINEPROOF_HISTORY": "/elsewhere/h.db"}
    assert store_address("sqlite:///rel.db", tmp_path, given).file == Path("rel.db").absolute()
    assert store_address(None, tmp_path, given).file == Path("/elsewhere/h.db")
    assert store_address(None, tmp_path, {}).file == tmp_path / "history.db"


def test_files_that_are_no_store_are_refused(tmp_path: Path) -> None:
    text = tmp_path / "text.db"
    text.write_text("not a database, though as long as the header of one: " * 20)
    with pytest.raises(ConfigError, match="no SQLite database"):
        open_store(str(text))
    assert text.read_text().startswith("not a database")
    other = tmp_path / "other.db"
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE runs (mine INTEGER)")
    with pytest.raises(ConfigError, match="table 'runs' of something else"):
        open_store(str(other))
    open_store(str(tmp_path / "new.db")).close()
    with sqlite3.connect(tmp_path / "new.db") as connection:
        connection.execute("UPDATE store SET version = 99")
    with pytest.raises(ConfigError, match="version 99"):
        open_store(str(tmp_path / "new.db"))
    with pytest.raises(ConfigError, match="no store yet"):
        HistoryStore.open(store_address(str(tmp_path / "none.db"), tmp_path))
    with pytest.raises(ConfigError, match="is a folder"):
        open_store(str(tmp_path))


def test_a_record_of_other_types_is_refused_with_its_line(tmp_path: Path) -> None:
    """A chain may be right though the records are not: somebody made both."""
    run = RunFolder.create(tmp_path, "run-1")
    (record,) = trial_records("run-1", [5e6], 0.0, False)
    run.add(record)
    data = record.to_json()
    (counts,) = data["trial"]["outcome"]["directions"]
    run._append("trials.jsonl", {**data, "trial": "zero"})
    run.close()
    with pytest.raises(ConfigError, match=r"trials\.jsonl:2"):
        stored_run_in(run.path)
    other = RunFolder.create(tmp_path, "run-2")
    counts["offered"] = 2**70
    other._append("trials.jsonl", {**data, "run": "run-2"})
    other.close()
    with pytest.raises(ConfigError, match=r"trials\.jsonl:1"):
        stored_run_in(other.path)


def test_text_that_a_database_cannot_hold_is_stored_visibly(store_url: str, tmp_path: Path) -> None:
    store = open_store(store_url)
    run = write_run(tmp_path, 1, [5e6, 5e6], release="24\x00.02 \x1b[31m", platform="bö\udcff")
    assert store.add(stored_run_in(run)) is Added.NEW
    (row,) = store.query("SELECT release, platform FROM runs")
    assert row == {"release": r"vpp 24\x00.02 \x1b[31m", "platform": r"bö\udcff"}


def test_runs_are_found_below_a_folder_and_links_are_not_followed(tmp_path: Path) -> None:
    first = write_run(tmp_path / "results", 1, [5e6])
    second = write_run(tmp_path / "results" / "nightly", 2, [5e6])
    (tmp_path / "results" / "link").symlink_to(first)
    (tmp_path / "results" / "empty").mkdir()
    assert find_runs(tmp_path / "results") == sorted([first, second])
    assert find_runs(first) == [first]
    for wrong in (tmp_path / "results" / "empty", tmp_path / "none"):
        with pytest.raises(ConfigError, match="expected"):
            find_runs(wrong)
