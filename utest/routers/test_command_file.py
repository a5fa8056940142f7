"""A file that describes a router is checked when it is read."""

from __future__ import annotations

from pathlib import Path

import pytest

from lineproof.errors import ConfigError
from lineproof.project import Layers, packaged_variables
from lineproof.routers.command_file import read_command_file
from support.described_router import JSON


def written(folder: Path, text: str) -> Layers:
    (folder / "shells").mkdir(exist_ok=True)
    (folder / "shells" / "mybox.yaml").write_text(text, encoding="utf-8")
    return Layers(folder / "shells", packaged_variables() / "shells")


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
        read_command_file(written(tmp_path, JSON.replace(*change)), "mybox")
    assert says in str(caught.value) and "mybox.yaml" in str(caught.value)


def test_a_prompt_that_is_in_an_output_is_found(tmp_path: Path) -> None:
    terminal = "channel: terminal\nterminal: {prompt: '.*', prompts: ['a>']}\n"
    with pytest.raises(ConfigError, match="matches an empty line"):
        read_command_file(written(tmp_path, JSON + terminal), "mybox")
    with pytest.raises(ConfigError, match="is taken for a prompt"):
        read_command_file(written(tmp_path, JSON + terminal.replace(".*", ".+")), "mybox")
    with pytest.raises(ConfigError, match="does not match all of 'a>'"):
        read_command_file(written(tmp_path, JSON + terminal.replace(".*", "b>")), "mybox")


def test_a_version_that_yaml_takes_for_a_number_is_to_be_quoted(tmp_path: Path) -> None:
    text = "shell: mybox\ncommands:\n  version: {run: v, pattern: '(?P<version>.+)', example: '8.180', expected: %s}\n"
    with pytest.raises(ConfigError, match=r"gives version 8\.180; expected 8\.18 \(a text: write it in quotes\)"):
        read_command_file(written(tmp_path, text % "{version: 8.180}"), "mybox")
    read_command_file(written(tmp_path, text % "{version: '8.180'}"), "mybox")
