"""A process for tests: the embedded TRex server with a cable between its two ports.

Specification: ``flap`` a port whose link is down in the middle half of a trial.
"""

import sys
import threading
from collections.abc import Mapping
from typing import Any

from lineproof_bench.backend import CapturedFrame, PortCounters, StreamTraffic
from lineproof_bench.process import read_specification, ready
from lineproof_bench.server.loop import TrexServer
from lineproof_bench.server.nic import ServerCard
from support.server_support import FakeBackend, run


class Cable(FakeBackend):
    """Counts the octets of its streams, and keeps their frames."""

    def __init__(self, specification: Mapping[str, Any]) -> None:
        super().__init__()
        self.flap = specification.get("flap")
        self.streams: dict[int, tuple[StreamTraffic, ...]] = {}
        self.octets = [0.0, 0.0]
        self.began, self.seconds = 0.0, 1.0

    def start(self, traffic: Mapping[int, tuple[StreamTraffic, ...]], duration: float | None) -> None:
        self.streams.update(traffic)
        self.began, self.seconds = self.now(), duration or 1.0
        super().start(traffic, duration)

    def _settle(self, port: int) -> None:
        before = self.sent[port]
        super()._settle(port)
        if frames := self.sent[port] - before:
            shares = [(stream.count or stream.pps, len(stream.frame) + 4) for stream in self.streams[port]]
            mean = sum(share * size for share, size in shares) / sum(share for share, _ in shares)
            self.octets[port] += frames * mean

    def counters(self, port: int) -> PortCounters:
        super().counters(port)
        return PortCounters(
            self.sent[port], self.sent[1 - port], round(self.octets[port]), round(self.octets[1 - port])
        )

    def link_up(self, port: int) -> bool:
        return port != self.flap or not 0.25 < (self.now() - self.began) / self.seconds < 0.75

    def capture(self, port: int, limit: int, last: bool = False) -> None:
        self.limits[port] = limit

    def captured(self, port: int, last: bool = False) -> tuple[CapturedFrame, ...]:
        frames = ([stream.frame for stream in self.streams[1 - port]] * 10)[: self.limits[port]]
        self.limits[port] -= len(frames)
        return tuple(CapturedFrame(port, frame, self.now()) for frame in frames)


def main() -> None:
    cable = Cable(read_specification())
    server = TrexServer(cable, cable.now, nic=ServerCard(rx_caps=(), rx_counters=0))

    def stop_at_end_of_input() -> None:
        sys.stdin.read()
        server.stop()

    threading.Thread(target=stop_at_end_of_input, daemon=True).start()
    ready({"rpc_port": server.rpc_port, "pub_port": server.pub_port})
    run(server, cable)


if __name__ == "__main__":
    main()
