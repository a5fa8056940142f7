"""Starts, asks and ends the client's process (:mod:`.client`). Every wait has a limit."""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...errors import TestbedError
from ...system import children
from ...system.network_namespace import inside
from ...visible import visible_data
from .client.service import read_message

MODULE = "lineproof.generators.trex.client"

CLOSE_LIMIT = 5.0
"""Seconds in which it stops the traffic and releases the ports."""


class ClientError(TestbedError):
    """An error that the client's process answered. ``kind`` as in :class:`.service.Refusal`."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class ClientProcess(children.Child):
    """The running process. It imports its library in the background, which takes 1 to 2 s."""

    def __init__(self, folder: Path | None = None, namespace: str = "") -> None:
        """*folder*: of the client that TRex ships (see :mod:`.clients`); None: trex-stl-lib 0.3 of PyPI.

        *namespace*: the network namespace of its server; "": none of its own.
        """
        # in memory: what it prints fills no disk
        self._log = os.fdopen(os.memfd_create("lineproof-client"), "w+b")
        # In a session of its own the library cannot kill the process group of its parent (see pypi.load_library).
        argv = children.python(MODULE, *([] if folder is None else [str(folder.absolute())]))
        self._number = 0
        super().__init__((*inside(namespace), *argv), stderr=self._log)

    def call(self, command: str, limit: float, arguments: Mapping[str, Any] | None = None) -> Any:
        """Return the answer to *command* within *limit* s. Raises ClientError for an error in the answer.

        If the process has ended or does not answer in time, raises TestbedError and kills it.
        """
        self._number += 1
        until = time.monotonic() + limit
        message = {**(arguments or {}), "id": self._number, "command": command}
        answer: dict[str, Any] = {}
        try:
            self.send(json.dumps(message))
            while answer.get("id") != self._number:  # an answer to an interrupted call
                text = self.line(until - time.monotonic())
                answer = read_message(text)
        except TimeoutError:
            self._end_now()
            timed_out = f"the TRex client's process did not answer '{command}' within {limit:g} s and was ended"
            raise TestbedError(timed_out) from None
        except (EOFError, ValueError) as error:
            raise self._ended(command) from error
        if b"\\" in text or b"\x7f" in text:
            # else no text in it has a character that JSON escapes
            answer = visible_data(answer)
        if "error" in answer:
            raise ClientError(str(answer["error"]["kind"]), str(answer["error"]["message"]))
        return answer["ok"]

    def _ended(self, command: str) -> TestbedError:
        with contextlib.suppress(children.TimeoutExpired):
            self.wait(1)
        status, last = self.poll(), ""
        self._end_now()
        if not self._log.closed:
            self._log.seek(max(0, self._log.seek(0, os.SEEK_END) - 4000))
            lines = self._log.read().decode(errors="replace").strip().splitlines()
            last = " / ".join(line.strip() for line in lines[-3:])
        output = f"; its last output: {last}" if last else ""
        return TestbedError(f"the TRex client's process ended (status {status}) during '{command}'{output}")

    def close(self) -> bool:
        """End it in order within :data:`CLOSE_LIMIT`, then by force. May be repeated.

        Returns whether it released its ports before it ended.
        """
        self.end(CLOSE_LIMIT)  # it stops the traffic, releases the ports and ends
        self._log.close()
        return self.returncode == 0

    def _end_now(self) -> None:
        """Kill it and wait for its end. May be repeated."""
        self.kill_all()
        self.end(children.KILL_LIMIT)
