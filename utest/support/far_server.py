"""A way to a server of this machine, on which bytes take their time and links can be cut."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import deque
from collections.abc import Coroutine, Iterator
from contextlib import ExitStack, closing, contextmanager
from typing import Any


class TcpRelay:
    """From ``port`` of this machine to *target*, with *delay* s in each direction."""

    def __init__(self, target: int, delay: float = 0.0) -> None:
        self._target, self._delay = target, delay
        self._links = set[asyncio.StreamWriter]()
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        self._server = self._run(asyncio.start_server(self._connect, "127.0.0.1", 0))
        self.port: int = self._server.sockets[0].getsockname()[1]

    def close(self) -> None:
        """Take no further ones."""
        self._server.close()
        self._run(self._cut())
        self._loop.call_soon_threadsafe(self._loop.stop)

    def _run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(20)

    async def _cut(self) -> None:
        for link in self._links:
            link.transport.abort()
        self._links.clear()
        # those who carry see it
        await asyncio.sleep(self._delay + 0.05)

    async def _connect(self, near: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
        self._links.add(back)
        with contextlib.suppress(OSError):
            there, on = await asyncio.open_connection("127.0.0.1", self._target)
            self._links.add(on)
            await asyncio.gather(self._carry(near, on), self._carry(there, back))
        back.close()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        waiting = deque[bytes]()
        with contextlib.suppress(OSError):
            while data := await reader.read(1 << 16):
                # bytes keep their order; calls of the same moment do not
                waiting.append(data)
                self._loop.call_later(self._delay, lambda: writer.write(waiting.popleft()))
        await asyncio.sleep(self._delay + 0.001)
        writer.close()


@contextmanager
def far(*ports: int) -> Iterator[list[int]]:
    """Ports of this machine that lead to *ports*; an answer comes 40 ms later."""
    with ExitStack() as stack:
        yield [stack.enter_context(closing(TcpRelay(port, 0.02))).port for port in ports]
