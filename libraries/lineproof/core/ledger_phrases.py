"""A ledger as a phrase: where the router lost the frames, or that its counters show no loss."""

from __future__ import annotations

from dataclasses import replace

from ..units import counted
from .ledger import Drop, Ledger, sum_if_known

NAMED_CAUSES = 2
"""Causes that a phrase names; it adds up the others."""


def frames_text(number: int) -> str:
    """``1 234 567``."""
    return f"{number:,}".replace(",", " ")


def trials_text(ledger: Ledger) -> str:
    """The trials that the account covers: ``in trial 11``, or ``in trials 4 to 11 together``."""
    if ledger.first_trial == ledger.last_trial:
        return f"in trial {ledger.last_trial}"
    return f"in trials {ledger.first_trial} to {ledger.last_trial} together"


def where_lost(ledger: Ledger) -> str:
    """``of 1 234 567 lost frames the router counts 1 234 560 rx-miss at eth1 (…); 7 unexplained``."""
    lost, rest = ledger.lost, ledger.unexplained
    if ledger.missing:
        return f"where {frames_text(lost)} frames were lost is not known: {ledger.missing}"
    if foreign := _not_of_these_frames(ledger):
        return f"where {frames_text(lost)} frames were lost is not known: {foreign}"
    drops = _merged_by_name(ledger)
    if not drops:
        return f"the router's counters show none of {frames_text(lost)} lost frames{_place_of_unexplained(ledger)}"
    counted, named = [], drops[:NAMED_CAUSES]
    for index, drop in enumerate(named):
        repeated = drop.meaning in [other.meaning for other in named[index + 1 :]]
        meaning = f" ({drop.meaning})" if drop.meaning and not repeated else ""
        counted.append(f"{frames_text(drop.frames)} {drop.label}{meaning}")
    if others := sum(drop.frames for drop in drops[NAMED_CAUSES:]):
        counted.append(f"{frames_text(others)} by other causes")
    text = f"of {frames_text(lost)} lost frames the router counts {', '.join(counted)}"
    if rest < 0:
        return f"{text}; that is {frames_text(-rest)} more than were lost, of other traffic or counted twice"
    if rest > lost / 2:
        return f"{text}; {frames_text(rest)} unexplained{_place_of_unexplained(ledger)}"
    return f"{text}; {frames_text(rest) if rest else 'none'} unexplained"


def _not_of_these_frames(ledger: Ledger) -> str:
    """Why the router's counts cannot be of the frames that came back through it; "": they can."""
    back = sum(direction.forwarded for direction in ledger.directions)
    counts = {
        " as received": sum_if_known([direction.router_rx for direction in ledger.directions]),
        " as sent": sum_if_known([direction.router_tx for direction in ledger.directions]),
    }
    low = {name: count for name, count in counts.items() if count is not None and 2 * count < back}
    if not low:
        return ""
    most = max(low.values())
    frames = f"only {counted(most, 'frame')}" if most else "no frame"
    where = next(iter(low)) if len(low) == 1 else ""
    return (
        f"the router counted {frames}{where}, and {frames_text(back)} came back: these are not the counters of these"
        " interfaces, or they stand still; compare them on the router while frames flow"
    )


def _merged_by_name(ledger: Ledger) -> tuple[Drop, ...]:
    """The drops; where they are too many to name, those of the same name at several interfaces together."""
    if len(ledger.drops) <= NAMED_CAUSES:
        return ledger.drops
    found: dict[str, Drop] = {}
    for drop in ledger.drops:
        known = found.get(drop.name)
        if known is None:
            found[drop.name] = drop
            continue
        interfaces = " and ".join(dict.fromkeys(filter(None, (*known.interface.split(" and "), drop.interface))))
        found[drop.name] = replace(known, interface=interfaces, frames=known.frames + drop.frames)
    return tuple(sorted(found.values(), key=lambda drop: -drop.frames))


def _place_of_unexplained(ledger: Ledger) -> str:
    """Where most unexplained frames were lost, if the counters show it, and where to look."""
    rest = ledger.unexplained
    cables, filters = "look at cables and the generator's ports", "look at its filters and blackhole routes"
    places = (
        (ledger.unexplained_before_rx, "it never counted them as received (its card may lose some uncounted)", cables),
        (ledger.unexplained_rx_to_tx, "it received them and did not send them", filters),
        (ledger.unexplained_after_tx, "it counts them as sent", cables),
    )
    found = [
        f": {words}; {look}" for count, words, look in places if count is not None and 0.9 * rest <= count <= 1.1 * rest
    ]
    return found[0] if len(found) == 1 else f"; {cables}"
