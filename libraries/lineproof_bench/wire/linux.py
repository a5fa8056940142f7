"""Requests to the kernel: punctual waking, and one interface's counters over rtnetlink.

Numbers are those of the kernel's UAPI headers (``linux/rtnetlink.h``, ``linux/if_link.h``, ``linux/if.h``).
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import socket
import struct
from typing import NamedTuple

from lineproof.errors import TestbedError
from lineproof.system.network_namespace import run_in_namespace

_PR_SET_TIMERSLACK = 29
_RTM_GETLINK, _NLMSG_ERROR, _NLM_F_REQUEST = 18, 2, 1
_IFLA_MTU, _IFLA_STATS64, _IFLA_CARRIER = 4, 23, 33
_HEADER, _LINK, _ATTRIBUTE = struct.Struct("=IHHII"), struct.Struct("=BxHiII"), struct.Struct("=HH")
_STATS = struct.Struct("=8Q")


def wake_punctually() -> None:
    """Let the calling process and its later threads wake punctually and run before others, if permitted."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_TIMERSLACK, 1, 0, 0, 0)
    with contextlib.suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))


class LinkReading(NamedTuple):
    """One interface at one moment. Bytes are L2 without FCS, counted since the interface was made."""

    rx_packets: int
    tx_packets: int
    rx_bytes: int
    tx_bytes: int
    rx_errors: int
    tx_errors: int
    rx_dropped: int
    tx_dropped: int
    carrier: bool
    mtu: int


class LinkReader:
    """Reads one interface of one namespace over a netlink socket opened there: tens of µs a reading."""

    def __init__(self, netns: str | None, interface: str) -> None:
        def make() -> tuple[socket.socket, int]:
            try:
                index = socket.if_nametoindex(interface)
            except OSError as error:
                where = f"namespace '{netns}'" if netns else "this namespace"
                raise TestbedError(f"there is no interface '{interface}' in {where}") from error
            opened = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, socket.NETLINK_ROUTE)
            opened.settimeout(1.0)
            opened.bind((0, 0))
            return opened, index

        self._interface = interface
        self._socket, self.index = run_in_namespace(netns, make)
        self._sequence = 0

    def read(self) -> LinkReading:
        """The counters now. Raises TestbedError when the interface has gone."""
        self._sequence = (self._sequence + 1) & 0x7FFFFFFF
        body = _LINK.pack(socket.AF_UNSPEC, 0, self.index, 0, 0)
        head = _HEADER.pack(_HEADER.size + len(body), _RTM_GETLINK, _NLM_F_REQUEST, self._sequence, 0)
        try:
            self._socket.send(head + body)
            while True:
                answer = self._socket.recv(65536)
                _, kind, _, sequence, _ = _HEADER.unpack_from(answer)
                if sequence == self._sequence:
                    break
        except OSError as error:
            raise TestbedError(f"the kernel does not give the counters of '{self._interface}': {error}") from error
        if kind == _NLMSG_ERROR:
            number = -struct.unpack_from("=i", answer, _HEADER.size)[0]
            raise TestbedError(f"the interface '{self._interface}' has gone: {os.strerror(number)}")
        return _parse(answer)

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()


def _parse(message: bytes) -> LinkReading:
    end = _HEADER.unpack_from(message)[0]
    at = _HEADER.size + _LINK.size
    stats: tuple[int, ...] = (0,) * 8
    carrier, mtu = True, 1500
    while at + _ATTRIBUTE.size <= end:
        length, kind = _ATTRIBUTE.unpack_from(message, at)
        if length < _ATTRIBUTE.size:
            break
        if kind == _IFLA_STATS64:
            stats = _STATS.unpack_from(message, at + 4)
        elif kind == _IFLA_CARRIER:
            carrier = message[at + 4] == 1
        elif kind == _IFLA_MTU:
            mtu = struct.unpack_from("=I", message, at + 4)[0]
        at += (length + 3) & ~3
    rx_packets, tx_packets, rx_bytes, tx_bytes, rx_errors, tx_errors, rx_dropped, tx_dropped = stats
    return LinkReading(
        rx_packets, tx_packets, rx_bytes, tx_bytes, rx_errors, tx_errors, rx_dropped, tx_dropped, carrier, mtu
    )
