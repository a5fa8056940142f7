"""A change of a router: the command that makes it, the one that undoes it, and how to see whether it is still there.

An undo that names all it removes (``ip addr del 100.65.1.1/24 dev eth1``) needs no look: it finds it, or nothing. Nor
does one that sets one of two states (``down``): who has changed it since has set the same. One that sets a value, or
removes whatever is there, would take somebody's own.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from ..command_values import compiled
from ..errors import TestbedError
from .queries import MOST_OUTPUT, plain_mac

NONE = "none"
"""In place of a value: there is nothing."""

Words = Annotated[tuple[Annotated[str, Field(min_length=1)], ...], Field(min_length=1)]


@dataclass(frozen=True, slots=True)
class Look:
    """A command that shows a value: the group ``value`` of *pattern*, or *absent* where that is not found.

    *ours*: how the value begins where a run has set it; *former*: what was there before.
    """

    argv: Words
    pattern: str
    ours: str
    former: str = NONE
    absent: str = NONE

    def read(self, output: str) -> str:
        """Return the value in *output*. Raises TestbedError where that is too long to be searched."""
        if len(output) > MOST_OUTPUT:
            raise TestbedError(f"its output has {len(output)} characters; expected at most {MOST_OUTPUT}")
        found = compiled(self.pattern).search(output)
        return " ".join(found["value"].split()) if found and found["value"] else self.absent

    def is_ours(self, value: str) -> bool:
        """Return whether *value* is what a run has set; a MAC address may be written in any form."""
        return plain_mac(value) == plain_mac(self.ours) or value.startswith(f"{self.ours} ")


@dataclass(frozen=True, slots=True)
class Setting:
    """A value that *show* shows, as :class:`Look` has it. ``command(value, now)`` sets it where *now* is there.

    *always*: there is one, whatever it is.
    """

    show: tuple[str, ...]
    pattern: str
    command: Callable[[str, str], tuple[str, ...]]
    always: bool = False


@dataclass(frozen=True, slots=True)
class Change:
    """A command as words, and its opposite. *silent*: any output means that it failed.

    *lines*: each is a list of whole commands instead, for a command line that is no POSIX shell. *whole*: the opposite
    restores a saved configuration, so that no refusal means that the change is gone already. *look*: at what is there,
    before it is undone; None: its undo can undo nothing else.
    """

    do: Words
    undo: Words
    silent: bool = False
    lines: bool = False
    whole: bool = False
    look: Look | None = None

    @property
    def do_text(self) -> str:
        """Return what makes it, in one line for a person."""
        return _in_one_line(self.do, self.lines)

    @property
    def undo_text(self) -> str:
        """Return what undoes it, in one line for a person."""
        return _in_one_line(self.undo, self.lines)

    def __str__(self) -> str:
        return f"{self.do_text}    (undone by: {self.undo_text})"


def _in_one_line(words: tuple[str, ...], lines: bool) -> str:
    return " / ".join(words) if lines else shlex.join(words)
