"""What is published of the generator's card, beside a testbed: the second source of :mod:`.headroom`'s rule.

Beyond a published ceiling no FAIL is given; what the card is known not to do at all is refused before traffic.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from ..errors import TestbedError
from ..generators.base import GeneratorPort
from ..traffic.frame_kinds import kinds_of
from ..traffic.profiles import Profile
from ..units import si
from .cards import CardFile, Choice, Limit, places
from .headroom import SHARE, Bound


@dataclass(frozen=True)
class PublishedLimits:
    """The card that was chosen, if any (``choice``), under *server* (None: its version is not known)."""

    choice: Choice
    link_bps: float
    server: str | None = None
    places: tuple[str, ...] = ("", "")
    """Of each port that the testbed uses: which card it is on; "": not told, taken as the same."""

    @classmethod
    def of(cls, choice: Choice, ports: Sequence[GeneratorPort], link_bps: float, server: str | None) -> PublishedLimits:
        """*ports*: those that the testbed uses; *link_bps* of each."""
        return cls(choice, link_bps, server, places(ports))

    @property
    def one_card(self) -> bool:
        """Whether all ports are of one card, as far as is known."""
        return len(set(self.places)) == 1

    def sending(self, bidirectional: bool, pairs: int = 1) -> int:
        """How many ports of one card send at once, of the card of which most do."""
        senders = [place for index, place in enumerate(self.places[: 2 * pairs]) if bidirectional or not index % 2]
        return max(Counter(senders).values(), default=1)

    @property
    def file(self) -> CardFile | None:
        """The card's file; None where the card is not known."""
        return self.choice.file

    @property
    def limits(self) -> tuple[Limit, ...]:
        """Those that hold for this server."""
        return tuple(limit for limit in self.file.card.limits if limit.servers.hold(self.server)) if self.file else ()

    def bound(self, profile: Profile, bidirectional: bool, pairs: int = 1) -> Bound | None:
        """The lowest ceiling that holds for *profile*, as frames/s of each sending port; None where none is known."""
        file, sending = self.file, self.sending(bidirectional, pairs)
        largest = max(frame.size for frame in profile.frames)
        found = [
            (_per_port(limit, profile, sending), limit)
            for limit in self.limits
            if limit.frames_below is None or largest < limit.frames_below
        ]
        if file is None or not found:
            return None
        pps, limit = min(found, key=lambda pair: pair[0])
        ports = f", {sending} ports of it send" if sending > 1 and limit.pps_per_port is None else ""
        return Bound(
            line=profile.line_rate_pps(self.link_bps),
            lossless=pps,
            received=pps,
            lead="the generator's card is not known to carry this load",
            words=lambda ceiling: (
                f"this card ({file.card.name}) is known to stop at {_words(limit)}{ports}: {si(ceiling, 'pps')} from"
                f" each port (source: {limit.source}; beyond {SHARE:.0%} of that no FAIL is given)"
            ),
            remedy="calibrate the generator, for what is measured comes before what is published, or use a faster one",
            evidence={
                "known": True,
                "card": file.card.card,
                "limit": limit.model_dump(mode="json", exclude_none=True),
                "ports_of_card": sending,
                "ceiling_pps": pps,
                "file": file.path.name,
                "sha256": file.sha256,
            },
        )

    def refuse(self, profile: Profile, probes: bool) -> None:
        """Raise TestbedError where the card is known not to send these frames, or not to tell their latency."""
        if self.file is None:
            return
        card, sizes = self.file.card, [frame.size for frame in profile.frames]
        for size in card.frame_sizes:
            beyond = [n for n in sizes if n > (size.largest or n) or n < (size.smallest or n)]
            if beyond and size.servers.hold(self.server):
                raise TestbedError(
                    f"'{profile.name}' was not sent: the generator's card ({card.name}) is known not to send frames of"
                    f" {beyond[0]} bytes under {self.server or 'this TRex'} ({size.source})"
                )
        for lacking in card.latency if probes else ():
            kinds = sorted(kinds_of(profile) & set(lacking.frames))
            if lacking.servers.hold(self.server) and (kinds or not lacking.frames):
                what = f"of {' and '.join(kinds)} frames " if kinds else ""
                raise TestbedError(
                    f"'{profile.name}' was not sent: the generator's card ({card.name}) is known not to tell the"
                    f" latency {what}under {self.server or 'this TRex'} ({lacking.source}); {lacking.remedy}"
                )

    def record(self) -> dict[str, object]:
        """For the environment's record."""
        if self.file is None:
            return {"card": None, "why": self.choice.why}
        return {
            "card": self.file.card.card,
            "why": self.choice.why,
            "file": self.file.path.name,
            "sha256": self.file.sha256,
            "one_card": self.one_card,
        }

    def __str__(self) -> str:
        if self.file is None:
            return f"limits of the generator's card are not known: {self.choice.why}"
        known = "; ".join(_words(limit) for limit in self.limits)
        return f"{self.file.card.name} ({self.choice.why}): {known or 'no ceiling is known'} ({self.file.path.name})"


def _per_port(limit: Limit, profile: Profile, sending: int) -> float:
    """Frames/s of each of *sending* ports of a card."""
    if limit.pps_per_port is not None:
        return limit.pps_per_port
    if limit.pps_per_card is not None:
        return limit.pps_per_card / sending
    return (limit.bps_per_card or 0.0) / (8 * profile.mean_size) / sending


def _words(limit: Limit) -> str:
    small = f" of frames below {limit.frames_below} bytes" if limit.frames_below else ""
    if limit.pps_per_port is not None:
        return f"{si(limit.pps_per_port, 'pps')} per port{small}"
    if limit.pps_per_card is not None:
        return f"{si(limit.pps_per_card, 'pps')} per card{small}"
    return f"{si(limit.bps_per_card or 0.0, 'bit/s')} per card{small}"
