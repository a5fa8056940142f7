"""What a run left on a router that a file describes is undone, all of it; its journal runs nothing else."""

from __future__ import annotations

import itertools
import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from lineproof.errors import TestbedError
from lineproof.routers import make_router
from lineproof.routers.base import Result, Router, Shell
from lineproof.routers.change_journal import ChangeJournal, look
from lineproof.routers.changes import Change
from lineproof.routers.command_file import SIDE_WORDS, CommandFile
from lineproof.routers.command_line_shell import CommandLineShell
from lineproof.routers.generic import side_words
from lineproof.session.leftovers import undo_leftover
from support.described_router import DESCRIPTIONS, CommandLine, description, machine_of
from support.fake_router import SIDES
from support.journals import ROUTER, Killed, dying, occasion

NAMES = sorted(DESCRIPTIONS)


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the journals."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path / "lineproof" / "routers"


def described(shell: Shell, file: CommandFile) -> Router:
    return make_router("generic", command_line(shell, file), ("eth1", "eth2"), file=file)


def command_line(shell: Shell, file: CommandFile) -> CommandLineShell:
    return CommandLineShell(shell, file, getattr(shell, "close", lambda: None))


class Refusing:
    """*machine*, which refuses its line number *at* (from 0) with *words*, or *line* always."""

    def __init__(self, machine: CommandLine, at: int = -1, words: str = "% Not now", line: str = "") -> None:
        self.machine, self.at, self.words, self.line = machine, at, words, line
        self.count, self.ran = 0, list[str]()
        self.close = machine.close

    def __call__(self, command: str, limit: float) -> Result:
        refused, self.count = self.count == self.at, self.count + 1
        self.ran.append(command)
        if refused or command == self.line:
            return Result(f"{self.words}\n", "", 0, 0.0)
        return self.machine(command, limit)


def run_once(file: CommandFile, shell: Shell) -> None:
    """A whole run: configure, restore. Raises Killed."""
    journal = ChangeJournal.claim(ROUTER, file)
    try:
        router = described(shell, file)
        journal.begin(occasion(kind="generic"))
        router.keep_journal(journal)
        router.configure(SIDES)
        router.restore()
        journal.close()
    except Killed:
        os.close(journal._descriptor)  # as the kernel does, and nothing more
        raise


def undo(file: CommandFile, shell: Shell, uptime: float = 100.0) -> str:
    """What the next start does."""
    journal = ChangeJournal.claim(ROUTER, file)
    try:
        return undo_leftover(journal, command_line(shell, file), False, occasion(uptime, "generic"))
    finally:
        journal.close()


def killed_after(lines: int, name: str) -> tuple[CommandLine, CommandFile, str]:
    """A router on which a run was killed, and its configuration before."""
    machine, file = machine_of(name), description(name)
    before = machine.configuration
    with pytest.raises(Killed):
        run_once(file, dying(machine, lines, before=False))
    machine.close()
    assert machine.configuration != before
    return machine, file, before


def test_a_configuration_saved_long_ago_is_loaded_only_where_a_person_asks(state: Path) -> None:
    machine, file, before = killed_after(3, "saving")
    changed, later = machine.configuration, replace(occasion(kind="generic"), since=1e10)
    for asked in (False, True):
        journal = ChangeJournal.claim(ROUTER, file)
        shell = command_line(machine, file)
        try:
            if asked:
                undo_leftover(journal, shell, False, later, asked=True)
            else:
                with pytest.raises(
                    TestbedError, match=r"saved .* h ago, over whatever .* 'lineproof restore' loads it"
                ):
                    undo_leftover(journal, shell, False, later)
        finally:
            journal.close()
        assert machine.configuration == (before if asked else changed)


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize("name", NAMES)
def test_a_run_killed_at_any_line_is_undone_by_the_next(name: str, before: bool, state: Path) -> None:
    machine, file = machine_of(name), description(name)
    untouched, moments = machine.configuration, 0
    while True:
        try:
            run_once(file, dying(machine, moments, before=before))
        except Killed:
            moments += 1
            machine.close()
        else:
            break
        undo(file, machine)
        assert machine.configuration == untouched, f"killed at line {moments}"
        assert not list(state.iterdir())
    assert moments > 9
    assert machine.configuration == untouched and not list(state.iterdir())


@pytest.mark.parametrize("name", NAMES)
def test_a_line_that_is_refused_leaves_nothing_of_its_change(name: str, state: Path) -> None:
    file = description(name)
    for line in itertools.count():
        machine = machine_of(name)
        before, shell = machine.configuration, Refusing(machine, line)
        journal = ChangeJournal.claim(ROUTER, file)
        router = described(shell, file)
        journal.begin(occasion(kind="generic"))
        router.keep_journal(journal)
        try:
            router.configure(SIDES)
        except TestbedError as error:
            assert "% Not now" in str(error)
        was_refused, shell.at = shell.count > line, -1
        router.restore()
        journal.close()
        assert machine.configuration == before, f"refused at line {line}"
        assert not list(state.iterdir())
        if not was_refused:
            break
    assert line > 5


@pytest.mark.parametrize("name", ["in reverse", "committing"])
def test_a_line_of_an_undo_that_is_refused_keeps_the_change_in_the_journal(name: str, state: Path) -> None:
    file = description(name)
    undo_lines = 5 if name == "committing" else 4
    for refused in range(undo_lines):
        machine, _, before = killed_after(3 if name == "committing" else 2, name)
        shell = Refusing(machine, refused)
        with pytest.raises(TestbedError, match=r"are tried again at the next start") as caught:
            undo(file, shell)
        assert f"'{shell.ran[-1]}': % Not now" in str(caught.value) and len(shell.ran) == refused + 1
        found = look(ROUTER, file)
        assert found is not None and len(found.changes) == 1
        undo(file, machine)
        assert machine.configuration == before and look(ROUTER, file) is None and not list(state.iterdir())


@pytest.mark.parametrize("refused", [0, 1, 3])
@pytest.mark.parametrize("words", ["% Interface does not exist", "% nothing to commit", "% no such item"])
def test_a_line_that_enters_what_the_next_ones_are_meant_for_is_never_gone(refused: int, words: str) -> None:
    change = {
        "do": ["configure terminal", "interface {interface}", "ip address {ip} {mask}", "exit", "ip dhcp x", "exit"],
        "undo": [
            "configure terminal",
            "interface {interface}",
            "no ip address {ip} {mask}",
            "exit",
            "no ip dhcp x",
            "exit",
        ],
    }
    data = {"shell": "x", "refused": ["^%"], "gone": ["does not exist", "nothing to commit"], "configure": [change]}
    ran = list[str]()

    def shell(command: str, limit: float) -> Result:
        ran.append(command)
        return Result(f"{words}\n" if len(ran) == refused + 1 else "", "", 0, 0.0)

    lines = "\n".join(change["undo"])
    found = CommandLineShell(shell, CommandFile.model_validate(data)).undo(lines, 5.0, 5.0)
    assert found.status and len(ran) == refused + 1 and words in found.stderr


@pytest.mark.parametrize("name", NAMES)
def test_an_interrupt_between_two_lines_leaves_no_configuration_open(name: str, state: Path) -> None:
    file = description(name)
    for moment in itertools.count():
        machine = machine_of(name)
        before, count = machine.configuration, itertools.count()

        def interrupted(command: str, limit: float) -> Result:
            found = machine(command, limit)  # noqa: B023
            if next(count) == moment:  # noqa: B023
                raise KeyboardInterrupt
            return found

        journal = ChangeJournal.claim(ROUTER, file)
        router = make_router("generic", CommandLineShell(interrupted, file, machine.close), ("eth1", "eth2"), file=file)
        journal.begin(occasion(kind="generic"))
        router.keep_journal(journal)
        try:
            router.configure(SIDES)
            router.restore()
        except KeyboardInterrupt:
            router.restore()
        journal.close()
        assert machine.configuration == before, f"interrupted at line {moment}"
        assert not list(state.iterdir())
        if next(count) <= moment:
            break
    assert moment > 9


def test_a_command_that_the_router_does_not_know_is_no_change_that_is_gone() -> None:
    machine, file, before = killed_after(2, "in reverse")
    line = "no ip route 16.0.0.0 255.0.0.0 100.65.1.2 name lineproof"
    with pytest.raises(TestbedError, match="Command not found"):
        undo(file, Refusing(machine, words="% Command not found", line=line))
    assert machine.configuration != before and look(ROUTER, file) is not None


@pytest.mark.parametrize("name", NAMES)
def test_a_restart_of_the_router_keeps_its_changes_so_that_they_are_undone(name: str) -> None:
    machine, file, before = killed_after(7, name)
    assert undo(file, machine, uptime=1.0).startswith("undid ")
    assert machine.configuration == before and look(ROUTER, file) is None


@pytest.mark.parametrize("name", NAMES)
def test_a_router_that_is_configured_again_keeps_what_it_was_before_the_first_time(name: str) -> None:
    machine, file = machine_of(name), description(name)
    router, before = described(machine, file), machine.configuration
    router.configure(SIDES)
    configured = machine.configuration
    router.forget_changes()
    router.configure(SIDES)
    assert machine.configuration == configured
    router.restore()
    assert machine.configuration == before


@pytest.mark.parametrize("name", NAMES)
def test_a_rehearsal_lists_the_changes_and_gives_the_router_no_line(name: str) -> None:
    def refuse(command: str, limit: float) -> Result:
        pytest.fail(command)

    router = described(refuse, description(name))
    with router.rehearsal() as found:
        router.configure(SIDES)
    assert any("ip route 48.0.0.0 255.0.0.0 100.65.2.2 name lineproof" in str(change) for change in found)


@pytest.mark.parametrize(
    "undo_lines",
    [
        ["reload"],
        ["configure terminal", "no ip route 16.0.0.0 255.0.0.0 100.65.1.2 name lineproof"],
        ["configure terminal", "no ip route 16.0.0.0 255.0.0.0 1;reload name lineproof", "exit"],
        ["configure terminal", "no ip route 16.0.0.0 255.0.0.0 1\nreload name lineproof", "exit"],
        ["configure terminal", "no ip route 16.0.0.0 255.0.0.0 100.65.1.2 name lineproof", "exit", "reload"],
        ["configure replace flash:before force"],
        ["ip", "link", "set", "dev", "eth1", "down"],
    ],
)
def test_a_journal_runs_only_what_the_file_has_as_undo(undo_lines: list[str]) -> None:
    _, file, _ = killed_after(2, "undoing")
    found = look(ROUTER, file)
    assert found is not None and found.changes
    with found.path.open("a") as journal:
        journal.write(json.dumps({"do": ["x"], "undo": undo_lines, "silent": False, "lines": True}) + "\n")
    with pytest.raises(TestbedError, match=r"is no command .* as variables/shells/undoing\.yaml describes it"):
        ChangeJournal.claim(ROUTER, file)


def test_what_one_kind_of_router_was_given_is_not_run_on_another() -> None:
    _, _, _ = killed_after(2, "undoing")
    for file in (None, description("saving")):
        with pytest.raises(TestbedError, match="is no command that undoes a change of a run"):
            look(ROUTER, file)


def test_a_posix_change_is_not_run_by_a_command_line() -> None:
    journal = ChangeJournal.claim(ROUTER)
    journal.begin(occasion(kind="linux"))
    journal.add(Change(("ip", "link", "set", "dev", "eth1", "up"), ("ip", "link", "set", "dev", "eth1", "down")))
    os.close(journal._descriptor)
    with pytest.raises(TestbedError, match="is no command"):
        look(ROUTER, description("saving"))


def test_a_saved_configuration_that_is_not_found_is_no_change_that_is_gone() -> None:
    machine, file, before = killed_after(5, "saving")
    machine.saved = None
    with pytest.raises(TestbedError, match=r"'configure replace flash:before force' \(status 1: % no such item\)"):
        undo(file, machine)
    found = look(ROUTER, file)
    assert found is not None and len(found.changes) == 1 and machine.configuration != before


def test_one_word_has_one_value_in_all_lines_of_an_undo() -> None:
    change = {"do": ["a {peer}"], "undo": ["b {peer}", "c {peer} {network}"]}
    file = CommandFile.model_validate({"shell": "x", "configure": [change]})
    assert Change(("a",), ("b 1.1.1.1", "c 1.1.1.1 2.0.0.0/8"), lines=True).is_undoable(file)
    assert not Change(("a",), ("b 1.1.1.1", "c 1.1.1.2 2.0.0.0/8"), lines=True).is_undoable(file)
    assert not Change(("a",), ("b 1.1.1.1", "c 1.1.1.1 2.0.0.0/8")).is_undoable(file)


def test_each_word_of_a_side_is_known_and_the_mac_is_written_as_makers_do() -> None:
    words = side_words(SIDES[0])
    assert set(words) == set(SIDE_WORDS)
    digits = SIDES[0].peer_mac.replace(":", "")
    assert words["peer_mac_dashed"] == f"{digits[:4]}-{digits[4:8]}-{digits[8:]}"
    assert words["peer_mac_dotted"] == words["peer_mac_dashed"].replace("-", ".")
