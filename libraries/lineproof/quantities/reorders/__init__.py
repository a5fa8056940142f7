"""``reorders ≤ 0.01% at 1 Mpps``: the share of frames that arrive behind a later one (RFC 4737 3, Type-P-Reordered)."""

from __future__ import annotations

from ...core.latency import LatencyCount
from ...core.probe_share import ShareOfProbes


class Reordering(ShareOfProbes):
    """The share of probe frames out of order, of each direction, 0 to 1."""

    name = word = "reorders"
    title = "Reordered frames"
    example = "reorders ≤ 0.01% at 1 Mpps"
    happened = "came behind a later one"

    def count(self, probes: LatencyCount) -> int:
        """Return the probe frames that a later one overtook."""
        return probes.out_of_order


REORDERING = Reordering()
