"""Commands of a study in a simulated shell: exactly those that the study names, each once and each undone once.

What they set by ``sysctl`` can be read, too: before a change is undone, its value is looked at.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from typing import Any

from .machine import CommandLine, CommandOutput


class StudyCommands:
    """The pairs of *setups*, each ``{"commands": [{"do": …, "undo": …}], …}``. *own*: programs that the machine has."""

    def __init__(self, setups: Sequence[Mapping[str, Any]], own: Container[str] = ()) -> None:
        self._own = own
        self._undo_of: dict[str, str] = {}
        for setup in setups:
            for pair in setup["commands"]:
                self._undo_of.setdefault(str(pair["do"]), str(pair["undo"]))
        self._texts: dict[tuple[str, ...], str] = {}
        for text in (*self._undo_of.values(), *self._undo_of):
            self._texts[_words(text)] = text

    def run(self, words: Sequence[str], line: CommandLine) -> CommandOutput | None:
        """Run a simple command or the text of a line, given as its only word. None: it is no command of the study."""
        key = _words(words[0]) if len(words) == 1 else tuple(words)
        text = self._texts.get(key)
        if text is None:
            return self._variable(key[-1], line, bare="-n" in key) if key[:1] == ("sysctl",) else None
        done, program = line.state.configuration.done, key[0]
        undone = [do for do in done if self._undo_of[do] == text]
        if text in self._undo_of and text not in done:
            done = (*done, text)
        elif undone:
            done = tuple(do for do in done if do != undone[-1])
        elif text in done:
            return CommandOutput("", f"{program}: File exists\n", 1)
        elif program in self._own:
            return None  # as pfSense's own pf, which is on before any study begins
        else:
            return CommandOutput("", f"{program}: No such file or directory\n", 1)
        line.change(replace(line.state.configuration, done=done))
        return CommandOutput()

    def _variable(self, name: str, line: CommandLine, bare: bool) -> CommandOutput | None:
        """``sysctl [-n] NAME`` of what the study sets: by its last command that is done, else by what undoes one."""
        done = line.state.configuration.done
        for text in (*reversed(done), *(undo for do, undo in self._undo_of.items() if do not in done)):
            found = _SETTING.fullmatch(text)
            if found and found["name"] == name:
                return CommandOutput(f"{found['value']}\n" if bare else f"{name}: {found['value']}\n")
        return None


_SETTING = re.compile(r"sysctl (?:-w )?(?P<name>[^\s=]+)=(?P<value>.*)")


def _words(text: str) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(text))
    except ValueError:
        return (text,)
