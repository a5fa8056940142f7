"""``python -m lineproof_bench``: a testbed without hardware as one process.

Specification (one JSON line on standard input): ``backend`` model or wire (:class:`.bench.EmbeddedBench`);
``shells``: of the model's router (:func:`.shells.server.listening`), or none; ``folder``: the testbed's own, which is
removed at the end. It answers with one JSON line on standard output: ``{"ready": true, …}`` with the server's facts,
``ssh_port`` and ``host_key`` of the shells, or ``{"error": sentence}``. Later lines: ``{"fault": …}``, answered by
``{"ok": true}`` or ``{"error": sentence}``. It ends when standard input ends: so a killed parent leaves no child.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import resource
import shutil
import signal
import sys
import threading
from collections.abc import Mapping
from typing import Any

from lineproof.system.imports import bulk_import

with bulk_import():
    from lineproof.system.signals import end_with_parent

    from .bench import EmbeddedBench
    from .server.loop import PortTaken
    from .shells.server import listening

END_LIMIT = 3.0
"""Seconds that an orderly end may take before the process ends itself regardless."""
LARGEST_LINE = 1 << 24
"""Bytes of a line that the parent writes."""

log = logging.getLogger("lineproof.server")


async def serve() -> None:
    """Serve as the parent's first line says until the parent goes or a signal ends this process."""
    lines = await _open_input()
    specification = json.loads(await lines.readline() or "null")
    if specification is None:
        return
    async with contextlib.AsyncExitStack() as stack:
        bench = _opened(specification)
        serving = asyncio.create_task(bench.serve())
        serving.add_done_callback(_end_if_failed)
        stack.push_async_callback(asyncio.wait, [serving])
        stack.callback(bench.stop)
        facts = bench.facts()
        if specification.get("shells"):
            facts |= await stack.enter_async_context(listening(specification, lambda: bench.router))
        if specification.get("ends_with_parent"):
            end_with_parent()
        _say({"ready": True, "pid": os.getpid(), **facts})
        with contextlib.suppress(ValueError):  # a line that is too long ends the process, too
            while line := await lines.readline():
                _say(_answer(bench, line))
        watchdog = threading.Timer(END_LIMIT, os._exit, (1,))
        watchdog.daemon = True
        watchdog.start()
    # while signals are handled, so that none prevents it; after an error the parent quotes the log that is in it
    if folder := specification.get("folder"):
        shutil.rmtree(folder, ignore_errors=True)


def _opened(specification: Mapping[str, Any]) -> EmbeddedBench:
    """Return the bench; say why and end the process where it cannot be opened."""
    try:
        return EmbeddedBench(specification)
    except PortTaken as error:
        reason = str(error)
    except Exception as error:
        log.exception("the backend cannot be opened")
        reason = f"the embedded server cannot open its backend: {error}"
    _say({"error": reason})
    raise SystemExit(1)


def _end_if_failed(serving: asyncio.Task[None]) -> None:
    """End the process where the server has failed: the parent quotes its log."""
    if not serving.cancelled() and (error := serving.exception()):
        log.error("the server has failed", exc_info=error)
        os._exit(1)


def _answer(bench: EmbeddedBench, line: bytes) -> dict[str, Any]:
    try:
        bench.cause(json.loads(line)["fault"])
    except (ValueError, KeyError, TypeError) as error:
        return {"error": str(error)[:1000]}
    return {"ok": True}


async def _open_input() -> asyncio.StreamReader:
    """Return what gives the parent's lines, and ends when the parent has gone or SIGTERM, SIGHUP or SIGQUIT comes.

    SIGINT is left to the parent, which stops its children in order.
    """
    loop, reader = asyncio.get_running_loop(), asyncio.StreamReader(LARGEST_LINE)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        loop.add_signal_handler(number, reader.feed_eof)
    return reader


def _say(data: Mapping[str, Any]) -> None:
    """Write one JSON line to the parent, if it still reads."""
    with contextlib.suppress(OSError):
        sys.stdout.write(json.dumps(data) + "\n")
        sys.stdout.flush()


def main() -> int:
    """Read the specification, serve, end."""
    logging.basicConfig(format="%(asctime)s %(name)s %(levelname)s %(message)s")
    # connections of others do not use up its open files
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    asyncio.run(serve())
    return 0


if __name__ == "__main__":
    sys.exit(main())
