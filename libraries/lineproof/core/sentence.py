"""The grammar of sentences.

``TRAFFIC DIRECTION [on N pairs] [QUANTITY] ≥|≤|>=|<= VALUE UNIT [each way|in total] [at LOAD] [for TIME]``

One parser serves the keywords, offline judging and the reports. A sentence that it does not understand raises
SentenceError before any frame is sent; :meth:`.quantity.Requirement.check` refuses one that no router can meet.
"""

from __future__ import annotations

import difflib
import math
import re
from typing import Protocol

from ..config import did_you_mean
from ..errors import SentenceError
from ..units import NUMBER
from ..visible import shortened
from .latency import Statistic
from .quantity import Quantity, Requirement, Scope, TrafficWords
from .registry import built_in_quantities, quantities
from .traffic.profiles import PAIRS, Profile
from .units import RATE_UNITS, Unit, Value

LONGEST = 300
"""Characters of a sentence: then no expression below takes long, whatever the words are."""

_OTHERS = {
    "jitter": "has several meanings, and TRex's is a running figure of the last frames; expected the packet"
    " delay variation of RFC 5481, for example 'pdv p99.9 ≤ 50 µs at 1 Mpps' (RFC 8219 7.3.1)",
    "carries": "is not understood; leave it out for the throughput, as in '64b unidirectional ≥ 5 Mpps', or write"
    " 'forwards' for the rate at the highest load",
}
"""Words of others -> what is expected in their place."""

_COMPARISONS = ("≥", "≤", ">=", "<=")
_COMPARISON = re.compile(r"\s*(≥|≤|>=|<=)\s*")
_WRONG_COMPARISON = re.compile(r"[<>=]=?")
_FIGURE = r"[0-9][0-9.]*(?:e[+-]?[0-9]+)?"
"""A number as people may write it; :func:`_number` says which of them it understands."""

_RIGHT_SIDE = re.compile(
    rf"^(?P<number>{_FIGURE})\s*(?P<unit>[^\d\s].*?)"
    r"(?:\s+(?P<scope>each way|in total))?(?:\s+at\s+(?P<load>.+?))?$",
    re.IGNORECASE,
)
_ON_PAIRS = re.compile(r"(?:^|\s)on\s+(?P<number>\S+)\s+(?:port\s+)?pairs?(?=\s|$)", re.IGNORECASE)
_NUMBER_WITH_COMMA = re.compile(r"\b[0-9]+(?:,[0-9]+)+\b")
_FOR_TIME = re.compile(r"^(?P<before>.*\S)\s+for\s+(?P<time>.+)$", re.IGNORECASE)
_TIME = re.compile(rf"^(?P<number>{_FIGURE})\s*(?P<unit>s|min|h)$", re.IGNORECASE)
_SECONDS_OF_UNIT = {"s": 1.0, "min": 60.0, "h": 3600.0}
_LONGEST_TIME = 86400.0
_LOAD = re.compile(
    rf"^(?P<number>{_FIGURE})\s*(?P<unit>[^\d\s].*?)(?:\s+(?P<scope>each way|in total))?$", re.IGNORECASE
)
_BITS = re.compile("[kmg]?(?:bps|bit/s)")
_UNITS_PER_PACKET = {
    unit.value.replace("µ", micro).replace("/", per): unit
    for unit in Unit
    if "/" in unit.value and unit not in RATE_UNITS
    for micro in ("µ", "μ", "u")
    for per in ("/", " per ")
}
_RATES = {"pps": Unit.PPS, "pps per core": Unit.PPS_PER_CORE, "bps l1": Unit.BPS_L1, "bps l2": Unit.BPS_L2}
_UNITS = {
    **{"% line rate": (Unit.PERCENT_LINE, 1.0), "% of line rate": (Unit.PERCENT_LINE, 1.0), "%": (Unit.PERCENT, 1.0)},
    **dict.fromkeys(("µs", "μs", "us"), (Unit.MICROSECONDS, 1.0)),
    **{"ms": (Unit.MICROSECONDS, 1000.0), "s": (Unit.SECONDS, 1.0)},
    **{spelling.lower(): (unit, 1.0) for spelling, unit in _UNITS_PER_PACKET.items()},
    **{
        f"{prefix}{spelling}": (unit, factor)
        for prefix, factor in {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9}.items()
        for rate, unit in _RATES.items()
        for spelling in (rate, rate.replace("bps", "bit/s"))
    },
}
"""Units and their factors, by how people spell them, in small letters."""

_SCOPES = {None: Scope.ONE, "each way": Scope.EACH_WAY, "in total": Scope.IN_TOTAL}

EXAMPLES = ("imix unidirectional ≥ 95% line rate", "64b 1-flow ≥ 5 Mpps", "64b bidirectional ≥ 80% line rate in total")


class TrafficNames(Protocol):
    """The traffic words that sentences may have: a :class:`.traffic.catalogue.Catalogue`, or what a record says."""

    def spelled(self, word: str) -> str | None:
        """Return the traffic word that *word* means, None: none."""
        ...

    def profile(self, words: list[str]) -> Profile:
        """Return the profile that *words* name. Raises SentenceError."""
        ...

    def words(self) -> list[str]:
        """Return all traffic words, for messages."""
        ...


def _wordless() -> Quantity:
    """Return the quantity of a sentence that has no word for one."""
    return next(quantity for quantity in built_in_quantities().values() if not quantity.word)


def is_sentence(text: str) -> bool:
    """Return whether *text* is meant as a sentence: it has a comparison."""
    return any(each in text for each in _COMPARISONS)


def parse(sentence: str, catalogue: TrafficNames, otherwise: Quantity | None = None) -> Requirement:
    """Return the requirement of *sentence*. Raises SentenceError, which says what is wrong and what is expected.

    *otherwise*: the quantity where the sentence has no word for one; None: that of all such sentences.
    """
    try:
        return _parse_sentence(_one_line(sentence), catalogue, otherwise or _wordless())
    except SentenceError as error:
        raise SentenceError(f"'{shortened(sentence)}': {error}") from None


def _one_line(text: str) -> str:
    """Return *text* with one space between words. Raises SentenceError if it is too long or does not print."""
    if len(text) > LONGEST:
        raise SentenceError(f"has {len(text)} characters; expected at most {LONGEST}")
    line = " ".join(text.split())
    if not line.isprintable():
        raise SentenceError("has characters that do not print; write it again")
    return line


def _parse_sentence(sentence: str, catalogue: TrafficNames, otherwise: Quantity) -> Requirement:
    parts = _COMPARISON.split(sentence)
    if len(parts) != 3 or not parts[0] or not parts[2]:
        wrong = _WRONG_COMPARISON.search(sentence)
        hint = f"'{wrong[0]}' is not a comparison here; " if wrong and len(parts) == 1 else ""
        raise SentenceError(f"{hint}a sentence compares once, with ≥ or ≤ (or >= <=), as in '{EXAMPLES[0]}'")
    left, comparison, right = parts
    left, pairs = _split_pairs(left)
    traffic_words, asked, quantity, statistic = _parse_left_side(left.split(), catalogue, otherwise)
    if comma := _NUMBER_WITH_COMMA.search(right):
        without_comma = comma[0].replace(",", "." if comma[0].count(",") == 1 else "")
        raise SentenceError(f"'{comma[0]}' has a comma; figures have a decimal point, as in '{without_comma}'")
    right, duration_sum = _split_for_time(right)
    traffic = _traffic(sentence, catalogue.profile(traffic_words), asked, pairs)
    figure = _RIGHT_SIDE.match(right)
    if not figure:
        problem = "is negative" if right.startswith("-") else "is not a figure with a unit"
        raise SentenceError(f"'{right}' {problem}; expected for example '95% line rate', '5 Mpps'")
    threshold, quantity = _threshold(figure["number"], figure["unit"], quantity)
    scope = _parse_scope(figure["scope"], traffic, threshold, quantity)
    at_least = comparison in ("≥", ">=")
    if at_least is not quantity.at_least:
        raise SentenceError(f"'{quantity.word or quantity.name}' takes {'≤' if at_least else '≥'}, not {comparison}")
    load, load_scope = _parse_load(figure["load"], traffic, quantity)
    if duration_sum is not None and "changing load" in quantity.needs:
        raise SentenceError(f"'{quantity.word}' takes no 'for': its limit sets how long the counts are read")
    return Requirement(
        traffic.profile,
        traffic.bidirectional,
        sentence,
        quantity,
        at_least,
        threshold,
        scope,
        load,
        load_scope,
        statistic,
        duration_sum,
        pairs=pairs,
    )


def parse_traffic(words: str, catalogue: TrafficNames) -> TrafficWords:
    """Return the traffic of ``TRAFFIC DIRECTION [on N pairs]``, a sentence without a demand. Raises SentenceError."""
    try:
        text = _one_line(words)
        if is_sentence(text):
            raise SentenceError(f"has a threshold; expected traffic alone, as '{_COMPARISON.split(text)[0]}'")
        left, pairs = _split_pairs(text)
        named, asked, quantity, _ = _parse_left_side(left.split(), catalogue, _wordless())
        if quantity.word:
            raise SentenceError(f"'{quantity.word}' belongs to a sentence; expected traffic and direction alone")
        return _traffic(text, catalogue.profile(named), asked, pairs)
    except SentenceError as error:
        raise SentenceError(f"'{shortened(words)}': {error}") from None


def measured(traffic: TrafficWords, quantity: Quantity, unit: Unit, at: str | None) -> Requirement:
    """Return *quantity* in *unit*, to be measured of *traffic* at the load *at* (None: the maximum).

    Nothing is held against its threshold. Raises SentenceError.
    """
    scope = Scope.IN_TOTAL if unit in RATE_UNITS else Scope.EACH_WAY
    return Requirement(
        traffic.profile,
        traffic.bidirectional,
        f"{traffic.sentence} at {at}" if at else traffic.sentence,
        quantity,
        quantity.at_least,
        Value(1.0, unit),
        scope if quantity.has_directions and traffic.directions > 1 else Scope.ONE,
        *_parse_load(at, traffic, quantity),
        pairs=traffic.pairs,
    )


def _split_pairs(left: str) -> tuple[str, int]:
    """Return *left* without ``on 2 pairs``, and the number of pairs (1 if it says none)."""
    matches = list(_ON_PAIRS.finditer(left))
    if not matches:
        return left, 1
    if len(matches) > 1:
        raise SentenceError("says the number of port pairs twice; keep one")
    number = matches[0]["number"]
    if not re.fullmatch("[0-9]{1,3}", number) or not 1 <= int(number) <= PAIRS:
        raise SentenceError(f"'{matches[0][0].strip()}': expected 'on 1 pair' to 'on {PAIRS} pairs'")
    return f"{left[: matches[0].start()]} {left[matches[0].end() :]}", int(number)


def _traffic(sentence: str, profile: Profile, asked: bool | None, pairs: int) -> TrafficWords:
    """Return the traffic, if it can be sent. *asked*: whether bidirectional (None: not said, which one flow allows)."""
    if pairs > 1 and profile.has_own_addresses:
        raise SentenceError(
            f"'{profile.name}' brings its own addresses, which fit one port pair; expected no 'on {pairs} pairs'"
        )
    if asked is None and not profile.is_one_flow:
        raise SentenceError("says no direction; expected 'unidirectional' or 'bidirectional'")
    if asked and profile.one_direction_reason:
        raise SentenceError(f"'{profile.name}' can be sent unidirectional only: {profile.one_direction_reason}")
    return TrafficWords(profile, bool(asked), sentence, pairs=pairs)


def _parse_left_side(
    words: list[str], catalogue: TrafficNames, otherwise: Quantity
) -> tuple[list[str], bool | None, Quantity, Statistic | None]:
    """Traffic words, whether bidirectional (None: not said), quantity and statistic before the comparison."""
    traffic: list[str] = []
    statistic: Statistic | None = None
    bidirectional: bool | None = None
    quantity = otherwise
    rest = list(words)
    while rest:
        word = rest.pop(0)
        lower = word.lower()
        if lower in ("unidirectional", "bidirectional"):
            if bidirectional is not None:
                raise SentenceError("says the direction twice; keep one")
            bidirectional = lower == "bidirectional"
        elif named := _quantity(lower, catalogue.spelled(word) is not None):
            if quantity.word:
                raise SentenceError(
                    f"asks for both '{quantity.word}' and '{named.word}'; keep one, write a sentence for each"
                )
            quantity = named
            if quantity.after and (not rest or rest.pop(0).lower() != quantity.after):
                raise SentenceError(
                    f"'{quantity.word}' needs '{quantity.after}'; expected for example '{quantity.example}'"
                )
            if quantity.statistics:
                if not rest:
                    raise SentenceError(f"'{named.word}' says no statistic; expected for example '{quantity.example}'")
                statistic = quantity.statistic(rest.pop(0).lower())
        elif known := catalogue.spelled(word):
            traffic.append(known)
        else:
            raise SentenceError(f"'{shortened(word)}' {_OTHERS.get(lower) or _not_understood(lower, catalogue)}")
    return traffic, bidirectional, quantity, statistic


def _quantity(word: str, is_traffic: bool) -> Quantity | None:
    """Return the first quantity of *word*; None if there is none. A traffic word of other distributions stays one."""
    kinds = [built_in_quantities()] if is_traffic else [built_in_quantities(), quantities()]
    return next((item for kind in kinds for item in kind.values() if item.word == word), None)


def _not_understood(word: str, catalogue: TrafficNames) -> str:
    """Return a suggestion for *word*, or else what may stand in its place."""
    ours = dict.fromkeys(quantity.word for quantity in quantities().values() if quantity.word)
    # '3-flow' means three flows, not the one of '1-flow'
    meant = list(filter(None, [catalogue.spelled(f"{word}s")]))
    known = [*meant, *catalogue.words(), "unidirectional", "bidirectional", "on <N> pairs", *ours]
    expected = f"expected traffic, as '64b 1-flow unidirectional', or one of {', '.join(ours)}"
    return f"is not understood; {did_you_mean(word, known).removesuffix(' ') or expected}"


def _split_for_time(right: str) -> tuple[str, float | None]:
    """Return *right* without ``for 30 min`` at its end, and that time in s (None if it says none)."""
    match = _FOR_TIME.match(right)
    if not match:
        return right, None
    time = _TIME.match(match["time"])
    if not time:
        raise SentenceError(f"'for {match['time']}' is not a time; expected for example 'for 30 min' or 'for 2 h'")
    seconds = _number(time["number"]) * _SECONDS_OF_UNIT[time["unit"].lower()]
    if not 0 < seconds <= _LONGEST_TIME:
        raise SentenceError(f"'for {match['time']}': expected more than 0 and at most 24 h")
    return match["before"], seconds


def _threshold(number: str, unit: str, quantity: Quantity) -> tuple[Value, Quantity]:
    """Return the threshold, and the quantity of *quantity*'s word that has its unit."""
    same = [item for item in quantities().values() if item.word == quantity.word] if quantity.word else [quantity]
    known = [item for quantity_of_word in same for item in quantity_of_word.units]
    if unit.lower().split()[0] in ("at", "each", "in"):
        raise SentenceError(f"'{number}' has no unit; expected {', '.join(_unit_text(item) for item in known)}")
    value = _parse_unit(_number(number), " ".join(unit.split()))
    if value.unit is Unit.MICROSECONDS and value.unit not in known and Unit.SECONDS in known:
        value = Value(value.number / 1e6, Unit.SECONDS)
    if value.unit not in known:
        expected = ", ".join(_unit_text(item) for item in known)
        raise SentenceError(f"'{unit}' does not fit '{quantity.word or quantity.name}'; expected {expected}")
    if value.number <= 0 and value.unit is not Unit.PERCENT:
        raise SentenceError(f"'{number} {unit}': expected more than 0")
    if value.number / {Unit.SECONDS: 1.0, Unit.MICROSECONDS: 1e6}.get(value.unit, math.inf) > _LONGEST_TIME:
        raise SentenceError(f"'{number} {unit}': a time is at most 24 h")
    if value.unit is Unit.PERCENT and value.number > 100:
        raise SentenceError(f"'{number} {unit}': a share of the frames is at most 100%")
    return value, next(item for item in same if value.unit in item.units)


def _number(text: str) -> float:
    """Return the number that *text* writes. Raises SentenceError."""
    if not re.fullmatch(NUMBER, text):
        raise SentenceError(
            f"'{shortened(text)}' is no number here; expected at most 15 digits, and 15 after a decimal point, as '0.5'"
        )
    return float(text)


def _unit_text(unit: Unit) -> str:
    return {
        Unit.PPS: "'Mpps' (kpps, pps)",
        Unit.PPS_PER_CORE: "'Mpps per core'",
        Unit.BPS_L1: "'Gbps L1'",
        Unit.BPS_L2: "'Gbps L2'",
        Unit.MICROSECONDS: "'µs' (ms)",
        Unit.SECONDS: "'s' (ms)",
    }.get(unit, f"'{unit.value}'")


def _parse_unit(number: float, unit: str) -> Value:
    if (value := _value(number, unit)) is not None:
        return value
    if _ON_PAIRS.search(unit):
        raise SentenceError("'on N pairs' stands before the comparison, as in '64b bidirectional on 2 pairs ≥ …'")
    rates = ["% line rate", "Mpps", "kpps", "pps", "Mpps per core", "Gbps L1", "Gbps L2", "Mbps L1", "Mbps L2"]
    known = [*rates, "%", *(item.value for item in Unit if item in _UNITS_PER_PACKET.values()), "µs", "ms", "s"]
    by_lower = {item.lower(): item for item in known}
    parts = unit.split()
    before = [" ".join(parts[:end]) for end in range(len(parts) - 1, 0, -1)]
    shorter = next((text for text in before if _value(number, text) is not None), "")
    # a misspelled unit of several words begins with a shorter one, too
    close = difflib.get_close_matches(unit.lower(), by_lower, 1, 0.85 if shorter else 0.6)
    if shorter and not close:
        raise SentenceError(
            f"'{unit[len(shorter) + 1 :]}' after '{shorter}' is not understood; expected 'each way' or 'in total' of"
            " several directions, then 'at' and a load, then 'for' and a time"
        )
    near = "µs" if unit.lower() == "ns" else by_lower[close[0]] if close else ""
    hint = f"did you mean '{near}'?" if near else f"known: {', '.join(known)}"
    raise SentenceError(f"the unit '{unit}' is not known; {hint}")


def _value(number: float, unit: str) -> Value | None:
    """Return *number* of *unit*, whatever its case; None for no unit. Raises SentenceError for bits of no layer."""
    if (lower := unit.lower()) in _UNITS:
        known, factor = _UNITS[lower]
        return Value(number * factor, known)
    if _BITS.fullmatch(lower):
        raise SentenceError(f"'{unit}' does not say which bits; expected '{unit} L1' or '{unit} L2'")
    return None


def _parse_scope(text: str | None, traffic: TrafficWords, value: Value, quantity: Quantity) -> Scope:
    scope = _SCOPES[text and " ".join(text.lower().split())]
    if traffic.directions == 1:
        if scope is not Scope.ONE:
            raise SentenceError(
                f"'{text}' fits a bidirectional sentence only, or one on several port pairs; expected '{value}' alone"
            )
        return scope
    if value.unit not in RATE_UNITS:
        if scope is Scope.IN_TOTAL and not quantity.has_total:
            raise SentenceError(
                f"'{quantity.word}' has no total, it is judged on the worse direction; expected '{value} each way'"
            )
        # loss and times are judged on the worse direction unless the sentence says otherwise
        return scope if scope is not Scope.ONE or not quantity.has_directions else Scope.EACH_WAY
    if scope is Scope.ONE:
        ports = f"rate on {traffic.pairs} port pairs" if traffic.pairs > 1 else "bidirectional rate"
        raise SentenceError(
            f"a {ports} must say how the directions count; expected '{value} each way' (the worst direction) or"
            f" '{value} in total' (the sum of all)"
        )
    return scope


def _parse_load(text: str | None, traffic: TrafficWords, quantity: Quantity) -> tuple[Value | None, Scope]:
    if text is None:
        if "load" in quantity.needs:
            scope = " each way" if traffic.directions > 1 else ""
            raise SentenceError(
                f"'{quantity.word}' needs a load; expected for example 'at 5 Mpps{scope}' or 'at 50% line rate{scope}'"
            )
        return None, Scope.ONE
    if quantity.threshold_is_load:
        raise SentenceError("throughput takes no 'at': the threshold is the load that is offered")
    match = _LOAD.match(text)
    if not match:
        raise SentenceError(f"'at {text}' is not a load; expected for example 'at 5 Mpps' or 'at 50% line rate'")
    value, _ = _threshold(match["number"], match["unit"], _wordless())
    if value.unit is Unit.PPS_PER_CORE:
        raise SentenceError(f"'at {text}': a load is offered to ports, not to cores; expected for example 'at 5 Mpps'")
    return value, _parse_scope(match["scope"], traffic, value, _wordless())
