"""Values in the output of a command: by regular expressions, or by paths where the router prints JSON."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from ..command_values import value_at
from ..errors import TestbedError
from ..json_text import parse_json
from ..visible import shortened
from .shell_output import first_line, parser

MOST_OUTPUT = 1 << 20
"""Characters of an output that are searched; the longest answers of a router have some 100 kB."""

Values = Mapping[str, str]


@parser("its output")
def read_values(output: str, patterns: Sequence[re.Pattern[str]], paths: Mapping[str, str], interface: str) -> Values:
    """The groups of *patterns*, each searched once; or what *paths* lead to. A group that took no part is left out.

    Raises TestbedError for output that is too long, is not JSON, or has none of the values.
    """
    if len(output) > MOST_OUTPUT:
        raise TestbedError(f"its output has {len(output)} characters; expected at most {MOST_OUTPUT}")
    if paths:
        return _read_json(output, paths, interface)
    found: dict[str, str] = {}
    for pattern in patterns:
        if match := pattern.search(output):
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
    found = {name: value for name, path in paths.items() if (value := value_at(data, path, interface)) is not None}
    if not found:
        raise TestbedError(f"its JSON has nothing at {', '.join(paths.values())}")
    return found
