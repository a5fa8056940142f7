"""Every router, ours or of a file: what a run changes on it is taken back, whenever the run ends, and nothing else."""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import pytest

from lineproof.core.traffic.frame_kinds import FrameKind, FrameKinds
from lineproof.project import packaged_variables
from lineproof.routers import BUILT_IN, described, make_router
from lineproof.routers.base import Result, Router, Shell
from lineproof.routers.description import RouterDescription
from lineproof.routers.journal import NONE, Change, ChangeJournal, Look, look
from lineproof.routers.shell_commands import CommandLineShell
from support.catalogue import CATALOGUE
from support.described_router import DESCRIPTIONS, description, machine_of, shipped
from support.fake_router import SIDES, shell_of, simulated
from support.journals import ROUTER, Killed, dying, occasion, undone
from support.scripted_shells import commands_of

pytestmark = pytest.mark.usefixtures("state")

FRAMES = FrameKinds.of(CATALOGUE, get_args(FrameKind))
STATE = {
    "vpp": (
        *("interface address", "ip fib", "ip neighbors", "ip6 interface eth1", "ip table", "ip6 table"),
        *("mpls interface", "mpls fib 100", "ip6 fib 2001:2::1000:0/104", "ip fib table 29700 16.0.0.0/8"),
    ),
    "linux": (
        *("ip addr", "ip route", "ip neigh", "sysctl net.ipv4.ip_forward net.ipv4.conf.all.rp_filter"),
        "sysctl net.ipv4.conf.eth1.rp_filter",
    ),
    "freebsd": (
        *("ifconfig", "ifconfig -l", "netstat -rnW -f inet", "netstat -rnW -f inet6", "arp -an", "ndp -an"),
        *("sysctl net.inet.ip.forwarding net.inet6.ip6.forwarding", "pfctl -s info", "setfib 1 arp -an"),
    ),
}
"""Commands that show all that is configured."""
EARLIER = {
    "linux": (
        "ip link set dev eth1 up",
        "ip addr add 192.0.2.1/24 dev eth1",
        "ip route add 16.0.0.0/8 via 192.0.2.9 dev eth1",
        "ip neigh replace 100.65.1.2 lladdr 02:00:00:00:00:77 nud permanent dev eth1",
    ),
    "freebsd": (
        "ifconfig eth1 inet 192.0.2.1/24 alias",
        "ifconfig eth1 inet 100.65.1.1/28 alias",
        "route add -net 16.0.0.0/8 192.0.2.9",
        "arp -S 100.65.1.2 02:00:00:00:00:77",
        "ifconfig eth2 inet6 -ifdisabled",
        "ifconfig eth2 inet6 2001:2::6441:201/120 alias",
        "ndp -s 2001:2::6441:202 02:00:00:00:02:02",
        "route -6 add -net 2001:2::3000:0/104 2001:2::6441:2ff",
    ),
    "vpp": ("vppctl set ip neighbor eth1 100.65.1.2 02:00:00:00:00:77 static",),
}
"""The configuration that a router may have already where a run sets something else."""
ALL = (*sorted(BUILT_IN), *sorted(DESCRIPTIONS))


@dataclass
class Machine:
    """A router that is simulated; ``state``: its configuration."""

    kind: Any
    shell: Shell
    state: Callable[[], str]
    file: RouterDescription | None = None

    @classmethod
    def new(cls, name: str, earlier: bool = False) -> Machine:
        """One of ALL."""
        if name in DESCRIPTIONS:
            line = machine_of(name)
            return cls("generic", line, lambda: line.configuration, description(name))
        shell = shell_of(simulated(name)[0])
        commands = [f"vppctl show {words}" for words in STATE[name]] if name == "vpp" else STATE[name]
        for command in EARLIER[name] if earlier else ():
            assert shell(command, 1.0).status == 0
        return cls(name, shell, lambda: "".join(shell(command, 1.0).stdout for command in commands))

    def router(self, shell: Shell | None = None) -> Router:
        """Return one behind *shell*, by default its own."""
        own = shell or self.shell
        known = CommandLineShell(own, self.file.refusal_in) if self.file else own
        return make_router(self.kind, known, ("eth1", "eth2"), file=self.file)

    def configure(self, router: Router, frames: bool = True) -> None:
        """Configure *router*, by default for all frames that it can be simulated with."""
        router.configure(SIDES)
        if frames and self.kind in ("vpp", "freebsd"):
            router.configure_frames(SIDES, FRAMES)

    def run(self, shell: Shell | None = None, restores: bool = True, frames: bool = True) -> tuple[Change, ...]:
        """Return the changes of a run with a journal, that ends with Killed or by itself."""
        journal, router = ChangeJournal.claim(ROUTER), self.router(shell)
        journal.begin(occasion(kind=self.kind))
        router.keep_journal(journal)
        try:
            self.configure(router, frames)
            changes = router.changes
            if restores:
                router.restore()
                journal.close()
            return changes
        finally:
            if journal._descriptor >= 0:
                os.close(journal._descriptor)  # as the kernel does where it is killed, and nothing more

    def undone(self, shell: Shell | None = None) -> str:
        """Return what the next start says."""
        getattr(self.shell, "close", lambda: None)()
        return undone(shell or self.shell, occasion(kind=self.kind), self.file)


@pytest.mark.parametrize("name", [*BUILT_IN, *(path.stem for path in (packaged_variables() / "shells").glob("*"))])
def test_the_examples_of_a_description_that_comes_with_lineproof_are_right(name: str) -> None:
    assert list((described(name) if name in BUILT_IN else shipped(name)).problems()) == []


def test_a_card_that_is_taken_up_or_set_anew_moves_its_link() -> None:
    changes = [change for name in BUILT_IN for _, change, _ in described(name).all_changes() if change.moves_link]
    up = r"(ip link set dev|ifconfig|vppctl set interface state) {interface} up"
    moving = rf"{up}|ethtool -[LGK] {{interface}} .*|ifconfig {{interface}} {{flag}}"
    assert len(changes) == 8 and all(re.fullmatch(moving, line) for change in changes for line in change.do)


@pytest.mark.parametrize("name", sorted(BUILT_IN))
def test_what_is_right_already_stays_and_a_rehearsal_changes_nothing(name: str) -> None:
    machine = Machine.new(name)
    before, first = machine.state(), machine.router()
    with first.rehearsal() as planned:
        machine.configure(first)
    assert len(planned) > 5 and machine.state() == before and first.changes == () == first.notes
    machine.configure(first)
    between, second = machine.state(), machine.router()
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
    values = [found.read(router._commands.show_all([found.command])[found.command]) for found in looks]  # type: ignore[attr-defined]
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
        assert look(ROUTER) is None
    assert reported >= (2 if name in BUILT_IN else 1)


class Somebody:
    """*shell*, which shows another value in place of the one that *look* finds."""

    def __init__(self, shell: Shell, look: Look) -> None:
        self._shell, self._look, self.ran = shell, look, list[str]()

    def __call__(self, command: str, limit: float) -> Result:
        self.ran.append(command)
        result = self._shell(command, limit)
        script = re.fullmatch(r"sh -c (.*)", command, re.DOTALL)
        commands = commands_of(shlex.split(script[1])[0]) if script else [command]
        # outputs, and what marks the end of each
        parts = re.split(r"(@@lineproof \d+ \d+\n)", result.stdout.replace("\r", ""))
        for at, own in enumerate(commands):
            found = re.search(self._look.pattern, parts[2 * at], re.MULTILINE) if own == self._look.command else None
            if found:
                last = found.end("value") - 1
                other = "3" if parts[2 * at][last] != "3" else "5"
                parts[2 * at] = f"{parts[2 * at][:last]}{other}{parts[2 * at][last + 1 :]}"
        return Result("".join(parts), result.stderr, result.status, 0.0)
