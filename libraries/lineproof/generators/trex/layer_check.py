"""Compares the server's account of a port's streams (``validate``) with the profile's arithmetic.

Loads are set in frames/s; per cent of line rate and bit/s follow from the frame sizes. If TRex counted other sizes on
L1 or L2, all these figures would be wrong.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...core.traffic.profiles import Profile
from ...core.trial import Outcome
from ...errors import TestbedError
from ...units import OVERHEAD, Layer, bits
from ..base import Probe

TOLERATED_RATIO = 1e-3
"""Tolerated difference as a ratio: TRex uses 9.999 Gbit/s for the line of a 10 Gbit/s port."""


def check_layers(profile: Profile, rates: Mapping[str, Mapping[str, Any]], probe: tuple[Probe, int] | None) -> None:
    """Raise TestbedError if the server counts the bits of *profile* in another way.

    *rates*: by port number, ``pps``, ``bps_l1``, ``bps_l2`` and ``line_util`` (per cent) of the port's streams without
    a multiplier, and its ``speed_bps``; empty for a port without a report. *probe*: probe frames beside one frame/s of
    the profile, and their size in bytes with FCS.
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


def _expected_bits(profile: Profile, probe: tuple[Probe, int] | None) -> dict[str, float]:
    """Bits per frame. For a user's own streams the server uses untrimmed sizes: only L1 minus L2 can be compared.

    For patterns it reports the maximum of each figure, at different times: nothing can be compared.
    """
    if profile.program is not None and not profile.program.steady:
        return {}
    if profile.program is not None:
        return {"more on L1 than on L2": 8.0 * OVERHEAD}
    return {f"on {layer.name}": _mean_bits(profile, layer, probe) for layer in (Layer.L1, Layer.L2)}


def _mean_bits(profile: Profile, layer: Layer, probe: tuple[Probe, int] | None) -> float:
    if probe is None:
        return profile.bits(layer)
    found, size = probe
    return (profile.bits(layer) + found.pps * bits(size, layer)) / (1 + found.pps)
