"""One process that a keeper keeps: started as planned, its ready line, its last word, its end."""

from __future__ import annotations

import contextlib
import json
import os
import re
import select
import shutil
import socket
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from .keeper_plan import ProcessPlan, resolve

TAIL = 600
"""Characters of a log that an error quotes."""

LINES = 6
"""Lines of it at most."""

LONGEST = 1 << 20
"""Bytes of a line of a process that are still taken in."""

_WORD = re.compile(r"[A-Za-z]{3}")


class Failed(Exception):
    """The testbed cannot be set up: one sentence."""


@dataclass(frozen=True, slots=True)
class Again:
    """A process's last word: start it again ``after`` s, with ``specification`` put into the one that it had."""

    after: float
    specification: Mapping[str, Any]


class Child:
    """One process of the testbed."""

    def __init__(self, plan: ProcessPlan, facts: Mapping[str, Mapping[str, Any]]) -> None:
        self.plan = plan
        self.reported = False
        self._first: bytes | None = None
        self._rest = b""
        self.again: Again | None = None
        """What it asked for in a line ``{"again": {"after": s, "specification": {…}}}`` after its ready line."""
        try:
            argv = [str(word) for word in resolve(plan.argv, facts)]
            spec = resolve(plan.spec, facts)
            environment = {**os.environ, **{key: str(value) for key, value in resolve(plan.env, facts).items()}}
        except KeyError as error:
            raise Failed(f"the plan of '{plan.name}' refers to {error}, which no process before it has said") from None
        with contextlib.ExitStack() as stack:
            log = stack.enter_context(open(plan.log, "ab", opener=lambda path, flags: os.open(path, flags, 0o600)))
            try:
                self.process = subprocess.Popen(
                    [*_die_with_parent(), *argv],
                    stdin=subprocess.DEVNULL if spec is None else subprocess.PIPE,
                    stdout=subprocess.PIPE if plan.ready == "json" else log,
                    stderr=log,
                    env=environment,
                    bufsize=0,
                )
            except OSError as error:
                raise Failed(f"'{plan.name}' cannot be started: {argv[0]}: {error.strerror}") from None
        if self.process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self.process.stdin.write(json.dumps(spec).encode() + b"\n")

    @property
    def descriptor(self) -> int | None:
        """Where to read what the process says."""
        out = self.process.stdout
        return None if out is None or out.closed else out.fileno()

    def read(self) -> None:
        """Take what can be read."""
        out = self.process.stdout
        if out is None or out.closed:
            return
        said = os.read(out.fileno(), 65536)
        if not said:
            out.close()
            return
        # all that comes is taken, so that the process never blocks on it
        *lines, rest = (self._rest + said).split(b"\n")
        self._rest = rest[-LONGEST:]
        for line in lines:
            if self._first is None:
                self._first = line
            else:
                self._hear(line)

    def read_all(self) -> None:
        """Take all that a process which has ended left to read."""
        while self.descriptor is not None and select.select([self.descriptor], [], [], 0)[0]:
            self.read()

    def _hear(self, line: bytes) -> None:
        with contextlib.suppress(ValueError, KeyError, TypeError):
            found = json.loads(line)["again"]
            self.again = Again(max(0.0, float(found["after"])), dict(found["specification"]))

    def successor(self) -> ProcessPlan:
        """The plan of what is to take this process's place."""
        more = self.again.specification if self.again else {}
        return replace(self.plan, spec={**(self.plan.spec or {}), **more})

    def ready(self) -> Mapping[str, Any] | None:
        """What the process says of itself once it is ready; None until then. Raises Failed when it refuses."""
        name = self.plan.name
        if self.plan.ready != "json":
            host, port = self.plan.ready
            with contextlib.suppress(OSError), socket.create_connection((host, port), 0.2):
                # somebody else may hold the port: then ours has ended or is about to
                return None if self.process.poll() is not None else {}
            return None
        line = self._first
        if line is None:
            return None
        try:
            data = json.loads(line)
            if "error" in data:
                raise Failed(str(data["error"]))
            if data["ready"] is True:
                return {key: value for key, value in data.items() if key != "ready"}
        except (ValueError, KeyError, TypeError):
            pass
        raise Failed(f"'{name}' said something that is no ready line: {line[:200].decode(errors='replace')!r}")

    def tail(self) -> str:
        """The end of its log, for a person, in one line."""
        with contextlib.suppress(OSError):
            lines = Path(self.plan.log).read_text(encoding="utf-8", errors="replace").splitlines()
            # without what only underlines
            said = [words for line in lines if _WORD.search(words := " ".join(line.split()))]
            text = "; ".join(said[-LINES:])
            return text if len(text) <= TAIL else "…" + text[-TAIL:]
        return ""

    def ask_to_end(self) -> None:
        """The order to end that this process understands."""
        if self.process.stdin is None:
            self.process.terminate()
        else:
            with contextlib.suppress(OSError):
                self.process.stdin.close()

    def gone_within(self, seconds: float) -> bool:
        """Whether it ends within *seconds*."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(max(0.0, seconds))
        return self.process.returncode is not None


def _die_with_parent() -> list[str]:
    """The wrapper that has a process killed when its keeper is: for those that do not watch standard input."""
    setpriv = shutil.which("setpriv")
    return [setpriv, "--pdeathsig", "KILL", "--"] if setpriv and sys.platform == "linux" else []
