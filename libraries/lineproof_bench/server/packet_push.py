"""``push_pkts``: single frames that clients send, for example ARP requests for a neighbour's MAC address."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..backend import Backend, Neighbour, StreamTraffic
from .captures import Captures
from .habits import ServerHabits
from .params import Params, refused
from .ports import ServerPort
from .replies import reply_to
from .streams import PADDED_TO, mac_bytes, packet_bytes


class PacketPush:
    """Sends single frames by *backend*. *now* is the bench's clock in s, as of captured frames."""

    def __init__(self, backend: Backend, captures: Captures, now: Callable[[], float], habits: ServerHabits) -> None:
        self._backend, self._captures, self._now = backend, captures, now
        self._neighbour = backend if isinstance(backend, Neighbour) else None
        self._habits = habits

    def push(self, port: ServerPort, params: Params) -> dict[str, Any]:
        """The method ``push_pkts``. Raises RpcError when the frames cannot be sent."""
        frames = [_frame_of(port, packet) for packet in params.objects("pkts")]
        gap = max(1.0, params.number("ipg_usec", 0.0, least=0))
        pieces = tuple(
            StreamTraffic(number, frame.ljust(PADDED_TO, b"\0"), 1e6 / gap, count=1, isg_usec=number * gap)
            for number, frame in enumerate(frames)
        )
        if port.active and self._neighbour is None:
            raise refused(f"port {port.index} sends streams; expected to stop them before packets are pushed")
        if not port.active and pieces:
            try:
                self._backend.start({port.index: pieces}, None)
            except Exception as error:
                raise refused(f"port {port.index} cannot send the packets: {error}") from error
        sent = self._now()
        for frame in frames:
            self._answer(port, frame)
        return {"sent": len(frames), "ts": sent}

    def _answer(self, port: ServerPort, frame: bytes) -> None:
        if self._neighbour is None or self._habits.has("silent gateway", port.index):
            return
        neighbour = self._neighbour

        def owns(address: str) -> bool:
            known = neighbour.answers(port.index, address)
            # a device without any address yet is assumed to have the one that the port was given
            return known if known is not None else port.ipv4 is not None and port.ipv4[1] == address

        reply = reply_to(frame, port.description.peer_mac, owns)
        if reply is not None:
            self._captures.arrived(port.index, reply)


def _frame_of(port: ServerPort, packet: Params) -> bytes:
    frame = bytearray(packet_bytes(packet))
    if packet.boolean("use_port_dst_mac", False):
        frame[0:6] = mac_bytes(port.destination_mac)
    if packet.boolean("use_port_src_mac", False):
        frame[6:12] = mac_bytes(port.source_mac)
    return bytes(frame)
