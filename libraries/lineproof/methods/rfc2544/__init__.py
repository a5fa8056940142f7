"""The tests of RFC 2544 section 26, one module each, and what they share.

Every departure from the RFC is a :class:`~lineproof.methods.deviations.Deviation` of the result.
"""

from __future__ import annotations

from ..deviations import Deviation

FRAME_SIZES = (64, 128, 256, 512, 1024, 1280, 1518)
"""RFC 2544 9.1: the sizes for Ethernet, in bytes with FCS."""

TRIAL_SECONDS = 60.0
"""RFC 2544 24: the shortest final trial in s."""


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
