"""A study's commands: run in order, undone in reverse, and in the journal only where a study's file has them."""

from __future__ import annotations

from pathlib import Path

import pytest

from lineproof.errors import TestbedError
from lineproof.platforms import CommandPair, command_pairs
from lineproof.routers.base import Result
from lineproof.routers.change_journal import ChangeJournal, look
from lineproof.routers.changing_commands import ChangingCommands
from lineproof.routers.shell_router import ShellRouter
from support.journals import ROUTER, occasion
from support.scripted_shells import Scripted

pytestmark = pytest.mark.usefixtures("state")

PAIRS = (
    CommandPair(do="nft add table ip lineproof", undo="nft delete table ip lineproof"),
    CommandPair(do="sh -c 'modprobe pktgen; true'", undo="modprobe -r pktgen"),
)


def studies(folder: Path) -> Path:
    """A folder of studies, one of which is broken."""
    folder.mkdir(exist_ok=True)
    rows = "".join(f'    - {{do: "{pair.do}", undo: "{pair.undo}"}}\n' for pair in PAIRS)
    (folder / "a.yaml").write_text(f"variants:\n  one: {{}}\n  two:\n    commands:\n{rows}", encoding="utf-8")
    (folder / "b.yaml").write_text("variants: [nonsense", encoding="utf-8")
    (folder / "c.yaml").write_text("variants: 7\n", encoding="utf-8")
    return folder


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


def test_a_journal_takes_what_a_study_has_and_nothing_else(tmp_path: Path) -> None:
    known = command_pairs(studies(tmp_path / "studies"))
    journal = ChangeJournal.claim(ROUTER, pairs=lambda: known)
    journal.begin(occasion())
    commands = ChangingCommands(Scripted())
    commands.keep_journal(journal)
    commands.change(PAIRS[0].do_words, PAIRS[0].undo_words)
    with pytest.raises(TestbedError, match="none of the commands that are run from a journal"):
        commands.change(("nft", "add", "table", "ip", "other"), ("rm", "-rf", "/"))
    with pytest.raises(TestbedError, match="none of the commands"):  # the opposite of something else
        commands.change(("true",), PAIRS[0].undo_words)
    journal.close()

    # whoever reads it without the study does not run it
    with pytest.raises(TestbedError, match="which is no command that undoes a change of a run"):
        look(ROUTER)
    left = look(ROUTER, pairs=lambda: known)
    assert left is not None and [change.undo_text for change in left.changes] == ["nft delete table ip lineproof"]


def test_files_that_cannot_be_read_have_no_commands(tmp_path: Path) -> None:
    found = command_pairs(studies(tmp_path / "studies"))
    assert (PAIRS[1].do_words, PAIRS[1].undo_words) in found
    assert ((PAIRS[0].do,), (PAIRS[0].undo,)) in found  # as a line, for a command line that a file describes
    assert command_pairs(tmp_path / "nothing") == frozenset()
