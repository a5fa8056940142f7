"""What happened between two looks at traffic under way: what recovery and reset are told from."""

from __future__ import annotations

from dataclasses import dataclass

from ...counts.live_traffic import LiveTraffic, Sample

__all__ = ["LiveTraffic", "Sample", "SampleInterval"]


@dataclass(frozen=True, slots=True)
class SampleInterval:
    """What happened between two samples. ``lost`` may be negative while a buffer drains."""

    begins: Sample
    ends: Sample

    @property
    def seconds(self) -> float:
        """Its length."""
        return self.ends.time - self.begins.time

    @property
    def offered(self) -> int:
        """Frames sent meanwhile."""
        return self.ends.offered - self.begins.offered

    @property
    def forwarded(self) -> int:
        """Frames that came back meanwhile."""
        return self.ends.forwarded - self.begins.forwarded

    @property
    def lost(self) -> int:
        """Frames sent less those that came back."""
        return self.offered - self.forwarded

    def loses(self, slack: float) -> bool:
        """More than *slack* (0..1) of what was sent did not come back."""
        return self.lost > slack * self.offered
