"""A file that describes a router is checked when it is read, and docs/any-router.md walks through one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lineproof.errors import ConfigError
from lineproof.project import Layers, packaged_variables
from lineproof.routers.command_file import SIDE_WORDS, read_command_file
from lineproof.routers.queries import COUNTERS, UPTIME_UNITS
from support.described_router import JSON
from support.paths import ROOT

PAGE = (ROOT / "docs" / "any-router.md").read_text(encoding="utf-8")
(EXAMPLE,) = (block for block in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL) if "shell: exampleos" in block)


def read(folder: Path, text: str, name: str = "mybox") -> None:
    path = folder / "variables" / "shells" / f"{name}.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    read_command_file(Layers(path.parent, packaged_variables() / "shells"), name)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (("system.up[0]", "system.down"), "'commands.uptime': in its example"),
        (("90.5", "90"), "its example gives uptime 90.5; expected 90"),
        (("uptime: 90", "celsius: 90"), "'expected' names 'celsius'"),
        (("milliseconds: ", "jiffies: "), "json_paths names 'jiffies'; expected of years, weeks"),
        (("    json_paths: {milliseconds: 'system.up[0]'}\n", "    pattern: '(up'\n"), "is not a regular expression"),
        (("    json_paths: {milliseconds: 'system.up[0]'}\n", ""), "expected one of 'pattern' and 'json_paths'"),
        (
            ("    json_paths: {milliseconds: 'system.up[0]'}\n", "    pattern: 'x (?P<days>.)(a|aa)+$'\n    oops: 1\n"),
            "oops",
        ),
        (("'system.up[0]'", "'system..up[x'"), "is not a path"),
        (("run: show uptime json", 'run: "show\\nreload"'), "expected one command, in one line"),
        (("run: show uptime json", "run: show {interface}"), "'{interface}' is not known"),
        (("      tx_packets: 'ports[name={interface}].out.packets'\n", ""), "names no 'tx_packets'"),
        (("[passing_no_route]", "[rx_drops]"), "'absent_is_zero' names 'rx_drops'"),
        (("'^error:'", "'\"up\"'"), "taken for a refusal"),
        (("shell: mybox", "shell: mybox\nchannel: terminal"), "'channel: terminal' and the key 'terminal'"),
        (("shell: mybox", "shell: mybox\nsave: [write]"), "'save' and 'restore' go together"),
        (("shell: mybox", "shell: mybox\nconfigure: [{do: [x]}]"), "no 'undo'"),
        (("shell: mybox", "shell: mybox\nconfigure: [{do: ['x {adress}'], undo: [y]}]"), "'{adress}' is not known"),
        (("shell: mybox", "shell: other"), "expected 'mybox'"),
    ],
)
def test_a_description_is_checked_when_it_is_read(tmp_path: Path, change: tuple[str, str], says: str) -> None:
    assert change[0] in JSON
    with pytest.raises(ConfigError) as caught:
        read(tmp_path, JSON.replace(*change))
    assert says in str(caught.value) and "mybox.yaml" in str(caught.value)


def test_a_prompt_that_is_in_an_output_is_found(tmp_path: Path) -> None:
    terminal = "channel: terminal\nterminal: {prompt: '.*', prompts: ['a>']}\n"
    with pytest.raises(ConfigError, match="matches an empty line"):
        read(tmp_path, JSON + terminal)
    with pytest.raises(ConfigError, match="is taken for a prompt"):
        read(tmp_path, JSON + terminal.replace(".*", ".+"))
    with pytest.raises(ConfigError, match="does not match all of 'a>'"):
        read(tmp_path, JSON + terminal.replace(".*", "b>"))


def test_a_version_that_yaml_takes_for_a_number_is_to_be_quoted(tmp_path: Path) -> None:
    text = "shell: mybox\ncommands:\n  version: {run: v, pattern: '(?P<version>.+)', example: '8.180', expected: %s}\n"
    with pytest.raises(ConfigError, match=r"gives version 8\.180; expected 8\.18 \(a text: write it in quotes\)"):
        read(tmp_path, text % "{version: 8.180}")
    read(tmp_path, text % "{version: '8.180'}")


def test_the_example_of_the_page_is_right_and_its_message_the_real_one(tmp_path: Path) -> None:
    read(tmp_path, EXAMPLE, "exampleos")
    with pytest.raises(ConfigError) as caught:
        read(tmp_path, EXAMPLE.replace("273900", "273901"), "exampleos")
    (shown,) = re.findall(r"^variables/shells/exampleos\.yaml:.*", PAGE, re.MULTILINE)
    assert str(caught.value) == f"{tmp_path}/{shown}"


@pytest.mark.parametrize("word", [*SIDE_WORDS, *COUNTERS, *UPTIME_UNITS])
def test_every_word_is_explained(word: str) -> None:
    assert f"{{{word}}}" in PAGE if word in SIDE_WORDS else f"`{word}`" in PAGE
