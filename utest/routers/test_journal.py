"""Whatever moment a run is killed at, the next one finds its changes and undoes them; a damaged journal is refused."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import closing
from dataclasses import replace

import pytest

from lineproof.errors import TestbedError
from lineproof.routers.base import Result
from lineproof.routers.journal import Change, ChangeJournal, look
from support.journals import CHANGE, KEY, ROUTER, full_disk, left, occasion, undone, untouched

pytestmark = pytest.mark.usefixtures("state")


def test_a_router_in_use_is_refused_at_any_address() -> None:
    with closing(ChangeJournal.claim(occasion(), KEY)) as held:
        held.add(CHANGE)
        with pytest.raises(TestbedError, match=rf"lab-router:22 is in use as {ROUTER} by process {os.getpid()}, since"):
            ChangeJournal.claim(replace(occasion(), router="lab-router:22"), KEY)
        found = look(KEY)
        assert found is not None and found.in_use
        ChangeJournal.claim(replace(occasion(), router="lab-router:22"), "SHA256:other/key").close()
        held.drop(CHANGE)
    held.close()  # harmless when repeated
    assert look(KEY) is None


@pytest.mark.parametrize("first", [KEY, "SHA256:ed/25519"])
def test_a_router_of_several_host_keys_has_one_journal(first: str) -> None:
    """Whoever knows only one of them has found the first by logging in, and finds the journal without, later."""
    keys = "SHA256:rsa", first
    with closing(ChangeJournal.claim(occasion(), *keys)) as held:
        held.add(CHANGE)
        for other in (keys, (first, first), ("SHA256:ecdsa", first)):
            with pytest.raises(TestbedError, match="is in use"):
                ChangeJournal.claim(occasion(), *other)
    assert {look(key).changes for key in (*keys, "SHA256:ecdsa")} == {(CHANGE,)}
    with closing(ChangeJournal.claim(occasion(), first, first)) as held:
        held.drop(CHANGE)
    assert not any(map(look, keys))


def test_what_was_left_under_a_key_is_found_although_the_router_has_got_another_one_before_it() -> None:
    left(CHANGE)
    for _ in range(2):
        with closing(ChangeJournal.claim(occasion(), KEY, "SHA256:ed25519")) as held:
            assert look(KEY) is None or held.pending == (CHANGE,)
            held.drop(CHANGE)
    assert held.path.name == "SHA256:ed25519"


@pytest.mark.slow
def test_a_router_is_free_again_when_its_run_is_killed() -> None:
    text = (
        "from lineproof.routers.journal import ChangeJournal, Occasion\n"
        f"journal = ChangeJournal.claim(Occasion.now({ROUTER!r}, 'linux'), {KEY!r})\nprint('held', flush=True)\ninput()"
    )
    run = [sys.executable, "-c", text]
    with subprocess.Popen(run, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None and child.stdout.readline() == "held\n"
        with pytest.raises(TestbedError, match=f"{ROUTER} is in use by another process of this machine"):
            ChangeJournal.claim(occasion(), KEY)
        child.kill()
    ChangeJournal.claim(occasion(), KEY).close()
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


@pytest.mark.parametrize("damage", [b"", b"{}", b"\0" * 4096, b'"undo":3,"x":', b'"pid":"x"', b'"since":null'])
def test_a_damaged_journal_is_named_and_not_thrown_away(damage: bytes) -> None:
    path = left(CHANGE, Change(("pfctl -d",), ("pfctl -e",)))
    key = damage.partition(b":")[0]
    damaged = path.read_bytes().replace(key + b":", damage, 1) if b":" in damage else damage
    path.write_bytes(damaged)
    with pytest.raises(TestbedError, match=f"{path}, the journal of what was changed on the router, .* damaged"):
        ChangeJournal.claim(occasion(), KEY)
    assert path.read_bytes() == damaged


# -- what is written ---------------------------------------------------------------------------------------------------


def test_a_change_that_cannot_be_noted_is_not_made_and_an_undo_is() -> None:
    with closing(ChangeJournal.claim(occasion(), KEY)) as journal:
        with (
            full_disk(),
            pytest.raises(TestbedError, match=r"the router is not changed any further, .* cannot be written: No space"),
        ):
            journal.add(CHANGE)
        assert journal.pending == ()
        journal.add(CHANGE)
        with full_disk():
            journal.drop(CHANGE)
        assert journal.pending == ()


def test_a_change_that_is_made_again_is_undone_once() -> None:
    left(CHANGE)
    journal = ChangeJournal.claim(occasion(), KEY)
    journal.add(CHANGE)
    assert journal.pending == (CHANGE,)
    journal.drop(CHANGE)
    journal.close()
    assert look(KEY) is None


@pytest.mark.parametrize("kind", ["freebsd", "vpp"])
def test_what_was_changed_as_one_kind_of_router_is_not_undone_as_another(kind: str) -> None:
    path = left(CHANGE)
    for asked in (False, True):
        with pytest.raises(TestbedError, match=rf"'shell: linux' by .* now is 'shell: {kind}'; .* remove {path}"):
            undone(untouched, occasion(kind=kind), asked=asked)
    assert path.exists()
