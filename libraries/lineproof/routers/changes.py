"""A change of a router: the command that makes it, and the one that undoes it."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from .command_file import CommandFile
from .set_values import Look, described_look, look_before


@dataclass(frozen=True, slots=True)
class Change:
    """A command as words, and its opposite. *silent*: any output means that it failed.

    *lines*: each is a list of whole commands instead, for a command line that is no POSIX shell. *whole*: the opposite
    restores a saved configuration, so that no refusal means that the change is gone already.
    """

    do: tuple[str, ...]
    undo: tuple[str, ...]
    silent: bool = False
    lines: bool = False
    whole: bool = False

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

    def look(self, file: CommandFile | None = None) -> Look | None:
        """Return how to see whether it is still there, before it is undone; None: its undo can undo nothing else.

        *file*: that describes the router.
        """
        if self.lines and file is not None:
            return described_look(self.undo, self.do, file)
        return None if self.lines else look_before(self.undo, self.do)


def _in_one_line(words: tuple[str, ...], lines: bool) -> str:
    return " / ".join(words) if lines else shlex.join(words)
