"""Commands with words in braces, and values in what they print: groups of an expression, paths in JSON."""

from __future__ import annotations

import contextlib
import functools
import math
import re
import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import fields
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BeforeValidator, Field, TypeAdapter

from .config import Location, did_you_mean, read_yaml
from .errors import TestbedError
from .json_text import parse_json
from .project import PACKAGED_ROUTERS
from .visible import shortened

MOST_OUTPUT = 1 << 20
"""Characters of an output that are searched; the longest answers of a router have some 100 kB."""

_STEP = re.compile(r"\[(?P<key>[^\]=]+)=(?P<value>[^\]]*)\]|\[(?P<index>\d{1,6})\]|\.?(?P<name>[^.\[\]]+)")


def compiled(text: str) -> re.Pattern[str]:
    """Return the expression *text*; ``^`` and ``$`` are the ends of each line. Raises ValueError where it is none."""
    try:
        return re.compile(text, re.MULTILINE)
    except (re.error, RecursionError, OverflowError) as error:
        raise ValueError(f"is not a regular expression: {error}") from None


def path_steps(path: str) -> list[re.Match[str]]:
    """Return the steps of *path*. Raises ValueError where it is none."""
    steps = list(_STEP.finditer(path))
    if not steps or sum(len(step[0]) for step in steps) != len(path):
        raise ValueError("is not a path; expected for example ports[name={interface}].rx.frames or list[0].value")
    return steps


def value_at(data: Any, path: str, interface: str) -> str | None:
    """Return what *path* leads to in *data*, as ``interfaces[name={interface}].in.packets``; None: nothing."""
    for step in path_steps(path):
        if step["key"] is not None:
            key, value = step["key"], step["value"].replace("{interface}", interface)
            members = data if isinstance(data, list) else []
            data = next((one for one in members if isinstance(one, dict) and str(one.get(key)) == value), None)
        elif step["index"] is not None:
            index = int(step["index"])
            data = data[index] if isinstance(data, list) and index < len(data) else None
        else:
            name = step["name"].replace("{interface}", interface)
            data = data.get(name) if isinstance(data, dict) else None
    return None if data is None or isinstance(data, bool | dict | list) else str(data)


def _checked_group(value: str) -> str:
    if compiled(value).groups < 1:
        raise ValueError("needs a group, '(…)', around the number")
    return value


JsonPath = Annotated[str, Field(max_length=200), AfterValidator(lambda path: path_steps(path) and path)]
Expression = Annotated[str, AfterValidator(lambda text: compiled(text).pattern)]
GroupPattern = Annotated[str, Field(min_length=1), AfterValidator(_checked_group)]
"""An expression whose first group is the value."""


Problem = tuple[Location, str]
"""The key where something is wrong, and what is wrong with it."""

INTERFACE = "{interface}"
WORD_IN_BRACES = re.compile(r"\{([A-Za-z_][\w/-]*)\}", re.ASCII)


def _one_or_more(value: Any) -> Any:
    return (value,) if isinstance(value, str) else value


def _checked_line(value: str) -> str:
    if not value.strip() or "\n" in value:
        raise ValueError("expected one command, in one line")
    return value


Line = Annotated[str, AfterValidator(_checked_line)]
Lines = Annotated[tuple[Line, ...], BeforeValidator(_one_or_more)]
Expressions = Annotated[tuple[Expression, ...], BeforeValidator(_one_or_more)]
OneExpression = Annotated[Expressions, Field(max_length=1)]


def filled(command: str, words: Mapping[str, str]) -> str:
    """Return *command* with the values of *words* in place of ``{word}``; other braces stay."""
    return WORD_IN_BRACES.sub(lambda found: words.get(found[1], found[0]), command)


def instead_of(word: str, known: Collection[str]) -> str:
    """Return the one of *known* that is like *word*, or all of them, for a message."""
    return did_you_mean(word, known).strip() or f"expected one of: {', '.join(known)}"


def unknown_words(data: Any, known: Collection[str], place: Location = ()) -> Iterator[Problem]:
    """Yield each word in braces, in any text of *data* at *place*, that is none of *known*."""
    if isinstance(data, Mapping | list | tuple):
        for key, value in data.items() if isinstance(data, Mapping) else enumerate(data):
            yield from unknown_words(value, known, (*place, str(key)))
    for word in WORD_IN_BRACES.findall(data) if isinstance(data, str) else ():
        if word not in known:
            hint = instead_of(word.lower(), known) if known else "expected no word in braces"
            yield place, f"'{{{word}}}' is not known in '{shortened(data)}'; {hint}"


def command_line(line: str, words: Mapping[str, str], is_posix: bool) -> str:
    """Return *line* with *words* in place of the names in braces.

    For a POSIX shell each part is quoted; a part that is one word in braces alone may become several parts, or none.
    Raises TestbedError where the router itself has shown what another command line may take for a command.
    """
    if not is_posix:
        if bad := next((value for value in words.values() if not re.fullmatch(r"[\w ./:@-]*", value)), ""):
            raise TestbedError(f"'{shortened(bad)}' is no word for a command; expected letters, digits, _ . / : @ -")
        return filled(line, words)
    parts: list[str] = []
    for part in shlex.split(line):
        alone = WORD_IN_BRACES.fullmatch(part)
        parts += words[alone[1]].split() if alone and alone[1] in words else [filled(part, words)]
    return shlex.join(parts)


def check_length(output: str, whose: str = "its output") -> None:
    """Raise TestbedError where *output* is too long to be searched."""
    if len(output) > MOST_OUTPUT:
        raise TestbedError(f"{whose} has {len(output)} characters; expected at most {MOST_OUTPUT}")


def pattern_value(output: str, pattern: str, who: str) -> str:
    """Return the first group of *pattern* in *output*. Raises TestbedError that names *who* printed it."""
    check_length(output, f"{who}: its command's output")
    match = compiled(pattern).search(output)
    if match is None or match[1] is None:
        printed = shortened(output.strip(), 80) or "nothing"
        raise TestbedError(f"{who}: its command prints '{printed}'; expected '{shortened(pattern, 80)}' in it")
    return match[1]


def json_value(output: str, path: str, who: str, interface: str = "") -> str:
    """Return what *path* leads to in *output*, which is JSON. Raises TestbedError that names *who* printed it."""
    value = value_at(json_in(output, f"{who}: its command's output"), path, interface)
    if value is None:
        raise TestbedError(f"{who}: the JSON that its command prints has no number at '{path}'")
    return value


def json_in(output: str, whose: str = "its output") -> Any:
    """Return the data in *output*, which is JSON behind a banner or without. Raises TestbedError."""
    check_length(output, whose)
    begin = min((at for at in map(output.find, "{[") if at >= 0), default=0)
    try:
        return parse_json(output[begin:].strip(), 4 * MOST_OUTPUT, strict=False)
    except ValueError as error:
        shown = shortened(next(filter(None, map(str.strip, output.splitlines())), "no output"))
        raise TestbedError(f"{whose} is not JSON ({shortened(error)}): '{shown}'") from None


def members_in(output: str, *keys: str) -> list[Mapping[str, Any]]:
    """Return the objects in the list below *keys* of *output*, which is JSON; none where it is not."""
    data = None
    with contextlib.suppress(TestbedError):
        data = json_in(output)
    for key in keys:
        data = data.get(key) if isinstance(data, dict) else None
    return [one for one in data if isinstance(one, dict)] if isinstance(data, list) else []


def flat(data: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield each value in JSON by the keys that lead to it, as ``("negotiated.rx", "on")``; on is true, off false."""
    if isinstance(data, dict):
        for key, value in data.items():
            yield from flat(value, f"{path}.{key}".lstrip("."))
    elif not isinstance(data, list):
        yield path, ("off", "on")[data] if isinstance(data, bool) else str(data)


_COUNT = re.compile(r"\s*[0-9a-f]{1,20}\s*")
"""The text of a count: no more digits than a counter of 64 bits can have."""


def plain_mac(text: str) -> str:
    """Return *text* as ``02:00:00:00:00:01``, whatever separators a router prints; unchanged if it is none."""
    is_one = re.fullmatch(r"(?:[0-9a-f]{2}[:. -]?){5}[0-9a-f]{2}", text.lower())
    return ":".join(re.findall("[0-9a-f]{2}", text.lower())) if is_one else text


def figure(text: str) -> float:
    """Return the number in *text*. Raises ValueError, also where it is not finite."""
    read = float(text)
    if not math.isfinite(read):
        raise ValueError(f"{text} is not finite")
    return read


def counter_value(text: str, base: int = 10) -> int:
    """Return the counter in *text*. Raises ValueError for more digits than 64 bits have, or others than *base* has."""
    if not _COUNT.fullmatch(text):
        raise ValueError(f"{text[:30]} is no counter")
    return int(text, base)


_GROUPED = re.compile(r"-?[1-9][0-9]{0,2}([ ,'])[0-9]{3}(?:\1[0-9]{3})*(?![0-9]|\1)")
"""Digits in groups of three. A comma that does not group them so is a decimal one."""


def count(name: str, text: str) -> int:
    """Return a count that a router printed. Raises TestbedError."""
    return int(_digits(name, text, "[0-9]{1,20}", "a count"))


def number(name: str, text: str) -> float:
    """Return a number that a router printed: ``2,5`` is 2.5, ``1,000`` is 1000. Raises TestbedError."""
    whole = f"0{text}" if text.startswith(".") else text  # as VPP's clock in its first second
    return float(_digits(name, whole, r"-?[0-9]{1,20}(\.[0-9]{1,20})?", "a number"))


def _digits(name: str, text: str, pattern: str, expected: str) -> str:
    """Return *text* without what groups its digits; *pattern*: what it then is. Raises TestbedError."""
    whole = _GROUPED.match(plain := text.strip())
    plain = (re.sub("[ ,']", "", whole[0]) + plain[whole.end() :] if whole else plain).replace(",", ".")
    if not re.fullmatch(pattern, plain):
        raise TestbedError(f"'{name}' is '{shortened(text)}'; expected {expected}")
    return plain


# -- facts of a machine

F = TypeVar("F")
Fact = tuple[str, str]
"""A command, and an expression whose first group is the fact; of several matches each other one is a part of it."""


_machine = functools.cache(lambda router: read_yaml(PACKAGED_ROUTERS / router / "machine.yaml")[0])


def facts_of(router: str, part: str, **words: str) -> dict[str, Fact]:
    """Return the facts of a *part* of the ``machine.yaml`` of *router*, with *words* in place of those in braces.

    A command with ``{names}`` is given what stands in place of its expressions, and shows each as ``name: value``.
    """
    escaped, facts = {name: re.escape(text) for name, text in words.items()}, dict[str, Fact]()
    for command, patterns in _machine(router)[part].items():
        line = filled(command, {**words, "names": " ".join(patterns.values())})
        for name, text in patterns.items():
            shown = rf"^{re.escape(text)}: *(?!none *$)(.*)"
            facts[name] = (line, shown if "{names}" in command else filled(text, escaped))
    return facts


def facts_as(kind: type[F], known: Mapping[str, str], **own: object) -> F:
    """Return facts of *kind*: those *known* by the names of its fields, and its *own*; the rest is ``other``.

    A name that begins with ``_`` is no fact by itself, and what is no number is none where one belongs.
    """
    types = {field.name: str(field.type) for field in fields(kind)}  # type: ignore[arg-type]  # a dataclass
    other = {name: value for name, value in known.items() if name not in types and not name.startswith("_")}
    named = {
        name: value
        for name, value in known.items()
        if name in types and ("str" in types[name] or re.fullmatch(r"\d{1,9}(\.\d{1,9})?", value))
    }
    return TypeAdapter(kind).validate_python({**named, "other": other, **own})


def picked(output: Mapping[str, str], facts: Mapping[str, Fact]) -> dict[str, str]:
    """Return those of *facts* that are in *output*, by name; of JSON each value is a line ``rx.fixed: off``."""
    texts: dict[str, str] = {}
    for name, (command, pattern) in facts.items():
        text = output[command]
        if " --json " in command:
            text = "\n".join(": ".join(value) for one in members_in(text) for value in flat(one))
        values = re.findall(pattern, text, re.MULTILINE)
        # of a fact that Python reads further the lines are kept
        if value := summarised(value.strip() if name.startswith("_") else " ".join(value.split()) for value in values):
            texts[name] = value
    return texts


def matched(pattern: str, text: str) -> str | None:
    """Return the first group of *pattern* in *text*, without blanks around it; None if it is not there or empty."""
    match = re.search(pattern, text, re.MULTILINE)
    return (match[1].strip() or None) if match else None


def summarised(values: Iterable[str]) -> str | None:
    """Return the different *values* in order, with ``, `` between them; None without any."""
    return ", ".join(dict.fromkeys(value for value in values if value)) or None
