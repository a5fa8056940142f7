"""What is wrong with a value of a file is said in this project's words, whatever is wrong with whichever key."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

import pytest
from pydantic import BaseModel, Field, ValidationError

import lineproof
import lineproof_bench
from lineproof.config import Config, load_config, value_problem
from lineproof.errors import ConfigError
from lineproof.platforms import read_platform

WRONG: tuple[Any, ...] = (
    *(None, True, 0, -1, 1, -(10**17), 10**17, 1.5, -0.5, 0.5, "nan", "inf", "", " ", "a", "-", "x" * 5000, "1.5"),
    *("2026-13-45", "2026-01-01T10:00:00", [], [1], ["a"], [None], [{}], [[1]], ["a", "b"], list(range(1500))),
    *({}, {"a": 1}, {"kind": "x"}, {"": ""}, {str(number): {} for number in range(1500)}),
)
HANDLED = {"extra_forbidden", "missing", "union_tag_not_found"}
"""Kinds that say which key is meant, and nothing of its value."""

OWN = {"value_error", "assertion_error"}
"""Those whose words are written where the model is."""


def models() -> list[type[BaseModel]]:
    for package in (lineproof, lineproof_bench):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not module.name.endswith("__main__"):
                importlib.import_module(module.name)

    def below(model: type[BaseModel]) -> Iterator[type[BaseModel]]:
        for each in model.__subclasses__():
            yield each
            yield from below(each)

    return sorted(
        {each for each in below(BaseModel) if each.__module__.partition(".")[0].startswith("lineproof")}, key=str
    )


def test_no_value_of_any_key_is_answered_with_the_validators_words() -> None:
    seen, bare = set[str](), set[str]()
    for model in models():
        for name, field in model.model_fields.items():
            key = field.alias or name
            for value in WRONG:
                try:
                    model.model_validate({key: value})
                except ValidationError as caught:
                    for error in caught.errors():
                        kind = error["type"]
                        if error["loc"][:1] != (key,) or kind in HANDLED:
                            continue
                        seen.add(kind)
                        if kind not in OWN and value_problem(error) == error["msg"]:
                            bare.add(f"{model.__name__}.{key}: {kind}: {error['msg'][:200]}")
    assert not bare
    assert {"too_short", "literal_error", "greater_than", "finite_number", "string_pattern_mismatch"} < seen


def truths(annotation: Any) -> Iterator[Any]:
    """Yield values of the shape of *annotation* with ``True`` where it has a number; none where it takes a bool."""
    arguments = [argument for argument in get_args(annotation) if argument is not Ellipsis]
    origin = get_origin(annotation)
    if annotation in (int, float):
        yield True
    elif origin is Annotated:
        yield from truths(arguments[0])
    elif origin in (Union, UnionType):
        if bool not in arguments:
            for argument in arguments:
                yield from truths(argument)
    elif isinstance(origin, type) and issubclass(origin, Mapping):
        yield from ({"a": value} for value in truths(arguments[1]))
    elif isinstance(origin, type) and issubclass(origin, Iterable):
        yield from ([value] for value in truths(arguments[0]))


def test_true_is_no_number_of_any_key() -> None:
    numbers = 0
    for model in models():
        for name, field in model.model_fields.items():
            key = field.alias or name
            for value in truths(field.annotation):
                numbers += 1
                with pytest.raises(ValidationError) as caught:
                    model.model_validate({key: value})
                assert any(error["loc"][:1] == (key,) for error in caught.value.errors()), f"{model}.{key}: {value}"
    assert numbers > 200


class Values(Config):
    more: Annotated[float, Field(gt=0)] = 1.0
    least: Annotated[int, Field(ge=1, le=8)] = 1
    pair: Annotated[tuple[str, ...], Field(min_length=2, max_length=3)] = ("a", "b")
    word: Annotated[str, Field(min_length=1, max_length=3, pattern="^[a-c]*$")] = "a"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("more: -1", "'more': expected more than 0 (got -1)"),
        ("more: nan", "'more': expected a number, and no infinite one (got 'nan')"),
        ("least: 9", "'least': expected at most 8 (got 9)"),
        ("pair: [a]", "'pair': expected at least 2 values, and there is 1"),
        ("pair: []", "'pair': expected at least 2 values, and there are none"),
        ("pair: [a, b, c, d]", "'pair': expected at most 3 values"),
        ("word: ''", "'word': expected at least 1 character (got '')"),
        ("word: abcd", "'word': expected at most 3 characters (got 'abcd')"),
        ("word: x", "'word': expected text of the form ^[a-c]*$ (got 'x')"),
    ],
)
def test_what_is_expected_is_said(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "x.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        load_config(path, Values)
    assert str(caught.value) == f"{path}:1: {says}"


@pytest.mark.parametrize(
    ("shell", "says"),
    [
        ("none", "'10' is not a link speed; expected for example '10 Gbps'"),
        ("junos", "'software.a.shell': expected 'shell: generic' and 'commands: junos', a file of variables/shells"),
        ("linx", "'software.a.shell': unknown shell 'linx'; did you mean 'linux'? known: vpp, linux, freebsd, generic"),
        ("eos", "known: vpp, linux, freebsd, generic, none; a router that a file of variables/shells describes"),
    ],
)
def test_a_wrong_key_of_a_platform_says_how_it_is_written(tmp_path: Path, shell: str, says: str) -> None:
    speed = "10" if shell == "none" else "10 Gbps"
    software = f"software: {{a: {{shell: {shell}, version: '1', interfaces: [x, y]}}}}"
    (tmp_path / "box.yaml").write_text(f"platform: box\ndescription: x\nport_speed: {speed}\n{software}\n")
    with pytest.raises(ConfigError) as caught:
        read_platform(tmp_path, "box")
    assert says in str(caught.value)
