"""A study's commands: run in order, undone in reverse, and in the journal."""

from __future__ import annotations

import os

import pytest

from lineproof.errors import TestbedError
from lineproof.platforms import CommandPair
from lineproof.routers.base import Result
from lineproof.routers.change_journal import ChangeJournal
from lineproof.routers.shell_router import ShellRouter
from support.journals import ROUTER, occasion, undone
from support.scripted_shells import Scripted

pytestmark = pytest.mark.usefixtures("state")

PAIRS = (
    CommandPair(do="nft add table ip lineproof", undo="nft delete table ip lineproof"),
    CommandPair(do="sh -c 'modprobe pktgen; true'", undo="modprobe -r pktgen"),
)


def test_commands_are_undone_in_reverse_and_what_was_there_stays() -> None:
    shell = Scripted()
    router = ShellRouter(shell, interfaces=())
    router._commands.change(("ip", "link", "set", "dev", "eth1", "up"), ("ip", "link", "set", "dev", "eth1", "down"))
    router.apply(PAIRS)
    assert router.withdraw() == ""
    assert shell.ran[1:] == [
        "nft add table ip lineproof",
        "sh -c 'modprobe pktgen; true'",
        "modprobe -r pktgen",
        "nft delete table ip lineproof",
    ]
    assert [change.do_text for change in router.changes] == ["ip link set dev eth1 up"]
    assert router.withdraw() == ""  # harmless when repeated


def test_a_refused_command_leaves_the_others_to_be_undone() -> None:
    shell = Scripted({PAIRS[1].do: Result("", "no such thing", 1, 0.0)})
    router = ShellRouter(shell, interfaces=())
    with pytest.raises(TestbedError, match="no such thing"):
        router.apply(PAIRS)
    router.restore()
    assert shell.ran[-1] == "nft delete table ip lineproof"


def test_what_a_killed_study_did_is_in_the_journal() -> None:
    journal = ChangeJournal.claim(ROUTER)
    journal.begin(occasion())
    router = ShellRouter(Scripted(), interfaces=())
    router.keep_journal(journal)
    router.apply(PAIRS)
    os.close(journal._descriptor)
    shell = Scripted()
    assert undone(shell).startswith("undid 2 changes")
    assert shell.ran == ["modprobe -r pktgen", "nft delete table ip lineproof"]
