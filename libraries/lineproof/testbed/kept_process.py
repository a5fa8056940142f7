"""One process that a keeper keeps: its start, its ready line, its request for a restart, its end."""

from __future__ import annotations

import contextlib
import json
import os
import select
import socket
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..json_text import parse_json
from ..system import children
from .keeper_plan import ProcessPlan, resolve
from .kept_logs import log_end

LONGEST_LINE = 1 << 20
"""Bytes of an unfinished line that are kept."""


class SetupFailed(Exception):
    """The testbed cannot be set up; the message is one sentence."""


@dataclass(frozen=True, slots=True)
class RestartRequest:
    """A process asks to be started again ``after`` s once it ends; ``specification`` replaces keys of its own one."""

    after: float
    specification: Mapping[str, Any]


class KeptProcess:
    """One process of the testbed."""

    def __init__(self, plan: ProcessPlan, facts: Mapping[str, Mapping[str, Any]]) -> None:
        self.plan = plan
        self.reported = False
        self._ready_line: bytes | None = None
        self._partial = b""
        self.restart: RestartRequest | None = None
        """From its line ``{"again": {"after": s, "specification": {…}}}`` after the ready line."""
        try:
            argv = [str(word) for word in resolve(plan.argv, facts)]
            spec = resolve(plan.spec, facts)
        except KeyError as error:
            raise SetupFailed(
                f"the plan of '{plan.name}' refers to {error}, which no process before it has reported"
            ) from None
        with contextlib.ExitStack() as stack:
            log = stack.enter_context(open(plan.log, "ab", opener=lambda path, flags: os.open(path, flags, 0o600)))
            try:
                self.popen = children.start(
                    [*_die_with_parent(), *argv],
                    stdin=children.DEVNULL if spec is None else children.PIPE,
                    stdout=children.PIPE if plan.ready == "json" else log,
                    stderr=log,
                    env=children.environment(plan.env),
                    bufsize=0,
                )
            except OSError as error:
                raise SetupFailed(f"'{plan.name}' cannot be started: {argv[0]}: {error.strerror}") from None
        if self.popen.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self.popen.stdin.write(json.dumps(spec).encode() + b"\n")

    @property
    def descriptor(self) -> int | None:
        """The file descriptor of its output; None once that has ended."""
        out = self.popen.stdout
        return None if out is None or out.closed else out.fileno()

    def read(self) -> None:
        """Read what is there; waits where nothing is."""
        out = self.popen.stdout
        if out is None or out.closed:
            return
        received = os.read(out.fileno(), 65536)
        if not received:
            out.close()
            return
        # everything is read, so that the process never blocks on a full pipe
        *lines, rest = (self._partial + received).split(b"\n")
        # one byte more marks a line as too long
        self._partial = rest[: LONGEST_LINE + 1]
        for line in lines:
            if self._ready_line is None:
                self._ready_line = line
            else:
                self._read_request(line)

    def read_rest(self) -> None:
        """Read the rest of the output of a process that has ended."""
        while self.descriptor is not None and select.select([self.descriptor], [], [], 0)[0]:
            self.read()

    def _read_request(self, line: bytes) -> None:
        with contextlib.suppress(ValueError, KeyError, TypeError):
            found = parse_json(line, LONGEST_LINE, own=True)["again"]
            self.restart = RestartRequest(max(0.0, float(found["after"])), dict(found["specification"]))

    def restart_plan(self) -> ProcessPlan:
        """The plan of the process that takes this one's place."""
        more = self.restart.specification if self.restart else {}
        return replace(self.plan, spec={**(self.plan.spec or {}), **more})

    def ready(self) -> Mapping[str, Any] | None:
        """The facts of its ready line; None before that. Raises SetupFailed when the process reports an error."""
        name = self.plan.name
        if self.plan.ready != "json":
            host, port = self.plan.ready
            with contextlib.suppress(OSError), socket.create_connection((host, port), 0.2):
                # if another process has the port, this one has ended or will end
                return None if self.popen.poll() is not None else {}
            return None
        line = self._ready_line
        if line is None:
            return None
        try:
            data = parse_json(line, LONGEST_LINE, own=True)
            if "error" in data:
                raise SetupFailed(str(data["error"]))
            if data["ready"] is True:
                return {key: value for key, value in data.items() if key != "ready"}
        except (ValueError, KeyError, TypeError):
            pass
        raise SetupFailed(f"'{name}' wrote something that is no ready line: {line[:200].decode(errors='replace')!r}")

    def log_end(self) -> str:
        """The end of its log for messages, and where all of it stays; see :func:`.kept_logs.log_end`."""
        return log_end(Path(self.plan.log))

    def request_end(self) -> None:
        """Ask it to end: by the end of its input if it has one, else by SIGTERM."""
        if self.popen.stdin is None:
            self.popen.terminate()
        else:
            with contextlib.suppress(OSError):
                self.popen.stdin.close()

    def ends_within(self, seconds: float) -> bool:
        """Whether it ends within *seconds*."""
        with contextlib.suppress(children.TimeoutExpired):
            self.popen.wait(max(0.0, seconds))
        return self.popen.returncode is not None


def _die_with_parent() -> list[str]:
    """The prefix that kills a process when its keeper is killed: not every process watches its input."""
    setpriv = children.find_program("setpriv")
    return [setpriv, "--pdeathsig", "KILL", "--"] if setpriv and sys.platform == "linux" else []
