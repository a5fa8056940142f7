"""Where the frames of bad trials went: a table from the generator through the router and back, HTML or plain text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

from ..counts.causes import Stage
from ..counts.ledger import Drop, Ledger
from ..counts.ledger_words import where_lost
from .tables import SIMULATED, STYLE

_EXTRA = """
.lr-trials td.item, .lr-trials th.item { text-align: left; }
.lr-trials td.item.drop { padding-left: 2em; }
.lr-trials tr.count td { font-weight: 600; }
.lr-trials tr.open td { color: #8a4b00; }
.lr-trials th.note { text-align: left; }
"""


@dataclass(frozen=True, slots=True)
class LedgerRow:
    """A line of the table: *numbers* per way and then of all; None where it is not known, or no way's alone.

    *kind*: ``count`` of frames that were there, ``drop`` that the router counts, ``open`` for what is unexplained.
    """

    kind: str
    item: str
    numbers: tuple[int | None, ...]
    note: str = ""


def lines(ledger: Ledger) -> tuple[LedgerRow, ...]:
    """The account from top to bottom: each count is the one above it less what stands between them."""
    directions = ledger.directions

    def count(item: str, name: str) -> LedgerRow:
        numbers = [getattr(direction, name) for direction in directions]
        return LedgerRow("count", item, (*numbers, _sum(numbers)))

    def rest(item: str, name: str) -> LedgerRow:
        # what no way owns for certain is in the total only
        own = [None if ledger.shared and name == "inside" else getattr(direction, name) for direction in directions]
        return LedgerRow("open", f"unexplained {item}", (*own, getattr(ledger, name)))

    found = [count("sent by the generator", "offered")]
    if not ledger.missing:
        found += [rest("before the router", "before"), *_drops(ledger, Stage.ARRIVING)]
        found.append(count("received by the router", "router_rx"))
        found += [*_drops(ledger, Stage.PASSING), *_drops(ledger, Stage.LEAVING), rest("in the router", "inside")]
        found += [count("sent by the router", "router_tx"), rest("behind the router", "behind")]
    found += [count("back at the generator", "forwarded"), count("lost", "lost")]
    if not ledger.missing:
        found.append(count("of them explained by the router's counters", "explained"))
        found[-1] = LedgerRow("count", found[-1].item, (*found[-1].numbers[:-1], ledger.explained))
        total = [None if ledger.shared else direction.unexplained for direction in directions]
        found.append(LedgerRow("open", "unexplained in all", (*total, ledger.unexplained)))
    return tuple(found)


def ledgers_table(ledgers: Sequence[Ledger], title: str = "", simulated: bool = False) -> str:
    """The ledgers as an HTML page of its own: no script, nothing from elsewhere, every word escaped."""
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title or "Ledger")}</title>'
        "<style>body { margin: 0; background: #fff; }</style></head>\n<body>"
        f"{ledgers_fragment(ledgers, title, simulated)}</body></html>\n"
    )


def ledgers_fragment(ledgers: Sequence[Ledger], title: str = "", simulated: bool = False) -> str:
    """The same for use inside another page, as Robot's log."""
    marked = f'<div class="simulated">{SIMULATED}</div>' if simulated else ""
    tables = "".join(map(_table, ledgers)) or "<p>no trial was bad</p>"
    return (
        f'<style>{STYLE}{_EXTRA}</style><div class="lr-trials">{marked}<h1>{escape(title or "Where frames went")}</h1>'
        f"{tables}</div>"
    )


def ledger_text(ledger: Ledger) -> str:
    """One ledger as plain text, for a console or a mail."""
    rows = [("", *_heads(ledger)), *((line.item, *map(_figure, line.numbers)) for line in lines(ledger))]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    notes = ["", *(line.note for line in lines(ledger))]
    text = [f"{span(ledger)}: {where_lost(ledger)}"]
    for (item, *cells), note in zip(rows, notes, strict=True):
        aligned = [cell.rjust(width) for cell, width in zip(cells, widths[1:], strict=True)]
        text.append("  ".join([item.ljust(widths[0]), *aligned, note]).rstrip())
    text += [f"told besides, not added: {reason}" for reason in _reasons(ledger)]
    return "\n".join(text) + "\n"


def span(ledger: Ledger) -> str:
    """``trial 3``, or ``trials 1 to 3 (of which 3 is bad)``."""
    if ledger.first == ledger.trial:
        return f"trial {ledger.trial}"
    return f"trials {ledger.first} to {ledger.trial} (of which {ledger.trial} is bad)"


def _heads(ledger: Ledger) -> list[str]:
    return [f"{direction.tx_port} → {direction.rx_port}" for direction in ledger.directions] + ["all"]


def _drops(ledger: Ledger, stage: Stage) -> Iterable[LedgerRow]:
    for number, direction in enumerate(ledger.directions):
        for drop in direction.at(stage):
            own = [drop.frames if at == number else None for at in range(len(ledger.directions))]
            yield LedgerRow("drop", drop.place, (*own, drop.frames), drop.meaning)
    for drop in ledger.shared:
        if drop.stage is stage:
            yield LedgerRow("drop", drop.place, (*[None] * len(ledger.directions), drop.frames), drop.meaning)


def _table(ledger: Ledger) -> str:
    heads = "".join(f"<th>{head}</th>" for head in _heads(ledger))
    rows = "\n".join(_row(line) for line in lines(ledger))
    told = "".join(f"<p>Told besides, not added: {escape(reason)}</p>" for reason in _reasons(ledger))
    return (
        f"<p>{escape(f'{span(ledger)}: {where_lost(ledger)}')}</p>\n"
        f'<div class="wide"><table><thead><tr><th class="item">frames</th>{heads}<th class="note"></th></tr></thead>\n'
        f"<tbody>\n{rows}\n</tbody></table></div>{told}"
    )


def _row(line: LedgerRow) -> str:
    cells = "".join(f"<td>{escape(_figure(number))}</td>" for number in line.numbers)
    return (
        f'<tr class="{line.kind}"><td class="item {line.kind}">{escape(line.item)}</td>{cells}'
        f'<td class="note">{escape(line.note)}</td></tr>'
    )


def _reasons(ledger: Ledger) -> list[str]:
    return [f"{_named(reason)}: {reason.frames:,}" for reason in ledger.reasons]


def _named(reason: Drop) -> str:
    return f"{reason.place} ({reason.meaning})" if reason.meaning else reason.place


def _figure(number: int | None) -> str:
    return "" if number is None else f"{number:,}"


def _sum(numbers: Sequence[int | None]) -> int | None:
    known = [number for number in numbers if number is not None]
    return sum(known) if len(known) == len(numbers) else None
