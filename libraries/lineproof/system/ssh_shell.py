"""A machine's shell over SSH: of single commands, or typed at the prompt of a terminal, whose pager is answered.

Everything has a limit: whoever answers may write for ever, never show a prompt, or page without end.
"""

from __future__ import annotations

import contextlib
import logging
import math
import re
import select
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Annotated

from pydantic import Field

from ..command_values import Expression, compiled
from ..config import Config
from ..errors import TestbedError
from ..visible import shortened, visible
from .login import Login
from .ssh import LOGIN_LIMIT, CommandUnfinished, Connection, NotInTime, run_in_worker_thread

log = logging.getLogger("lineproof.router")

LARGEST_DIALOGUE = 2 << 20
"""Bytes that a command may write."""

WIDTH, HEIGHT = 511, 1000
"""Size of the terminal, so that nothing is wrapped and little is paged."""

QUIET = 0.1
"""Seconds without output after what looks like a prompt: a line of output may begin like one."""

_LONGEST_PROMPT = 300
_TAIL = 4096

_REMEDY = "if that is a question, let 'prompt' match it, too, and give its answer as the next command"

_SEQUENCE = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[PX^_][^\x1b]*(?:\x1b\\)?|[ -/]*[0-~])"
)
"""Control sequences of ECMA-48: CSI, OSC, other strings, and single ones."""


class Dialogue(Config):
    """The talk of a command line in a terminal. ``prompt``, ``pager``: match the whole last line.

    ``prompts``, ``pagers``: examples of them. ``answer``: to the pager. ``first``: commands after the login, as
    ``terminal length 0``.
    """

    prompt: Expression
    prompts: tuple[str, ...] = ()
    pager: Expression | None = None
    pagers: tuple[str, ...] = ()
    answer: Annotated[str, Field(min_length=1)] = " "
    first: tuple[str, ...] = ()

    def problems(self) -> Iterator[str]:
        """Yield what is wrong with the expressions: an example is missing, or they match something else."""
        if not self.prompts or (self.pager is None) is not (self.pagers == ()):
            yield "'prompt' and 'prompts', 'pager' and 'pagers', examples of its last line, go together; expected both"
        for key, text, examples, others in (
            ("prompt", self.prompt, self.prompts, self.pagers),
            ("pager", self.pager, self.pagers, self.prompts),
        ):
            matches = compiled(text or "(?!)").fullmatch
            for example in examples:
                if not matches(example.rstrip()):
                    yield f"'{key}' does not match all of '{shortened(example)}', which is in '{key}s'"
            for example in ("", *others):
                if matches(example.rstrip()):
                    shown = f"'{shortened(example)}'" if example else "an empty line"
                    yield f"'{key}' matches {shown}; expected an expression of a {key}, and nothing else"


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a shell command. ``duration`` in s."""

    stdout: str
    stderr: str
    status: int
    duration: float


class RouterUnreachable(TestbedError):
    """No login to the router succeeds: the next command would not get there either."""


Shell = Callable[..., Result]
"""``shell(command, limit in s) -> Result``; a third argument is text for the command's standard input.

Raises TestbedError when the link drops or the limit passes; of these RouterUnreachable when it drops and a new login
fails.
"""


CLOSE_LIMIT = 5.0
"""Seconds that closing the connection may take."""


class SshShell:
    """A :data:`~lineproof.system.ssh_shell.Shell` on the machine of *login*.

    A dropped link raises TestbedError; the next command tries once to log in again. With *dialogue* commands are typed
    in a terminal, and have no exit status but 0. *who*: the machine, for messages.
    """

    def __init__(self, login: Login, dialogue: Dialogue | None = None, who: str = "the router") -> None:
        self._login, self._dialogue, self._who = login, dialogue, who
        self.connection = Connection(login, who)
        self._terminal: SshTerminal | None = None
        self._deadline = math.inf
        # a command that was interrupted here goes on there: what follows, as its undo, waits for it
        self._one_by_one = threading.Lock()

    def end_by(self, moment: float) -> None:
        """End logins and commands at *moment* of the monotonic clock, whatever their own limits are."""
        self._deadline = moment

    def open(self) -> None:
        """Log in. Raises TestbedError, which never contains the password."""
        self.close()
        self.connection.open(self._within(LOGIN_LIMIT))

    def _within(self, limit: float) -> float:
        return max(0.0, min(limit, self._deadline - time.monotonic()))

    @property
    def is_in_a_mode(self) -> bool:
        """Return whether the terminal is at another prompt than at its login."""
        return self._terminal is not None and self._terminal.prompt != self._terminal.first_prompt

    def close(self) -> None:
        """Log out. May be repeated."""
        self._terminal = None
        # a thread that still hangs in an old command may block closing
        with contextlib.suppress(TestbedError):
            run_in_worker_thread(self.connection.close, CLOSE_LIMIT, "closing the SSH link")

    def __call__(self, command: str, limit: float, stdin: str = "") -> Result:
        """Run *command* within *limit* s, with *stdin* for its standard input; any exit status.

        Raises TestbedError if the link breaks, RouterUnreachable if it had and the new login fails.
        """
        if not self.connection.is_open:
            try:
                self.open()
            except TestbedError as error:
                raise RouterUnreachable(str(error)) from None
        began, within = time.monotonic(), self._within(limit)
        try:
            # the command ends by itself a moment before its thread would be left
            execute = partial(self._execute, command, within, stdin)
            stdout, stderr, status = run_in_worker_thread(execute, within + CLOSE_LIMIT, f"'{command}'")
        except TestbedError as error:
            self.close()  # ends the thread, too
            if not isinstance(error, CommandUnfinished | NotInTime):
                raise
            raise TestbedError(f"{error} on {self._who}; run it there by hand to see why") from None
        result = Result(self._shown(stdout), self._shown(stderr), status, time.monotonic() - began)
        given = f" <<< '{shortened(stdin)}'" if stdin else ""
        log.debug("$ %s%s\n%s%s", command, given, result.stdout, result.stderr)
        return result

    def _execute(self, command: str, limit: float, stdin: str) -> tuple[bytes, bytes, int]:
        """Run it in a worker thread, where an interrupt of the main thread looks like no error of the link."""
        with self._one_by_one:
            try:
                if self._dialogue is None:
                    return self.connection.run(command, limit, stdin.encode())
                if stdin:
                    raise TestbedError(f"'{command}' has 'stdin', for which a router must take single commands")
                until = time.monotonic() + limit
                if self._terminal is None:
                    self._terminal = SshTerminal(self.connection, self._dialogue, limit)
                return self._terminal.run(command, until - time.monotonic()).encode(errors="replace"), b"", 0
            except TestbedError:
                raise
            except Exception as error:  # paramiko's threads raise what they met, also EOFError
                raise TestbedError(f"the SSH link to {self._who} broke during '{command}': {error}") from None

    def _shown(self, output: bytes) -> str:
        """Output as all above get it: no control characters, and no password that the router echoed."""
        return self._login.masked(visible(plain_text(output.decode(errors="replace"))))


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
        self.prompt = ""
        """The last prompt, and that of the login."""
        self._read_to_prompt("the login", until, echoed=False)
        for command in dialogue.first:
            self.run(command, until - time.monotonic())
        self.first_prompt = self.prompt

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
        left = LARGEST_DIALOGUE
        while left > 0 and self._channel.recv_ready():
            left -= len(self._channel.recv(1 << 16)) or left

    def _read_to_prompt(self, what: str, until: float, echoed: bool) -> str:
        """Return the text before the next prompt. *echoed*: it comes after the line that was typed."""
        received, written = bytearray(), 0
        while True:
            last = _last_line(received)
            at_prompt = (not echoed or b"\n" in received) and self._is(self._prompt, last)
            if self._pager and self._is(self._pager, last):
                del received[received.rfind(b"\n") + 1 :]
                self._channel.sendall(self._answer)
            wait = max(0.0, until - time.monotonic())
            if not select.select([self._channel], [], [], min(wait, QUIET) if at_prompt else wait)[0]:
                if at_prompt:
                    self.prompt = last
                    return plain_text(bytes(received[: received.rfind(b"\n") + 1]).decode(errors="replace"))
                shown = f" (its last line is '{shortened(last, 60)}'; {_REMEDY})" if last else ""
                raise CommandUnfinished(f"{what} came to no prompt within its time{shown}")
            chunk = self._channel.recv(1 << 16)
            if not chunk:
                raise EOFError("it closed the terminal")
            received += chunk
            written += len(chunk)
            if written > LARGEST_DIALOGUE or wait <= 0:
                raise CommandUnfinished(f"{what} wrote {written >> 10} kB without a prompt within its time")

    def _is(self, pattern: re.Pattern[str], line: str) -> bool:
        return 0 < len(line) <= _LONGEST_PROMPT and pattern.fullmatch(line) is not None


def _last_line(received: bytearray) -> str:
    """Return what stands in the last line, without spaces after it."""
    tail = bytes(received[max(received.rfind(b"\n") + 1, len(received) - _TAIL) :])
    return plain_text(tail.decode(errors="replace")).rstrip()


def plain_text(text: str) -> str:
    r"""Return *text* as a terminal shows it: no control sequences, and ``\r`` and ``\b`` write over."""
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
    """Return *text* after the line that echoes *command*, typed at a *prompt* or alone.

    A line that only ends with the command is an answer to it: ``% Unknown command: show x``.
    """
    lines = text.split("\n")
    for at, line in enumerate(lines[:5]):  # a log may write before the echo
        before = line.strip().removesuffix(command.strip()).rstrip()
        if line.strip().endswith(command.strip()) and (not before or prompt.fullmatch(before)):
            return "\n".join(lines[at + 1 :])
    return text


def first_line(text: str) -> str:
    """Return the first line that is not blank, for a message."""
    return shortened(next((line.strip() for line in plain_text(text).splitlines() if line.strip()), ""))
