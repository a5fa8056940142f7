"""Every router, ours or of a file: what a run changes on it is taken back, whenever the run ends, and nothing else."""

from __future__ import annotations

import contextlib
import itertools
import os
import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from lineproof.config import Location, read_yaml
from lineproof.core.router_facts import NicFacts, RouterFacts
from lineproof.core.telemetry import LinkState
from lineproof.core.under_load import UnderLoad
from lineproof.errors import TestbedError
from lineproof.project import PACKAGED_ROUTERS
from lineproof.routers import BUILT_IN, described, make_router
from lineproof.routers.changes import looked_up
from lineproof.routers.description import side_words
from lineproof.routers.journal import NONE, NOTHING, Look, look
from lineproof.routers.queries import LookQuery
from lineproof.system.ssh_shell import Result, Shell, plain_text
from support.described_router import DESCRIPTIONS, with_examples
from support.fake_router import SIDES, sample
from support.paths import DATA
from support.scripted_shells import broken
from support.simulated_router import KEY, Killed, Machine, dying, untouched

pytestmark = pytest.mark.usefixtures("state")

FOLDERS = sorted(path.parent.name for path in PACKAGED_ROUTERS.glob("*/[!m]*.yaml"))
ALL = (*sorted(BUILT_IN), *sorted(DESCRIPTIONS))


@pytest.mark.parametrize("name", FOLDERS)
def test_the_examples_of_a_description_that_comes_with_lineproof_are_right(name: str) -> None:
    untried = list[set[Location]]()
    for which in range(10):
        file = with_examples(name, which)
        # the simulated router shows each look of ours with and without its change, below: here is what others have set
        problems = {place for place, _ in file.problems() if name not in BUILT_IN or place[0] == "commands"}
        untried.append({place for place in problems if "pattern" in place})
        assert problems == untried[-1]
        for query in (query for _, query in file._queries() if isinstance(query, LookQuery) and query.expected):
            shown = query.results(query.example)
            assert {**shown, **query.expected} == shown
    assert set.intersection(*untried) == set(), "expressions that find something in none of the examples"


@pytest.mark.parametrize("name", ["linux", "freebsd"])
def test_what_a_program_shows_as_json_is_read_as_json_but_where_a_table_says_why_not(name: str) -> None:
    queries, parts = described(name)._queries(), read_yaml(PACKAGED_ROUTERS / name / "machine.yaml")[0].values()
    commands = {*(query.run for _, query in queries), *(command for part in parts for command in part)}
    as_text = re.compile("|".join(read_yaml(DATA / "text_output.yaml")[0][name]))
    as_json = re.compile(r"ip -j |uptime --libxo json$|netstat --libxo json |ethtool \{form\}")
    assert {bool(as_text.match(line)) + 2 * bool(as_json.match(line)) for line in commands} == {1, 2}


@pytest.mark.parametrize("name", sorted(BUILT_IN))
def test_a_router_that_answers_nothing_gives_nothing_and_says_why(name: str) -> None:
    router, waited = make_router(name, broken, ("eth1",)), list[int]()
    facts, load = router.facts(), router.under_load(lambda: waited.append(1))
    assert facts == RouterFacts(nics=(NicFacts("eth1"),), unread=facts.unread)
    assert set(facts.unread.values()) == {"the link to the router dropped"}
    assert load == UnderLoad(unread=load.unread) and load.unread and waited == [1]
    assert router.link_states() == (LinkState("eth1"),)


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
    for moment in itertools.count():
        try:
            machine.run(dying(machine.shell, moment, before=before))
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
    values = [looked_up(router._commands, found, router._commands.show)[0] for found in looks]
    assert len(looks) >= 5 and all(map(lambda found, now: found.is_ours(now), looks, values)), (looks, values)
    assert earlier is any(
        found.former not in (NONE, "0", "1", "2", "Enabled", "IFDISABLED", "IP6 disabled") for found in looks
    )
    assert "not undone" not in machine.undone()
    assert machine.state() == before


@pytest.mark.parametrize("name", FOLDERS)
def test_a_look_takes_no_error_for_a_value_or_for_nothing(name: str) -> None:
    for _, query in (with_examples(name))._queries():
        if isinstance(query, LookQuery):
            found = query.look({})
            assert found.values("\n") == NOTHING
            for error in ERRORS:
                with pytest.raises(TestbedError, match=f"'{re.escape(found.command)}' was not understood: '{error}'"):
                    found.values(f"{error}\n")


ERRORS = ("bad command or database is locked", "Error: not enough memory 16.0.0.0/8", "timed out after 10 s")
"""Errors that no description names."""


RECORDED = "../golden/recorded/freebsd"


@pytest.mark.parametrize(
    ("name", "command", "output"),
    [
        ("vpp", "vppctl show interface address", sample("vpp/misc_w1/show_interface_address.txt")),
        ("vpp", "vppctl show ip neighbors", sample("vpp/misc_w1/show_ip_neighbors.txt")),
        *(("vpp", "vppctl show ip fib", sample(f"vpp/fib/{name}.txt")) for name in ("default_route", "drop")),
        ("vpp", "vppctl show ip6 fib", sample("vpp/fib/ipv6.txt")),
        # VPP 25.10
        ("vpp", "vppctl show ip6 interface", "ix1 is admin up\n  Link-local address(es):\n"),
        ("vpp", "vppctl show ip table", "[0] table_id:0 ipv4-VRF:0\n"),
        ("vpp", "vppctl show ip6 table", "[0] table_id:0 ipv6-VRF:0\n[1] table_id:4294967295 IP6-link-local:x\n"),
        ("vpp", "vppctl show mpls interface", "host-vr0\n  MPLS enabled\n"),
        ("freebsd", "ifconfig ix1", sample(f"{RECORDED}/ifconfig.ix1.txt").replace("<UP,", "<")),
        ("freebsd", "arp -an", sample(f"{RECORDED}/arp-a.em0.txt")),
        ("freebsd", "netstat -rnW", sample(f"{RECORDED}/netstat-rn.vtnet0.txt")),
        ("freebsd", "pfctl -s info", sample("freebsd/pfctl-si.txt").replace("Enabled", "Disabled")),
        ("freebsd", "ndp -an", "Neighbor  Linklayer Address  Netif Expire\n::7 02:00:00:00:00:77 ix0 permanent R\n"),
        ("linux", "ip link show dev ix1", "2: ix1: <BROADCAST,MULTICAST> mtu 1500 qdisc noop state DOWN\n"),
        ("linux", "ip -4 addr show dev ix1", "2: ix1@if3: <UP> mtu 1500\n    inet 192.0.2.1/24 scope global ix1\n"),
        ("linux", "ip neigh show 100.65.1.2", "100.65.1.2 lladdr 02:00:00:00:01:02 STALE \n"),
        ("linux", "ip -4 rule show", "0:\tfrom all lookup local\n32766:\tfrom all lookup main\n"),
    ],
)
def test_a_look_knows_an_answer_without_its_value(name: str, command: str, output: str) -> None:
    words = {**side_words(SIDES[0]), "interface": "ix1", "table": "5", "route": "16.0.0.0/8", "peer6": "::5"}
    queries = [query for _, query in described(name)._queries() if isinstance(query, LookQuery)]
    looks = [query.look(words) for query in queries]
    found = [look for look in looks if look.command.startswith(command)]
    assert found and all(look.values(plain_text(output)) == NOTHING for look in found)


@pytest.mark.parametrize("name", [*sorted(BUILT_IN), "looking", "looking before"])
def test_a_look_that_is_answered_with_an_error_ends_the_run_and_is_asked_again_at_the_next(name: str) -> None:
    machine = Machine.new(name)
    untouched, changes = machine.state(), machine.run()
    for command in {change.look.command for change in changes if change.look}:
        for at_the_end in (False, True):
            machine = Machine.new(name)
            shell = Somebody(machine.shell, command, lambda output: f"{ERRORS[0]}\n")
            with pytest.raises(TestbedError, match=f"'{re.escape(command)}' was not understood: '{ERRORS[0]}'"):
                if at_the_end:
                    machine.run(restores=False)
                    machine.undone(shell)
                else:
                    machine.run(shell)
            left = look(KEY)
            assert at_the_end <= (left is not None), command
            kept = [change for change in left.changes if change.look and change.look.command == command] if left else []
            assert not any(line in shell.ran for change in kept for line in change.undo)
            machine.undone()
            assert machine.state() == untouched and look(KEY) is None, command


@pytest.mark.parametrize("way", ["set", "appended"])
@pytest.mark.parametrize("name", [*sorted(BUILT_IN), "looking"])
def test_what_somebody_has_set_since_stays_and_is_reported(name: str, way: str) -> None:
    reported = 0
    for change in Machine.new(name).run():
        if change.look is None or change.look.ours == (NONE,):
            continue
        machine, found = Machine.new(name), change.look

        other = partial(otherwise, found=found, way=way)
        machine.run(restores=False)
        shell = Somebody(machine.shell, found.command, other)
        shown, said = found.made, ""
        with contextlib.suppress(TestbedError):
            shown = ()
            shown = tuple(found.values(other(machine.shell(found.command, 1.0).stdout.replace("\r", "")))[0].values())
            said = machine.undone(shell)
        if not shown:
            with pytest.raises(TestbedError, match=f"'{re.escape(found.command)}' was not understood"):
                machine.undone(shell)
        is_reported = f"not undone, because somebody has set something else since: '{change.do_text}' (now: " in said
        assert is_reported is (shown not in ((NONE,), (), found.made)), said
        assert any(line in shell.ran for line in change.undo) is (shown == found.made), shown
        assert (look(KEY) is None) is bool(shown)
        machine.undone()
        reported += is_reported
    assert reported >= ((2 if name in BUILT_IN else 1) if way == "set" else 2 * (name == "linux"))


@pytest.mark.parametrize("name", [*sorted(BUILT_IN), "looking"])
def test_a_setting_is_said_to_be_there_only_if_the_router_shows_it(name: str) -> None:
    whole = Machine.new(name)
    journal, router = whole.begun()
    whole.configure(router)
    found, changes = router.settings(), router.changes
    journal.close()
    assert not found.ignored and (*found.seen, *found.unchecked) and not {*found.seen} & {*found.unchecked}
    assert {*found.seen} == {change.do_text for change in changes if change.look}
    for change in changes:
        if change.look is None or change.look.ours == (NONE,):
            continue
        shown = Machine.new(name)
        other = partial(otherwise, found=change.look)
        router = shown.router(Somebody(shown.shell, change.look.command, other, after=change.do[0]))
        shown.configure(router)
        odd = router.settings()
        assert change.do_text not in odd.seen and any(f"'{change.do_text}' (now: " in words for words in odd.ignored)
        assert {*odd.notes} <= {*found.notes} and len(odd.notes) + len(odd.ignored) >= len(found.notes)


def otherwise(output: str, found: Look, way: str = "set") -> str:
    """Return *output* with another value in place of the one that *found* shows, or with words after it."""
    if (value := re.search(found.pattern, output, re.MULTILINE)) is None:
        return output
    last = value.end("value") - (way == "set")
    text = " mtu 1400" if way == "appended" else "3" if output[last] != "3" else "5"
    return f"{output[:last]}{text}{output[last + (way == 'set') :]}"


class Somebody:
    """*shell*, whose output of *command* comes *changed*, from the command *after* on."""

    def __init__(self, shell: Shell, command: str, changed: Callable[[str], str], after: str = "") -> None:
        self._shell, self._command, self._changed, self.ran = shell, command, changed, list[str]()
        self._after, self.close = after, getattr(shell, "close", None)

    def __call__(self, command: str, limit: float) -> Result:
        self.ran.append(command)
        result = self._shell(command, limit)
        output = result.stdout.replace("\r", "")
        is_changed = command == self._command and (not self._after or self._after in self.ran)
        return replace(result, stdout=self._changed(output) if is_changed else output)
