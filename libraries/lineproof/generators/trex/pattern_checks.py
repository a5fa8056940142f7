"""Checks before TRex sends: bursts and chains by their load, headers by the layers it knows."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from ...core.traffic.profiles import Profile
from ...core.trial import Load, Outcome
from ...errors import TestbedError
from ...units import OVERHEAD, Layer, bits
from ..base import Direction, GeneratorPort, Probe
from .next_hops import MAC_FROM_PACKET

MIN_REPEATS = 200
"""How often a trial must repeat a pattern: an incomplete last one then changes the load by at most 0.5 %, the default
tolerance of a trial."""


def intended_frames(profile: Profile | None, direction: Direction, pps: float, duration: float) -> int:
    """Frames that *direction* should send of *profile* in *duration* s at *pps*."""
    program = profile.program if profile else None
    return round(pps * duration) if program is None else program.intended(direction.swapped, pps, duration)


def is_continuous(profile: Profile | None) -> bool:
    """Return whether all streams are continuous."""
    return profile is None or profile.program is None or profile.program.steady


def check_continuous(profile: Profile | None) -> None:
    """Raise TestbedError unless all streams are continuous: the load of others cannot change during a trial."""
    if profile is not None and not is_continuous(profile):
        raise TestbedError(
            f"'{profile.name}' comes in bursts or by turns, with one load a trial; this sentence changes the load, or"
            " has bursts of its own: expected streams that are sent all the time (STLTXCont)"
        )


def check_pattern(
    profile: Profile | None, directions: Sequence[Direction], load: Load, duration: float, speeds: Mapping[int, float]
) -> None:
    """Raise TestbedError if a trial would miss the load, or a burst exceed the line rate.

    *speeds* in bit/s by port number.
    """
    program = profile.program if profile else None
    if program is None or profile is None or program.steady:
        return
    for direction in directions:
        asked, found = load.pps * duration, intended_frames(profile, direction, load.pps, duration)
        pattern = program.patterns[direction.swapped]
        if pattern is not None and abs(found - asked) > max(asked / MIN_REPEATS, 1):
            raise TestbedError(
                f"a trial of {duration:g} s holds {found} frames of the pattern of '{profile.name}' at {load.pps:g}"
                f" frames/s, and {round(asked)} would be that load; expected a load of at least"
                f" {MIN_REPEATS * pattern.period_frames / duration:.4g} frames/s, or trials of at least"
                f" {MIN_REPEATS * pattern.period_frames / load.pps:.4g} s: in these the pattern comes"
                f" {MIN_REPEATS} times"
            )
        speed, crest = speeds.get(direction.tx_port), program.peak_to_mean[direction.swapped]
        need = crest * load.pps * profile.bits(Layer.L1)
        if math.isinf(crest):
            raise TestbedError(
                f"'{profile.name}' has frames that are to be sent at the same moment, and no line carries that;"
                " expected an 'isg' or 'ibg' between them"
            )
        if speed and need > speed * (1 + 1e-9):
            raise TestbedError(
                f"in its bursts '{profile.name}' sends {crest:.4g} times its average rate, which at this load is"
                f" {100 * need / speed:.4g} % line rate of port {direction.tx_port}; expected a load of at most"
                f" {100 / crest:.4g} % line rate"
            )


def check_destinations(profile: Profile, directions: Sequence[Direction], ports: Sequence[GeneratorPort]) -> None:
    """Raise TestbedError if a stream of *profile* goes to another MAC address than the router's.

    The router ignores such frames, and they would count as its loss. A direction with a destination of its own replaces
    them.
    """
    routers = {port.index: port.destination.lower() for port in ports}
    for direction in (direction for direction in directions if not direction.destination):
        router = routers.get(direction.tx_port, "")
        for number, stream in enumerate(profile.program.directions[direction.swapped] if profile.program else (), 1):
            data = json.loads(stream.text)
            written = any(item.get("pkt_offset", 6) < 6 for item in data["vm"]["instructions"])
            to = stream.frame[:6].hex(":")
            if data["flags"] >> 1 & 3 != MAC_FROM_PACKET or written or stream.frame[0] & 1 or not router:
                continue
            if to != router:
                raise TestbedError(
                    f"'{profile.name}' was not sent: its stream {number} goes to the MAC address {to}, and the"
                    f" generator's port {direction.tx_port} sends to {router}; expected 'mac_dst: port' in the entry of"
                    " the word, or 'Ether()' without 'dst'"
                )


TOLERATED_RATIO = 1e-3
"""Tolerated difference as a ratio: TRex uses 9.999 Gbit/s for the line of a 10 Gbit/s port."""


def check_layers(
    profile: Profile, rates: Mapping[str, Mapping[str, Any]], probe: tuple[Probe, Mapping[int, float]] | None
) -> None:
    """Raise TestbedError if the server counts the bits of *profile* in another way.

    *rates*: by port number, ``pps``, ``bps_l1``, ``bps_l2`` and ``line_util`` (per cent) of the port's streams without
    a multiplier, and its ``speed_bps``; empty for a port without a report. *probe*: probe frames beside one frame/s of
    the profile, and their sizes in bytes with FCS, each with its share.
    """
    for port, rate in rates.items():
        if not rate or not rate["pps"]:
            continue
        for name, expected in _expected_bits(profile, probe).items():
            reported = sum(sign * rate[key] for key, sign in _FIGURES[name].items()) / rate["pps"]
            if abs(reported - expected) > TOLERATED_RATIO * expected:
                raise TestbedError(
                    f"the TRex server counts {reported:.6g} bits per frame of '{profile.name}' at port {port} {name},"
                    f" and they are {expected:.6g}: rates in per cent of line rate or bit/s would not mean the same to"
                    " it as to the sentence; expected a TRex that counts preamble, gap and FCS"
                )
        speed, used = rate["speed_bps"], rate["line_util"] / 100
        if speed and used and abs(rate["bps_l1"] / used - speed) > TOLERATED_RATIO * speed:
            raise TestbedError(
                f"the TRex server takes {rate['bps_l1'] / used / 1e9:.6g} Gbit/s for the line of port {port}, and says"
                f" that the port runs at {speed / 1e9:g}; fix 'port_speed' (Mbit/s) in trex_cfg.yaml"
            )


def line_use(outcome: Outcome, speeds: Mapping[int, float]) -> float | None:
    """Line use of the busiest sending port in per cent of L1, from its counters of frames and bytes.

    *speeds* in bit/s by port number; None if no speed is known.
    """
    used = [
        100 * 8 * (direction.offered_bytes + OVERHEAD * direction.offered) / max(outcome.elapsed, 1e-9) / speed
        for direction in outcome.directions
        if (speed := speeds.get(direction.tx_port))
    ]
    return max(used, default=None)


_FIGURES = {"on L1": {"bps_l1": 1}, "on L2": {"bps_l2": 1}, "more on L1 than on L2": {"bps_l1": 1, "bps_l2": -1}}


def _expected_bits(profile: Profile, probe: tuple[Probe, Mapping[int, float]] | None) -> dict[str, float]:
    """Bits per frame. For a user's own streams the server uses untrimmed sizes: only L1 minus L2 can be compared.

    For patterns it reports the maximum of each figure, at different times: nothing can be compared.
    """
    if profile.program is not None and not profile.program.steady:
        return {}
    if profile.program is not None:
        return {"more on L1 than on L2": 8.0 * OVERHEAD}
    return {f"on {layer.name}": _mean_bits(profile, layer, probe) for layer in (Layer.L1, Layer.L2)}


def _mean_bits(profile: Profile, layer: Layer, probe: tuple[Probe, Mapping[int, float]] | None) -> float:
    if probe is None:
        return profile.bits(layer)
    found, sizes = probe
    mean = math.fsum(share * bits(size, layer) for size, share in sizes.items())
    return (profile.bits(layer) + found.pps * mean) / (1 + found.pps)
