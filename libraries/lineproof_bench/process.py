"""How every process of the embedded bench begins and ends.

It gets its specification as one JSON line on standard input, answers with one JSON line on standard output
(``{"ready": true, …}`` or ``{"error": "sentence"}``), and ends when standard input ends: so a killed parent leaves
no child. SIGTERM, SIGHUP and SIGQUIT end it too; SIGINT is left to the parent, which stops its children in order.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from typing import Any

END_LIMIT = 3.0
"""Seconds that an orderly end may take before the process ends itself regardless."""


def read_specification() -> dict[str, Any]:
    """The one JSON object that the parent writes first.

    From here on the process may have as many open files as its user may: connections of others do not use them up.
    """
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    line = sys.stdin.readline()
    if not line:
        raise SystemExit(1)
    found: dict[str, Any] = json.loads(line)
    return found


def ready(facts: Mapping[str, Any]) -> None:
    """Report to the parent that service has ending."""
    _send({"ready": True, "pid": os.getpid(), **facts})


def refuse(sentence: str) -> None:
    """Report to the parent why it cannot begin, then end with status 1."""
    _send({"error": sentence})
    raise SystemExit(1)


def _send(data: Mapping[str, Any]) -> None:
    with contextlib.suppress(BrokenPipeError):
        sys.stdout.write(json.dumps(data) + "\n")
        sys.stdout.flush()


def on_end(stop: Callable[[], None]) -> None:
    """Call *stop* once, from another thread, when the parent has gone or a signal ends it; by force after END_LIMIT."""
    ending = threading.Event()

    def end() -> None:
        if ending.is_set():
            return
        ending.set()
        watchdog = threading.Timer(END_LIMIT, os._exit, (1,))
        watchdog.daemon = True
        watchdog.start()
        stop()

    def watch() -> None:
        with contextlib.suppress(OSError, ValueError):
            while os.read(0, 4096):
                pass
        end()

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, lambda *_: threading.Thread(target=end, daemon=True).start())
    threading.Thread(target=watch, daemon=True, name="parent-watch").start()
