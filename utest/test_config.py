"""Files of a project are read within limits. What is wrong in one, and how it is said, is in the golden messages."""

from __future__ import annotations

import importlib
import math
import pkgutil
import re
import resource
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import ValidationError

import lineproof
from lineproof.config import Config, explain_error, load_config, read_yaml
from lineproof.core.goal import Goal
from lineproof.errors import ConfigError
from lineproof.platforms import named_file
from support.paths import ROOT


class Inner(Config):
    speed: int


class Outer(Config):
    name: str
    inner: Inner


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "box.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_on_times_and_octal_numbers_stay_text(tmp_path: Path):
    data, _ = read_yaml(write(tmp_path, "a: on\nb: 12:30:45\nc: 0x10\nd: 2026-11-21\ne: yes\nf: 1e3\ng: 010\n"))
    assert data == {"a": "on", "b": "12:30:45", "c": "0x10", "d": "2026-11-21", "e": True, "f": 1000.0, "g": "010"}


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
    long = f"{inner}{{speed: {'9' * 5000}}}"
    for text in (long, f"{inner}{{speed: 'SECRET'}}\n", "SECRET: 1\n", f"{inner}SECRET\n", "? SECRET\n: 1\n" * 2):
        with pytest.raises(ConfigError) as caught:
            load_config(write(tmp_path, text.replace("SECRET", "x\u202e" * 900)), Outer)
        said = str(caught.value).removeprefix(str(tmp_path))
        assert len(said) < 1000 and said.isprintable()


def test_all_that_is_wrong_with_a_file_is_known_each_with_its_line(tmp_path: Path):
    text = "name: 1\nextra: 2\ninner:\n  sped: 3\nother: {}\n"
    with pytest.raises(ConfigError) as caught:
        load_config(write(tmp_path, text), Outer)
    told = (caught.value, *caught.value.others)
    # a misspelt key is not missing as well
    assert sorted(problem.line or 0 for problem in told) == [1, 2, 4, 5]
    assert all(problem.path == tmp_path / "box.yaml" for problem in told)


ODD: tuple[object, ...] = (
    *(None, True, -1, 1.5, math.inf, "1" * 5000, "", "x", "nan", "x y" * 3000, "'", [], [[]], ["a"] * 300, [None], {}),
    *({1: 2}, {"a": None}, {"a": []}, {"a": [None]}, {"a": 1}, {"kind": "x"}, {"x y": {"z": 1}}),
)


def models(parent: type[Config] = Config) -> Iterator[type[Config]]:
    for model in parent.__subclasses__():
        yield from (model, *models(model))


def test_whatever_stands_in_a_file_is_refused_in_plain_words():
    """Try each key of every model; what only another process imports has none."""
    for module in pkgutil.walk_packages(lineproof.__path__, "lineproof."):
        if not re.search(r"\.client|__main__|lab_holder", module.name):
            importlib.import_module(module.name)
    kinds = set[str]()
    keys = {(model, field.alias or name) for model in models() for name, field in model.model_fields.items()}
    for (model, key), value in ((key, value) for key in keys for value in ODD):
        try:
            model.model_validate({key: value})
        except ValidationError as error:
            for problem in error.errors():
                kinds.add(problem["type"])
                said = explain_error(problem, key, model)
                assert not re.search("Input|[Ss]hould|valid |validation|parse | parts| octets", said), said
    assert len(kinds) > 30


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
    page = (ROOT / "docs" / "methodology.md").read_text(encoding="utf-8")
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
