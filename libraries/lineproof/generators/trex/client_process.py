"""Starts, asks and ends the client's process (:mod:`.client`). Every wait has a limit."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import time
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

from ...errors import TestbedError
from ...json_text import parse_json
from ...system import children
from ...system.network_namespace import inside
from ...visible import visible_data

MODULE = "lineproof.generators.trex.client"

LONGEST_LINE = 128 << 20
"""Bytes of one answer; the largest are captured frames."""

CLOSE_LIMIT = 5.0
"""Seconds in which it stops the traffic and releases the ports."""


class ClientError(TestbedError):
    """An error that the client's process answered. ``kind`` as in :class:`.service.Refusal`."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class ClientProcess:
    """The running process. It imports its library in the background, which takes 1 to 2 s."""

    def __init__(self, folder: Path | None = None, namespace: str = "") -> None:
        """*folder*: of the client that TRex ships (see :mod:`.client_choice`); None: trex-stl-lib 0.3 of PyPI.

        *namespace*: the network namespace of its server; "": none of its own.
        """
        # in memory: what it prints fills no disk
        self._log = os.fdopen(os.memfd_create("lineproof-client"), "w+b")
        # Its own session: Ctrl-C in the terminal reaches Robot only, which ends this process in order; and the library
        # cannot kill the process group of its parent (see pypi.load_library).
        argv = children.python(MODULE, *([] if folder is None else [str(folder.absolute())]))
        self._process = children.start(
            (*inside(namespace), *argv),
            stdin=children.PIPE,
            stdout=children.PIPE,
            stderr=self._log,
            bufsize=0,
            start_new_session=True,
        )
        self._number = 0
        self._unsent, self._pending = bytearray(), bytearray()
        self._searched = 0
        self._input, self._output = children.pipes(self._process)
        os.set_blocking(self._input.fileno(), False)

    @property
    def pid(self) -> int:
        """The process ID."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Return whether the process runs."""
        return self._process.poll() is None

    def call(self, command: str, limit: float, arguments: Mapping[str, Any] | None = None) -> Any:
        """The answer to *command* within *limit* s. Raises ClientError for an error in the answer.

        If the process has ended or does not answer in time, raises TestbedError and kills it.
        """
        self._number += 1
        until = time.monotonic() + limit
        line = json.dumps({**(arguments or {}), "id": self._number, "command": command}) + "\n"
        self._send(line.encode(), command, until, limit)
        while True:
            try:
                text = self._line(command, until, limit)
                answer = parse_json(text, LONGEST_LINE, strict=False, own=True)
            except ValueError:
                continue  # the rest of an answer whose reading was interrupted
            if b"\\" in text or b"\x7f" in text:
                # else no text in it has a character that JSON escapes
                answer = visible_data(answer)
            if not isinstance(answer, dict) or answer.get("id") != self._number:
                continue  # the answer to an interrupted call
            if "error" in answer:
                raise ClientError(str(answer["error"]["kind"]), str(answer["error"]["message"]))
            return answer["ok"]

    def _send(self, line: bytes, command: str, until: float, limit: float) -> None:
        self._unsent += line  # behind the rest of a line whose sending was interrupted
        try:
            while self._unsent:
                self._wait(self._input, select.POLLOUT, command, until, limit)
                del self._unsent[: os.write(self._input.fileno(), self._unsent[: 1 << 16])]
        except (BrokenPipeError, ValueError) as error:
            raise self._ended(command) from error

    def _line(self, command: str, until: float, limit: float) -> bytes:
        while (end := self._pending.find(b"\n", self._searched)) < 0:
            self._searched = len(self._pending)
            if self._searched > LONGEST_LINE:
                self.kill()
                raise TestbedError(
                    f"the TRex client's process answered '{command}' with more than {LONGEST_LINE >> 20} MB and was"
                    " ended"
                )
            self._wait(self._output, select.POLLIN, command, until, limit)
            chunk = os.read(self._output.fileno(), 1 << 16)
            if not chunk:
                raise self._ended(command)
            self._pending += chunk
        line = bytes(self._pending[:end])
        del self._pending[: end + 1]
        self._searched = 0
        return line

    def _wait(self, stream: IO[bytes], event: int, command: str, until: float, limit: float) -> None:
        """Wait until *stream* is ready; at *until* end the process, even if it is busy writing."""
        poll, left = select.poll(), until - time.monotonic()
        poll.register(stream, event)
        if left <= 0 or not poll.poll(1000 * left):
            self.kill()
            raise TestbedError(f"the TRex client's process did not answer '{command}' within {limit:g} s and was ended")

    def _ended(self, command: str) -> TestbedError:
        with contextlib.suppress(children.TimeoutExpired):
            self._process.wait(1)
        status = self._process.poll()
        self.kill()
        output = f"; its last output: {self._last_output()}" if self._last_output() else ""
        return TestbedError(f"the TRex client's process ended (status {status}) during '{command}'{output}")

    def _last_output(self) -> str:
        if self._log.closed:
            return ""
        self._log.seek(max(0, self._log.seek(0, os.SEEK_END) - 4000))
        lines = self._log.read().decode(errors="replace").strip().splitlines()
        return " / ".join(line.strip() for line in lines[-3:])

    def close(self) -> bool:
        """End it in order within :data:`CLOSE_LIMIT`, then by force. May be repeated.

        Returns whether it released its ports before it ended.
        """
        if self.alive:
            with contextlib.suppress(OSError, ValueError):
                self._input.close()  # it stops the traffic, releases the ports and ends
            with contextlib.suppress(children.TimeoutExpired):
                self._process.wait(CLOSE_LIMIT)
        orderly = self._process.poll() == 0
        self.kill()
        self._log.close()
        return orderly

    def kill(self) -> None:
        """Kill it and wait for its end. May be repeated."""
        if self.alive:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._process.pid, signal.SIGKILL)
            self._process.wait()
        for stream in (self._input, self._output):
            with contextlib.suppress(OSError, ValueError):
                stream.close()
