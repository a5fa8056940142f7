"""A TCP port of this machine that leads to one inside a network namespace, which needs no address for it."""

from __future__ import annotations

import contextlib
import socket
import threading

from ...system.network_namespace import run_in_namespace

HOST = "127.0.0.1"

CONNECT_LIMIT = 2.0
"""Seconds to connect within the namespace."""


def connect_within(namespace: str | None, port: int) -> socket.socket:
    """A connection to *port* within *namespace*. Raises OSError."""
    found = run_in_namespace(namespace, lambda: socket.create_connection((HOST, port), CONNECT_LIMIT))
    found.settimeout(None)
    found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return found


class Relay:
    """Listens on 127.0.0.1 at *port* (0: a free one) as soon as it is made. Raises OSError where that is taken."""

    def __init__(self, namespace: str | None, target: int, port: int = 0) -> None:
        self._namespace, self._target = namespace, target
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._listener = socket.create_server((HOST, port))
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self._listener.getsockname()[1])

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        try:
            server = connect_within(self._namespace, self._target)
        except Exception:  # no server: the client sees its connection end
            client.close()
            return
        with self._lock:
            self._open |= {client, server}
        back = threading.Thread(target=_copy, args=(server, client), daemon=True)
        back.start()
        _copy(client, server)
        back.join()
        with self._lock:
            self._open -= {client, server}
        for end in (client, server):
            end.close()

    def close(self) -> None:
        """End the listening and every connection."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        with self._lock:
            ends = list(self._open)
        for end in ends:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


def _copy(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
    # one end closes both
    for end in (source, target):
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
