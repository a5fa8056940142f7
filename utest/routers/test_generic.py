"""Routers that a file describes: what it names is read, what it does not is not."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import yaml

from lineproof.command_values import count, number
from lineproof.config import parse_yaml, validate_config
from lineproof.errors import ConfigError, TestbedError
from lineproof.project import PACKAGED_ROUTERS, Layers
from lineproof.routers import BUILT_IN, make_router
from lineproof.routers import described as built_in
from lineproof.routers.described import Router
from lineproof.routers.description import SIDE_WORDS, RouterDescription, read_description
from lineproof.routers.queries import COUNTERS, UPTIME_UNITS
from lineproof.session.router_watch import RouterRestarted, RouterWatch
from lineproof.system.ssh_shell import Result
from support.described_router import JSON, data_with_examples, with_examples
from support.fake_router import SIDES
from support.paths import ROOT
from support.scripted_shells import Scripted


def described(text: str = JSON, **changes: Any) -> RouterDescription:
    data = {**yaml.safe_load(text), **changes}
    return validate_config(data, RouterDescription, Path("mybox.yaml"), {})


def generic(file: RouterDescription, shell: Scripted, interfaces: tuple[str, ...] = ("eth1",)) -> Router:
    return make_router(file.shell, shell, interfaces, file=file)


@pytest.mark.parametrize(
    ("name", "row"),
    [
        ("ios", "Internet  100.65.1.2  -   0200.0000.0001  ARPA"),
        ("junos", "02:00:00:00:00:01 100.65.1.2      ge-0/0/1.0               permanent"),
        ("routeros", " 0  C comment=made by hand address=100.65.1.2 mac-address=02:00:00:00:00:01 interface=ether1"),
    ],
)
def test_an_entry_that_was_set_is_told_from_a_learned_one(name: str, row: str) -> None:
    file = with_examples(name)
    assert file.commands.neighbours is not None
    text = f"{row}  GigabitEthernet0/1\n" if name == "ios" else f"{row}\n"
    (found,) = generic(file, Scripted({file.commands.neighbours.run: text})).neighbours(SIDES[:1])
    assert (found.mac, found.permanent) == ("02:00:00:00:00:01", True)


def test_an_answer_of_neighbours_that_is_refused_ends_nothing() -> None:
    file = with_examples("ios")
    router = generic(file, Scripted({"show ip arp": "% Invalid input detected at '^' marker.\n"}))
    assert router.neighbours(SIDES) == () and "neighbours" in router.facts().unread


def test_what_is_not_described_is_not_read() -> None:
    shell = Scripted()
    router = generic(described("shell: mybox"), shell)
    telemetry = router.read()
    assert (telemetry.uptime, dict(telemetry.interfaces), telemetry.causes, shell.ran) == (None, {}, (), [])
    assert "not asked" in router.identify()["version"]
    assert (dict(router.facts().other), router.neighbours(SIDES)) == ({}, ())
    with pytest.raises(TestbedError, match="expected 'prepare: none'"):
        router.configure(SIDES)


@pytest.mark.parametrize(
    "output",
    [
        "",
        "{}",
        "{" * 100,
        '{"ports": [{"name": "eth1", "in": {"packets": true}}]}',
        '{"ports": [{"name": "eth1", "in": {"packets": -1}, "out": {"packets": 3}}]}',
        '{"ports": [{"name": "eth1", "in": {"packets": "1e9"}, "out": {"packets": 3}}]}',
        "x" * (2 << 20),
    ],
)
def test_other_output_is_one_sentence_that_names_the_key(output: str) -> None:
    shell = Scripted({"show uptime json": '{"system": {"up": [1]}}', "show counters json": output})
    router = generic(described(), shell)
    with pytest.raises(TestbedError, match=r"fix 'commands.counters' in variables/shells/mybox.yaml") as caught:
        router.read()
    assert len(str(caught.value)) < 1000 and "\n" not in str(caught.value)


COUNTED = "te1: 1 in, 2 out\n"


@pytest.mark.parametrize("busy", ["statistics daemon busy", "te1: statistics daemon busy", "te1: 1 in, busy"])
@pytest.mark.parametrize("answers", ["-+", "--", "+-+", "+--"])
def test_a_router_that_was_busy_is_asked_again_and_its_file_is_blamed_only_where_it_may_be(
    busy: str, answers: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pattern = [r"^{interface}: (?P<rx_packets>\d+) in", r"(?P<tx_packets>\d+) out"]
    file, waited = of_one_interface(pattern=pattern, example=COUNTED), list[float]()
    texts = iter(COUNTED if each == "+" else f"{busy}\n" for each in answers)
    router = Router(lambda *_: Result(next(texts), "", 0, 0.0), file, ("te1",))
    monkeypatch.setattr("lineproof.session.router_watch.time.sleep", waited.append)
    watch = RouterWatch(router, 2.0, tuple)
    if was_understood := answers[0] == "+":
        watch.read()
    if answers[-1] == "+":
        assert watch.read_again().interfaces["te1"].tx_packets == 2
    else:
        with pytest.raises(TestbedError, match=busy) as caught:
            watch.read_again()
        assert ("fix 'commands.counters'" in str(caught.value)) is not was_understood
    assert waited == [0.5]


def test_json_needs_no_end_of_its_last_line_and_is_not_read_where_it_is_cut() -> None:
    file = described(commands={"uptime": described().commands.uptime})
    text = '{"system": {"up": [90500, 3]}}'
    assert generic(file, Scripted({"show uptime json": text})).read().uptime == 90.5
    for length in range(len(text)):
        with pytest.raises(TestbedError, match="'show uptime json' was not understood: "):
            generic(file, Scripted({"show uptime json": text[:length]})).read()


def test_a_posix_router_that_prints_json_is_asked_as_root_and_quoted() -> None:
    file, shell = described(channel="posix"), Scripted()
    shell.outputs["sudo -n show uptime json"] = '{"system": {"up": [90500]}}'
    shell.outputs["sudo -n show counters json"] = file.commands.counters.example
    assert make_router(file.shell, shell, ("eth1",), sudo=True, file=file).read().uptime == 90.5


def test_a_counter_that_is_missing_is_not_zero() -> None:
    file = with_examples("junos")
    text = file.commands.counters.example.replace("Output packets", "Sent packets")
    outputs = {"show interfaces ge-0/0/1 extensive": text, "show system uptime": file.commands.uptime.example}
    router = generic(file, Scripted(outputs), ("ge-0/0/1",))
    with pytest.raises(TestbedError, match="no 'tx_packets' was found for interface 'ge-0/0/1'"):
        router.read()


@pytest.mark.parametrize(
    ("text", "whole", "figure"),
    [
        ("1'234'567", 1234567, 1234567),
        ("18 446 744", 18446744, 18446744),
        ("2,5", None, 2.5),
        (".977431", None, 0.977431),  # VPP in its first second
        ("0,123", None, 0.123),
        ("1,2345", None, 1.2345),
        ("1 234,567", None, 1234.567),
        ("-1,000", None, -1000),
        *(
            (text, None, None)
            for text in ("12,34,567", "1,234,5", "1 23", "1,234 567", "1.234.567", "1.234,5", ",5", "5,")
        ),
    ],
)
def test_a_comma_groups_three_digits_or_is_a_decimal_one(text: str, whole: int | None, figure: float | None) -> None:
    for read, expected in ((count, whole), (number, figure)):
        if expected is None:
            with pytest.raises(TestbedError, match="expected a "):
                read("x", text)
        else:
            assert read("x", text) == expected


def test_blocks_are_of_one_interface_each() -> None:
    counters: dict[str, Any] = {
        "run": "show all",
        "block": r"^(?P<interface>\S+) is",
        "pattern": [r"in (?P<rx_packets>\d+)", r"out (?P<tx_packets>[\d,]+)"],
        "example": "eth1 is up\n in 1 out 2\neth10 is up\n in 3 out 4,000\n",
        "expected": {"interface": "eth10", "rx_packets": 3, "tx_packets": 4000},
    }
    file = described("shell: mybox", commands={"counters": counters})
    assert list(file.problems()) == []
    shell = Scripted({"show all": counters["example"]})
    found = generic(file, shell, ("eth1", "eth10")).read().interfaces
    assert [(each.rx_packets, each.tx_packets) for each in found.values()] == [(1, 2), (3, 4000)]
    assert shell.ran == ["show all"], "one command for all interfaces"
    with pytest.raises(TestbedError, match="no interface 'eth2'; it has eth1, eth10"):
        generic(file, shell, ("eth2",)).read()


def of_one_interface(*names: str, **keys: Any) -> RouterDescription:
    """Return a router that shows one interface by name; *names*: expressions beside those of the counters."""
    counters = {
        "run": "show {interface}",
        "pattern": [*names, r"in (?P<rx_packets>\d+)", r"out (?P<tx_packets>\d+)"],
        "example": "te1 is up\n in 1 out 2\n",
        "expected": {"interface": "te1", "rx_packets": 1, "tx_packets": 2},
    }
    file = described("shell: mybox", commands={"counters": {**counters, **keys}})
    assert list(file.problems()) == []
    return file


@pytest.mark.parametrize("answer", ["te10 is up", "te1.5 is up", "te1/2 is up", "xte1 is up", "busy"])
def test_an_answer_about_another_interface_gives_no_counts(answer: str) -> None:
    router = generic(of_one_interface("^{interface} is"), Scripted({"show te1": f"{answer}\n in 3 out 4\n"}), ("te1",))
    with pytest.raises(TestbedError, match=f"it does not name 'te1': '{answer}'"):
        router.read()


def test_an_expression_that_names_the_interface_finds_its_line_among_all() -> None:
    text, line = "te10: 3 4\nte1: 1 2\n", r"^{interface}: (?P<rx_packets>\d+) (?P<tx_packets>\d+)"
    file = of_one_interface(pattern=line, run="show all", example=text)
    found = generic(file, Scripted({"show all": text}), ("te1", "te10")).read().interfaces
    assert [(each.rx_packets, each.tx_packets) for each in found.values()] == [(1, 2), (3, 4)]


@pytest.mark.parametrize(("counts", "error"), [("in 3 out 4", True), ("in 0 out 0", False)])
def test_the_same_counts_of_two_interfaces_are_those_of_one(counts: str, error: bool) -> None:
    shell = Scripted({f"show {name}": f"it is up\n {counts}\n" for name in ("te1", "te10")})
    router = generic(of_one_interface(), shell, ("te1", "te10"))
    with pytest.raises(TestbedError, match="'show te10' shows the same") if error else nullcontext():
        assert len(router.read().interfaces) == 2


@pytest.mark.parametrize("channel", ["exec", "terminal"])
def test_a_router_without_single_commands_gets_the_hint_of_a_terminal(channel: str) -> None:
    version = {"run": "v", "pattern": "^is (?P<version>.+)", "example": "is 1", "expected": {"version": "1"}}
    more = {"terminal": {"prompt": "x#", "prompts": ["x#"]}} if channel == "terminal" else {}
    file = described("shell: mybox", commands={"version": version}, **more)
    with pytest.raises(TestbedError, match="exec is not supported") as caught:
        generic(file, Scripted({"v": "exec is not supported\n"}, status=1)).identify()
    hint = "expected the key 'terminal' in variables/shells/mybox.yaml"
    assert (hint in str(caught.value)) == (channel == "exec")


def test_load_and_temperature_are_read_under_load() -> None:
    queries = {
        "load": {"run": "l", "pattern": r"(?P<percent>\d+) %", "example": "1 %", "expected": {"percent": 1}},
        "temperature": {"run": "t", "pattern": r"(?P<celsius>\d+) C", "example": "1 C", "expected": {"celsius": 1}},
    }
    shell = Scripted({"l": "97 %\n", "t": "61 C\n"})
    router = generic(described("shell: mybox", commands=queries), shell)
    found = router.under_load(lambda: None)
    assert dict(found.condition) == {"load": "97 %", "temperature": "61 °C"} and not found.unread
    shell.outputs["t"] = "hot\n"
    odd = router.under_load(lambda: None)
    assert dict(odd.condition) == {"load": "97 %"} and list(odd.unread) == ["temperature"]


# -- changes -----------------------------------------------------------------------------------------------------------


def test_a_restart_is_seen_and_an_uptime_in_minutes_or_set_back_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    file, now = with_examples("ios"), [0.0]
    shell = Scripted()
    router = generic(described("shell: mybox", commands={"uptime": file.commands.uptime}), shell)
    monkeypatch.setattr("lineproof.session.router_watch.time.monotonic", lambda: now[0])
    watch = RouterWatch(router, 1.0, tuple, 60.0)
    for at in (0, 30, 59, 60, 119, 121):
        now[0] = at
        shell.outputs["show version"] = f"Router uptime is 1 day, {at // 60 + 5} minutes\n"
        watch.read()
    shell.outputs["show version"] = "Router uptime is 1 day, 1 minutes\n"
    now[0] = 150
    watch.read()
    shell.outputs["show version"] = "Router uptime is 0 minutes\n"
    now[0] = 180
    with pytest.raises(RouterRestarted):
        watch.read()
    assert watch.silence() == ""


# -- a file is checked when it is read, and docs/any-router.md walks through one

PAGE = (ROOT / "docs" / "any-router.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```yaml\n(# variables/shells/.*?)```", PAGE, re.DOTALL)
EXAMPLE, AT_A_TERMINAL = EXAMPLES


def read(folder: Path, text: str, name: str = "mybox") -> RouterDescription:
    path = folder / "variables" / "shells" / f"{name}.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return read_description(Layers(path.parent, PACKAGED_ROUTERS), name)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (("system.up[0]", "system.down"), "'commands.uptime.json_paths.milliseconds': finds nothing"),
        (("90.5", "90"), "'commands.uptime.expected.uptime': the example gives 90.5, not 90"),
        (("uptime: 90", "celsius: 90"), "'commands.uptime.expected.celsius': is no value"),
        (("milliseconds: ", "jiffies: "), "json_paths.jiffies': names 'jiffies'; expected one of: years, weeks"),
        (("    json_paths: {milliseconds: 'system.up[0]'}\n", "    pattern: '(up\\d'\n"), "position 0 (got '(up\\d')"),
        (("    json_paths: {milliseconds: 'system.up[0]'}\n", ""), "expected one of 'pattern' and 'json_paths'"),
        (
            ("    json_paths: {milliseconds: 'system.up[0]'}\n", "    pattern: 'x (?P<days>.)(a|aa)+$'\n    oops: 1\n"),
            "oops",
        ),
        (("'system.up[0]'", "'system..up[x'"), "is not a path"),
        (("run: show uptime json", 'run: "show\\nreload"'), "expected one command, in one line"),
        (("run: show uptime json", "run: show {interface}"), "'{interface}' is not known"),
        (("      tx_packets: 'ports[name={interface}].out.packets'\n", ""), "names no 'tx_packets'"),
        (("'^error:'", "'\"up\"|error'"), "taken for a refusal"),
        (("shell: mybox", "channel: terminal"), "'channel': is 'terminal'; expected"),
        (("shell: mybox", "channel: posix\nterminal: {prompt: 'a>', prompts: ['a>']}"), "'channel': is 'posix'"),
        (("shell: mybox", "shell: mybox\nsave: [write]"), "'save' and 'restore' go together"),
        (("shell: mybox", "shell: other"), "expected 'mybox'"),
        (("    expected: {uptime: 90.5}\n", ""), "'commands.uptime': is not tried"),
    ],
)
def test_a_description_is_checked_when_it_is_read(tmp_path: Path, change: tuple[str, str], says: str) -> None:
    assert change[0] in JSON
    with pytest.raises(ConfigError) as caught:
        read(tmp_path, JSON.replace(*change))
    assert says in str(caught.value) and "mybox.yaml" in str(caught.value)


def test_all_problems_of_a_description_are_told_each_with_its_line_and_a_misspelt_word_with_the_right_one(
    tmp_path: Path,
) -> None:
    wrong = (
        ("{peer_mac_dotted} arpa", "{peer_mac_doted} arpa"),
        ("value: 100", "value: 99"),
        ("(?P<value>{peer})", "(?P<valu>{peer})"),
        ("'^Address'", "x"),
    )
    text = AT_A_TERMINAL
    for right, misspelt in wrong:
        text = text.replace(right, misspelt, 1)
    with pytest.raises(ConfigError) as caught:
        read(tmp_path, text, "exampleterm")
    told = [caught.value, *caught.value.others]
    lines = text.splitlines()
    assert [lines[problem.line - 1].strip().partition(":")[0] for problem in told if problem.line] == [
        *("- do", "expected", "pattern", "without"),
    ]
    for problem, word in zip(told, ("peer_mac_dotted", "not 99.65.1.1", "'value'", "not understood"), strict=True):
        assert word in str(problem)


def test_a_description_has_the_keys_and_the_python_of_the_router_that_it_is_like(tmp_path: Path) -> None:
    version = {"run": "v", "pattern": "(?P<version>.+)", "example": "1", "expected": {"version": "1"}}
    text = yaml.safe_dump({"shell": "mybox", "like": "vyos", "commands": {"version": version}})
    file, linux = read(tmp_path, text), built_in("linux")
    assert (file.title, file.changes, file.commands.tables) == ("VyOS", linux.changes, linux.commands.tables)
    assert file.commands.version is not None and file.commands.version.run == "v"
    assert type(make_router("mybox", Scripted(), file=file)) is BUILT_IN["linux"]
    with pytest.raises(ConfigError, match=r"mybox.yaml:\d: 'like': is 'vios'; did you mean 'ios'\?"):
        read(tmp_path, text.replace("vyos", "vios"))
    with pytest.raises(ConfigError, match=r"'commands\.version\.expected\.version': the example gives 1, not 2"):
        read(tmp_path, text.replace("version: '1'", "version: '2'"))


def test_a_router_that_has_python_is_not_described_by_a_project(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="'linux' has Python of its own"):
        read(tmp_path, JSON.replace("mybox", "linux"), "linux")


def test_a_version_that_yaml_takes_for_a_number_is_to_be_quoted(tmp_path: Path) -> None:
    text = "shell: mybox\ncommands:\n  version: {run: v, pattern: '(?P<version>.+)', example: '8.180', expected: %s}\n"
    with pytest.raises(ConfigError, match=r"gives 8\.180, not 8\.18 \(a text: write it in quotes\)"):
        read(tmp_path, text % "{version: 8.180}")
    read(tmp_path, text % "{version: '8.180'}")


def test_the_example_of_the_page_is_right_and_its_message_the_real_one(tmp_path: Path) -> None:
    read(tmp_path, EXAMPLE, "exampleos")
    read(tmp_path, AT_A_TERMINAL, "exampleterm")
    with pytest.raises(ConfigError) as caught:
        read(tmp_path, EXAMPLE.replace("273900", "273901"), "exampleos")
    (shown,) = re.findall(r"^variables/shells/exampleos\.yaml:.*", PAGE, re.MULTILINE)
    assert str(caught.value) == f"{tmp_path}/{shown}"


@pytest.mark.parametrize("name", [*BUILT_IN, "junos", "routeros"])
def test_what_no_change_sets_is_named_and_what_an_undo_may_take_from_others(name: str) -> None:
    file = with_examples(name)
    # RouterOS refuses an address that is there
    expected = ["the change that sets a side's address has no 'look'"] if name == "routeros" else []
    assert [text.partition(";")[0] for text in file.warnings()] == expected
    assert list(described().warnings()) == []
    lines = [re.sub(r"\S*\{(?:network|peer_mac)\w*\}", "", line) for change in file.changes for line in change.do]
    told = [*described(changes=[{"do": lines, "undo": "x"}]).warnings()]
    assert [re.findall("address|neighbour|route|no change|no 'look'", text)[:2] for text in told] == [
        *(["address", "no 'look'"], ["no change", "neighbour"], ["no change", "route"]),
    ]
    silent = described(refused=[], refusals=[])
    assert [text.partition(";")[0] for text in silent.warnings()] == ["there is no 'refused'"]
    *_, last = described(changes=[{"do": "x"}], restore=["x"]).warnings()
    assert last.startswith("'restore' has no 'look'")


SPOILT = {"pattern", "json_paths", "block", "none", "prompt", "pager", "refused", "gone", "lacking", "ignore"}
IGNORING = r"""
shell: ignoring
channel: posix
refusals: [no such device, it is not supported]
gone: [no such]
ignore: '^\*+\n'
commands:
  version: {run: v, pattern: '\A(?P<version>\d)', example: "***\n1", expected: {version: '1'}}
  counters:
    run: show
    block: '^(?P<interface>\S+):'
    pattern: ['in (?P<rx_packets>\d+)', 'out (?P<tx_packets>\d+)']
    example: "te1: in 1 out 2\nte2: in 3 out 4"
    expected: {interface: te2, rx_packets: 3, tx_packets: 4}
mpls: {lacking: not supported, changes: [{for: router, do: a, undo: b}]}
"""


def spoilt(data: Any, key: str = "", place: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield *data* with each of its expressions and paths, in turn, finding nothing, and where it stands."""
    if isinstance(data, str):
        if key in SPOILT:
            yield place, f"nothing.{data}" if key == "json_paths" else f"(?!)(?:{data})"
        return
    for name, value in data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ():
        for where, other in spoilt(value, key if key in SPOILT else str(name), (*place, str(name))):
            yield where, {**data, name: other} if isinstance(data, dict) else [*data[:name], other, *data[name + 1 :]]


@pytest.mark.parametrize("name", ["ios", "junos", "routeros", "mybox", "exampleos", "exampleterm", "ignoring"])
def test_each_expression_of_a_description_is_proven_by_an_example(name: str, tmp_path: Path) -> None:
    texts = {"mybox": JSON, "exampleos": EXAMPLE, "exampleterm": AT_A_TERMINAL, "ignoring": IGNORING}
    if name in texts:
        read(tmp_path, texts[name], name)
    data = parse_yaml(texts[name], tmp_path)[0] if name in texts else data_with_examples(name)
    descriptions = list(spoilt(data))
    for place, data in descriptions:
        try:
            problems = [*RouterDescription.model_validate(data).problems()]
        except ValueError as error:
            problems = [(place, str(error))]
        assert problems, f"{place} may find nothing"
    assert len(descriptions) > 3


@pytest.mark.parametrize(
    ("keys", "says"),
    [
        ({}, ""),
        ({"prompts": []}, "'prompt' and 'prompts', .*, go together"),
        ({"pagers": []}, "'pager' and 'pagers', .*, go together"),
        ({"pager": None}, "'pager' and 'pagers', .*, go together"),
        ({"pagers": ["--more--"]}, "'pager' does not match all of '--more--'"),
        ({"pager": ".*"}, "'pager' matches an empty line"),
        ({"pager": ".*(More|>).*"}, "'pager' matches '->'"),
        ({"prompt": ".*"}, "'prompt' matches an empty line"),
        ({"prompt": ".*[>M].*"}, "'prompt' matches ' --More-- '"),
        ({"prompt": "b>"}, "'prompt' does not match all of '->'"),
        ({"prompt": ".*(>|up, .*)"}, "its line 'te1 is up, 10 More' is taken for a prompt"),
        ({"pager": ".*More.*"}, "its line 'te1 is up, 10 More' is taken for a pager"),
    ],
)
def test_a_prompt_and_a_pager_match_their_examples_and_nothing_else(keys: dict[str, Any], says: str) -> None:
    terminal = {"prompt": ".*>", "prompts": ["->"], "pager": ".*--More--.*", "pagers": [" --More-- "], **keys}
    query = {
        "run": "v",
        "pattern": r"(?P<version>\d+)",
        "example": "te1 is up, 10 More\n",
        "expected": {"version": "1"},
    }
    data = {"shell": "x", "terminal": terminal, "commands": {"version": query}}
    with pytest.raises(ValueError, match=says) if says else nullcontext():
        if problems := [*RouterDescription.model_validate(data).problems()]:
            raise ValueError(*problems)


@pytest.mark.parametrize("word", [*SIDE_WORDS, *COUNTERS, *UPTIME_UNITS])
def test_every_word_is_explained(word: str) -> None:
    assert f"{{{word}}}" in PAGE if word in SIDE_WORDS else f"`{word}`" in PAGE
