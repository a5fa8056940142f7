"""A command line that wants a terminal, over SSH: types commands at its prompt and answers its pager.

Everything has a limit: whoever answers may write for ever, never show a prompt, or page without end.
"""

from __future__ import annotations

import re
import select
import time
from typing import Annotated

from pydantic import Field, model_validator

from ..command_values import Expression, compiled
from ..config import Config
from ..errors import TestbedError
from ..visible import shortened
from .ssh import CommandUnfinished, Connection

LARGEST_DIALOGUE = 2 << 20
"""Bytes that a command may write."""

WIDTH, HEIGHT = 511, 1000
"""Size of the terminal, so that nothing is wrapped and little is paged."""

QUIET = 0.1
"""Seconds without output after what looks like a prompt: a line of output may begin like one."""

_LONGEST_PROMPT = 300
_TAIL = 4096
_ECHO_WITHIN = 5
"""Lines in which the echo is looked for: a log may write before it."""

_REMEDY = "if that is a question, let 'prompt' match it, too, and give its answer as the next command"

_SEQUENCE = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[PX^_][^\x1b]*(?:\x1b\\)?|[ -/]*[0-~])"
)
"""Control sequences of ECMA-48: CSI, OSC, other strings, and single ones."""


class Dialogue(Config):
    """How a command line that needs a terminal talks. ``prompt``, ``pager``: match the whole last line.

    ``prompts``: examples of the prompt. ``answer``: to the pager. ``first``: commands after the login, as ``terminal
    length 0``.
    """

    prompt: Expression
    prompts: Annotated[tuple[str, ...], Field(min_length=1)]
    pager: Expression | None = None
    answer: Annotated[str, Field(min_length=1)] = " "
    first: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _check_prompts(self) -> Dialogue:
        pattern = compiled(self.prompt)
        for example in self.prompts:
            if not pattern.fullmatch(example.rstrip()):
                raise ValueError(f"'prompt' does not match all of '{shortened(example)}', which is in 'prompts'")
        if pattern.fullmatch(""):
            raise ValueError("'prompt' matches an empty line; expected an expression of what a prompt ends with")
        return self


class SshTerminal:
    """A terminal on *connection*, which is logged in, that talks as *dialogue* says.

    Every method raises CommandUnfinished past a limit, EOFError where the other end closes it, and paramiko's errors.
    """

    def __init__(self, connection: Connection, dialogue: Dialogue, limit: float) -> None:
        self._prompt, self._pager = compiled(dialogue.prompt), dialogue.pager and compiled(dialogue.pager)
        self._answer = dialogue.answer.encode()
        until = time.monotonic() + limit
        self._channel = connection.session(limit)
        self._channel.settimeout(limit)
        self._channel.get_pty("vt100", WIDTH, HEIGHT)
        self._channel.invoke_shell()
        self._read_to_prompt("the login", until, echoed=False)
        self.first_answers = tuple((command, self.run(command, until - time.monotonic())) for command in dialogue.first)
        """Each line of ``first``, and what it wrote."""

    def run(self, command: str, limit: float) -> str:
        """Return what *command* writes within *limit* s, without its echo, the prompt, and the pager's words."""
        if "\n" in command or "\r" in command:
            raise TestbedError(f"'{shortened(command)}' is more than one line; a terminal takes one at a time")
        until = time.monotonic() + limit
        self._drop_what_came()
        self._channel.sendall(f"{command}\n".encode())
        return without_echo(self._read_to_prompt(f"'{command}'", until, echoed=True), command, self._prompt)

    def _drop_what_came(self) -> None:
        """Forget what was written since the last prompt: messages of a log."""
        dropped = 0
        while self._channel.recv_ready() and dropped <= LARGEST_DIALOGUE:
            dropped += len(self._channel.recv(1 << 16)) or LARGEST_DIALOGUE + 1

    def _read_to_prompt(self, what: str, until: float, echoed: bool) -> str:
        """All that comes before the next prompt, as text. *echoed*: the prompt is after the line that was typed."""
        received, written = bytearray(), 0
        while True:
            wait = until - time.monotonic()
            last = _last_line(received)
            if self._pager and self._is(self._pager, last):
                del received[received.rfind(b"\n") + 1 :]
                self._channel.sendall(self._answer)
            elif (not echoed or b"\n" in received) and self._is(self._prompt, last):
                if not self._comes(min(QUIET, max(0.0, wait))):
                    return terminal_text(bytes(received[: received.rfind(b"\n") + 1]).decode(errors="replace"))
            elif wait <= 0 or not self._comes(wait):
                shown = f" (its last line is '{shortened(last, 60)}'; {_REMEDY})" if last else ""
                raise CommandUnfinished(f"{what} came to no prompt within its time{shown}")
            if time.monotonic() > until:
                raise CommandUnfinished(f"{what} came to no prompt within its time")
            if self._channel.recv_ready() or self._comes(max(0.0, until - time.monotonic())):
                chunk = self._channel.recv(1 << 16)
                if not chunk:
                    raise EOFError("it closed the terminal")
                received += chunk
                written += len(chunk)
            if written > LARGEST_DIALOGUE:
                raise CommandUnfinished(f"{what} wrote more than {LARGEST_DIALOGUE >> 10} kB")

    def _comes(self, wait: float) -> bool:
        return bool(select.select([self._channel], [], [], wait)[0])

    def _is(self, pattern: re.Pattern[str], line: str) -> bool:
        return 0 < len(line) <= _LONGEST_PROMPT and pattern.fullmatch(line) is not None


def _last_line(received: bytearray) -> str:
    """Return what stands in the last line, without spaces after it."""
    tail = bytes(received[max(received.rfind(b"\n") + 1, len(received) - _TAIL) :])
    return terminal_text(tail.decode(errors="replace")).rstrip()


def terminal_text(text: str) -> str:
    r"""*text* as a terminal shows it: without control sequences, with what ``\r`` and ``\b`` write over."""
    plain = _SEQUENCE.sub("", text).replace("\0", "").replace("\x07", "")
    return "\n".join(map(_written_over, re.sub(r"\r+\n", "\n", plain).split("\n")))


def _written_over(line: str) -> str:
    if "\r" not in line and "\b" not in line:
        return line
    shown: list[str] = []
    at = 0
    for character in line:
        if character == "\r":
            at = 0
        elif character == "\b":
            at = max(0, at - 1)
        else:
            shown[at : at + 1] = [character]
            at += 1
    return "".join(shown).rstrip()


def without_echo(text: str, command: str, prompt: re.Pattern[str]) -> str:
    """*text* without the line that is *command* as it was typed, at a *prompt* or alone, and what came before it.

    A line that only ends with the command is an answer to it: ``% Unknown command: show x``.
    """
    lines = text.split("\n")
    for at, line in enumerate(lines[:_ECHO_WITHIN]):
        before = line.strip().removesuffix(command.strip()).rstrip()
        if line.strip().endswith(command.strip()) and (not before or prompt.fullmatch(before)):
            return "\n".join(lines[at + 1 :])
    return text
