"""``python -m lineproof_bench``: a testbed without hardware as one process.

Specification (one JSON line on standard input): ``backend`` model or wire (:class:`.bench.EmbeddedBench`);
``shells``: of the model's router (:func:`.ssh.listening`), or none; ``folder``: the testbed's own, which is
removed at the end. Ready: the server's facts; ``ssh_port`` and ``host_key`` of the shells.
Later lines: ``{"fault": …}``, answered by ``{"ok": true}`` or ``{"error": sentence}``.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import shutil
import sys
from collections.abc import Mapping
from typing import Any

from lineproof.generators.trex.client.__main__ import bulk_import

with bulk_import():
    from lineproof.errors import LineproofError
    from lineproof.system.signals import end_with_parent

    from . import process
    from .bench import EmbeddedBench
    from .server.loop import PortTaken
    from .ssh import listening


async def serve(specification: Mapping[str, Any]) -> None:
    """Serve until the parent goes or a signal ends this process. Raises TestbedError, PortTaken."""
    async with contextlib.AsyncExitStack() as stack:
        bench = _opened(specification)
        serving = asyncio.create_task(bench.serve())
        serving.add_done_callback(_end_if_failed)
        stack.push_async_callback(asyncio.wait, [serving])
        stack.callback(bench.stop)
        facts = bench.facts()
        if specification.get("shells"):
            facts |= await stack.enter_async_context(listening(specification, bench))
        lines = await process.open_input()
        if specification.get("ends_with_parent"):
            end_with_parent()
        process.ready(facts)
        with contextlib.suppress(ValueError):  # a line that is too long ends the process, too
            while line := await lines.readline():
                process.say(_answer(bench, line))
        process.end_soon()
    # while signals are handled, so that none prevents it; after an error the parent quotes the log that is in it
    if folder := specification.get("folder"):
        shutil.rmtree(folder, ignore_errors=True)


def _opened(specification: Mapping[str, Any]) -> EmbeddedBench:
    """Return the bench. Refuses what cannot be opened."""
    try:
        return EmbeddedBench(specification)
    except PortTaken:
        raise
    except Exception as error:
        logging.getLogger("lineproof.server").exception("the backend cannot be opened")
        process.refuse(f"the embedded server cannot open its backend: {error}")


def _end_if_failed(serving: asyncio.Task[None]) -> None:
    """End the process where the server has failed: the parent quotes its log."""
    if not serving.cancelled() and (error := serving.exception()):
        logging.getLogger("lineproof.server").error("the server has failed", exc_info=error)
        os._exit(1)


def _answer(bench: EmbeddedBench, line: bytes) -> dict[str, Any]:
    try:
        bench.cause(json.loads(line)["fault"])
    except (ValueError, KeyError, TypeError) as error:
        return {"error": str(error)[:1000]}
    return {"ok": True}


def main() -> int:
    """Read the specification, serve, end."""
    logging.basicConfig(format="%(asctime)s %(name)s %(levelname)s %(message)s")
    specification = process.read_specification()
    try:
        asyncio.run(serve(specification))
    except (LineproofError, PortTaken) as error:
        process.refuse(str(error))
    return 0


if __name__ == "__main__":
    sys.exit(main())
