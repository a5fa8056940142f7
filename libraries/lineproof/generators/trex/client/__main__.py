"""The process that runs TRex's Python client: trex-stl-lib 0.3 of PyPI, or the client that a server ships.

Run as ``python -m lineproof.generators.trex.client [FOLDER]`` in its own session; FOLDER has the client that TRex ships
(see :mod:`.shipped`). Protocol: :mod:`.service`. It stops its traffic and releases its ports before it ends.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import sys
import threading
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TextIO

from ....system.imports import bulk_import
from .answers import plain_message
from .library import ClientLibrary
from .running_traffic import RunningTraffic
from .service import Refusal, read_message

END_LIMIT = 3.0
"""Seconds for an orderly end, before the process ends itself in any case."""

UNEXPECTED = (TypeError, LookupError, ValueError, AttributeError, ArithmeticError)
"""Errors of whoever reads an answer that has another form than a TRex server's."""

CONNECTION = ("connect", "ports", "acquire")
"""Commands about the connection; all others are about traffic."""


class ClientService:
    """Reads commands, runs them one by one and answers, until the end."""

    def __init__(self, server: ClientLibrary, output: TextIO) -> None:
        self._server, self._traffic, self._output = server, RunningTraffic(server, self._announce), output
        self._number: Any = None
        self._commands: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()

    def end(self, *_: object) -> None:
        """Begin the orderly end, with a time limit. For any thread and for signals."""
        watchdog = threading.Timer(END_LIMIT, os._exit, (1,))
        watchdog.daemon = True
        watchdog.start()
        self._server.cancelled.set()
        self._commands.put(None)

    def read(self) -> None:
        """Read commands until standard input ends."""
        with contextlib.suppress(OSError, ValueError):
            for line in sys.stdin:
                message = read_message(line)
                if message.get("command") == "stop":
                    self._server.cancelled.set()
                self._commands.put(message)
        self.end()

    def serve(self) -> None:
        """Answer each command, until the end."""
        while (message := self._commands.get()) is not None:
            self._number, command = message.pop("id", None), str(message.pop("command", ""))
            try:
                self._say(ok=self._run(command, message))
            except Refusal as error:
                self._server.lost |= error.kind == "lost"
                self._say(error={"kind": error.kind, "message": str(error)})
            except Exception as error:  # every request gets an answer
                kind, text = "internal", f"{command}: {type(error).__name__}: {error}"
                if isinstance(error, UNEXPECTED):
                    kind = "refused"
                    text = f"its answer is not a TRex server's, or not understood: {plain_message(error)}"
                traceback.print_exc()
                self._say(error={"kind": kind, "message": text})

    def _say(self, **content: Any) -> None:
        text = json.dumps({"id": self._number, **content}, allow_nan=False, default=vars)
        with contextlib.suppress(BrokenPipeError):  # if the driver is gone, the end of standard input follows
            print(text, file=self._output, flush=True)

    def _announce(self, asked: float) -> None:
        self._say(sending=asked)

    def _run(self, command: str, arguments: Mapping[str, Any]) -> Any:
        owner = self._server if command in CONNECTION else self._traffic
        return getattr(owner, command)(**arguments)


def _library() -> ClientLibrary:
    """Return the client of the folder that this process is given, or PyPI's. Only one of them is imported."""
    if sys.argv[1:]:
        from .shipped import ShippedLibrary

        return ShippedLibrary(Path(sys.argv[1]))
    from .pypi import PypiLibrary

    return PypiLibrary()


def main() -> None:
    """Serve until the end."""
    # The libraries print: only the protocol may use the real standard output.
    output = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the libraries send it to their own process
    server = _library()
    service = ClientService(server, output)
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, service.end)
    threading.Thread(target=service.read, daemon=True, name="commands").start()
    with bulk_import(), contextlib.suppress(Refusal):
        _ = server.library  # before the first command, which reports its failure
    service.serve()
    released = server.close()
    sys.stderr.flush()
    os._exit(0 if released else 1)  # does not wait for the library's threads


if __name__ == "__main__":
    main()
