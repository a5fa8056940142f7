"""Stores: a SQLite file, and a real PostgreSQL where Debian's package is installed."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest


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
