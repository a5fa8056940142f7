"""Stores: a SQLite file, and a real PostgreSQL where Debian's package is installed."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from support import postgres


@pytest.fixture(scope="session")
def cluster() -> Iterator[str]:
    if postgres.programs() is None:
        pytest.skip("needs PostgreSQL's server: apt-get install postgresql")
    with postgres.server() as url:
        yield url


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
