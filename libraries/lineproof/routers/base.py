"""The sides of a router, its shell over SSH, and clean text, numbers and JSON from its output."""

from __future__ import annotations

import contextlib
import logging
import math
import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..errors import TestbedError
from ..json_text import parse_json
from ..system.login import Login
from ..system.ssh import LOGIN_LIMIT, CommandUnfinished, Connection, NotInTime, run_in_worker_thread
from ..system.ssh_terminal import Dialogue, SshTerminal
from ..visible import shortened, visible

log = logging.getLogger("lineproof.router")


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
    """A :data:`~lineproof.routers.base.Shell` on the machine of *login*.

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
        """Let logins and commands take until *moment* of the monotonic clock at most, whatever their own limits are."""
        self._deadline = moment

    def open(self) -> None:
        """Log in. Raises TestbedError, which never contains the password."""
        self.close()
        self.connection.open(self._within(LOGIN_LIMIT))

    def first_answers(self, limit: float) -> tuple[tuple[str, str], ...]:
        """Each line that is typed after the login to a terminal, and what it wrote. Raises TestbedError."""
        if self._dialogue is not None and self._terminal is None:
            self("", limit)  # opens it
        return self._terminal.first_answers if self._terminal else ()

    def _within(self, limit: float) -> float:
        return max(0.0, min(limit, self._deadline - time.monotonic()))

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

        def execute() -> tuple[bytes, bytes, int]:
            # here, where no interrupt of the main thread can be taken for an error of the link
            with self._one_by_one:
                try:
                    # this ends by itself a moment before the thread would be left
                    if self._dialogue is None:
                        return self.connection.run(command, within, stdin.encode())
                    if stdin:
                        raise TestbedError(f"'{command}' has 'stdin', for which a router must take single commands")
                    return self._typed(command, self._dialogue, began + within), b"", 0
                except TestbedError:
                    raise
                except Exception as error:  # paramiko's threads raise what they met, also EOFError
                    raise TestbedError(f"the SSH link to {self._who} broke during '{command}': {error}") from None

        try:
            stdout, stderr, status = run_in_worker_thread(execute, within + CLOSE_LIMIT, f"'{command}'")
        except TestbedError as error:
            self.close()  # ends the thread, too
            if not isinstance(error, CommandUnfinished | NotInTime):
                raise
            raise TestbedError(f"{error} on {self._who}; run it there by hand to see why") from None
        found = Result(self._shown(stdout), self._shown(stderr), status, time.monotonic() - began)
        given = f" <<< '{shortened(stdin)}'" if stdin else ""
        log.debug("$ %s%s\n%s%s", command, given, found.stdout, found.stderr)
        return found

    def _typed(self, command: str, dialogue: Dialogue, until: float) -> bytes:
        """Return what *command* writes in the terminal, which is opened if none is."""
        if self._terminal is None:
            self._terminal = SshTerminal(self.connection, dialogue, until - time.monotonic())
        return self._terminal.run(command, until - time.monotonic()).encode(errors="replace")

    def _shown(self, output: bytes) -> str:
        """Output as all above get it: no control characters, and no password that the router echoed."""
        return self._login.masked(visible(plain_text(output.decode(errors="replace"))))


# -- output

_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
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


def plain_text(text: str) -> str:
    """*text* with LF line ends and without ANSI escapes."""
    return _ANSI.sub("", re.sub(r"\r+\n", "\n", text)).replace("\r", "")


def first_line(text: str) -> str:
    """The first line that is not blank, for a message."""
    return shortened(next((line.strip() for line in plain_text(text).splitlines() if line.strip()), ""))


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
