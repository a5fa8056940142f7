"""The grammar of sentences.

``TRAFFIC DIRECTION [on N pairs] [QUANTITY] ≥|≤|>=|<= VALUE UNIT [each way|in total] [at LOAD] [for TIME]``

One parser serves the keywords, offline judging and the reports. A sentence that it does not understand raises
SentenceError before any frame is sent; :meth:`.requirement.Requirement.check` refuses one that no router can meet.
"""

from __future__ import annotations

import difflib
import re

from ..config import did_you_mean
from ..errors import SentenceError
from ..traffic.catalogue import Catalogue
from ..traffic.profiles import PAIRS, Profile
from ..units import NUMBER
from ..visible import shortened
from .latency import Statistic
from .requirement import (
    ENERGY_UNITS,
    RATE_UNITS,
    RUNTIME_UNITS,
    TIME_UNITS,
    Quantity,
    Requirement,
    Scope,
    TrafficWords,
    Unit,
    Value,
)

_UNITS_OF = {
    Quantity.THROUGHPUT: RATE_UNITS,
    Quantity.FORWARDING_RATE: RATE_UNITS,
    Quantity.LOSS: (Unit.PERCENT,),
    Quantity.COST: (Unit.CYCLES, Unit.CYCLES_WITHOUT_INPUT, *ENERGY_UNITS),
    Quantity.GATHERING: (Unit.VECTORS,),
    Quantity.LATENCY: (Unit.MICROSECONDS,),
    Quantity.DELAY_VARIATION: (Unit.MICROSECONDS,),
    Quantity.RECOVERY: (Unit.SECONDS,),
}

_AT_LEAST = (Quantity.THROUGHPUT, Quantity.FORWARDING_RATE, Quantity.GATHERING)

_NEEDS_LOAD = (Quantity.LOSS, Quantity.LATENCY, Quantity.DELAY_VARIATION)

LONGEST = 300
"""Characters of a sentence: then no expression below takes long, whatever the words are."""

_COMPARISONS = ("≥", "≤", ">=", "<=")
_COMPARISON = re.compile(r"\s*(≥|≤|>=|<=)\s*")
_WRONG_COMPARISON = re.compile(r"[<>=]=?")
_RIGHT_SIDE = re.compile(
    rf"^(?P<number>{NUMBER})\s*(?P<unit>[^\d\s].*?)"
    r"(?:\s+(?P<scope>each way|in total))?(?:\s+at\s+(?P<load>.+?))?$"
)
_ON_PAIRS = re.compile(r"(?:^|\s)on\s+(?P<number>\S+)\s+(?:port\s+)?pairs?(?=\s|$)")
_NUMBER_WITH_COMMA = re.compile(r"\b[0-9]+(?:,[0-9]+)+\b")
_FOR_TIME = re.compile(r"^(?P<before>.*\S)\s+for\s+(?P<time>.+)$")
_TIME = re.compile(rf"^(?P<number>{NUMBER})\s*(?P<unit>s|min|h)$")
_SECONDS_OF_UNIT = {"s": 1.0, "min": 60.0, "h": 3600.0}
_LONGEST_TIME = 86400.0
_LOAD = re.compile(rf"^(?P<number>{NUMBER})\s*(?P<unit>[^\d\s].*?)(?:\s+(?P<scope>each way|in total))?$")
_PPS_UNIT = re.compile(r"^(?P<prefix>[kMG]?)pps(?P<core> per core)?$")
_BPS_UNIT = re.compile(r"^(?P<prefix>[kMG]?)(?:bps|bit/s)(?:\s+(?P<layer>L1|L2))?$")
_MICROSECONDS_OF_UNIT = {"µs": 1.0, "μs": 1.0, "us": 1.0, "ms": 1000.0}
_UNITS_PER_PACKET = {
    spelling: unit
    for unit in (*RUNTIME_UNITS, *ENERGY_UNITS)
    for micro in ("µ", "μ", "u")
    for spelling in (unit.value.replace("µ", micro), unit.value.replace("µ", micro).replace("/", " per "))
}
_SCOPES = {None: Scope.ONE, "each way": Scope.EACH_WAY, "in total": Scope.IN_TOTAL}
_PREFIX_FACTOR = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9}

EXAMPLES = ("imix unidirectional ≥ 95% line rate", "64b 1-flow ≥ 5 Mpps", "64b bidirectional ≥ 80% line rate in total")


def is_sentence(text: str) -> bool:
    """Return whether *text* is meant as a sentence: it has a comparison."""
    return any(each in text for each in _COMPARISONS)


def parse(sentence: str, catalogue: Catalogue) -> Requirement:
    """The requirement of *sentence*. Raises SentenceError, which says what is wrong and what is expected."""
    try:
        return _parse_sentence(_one_line(sentence), catalogue)
    except SentenceError as error:
        raise SentenceError(f"'{shortened(sentence)}': {error}") from None


def _one_line(text: str) -> str:
    """*text* with one space between words. Raises SentenceError if it is longer than a sentence or does not print."""
    if len(text) > LONGEST:
        raise SentenceError(f"has {len(text)} characters; expected at most {LONGEST}")
    found = " ".join(text.split())
    if not found.isprintable():
        raise SentenceError("has characters that do not print; write it again")
    return found


def _parse_sentence(sentence: str, catalogue: Catalogue) -> Requirement:
    parts = _COMPARISON.split(sentence)
    if len(parts) != 3 or not parts[0] or not parts[2]:
        wrong = _WRONG_COMPARISON.search(sentence)
        found = f"'{wrong[0]}' is not a comparison here; " if wrong and len(parts) == 1 else ""
        raise SentenceError(f"{found}a sentence compares once, with ≥ or ≤ (or >= <=), as in '{EXAMPLES[0]}'")
    left, comparison, right = parts
    left, pairs = _split_pairs(left)
    words, asked, quantity, statistic = _parse_left_side(left.split(), catalogue)
    if comma := _NUMBER_WITH_COMMA.search(right):
        without_comma = comma[0].replace(",", "." if comma[0].count(",") == 1 else "")
        raise SentenceError(f"'{comma[0]}' has a comma; figures have a decimal point, as in '{without_comma}'")
    right, duration_sum = _split_for_time(right)
    traffic = _traffic(sentence, catalogue.profile(words), asked, pairs)
    figure = _RIGHT_SIDE.match(right)
    if not figure:
        raise SentenceError(f"'{right}' is not a figure with a unit; expected for example '95% line rate', '5 Mpps'")
    threshold = _parse_value(figure["number"], figure["unit"], quantity)
    scope = _parse_scope(figure["scope"], traffic, threshold)
    at_least = comparison in ("≥", ">=")
    if at_least is not (quantity in _AT_LEAST):
        raise SentenceError(f"'{quantity.value}' takes {'≤' if at_least else '≥'}, not {comparison}")
    load, load_scope = _parse_load(figure["load"], traffic, quantity)
    if quantity is Quantity.RECOVERY and duration_sum is not None:
        raise SentenceError("'recovers' takes no 'for': its limit sets how long the counts are read")
    return Requirement(
        sentence,
        traffic.profile,
        traffic.bidirectional,
        quantity,
        at_least,
        threshold,
        scope,
        load,
        load_scope,
        statistic,
        duration_sum,
        pairs,
    )


def parse_traffic(words: str, catalogue: Catalogue) -> TrafficWords:
    """The traffic of ``TRAFFIC DIRECTION [on N pairs]``, a sentence without a demand. Raises SentenceError."""
    try:
        text = _one_line(words)
        if is_sentence(text):
            raise SentenceError(f"has a threshold; expected traffic alone, as '{_COMPARISON.split(text)[0]}'")
        left, pairs = _split_pairs(text)
        named, asked, quantity, _ = _parse_left_side(left.split(), catalogue)
        if quantity is not Quantity.THROUGHPUT:
            raise SentenceError(f"'{quantity.value}' belongs to a sentence; expected traffic and direction alone")
        return _traffic(text, catalogue.profile(named), asked, pairs)
    except SentenceError as error:
        raise SentenceError(f"'{shortened(words)}': {error}") from None


def _split_pairs(left: str) -> tuple[str, int]:
    """*left* without ``on 2 pairs``, and the number of pairs (1 if it says none)."""
    found = list(_ON_PAIRS.finditer(left))
    if not found:
        return left, 1
    if len(found) > 1:
        raise SentenceError("says the number of port pairs twice; keep one")
    number = found[0]["number"]
    if not re.fullmatch("[0-9]{1,3}", number) or not 1 <= int(number) <= PAIRS:
        raise SentenceError(f"'{found[0][0].strip()}': expected 'on 1 pair' to 'on {PAIRS} pairs'")
    return f"{left[: found[0].start()]} {left[found[0].end() :]}", int(number)


def _traffic(sentence: str, profile: Profile, asked: bool | None, pairs: int) -> TrafficWords:
    """The traffic, if it can be sent so. *asked*: whether bidirectional (None: not said, which one flow allows)."""
    if pairs > 1 and profile.has_own_addresses:
        raise SentenceError(
            f"'{profile.name}' brings its own addresses, which fit one port pair; expected no 'on {pairs} pairs'"
        )
    if asked is None and not profile.is_one_flow:
        raise SentenceError("says no direction; expected 'unidirectional' or 'bidirectional'")
    if asked and profile.one_direction_reason:
        raise SentenceError(f"'{profile.name}' can be sent unidirectional only: {profile.one_direction_reason}")
    return TrafficWords(sentence, profile, bool(asked), pairs)


def _parse_left_side(
    words: list[str], catalogue: Catalogue
) -> tuple[list[str], bool | None, Quantity, Statistic | None]:
    """Traffic words, whether bidirectional (None: not said), quantity and statistic before the comparison."""
    traffic: list[str] = []
    statistic: Statistic | None = None
    bidirectional: bool | None = None
    quantity = Quantity.THROUGHPUT
    quantities = {item.value: item for item in Quantity}
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word in ("unidirectional", "bidirectional"):
            if bidirectional is not None:
                raise SentenceError("says the direction twice; keep one")
            bidirectional = word == "bidirectional"
        elif word in quantities:
            if quantity is not Quantity.THROUGHPUT:
                raise SentenceError(
                    f"asks for both '{quantity.value}' and '{word}'; keep one, write a sentence for each"
                )
            quantity = quantities[word]
            if quantity in (Quantity.LATENCY, Quantity.DELAY_VARIATION):
                if not rest:
                    raise SentenceError(f"'{word}' says no statistic; expected for example '{word} p99 ≤ …'")
                statistic = Statistic.read(rest.pop(0), variation=quantity is Quantity.DELAY_VARIATION)
            elif quantity is Quantity.RECOVERY and (not rest or rest.pop(0) != "in"):
                raise SentenceError("'recovers' needs an 'in'; expected for example 'recovers in ≤ 2 s'")
        elif catalogue.is_word(word):
            traffic.append(word)
        elif word == "jitter":
            raise SentenceError(
                "'jitter' has several meanings, and TRex's is a running figure of the last frames; expected the packet"
                " delay variation of RFC 5481, for example 'pdv p99.9 ≤ 50 µs at 1 Mpps' (RFC 8219 7.3.1)"
            )
        else:
            known = [*catalogue.words(), "unidirectional", "bidirectional", "on <N> pairs", *quantities]
            hint = did_you_mean(word, known)
            raise SentenceError(f"'{shortened(word)}' is not understood; {hint}known words: {', '.join(known)}")
    return traffic, bidirectional, quantity, statistic


def _split_for_time(right: str) -> tuple[str, float | None]:
    """*right* without ``for 30 min`` at its end, and that time in s (None if it says none)."""
    found = _FOR_TIME.match(right)
    if not found:
        return right, None
    time = _TIME.match(found["time"])
    if not time:
        raise SentenceError(f"'for {found['time']}' is not a time; expected for example 'for 30 min' or 'for 2 h'")
    seconds = float(time["number"]) * _SECONDS_OF_UNIT[time["unit"]]
    if not 0 < seconds <= _LONGEST_TIME:
        raise SentenceError(f"'for {found['time']}': expected more than 0 and at most 24 h")
    return found["before"], seconds


def _parse_value(number: str, unit: str, quantity: Quantity) -> Value:
    value = _parse_unit(float(number), " ".join(unit.split()))
    if quantity is Quantity.RECOVERY and value.unit is Unit.MICROSECONDS:
        value = Value(value.number / 1e6, Unit.SECONDS)
    if value.unit not in _UNITS_OF[quantity]:
        expected = ", ".join(_unit_text(item) for item in _UNITS_OF[quantity])
        raise SentenceError(f"'{unit}' does not fit '{quantity.value}'; expected {expected}")
    if value.number <= 0 and quantity is not Quantity.LOSS:
        raise SentenceError("the threshold must be more than 0")
    if value.unit is Unit.SECONDS and value.number > _LONGEST_TIME:
        raise SentenceError("a time is at most 24 h")
    if value.unit is Unit.PERCENT and value.number > 100:
        raise SentenceError("loss is at most 100%")
    return value


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
    if unit in ("% line rate", "% of line rate"):
        return Value(number, Unit.PERCENT_LINE)
    if unit == "%":
        return Value(number, Unit.PERCENT)
    if unit in _UNITS_PER_PACKET:
        return Value(number, _UNITS_PER_PACKET[unit])
    if unit == "s":
        return Value(number, Unit.SECONDS)
    if unit in _MICROSECONDS_OF_UNIT:
        return Value(number * _MICROSECONDS_OF_UNIT[unit], Unit.MICROSECONDS)
    found = _PPS_UNIT.match(unit)
    if found:
        return Value(number * _PREFIX_FACTOR[found["prefix"]], Unit.PPS_PER_CORE if found["core"] else Unit.PPS)
    found = _BPS_UNIT.match(unit)
    if found:
        if not found["layer"]:
            raise SentenceError(f"'{unit}' does not say which bits; expected '{unit} L1' or '{unit} L2'")
        bit_rate = Unit.BPS_L1 if found["layer"] == "L1" else Unit.BPS_L2
        return Value(number * _PREFIX_FACTOR[found["prefix"]], bit_rate)
    rates = ["% line rate", "Mpps", "kpps", "pps", "Mpps per core", "Gbps L1", "Gbps L2", "Mbps L1", "Mbps L2"]
    known = [*rates, "%", *(unit.value for unit in (*RUNTIME_UNITS, *ENERGY_UNITS)), "µs", "ms", "s"]
    if _ON_PAIRS.search(unit):
        raise SentenceError("'on N pairs' stands before the comparison, as in '64b bidirectional on 2 pairs ≥ …'")
    lower = {item.lower(): item for item in known}
    close = difflib.get_close_matches(unit.lower(), lower, 1)
    near = "µs" if unit.lower() == "ns" else lower[close[0]] if close else ""
    hint = f"did you mean '{near}'? " if near else ""
    raise SentenceError(f"the unit '{unit}' is not known; {hint}known: {', '.join(known)}")


def _parse_scope(text: str | None, traffic: TrafficWords, value: Value) -> Scope:
    scope = _SCOPES[text]
    if traffic.directions == 1:
        if scope is not Scope.ONE:
            raise SentenceError(f"'{text}' fits a bidirectional sentence only, or one on several port pairs")
        return scope
    if value.unit not in RATE_UNITS:
        if value.unit in TIME_UNITS and scope is Scope.IN_TOTAL:
            raise SentenceError("a time has no total; it is judged on the worse direction")
        # cost has no direction; loss and times are judged on the worse direction unless the sentence says otherwise
        return scope if scope is not Scope.ONE or value.unit in _UNITS_PER_PACKET.values() else Scope.EACH_WAY
    if scope is Scope.ONE:
        if traffic.pairs > 1:
            raise SentenceError(
                f"a rate on {traffic.pairs} port pairs must say how they count; expected '{value} each way' (the"
                f" worst direction) or '{value} in total' (the sum of all)"
            )
        raise SentenceError(
            f"a bidirectional rate must say how the directions count; expected '{value} each way' (the worse"
            f" direction) or '{value} in total' (the sum of both)"
        )
    return scope


def _parse_load(text: str | None, traffic: TrafficWords, quantity: Quantity) -> tuple[Value | None, Scope]:
    if text is None:
        if quantity in _NEEDS_LOAD:
            scope = " each way" if traffic.directions > 1 else ""
            raise SentenceError(
                f"'{quantity.value}' needs a load; expected for example 'at 5 Mpps{scope}' or 'at 50% line rate{scope}'"
            )
        return None, Scope.ONE
    if quantity is Quantity.THROUGHPUT:
        raise SentenceError("throughput takes no 'at': the threshold is the load that is offered")
    found = _LOAD.match(text)
    if not found:
        raise SentenceError(f"'at {text}' is not a load; expected for example 'at 5 Mpps' or 'at 50% line rate'")
    value = _parse_value(found["number"], found["unit"], Quantity.THROUGHPUT)
    if value.unit is Unit.PPS_PER_CORE:
        raise SentenceError(f"'at {text}': a load is offered to ports, not to cores; expected for example 'at 5 Mpps'")
    return value, _parse_scope(found["scope"], traffic, value)
