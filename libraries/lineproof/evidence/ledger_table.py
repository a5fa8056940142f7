"""Where the frames of bad trials went: an HTML table from the generator through the router and back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

from ..core.causes import Stage
from ..core.ledger import Drop, Ledger, sum_if_known
from ..core.ledger_phrases import where_lost
from .tables import SIMULATED, STYLE, html_page

_LEDGER_STYLE = """
.lr-trials td.item, .lr-trials th.item { text-align: left; }
.lr-trials td.item.drop { padding-left: 2em; }
.lr-trials tr.count td { font-weight: 600; }
.lr-trials tr.open td { color: #8a4b00; }
.lr-trials th.note { text-align: left; }
"""


@dataclass(frozen=True, slots=True)
class LedgerRow:
    """A row of the table. *numbers*: of each direction, then of all; None: not known, or not of one direction alone.

    *kind*: ``count`` of frames at a point, ``drop`` that the router counts, ``open``: unexplained.
    """

    kind: str
    item: str
    numbers: tuple[int | None, ...]
    note: str = ""


def ledger_rows(ledger: Ledger) -> tuple[LedgerRow, ...]:
    """The rows from top to bottom: each count is the one above it less the rows between them."""
    directions = ledger.directions

    def count(item: str, name: str) -> LedgerRow:
        numbers = [getattr(direction, name) for direction in directions]
        return LedgerRow("count", item, (*numbers, sum_if_known(numbers)))

    def rest(item: str, name: str) -> LedgerRow:
        # what may be of any direction is in the total only
        only_total = ledger.shared and name in ("unexplained", "unexplained_rx_to_tx")
        own = [None if only_total else getattr(direction, name) for direction in directions]
        return LedgerRow("open", f"unexplained {item}", (*own, getattr(ledger, name)))

    found = [count("sent by the generator", "offered")]
    if not ledger.missing:
        found += [rest("before the router", "unexplained_before_rx"), *_drops(ledger, Stage.ARRIVING)]
        found.append(count("received by the router", "router_rx"))
        found += [
            *_drops(ledger, Stage.PASSING),
            *_drops(ledger, Stage.LEAVING),
            rest("in the router", "unexplained_rx_to_tx"),
        ]
        found += [count("sent by the router", "router_tx"), rest("behind the router", "unexplained_after_tx")]
    found += [count("back at the generator", "forwarded"), count("lost", "lost")]
    if not ledger.missing:
        explained = (*(direction.explained for direction in directions), ledger.explained)
        found.append(LedgerRow("count", "of them explained by the router's counters", explained))
        found.append(rest("in all", "unexplained"))
    return tuple(found)


def ledgers_table(ledgers: Sequence[Ledger], title: str = "", simulated: bool = False) -> str:
    """The ledgers as an HTML page without scripts and external resources; all text is escaped."""
    return html_page(title or "Ledger", ledgers_fragment(ledgers, title, simulated))


def ledgers_fragment(ledgers: Sequence[Ledger], title: str = "", simulated: bool = False) -> str:
    """The ledgers for use inside another page, as Robot's log."""
    marked = f'<div class="simulated">{SIMULATED}</div>' if simulated else ""
    tables = "".join(map(_table, ledgers)) or "<p>no trial was bad</p>"
    return (
        f'<style>{STYLE}{_LEDGER_STYLE}</style><div class="lr-trials">{marked}'
        f"<h1>{escape(title or 'Where frames went')}</h1>{tables}</div>"
    )


def trial_span(ledger: Ledger) -> str:
    """``trial 3``, or ``trials 1 to 3 (of which 3 is bad)``."""
    if ledger.first_trial == ledger.last_trial:
        return f"trial {ledger.last_trial}"
    return f"trials {ledger.first_trial} to {ledger.last_trial} (of which {ledger.last_trial} is bad)"


def _drops(ledger: Ledger, stage: Stage) -> Iterable[LedgerRow]:
    for number, direction in enumerate(ledger.directions):
        for drop in direction.drops_at(stage):
            own = [drop.frames if at == number else None for at in range(len(ledger.directions))]
            yield LedgerRow("drop", drop.label, (*own, drop.frames), drop.meaning)
    for drop in ledger.shared:
        if drop.stage is stage:
            yield LedgerRow("drop", drop.label, (*[None] * len(ledger.directions), drop.frames), drop.meaning)


def _table(ledger: Ledger) -> str:
    ports = "".join(f"<th>{direction.tx_port} → {direction.rx_port}</th>" for direction in ledger.directions)
    rows = "\n".join(map(_row, ledger_rows(ledger)))
    reasons = "".join(f"<p>Also reported, not added: {escape(_reason_words(drop))}</p>" for drop in ledger.reasons)
    return (
        f"<p>{escape(f'{trial_span(ledger)}: {where_lost(ledger)}')}</p>\n"
        f'<div class="wide"><table><thead><tr><th class="item">frames</th>{ports}<th>all</th>'
        '<th class="note"></th></tr></thead>\n'
        f"<tbody>\n{rows}\n</tbody></table></div>{reasons}"
    )


def _row(line: LedgerRow) -> str:
    cells = "".join(f"<td>{escape(_figure(number))}</td>" for number in line.numbers)
    return (
        f'<tr class="{line.kind}"><td class="item {line.kind}">{escape(line.item)}</td>{cells}'
        f'<td class="note">{escape(line.note)}</td></tr>'
    )


def _reason_words(reason: Drop) -> str:
    return f"{reason.label}{f' ({reason.meaning})' if reason.meaning else ''}: {reason.frames:,}"


def _figure(number: int | None) -> str:
    return "" if number is None else f"{number:,}"
