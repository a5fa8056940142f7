from __future__ import annotations

import re
import resource
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import pytest
from pydantic import Field, model_validator

from lineproof.config import Config, load_config, read_yaml
from lineproof.core.goal import Goal
from lineproof.errors import ConfigError
from lineproof.platforms import named_file, read_platform
from lineproof.power.meter import PowerSettings
from support.paths import ROOT


class Inner(Config):
    speed: Annotated[int, Field(ge=1)]
    least: int = 1

    @model_validator(mode="after")
    def _check_together(self) -> Inner:
        if self.speed < self.least:
            raise ValueError("speed must be at least least")
        return self


class Outer(Config):
    name: str
    inner: Inner
    many: Mapping[str, Inner] = Field(default_factory=dict)
    ports: tuple[int, ...] = ()
    share: float = 0.5
    either: float | str = ""
    more: Annotated[float, Field(gt=0)] = 1.0
    few: Annotated[int, Field(le=8)] = 1
    pair: Annotated[tuple[str, ...], Field(min_length=2, max_length=3)] = ("a", "b")
    word: Annotated[str, Field(min_length=1, max_length=3, pattern="^[a-c]*$")] = "a"
    real: Annotated[bool, Field(strict=True)] = False


class Powered(Config):
    power: PowerSettings


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "box.yaml"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("name: a\ninner: {sped: 3}\n", 2, "unknown key 'inner.sped'; did you mean 'speed'?"),
        ("nmae: a\ninner: {speed: 3}\n", 1, "unknown key 'nmae'; did you mean 'name'?"),
        ("inner: {speed: 3}\n", 1, "the key 'name' is missing"),
        ("name: a\ninner:\n  speed: 0\n", 3, "'inner.speed': should be greater than or equal to 1 (got 0)"),
        ("name: a\ninner: {speed: 3}\nmany:\n  x: {spede: 1, speed: 1}\n", 4, "did you mean 'speed'?"),
        ("name: a\nname: b\n", 2, "duplicate key 'name', first on line 1"),
        ("name: [a\n", 1, "not YAML: a '[' that is not closed with ']'"),
        ("name: a\ninner: {speed: 1\nmany: {}\n", 2, "not YAML: a '{' that is not closed with '}'"),
        ("name: a\ninner: {speed: 1}}\n", 2, "not YAML: a '}' without its '{'"),
        ("name: [1]]\n", 1, "not YAML: a ']' without its '['"),
        ("name: 'a\ninner: {speed: 1}\nx: 1\n", 1, "not YAML: a quote that opens here is not closed"),
        ("name: 'it's'\n", 1, "not YAML: text after a closing quote; put all of it in one pair of quotes"),
        ("inner:\n\tspeed: 1\n", 2, "not YAML: a tab; YAML wants spaces"),
        ("inner:\n  speed: 1\n least: 2\n", 3, "not YAML: its indentation does not fit the lines above"),
        ("name: see: this\n", 1, "not YAML: a ':' where none may stand; put text with ': ' in quotes"),
        ("name: a\n  inner: b\n", 2, "or indent the line as its neighbours"),
        ("name: a\ninner\nx: 1\n", 2, "not YAML: a key without ': ' after it; put a space after the ':'"),
        ("name: a\n- b\n", 2, "not YAML: a list ('- …') and keys ('name: …') do not mix; check the indentation"),
        ("name: - b\n", 1, "not YAML: a list ('- …') begins on a line of its own"),
        ("name: @b\n", 1, "not YAML: text that begins with a special character; put it in quotes"),
        ("name:\ninner: {speed: 3}\n", 1, "'name': is empty; expected a value"),
        ("name: 24.10\ninner: {speed: 3}\n", 1, "'name': expected text; put it in quotes (got 24.1)"),
        ("name: [a]\ninner: {speed: 3}\n", 1, "'name': should be a valid string"),
        ("name: a\ninner: 3\n", 2, "'inner': expected keys below it, as 'speed: value'; known here: speed, least"),
        ("name: a\ninner: {speed: 3}\nmany: 3\n", 3, "'many': expected keys below it"),
        (
            "name: a\ninner: {speed: 1.5}\n",
            2,
            "'inner.speed': should be a valid integer",
        ),
        ("name: a\ninner: {speed: 3}\nports: 0, 1\n", 3, "'ports': expected a list, as [0, 1] (got '0, 1')"),
        ("name: a\ninner: {speed: 3}\nports: 0\n", 3, "'ports': expected a list, as [0] (got 0)"),
        # true is no number, wherever a number may stand
        ("name: a\ninner: {speed: true}\n", 2, "'inner.speed': should be a valid integer"),
        ("name: a\ninner: {speed: 3}\nmany: {x: {speed: true}}\n", 3, "'many.x.speed': should be a valid integer"),
        ("name: a\ninner: {speed: 3}\nports: [1, true]\n", 3, "'ports.1': should be a valid integer"),
        ("name: a\ninner: {speed: 3}\nshare: true\n", 3, "'share': should be a valid number"),
        ("name: a\ninner: {speed: 3}\neither: true\n", 3, "'either"),
        ("name: a\ninner: {speed: 3}\nshare: 1 s\n", 3, "unable to parse string as a number (got '1 s')"),
        ("name: a\ninner: {speed: 3}\nreal: on\n", 3, "'real': should be a valid boolean"),
        ("name: a\ninner: {speed: 3}\nmore: -1\n", 3, "'more': should be greater than 0 (got -1)"),
        ("name: a\ninner: {speed: 3}\nmore: nan\n", 3, "'more': should be a finite number (got 'nan')"),
        ("name: a\ninner: {speed: 3}\nfew: 9\n", 3, "'few': should be less than or equal to 8 (got 9)"),
        ("name: a\ninner: {speed: 3}\npair: [a]\n", 3, "'pair': should have at least 2 items after validation, not 1"),
        (
            "name: a\ninner: {speed: 3}\npair: [a, b, c, d]\n",
            3,
            "'pair': should have at most 3 items after validation, not 4",
        ),
        ("name: a\ninner: {speed: 3}\nword: ''\n", 3, "'word': should have at least 1 character (got '')"),
        ("name: a\ninner: {speed: 3}\nword: abcd\n", 3, "'word': should have at most 3 characters (got 'abcd')"),
        ("name: a\ninner: {speed: 3}\nword: x\n", 3, "'word': should match pattern '^[a-c]*$' (got 'x')"),
        ("- 1\n", 1, "must be a mapping"),
        ("name: !!python/object:os.system x\n", 1, "a tag ('!…')"),
        ("name: a\ninner: {speed: !!bool maybe}\n", 2, "a tag ('!…')"),
        ("name: a\n<<: {inner: 1}\n", 2, "unknown key '<<'"),
        ("name: a\ninner: {speed: " + "9" * 5000 + "}", 2, "is no number; put text in quotes"),
        ("name: a\ninner: {speed: 1e999}", 2, "should be a finite number"),
        ("name: a\ninner: {speed: ٣}\n", 2, "'inner.speed': should be a valid integer"),
        ('name: "a\\0"\n', 1, "the control character U+0000"),
        ('name: "\\ud800"\n', 1, "the control character U+D800"),
        ("name: a\n# \x07\n", 2, "the control character U+0007"),
        ("name: a\n---\nname: b\n", 2, "expected a single document"),
        ("name: a\ninner:\n  speed: 1\n  least: 2\n", 3, "speed must be at least least"),
        # the kind of a part is no part of its keys
        ("power: {kind: comand, run: x}\n", 1, "'power': unknown kind; did you mean 'command'? known: "),
        ("power: {run: x}\n", 1, "the key 'power.kind' is missing"),
        ("power:\n  kind: command\n  run: x\n", 1, "the key 'power.accuracy' is missing"),
        ("power:\n  kind: command\n  accuracy: 1\n", 1, "the key 'power.run' is missing"),
        ("power:\n  kind: csv\n  accuracy: 1\n  fil: x\n", 4, "unknown key 'power.fil'; did you mean 'file'?"),
        ("power:\n  kind: csv\n  accuracy: 1 %\n  file: x\n", 3, "'power.accuracy': should be a valid number"),
    ],
)
def test_an_error_names_file_line_and_fix(tmp_path: Path, text: str, line: int, says: str):
    path = write(tmp_path, text)
    with pytest.raises(ConfigError) as caught:
        load_config(path, Powered if text.startswith("power:") else Outer)
    assert says in str(caught.value) and str(caught.value).startswith(f"{path}:{line}: ")


def test_words_times_and_octal_numbers_stay_text(tmp_path: Path):
    data, _ = read_yaml(write(tmp_path, "a: on\nb: 12:30:45\nc: 0x10\nd: 2026-11-21\ne: yes\nf: 1e3\ng: 010\n"))
    assert data == {"a": "on", "b": "12:30:45", "c": "0x10", "d": "2026-11-21", "e": "yes", "f": 1000.0, "g": "010"}


def test_a_byte_order_mark_is_no_part_of_the_file(tmp_path: Path):
    path = tmp_path / "box.yaml"
    path.write_bytes(b"\xef\xbb\xbfname: a\n")
    assert read_yaml(path)[0] == {"name": "a"}
    path.write_bytes("name: a\n".encode("utf-16"))
    with pytest.raises(ConfigError, match=r"is not UTF-8 text \(byte 0\); save it as UTF-8"):
        read_yaml(path)


def test_an_alias_counts_as_what_it_stands_for(tmp_path: Path):
    data, lines = read_yaml(write(tmp_path, "a: &a {b: 1}\nc: [*a, *a]\n"))
    assert data == {"a": {"b": 1}, "c": [{"b": 1}, {"b": 1}]}
    assert lines[("c", "1", "b")] == 1


NESTED = "\n".join(
    f"x{depth}: &x{depth} [{', '.join(['x' if not depth else f'*x{depth - 1}'] * 9)}]" for depth in range(9)
)
"""Aliases of aliases: 500 bytes that stand for 9⁹ values."""


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (NESTED, "has more than 100000 values, aliases counted"),
        ("name: " + "[" * 100_000, "has values too deep in each other"),
        ("name: &a [*a]\n", "an alias (*…) within what it stands for"),
        ("# " + "x" * 300_000, "has more than 256 KiB"),
    ],
)
def test_a_file_of_a_run_of_somebody_else_takes_no_time_and_no_memory(tmp_path: Path, text: str, says: str):
    began, before = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(ConfigError, match=re.escape(says)):
        read_yaml(write(tmp_path, text))
    assert time.process_time() - began < 5
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 500 << 10


def test_of_what_was_read_a_message_shows_a_part(tmp_path: Path):
    inner = "name: a\ninner: "
    for text in (f"{inner}{{speed: 'SECRET'}}\n", "SECRET: 1\n", f"{inner}SECRET\n", "? SECRET\n: 1\n" * 2):
        with pytest.raises(ConfigError) as caught:
            load_config(write(tmp_path, text.replace("SECRET", "x\u202e" * 900)), Outer)
        said = str(caught.value).removeprefix(str(tmp_path))
        assert len(said) < 1000 and said.isprintable()


def test_missing_and_empty_files_are_refused(tmp_path: Path):
    with pytest.raises(ConfigError, match="cannot be read"):
        load_config(tmp_path / "none.yaml", Outer)
    with pytest.raises(ConfigError, match="is empty"):
        load_config(write(tmp_path, ""), Outer)


def test_a_file_of_another_ending_and_a_name_with_the_ending_are_explained(tmp_path: Path):
    for name in ("lab.yml", "rack.yaml"):
        (tmp_path / name).write_text("")
    for name in ("lab", "lab.yml"):
        with pytest.raises(ConfigError, match=r"there is lab\.yml; its name must end in \.yaml; known"):
            named_file(tmp_path, name, "testbed")
    for name in ("rack.yaml", "rack.yml"):
        with pytest.raises(ConfigError, match=r"no testbed '.*' here; did you mean 'rack'\?"):
            named_file(tmp_path, name, "testbed")


def test_the_page_of_goal_files_has_every_key_with_its_default():
    page = (ROOT / "docs" / "goals.md").read_text(encoding="utf-8")
    rows = {
        row[1].strip("` "): row for line in page.splitlines() if (row := line.split("|"))[0] == "" and len(row) == 6
    }
    documented = {key: row[3].strip(" `") for key, row in rows.items() if key in Goal.model_fields}
    assert set(documented) == set(Goal.model_fields)
    for key, field in Goal.model_fields.items():
        if field.is_required():
            assert documented[key] == "needed", key
        elif field.default not in (None, {}, ()):
            assert float(documented[key]) == field.default, key


@pytest.mark.parametrize(
    ("shell", "says"),
    [
        ("none", "'10' is not a link speed; expected for example '10 Gbps'"),
        ("linx", "'software.a.shell': should be 'vpp', 'linux', 'freebsd', 'generic' or 'none' (got 'linx')"),
    ],
)
def test_a_wrong_key_of_a_platform_says_how_it_is_written(tmp_path: Path, shell: str, says: str) -> None:
    speed = "10" if shell == "none" else "10 Gbps"
    software = f"software: {{a: {{shell: {shell}, version: '1', interfaces: [x, y]}}}}"
    (tmp_path / "box.yaml").write_text(
        f"platform: box\ndescription: x\nports: {{a: {speed}, b: {speed}}}\n{software}\n"
    )
    with pytest.raises(ConfigError) as caught:
        read_platform(tmp_path, "box")
    assert says in str(caught.value)
