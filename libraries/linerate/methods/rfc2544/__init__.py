"""The tests of RFC 2544 section 26, one module each, and what they share. Each is named after its section.

What the testbed can do decides how true to the letter a test can be run; every departure is a
:class:`~linerate.methods.deviations.Deviation` of the result.
"""

from __future__ import annotations

from ..deviations import Deviation

FRAME_SIZES = (64, 128, 256, 512, 1024, 1280, 1518)
"""RFC 2544 9.1: the sizes for Ethernet, in bytes with FCS."""

JUMBO = 9216
"""The jumbo frame used here, in bytes with FCS (the largest of those that RFC 5180 5.1.1 names)."""

TRIAL = 60.0
"""RFC 2544 24: the shortest trial in s that decides."""

ETHERNET = 18
"""Bytes of a frame beside its payload: header and FCS."""

NOT_RELEARNED = Deviation(
    "RFC 2544 23",
    "routing updates and learning frames before each trial",
    "routes and neighbours are static, and nothing is sent before a trial but what came before it",
)


def frame_sizes(mtu: int = 1500) -> tuple[int, ...]:
    """The standard sizes that a path of *mtu* bytes (payload of the frame) carries, with the jumbo where it fits."""
    return tuple(size for size in (*FRAME_SIZES, JUMBO) if size - ETHERNET <= mtu)


def shorter(seconds: float, section: str = "RFC 2544 24", asked: float = TRIAL) -> tuple[Deviation, ...]:
    """The deviation of trials shorter than *asked* s; none where they are not."""
    if seconds >= asked:
        return ()
    return (Deviation(section, f"trials of at least {asked:g} s", f"trials of {seconds:g} s"),)


def fewer(count: int, asked: int, section: str) -> tuple[Deviation, ...]:
    """The deviation of fewer repetitions than *asked*; none where there are as many."""
    if count >= asked:
        return ()
    return (Deviation(section, f"at least {asked} repetitions", f"{count}"),)
