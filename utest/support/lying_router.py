"""A router that lies about the frames it forwards: a program, and a context that runs it for tests.

``lying_router.py IN OUT LIE [every=50 …]`` forwards IP between the interfaces IN and OUT of its namespace in the
kernel's place, from the line that it prints until its standard input ends. It takes one off the TTL, and addresses
frames to the first neighbour that the kernel knows at the other interface. The kernel drops IP as it arrives, which
nothing counts (nftables). VLAN tags are lost. A suite starts it by `Run On Router`, in the background, as
``tail -f /dev/null | python3 lying_router.py … >/dev/null 2>&1 &``.
"""

from __future__ import annotations

import json
import math
import os
import select
import socket
import struct
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lineproof.system.network_namespace import inside

if TYPE_CHECKING:
    from lineproof.testbed.opening import OpenTestbed

Send = Callable[[bytes | bytearray], object]
IPV4, IPV6 = b"\x08\x00", b"\x86\xdd"
SOL_PACKET, IGNORE_OUTGOING, RCVBUFFORCE, ALL_PROTOCOLS = 263, 23, 33, 3
WINDOW = 0.1
"""Seconds over which the load is taken."""


@dataclass
class Direction:
    """Frames that arrive by one interface. ``on``, ``back``: destination and source of frames that leave, and by what.

    ``lie``: what becomes of frames that all limits choose: those from ``port`` (0: IN), of ``size`` bytes with FCS, of
    the ``flow`` with this number in the order of first frames; while more than ``above`` frames/s come; no latency
    frames where they are to ``spare``; of these each ``every``-th. ``hold``: s for which late ones are held.
    """

    number: int
    on: tuple[bytes, Send]
    back: tuple[bytes, Send]
    lie: str
    port: int | None = None
    size: int | None = None
    flow: int | None = None
    above: float = 0.0
    spare: bool = False
    every: int = 1
    hold: float = 0.05
    held: deque[tuple[float, bytes]] = field(default_factory=deque)
    chosen: int = 0
    flows: dict[bytes, int] = field(default_factory=dict)
    cached: bytes = b""
    window: tuple[int, int, int] = (0, 0, 0)
    """The present one's number, its frames, and those of the one before."""

    def forward(self, frame: bytes, now: float) -> None:
        """Send on what arrived *now*, by the monotonic clock."""
        routed = bytearray(self.on[0] + frame[12:])
        lies = self._is_chosen(frame, now)
        if route(routed):
            for sent in LIES[self.lie](self, routed) if lies else (routed,):
                self.on[1](sent)

    def release(self, now: float) -> float:
        """Send on the late frames that are due; returns when the next one is."""
        while self.held and self.held[0][0] <= now:
            self.on[1](self.held.popleft()[1])
        return self.held[0][0] if self.held else math.inf

    def flow_of(self, frame: bytes | bytearray) -> int:
        """Return the number of *frame*'s flow: addresses and ports."""
        return self.flows.setdefault(bytes(frame[26:38] if is_ipv4(frame) else frame[22:58]), len(self.flows))

    def _is_chosen(self, frame: bytes, now: float) -> bool:
        number, frames, before = self.window
        if (here := int(now / WINDOW)) != number:
            number, frames, before = here, 0, frames if here == number + 1 else 0
        self.window = number, frames + 1, before
        wanted = (self.port, self.size, self.flow, False if self.spare else None)
        limited = zip(wanted, (self.number, len(frame) + 4, self.flow_of(frame), is_probe(frame)), strict=True)
        if any(limit not in (None, value) for limit, value in limited) or max(frames, before) < self.above * WINDOW:
            return False
        self.chosen += 1
        return self.chosen % self.every == 0


def is_ipv4(frame: bytes | bytearray) -> bool:
    return frame[12:14] == IPV4


def is_probe(frame: bytes) -> bool:
    """Return whether *frame* has the IPv4 identification, or the IPv6 flow label, of TRex's latency frames."""
    return frame[18:20] == b"\xff\xff" if is_ipv4(frame) else frame[16:18] == b"\xff\xff"


def route(frame: bytearray) -> bool:
    """Take one off the TTL of *frame*; returns whether it may go on."""
    at = 22 if is_ipv4(frame) else 21
    frame[at] = max(0, frame[at] - 1)
    return with_checksum(frame)[at] > 0


def with_checksum(frame: bytearray) -> bytearray:
    """Return *frame* with the checksum of its IPv4 header, without options, made right (RFC 1071)."""
    if is_ipv4(frame):
        frame[24:26] = bytes(2)
        total = sum(struct.unpack_from("!10H", frame, 14))
        frame[24:26] = (~(total + (total >> 16)) & 0xFFFF).to_bytes(2, "big")
    return frame


def written(frame: bytearray, at: int, data: bytes) -> bytearray:
    """Return *frame* with *data* written, whatever its checksum."""
    return frame[:at] + data + frame[at + len(data) :]


def with_payload(frame: bytearray) -> bytearray:
    transport, protocol = (34, frame[23]) if is_ipv4(frame) else (54, frame[20])
    begin = transport + (20 if protocol == socket.IPPROTO_TCP else 8)
    return written(frame, begin, b"\xee" * (len(frame) - begin))


def lldp(mac: bytes) -> bytes:
    """Chassis and port are *mac*, 120 s to live (IEEE 802.1AB)."""
    return b"\x01\x80\xc2\0\0\x0e" + mac + b"\x88\xcc\x02\x07\x04" + mac + b"\x04\x07\x03" + mac + b"\x06\x02\0x"


def cached(direction: Direction, frame: bytearray) -> Sequence[bytes]:
    direction.cached = direction.cached or bytes(frame)
    return [direction.cached]


def hairpin(direction: Direction, frame: bytearray) -> Sequence[bytes]:
    direction.back[1](direction.back[0] + frame[12:])
    return []


def flow(direction: Direction, frame: bytearray) -> Sequence[bytearray]:
    """Drop the second of the first two flows, and send the first one twice."""
    number = direction.flow_of(frame)
    return [] if number == 1 else [frame] * (1 + (number == 0 and len(direction.flows) > 1))


def late(direction: Direction, frame: bytearray) -> Sequence[bytes]:
    direction.held.append((time.monotonic() + direction.hold, bytes(frame)))
    return []


def late_copies(direction: Direction, frame: bytearray) -> Sequence[bytes | bytearray]:
    """Lose one of the chosen frames, and send the next one again later."""
    return [] if direction.chosen // direction.every % 2 else [*late(direction, frame), frame]


LIES: Mapping[str, Callable[[Direction, bytearray], Sequence[bytes | bytearray]]] = {
    "truth": lambda _, frame: [frame],
    "payload": lambda _, frame: [with_payload(frame)],
    "length": lambda _, frame: [frame[:60]],
    "checksum": lambda _, frame: [written(frame, 24, bytes([frame[24] ^ 0xFF]))] if is_ipv4(frame) else [frame],
    "ttl": lambda _, frame: [with_checksum(written(frame, 22 if is_ipv4(frame) else 21, b"\0"))],
    "addresses": lambda _, frame: [with_checksum(written(frame, 31 if is_ipv4(frame) else 51, b"\x0b\xad\x0b"))],
    "mac": lambda _, frame: [written(frame, 0, b"\x02\0\0\0\x0b\xad")],
    "copies": lambda direction, frame: [frame] * (2 * (direction.chosen // direction.every % 2)),
    "cached": cached,
    "hairpin": hairpin,
    "lldp": lambda _, frame: [lldp(bytes(frame[6:12])).ljust(len(frame), b"\0")],
    "flow": flow,
    "late": late,
    "late copies": late_copies,
    "lost": lambda direction, frame: [],
    "mark": lambda _, frame: [with_checksum(written(frame, 15, b"\xb8"))],
    "padding": lambda _, frame: [frame + bytes(8)],
}
"""The frame that leaves in the place of a chosen one, which was routed rightly, by the word of the lie."""


def main(first: str, second: str, lie: str, *limits: str) -> None:
    ends = [_end(name) for name in (first, second)]
    options = {name: json.loads(value) for name, _, value in (limit.partition("=") for limit in limits)}
    directions = {
        end[2]: Direction(number, ends[1 - number][:2], end[:2], lie, **options) for number, end in enumerate(ends)
    }
    hook = f"type filter hook ingress devices = {{ {first}, {second} }} priority 0;"
    drops = f"table netdev lies {{ chain arriving {{ {hook} meta protocol {{ ip, ip6 }} drop; }}; }}"
    subprocess.run(("nft", drops), check=True)
    os.nice(-10)
    print("lies", flush=True)
    try:
        _forward_all(directions)
    finally:
        subprocess.run(("nft", "delete table netdev lies"), check=True)


def _end(name: str) -> tuple[bytes, Send, socket.socket]:
    """Return the Ethernet addresses of frames that leave by interface *name*, how to send them, and where they come."""
    opened = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    opened.setsockopt(SOL_PACKET, IGNORE_OUTGOING, 1)
    opened.setsockopt(socket.SOL_SOCKET, RCVBUFFORCE, 64 << 20)
    opened.bind((name, ALL_PROTOCOLS))
    shown = subprocess.run(("ip", "-j", "neigh", "show", "dev", name), check=True, capture_output=True).stdout
    known = next(row["lladdr"] for row in json.loads(shown) if "lladdr" in row)
    return bytes.fromhex(known.replace(":", "")) + opened.getsockname()[4], opened.send, opened


def _forward_all(directions: Mapping[socket.socket, Direction]) -> None:
    while True:
        now = time.monotonic()
        due = min(direction.release(now) for direction in directions.values())
        ready = select.select([*directions, sys.stdin], [], [], None if due == math.inf else max(0.0, due - now))[0]
        if sys.stdin in ready:
            return
        for arriving, direction in directions.items():
            # some at a time: the other direction waits meanwhile
            for _ in range(64 if arriving in ready else 0):
                try:
                    frame = arriving.recv(65536, socket.MSG_DONTWAIT)
                except BlockingIOError:
                    break
                if frame[12:14] in (IPV4, IPV6):
                    direction.forward(frame, time.monotonic())


@contextmanager
def lying(testbed: OpenTestbed, lie: str, **limits: float) -> Iterator[None]:
    """Let the router of an open testbed of kind ``netns`` tell a *lie* of :data:`LIES`, until the context ends.

    The router is configured before. *limits* are those of :class:`Direction`; without, every frame is concerned. The
    testbed's first two ports take part.
    """
    interfaces = [side.interface for side in testbed.facts.sides[:2]]
    options = [f"{name}={json.dumps(value)}" for name, value in limits.items()]
    argv = (*inside(testbed.facts.namespaces[-1], bound=True), sys.executable, __file__, *interfaces, lie, *options)
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as program:
        assert program.stdin and program.stdout
        assert program.stdout.readline() == b"lies\n"
        try:
            yield
        finally:
            program.stdin.close()
            program.wait(20)


if __name__ == "__main__":
    main(*sys.argv[1:])
