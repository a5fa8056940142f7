"""Whatever moment a run is killed at, the next one finds its changes and undoes them; a damaged journal is refused."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import subprocess
import sys
import threading
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lineproof.errors import TestbedError
from lineproof.routers.base import Result
from lineproof.routers.journal import Change, ChangeJournal, journal_path, look, look_elsewhere
from support.journals import CHANGE, ROUTER, full_disk, left, occasion, undone, untouched

pytestmark = pytest.mark.usefixtures("state")


@pytest.mark.slow
def test_a_router_in_use_is_refused_and_free_again_when_that_run_is_killed() -> None:
    text = (
        "from lineproof.routers.journal import ChangeJournal, Occasion\n"
        f"journal = ChangeJournal.claim({ROUTER!r})\n"
        f"journal.begin(Occasion.now({ROUTER!r}, 'linux', '', 1.0))\nprint('held', flush=True)\ninput()"
    )
    run = [sys.executable, "-c", text]
    with subprocess.Popen(run, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None and child.stdout.readline() == "held\n"
        with pytest.raises(TestbedError, match=rf"{ROUTER} is in use by process {child.pid}, since .* of this machine"):
            ChangeJournal.claim(ROUTER)
        found = look(ROUTER)
        assert found is not None and found.in_use
        child.kill()
    ChangeJournal.claim(ROUTER).close()
    assert look(ROUTER) is None


def test_a_router_that_restarted_since_has_lost_the_changes() -> None:
    left(CHANGE)
    assert "has restarted since" in undone(untouched, occasion(uptime=20.0))
    assert look(ROUTER) is None


def test_another_router_at_the_address_is_not_touched() -> None:
    path = left(CHANGE)
    with pytest.raises(TestbedError, match=rf"host key SHA256:key, and the one there now has other;.* remove {path}"):
        undone(untouched, replace(occasion(), host_key="other"))
    assert path.exists()


def test_an_undo_that_fails_is_listed_kept_and_tried_again() -> None:
    path = left(CHANGE, Change(("pfctl -d",), ("pfctl -e",)))
    answer = Result("", "pfctl: no\n", 1, 0.0)
    with pytest.raises(TestbedError, match=rf"'pfctl -e', 'ip link set dev eth1 down' \(status 1: pfctl: no\).*{path}"):
        undone(lambda command, limit: answer)
    found = look(ROUTER)
    assert found is not None and len(found.changes) == 2
    ran: list[str] = []
    undone(lambda command, limit: ran.append(command) or Result("", "", 0, 0.0), sudo=True)
    assert ran == ["sudo -n pfctl -e", "sudo -n ip link set dev eth1 down"] and not path.exists()


@pytest.mark.parametrize("mode", [0o644, 0o620, 0o606])
def test_a_journal_that_others_may_write_or_read_is_refused(mode: int) -> None:
    path = left(CHANGE)
    assert path.stat().st_mode & 0o777 == 0o600 and path.parent.stat().st_mode & 0o777 == 0o700
    path.chmod(mode)
    with pytest.raises(TestbedError, match=rf"{path}.* is not this user's alone \(mode 0600\).*remove the file"):
        ChangeJournal.claim(ROUTER)
    with pytest.raises(TestbedError, match="is not this user's alone"):
        look(ROUTER)


def test_a_link_or_a_folder_in_its_place_is_refused(tmp_path: Path) -> None:
    path = left(CHANGE)
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(TestbedError, match="cannot be opened"):
        ChangeJournal.claim(ROUTER)
    path.unlink()
    path.mkdir()
    with pytest.raises(TestbedError, match="cannot be opened"):
        ChangeJournal.claim(ROUTER)


def test_a_line_that_a_power_cut_tore_was_never_run_and_is_written_over() -> None:
    path = left(CHANGE)
    whole = path.read_bytes()
    row = whole.splitlines(keepends=True)[1]
    for torn in (*(row[:length] for length in range(1, len(row))), b"\0" * 4096, b"\0\n"):
        path.write_bytes(whole + torn)
        journal = ChangeJournal.claim(ROUTER)
        assert journal.pending == (CHANGE,)
        journal.drop(CHANGE)
        os.close(journal._descriptor)
        assert path.read_bytes() == whole.replace(b'"undone": false}', b'"undone": true }')


def test_who_only_looks_is_not_taken_for_a_run_that_has_the_router() -> None:
    path = left(CHANGE)
    descriptor = os.open(path, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_SH)
    looked = threading.Timer(0.1, os.close, (descriptor,))
    looked.start()
    try:
        journal = ChangeJournal.claim(ROUTER)
    finally:
        looked.join()
    assert journal.pending == (CHANGE,)
    os.close(journal._descriptor)


@pytest.mark.parametrize(
    ("line", "damage"),
    [
        *((1, {key: "x"}) for key in ("uptime", "since", "here", "holder")),
        *((1, {key: None}) for key in ("since", "here", "holder", "host_key")),
        (1, {"since": 1e300}),
        (1, {"holder": {"pid": 1, "start": "1", "where": 3}}),
        (2, b"{}\n"),
        # the last line has its end: it was written whole, and may have been run
        (3, b'{"do": ["x"], "und\xff": ["y"]}\n'),
        (3, b"x\n"),
        (3, b'{"undone": 3}\n'),
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
        ChangeJournal.claim(ROUTER)
    assert path.read_bytes() == damaged


@given(st.binary(max_size=400), st.booleans())
@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_bytes_are_a_journal_or_an_error_in_words(data: bytes, behind: bool) -> None:
    path = left(CHANGE)
    path.write_bytes((path.read_bytes() if behind else b"") + data)
    try:
        found = look(ROUTER)
    except TestbedError:
        pass
    else:
        assert found is not None
    finally:
        path.unlink()


def test_routers_are_told_apart_by_address_and_port() -> None:
    names = {journal_path(name).name for name in ("a:22", "a:23", "b:22", "a_22", "::1:22", "../../a:22")}
    assert len(names) == 6 and not any("/" in name for name in names)


# -- one router, several addresses -------------------------------------------------------------------------------------


def test_a_router_in_use_is_refused_at_its_other_address_too(state: Path) -> None:
    with closing(ChangeJournal.claim(ROUTER, host_key="SHA256:key")) as held:
        held.begin(occasion())
        with pytest.raises(
            TestbedError,
            match=rf"at lab-router:22 is in use as {ROUTER} by process {os.getpid()}, .*same host key SHA256",
        ):
            ChangeJournal.claim("lab-router:22", host_key="SHA256:key")
        ChangeJournal.claim("lab-router:22", host_key="SHA256:other").close()
        assert [path.suffix for path in sorted(state.iterdir())] == [".jsonl", ".lock"]
    ChangeJournal.claim("lab-router:22", host_key="SHA256:key").close()
    assert not list(state.iterdir())


def test_what_is_left_at_another_address_is_found_by_the_host_key(state: Path) -> None:
    left(CHANGE, router="lab-router:22")
    left(CHANGE, router="another:22", key="SHA256:other")
    (state / "broken.jsonl").write_bytes(b"x")
    os.mkfifo(state / "pipe.jsonl")
    (state / "link.jsonl").symlink_to(state / "broken.jsonl")
    found = look_elsewhere(ROUTER, {"SHA256:key"})
    assert [(each.occasion.router, each.changes) for each in found if each.occasion] == [("lab-router:22", (CHANGE,))]
    assert look_elsewhere("lab-router:22", {"SHA256:key"}) == () and look_elsewhere(ROUTER, set()) == ()


def test_a_lock_of_a_killed_run_is_free(state: Path) -> None:
    journal = ChangeJournal.claim(ROUTER, host_key="SHA256:key")
    assert journal._key is not None
    os.close(journal._key[1])
    os.close(journal._descriptor)
    ChangeJournal.claim("lab-router:22", host_key="SHA256:key").close()
    ChangeJournal.claim(ROUTER, host_key="SHA256:key").close()
    assert not list(state.iterdir())


# -- what is written ---------------------------------------------------------------------------------------------------


def claimed_after(*changes: Change) -> ChangeJournal:
    left(*changes)
    return ChangeJournal.claim(ROUTER)


@pytest.mark.parametrize("trouble", ["full disk", "removed", "replaced"])
def test_a_change_that_cannot_be_noted_is_not_made(trouble: str) -> None:
    journal = ChangeJournal.claim(ROUTER)
    journal.begin(occasion())
    path, says = journal_path(ROUTER), "cannot be written: No space"
    disk: contextlib.AbstractContextManager[None] = full_disk()
    if trouble != "full disk":
        path.unlink()
        disk, says = contextlib.nullcontext(), "was removed or replaced while a run had it"
    if trouble == "replaced":
        path.write_text("mine")
    with disk, pytest.raises(TestbedError, match=rf"the router is not changed, .* {says}"):
        journal.add(CHANGE)
    assert trouble != "replaced" or path.read_text() == "mine"
    os.close(journal._descriptor)


def test_an_undo_is_noted_on_a_full_disk() -> None:
    other = Change(("pfctl -d",), ("pfctl -e",))
    journal = claimed_after(CHANGE, other)

    with full_disk():
        journal.drop(other)
    os.close(journal._descriptor)  # killed
    found = look(ROUTER)
    assert found is not None and found.changes == (CHANGE,)


def test_a_change_that_is_made_again_is_undone_once() -> None:
    journal = claimed_after(CHANGE)
    journal.add(CHANGE)
    assert journal.pending == (CHANGE,)
    journal.drop(CHANGE)
    os.close(journal._descriptor)
    found = look(ROUTER)
    assert found is not None and found.changes == ()


@pytest.mark.parametrize("kind", ["freebsd", "vpp"])
def test_what_was_changed_as_one_kind_of_router_is_not_undone_as_another(kind: str) -> None:
    path = left(CHANGE)
    for asked in (False, True):
        with pytest.raises(TestbedError, match=rf"'shell: linux' by .* now is 'shell: {kind}'; .* remove {path}"):
            undone(untouched, occasion(kind=kind), asked=asked)
    assert path.exists()
