"""What somebody else has set on a router that a file describes stays, and is noted; what is still ours is undone."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lineproof.errors import TestbedError
from lineproof.routers import make_router
from lineproof.routers.base import Result, Shell
from lineproof.routers.change_journal import ChangeJournal, look
from lineproof.routers.changes import Change
from lineproof.routers.command_file import CommandFile, LookQuery
from lineproof.routers.command_line_shell import CommandLineShell
from lineproof.session.leftovers import undo_leftover
from support.described_router import CommandLine, description, machine_of, shipped
from support.fake_router import SIDES
from support.journals import ROUTER, occasion

MAC, ROUTE = "0200.0000.0102", "ip route 16.0.0.0 255.0.0.0 100.65.1.2"


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the journals."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path / "lineproof" / "routers"


def configured(name: str) -> tuple[CommandLine, CommandFile, str]:
    """A router that a run has configured, and then was killed; and its configuration before."""
    machine, file = machine_of(name), description(name)
    before = machine.configuration
    journal = ChangeJournal.claim(ROUTER, file)
    router = make_router("generic", CommandLineShell(machine, file), ("eth1", "eth2"), file=file)
    journal.begin(occasion(kind="generic"))
    router.keep_journal(journal)
    router.configure(SIDES)
    os.close(journal._descriptor)
    return machine, file, before


def undo(file: CommandFile, shell: Shell, asked: bool = False) -> str:
    """What the next start does; *asked*: what ``lineproof restore`` does."""
    journal = ChangeJournal.claim(ROUTER, file)
    try:
        return undo_leftover(journal, CommandLineShell(shell, file), False, occasion(kind="generic"), asked=asked)
    finally:
        journal.close()


def answering(machine: Shell, line: str, change: Callable[[str], str]) -> Shell:
    """*machine*, whose answer to *line* comes changed."""

    def shell(command: str, limit: float) -> Result:
        found = machine(command, limit)
        return Result(change(found.stdout), "", 0, 0.0) if command == line else found

    return shell


def test_a_value_that_somebody_else_has_set_stays_and_is_noted() -> None:
    machine, file, before = configured("looking")
    machine.change(MAC, "0200.0000.beef")
    said = undo(file, machine)
    assert machine.configuration == f"{before}\narp 100.65.1.2 0200.0000.beef arpa"
    assert "not undone, because somebody has set something else since: 'do arp 100.65.1.2" in said
    assert "(now: 0200.0000.beef)" in said and look(ROUTER, file) is None


def test_the_same_run_leaves_it_too() -> None:
    machine, file = machine_of("looking"), description("looking")
    router, before = make_router("generic", CommandLineShell(machine, file), (), file=file), machine.configuration
    router.configure(SIDES)
    machine.change(MAC, "0200.0000.beef")
    assert "0200.0000.beef" in router.restore()
    assert machine.configuration == f"{before}\narp 100.65.1.2 0200.0000.beef arpa"


@pytest.mark.parametrize(
    "shown", ["0200.0000.0102", "0200-0000-0102", "02:00:00:00:01:02", "02:00:00:00:01:02".upper()]
)
def test_a_mac_address_of_any_form_is_ours(shown: str) -> None:
    machine, file, before = configured("looking")
    undo(file, answering(machine, "show arp 100.65.1.2", lambda text: text.replace(MAC, shown)))
    assert machine.configuration == before


def test_what_is_gone_is_undone_as_without_a_look() -> None:
    machine, file, before = configured("looking")
    machine.answer("no arp 100.65.1.2")
    said = undo(file, machine)
    assert machine.configuration == before and "somebody" not in said


def test_an_answer_that_is_cut_undoes_nothing_and_names_nobody() -> None:
    line = "show arp 100.65.1.2"
    whole = f"arp 100.65.1.2 {MAC} arpa\n"
    machine, file, before = configured("looking")
    there = f"arp 100.65.1.2 {MAC} arpa"
    for length in range(1, len(whole)):
        with pytest.raises(TestbedError, match=rf"answer to '{line}' is not complete") as caught:
            undo(file, answering(machine, line, lambda text, length=length: text[:length]))  # type: ignore[misc]
        assert "somebody" not in str(caught.value)
        assert there in machine.configuration and look(ROUTER, file) is not None
    undo(file, machine)
    assert machine.configuration == before


@pytest.mark.parametrize("answer", ["% Invalid input\n", "x" * (1 << 20) + "\n"])
def test_a_look_that_fails_undoes_nothing(answer: str) -> None:
    machine, file, before = configured("looking")
    with pytest.raises(TestbedError, match="are tried again at the next start"):
        undo(file, answering(machine, "show arp 100.65.1.2", lambda text: answer))
    assert f"arp 100.65.1.2 {MAC} arpa" in machine.configuration
    undo(file, machine)
    assert machine.configuration == before


def test_a_saved_configuration_is_not_loaded_over_what_others_have_changed() -> None:
    machine, file, before = configured("looking before")
    machine.change("192.0.2.9", "192.0.2.10")
    theirs = machine.configuration
    with pytest.raises(TestbedError, match=r"over what somebody else has configured since: bob on Monday; .* restore'"):
        undo(file, machine)
    assert machine.configuration == theirs and look(ROUTER, file) is not None
    undo(file, machine, asked=True)
    assert machine.configuration == before and look(ROUTER, file) is None


def test_the_run_itself_does_not_load_it_either() -> None:
    machine, file = machine_of("looking before"), description("looking before")
    router = make_router("generic", CommandLineShell(machine, file), (), file=file)
    router.configure(SIDES)
    machine.change("192.0.2.9", "192.0.2.10")
    with pytest.raises(TestbedError, match=r"could not be restored in full; .* bob on Monday"):
        router.restore()
    assert "192.0.2.10" in machine.configuration and ROUTE in machine.configuration


def test_a_journal_whose_change_is_another_than_its_undo_is_refused() -> None:
    _, file, _ = configured("looking")
    found = look(ROUTER, file)
    assert found is not None
    for do in ("do arp 100.65.9.9 0200.0000.0102 arpa", "reload", "do arp 100.65.1.2 0200.0000.0102 arpa\nreload"):
        assert not Change((do,), ("no arp 100.65.1.2",), lines=True).is_undoable(file)
    with found.path.open("a") as journal:
        journal.write(json.dumps({"do": ["reload"], "undo": ["no arp 100.65.1.2"], "lines": True}) + "\n")
    with pytest.raises(TestbedError, match=r"is no command that undoes a change .* variables/shells/looking\.yaml"):
        look(ROUTER, file)


LOOK = {"run": "show x", "pattern": "x (?P<value>\\S+)", "example": "x 1", "expected": {"value": "1"}}
CHANGE = {"do": ["a {peer}"], "undo": ["b {peer}"]}


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({"configure": [{"do": ["a"], "look": LOOK}]}, "'look' comes before an 'undo'"),
        ({"configure": [CHANGE | {"look": LOOK | {"run": "show {network}"}}]}, "'{network}' is not known"),
        ({"configure": [CHANGE | {"look": LOOK | {"ours": "{peer_mac}"}}]}, "'{peer_mac}' is not known"),
        ({"configure": [CHANGE | {"look": LOOK | {"pattern": ["(?P<value>a)", "b"]}}]}, "expected one expression"),
        ({"configure": [CHANGE | {"look": LOOK | {"pattern": "x"}}]}, "names no 'value'"),
        ({"configure": [CHANGE], "look": LOOK}, "comes before its 'restore'"),
        ({"configure": [CHANGE], "save": ["s"], "restore": ["r"], "look": LOOK | {"run": "{peer}"}}, "is not known"),
        ({"configure": [CHANGE | {"look": LOOK}], "save": ["s"], "restore": ["r"]}, "the file's own 'look'"),
    ],
)
def test_a_look_that_cannot_be_is_refused(data: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words.replace("{", r"\{")):
        CommandFile.model_validate({"shell": "x", **data})


def test_an_example_of_a_look_that_gives_another_value_is_a_problem_with_its_place() -> None:
    file = CommandFile.model_validate({"shell": "x", "configure": [CHANGE | {"look": LOOK | {"example": "x 2"}}]})
    assert list(file.problems()) == [(("configure", "0", "look"), "its example gives value 2; expected 1")]
    file = file.model_copy(update={"configure": (), "look": LookQuery.model_validate(LOOK | {"example": "y"})})
    assert [place for place, _ in file.problems()] == [("look",)]


def commits(*rows: str) -> str:
    """``show system commit``, newest first: who, and the comment after a colon."""
    lines = []
    for at, row in enumerate(rows):
        who, _, comment = row.partition(": ")
        lines += [f"{at:<4}2018-02-07 20:{50 - at}:04 UTC by {who} via cli", *([f"    {comment}"] if comment else [])]
    return "".join(f"{line}\n" for line in lines)


@pytest.mark.parametrize(
    ("rows", "somebody"),
    [
        (("admin: lineproof", "admin: lineproof", "root"), False),
        (("root", "admin: lineproof", "admin: lineproof"), True),
        (("root: fixed", "bob", "admin: lineproof"), True),
        (("root: not lineproof", "admin: lineproof"), True),
        # nothing of a run is there
        (("root", "admin: lineproof-restored", "admin: lineproof"), False),
        (("admin: lineproof-restored", "root", "admin: lineproof"), False),
        (("root", "bob: x"), False),
        (("root: lineproofd",), False),
    ],
)
def test_junos_shows_whether_somebody_has_committed_since(rows: tuple[str, ...], somebody: bool) -> None:
    query = shipped("junos").look
    assert query is not None
    found = query.read(commits(*rows)).get("value")
    assert (found is not None) is somebody
    assert found is None or found.startswith("2018-02-07 20:50:04 UTC by root")


ROUTEROS = {
    "/ip arp": " 0   comment=lineproof address=100.65.1.2 mac-address={mac} interface=eth1 published=no\n",
    "/ip route": " 0 As comment=lineproof dst-address=16.0.0.0/8 gateway={gateway} immediate-gw=1.2.3.4%x distance=1\n",
}


@pytest.mark.parametrize(
    ("mac", "gateway", "left"),
    [
        ("02:00:00:00:01:02", "100.65.1.2", ()),
        ("02:00:00:00:BE:EF", "100.65.1.2", ("arp",)),
        ("02:00:00:00:01:02", "100.65.1.9", ("route",)),
    ],
)
def test_routeros_keeps_what_somebody_else_has_set(mac: str, gateway: str, left: tuple[str, ...]) -> None:
    ran: list[str] = []

    def shell(command: str, limit: float) -> Result:
        ran.append(command)
        shown = next((text for start, text in ROUTEROS.items() if command.startswith(f"{start} print")), "")
        return Result(shown.format(mac=mac, gateway=gateway), "", 0, 0.0)

    file = shipped("routeros")
    router = make_router("generic", CommandLineShell(shell, file), (), file=file)
    router.configure(SIDES[:1])
    ran.clear()
    said = router.restore()
    removed = [line.split()[1] for line in ran if " remove " in line]
    assert removed == [each for each in ("route", "arp", "address") if each not in left]
    assert bool(said) is bool(left) and all(f"/ip {each} add" in said for each in left)
