"""Answers of a router that are refusals, or not whole."""

from __future__ import annotations

from ..errors import TestbedError
from .base import Result
from .shell_output import first_line, plain_text


def incomplete(line: str, text: str) -> TestbedError:
    """The error that *text*, the answer to *line*, is cut."""
    return TestbedError(f"the router's answer to '{line}' is not complete: '{first_line(text[-80:])}'; run again")


def is_cut(command: str, text: str) -> bool:
    """Return whether the last line of *command*'s answer has no end. A file of a person may lack it."""
    return bool(text) and not text.endswith("\n") and not command.startswith("cat /etc/")


def whole(command: str, text: str) -> str:
    """*text*, the answer to *command*. Raises TestbedError if it is cut."""
    if is_cut(command, text):
        raise incomplete(command, text)
    return text


def accepted(command: str, result: Result) -> str:
    """The output of *command*. Raises CommandRefused if its status is not 0."""
    if result.status != 0:
        raise refusal(command, result.status, first_line(result.stderr) or first_line(result.stdout))
    return plain_text(result.stdout)


def in_one_line(command: str) -> str:
    """*command*, which may have several lines, for a message."""
    return " / ".join(command.splitlines())


class CommandRefused(TestbedError):
    """The router did not run a command. ``why``: the reason without the command."""

    def __init__(self, message: str, why: str) -> None:
        super().__init__(message)
        self.why = why


def refusal(command: str, status: int, output: str) -> CommandRefused:
    """The error that the router did not run *command*, whose *output* says why."""
    if status == 1 and "vppctl" in command.split()[:3] and not output.startswith("sudo:"):
        # a command that VPP itself refuses has status 0
        why = f"VPP does not answer{f': {output}' if output else ''}"
        return CommandRefused(
            f"'{command}': {why}; check that it runs, and that the user may use its CLI socket ('sudo: true' for"
            " the router in the testbed file)",
            why,
        )
    reason, command = f": {output}" if output else "", in_one_line(command)
    return CommandRefused(
        f"the router refused '{command}' (status {status}){reason}; check the user's rights and the names given",
        f"status {status}{reason}",
    )
