"""The sides of a router, the state of its links, and numbers and JSON from its output."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

from ..errors import TestbedError
from ..json_text import parse_json
from ..system.ssh_shell import first_line
from ..visible import shortened


@dataclass(frozen=True, slots=True)
class Side:
    """One side of the router: the interface cabled to a generator port, and what is reached through it.

    ``address`` as ``100.65.1.1/24``; ``peer`` is the generator port's address, ``peer_mac`` its MAC;
    ``network`` the prefix routed towards it, as ``16.0.0.0/8``.
    """

    interface: str
    address: str
    peer: str
    peer_mac: str
    network: str


@dataclass(frozen=True, slots=True)
class LinkState:
    """``mac`` in lower case, "" if unknown; ``up``: administratively; ``carrier``: there is a link. None: unknown.

    ``speed_bps``: of the link that it has, as ``speed_from`` shows; None: not known, or only a convention's.
    """

    interface: str
    mac: str = ""
    up: bool | None = None
    carrier: bool | None = None
    speed_bps: float | None = None
    speed_from: str = ""


_COUNT = re.compile(r"\s*[0-9a-f]{1,20}\s*")
"""The text of a count: no more digits than a counter of 64 bits can have."""
_ALREADY_GONE = re.compile(
    # not that the program itself, the command or its device is missing
    r"status (?!12[67]\b)(?!.*(?:sudo:|/dev/|command not found)).*?"
    r"(not (been )?found|no such (process|file or directory|device|route|item)|cannot find device"
    r"|can(not|'t) assign requested address|not in table|pf already enabled|no entry|cannot locate"
    r"|does(n't| not) exist|invalid fib|unknown interface)",
    re.IGNORECASE,
)


MOST_OUTPUT = 1 << 20
"""Characters of an output that are searched; the longest answers of a router have some 100 kB."""


def json_in(output: str) -> Any:
    """Return the data in *output*, which is JSON behind a banner or without. Raises TestbedError."""
    begin = min((at for at in map(output.find, "{[") if at >= 0), default=0)
    try:
        return parse_json(output[begin:].strip(), 4 * MOST_OUTPUT, strict=False)
    except ValueError as error:
        shown = first_line(output) or "no output"
        raise TestbedError(f"its output is not JSON ({shortened(error)}): '{shown}'") from None


def check_length(output: str) -> None:
    """Raise TestbedError where *output* is too long to be searched."""
    if len(output) > MOST_OUTPUT:
        raise TestbedError(f"its output has {len(output)} characters; expected at most {MOST_OUTPUT}")


def plain_mac(text: str) -> str:
    """*text* as ``02:00:00:00:00:01``, from whatever separators a router prints; unchanged if it is no MAC address."""
    is_one = re.fullmatch(r"(?:[0-9a-f]{2}[:. -]?){5}[0-9a-f]{2}", text.lower())
    return ":".join(re.findall("[0-9a-f]{2}", text.lower())) if is_one else text


def already_gone(why: str) -> bool:
    """Return whether an undo was refused because its change is gone, with a link or by another user, or was never made.

    *why*: ``status 2: RTNETLINK answers: No such process``.
    """
    return _ALREADY_GONE.match(why) is not None


def figure(text: str) -> float:
    """The number in *text*. Raises ValueError, also where it is not finite."""
    found = float(text)
    if not math.isfinite(found):
        raise ValueError(f"{text} is not finite")
    return found


def counter_value(text: str, base: int = 10) -> int:
    """The counter in *text*. Raises ValueError where it has more digits than 64 bits, or other ones than *base* has."""
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
    return float(_digits(name, text, r"-?[0-9]{1,20}(\.[0-9]{1,20})?", "a number"))


def _digits(name: str, text: str, pattern: str, expected: str) -> str:
    """Return *text* without what groups its digits; *pattern*: what it then is. Raises TestbedError."""
    whole = _GROUPED.match(plain := text.strip())
    plain = (re.sub("[ ,']", "", whole[0]) + plain[whole.end() :] if whole else plain).replace(",", ".")
    if not re.fullmatch(pattern, plain):
        raise TestbedError(f"'{name}' is '{shortened(text)}'; expected {expected}")
    return plain
