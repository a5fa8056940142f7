"""Published limits of the generator's card: the second source for the rule of :mod:`.headroom`.

Above a published ceiling there is no FAIL; what the card cannot do at all is refused before traffic.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from ..core.doubts import USABLE_SHARE
from ..core.traffic.frame_kinds import kinds_of
from ..core.traffic.profiles import Profile
from ..errors import TestbedError
from ..generators.base import GeneratorPort, ProbesRefused
from ..units import si
from .cards import CardChoice, CardFile, CardLimit, UnsupportedLatency, card_of_each_port
from .headroom import KnownCeiling

SOFTWARE_ONLY = "tpg"
"""What a TRex in stateless mode reports to measure only if it was started with ``--software``, or if the card has no
filters (v3.08, src/stx/common/trex_rpc_cmds_common.cpp:502-506)."""


@dataclass(frozen=True)
class PublishedLimits:
    """The limits of the chosen card, if any (``choice``), with TRex version ``server`` (None: not known).

    ``software``: whether that TRex picks received frames out itself (``--software``), as far as it reports it.
    """

    choice: CardChoice
    link_bps: float
    server: str | None = None
    port_cards: tuple[str, ...] = ("", "")
    """The card of each port that the testbed uses; "": not known, taken as the same."""
    software: bool = False

    @classmethod
    def of(
        cls, choice: CardChoice, ports: Sequence[GeneratorPort], link_bps: float, server: str | None
    ) -> PublishedLimits:
        """*ports*: those that the testbed uses, each of *link_bps* bit/s."""
        software = bool(ports) and all(SOFTWARE_ONLY in (port.measures or ()) for port in ports)
        return cls(choice, link_bps, server, card_of_each_port(ports), software)

    def most_senders_on_one_card(self, bidirectional: bool, pairs: int = 1) -> int:
        """How many ports of one card send at once: the highest number of any card."""
        senders = [card for index, card in enumerate(self.port_cards[: 2 * pairs]) if bidirectional or not index % 2]
        return max(Counter(senders).values(), default=1)

    @property
    def card_file(self) -> CardFile | None:
        """The card's file; None if the card is not known."""
        return self.choice.file

    @property
    def limits(self) -> tuple[CardLimit, ...]:
        """The ceilings that apply to this TRex version."""
        limits = self.card_file.card.limits if self.card_file else ()
        return tuple(limit for limit in limits if limit.servers.include(self.server))

    @property
    def lacking_latency(self) -> tuple[UnsupportedLatency, ...]:
        """Return what this TRex cannot measure the latency of with this card."""
        facts = self.card_file.card.latency if self.card_file else ()
        return tuple(
            fact
            for fact in facts
            if fact.servers.include(self.server) and not (fact.hardware_filters and self.software)
        )

    def known_ceiling(self, profile: Profile, bidirectional: bool, pairs: int = 1) -> KnownCeiling | None:
        """The lowest ceiling that applies to *profile*, of each sending port; None if none is known."""
        file, sending = self.card_file, self.most_senders_on_one_card(bidirectional, pairs)
        largest = max(frame.size for frame in profile.frames)
        found = [
            (_pps_per_port(limit, profile, sending), limit)
            for limit in self.limits
            if limit.frames_below is None or largest < limit.frames_below
        ]
        if file is None or not found:
            return None
        pps, limit = min(found, key=lambda pair: pair[0])
        ports = f", {sending} ports of it send" if sending > 1 and limit.pps_per_port is None else ""
        return KnownCeiling(
            line=profile.line_rate_pps(self.link_bps),
            lossless=pps,
            received=pps,
            conclusion="the generator's card is not known to carry this load",
            explain=lambda ceiling: (
                f"this card ({file.card.name}) is known to stop at {_limit_text(limit)}{ports}: {si(ceiling, 'pps')}"
                f" from each port (source: {limit.source}; beyond {USABLE_SHARE:.0%} of that no FAIL is given)"
            ),
            remedy="calibrate the generator, because a measured ceiling replaces a published one, or use a faster one",
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

    def check_sendable(self, profile: Profile, probes: bool) -> None:
        """Raise TestbedError if the card is known not to send these frames, or not to measure their latency."""
        if self.card_file is None:
            return
        card, sizes = self.card_file.card, [frame.size for frame in profile.frames]
        for size in card.frame_sizes:
            beyond = [n for n in sizes if n > (size.largest or n) or n < (size.smallest or n)]
            if beyond and size.servers.include(self.server):
                raise TestbedError(
                    f"'{profile.name}' was not sent: the generator's card ({card.name}) is known not to send frames of"
                    f" {beyond[0]} bytes under {self.server or 'this TRex'} ({size.source})"
                )
        for lacking in self.lacking_latency if probes else ():
            kinds = sorted(kinds_of(profile) & set(lacking.frames))
            if kinds or not lacking.frames:
                frames = f"of {' and '.join(kinds)} frames " if kinds else ""
                raise ProbesRefused(
                    f"'{profile.name}' was not sent: the generator's card ({card.name}) is known not to measure the"
                    f" latency {frames}under {self.server or 'this TRex'} ({lacking.source}); {lacking.remedy}"
                )

    def record(self) -> dict[str, object]:
        """For the record of the environment."""
        if self.card_file is None:
            return {"card": None, "why": self.choice.why}
        return {
            "card": self.card_file.card.card,
            "why": self.choice.why,
            "file": self.card_file.path.name,
            "sha256": self.card_file.sha256,
            "one_card": len(set(self.port_cards)) == 1,
        }

    def __str__(self) -> str:
        if self.card_file is None:
            return f"limits of the generator's card are not known: {self.choice.why}"
        file, known = self.card_file, "; ".join(_limit_text(limit) for limit in self.limits)
        return f"{file.card.name} ({self.choice.why}): {known or 'no limit of its own is known'} ({file.path.name})"


def _pps_per_port(limit: CardLimit, profile: Profile, sending: int) -> float:
    """Frames/s of each of *sending* ports of a card."""
    if limit.pps_per_port is not None:
        return limit.pps_per_port
    if limit.pps_per_card is not None:
        return limit.pps_per_card / sending
    return (limit.bps_per_card or 0.0) / (8 * profile.mean_size) / sending


def _limit_text(limit: CardLimit) -> str:
    small = f" of frames below {limit.frames_below} bytes" if limit.frames_below else ""
    if limit.pps_per_port is not None:
        return f"{si(limit.pps_per_port, 'pps')} per port{small}"
    if limit.pps_per_card is not None:
        return f"{si(limit.pps_per_card, 'pps')} per card{small}"
    return f"{si(limit.bps_per_card or 0.0, 'bit/s')} per card{small}"
