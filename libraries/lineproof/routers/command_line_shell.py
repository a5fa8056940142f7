"""The command line of a router that a file describes: what it calls a refusal, and commands of several lines."""

from __future__ import annotations

import re
import time
from collections.abc import Callable

from .base import Result, Shell
from .command_file import CommandFile
from .shell_output import already_gone, first_line

_REMOVES = re.compile(
    r"(?<![\w-])(no|undo|delete|del|remove|unset|clear|flush|purge|erase|rollback)(?![\w-])", re.IGNORECASE
)
"""The words of a line that takes something away, of any maker."""


class CommandLineShell:
    """*shell*, to which a command of several lines may be given, and which sees what the file calls a refusal.

    It is a :data:`~lineproof.routers.base.Shell`. Routers refuse a command with status 0 and words; here it is 1.
    A refusal or an interrupt between lines may leave a configuration open: *reset* (log out) closes it.
    """

    def __init__(self, shell: Shell, file: CommandFile, reset: Callable[[], None] = lambda: None) -> None:
        self._shell, self.file, self._reset = shell, file, reset

    def __call__(self, command: str, limit: float) -> Result:
        """Run each line of *command* until one is refused, each within *limit* s."""
        return self._run(command, lambda: limit, lambda at, found, words: False)

    def undo(self, command: str, limit: float, within: float) -> Result:
        """Run each line of *command* within *limit* s, all within *within* s, until one is refused.

        A line that removes something, and whose refusal says that it is gone, is passed over: of a change that was
        refused half-way, or undone in part, some lines have nothing to undo, and the others are still needed. One that
        removes nothing may enter what the next ones are meant for: it is passed over after the last of those only,
        with words of the file (a commit that finds nothing to commit).
        """
        until = time.monotonic() + within
        removes = [bool(_REMOVES.search(line)) for line in command.splitlines()]

        def passes(at: int, found: Result, words: str) -> bool:
            if removes[at]:
                return self._is_gone(found, words)
            return not any(removes[at:]) and self.file.says_gone(found.stdout + found.stderr)

        return self._run(command, lambda: max(0.0, min(limit, until - time.monotonic())), passes)

    def _run(self, command: str, limit: Callable[[], float], passes: Callable[[int, Result, str], bool]) -> Result:
        stdout, stderr, took = "", "", 0.0
        for at, line in enumerate(command.splitlines() or [command]):
            try:
                found = self._shell(line, limit())
            except BaseException:
                if line != command:
                    self._reset()
                raise
            stdout, stderr, took = stdout + found.stdout, found.stderr, took + found.duration
            refusal = self.file.refusal_in(found.stdout) or self.file.refusal_in(found.stderr)
            words = refusal or found.stderr
            if (refusal or found.status) and not passes(at, found, words):
                if line != command:
                    self._reset()
                return Result(stdout, f"'{line}': {words}" if line != command else words, found.status or 1, took)
        return Result(stdout, stderr, 0, took)

    def _is_gone(self, found: Result, words: str) -> bool:
        why = first_line(words) or first_line(found.stdout)
        return self.file.says_gone(found.stdout + found.stderr) or already_gone(f"status {found.status or 1}: {why}")
