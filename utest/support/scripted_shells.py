"""Shells of routers that only answer: with a few outputs, with this machine's own, or not at all."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping

from lineproof.errors import TestbedError
from lineproof.system.ssh_shell import Result, Shell


class Scripted:
    """Answers commands from *outputs*, by default with nothing, and keeps what was run."""

    def __init__(self, outputs: Mapping[str, str | Result] | None = None, status: int = 0) -> None:
        self.outputs, self.ran, self.status = dict(outputs or {}), list[str](), status

    def __call__(self, command: str, limit: float, stdin: str = "") -> Result:
        self.ran.append(f"{command} <<< {stdin}" if stdin else command)
        output = self.outputs.get(command, "")
        return Result(output, "", self.status, 0.0) if isinstance(output, str) else output


def answering(outputs: Mapping[str, tuple[str, int]]) -> Shell:
    """Return a machine that knows these commands, with output and status; several files by ``cat`` of each."""

    def files(command: str) -> tuple[str, int]:
        shown = ((path, *outputs.get(f"cat {path}", ("", 1))) for path in command.split()[3:])
        return "".join(f"{path}:{line}" for path, text, _ in shown for line in text.splitlines(keepends=True)), 0

    def shell(command: str, limit: float) -> Result:
        plain = command.replace("'", "").removeprefix("sudo -n ")
        is_known = plain in outputs or not plain.startswith("grep -sH . ")
        output, status = outputs.get(plain, ("", 127)) if is_known else files(plain)
        return Result(output, "", status, 0.0)

    return shell


def broken(command: str, limit: float) -> Result:
    """Return the shell of a router that cannot be reached any more."""
    raise TestbedError("the link to the router dropped")


def this_machine(command: str, limit: float) -> Result:
    ended = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=limit)
    return Result(ended.stdout, ended.stderr, ended.returncode, 0.0)
