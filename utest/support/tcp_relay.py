"""A TCP port that passes everything on to another one, until its connections are cut."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator


class TcpRelay:
    """To *target* of this machine. ``port``: its own."""

    def __init__(self, target: int) -> None:
        self._target, self._ends = target, list[socket.socket]()
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._server.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """End all connections."""
        ends, self._ends = self._ends, []
        for end in ends:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Take no further ones."""
        with contextlib.suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        self.cut()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._server.accept()
                far = socket.create_connection(("127.0.0.1", self._target), 10)
                self._ends += [near, far]
                for pair in ((near, far), (far, near)):
                    threading.Thread(target=_pump, args=pair, daemon=True).start()


def _pump(source: socket.socket, sink: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(1 << 16):
            sink.sendall(data)
    for end in (source, sink):
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)


@contextlib.contextmanager
def relay(target: int) -> Iterator[TcpRelay]:
    """A :class:`TcpRelay` until the context ends."""
    found = TcpRelay(target)
    try:
        yield found
    finally:
        found.close()
