"""Does the server count bits as we do? What it says of the streams on a port (``validate``), held against the profile.

A rate in frames/s is asked for; per cent of line rate and bit/s are derived from it by the frames' sizes. Where TRex
saw other sizes on L1 or L2 in the very same streams, every such figure would be wrong.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...counts.trial import Outcome
from ...errors import TestbedError
from ...traffic.profiles import Profile
from ...units import OVERHEAD, Layer, bits
from ..base import Probe

APART = 1e-3
"""Ratio by which figures of the same streams may differ: TRex takes 9.999 Gbit/s for the line of a port of 10."""


def check_layers(profile: Profile, said: Mapping[str, Mapping[str, Any]], probe: tuple[Probe, int] | None) -> None:
    """Raise TestbedError where the server counts the bits of *profile* otherwise.

    *said*: by port number, ``pps``, ``bps_l1``, ``bps_l2`` and ``line_util`` (per cent) of the port's streams without
    a multiplier, and its ``speed_bps``; empty for a port of which the server told nothing. *probe*: probe frames beside
    one frame/s of the profile, and their size in bytes with FCS.
    """
    for port, rate in said.items():
        if not rate or not rate["pps"]:
            continue
        for name, right in _expected(profile, probe).items():
            told = sum(sign * rate[key] for key, sign in _FIGURES[name].items()) / rate["pps"]
            if abs(told - right) > APART * right:
                raise TestbedError(
                    f"the TRex server counts {told:.6g} bits per frame of '{profile.name}' at port {port} {name}, and"
                    f" they are {right:.6g}: rates in per cent of line rate or bit/s would be something else to it than"
                    " to the sentence; expected a TRex that counts preamble, gap and FCS"
                )
        speed, used = rate["speed_bps"], rate["line_util"] / 100
        if speed and used and abs(rate["bps_l1"] / used - speed) > APART * speed:
            raise TestbedError(
                f"the TRex server takes {rate['bps_l1'] / used / 1e9:.6g} Gbit/s for the line of port {port}, and says"
                f" that the port runs at {speed / 1e9:g}; look at its speed ('port_bandwidth_gb' in trex_cfg.yaml)"
            )


def line_use(outcome: Outcome, speeds: Mapping[int, float]) -> float | None:
    """How much of its line the busiest sending port used, in per cent of L1, by its counters of frames and bytes.

    *speeds* in bit/s by port number; None where none of them is known.
    """
    used = [
        100 * 8 * (direction.offered_bytes + OVERHEAD * direction.offered) / max(outcome.elapsed, 1e-9) / speed
        for direction in outcome.directions
        if (speed := speeds.get(direction.tx_port))
    ]
    return max(used, default=None)


_FIGURES = {"on L1": {"bps_l1": 1}, "on L2": {"bps_l2": 1}, "more on L1 than on L2": {"bps_l1": 1, "bps_l2": -1}}


def _expected(profile: Profile, probe: tuple[Probe, int] | None) -> dict[str, float]:
    """Bits per frame. Of a user's own streams the server takes untrimmed sizes: only what L1 has more is the same.

    Where they come by turns it tells the most of each figure, which need not be of the same moment: nothing is.
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
