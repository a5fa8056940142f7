"""A recorded sentence, parsed again: its record has the text, and of its traffic the name and the mean size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from ..core.bounds import UNKNOWN, Bounds
from ..core.quantity import Promise, Quantity, Reason, Requirement
from ..core.registry import is_installed, quantities
from ..core.rule import Ruling
from ..core.sentence import parse
from ..core.traffic.profiles import AddressRange, Flows, FrameClass, Profile
from ..core.trial import Trial
from ..core.units import Unit
from ..errors import SentenceError


@dataclass(frozen=True)
class _SentProfile(Profile):
    recorded_size: float = 64.0

    @cached_property
    def mean_size(self) -> float:
        """The recorded mean size in bytes with FCS."""
        return self.recorded_size


@dataclass(frozen=True)
class _SentTraffic:
    """Knows the traffic that was sent, and takes each word for one of it that is no quantity's."""

    sent: Profile

    def spelled(self, word: str) -> str | None:
        if word in self.words() or word.lower() not in {quantity.word for quantity in quantities().values()}:
            return word
        return None

    def profile(self, words: list[str]) -> Profile:
        return self.sent

    def words(self) -> list[str]:
        return self.sent.name.split()


class _NotInstalled(Quantity):
    """Stands for a quantity of another distribution: it knows no figure of its trials."""

    word = ""
    units = tuple(Unit)
    doubts = ()

    def figures(self, promise: Promise, trials: Sequence[Trial], perfect: int = 0) -> tuple[Bounds, ...]:
        return tuple(UNKNOWN for _ in trials[0].outcome.directions)

    def reason(self, promise: Promise, ruling: Ruling, trials: Sequence[Trial]) -> Reason:
        return Reason(f"quantity '{self.name}' is not installed")


@lru_cache(maxsize=1000)
def recorded_requirement(sentence: str, quantity: str, profile: str, mean_size: float, cores: int) -> Requirement:
    """Return *sentence*, parsed. Raises SentenceError.

    *quantity*: its name. One that is not installed has no figures; *profile*, *mean_size*: of its traffic; *cores*: of
    the router.
    """
    otherwise = None
    if not is_installed(quantity):
        at_least = "≥" in sentence or ">=" in sentence
        otherwise = type("NotInstalled", (_NotInstalled,), {"name": quantity, "at_least": at_least})()
    address = AddressRange("16.0.0.1", "16.0.0.1")
    sent = _SentProfile(profile, (FrameClass(64),), Flows(address, address), recorded_size=mean_size)
    requirement = parse(sentence, _SentTraffic(sent), otherwise)
    if (name := requirement.quantity.name) != quantity:
        raise SentenceError(f"'{sentence}' is of quantity '{name}'; its record says '{quantity}'")
    return requirement.on_cores(cores)
