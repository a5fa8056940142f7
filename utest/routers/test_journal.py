"""Whatever moment a run is killed at, the next one finds its changes and undoes them; a damaged journal is refused."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
import threading
from contextlib import closing

import pytest

from lineproof.errors import TestbedError
from lineproof.routers.base import Result
from lineproof.routers.journal import Change, ChangeJournal, look
from support.journals import CHANGE, KEY, ROUTER, full_disk, left, occasion, undone, untouched

pytestmark = pytest.mark.usefixtures("state")


def test_a_router_in_use_is_refused_at_any_address() -> None:
    with closing(ChangeJournal.claim(ROUTER, KEY)) as held:
        held.begin(occasion())
        with pytest.raises(TestbedError, match=rf"lab-router:22 is in use as {ROUTER} by process {os.getpid()}, since"):
            ChangeJournal.claim("lab-router:22", KEY)
        found = look(KEY)
        assert found is not None and found.in_use
        ChangeJournal.claim("lab-router:22", "SHA256:other/key").close()
    held.close()  # harmless when repeated
    assert look(KEY) is None


@pytest.mark.slow
def test_a_router_is_free_again_when_its_run_is_killed() -> None:
    text = (
        "from lineproof.routers.journal import ChangeJournal\n"
        f"journal = ChangeJournal.claim({ROUTER!r}, {KEY!r})\nprint('held', flush=True)\ninput()"
    )
    run = [sys.executable, "-c", text]
    with subprocess.Popen(run, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None and child.stdout.readline() == "held\n"
        with pytest.raises(TestbedError, match=f"{ROUTER} is in use by another process of this machine"):
            ChangeJournal.claim(ROUTER, KEY)
        child.kill()
    ChangeJournal.claim(ROUTER, KEY).close()
    assert look(KEY) is None


def test_a_router_that_restarted_since_has_lost_the_changes() -> None:
    left(CHANGE)
    assert "has restarted since" in undone(untouched, occasion(uptime=20.0))
    assert look(KEY) is None


def test_an_undo_that_fails_is_listed_kept_and_tried_again() -> None:
    path = left(CHANGE, Change(("pfctl -d",), ("pfctl -e",)))
    answer = Result("", "pfctl: no\n", 1, 0.0)
    with pytest.raises(TestbedError, match=rf"'pfctl -e', 'ip link set dev eth1 down' \(status 1: pfctl: no\).*{path}"):
        undone(lambda command, limit: answer)
    found = look(KEY)
    assert found is not None and len(found.changes) == 2
    ran: list[str] = []
    undone(lambda command, limit: ran.append(command) or Result("", "", 0, 0.0), sudo=True)
    assert ran == ["sudo -n pfctl -e", "sudo -n ip link set dev eth1 down"] and not path.exists()


def test_a_line_that_a_power_cut_tore_was_never_run_and_is_written_over() -> None:
    path = left(CHANGE)
    whole = path.read_bytes()
    row = whole.splitlines(keepends=True)[1]
    for torn in (*(row[:length] for length in range(1, len(row))), b"\0" * 4096, b"\0\n"):
        path.write_bytes(whole + torn)
        journal = ChangeJournal.claim(ROUTER, KEY)
        assert journal.pending == (CHANGE,)
        journal.drop(CHANGE)
        journal._file.close()
        left_over = look(KEY)
        assert left_over is not None and left_over.changes == ()


def test_who_only_looks_is_not_taken_for_a_run_that_has_the_router() -> None:
    path = left(CHANGE)
    descriptor = os.open(path, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_SH)
    looked = threading.Timer(0.1, os.close, (descriptor,))
    looked.start()
    try:
        journal = ChangeJournal.claim(ROUTER, KEY)
    finally:
        looked.join()
    assert journal.pending == (CHANGE,)
    journal._file.close()


@pytest.mark.parametrize(
    ("line", "damage"),
    [
        *((1, {key: "x"}) for key in ("uptime", "since", "here", "pid")),
        *((1, {key: None}) for key in ("since", "here", "pid", "host_key")),
        (2, b"{}\n"),
        # the last line has its end: it was written whole, and may have been run
        (3, b'{"do": ["x"], "und\xff": ["y"]}\n'),
        (3, b"x\n"),
        (3, b'{"undone": 3}\n'),
        # a change of nobody knows whom
        (1, b'{"do": ["x"], "undo": ["y"]}\n'),
    ],
)
def test_a_damaged_line_is_named_and_not_thrown_away(line: int, damage: bytes | dict[str, object]) -> None:
    path = left(CHANGE, CHANGE)
    lines = path.read_bytes().splitlines(keepends=True)
    if isinstance(damage, dict):
        damage = json.dumps(json.loads(lines[0]) | damage).encode() + b"\n"
    damaged = b"".join([*lines[: line - 1], damage, *lines[line:]])
    path.write_bytes(damaged)
    with pytest.raises(TestbedError, match=f"is damaged in line {line}"):
        ChangeJournal.claim(ROUTER, KEY)
    assert path.read_bytes() == damaged


# -- what is written ---------------------------------------------------------------------------------------------------


def test_a_change_that_cannot_be_noted_is_not_made_and_an_undo_is() -> None:
    with closing(ChangeJournal.claim(ROUTER, KEY)) as journal:
        journal.begin(occasion())
        with (
            full_disk(),
            pytest.raises(TestbedError, match=r"the router is not changed, .* cannot be written: No space"),
        ):
            journal.add(CHANGE)
        assert journal.pending == ()
        journal.add(CHANGE)
        with full_disk():
            journal.drop(CHANGE)
        assert journal.pending == ()


def test_a_change_that_is_made_again_is_undone_once() -> None:
    left(CHANGE)
    journal = ChangeJournal.claim(ROUTER, KEY)
    journal.add(CHANGE)
    assert journal.pending == (CHANGE,)
    journal.drop(CHANGE)
    journal._file.close()
    found = look(KEY)
    assert found is not None and found.changes == () and not found.in_use


@pytest.mark.parametrize("kind", ["freebsd", "vpp"])
def test_what_was_changed_as_one_kind_of_router_is_not_undone_as_another(kind: str) -> None:
    path = left(CHANGE)
    for asked in (False, True):
        with pytest.raises(TestbedError, match=rf"'shell: linux' by .* now is 'shell: {kind}'; .* remove {path}"):
            undone(untouched, occasion(kind=kind), asked=asked)
    assert path.exists()
