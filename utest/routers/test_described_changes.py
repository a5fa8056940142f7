"""Changes that a run left on a described router are undone, but not what others have set since."""

from __future__ import annotations

import contextlib
import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lineproof.errors import TestbedError
from lineproof.routers.description import RouterDescription, side_words
from lineproof.routers.journal import NONE, Change, Look, look
from lineproof.system.ssh_shell import Result, SshShell
from support.described_router import DESCRIPTIONS, with_examples
from support.fake_cli import FakeCli
from support.fake_router import SIDES
from support.scripted_shells import Scripted
from support.simulated_router import KEY, Killed, Machine, dying, occasion, undone

pytestmark = pytest.mark.usefixtures("state")

NAMES = sorted(DESCRIPTIONS)


class Refusing:
    """*machine*, which refuses its line number *at* (from 0) with *words*, or *line* always; without words: Ctrl-C."""

    def __init__(self, machine: Any, at: int = -1, words: str = "% Not now", line: str = "") -> None:
        self.machine, self.at, self.words, self.line = machine, at, words, line
        self.count, self.ran = 0, list[str]()
        self.close = machine.close

    def __call__(self, command: str, limit: float) -> Result:
        refused, self.count = self.count == self.at, self.count + 1
        self.ran.append(command)
        if refused and not self.words:
            self.machine(command, limit)
            raise KeyboardInterrupt
        if refused or command == self.line:
            return Result(f"{self.words}\n", "", 0, 0.0)
        return self.machine(command, limit)


def killed_after(lines: int, name: str) -> tuple[Machine, str]:
    """A router on which a run was killed, and its configuration before."""
    machine = Machine.new(name)
    before = machine.state()
    with pytest.raises(Killed):
        machine.run(dying(machine.shell, lines, before=False))
    machine.shell.close()
    assert machine.state() != before
    return machine, before


def test_a_configuration_saved_long_ago_is_loaded_only_where_a_person_asks(state: Path) -> None:
    machine, before = killed_after(3, "saving")
    changed, later = machine.state(), replace(occasion(kind="saving"), since=1e10)
    with pytest.raises(TestbedError, match=r"saved .* h ago, over whatever .* 'lineproof restore' loads it"):
        undone(machine.shell, later, machine.file)
    assert machine.state() == changed
    undone(machine.shell, later, machine.file, asked=True)
    assert machine.state() == before


@pytest.mark.parametrize("trouble", ["refused", "interrupted"])
@pytest.mark.parametrize("name", NAMES)
def test_a_line_that_is_refused_or_interrupted_leaves_nothing_of_its_change(
    name: str, trouble: str, state: Path
) -> None:
    words = "% Not now" if trouble == "refused" else ""
    for line in itertools.count():
        machine = Machine.new(name)
        before, shell = machine.state(), Refusing(machine.shell, line, words)
        journal, router = machine.begun(shell)
        try:
            router.configure(SIDES)
            if trouble == "interrupted":
                router.restore()
        except TestbedError as error:
            assert words and words in str(error)
        except KeyboardInterrupt:
            assert not words
        happened, shell.at = shell.count > line, -1
        router.restore()
        journal.close()
        assert machine.state() == before, f"{trouble} at line {line}"
        assert not list(state.iterdir())
        if not happened:
            break
    assert line > 5


@pytest.mark.parametrize("name", ["in reverse", "committing"])
def test_a_line_of_an_undo_that_is_refused_keeps_the_change_in_the_journal(name: str, state: Path) -> None:
    undo_lines = 5 if name == "committing" else 4
    for refused in range(undo_lines):
        machine, before = killed_after(3 if name == "committing" else 2, name)
        shell = Refusing(machine.shell, refused)
        with pytest.raises(TestbedError, match=r"are tried again at the next start") as caught:
            machine.undone(shell)
        assert f"'{shell.ran[-1]}': status 1: % Not now" in str(caught.value) and len(shell.ran) == refused + 1
        found = look(KEY)
        assert found is not None and len(found.changes) == 1
        machine.undone()
        assert machine.state() == before and look(KEY) is None and not list(state.iterdir())


@pytest.mark.parametrize(
    ("line", "words", "later", "gone"),
    [
        ("no ip route x", "% The entry does not exist", True, True),
        ("no ip route x", "% Command not found", True, False),
        ("no ip route x", "% no such item", False, True),
        # it enters what the next lines are meant for
        ("interface x", "% Interface does not exist", True, False),
        ("configure terminal", "% nothing to commit", True, False),
        # it is after them
        ("commit", "% nothing to commit", False, True),
        ("exit", "% no such item", False, False),
        # it loads a configuration
        ("configure replace flash:before force", "% no such item", False, False),
    ],
)
def test_a_refused_line_of_an_undo_has_nothing_to_undo_only_where_it_removes_or_ends(
    line: str, words: str, later: bool, gone: bool
) -> None:
    ran = list[str]()

    def shell(command: str, limit: float) -> Result:
        ran.append(command)
        return Result(f"{words}\n" if command == line else "", "", 0, 0.0)

    data = {"shell": "x", "refused": ["^%"], "gone": ["nothing to commit"]}
    router = Machine(data["shell"], shell, str, RouterDescription.model_validate(data)).router()
    undo = (line, *(["no arp x"] if later else []))
    router._changes.made.add(Change(("x",), undo))
    with contextlib.nullcontext() if gone else pytest.raises(TestbedError, match=words):
        router.restore()
    assert tuple(ran) == (undo if gone else (line,))


def test_the_mac_of_a_side_is_written_as_makers_do() -> None:
    words = side_words(SIDES[0])
    assert (words["peer_mac_dashed"], words["peer_mac_dotted"]) == ("0200-0000-0102", "0200.0000.0102")


@pytest.mark.slow
@pytest.mark.parametrize("end", [(), ("end",)])
def test_a_change_that_ends_in_the_configuration_mode_leaves_no_later_command_there(
    end: tuple[str, ...], tmp_path: Path
) -> None:
    cli, file = FakeCli(tmp_path, {"(config)arp x": "", "(config)no arp x": ""}), with_examples("ios")
    with contextlib.closing(cli), contextlib.closing(SshShell(cli.login, file.terminal)) as shell:
        router = Machine("ios", shell, str, file).router()
        router._changes.make(Change(("configure terminal", "arp x", *end), ("configure terminal", "no arp x", *end)))
        assert router.identify()["version"] == "15.2(4)E8"
        assert router.restore() == "" and router.identify()["version"] == "15.2(4)E8"
    assert cli.logins == (1 if end else 3)


@pytest.mark.parametrize(
    ("ours", "shown", "other"),
    [
        ("02:00:00:00:01:02", "0200.0000.0102", "0200.0000.010A"),
        ("02:00:00:00:01:02", "0200-0000-0102", "02:00:00:00:01:0A"),
        # as many digits as a MAC address has, and letters beside them
        ("via 100.65.1.2 dev eth1", "via 100.65.1.2 dev eth1", "via 100.65.1.2 dev eth1 onlink"),
    ],
)
def test_a_value_that_is_written_in_another_way_is_ours(ours: str, shown: str, other: str) -> None:
    look = Look("show", ".", ours=(ours,))
    assert look.is_ours({"value": shown}) and not look.is_ours({"value": other})


V4, V6 = "16.0.0.0/8 via 100.65.1.2 dev eth1", "2001:2::/104 via 2001:2::2 dev eth1 metric 1024"
PEER = SIDES[0].peer_mac
LABEL = "100:eos/21 fib:0\n  100.65.1.2 eth1\n   Extensions:\n    path:30  labels:[[100 pipe ttl:0 exp:0]]"
ROS = "0 As comment=lineproof dst-address=16.0.0.0/8 gateway=100.65.1.2"


@pytest.mark.parametrize(
    ("name", "own", "theirs"),
    [
        ("linux", f"{V4} ", f"{V4} mtu 1400 "),
        ("linux", f"{V6} onlink pref medium", f"{V6} onlink mtu 1400 pref medium"),
        ("linux", f"{V6} pref medium", f"{V6} pref medium expires 9sec"),
        ("freebsd", "16.0.0.0/8  100.65.1.2  UGS  9  1500  ix0", "16.0.0.0/8  100.65.1.2  UGS  9  1400  ix0"),
        ("freebsd", "16.0.0.0/8  100.65.1.2  UGS  ix0", "16.0.0.0/8  100.65.1.2  UGSB  ix0"),
        ("linux", f"100.65.1.2 lladdr {PEER} PERMANENT", f"100.65.1.2 lladdr {PEER} PERMANENT proto static"),
        (
            "freebsd",
            f"? (100.65.1.2) at {PEER} on ix0 permanent",
            f"? (100.65.1.2) at {PEER} on ix0 permanent published",
        ),
        ("freebsd", f"2001:2::2 {PEER} ix0 permanent R", f"2001:2::2 {PEER} ix0 permanent R Rp"),
        ("vpp", f"2.5  100.65.1.2  S  {PEER} eth1", f"2.5  100.65.1.2  S  {PEER} eth1 odd"),
        ("vpp", LABEL, f"{LABEL} [200 pipe ttl:0 exp:0]"),
        ("vpp", LABEL, LABEL.replace("eth1", "eth1 odd")),
        ("routeros", f"{ROS} gateway-status=x reachable distance=1", f"{ROS} gateway-status=x reachable distance=2"),
        ("routeros", f"{ROS} immediate-gw=x scope=30", f"{ROS} immediate-gw=x check-gateway=ping scope=30"),
    ],
)
def test_a_route_or_neighbour_to_which_somebody_adds_words_is_theirs(
    name: str, own: str, theirs: str, caplog: pytest.LogCaptureFixture
) -> None:
    file = with_examples(name)
    group = file.mpls if own == LABEL else file.ipv6 if own.startswith("2001:") else None
    word = "{peer_mac}" if PEER in own else "{label}" if own == LABEL else "{network"
    query = next(entry.look for entry in (group or file).changes if entry.look and word in entry.do[0])
    words = {**side_words(SIDES[0]), "within": "", "route": "16.0.0.0/8", "peer6": "2001:2::2"}
    look = query.look({**words, "network6": "2001:2::/104", "label": "100"}, file.is_posix)
    # what others add before the first look is seen where the router shows only what it was given
    for first, then, stays in ((own, own, False), (own, theirs, True), (theirs, theirs, own.startswith((V4, V6)))):
        shell = Scripted({look.command: f"{first}\n"})
        router = Machine(file.shell, shell, str, file).router()
        router._changes.make(Change(("do",), ("undo",), look=look))
        shell.outputs[look.command] = f"{then}\n"
        assert ("somebody has set something else since: 'do' (now: " in router.restore()) is stays
        assert ("undo" in shell.ran) is not stays
        assert bool(caplog.messages) is (first is not own and stays)


@pytest.mark.parametrize(("first", "then"), [("a 1\n", "a 1\na 7\n"), ("a 1\na 7\n", "a 1\na 7\n")])
def test_a_value_that_somebody_sets_beside_ours_stays_with_it(first: str, then: str) -> None:
    # 'no a' would remove both
    shell = Scripted({"show a": first})
    router = Machine("ios", shell, str, with_examples("ios")).router()
    router._changes.make(Change(("a 1",), ("no a",), look=Look("show a", r"^a (?P<value>\d+)", ours=("1",))))
    shell.outputs["show a"] = then
    assert "'a 1' (now: 1; 7)" in router.restore() and "no a" not in shell.ran


def test_a_look_finds_its_value_in_json_too() -> None:
    look = Look("show", "", "arp[address=100.65.1.2].mac", none='^{"arp"')
    output = '{"arp": [{"address": "100.65.1.2", "mac": "02:00:00:00:01:02"}]}'
    assert (look.values(output)[0]["value"], look.values('{"arp": []}')[0]["value"]) == ("02:00:00:00:01:02", NONE)


@pytest.mark.parametrize("killed", [True, False])
def test_a_saved_configuration_is_not_loaded_over_what_others_have_changed(killed: bool) -> None:
    machine = Machine.new("looking before")
    before = machine.state()
    journal, router = machine.begun()
    router.configure(SIDES)
    machine.shell.change("192.0.2.9", "192.0.2.10")
    theirs = machine.state()
    if killed:
        journal.close()
        with pytest.raises(TestbedError, match=r"over what somebody else has configured since: bob on Monday; .* rest"):
            machine.undone()
    else:
        with pytest.raises(TestbedError, match=r"could not be restored in full; .* bob on Monday"):
            router.restore()
        journal.close()
    assert machine.state() == theirs and look(KEY) is not None
    machine.undone(asked=True)
    assert machine.state() == before and look(KEY) is None


LOOK = {"run": "show x", "pattern": "x (?P<value>\\S+)", "example": "x 1", "expected": {"value": "1"}, "without": ""}
CHANGE = {"do": ["a {peer}"], "undo": ["b {peer}"]}
COUNTS = r"(?P<rx_packets>\d+) in, (?P<tx_packets>\d+) out"


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({"changes": [{"do": ["a"], "look": LOOK}]}, "no 'undo', nor 'back' with a 'look'"),
        ({"changes": [{"do": ["a"], "back": ["b"]}]}, "'back'.*; expected a 'look'"),
        ({"changes": [{"do": ["a"], "back": ["b"], "look": LOOK | {"ours": "1"}}]}, "no value before .* no 'undo'"),
        ({"changes": [CHANGE | {"like": "x"}]}, "expected a change, with 'do'"),
        ({"changes": [CHANGE | {"with": ["x"]}]}, "'with' has text for words in braces"),
        ({"changes": [CHANGE | {"look": LOOK | {"run": "show {networks}"}}]}, "'{networks}' is not known"),
        ({"changes": [CHANGE | {"do": "a {Peer}"}]}, "'{Peer}' is not known .* did you mean 'peer'"),
        ({"changes": [CHANGE | {"look": LOOK, "back": "a {no/yes} {former}"}]}, "'{no/yes}' is not known"),
        ({"changes": [CHANGE | {"for": "router"}]}, "'{peer}' is not known"),
        ({"changes": [CHANGE | {"for": "everything"}]}, "'everything'; expected one of: router, interface, side"),
        ({"changes": [CHANGE | {"look": LOOK | {"pattern": ["(?P<value>a)", "b"]}}]}, "at most 1 item"),
        ({"changes": [CHANGE | {"look": LOOK | {"pattern": "x"}}]}, "names no 'value'"),
        ({"changes": [CHANGE], "save": ["s"], "restore": ["r"], "look": LOOK | {"run": "{peer}"}}, "is not known"),
        # the counts would be those of the first interface
        ({"commands": {"counters": {"run": "show", "pattern": ["^{interface} is", COUNTS]}}}, "is for all interfaces"),
    ],
)
def test_a_look_or_a_query_that_cannot_be_is_refused(data: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words.replace("{", r"\{")):
        raise ValueError([*RouterDescription.model_validate({"shell": "x", **data}).problems()])


def test_a_change_like_another_has_its_keys_and_own_words_in_place_of_its_words() -> None:
    look = LOOK | {"run": "show {key}", "pattern": "{peer} (?P<value>.+)", "expected": {"peer6": "x", "value": "1"}}
    first = {"for": "router", "with": {"key": "k", "value": "1"}, "do": ["{on/off} {key}={value}"], "look": look}
    second = {"like": first, "for": "prefix", "with": {"value": "{ip}", "peer": "{peer6}"}, "note": "{key}"}
    third = {"like": second, "with": {"key": "other"}, "undo": ["v"]}
    file = RouterDescription.model_validate({"shell": "x", "changes": [second, third]})
    (one, other), (shown, _) = file.changes, [change.look for change in file.changes]
    assert (one.for_, one.do, one.undo, one.note) == ("prefix", ("on k={ip}",), ("off k={ip}",), "k")
    assert (other.for_, other.do, other.undo, other.note) == ("prefix", ("on other={ip}",), ("v",), "other")
    assert shown is not None and (shown.run, shown.pattern) == ("show k", ("{peer6} (?P<value>.+)",))
    assert list(file.problems()) == []


OURS = LOOK | {"pattern": "^{peer} (?P<value>\\S+)", "none": "^no entry", "ours": "{peer_mac}", "without": "no entry"}
OURS |= {"example": "1.2.3.4 02", "expected": {"peer": "1.2.3.4", "peer_mac": "02", "value": "02"}}


@pytest.mark.parametrize(
    ("keys", "places", "word"),
    [
        ({}, [], ""),
        ({"without": "1.2.3.4 05"}, [], ""),
        ({"expected": OURS["expected"] | {"value": "2"}}, [("expected", "value")], "gives 02, not 2"),
        ({"expected": OURS["expected"] | {"peer_mac": "03"}}, [("example",)], "'03'"),
        ({"expected": {"peer": "1.2.3.4", "value": "02"}}, [("expected",)], "'peer_mac'"),
        ({"example": ""}, [("example",)], "(?P<value>"),
        ({"example": "", "expected": {}}, [()], "is not tried"),
        ({"none": "^nothing"}, [("without",)], "^nothing"),
        ({"without": "1.2.3.4 02"}, [("without",)], "not '02'"),
        ({"without": None}, [()], "'without'"),
        ({"none": ""}, [("without",)], "let 'none' find it"),
        ({"ours": (), "expected": {"peer": "1.2.3.4", "value": "02"}}, [], ""),
        ({"ours": (), "without": "1.2.3.4 03"}, [("without",)], "nothing"),
    ],
)
def test_the_examples_of_a_look_are_tried_with_the_change_and_without(
    keys: dict[str, Any], places: list[tuple[str, ...]], word: str
) -> None:
    file = RouterDescription.model_validate({"shell": "x", "changes": [CHANGE | {"look": OURS | keys}]})
    problems = list(file.problems())
    assert [place for place, _ in problems] == [("changes", "0", "look", *place) for place in places]
    assert all(word in text for _, text in problems)


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
        (("root: not lineproof", "admin: lineproof"), True),
        # nothing of a run is there
        (("root", "admin: lineproof-restored", "admin: lineproof"), False),
        (("admin: lineproof-restored", "root", "admin: lineproof"), False),
        (("root: lineproofd",), False),
    ],
)
def test_junos_shows_whether_somebody_has_committed_since(rows: tuple[str, ...], somebody: bool) -> None:
    query = with_examples("junos").look
    assert query is not None
    look = query.look({})
    found = look.values(commits(*rows))[0]
    assert look.is_ours(found) is not somebody
    assert not somebody or found["value"].startswith("2018-02-07 20:50:04 UTC by root")
