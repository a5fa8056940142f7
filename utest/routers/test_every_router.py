"""Every router, ours or of a file: what a run changes on it is taken back, whenever the run ends, and nothing else."""

from __future__ import annotations

import contextlib
import itertools
import os
import re
from dataclasses import replace
from pathlib import Path

import pytest

from lineproof.core.router_facts import NicFacts, RouterFacts
from lineproof.core.under_load import UnderLoad
from lineproof.project import packaged_variables
from lineproof.routers import BUILT_IN, RouterKind, described, make_router
from lineproof.routers.base import Result, Shell
from lineproof.routers.journal import NONE, Look, look
from support.described_router import DESCRIPTIONS, shipped, with_examples
from support.journals import KEY, Killed, dying, untouched
from support.scripted_shells import broken
from support.simulated_router import Machine

pytestmark = pytest.mark.usefixtures("state")

ALL = (*sorted(BUILT_IN), *sorted(DESCRIPTIONS))


@pytest.mark.parametrize("name", [*BUILT_IN, *(path.stem for path in (packaged_variables() / "shells").glob("*"))])
def test_the_examples_of_a_description_that_comes_with_lineproof_are_right(name: str) -> None:
    for which in range(10 if name in BUILT_IN else 1):
        assert list((with_examples(name, which) if name in BUILT_IN else shipped(name)).problems()) == []


@pytest.mark.parametrize("name", sorted(BUILT_IN))
def test_a_router_that_answers_nothing_gives_nothing_and_says_why(name: RouterKind) -> None:
    router, waited = make_router(name, broken, ("eth1",)), list[int]()
    facts, load = router.facts(), router.under_load(lambda: waited.append(1))
    assert facts == RouterFacts(nics=(NicFacts("eth1"),), unread=facts.unread)
    assert set(facts.unread.values()) == {"the link to the router dropped"}
    assert load == UnderLoad(unread=load.unread) and load.unread and waited == [1]


def test_a_card_that_is_taken_up_or_set_anew_moves_its_link() -> None:
    changes = [change for name in BUILT_IN for _, change, _ in described(name).all_changes() if change.moves_link]
    up = r"(ip link set dev|ifconfig|vppctl set interface state) {interface} up"
    moving = rf"{up}|ethtool -[LGK] {{interface}} .*|ifconfig {{interface}} {{flag}}"
    assert len(changes) == 8 and all(re.fullmatch(moving, line) for change in changes for line in change.do)


@pytest.mark.parametrize("name", ALL)
def test_what_is_right_already_stays_and_a_rehearsal_changes_nothing(name: str) -> None:
    machine = Machine.new(name)
    before, first = machine.state(), machine.router()
    # a command line of its own is given no line, not even to look
    rehearsed = first if name in BUILT_IN else machine.router(untouched)
    with rehearsed.rehearsal() as planned:
        machine.configure(rehearsed)
    assert any("48.0.0.0" in str(change) for change in planned.pending)
    assert machine.state() == before and first.changes == () == first.notes
    machine.configure(first)
    between = machine.state()
    machine.configure(first)
    if name in BUILT_IN:
        second = machine.router()
        machine.configure(second)
        assert second.changes == () and second.restore() == ""
    assert machine.state() == between != before
    assert first.restore() == "" and machine.state() == before
    assert first.notes == () and first.not_forwarded == {}


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize("name", ALL)
def test_a_run_killed_at_any_exchange_is_undone_by_the_next(name: str, before: bool, state: Path) -> None:
    machine = Machine.new(name)
    untouched = machine.state()
    # of all frames each 11th moment: there are some 200
    for frames, step in ((False, 1), (True, 11)):
        for moment in itertools.count(0, step):
            try:
                machine.run(dying(machine.shell, moment, before=before), frames=frames)
            except Killed:
                with contextlib.suppress(Killed):
                    machine.undone(dying(machine.shell, moment % 5, before=before))
                machine.undone()
            else:
                break
            assert machine.state() == untouched, f"killed at exchange {moment}"
            assert not list(state.iterdir())
        assert moment > 9
    assert machine.state() == untouched and not list(state.iterdir())


@pytest.mark.parametrize("name", sorted(BUILT_IN))
def test_changes_that_went_with_a_restart_are_not_missed(name: str) -> None:
    Machine.new(name).run(restores=False)
    restarted = Machine.new(name)
    before = restarted.state()
    assert "somebody" not in restarted.undone()
    assert restarted.state() == before and look(KEY) is None


@pytest.mark.parametrize("name", ALL)
def test_a_change_is_on_the_disk_before_it_is_made(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    events, machine = list[str](), Machine.new(name)
    monkeypatch.setattr(os, "fsync", lambda descriptor: events.append("fsync"))

    def shell(command: str, limit: float) -> Result:
        events.append(command)
        return machine.shell(command, limit)

    changes = machine.run(shell)
    assert changes and all(events[events.index(change.do[0]) - 1] == "fsync" for change in changes)


@pytest.mark.parametrize("earlier", [False, True])
@pytest.mark.parametrize("name", sorted(BUILT_IN))
def test_a_look_finds_what_a_run_set_and_then_what_was_before(name: str, earlier: bool) -> None:
    machine = Machine.new(name, earlier)
    before, looks = machine.state(), [change.look for change in machine.run(restores=False) if change.look]
    router = machine.router()
    values = [found.read(router._commands.show_all([found.command])[found.command]) for found in looks]
    assert len(looks) >= 5 and all(map(lambda found, now: found.is_ours(now), looks, values)), (looks, values)
    assert earlier is any(
        found.former not in (NONE, "0", "1", "2", "Enabled", "IFDISABLED", "IP6 disabled") for found in looks
    )
    assert "not undone" not in machine.undone()
    assert machine.state() == before


@pytest.mark.parametrize("name", [*sorted(BUILT_IN), "looking"])
def test_what_somebody_has_set_since_stays_and_is_reported(name: str) -> None:
    reported = 0
    for change in Machine.new(name).run(frames=False):
        if change.look is None or change.look.ours == (NONE,):
            continue
        machine = Machine.new(name)
        machine.run(restores=False, frames=False)
        shell = Somebody(machine.shell, change.look)
        said = machine.undone(shell)
        if "; not undone, because somebody has set something else since: '" in said:
            reported += 1
            assert f"'{change.do_text}' (now: " in said
            assert not any(line in shell.ran for line in change.undo)
        assert look(KEY) is None
    assert reported >= (2 if name in BUILT_IN else 1)


@pytest.mark.parametrize("name", [*sorted(BUILT_IN), "looking"])
def test_a_setting_is_said_to_be_there_only_if_the_router_shows_it(name: str) -> None:
    whole = Machine.new(name)
    journal, router = whole.begun()
    whole.configure(router, frames=False)
    found, changes = router.settings(), router.changes
    journal.close()
    assert not found.ignored and (*found.seen, *found.unchecked) and not {*found.seen} & {*found.unchecked}
    assert {*found.seen} == {change.do_text for change in changes if change.look}
    for change in changes:
        if change.look is None or change.look.ours == (NONE,):
            continue
        shown = Machine.new(name)
        router = shown.router(Somebody(shown.shell, change.look, after=change.do[0]))
        shown.configure(router, frames=False)
        odd = router.settings()
        assert change.do_text not in odd.seen and any(f"'{change.do_text}' (now: " in words for words in odd.ignored)
        assert {*odd.notes} <= {*found.notes} and len(odd.notes) + len(odd.ignored) >= len(found.notes)


class Somebody:
    """*shell*, which shows another value *after* a command in place of the one that *look* finds."""

    def __init__(self, shell: Shell, look: Look, after: str = "") -> None:
        self._shell, self._look, self._after, self.ran = shell, look, after, list[str]()

    def __call__(self, command: str, limit: float) -> Result:
        self.ran.append(command)
        result = self._shell(command, limit)
        output = result.stdout.replace("\r", "")
        is_after = not self._after or self._after in self.ran
        if (
            is_after
            and command == self._look.command
            and (value := re.search(self._look.pattern, output, re.MULTILINE))
        ):
            last = value.end("value") - 1
            other = "3" if output[last] != "3" else "5"
            output = f"{output[:last]}{other}{output[last + 1 :]}"
        return replace(result, stdout=output)
