"""The tests of RFC 2544 section 26, one module each, and what they share.

Every departure from the RFC is a :class:`~linerate.methods.deviations.Deviation` of the result.
"""

from __future__ import annotations

from ..deviations import Deviation

FRAME_SIZES = (64, 128, 256, 512, 1024, 1280, 1518)
"""RFC 2544 9.1: the sizes for Ethernet, in bytes with FCS."""

JUMBO_SIZE = 9216
"""The jumbo frame in bytes with FCS: the largest of RFC 5180 5.1.1."""

TRIAL_SECONDS = 60.0
"""RFC 2544 24: the shortest final trial in s."""

ETHERNET_OVERHEAD = 18
"""Bytes of a frame besides its payload: header and FCS."""


def frame_sizes(mtu: int = 1500) -> tuple[int, ...]:
    """The standard sizes that fit an *mtu* (bytes of a frame's payload), and the jumbo frame if it fits."""
    return tuple(size for size in (*FRAME_SIZES, JUMBO_SIZE) if size - ETHERNET_OVERHEAD <= mtu)


def deviation_of_short_trials(
    seconds: float, section: str = "RFC 2544 24", asked: float = TRIAL_SECONDS
) -> tuple[Deviation, ...]:
    """The deviation of trials of *seconds* shorter than *asked* s; empty if they are not."""
    if seconds >= asked:
        return ()
    return (Deviation(section, f"trials of at least {asked:g} s", f"trials of {seconds:g} s"),)


def deviation_of_few_repetitions(count: int, asked: int, section: str) -> tuple[Deviation, ...]:
    """The deviation of *count* repetitions fewer than *asked*; empty if they are not."""
    if count >= asked:
        return ()
    return (Deviation(section, f"at least {asked} repetitions", f"{count}"),)
