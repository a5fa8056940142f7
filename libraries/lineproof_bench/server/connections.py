"""The TCP connections of a ZeroMQ socket: one that sends more than a client does is ended.

ZeroMQ bounds a frame, but keeps the frames of one message, and every subscription, for as long as more come. How much a
connection has sent is the kernel's count (``TCP_INFO``, tcp(7)).
"""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import threading
import time

import zmq
from zmq.utils.monitor import recv_monitor_message

PERIOD = 0.1
"""Seconds between two looks, if they take less than a twentieth of that."""

_BYTES_RECEIVED = 128
"""Offset of ``tcpi_bytes_received`` in struct tcp_info (linux/tcp.h)."""


class Connections:
    """The connections of *watched*, listening at *port*. Each may send *most* bytes beyond what was read."""

    def __init__(self, watched: zmq.Socket[bytes], port: int, most: int) -> None:
        self._port, self._most = port, most
        self._events = watched.get_monitor_socket(zmq.EVENT_ACCEPTED | zmq.EVENT_DISCONNECTED | zmq.EVENT_CLOSED)
        self._read: dict[int, int] = {}
        """Bytes of messages that were read, by the connection's file descriptor."""
        self._due = 0.0
        self._ended = threading.Event()
        self._watcher: threading.Thread | None = None

    def watch(self) -> None:
        """Look in a thread of its own until :meth:`close`; nobody else may look then.

        ZeroMQ reads subscriptions within any call, and does not return from it while more come.
        """
        self._watcher = threading.Thread(target=self._watch, name=f"connections of {self._port}", daemon=True)
        self._watcher.start()

    def _watch(self) -> None:
        while not self._ended.wait(max(0.0, self._due - time.monotonic())):
            self.look()

    def note_read(self, descriptor: int, size: int) -> None:
        """A message of *size* bytes was read."""
        if descriptor in self._read:
            self._read[descriptor] += size

    @property
    def due(self) -> float | None:
        """When to look again, in s of ``time.monotonic()``; None: there is no connection."""
        return self._due if self._read else None

    def look(self) -> None:
        """End the connections that have sent too much, if a look is due."""
        began = time.monotonic()
        while self._events.poll(0):
            event = recv_monitor_message(self._events, zmq.NOBLOCK)
            self._read.pop(event["value"], None)
            if event["event"] == zmq.EVENT_ACCEPTED:
                self._read[event["value"]] = 0
        if began < self._due:
            return
        for descriptor in list(self._read):
            self._look_at(descriptor)
        now = time.monotonic()
        self._due = now + max(PERIOD, 20 * (now - began))

    def _look_at(self, descriptor: int) -> None:
        try:
            with contextlib.closing(socket.socket(fileno=os.dup(descriptor))) as link:
                if link.getsockname()[1] != self._port:
                    raise OSError("the connection has gone, and its number is another one's")
                information = link.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _BYTES_RECEIVED + 8)
                (received,) = struct.unpack_from("=Q", information, _BYTES_RECEIVED)
                # headers of frames are not counted: nobody gains by many small ones
                self._read[descriptor] = read = min(received, self._read[descriptor])
                if received - read > self._most:
                    link.shutdown(socket.SHUT_RDWR)
                    del self._read[descriptor]
        except (OSError, struct.error):
            self._read.pop(descriptor, None)

    def close(self) -> None:
        """Look no more."""
        self._ended.set()
        if self._watcher:
            self._watcher.join()
        self._read.clear()
        self._events.close(linger=0)
