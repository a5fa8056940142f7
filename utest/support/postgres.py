"""A PostgreSQL server of its own: a cluster in a temporary folder, reached by a Unix socket only, gone afterwards."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

LIMIT = 60.0


def programs() -> Path | None:
    """The folder of Debian's newest ``initdb`` and ``postgres``; None if there is none."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    return found[-1].parent if found else None


SECRET = "s3cret-word"
"""The URL's password: it must stand in no output."""


@contextlib.contextmanager
def server() -> Iterator[str]:
    """The URL of its database, with user and a password that nobody checks."""
    folder = programs()
    assert folder is not None
    home = Path(tempfile.mkdtemp(prefix="pg-"))
    # PostgreSQL refuses to run as root: another user owns the cluster and runs it then
    user = "nobody" if os.getuid() == 0 else None
    if user is not None:
        os.chown(home, pwd.getpwnam(user).pw_uid, -1)

    def run(program: str, *words: str) -> None:
        command = [str(folder / program), "-D", str(home / "data"), *words]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, timeout=LIMIT, user=user, cwd=home, env={})

    try:
        run("initdb", "-U", "tester", "-A", "trust", "-N", "-E", "UTF8", "--locale=C.UTF-8")
        run("pg_ctl", "start", "-w", "-l", str(home / "log"), "-o", f"-c listen_addresses= -c fsync=off -k {home}")
        yield f"postgresql://tester:{SECRET}@/postgres?host={quote(str(home), safe='')}"
    finally:
        with contextlib.suppress(subprocess.CalledProcessError):
            run("pg_ctl", "stop", "-m", "immediate")
        shutil.rmtree(home, ignore_errors=True)
