"""A modelled Netgate 6100, configured for its two networks, on a clock that tests set."""

from __future__ import annotations

import ipaddress
from functools import cache

from lineproof.core.traffic.profiles import Profile
from lineproof.generators.base import Direction
from lineproof.generators.streams import profile_streams
from lineproof.platforms import Platform, read_platform
from lineproof.project import Project
from lineproof.simulation import InjectedFault, Noise
from lineproof_bench.backend import Clock, FieldVariable, StreamTraffic
from lineproof_bench.faults.model import FaultyModel
from lineproof_bench.model.backend import ModelBackend, ModelSettings
from lineproof_bench.state import RouterConfiguration
from support.catalogue import CATALOGUE
from support.paths import ROOT

PROJECT = Project(ROOT)


class HandClock(Clock):
    time = 0.0

    def now(self) -> float:
        return self.time


@cache
def platform() -> Platform:
    return read_platform(PROJECT.platforms, "netgate6100").cabled(["WAN3", "WAN4"])


def configuration(backend: ModelBackend) -> RouterConfiguration:
    first, second = (interface.name for interface in backend.state().interfaces)
    return RouterConfiguration(
        up=(first, second),
        addresses=((first, "100.65.1.1/24"), (second, "100.65.2.1/24")),
        neighbours=((first, "100.65.1.2", backend.ports[0].mac), (second, "100.65.2.2", backend.ports[1].mac)),
        routes=(("16.0.0.0/8", "100.65.1.2"), ("48.0.0.0/8", "100.65.2.2")),
    )


def configured_model(
    software: str = "vpp", rx_queues: int | None = None, noise: Noise | None = None, seed: int = 0
) -> tuple[ModelBackend, HandClock]:
    clock = HandClock()
    backend = ModelBackend(platform(), software, clock, ModelSettings(rx_queues, noise or Noise(), seed))
    backend.configure(configuration(backend))
    return backend, clock


def faulty_model(*faults: InjectedFault) -> tuple[FaultyModel, HandClock]:
    clock = HandClock()
    backend = FaultyModel(platform(), "vpp", clock, ModelSettings())
    backend.cause(faults)
    backend.configure(configuration(backend))
    return backend, clock


def traffic(words: str | Profile, pps: float, swapped: bool = False) -> tuple[StreamTraffic, ...]:
    profile = CATALOGUE.profile(words.split()) if isinstance(words, str) else words
    direction = Direction(1, 0, swapped=True) if swapped else Direction(0, 1)
    return tuple(
        StreamTraffic(
            number,
            bytes.fromhex(stream.frame),
            pps * stream.share,
            tuple(FieldVariable(v.offset, v.size, v.minimum, v.maximum, v.minimum, v.step) for v in stream.variables),
            fix_ipv4_checksum=stream.fix_ipv4,
        )
        for number, stream in enumerate(profile_streams(profile, direction))
    )


def address(text: str) -> bytes:
    return ipaddress.IPv4Address(text).packed
