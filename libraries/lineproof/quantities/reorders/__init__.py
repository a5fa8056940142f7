"""``reorders ≤ 0.01% at 1 Mpps``: the share of frames that arrive behind a later one (RFC 4737 3, Type-P-Reordered)."""

from __future__ import annotations

from collections.abc import Sequence

from ...core.latency import LatencyCount
from ...core.probe_share import ShareOfProbes
from ...core.quantity import Promise, Reason
from ...core.rule import Ruling
from ...core.trial import Trial

SPACINGS = 8
"""Frames that were held back in order are spread over the time of the hold. Those above a gap of so many mean distances
between two frames were overtaken: several groups of probe frames may be sent at the same moments."""


class Reordering(ShareOfProbes):
    """The share of probe frames out of order, of each direction, 0 to 1.

    A generator counts order within each of its groups. Frames that its histogram shows so late that others must have
    overtaken them, and that are not counted, may be out of order.
    """

    name = word = "reorders"
    title = "Reordered frames"
    example = "reorders ≤ 0.01% at 1 Mpps"
    happened = "came behind a later one"

    def count(self, probes: LatencyCount) -> int:
        """Return the probe frames that a later one overtook."""
        return probes.out_of_order

    def may_count(self, probes: LatencyCount, seconds: float) -> int:
        """Return how many were lost, or came too late to be in order and are not counted."""
        return super().may_count(probes, seconds) + _uncounted(probes, seconds)

    def reason(self, promise: Promise, ruling: Ruling, trials: Sequence[Trial]) -> Reason:
        """Return the share, and how many frames the histogram shows to have been overtaken besides."""
        late = sum(_uncounted(probes, trial.seconds.high) for trial in trials for probes in trial.outcome.latency)
        detail = f"{late:,} more probe frames came so late that later ones overtook them, and were not counted"
        return super().reason(promise, ruling, trials).with_details(detail if late else "")


def _uncounted(probes: LatencyCount, seconds: float) -> int:
    late = probes.beyond_gap(SPACINGS * 1e6 * seconds / max(1, probes.sent))
    return max(0, min(late, probes.received - probes.copies) - probes.out_of_order)


REORDERING = Reordering()
