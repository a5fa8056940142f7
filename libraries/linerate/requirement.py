"""The sentence grammar: ``TRAFFIC DIRECTION [QUANTITY] ≥|≤|>=|<= VALUE UNIT [each way|in total] [at LOAD]``.

One parser, used by the keywords, by offline judging and by the reports. A sentence that cannot be understood, or that
no router could keep on these ports, raises SentenceError before any frame is sent.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from enum import Enum

from .errors import SentenceError
from .profiles import Catalogue, Profile
from .trial import Load
from .units import Layer, bits, si


class Quantity(Enum):
    """What a sentence speaks of."""

    THROUGHPUT = "throughput"
    """RFC 1242 3.17: the highest offered load with no more loss than the goal allows."""
    FORWARDING_RATE = "forwards"
    """RFC 2285 3.6.2: the forwarding rate at maximum offered load (or at the load named)."""
    LOSS = "loses"
    """RFC 1242 3.6: lost / offered, at a load."""
    COST = "costs"
    """Processor cycles per forwarded packet, at a load."""


class Scope(Enum):
    """How the two directions of a bidirectional sentence count."""

    ONE = ""
    EACH_WAY = "each way"
    IN_TOTAL = "in total"


class Unit(Enum):
    """Units of a threshold."""

    PERCENT_LINE = "% line rate"
    PPS = "pps"
    BPS_L1 = "bit/s L1"
    BPS_L2 = "bit/s L2"
    PERCENT = "%"
    CYCLES = "cycles/packet"


RATE_UNITS = (Unit.PERCENT_LINE, Unit.PPS, Unit.BPS_L1, Unit.BPS_L2)

_UNITS = {
    Quantity.THROUGHPUT: RATE_UNITS,
    Quantity.FORWARDING_RATE: RATE_UNITS,
    Quantity.LOSS: (Unit.PERCENT,),
    Quantity.COST: (Unit.CYCLES,),
}

_NOT_YET = {
    "latency": "latency",
    "jitter": "jitter",
    "recovers": "recovery time",
}


@dataclass(frozen=True, slots=True)
class Value:
    """A figure with its unit. ``number`` is in the unit without SI prefix: ``5 Mpps`` is 5e6 of PPS."""

    number: float
    unit: Unit

    def pps(self, profile: Profile, link_bps: float) -> float:
        """A rate value as frames/s of *profile*. Raises ValueError for a unit that is no rate."""
        if self.unit is Unit.PPS:
            return self.number
        if self.unit is Unit.PERCENT_LINE:
            return self.number / 100 * profile.line_rate_pps(link_bps)
        if self.unit is Unit.BPS_L1:
            return self.number / bits(profile.mean_size, Layer.L1)
        if self.unit is Unit.BPS_L2:
            return self.number / bits(profile.mean_size, Layer.L2)
        raise ValueError(f"{self.unit.value} is not a rate")

    def __str__(self) -> str:
        if self.unit in (Unit.PERCENT_LINE, Unit.PERCENT):
            return f"{self.number:g}{self.unit.value}"
        if self.unit is Unit.CYCLES:
            return f"{self.number:g} cycles/packet"
        return si(self.number, self.unit.value, 6)


@dataclass(frozen=True)
class Requirement:
    """A parsed sentence. ``load`` is the load it names (None: the threshold, or the maximum offered load)."""

    sentence: str
    profile: Profile
    bidirectional: bool
    quantity: Quantity
    at_least: bool
    threshold: Value
    scope: Scope
    load: Value | None = None
    load_scope: Scope = Scope.ONE

    @property
    def directions(self) -> int:
        """1 or 2."""
        return 2 if self.bidirectional else 1

    @property
    def in_total(self) -> bool:
        """Both directions are judged together."""
        return self.scope is Scope.IN_TOTAL

    def threshold_pps(self, link_bps: float) -> float:
        """A rate threshold in frames/s, of one direction or of both together as the sentence counts."""
        return self.threshold.pps(self.profile, link_bps)

    def threshold_load(self, link_bps: float) -> Load:
        """The threshold as the load to offer into each sending port."""
        total = self.threshold_pps(link_bps)
        return Load(total / 2 if self.in_total else total)

    def named_load(self, link_bps: float) -> Load | None:
        """The load that the sentence names with ``at``, per sending port."""
        if self.load is None:
            return None
        pps = self.load.pps(self.profile, link_bps)
        return Load(pps / 2 if self.load_scope is Scope.IN_TOTAL else pps)

    def check(self, link_bps: float) -> None:
        """Raise SentenceError if the ports (*link_bps*, L1 bit/s) cannot carry what the sentence asks."""
        line = self.profile.line_rate_pps(link_bps)
        asked = []
        if self.threshold.unit in RATE_UNITS:
            asked.append((self.threshold_load(link_bps).pps, self.threshold, self.scope))
        named = self.named_load(link_bps)
        if named is not None and self.load is not None:
            asked.append((named.pps, self.load, self.load_scope))
        for pps, value, scope in asked:
            # a hair of slack: 14.88 Mpps is how people write line rate, 100 % must not fail by a rounding
            if pps > line * 1.0005:
                ways = 2 if scope is Scope.IN_TOTAL else 1
                most = Value(100.0 * ways, Unit.PERCENT_LINE)
                how = f" {scope.value}" if scope.value else ""
                raise SentenceError(
                    f"'{self.sentence}': {value}{how} is more than the ports can carry; a {si(link_bps, 'bit/s')} port"
                    f" carries {si(line, 'pps')} of {self.profile.name} each way, so at most {most}{how}"
                    f" ({si(line * ways, 'pps')})"
                )


_COMPARE = re.compile(r"\s*(≥|≤|>=|<=)\s*")
_WRONG_COMPARE = re.compile(r"[<>=]=?")
_RIGHT = re.compile(
    r"^(?P<number>\d+(?:\.\d+)?)\s*(?P<unit>[^\d\s].*?)"
    r"(?:\s+(?P<scope>each way|in total))?(?:\s+at\s+(?P<load>.+?))?$"
)
_LOAD = re.compile(r"^(?P<number>\d+(?:\.\d+)?)\s*(?P<unit>[^\d\s].*?)(?:\s+(?P<scope>each way|in total))?$")
_PPS = re.compile(r"^(?P<prefix>[kMG]?)pps$")
_BPS = re.compile(r"^(?P<prefix>[kMG]?)(?:bps|bit/s)(?:\s+(?P<layer>L1|L2))?$")
_SCOPES = {None: Scope.ONE, "each way": Scope.EACH_WAY, "in total": Scope.IN_TOTAL}
_FACTOR = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9}

EXAMPLES = ("imix unidirectional ≥ 95% line rate", "64b 1-flow ≥ 5 Mpps", "64b bidirectional ≥ 80% line rate in total")


def is_sentence(text: str) -> bool:
    """Whether *text* means to be a sentence: it compares something."""
    return bool(_COMPARE.search(text))


def parse(sentence: str, catalogue: Catalogue) -> Requirement:
    """Understand *sentence*. Raises SentenceError with what was not understood and what would be."""
    try:
        return _parse(" ".join(sentence.split()), catalogue)
    except SentenceError as error:
        raise SentenceError(f"'{sentence}': {error}") from None


def _parse(sentence: str, catalogue: Catalogue) -> Requirement:
    parts = _COMPARE.split(sentence)
    if len(parts) != 3 or not parts[0] or not parts[2]:
        wrong = _WRONG_COMPARE.search(sentence)
        shown = f"'{wrong[0]}' is not a comparison here; " if wrong and len(parts) == 1 else ""
        raise SentenceError(f"{shown}a sentence compares once, with ≥ or ≤ (or >= <=), as in '{EXAMPLES[0]}'")
    left, comparison, right = parts
    words, bidirectional, quantity = _left(left.split(), catalogue)
    profile = catalogue.profile(words)
    if bidirectional is None:
        if not profile.is_one_flow:
            raise SentenceError("says no direction; right would be 'unidirectional' or 'bidirectional'")
        bidirectional = False
    found = _RIGHT.match(right)
    if not found:
        raise SentenceError(
            f"'{right}' is not a figure with a unit; right would be for example '95% line rate', '5 Mpps'"
        )
    threshold = _value(found["number"], found["unit"], quantity)
    scope = _scope(found["scope"], bidirectional, threshold)
    at_least = comparison in ("≥", ">=")
    if at_least is not (quantity in (Quantity.THROUGHPUT, Quantity.FORWARDING_RATE)):
        raise SentenceError(f"'{quantity.value}' takes {'≤' if at_least else '≥'}, not {comparison}")
    load, load_scope = _load(found["load"], bidirectional, quantity)
    return Requirement(sentence, profile, bidirectional, quantity, at_least, threshold, scope, load, load_scope)


def _left(words: list[str], catalogue: Catalogue) -> tuple[list[str], bool | None, Quantity]:
    traffic: list[str] = []
    bidirectional: bool | None = None
    quantity = Quantity.THROUGHPUT
    quantities = {item.value: item for item in Quantity}
    for word in words:
        if word in ("unidirectional", "bidirectional"):
            if bidirectional is not None:
                raise SentenceError("says the direction twice; keep one")
            bidirectional = word == "bidirectional"
        elif word in quantities:
            quantity = quantities[word]
        elif word in _NOT_YET:
            measured = ", ".join(quantities)
            raise SentenceError(f"{_NOT_YET[word]} is not measured by this version; measured are: {measured}")
        elif catalogue.is_word(word):
            traffic.append(word)
        else:
            known = [*catalogue.words(), "unidirectional", "bidirectional", *quantities]
            near = difflib.get_close_matches(word, known, 1)
            hint = f"did you mean '{near[0]}'? " if near else ""
            raise SentenceError(f"'{word}' is not understood; {hint}known words: {', '.join(known)}")
    return traffic, bidirectional, quantity


def _value(number: str, unit: str, quantity: Quantity) -> Value:
    value = _read_unit(float(number), " ".join(unit.split()))
    if value.unit not in _UNITS[quantity]:
        right = ", ".join(_spell(item) for item in _UNITS[quantity])
        raise SentenceError(f"'{unit}' does not fit '{quantity.value}'; right would be {right}")
    if value.number <= 0 and quantity is not Quantity.LOSS:
        raise SentenceError("the threshold must be more than 0")
    if value.unit is Unit.PERCENT and value.number > 100:
        raise SentenceError("loss is at most 100%")
    return value


def _spell(unit: Unit) -> str:
    return {
        Unit.PPS: "'Mpps' (kpps, pps)",
        Unit.BPS_L1: "'Gbps L1'",
        Unit.BPS_L2: "'Gbps L2'",
    }.get(unit, f"'{unit.value}'")


def _read_unit(number: float, unit: str) -> Value:
    if unit in ("% line rate", "% of line rate"):
        return Value(number, Unit.PERCENT_LINE)
    if unit == "%":
        return Value(number, Unit.PERCENT)
    if unit in ("cycles/packet", "cycles per packet"):
        return Value(number, Unit.CYCLES)
    found = _PPS.match(unit)
    if found:
        return Value(number * _FACTOR[found["prefix"]], Unit.PPS)
    found = _BPS.match(unit)
    if found:
        if not found["layer"]:
            raise SentenceError(f"'{unit}' does not say which bits; right would be '{unit} L1' or '{unit} L2'")
        kind = Unit.BPS_L1 if found["layer"] == "L1" else Unit.BPS_L2
        return Value(number * _FACTOR[found["prefix"]], kind)
    if unit in ("µJ/packet", "uJ/packet", "μJ/packet"):
        raise SentenceError("energy per packet is not measured by this version (it needs a power meter)")
    known = ["% line rate", "Mpps", "kpps", "pps", "Gbps L1", "Gbps L2", "Mbps L1", "Mbps L2", "%", "cycles/packet"]
    lower = {item.lower(): item for item in known}
    close = difflib.get_close_matches(unit.lower(), lower, 1)
    hint = f"did you mean '{lower[close[0]]}'? " if close else ""
    raise SentenceError(f"the unit '{unit}' is not known; {hint}known: {', '.join(known)}")


def _scope(text: str | None, bidirectional: bool, value: Value) -> Scope:
    scope = _SCOPES[text]
    if not bidirectional:
        if scope is not Scope.ONE:
            raise SentenceError(f"'{text}' fits a bidirectional sentence only")
        return scope
    if value.unit not in RATE_UNITS:
        # cost has no direction; loss is judged on the worse direction unless it says otherwise
        return Scope.EACH_WAY if scope is Scope.ONE and value.unit is Unit.PERCENT else scope
    if scope is Scope.ONE:
        raise SentenceError(
            f"a bidirectional rate must say how the directions count; right would be '{value} each way' (the worse"
            f" direction) or '{value} in total' (the sum of both)"
        )
    return scope


def _load(text: str | None, bidirectional: bool, quantity: Quantity) -> tuple[Value | None, Scope]:
    if text is None:
        if quantity is Quantity.LOSS:
            raise SentenceError("'loses' needs a load; right would be for example 'at 5 Mpps' or 'at 50% line rate'")
        return None, Scope.ONE
    if quantity is Quantity.THROUGHPUT:
        raise SentenceError("throughput takes no 'at': the threshold is the load that is offered")
    found = _LOAD.match(text)
    if not found:
        raise SentenceError(f"'at {text}' is not a load; right would be for example 'at 5 Mpps' or 'at 50% line rate'")
    value = _value(found["number"], found["unit"], Quantity.THROUGHPUT)
    return value, _scope(found["scope"], bidirectional, value)
