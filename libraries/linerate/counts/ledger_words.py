"""What a ledger says in a phrase: where the bottleneck is, or that the router does not know of the loss."""

from __future__ import annotations

from dataclasses import replace

from .ledger import Drop, Ledger

NAMED = 2
"""Causes that a phrase names; the others are counted together."""


def frames(number: int) -> str:
    """``1 234 567``."""
    return f"{number:,}".replace(",", " ")


def span(ledger: Ledger) -> str:
    """Which trials the account is of: ``in trial 11``, or ``in trials 4 to 11 together``."""
    if ledger.first == ledger.trial:
        return f"in trial {ledger.trial}"
    return f"in trials {ledger.first} to {ledger.trial} together"


def where_lost(ledger: Ledger) -> str:
    """``of 1 234 567 lost frames the router counts 1 234 560 rx-miss at eth1 (…); 7 unexplained``."""
    lost, rest = ledger.lost, ledger.unexplained
    if ledger.missing:
        return f"where {frames(lost)} frames were lost is not known: {ledger.missing}"
    drops = _by_name(ledger)
    if not drops:
        return f"the router's counters show none of {frames(lost)} lost frames{_place(ledger)}"
    told, named = [], drops[:NAMED]
    for at, drop in enumerate(named):
        again = drop.meaning in [other.meaning for other in named[at + 1 :]]
        told.append(
            f"{frames(drop.frames)} {drop.place}" + (f" ({drop.meaning})" if drop.meaning and not again else "")
        )
    if others := sum(drop.frames for drop in drops[NAMED:]):
        told.append(f"{frames(others)} by other causes")
    text = f"of {frames(lost)} lost frames the router counts {', '.join(told)}"
    if rest < 0:
        return f"{text}; that is {frames(-rest)} more than were lost, of other traffic or counted twice"
    if rest > lost / 2:
        return f"{text}; {frames(rest)} unexplained{_place(ledger)}"
    return f"{text}; {frames(rest) if rest else 'none'} unexplained"


def _by_name(ledger: Ledger) -> tuple[Drop, ...]:
    """The drops, those of one name at several interfaces together where they are too many to be named each."""
    if len(ledger.drops) <= NAMED:
        return ledger.drops
    found: dict[str, Drop] = {}
    for drop in ledger.drops:
        known = found.get(drop.name)
        if known is None:
            found[drop.name] = drop
            continue
        places = " and ".join(dict.fromkeys(filter(None, (*known.interface.split(" and "), drop.interface))))
        found[drop.name] = replace(known, interface=places, frames=known.frames + drop.frames)
    return tuple(sorted(found.values(), key=lambda drop: -drop.frames))


def _place(ledger: Ledger) -> str:
    """Where most of what is unexplained was lost, if the counters tell; and where to look."""
    rest = ledger.unexplained
    cables = "look at cables and the generator's ports"
    places = (
        (ledger.before, "it never counted them as received (its card may lose some uncounted)", cables),
        (ledger.inside, "it received them and did not send them", "look at its filters and blackhole routes"),
        (ledger.behind, "it counts them as sent", cables),
    )
    found = [
        f": {words}; {look}" for count, words, look in places if count is not None and 0.9 * rest <= count <= 1.1 * rest
    ]
    return found[0] if len(found) == 1 else f"; {cables}"
