"""Journals of one router under two names, replaced journals, full disks, changes made again."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from lineproof.errors import TestbedError
from lineproof.routers.base import Result
from lineproof.routers.change_journal import ChangeJournal, journal_path, look, look_elsewhere
from lineproof.routers.changes import Change
from lineproof.session.leftovers import undo_leftover
from support.journals import CHANGE, ROUTER, left, occasion


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the journals."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path / "lineproof" / "routers"


def left_at(router: str, *changes: Change, key: str = "SHA256:key") -> Path:
    journal = ChangeJournal.claim(router)
    journal.begin(replace(occasion(), router=router, host_key=key))
    for change in changes:
        journal.add(change)
    os.close(journal._descriptor)
    return journal.leftover.path


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
    left_at("lab-router:22", CHANGE)
    left_at("another:22", CHANGE, key="SHA256:other")
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


@pytest.mark.parametrize("replaced", [False, True])
def test_a_journal_that_was_taken_away_changes_nothing_more(replaced: bool, state: Path) -> None:
    journal = ChangeJournal.claim(ROUTER)
    journal.begin(occasion())
    path = journal_path(ROUTER)
    path.unlink()
    if replaced:
        path.write_text("mine")
    with pytest.raises(TestbedError, match=r"the router is not changed, .* was removed or replaced while a run had it"):
        journal.add(CHANGE)
    assert not replaced or path.read_text() == "mine"
    os.close(journal._descriptor)


def test_an_undo_is_noted_on_a_full_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    other = Change(("pfctl", "-d"), ("pfctl", "-e"))
    journal = claimed_after(CHANGE, other)

    def full(descriptor: int, data: bytes) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", full)
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
    journal = ChangeJournal.claim(ROUTER)
    refuse: Callable[[str, float], Result] = lambda command, limit: pytest.fail(command)  # noqa: E731
    for asked in (False, True):
        with pytest.raises(TestbedError, match=rf"'shell: linux' by .* now is 'shell: {kind}'; .* remove {path}"):
            undo_leftover(journal, refuse, False, occasion(kind=kind), asked=asked)
    journal.close()
    assert path.exists()
