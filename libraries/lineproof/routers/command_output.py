"""Values in the output of a command: by regular expressions, or by paths where the router prints JSON."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import regex

from ..errors import TestbedError
from ..expressions import search
from ..json_text import parse_json
from ..visible import shortened
from .shell_output import first_line, parser

MOST_OUTPUT = 1 << 20
"""Characters of an output that are searched; the longest answers of a router have some 100 kB."""

Values = Mapping[str, str]

_STEP = re.compile(r"\[(?P<key>[^\]=]+)=(?P<value>[^\]]*)\]|\[(?P<index>\d{1,6})\]|\.?(?P<name>[^.\[\]]+)")


@parser("its output")
def read_values(
    output: str, patterns: Sequence[regex.Pattern[str]], paths: Mapping[str, str], interface: str
) -> Values:
    """The groups of *patterns*, each searched once; or what *paths* lead to. A group that took no part is left out.

    Raises TestbedError for output that is too long, is not JSON, or has none of the values.
    """
    if len(output) > MOST_OUTPUT:
        raise TestbedError(f"its output has {len(output)} characters; expected at most {MOST_OUTPUT}")
    if paths:
        return _read_json(output, paths, interface)
    found: dict[str, str] = {}
    for pattern in patterns:
        if match := search(pattern, output):
            found |= {name: value for name, value in match.groupdict().items() if value is not None}
    if not found:
        raise TestbedError(f"nothing that is searched is in '{shortened(first_line(output)) or 'no output'}'")
    return found


def _read_json(output: str, paths: Mapping[str, str], interface: str) -> Values:
    begin = min((at for at in map(output.find, "{[") if at >= 0), default=0)
    try:
        data = parse_json(output[begin:].strip(), 4 * MOST_OUTPUT, strict=False)
    except ValueError as error:
        where = shortened(first_line(output)) or "no output"
        raise TestbedError(f"its output is not JSON ({shortened(error)}): '{where}'") from None
    found = {name: value for name, path in paths.items() if (value := _value_at(data, path, interface)) is not None}
    if not found:
        raise TestbedError(f"its JSON has nothing at {', '.join(paths.values())}")
    return found


def path_steps(path: str) -> list[re.Match[str]]:
    """The steps of *path*. Raises ValueError where it is none."""
    steps = list(_STEP.finditer(path))
    if not steps or sum(len(step[0]) for step in steps) != len(path):
        raise ValueError("is not a path; expected for example ports[name={interface}].rx.frames or list[0].value")
    return steps


def _value_at(data: Any, path: str, interface: str) -> str | None:
    """What *path* leads to, as ``interfaces[name={interface}].in.packets``; None: nothing."""
    for step in path_steps(path):
        if step["key"] is not None:
            key, value = step["key"], step["value"].replace("{interface}", interface)
            rows = data if isinstance(data, list) else []
            data = next((row for row in rows if isinstance(row, dict) and str(row.get(key)) == value), None)
        elif step["index"] is not None:
            index = int(step["index"])
            data = data[index] if isinstance(data, list) and index < len(data) else None
        else:
            name = step["name"].replace("{interface}", interface)
            data = data.get(name) if isinstance(data, dict) else None
    return None if data is None or isinstance(data, bool | dict | list) else str(data)
