"""Two ports on real interfaces: the frames that they send, and the end of sending."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from lineproof.testbed.netns import Cable
from lineproof_bench.backend import FieldVariable, StreamGroup, StreamTraffic
from lineproof_bench.wire.backend import WireBackend
from support.patience import wait_until


def stream(
    cable: Cable,
    pps: float,
    group: int | None = None,
    size: int = 60,
    flows: int = 251,
    **more: Any,
) -> StreamTraffic:
    """UDP through the router from this cable's network to the other's, from *flows* addresses.

    *group*: the packet group in which its latency is measured.
    """
    source, target = (0x10000001, 0x30000001) if cable.index == 0 else (0x30000001, 0x10000001)
    ethernet = bytes.fromhex((cable.router_mac + cable.port_mac).replace(":", "") + "0800")
    ip = bytes.fromhex("4500") + (size - 14).to_bytes(2, "big")
    ip += bytes.fromhex("0000000040110000") + source.to_bytes(4, "big") + target.to_bytes(4, "big")
    udp = bytes.fromhex("04010009") + (size - 34).to_bytes(2, "big") + bytes(2)
    counted = None if group is None else StreamGroup(group, "latency")
    variable = FieldVariable(26, 4, source, source + flows - 1, source)
    frame = (ethernet + ip + udp).ljust(size, b"\0")
    found = StreamTraffic(size, frame, pps, (variable,), fix_ipv4_checksum=14, group=counted)
    return replace(found, **more)


def finish(backend: WireBackend) -> None:
    """Wait until both ports have sent their last frame."""
    wait_until(lambda: not any(backend.sending(port) for port in (0, 1)), "the end of sending")
