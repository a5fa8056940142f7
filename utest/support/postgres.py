"""A PostgreSQL server of its own: a cluster in a temporary folder, reached by a Unix socket only, gone afterwards."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import psycopg

LIMIT = 60.0


def programs() -> Path | None:
    """The folder of Debian's newest ``initdb`` and ``postgres``; None if there is none."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    return found[-1].parent if found else None


@contextlib.contextmanager
def server() -> Iterator[str]:
    """The URL of its database, with user and a password that nobody checks. PostgreSQL refuses to run as root."""
    folder = programs()
    assert folder is not None
    home = Path(tempfile.mkdtemp(prefix="pg-"))
    # as root, another user owns the cluster and runs it
    user = "nobody" if os.getuid() == 0 else None
    if user is not None:
        account = pwd.getpwnam(user)
        os.chown(home, account.pw_uid, account.pw_gid)
    data = home / "data"
    initdb = [folder / "initdb", "-D", data, "-U", "tester", "-A", "trust", "-N", "-E", "UTF8", "--locale=C.UTF-8"]
    started = None
    try:
        subprocess.run(
            list(map(str, initdb)), check=True, capture_output=True, timeout=LIMIT, user=user, cwd=home, env={}
        )
        options = ["-c", "listen_addresses=", "-c", "fsync=off", "-k", str(home)]
        started = subprocess.Popen(
            [str(folder / "postgres"), "-D", str(data), *options],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            user=user,
            cwd=home,
            env={},
        )
        _wait(home, started)
        yield f"postgresql://tester:{SECRET}@/postgres?host={quote(str(home), safe='')}"
    finally:
        if started is not None:
            started.send_signal(signal.SIGINT)  # at SIGTERM it waits for its clients
            started.wait(LIMIT)
        shutil.rmtree(home, ignore_errors=True)


SECRET = "s3cret-word"
"""The URL's password: it must stand in no output."""


def _wait(home: Path, started: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + LIMIT
    while True:
        try:
            psycopg.connect(host=str(home), user="tester", dbname="postgres").close()
            return
        except psycopg.OperationalError:
            assert started.poll() is None and time.monotonic() < until
            time.sleep(0.05)
