"""Runs in the store: as they are, once, whole or not at all; several writers lose nothing."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import sqlite3
import subprocess
import tempfile
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg
import pytest

from lineproof.errors import ConfigError, TestbedError
from lineproof.evidence.history.store import HistoryStore, Imported, import_run, runs, runs_named, sentences, store_url
from support.made_runs import SENTENCE, few, write_run

pytestmark = pytest.mark.usefixtures("as_recorded")


def open_store(url: str) -> HistoryStore:
    return HistoryStore(store_url(url, Path("results")), create=True)


def stored(store: HistoryStore) -> list[list[dict[str, Any]]]:
    return [[dict(row._mapping) for row in store.read(table.select().order_by("run"))] for table in (runs, sentences)]


def test_a_run_is_stored_with_its_figures(place: str, tmp_path: Path) -> None:
    store = open_store(place)
    path = write_run(tmp_path, 3, [5.1e6, 5.2e6, 5.3e6], margin=(1.08, 1.09))
    assert import_run(store, path) == Imported(str(path), "run-0003", "imported", 1)
    (run,), (sentence,) = stored(store)
    assert (run["run"], run["release"], run["simulated"], run["closed"]) == ("run-0003", "vpp 24.02", False, True)
    assert (sentence["sentence"], sentence["kind"], sentence["trials"]) == (SENTENCE, "capacity", 3)
    assert [sentence[name] for name in ("value", "low", "high")] == pytest.approx([5.4e6, 5.4e6, 5.45e6])
    measured = import_run(store, write_run(tmp_path, 4, [5.1e6, 5.2e6, 5.3e6]))
    assert measured.added == "imported"
    sentence = stored(store)[1][1]
    assert (sentence["kind"], sentence["value"]) == ("measured", pytest.approx(5.2e6))
    assert sentence["low"] < 5.2e6 < sentence["high"] and sentence["lost"] == pytest.approx(0.48)


def test_an_unclosed_run_is_replaced_and_a_closed_one_never(place: str, tmp_path: Path) -> None:
    store, three = open_store(place), [5e6, 5.1e6, 5.2e6]
    first = write_run(tmp_path / "first", 1, three[:2], closed=False)
    closed = write_run(tmp_path / "closed", 1, three)
    assert [import_run(store, path).added for path in (first, closed)] == ["imported", "replaced"]
    before = stored(store)
    assert before[0][0]["closed"] and before[1][0]["trials"] == 3
    for other in (first, write_run(tmp_path / "other", 1, [6e6, 6e6, 6e6])):
        assert "differs from the run run-0001" in import_run(store, other).refused
    assert stored(store) == before


def test_a_run_that_fails_halfway_leaves_nothing(place: str) -> None:
    store = open_store(place)
    run = dict.fromkeys(("run", "folder", "testbed", "platform", "software", "release", "sha256"), "a")
    with pytest.raises(TestbedError, match="does not answer"):
        store.add({**run, "simulated": False, "closed": True, "started": 0.0}, [{"number": 1}])
    assert stored(store) == [[], []]


def test_writers_at_once_lose_nothing(place: str, tmp_path: Path) -> None:
    """All make the store, and add the same runs and own ones."""
    paths = [write_run(tmp_path / "runs", day, few(5e6, day)) for day in range(12)]
    start = threading.Barrier(3)
    failed: list[object] = []

    def write(own: list[Path]) -> None:
        try:
            start.wait(20)
            store = open_store(place)
            failed.extend(each.refused for path in own if (each := import_run(store, path)).refused)
        except BaseException as error:
            failed.append(error)

    shares = [paths[:8], paths[4:], [*reversed(paths[2:10])]]
    threads = [threading.Thread(target=write, args=(share,)) for share in shares]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert failed == []
    assert list(map(len, stored(open_store(place)))) == [12, 12]


@pytest.mark.parametrize(
    "url",
    ["postgresql://me:topsecret@localhost:1/lab", "postgres://me@localhost:1/lab?password=topsecret"],
)
def test_no_message_shows_a_password(url: str) -> None:
    with pytest.raises(TestbedError, match="localhost:1/lab") as error:
        open_store(url)
    assert "topsecret" not in str(error.value)


@pytest.mark.parametrize(
    "url", ["mysql://a:pw@b/c", "postgresql://a:pw@b:port/c", "sqlite://", "sqlite:///", "http://pw"]
)
def test_a_wrong_address_says_what_is_expected_and_no_password(url: str) -> None:
    with pytest.raises(ConfigError, match="expected a file") as error:
        store_url(url, Path())
    assert "pw" not in str(error.value)


def test_the_store_is_named_by_option_variable_or_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LINEPROOF_HISTORY", "/elsewhere/h.db")
    assert store_url("sqlite:///rel.db", tmp_path).database == "rel.db"
    assert store_url(None, tmp_path).database == "/elsewhere/h.db"
    monkeypatch.delenv("LINEPROOF_HISTORY")
    assert store_url(None, tmp_path).database == str(tmp_path / "history.db")


def test_files_that_are_no_store_are_refused(tmp_path: Path) -> None:
    words, other = tmp_path / "text.db", tmp_path / "other.db"
    words.write_text("not a database, though as long as the header of one: " * 20)
    with pytest.raises(TestbedError, match="is not a database"):
        open_store(str(words))
    assert words.read_text().startswith("not a database")
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE runs (mine INTEGER)")
    with pytest.raises(ConfigError, match="no store of this version"):
        open_store(str(other))
    with pytest.raises(ConfigError, match="no store yet"):
        HistoryStore(store_url(str(tmp_path / "none.db"), tmp_path))


def test_runs_are_found_below_a_folder_and_links_are_not_followed(tmp_path: Path) -> None:
    first = write_run(tmp_path / "results", 1, [5e6])
    second = write_run(tmp_path / "results" / "nightly", 2, [5e6])
    (tmp_path / "results" / "link").symlink_to(first)
    (tmp_path / "results" / "empty").mkdir()
    assert runs_named(str(tmp_path / "results")) == sorted([first, second])
    assert runs_named(str(first)) == [first]
    for wrong in (tmp_path / "results" / "empty", tmp_path / "none"):
        with pytest.raises(ConfigError, match="expected"):
            runs_named(str(wrong))


@pytest.fixture(scope="session")
def cluster() -> Iterator[str]:
    """The URL of a PostgreSQL of its own, in a temporary folder and reached by a Unix socket only."""
    makers = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    if not makers:
        pytest.skip("needs PostgreSQL's server: apt-get install postgresql")
    home = Path(tempfile.mkdtemp(prefix="pg-"))
    # PostgreSQL refuses to run as root: another user owns the cluster and runs it then
    user = "nobody" if os.getuid() == 0 else None
    if user is not None:
        os.chown(home, pwd.getpwnam(user).pw_uid, -1)

    def run(program: str, *words: str) -> None:
        command = [str(makers[-1].with_name(program)), "-D", str(home / "data"), *words]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, timeout=60, user=user, cwd=home, env={})

    try:
        run("initdb", "-U", "tester", "-A", "trust", "-N", "-E", "UTF8", "--locale=C.UTF-8")
        run("pg_ctl", "start", "-w", "-l", str(home / "log"), "-o", f"-c listen_addresses= -c fsync=off -k {home}")
        yield f"postgresql://tester:nobody-checks@/postgres?host={quote(str(home), safe='')}"
    finally:
        with contextlib.suppress(subprocess.CalledProcessError):
            run("pg_ctl", "stop", "-m", "immediate")
        shutil.rmtree(home, ignore_errors=True)


@pytest.fixture
def database(cluster: str) -> str:
    """An empty database of that server, as a URL."""
    name = f"t{uuid.uuid4().hex}"
    with contextlib.closing(psycopg.connect(cluster, autocommit=True)) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
    return cluster.replace("/postgres?", f"/{name}?")


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A store that does not exist yet, of each kind."""
    if request.param == "sqlite":
        return str(tmp_path / "store" / "history.db")
    found: str = request.getfixturevalue("database")
    return found
