"""Rates, frame sizes and line-rate arithmetic.

Conventions:

* A *frame size* is in bytes and includes the 4-byte FCS (RFC 1242 3.5, RFC 2544 9).
* *L2* bits of a frame are ``8 * size``; *L1* bits are ``8 * (size + 20)``: preamble 7, start delimiter 1 and the
  minimal inter-frame gap 12 bytes of IEEE 802.3.
* *Line rate* is the link speed in L1 bit/s of **one** direction.
* A *mean* frame size may be fractional (a mix), a rate in frames/s is a float, a count of frames is an int.
"""

from __future__ import annotations

import math
import re
import string
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum

from .visible import shortened

FCS = 4
"""Bytes of the frame check sequence, included in every frame size here."""

OVERHEAD = 20
"""Bytes on the wire in addition to a frame: preamble 7 + start delimiter 1 + inter-frame gap 12."""

PREFIX = {"": 1, "k": 10**3, "K": 10**3, "M": 10**6, "G": 10**9}

NUMBER = r"[0-9]{1,15}(?:\.[0-9]{1,15})?"
"""A figure in text, as an expression: without sign, exponent, or digits that are not ASCII's."""

_SPEED = re.compile(rf"\s*(?P<number>{NUMBER})\s*(?P<prefix>[kKMG]?)(?:bps|bit/s|b/s)\s*")


_FASTEST = 1e15


class Layer(Enum):
    """Which bits a bit rate counts."""

    L1 = "L1"
    L2 = "L2"


def l1_bits(size: float) -> float:
    """Return the bits that one frame of *size* bytes (FCS included) occupies on the wire."""
    return 8 * (size + OVERHEAD)


def l2_bits(size: float) -> float:
    """Return the bits of one frame of *size* bytes (FCS included)."""
    return 8 * size


def bits(size: float, layer: Layer) -> float:
    """Return the bits of one frame of *size* bytes at *layer*."""
    return l1_bits(size) if layer is Layer.L1 else l2_bits(size)


def line_rate_pps(link_bps: float, size: float) -> float:
    """Return the frames/s of *size* bytes that fill one direction of *link_bps* (14.88 M for 64 bytes on 10 Gbit/s)."""
    return link_bps / l1_bits(size)


def parse_link_speed(text: str) -> float:
    """Return ``"10 Gbps"`` or ``"2.5 Gbit/s"`` as bit/s, at most 10^15. Raises ValueError."""
    match = _SPEED.fullmatch(text)
    speed = float(match["number"]) * PREFIX[match["prefix"]] if match else 0.0
    if not 0 < speed <= _FASTEST:
        raise ValueError(f"'{shortened(text)}' is not a link speed; expected for example '10 Gbps' or '2.5 Gbit/s'")
    return speed


def si(value: float, unit: str, digits: int = 4) -> str:
    """Return *value* with an SI prefix and *digits* significant digits: ``si(14880952, "pps") == "14.88 Mpps"``."""
    for factor, prefix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        # rounding may reach the next prefix: 999 999 pps is 1 Mpps, not 1000 kpps
        if abs(float(f"{value:.{digits}g}")) >= factor:
            return f"{_plain_digits(value / factor, digits)} {prefix}{unit}"
    return f"{_plain_digits(value, digits)} {unit}"


def apart(number: float, other: float, digits: int = 4, rounded: Callable[[float], int] = round) -> float:
    """Return *number* rounded to *digits*, or to as many more, up to 9, as show on which side of *other* it lies."""
    shown = number
    for most in range(digits, 10) if number and math.isfinite(number) else ():
        places = min(300, most - 1 - math.floor(math.log10(abs(number))))
        shown = float(f"{rounded(round(number * 10.0**places, 6)) / 10.0**places:.9g}")
        if (shown > other, shown < other) == (number > other, number < other):
            break
    return shown


def range_text(low: str, high: str) -> str:
    """Return both figures, with their unit once where they have the same: ``5.01 to 5.04 Mpps``."""
    number = low.rstrip(string.ascii_letters + "/%µ ")
    if low == high:
        return high
    return f"{number if high.endswith(low.removeprefix(number)) else low} to {high}"


def figure(value: float) -> str:
    """Return *value* with five digits at most, never in powers of ten below a billion."""
    text = f"{value:.4g}" if abs(value) < 1000 else f"{value:.5g}"
    return f"{float(text):.0f}" if "e" in text and abs(value) < 1e9 else text


def counted(count: int, noun: str) -> str:
    """Return *count* with its *noun*: ``1 suite``, ``3 suites``."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def moment(unix: float) -> str:
    """Return ``2026-11-22 04:00``, UTC; of what is no time, the number."""
    try:
        return f"{datetime.fromtimestamp(unix, UTC):%Y-%m-%d %H:%M}"
    except (OverflowError, ValueError, OSError):
        return f"{unix:g}"


def _plain_digits(value: float, digits: int) -> str:
    text = f"{value:.{digits}g}"
    return f"{float(text):.0f}" if "e" in text else text


@dataclass(frozen=True, slots=True)
class Rate:
    """A frame rate of one direction of one link, in every unit.

    ``pps`` frames/s; ``size`` mean frame bytes with FCS; ``link_bps`` link speed in bit/s (L1).
    """

    pps: float
    size: float
    link_bps: float

    @property
    def l1_bps(self) -> float:
        """L1 bit/s."""
        return self.pps * l1_bits(self.size)

    @property
    def l2_bps(self) -> float:
        """L2 bit/s."""
        return self.pps * l2_bits(self.size)

    @property
    def percent(self) -> float:
        """Per cent of one direction's line rate."""
        return 100 * self.l1_bps / self.link_bps


def duration_text(seconds: float) -> str:
    """Return *seconds* as text: ``0.5 s``, ``48 s``, ``3 min 20 s``, ``2 h 5 min``."""
    whole = round(seconds)
    if whole < 60:
        return f"{seconds:.2g} s" if seconds < 1 else f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s" if whole % 60 else f"{whole // 60} min"
    minutes = round(whole / 60)
    return f"{minutes // 60} h {minutes % 60} min" if minutes % 60 else f"{minutes // 60} h"
