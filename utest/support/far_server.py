"""A long way to a server: a TCP proxy that keeps what it gets for a while, in both directions."""

from __future__ import annotations

import asyncio
import random
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager


@contextmanager
def far(*ports: int, round_trip: float = 0.04, jitter: float = 0.0) -> Iterator[list[int]]:
    """Ports of this machine that lead to *ports*; an answer comes *round_trip* s later, or up to *jitter* s more."""
    with ExitStack() as stack:
        yield [stack.enter_context(_way(port, round_trip / 2, jitter / 2)) for port in ports]


@contextmanager
def _way(port: int, delay: float, jitter: float) -> Iterator[int]:
    loop, ready, entrance = asyncio.new_event_loop(), threading.Event(), list[int]()
    pumps = set[asyncio.Task[None]]()

    async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        due, waiting = 0.0, deque[bytes]()
        while data := await reader.read(1 << 16):
            # bytes keep their order; calls of the same moment do not
            due = max(due, loop.time() + delay + random.uniform(0, jitter))
            waiting.append(data)
            loop.call_at(due, lambda: writer.write(waiting.popleft()))
        loop.call_at(loop.time() + delay + jitter, writer.close)

    async def connect(near: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
        there, on = await asyncio.open_connection("127.0.0.1", port)
        pumps.update(asyncio.create_task(carry(*pair)) for pair in ((near, on), (there, back)))

    async def serve() -> None:
        server = await asyncio.start_server(connect, "127.0.0.1", 0)
        entrance.append(server.sockets[0].getsockname()[1])
        ready.set()

    def run() -> None:
        asyncio.set_event_loop(loop)
        loop.run_until_complete(serve())
        loop.run_forever()
        for pump in pumps:
            pump.cancel()
        loop.run_until_complete(asyncio.gather(*pumps, return_exceptions=True))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    ready.wait(5)
    try:
        yield entrance[0]
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(5)
