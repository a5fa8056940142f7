"""A TCP port of this machine that leads to one inside a network namespace: its only way out without an address."""

from __future__ import annotations

import contextlib
import socket
import threading

from ...system.network_namespace import run_in_namespace

HOST = "127.0.0.1"

CONNECT_LIMIT = 2.0
"""Seconds for a connection within the namespace."""


def reach(namespace: str, port: int) -> socket.socket:
    """A connection to *port* within *namespace*. Raises OSError."""
    found = run_in_namespace(namespace, lambda: socket.create_connection((HOST, port), CONNECT_LIMIT))
    found.settimeout(None)
    found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return found


class Relay:
    """Listens on 127.0.0.1 at *port* (0: a free one) as soon as it is made. Raises OSError where that is taken."""

    def __init__(self, namespace: str, target: int, port: int = 0) -> None:
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
                near, _ = self._listener.accept()
            except OSError:
                return
            near.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self._serve, args=(near,), daemon=True).start()

    def _serve(self, near: socket.socket) -> None:
        try:
            far = reach(self._namespace, self._target)
        except Exception:  # nobody there: the caller sees its connection end
            near.close()
            return
        with self._lock:
            self._open |= {near, far}
        back = threading.Thread(target=_pass_on, args=(far, near), daemon=True)
        back.start()
        _pass_on(near, far)
        back.join()
        with self._lock:
            self._open -= {near, far}
        for end in (near, far):
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


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while said := source.recv(65536):
            target.sendall(said)
    # a dead end is one for both
    for end in (source, target):
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
