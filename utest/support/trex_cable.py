"""A process for tests: the embedded TRex server with a cable between its two ports, with faults.

Specification: ``loss`` 0..1 of the frames; ``ierrors`` per trial at the receiving port; ``link_down`` a port;
``flap`` a port whose link is down in the middle half of a trial; ``late`` s by which frames are late;
``stretch`` factor by which sending takes longer; ``clock_speed``.
"""

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from lineproof_bench.backend import CapturedFrame, PortCounters, PortDescription, StreamTraffic, Utilisation
from lineproof_bench.process import on_end, read_specification, ready
from lineproof_bench.server.loop import TrexServer


class Cable:
    """Sends exactly the requested frames; the other port receives them, without the lost ones."""

    def __init__(self, specification: Mapping[str, Any]) -> None:
        self.speed = float(specification.get("clock_speed", 1))
        self.loss = float(specification.get("loss", 0))
        self.missed = int(specification.get("ierrors", 0))
        self.down = specification.get("link_down")
        self.flap = specification.get("flap")
        self.late = float(specification.get("late", 0))
        self.stretch = float(specification.get("stretch", 1))
        self.ports = tuple(
            PortDescription(index, f"02:00:00:00:0{index}:01", f"02:00:00:00:0{index}:02", 10e9, "cable")
            for index in (0, 1)
        )
        self.jobs: dict[int, list[tuple[float, float | None, tuple[StreamTraffic, ...]]]] = {0: [], 1: []}
        self.keep = {0: 0, 1: 0}

    def now(self) -> float:
        return time.monotonic() * self.speed

    def start(self, traffic: Mapping[int, tuple[StreamTraffic, ...]], duration: float | None) -> None:
        taken = None if duration is None else duration * self.stretch
        for port, streams in traffic.items():
            slowed = tuple(replace(stream, pps=stream.pps / self.stretch) for stream in streams)
            self.jobs[port].append((self.now(), taken, slowed))

    def update(self, port: int, streams: tuple[StreamTraffic, ...]) -> None:
        began, duration, _ = self.jobs[port][-1]
        now = self.now()
        self.stop(port)
        left = None if duration is None else max(0.0, began + duration - now)
        self.jobs[port].append((now, left, tuple(replace(stream, pps=stream.pps / self.stretch) for stream in streams)))

    def pause(self, port: int) -> None:
        raise ValueError("not needed here")

    resume = pause

    def stop(self, port: int) -> None:
        if self.sending(port):
            began, _, streams = self.jobs[port][-1]
            self.jobs[port][-1] = (began, self.now() - began, streams)

    def sending(self, port: int) -> bool:
        if not self.jobs[port]:
            return False
        began, duration, streams = self.jobs[port][-1]
        if all(stream.count is not None for stream in streams):
            return any(self.now() < began + (stream.count or 0) / stream.pps for stream in streams)
        return duration is None or self.now() < began + duration

    def sent(self, port: int, ago: float = 0.0) -> tuple[int, int]:
        now = self.now() - ago
        frames = octets = 0
        for began, duration, streams in self.jobs[port]:
            passed = max(0.0, now - began if duration is None else min(now - began, duration))
            for stream in streams:
                count = min(round(stream.pps * passed), stream.count or 10**12)
                frames, octets = frames + count, octets + count * (len(stream.frame) + 4)
        return frames, octets

    def counters(self, port: int) -> PortCounters:
        out, out_bytes = self.sent(port)
        arrived, arrived_bytes = self.sent(1 - port, self.late)
        return PortCounters(
            opackets=out,
            ipackets=round(arrived * (1 - self.loss)),
            obytes=out_bytes,
            ibytes=round(arrived_bytes * (1 - self.loss)),
            ierrors=self.missed * len(self.jobs[1 - port]),
        )

    def link_up(self, port: int) -> bool:
        if port == self.flap and self.jobs[1 - port]:
            began, duration, _ = self.jobs[1 - port][-1]
            return not 0.25 < (self.now() - began) / (duration or 1) < 0.75
        return port != self.down

    def capture(self, port: int, limit: int) -> None:
        self.keep[port] = limit

    def captured(self, port: int) -> tuple[CapturedFrame, ...]:
        frames = [stream.frame for *_, streams in self.jobs[1 - port][-1:] for stream in streams]
        return tuple(CapturedFrame(port, frame, self.now()) for frame in (frames * 10)[: self.keep[port]])

    def utilisation(self) -> Utilisation:
        return Utilisation(10.0, 1.0)

    def close(self) -> None:
        for port in (0, 1):
            self.stop(port)


def main() -> None:
    cable = Cable(read_specification())
    server = TrexServer(cable, cable.now, "127.0.0.1", 0, 0, None)
    on_end(server.stop)
    ready({"rpc_port": server.rpc_port, "pub_port": server.pub_port})
    server.run()


if __name__ == "__main__":
    main()
