"""Checks before TRex sends: bursts and chains by their load, and where a user's own frames go."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence

from ...core.traffic.profiles import Profile
from ...core.trial import Load
from ...errors import TestbedError
from ...units import Layer
from ..base import Direction, GeneratorPort
from .client.stream_objects import MAC_FROM_PACKET

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
