"""The lock of a program's port is in a folder that only its user can write in: nobody makes root write elsewhere."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from lineproof.generators.programs.port import LOCK

USER, STRANGER = 64901, 64902
FOLDER = Path(f"/tmp/lineproof-{USER}")

pytestmark = [pytest.mark.slow, pytest.mark.skipif(os.getuid() != 0, reason="only root can play two other users")]


@pytest.fixture(autouse=True)
def no_folder() -> Iterator[None]:
    def remove() -> None:
        if FOLDER.is_symlink() or FOLDER.is_file():
            FOLDER.unlink()
        shutil.rmtree(FOLDER, ignore_errors=True)

    remove()
    yield
    remove()


def start(commands: str) -> subprocess.CompletedProcess[str]:
    argv = ["/bin/sh", "-c", LOCK, "lineproof-port", "eth0"]
    return subprocess.run(argv, input=commands, capture_output=True, text=True, user=USER, group=USER, timeout=20)


def test_a_port_is_locked_in_a_folder_of_its_users_own() -> None:
    assert start('printf held > "$lock"; cat "$lock"').stdout == "held"
    assert (FOLDER.stat().st_mode & 0o777, FOLDER.stat().st_uid) == (0o700, USER)


@pytest.mark.parametrize(("owner", "is_link"), [(STRANGER, True), (USER, True), (STRANGER, False), (USER, False)])
def test_a_planted_folder_is_refused_and_nothing_is_written_through_it(
    owner: int, is_link: bool, tmp_path: Path
) -> None:
    target = tmp_path / "target"
    target.mkdir()
    target.chmod(0o777)
    if is_link:
        FOLDER.symlink_to(target)
    else:
        FOLDER.mkdir()
        (FOLDER / "port-eth0").symlink_to(target / "written")
    os.chown(FOLDER, owner, -1)
    FOLDER.chmod(0o777)
    ended = start('printf held > "$lock"')
    assert ended.returncode == 76 and ended.stdout.startswith("@@refused")
    assert list(target.iterdir()) == []
