"""How every process of the embedded bench begins and ends.

It gets its specification as one JSON line on standard input, answers with one JSON line on standard output
(``{"ready": true, …}`` or ``{"error": "sentence"}``), and ends when standard input ends: so a killed parent leaves
no child.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import resource
import signal
import sys
import threading
from collections.abc import Mapping
from typing import Any, NoReturn

END_LIMIT = 3.0
"""Seconds that an orderly end may take before the process ends itself regardless."""

LARGEST_LINE = 1 << 20
"""Bytes of a line that the parent writes."""


def read_specification() -> dict[str, Any]:
    """Return the one JSON object that the parent writes first.

    From here on the process may have as many open files as its user may: connections of others do not use them up.
    """
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    line = bytearray()
    # byte by byte: what follows the line is read by open_input()
    while not line.endswith(b"\n"):
        byte = os.read(0, 1)
        if not byte:
            raise SystemExit(1)
        line += byte
    found: dict[str, Any] = json.loads(line)
    return found


def ready(facts: Mapping[str, Any]) -> None:
    """Report to the parent that service has begun."""
    say({"ready": True, "pid": os.getpid(), **facts})


def refuse(sentence: str) -> NoReturn:
    """Report to the parent why it cannot begin, then end with status 1."""
    say({"error": sentence})
    raise SystemExit(1)


def say(data: Mapping[str, Any]) -> None:
    """Write one JSON line to the parent, if it still reads."""
    with contextlib.suppress(OSError):
        sys.stdout.write(json.dumps(data) + "\n")
        sys.stdout.flush()


async def open_input() -> asyncio.StreamReader:
    """Return what gives the parent's lines, and ends when the parent has gone or SIGTERM, SIGHUP or SIGQUIT comes.

    SIGINT is left to the parent, which stops its children in order.
    """
    loop, reader = asyncio.get_running_loop(), asyncio.StreamReader(LARGEST_LINE)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        loop.add_signal_handler(number, reader.feed_eof)
    return reader


def end_soon() -> None:
    """End this process after END_LIMIT s, whatever it does until then."""
    watchdog = threading.Timer(END_LIMIT, os._exit, (1,))
    watchdog.daemon = True
    watchdog.start()
