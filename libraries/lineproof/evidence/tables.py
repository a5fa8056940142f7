"""Tables without scripts: trials and a router's facts as HTML, any result as HTML or plain text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from ..core.causes import Stage
from ..core.ledger import Drop, Ledger, sum_if_known
from ..core.ledger_phrases import where_lost
from ..core.router_facts import NicFacts, RouterFacts
from ..core.trial import Trial
from .rates import UNTROUBLED, DirectionRow, TrafficFigures, direction_rows, percent, trial_name, trial_state

SIMULATED = "SIMULATED – not a measurement"

STYLE = """
.lr-trials { font: 14px/1.45 system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; padding: 12px;
             color: #1d2733; background: #fff; white-space: normal; }
.lr-trials h1 { font-size: 16px; margin: 0 0 4px; }
.lr-trials p { margin: 0 0 10px; color: #5a6673; }
.lr-trials .simulated { display: inline-block; margin: 0 0 8px; padding: 2px 8px; border-radius: 4px; font-weight: 600;
                        color: #8a2b00; background: #ffe9d9; }
.lr-trials .wide { overflow-x: auto; }
.lr-trials table { border-collapse: collapse; font-size: 12.5px; font-variant-numeric: tabular-nums; }
.lr-trials th, .lr-trials td { padding: 3px 7px; text-align: right; white-space: nowrap; border: 0;
                               border-bottom: 1px solid #e3e8ed; }
.lr-trials th { vertical-align: bottom; font-weight: 600; color: #46525f; border-bottom: 2px solid #b9c3cd; }
.lr-trials th:last-child { text-align: left; }
.lr-trials th small { display: block; font-weight: 400; color: #7b8794; }
.lr-trials td.note { text-align: left; white-space: normal; min-width: 20em; }
.lr-trials tr.first td { border-top: 1px solid #b9c3cd; }
.lr-trials tr.warm td { color: #8b96a1; }
.lr-trials tr.doubtful td { background: #f4f0e6; color: #6b5b2e; }
.lr-trials td.lost { color: #b3261e; font-weight: 600; }
.lr-trials td.good { color: #1f7a3f; }
"""
"""CSS of every table."""

_COLUMNS = (
    ("trial", ""),
    ("ports", ""),
    ("intended", "frames"),
    ("offered", "frames"),
    ("unsent", "frames"),
    ("forwarded", "frames"),
    ("lost", "frames"),
    ("loss ratio", ""),
    ("forwarded", "Mpps"),
    ("forwarded", "Gbit/s L1"),
    ("forwarded", "% of line"),
    ("elapsed", "s"),
    ("trial is", ""),
)


def trials_table(
    trials: Sequence[Trial], traffic: TrafficFigures, link_bps: float, title: str = "", simulated: bool = False
) -> str:
    """The trials as an HTML page without scripts and external resources; all text is escaped.

    One row per trial and direction; *link_bps* is the link speed of one direction in L1 bit/s.
    """
    return html_page(title or "Trials", trials_fragment(trials, traffic, link_bps, title, simulated))


def html_page(title: str, fragment: str) -> str:
    """*fragment* as an HTML page of its own."""
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f"<style>body {{ margin: 0; background: #fff; }}</style></head>\n<body>{fragment}</body></html>\n"
    )


def trials_fragment(
    trials: Sequence[Trial], traffic: TrafficFigures, link_bps: float, title: str = "", simulated: bool = False
) -> str:
    """The table for use inside another page, as Robot's log; its style applies to itself only."""
    head = "".join(f"<th>{name}{f'<small>{unit}</small>' if unit else ''}</th>" for name, unit in _COLUMNS)
    body = []
    previous: Trial | None = None
    for row in direction_rows(trials, traffic, link_bps):
        body.append(_html_row(row, row.trial is not previous))
        previous = row.trial
    if not body:
        body.append(f'<tr><td class="note" colspan="{len(_COLUMNS)}">no trial was run</td></tr>')
    marked = f'<div class="simulated">{SIMULATED}</div>' if simulated else ""
    return (
        f'<style>{STYLE}</style><div class="lr-trials">{marked}<h1>{escape(title or "Trials")}</h1>'
        f"<p>{escape(_caption(traffic, link_bps))}</p>\n"
        f'<div class="wide"><table><thead><tr>{head}</tr></thead>\n<tbody>\n' + "\n".join(body) + "\n"
        "</tbody></table></div></div>"
    )


def _caption(traffic: TrafficFigures, link_bps: float) -> str:
    return (
        f"{traffic.name}: mean frame {traffic.mean_size:g} bytes with FCS, link {link_bps / 1e9:g} Gbit/s in each"
        " direction. lost = offered − forwarded; unsent = intended − offered: the generator's fault, not the router's."
    )


def _cells(row: DirectionRow) -> list[str]:
    count, rate = row.count, row.forwarded
    # a problem is of the whole trial: shown once, with its first direction
    state, is_first = trial_state(row.trial), row.count is row.trial.outcome.directions[0]
    return [
        trial_name(row.trial),
        row.direction,
        f"{count.intended:,}",
        f"{count.offered:,}",
        f"{count.unsent:,}",
        f"{count.forwarded:,}",
        f"{count.lost:,}",
        percent(count.loss_ratio),
        _figure(rate.pps / 1e6),
        _figure(rate.l1_bps / 1e9),
        _figure(rate.percent, 2),
        f"{row.trial.outcome.elapsed:.3f}",
        " ".join(state.split()) if is_first or state in UNTROUBLED else "as above",
    ]


def _figure(value: float, decimals: int = 4) -> str:
    # two more decimals for small values
    return f"{value:.{decimals if value >= 0.1 or value == 0 else decimals + 2}f}"


def _html_row(row: DirectionRow, first: bool) -> str:
    names = [name for name, on in (("first", first), ("warm", not row.trial.number)) if on]
    if not row.trial.is_clean:
        names.append("doubtful")
    marks = {6: "lost" if row.count.lost else "", 7: "lost" if row.count.lost else "", len(_COLUMNS) - 1: "note"}
    cells = []
    for column, text in enumerate(_cells(row)):
        mark = marks.get(column, "")
        if mark == "note" and text == "clean":
            mark = "note good"
        cells.append(f'<td class="{mark}">{escape(text)}</td>' if mark else f"<td>{escape(text)}</td>")
    return f'<tr class="{" ".join(names)}">' + "".join(cells) + "</tr>"


@dataclass(frozen=True, slots=True)
class ResultTable:
    """``columns``: names and units ("": none); ``rows``: the cells; ``findings`` above the table, ``notes`` below."""

    title: str
    columns: tuple[tuple[str, str], ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()
    findings: tuple[str, ...] = ()
    simulated: bool = False

    def page(self) -> str:
        """The table as an HTML page without external resources; all text is escaped."""
        return html_page(self.title, self.fragment())

    def fragment(self) -> str:
        """The table for use inside another page; its style applies to itself only."""
        head = "".join(f"<th>{escape(name)}{_unit_html(unit)}</th>" for name, unit in self.columns)
        body = "\n".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in self.rows)
        marked = f'<div class="simulated">{SIMULATED}</div>' if self.simulated else ""
        above = "".join(f"<p>{escape(finding)}</p>" for finding in self.findings)
        below = "".join(f"<p>{escape(note)}</p>" for note in self.notes)
        return (
            f'<style>{STYLE}</style><div class="lr-trials">{marked}<h1>{escape(self.title)}</h1>{above}\n'
            f'<div class="wide"><table><thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody></table></div>\n'
            f"{below}</div>"
        )

    def text(self) -> str:
        """The table as plain text, for a console or a mail."""
        heads = [f"{name} [{unit}]" if unit else name for name, unit in self.columns]
        dashes = ["-" * max(map(len, column)) for column in zip(heads, *self.rows, strict=True)]
        shown = [SIMULATED] if self.simulated else []
        shown += [self.title, *self.findings, *text_columns([heads, dashes, *self.rows])]
        return "\n".join([*shown, *self.notes]) + "\n"


def text_columns(table: Sequence[Sequence[str]]) -> list[str]:
    """*table* with columns as wide as their words, which end at one place."""
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    return ["  ".join(f"{word:>{widths[place]}}" for place, word in enumerate(line)).rstrip() for line in table]


def _unit_html(unit: str) -> str:
    return f"<small>{escape(unit)}</small>" if unit else ""


NOT_READ = "not read"

_STYLE = """
.lr-trials td.fact, .lr-trials th.fact { text-align: left; white-space: normal; }
.lr-trials td.odd { color: #8a4b00; font-weight: 600; }
"""


def facts_fragment(facts: RouterFacts, simulated: bool = False, title: str = "") -> str:
    """The facts for use inside another page, as Robot's log; all text is escaped.

    *title*: of another machine, of which only what was read is shown.
    """
    shown = known_rows(facts) if title else fact_rows(facts)
    rows = "".join(
        f'<tr><td class="fact">{escape(name)}</td><td class="fact">{escape(value)}</td></tr>\n' for name, value in shown
    )
    odd = "".join(f'<tr><td class="fact odd" colspan="2">{escape(text)}</td></tr>\n' for text in facts.differences)
    marked = f'<div class="simulated">{SIMULATED}</div>' if simulated else ""
    unread = "".join(
        f'<tr><td class="fact">{escape(command)}</td><td class="fact">{escape(why)}</td></tr>\n'
        for command, why in facts.unread.items()
    )
    missing = (
        f"<details><summary>commands without an answer: {len(facts.unread)}</summary><table>{unread}</table></details>"
        if unread
        else ""
    )
    return (
        f'<style>{STYLE}{_STYLE}</style><div class="lr-trials">{marked}<h1>{escape(title or "The router")}</h1>\n'
        f'<div class="wide"><table><tbody>\n{odd}{rows}</tbody></table></div>{missing}</div>'
    )


def fact_rows(facts: RouterFacts) -> Iterator[tuple[str, str]]:
    """Name and value of each fact; what was not read is there too."""
    yield "operating system", facts.os or NOT_READ
    yield "kernel", facts.kernel or NOT_READ
    yield "version", facts.version or NOT_READ
    yield "firmware", facts.firmware or NOT_READ
    yield "processor", facts.cpu or NOT_READ
    yield "cores", _words(facts.cores)
    yield "threads per core", _words(facts.threads_per_core)
    yield "workers", _words(facts.workers)
    yield from facts.other.items()
    yield "irqbalance", {None: NOT_READ, True: "running", False: "not running"}[facts.irqbalance]
    yield "firewall", facts.firewall or NOT_READ
    yield "routes", _words(facts.routes)
    for nic in facts.nics:
        yield f"card of {nic.interface}", ", ".join(f"{name} {value}" for name, value in _card(nic))
    by_worker: dict[str, list[str]] = {}
    for row in facts.placement:
        by_worker.setdefault(row.worker, []).append(f"{row.interface} queue {row.queue}")
    placed = "; ".join(f"{worker}: {', '.join(queues)}" for worker, queues in by_worker.items())
    yield "queues served by", placed or NOT_READ


def known_rows(facts: RouterFacts) -> Iterator[tuple[str, str]]:
    """:func:`fact_rows` without what was not read."""
    for name, value in fact_rows(facts):
        known = ", ".join(part for part in value.split(", ") if NOT_READ not in part)
        if known:
            yield name, known


def _card(nic: NicFacts) -> Iterator[tuple[str, str]]:
    yield "model", nic.model or NOT_READ
    yield "driver", nic.driver or NOT_READ
    yield "firmware", nic.firmware or NOT_READ
    yield "PCI address", nic.pci_address or NOT_READ
    has, wants = pcie_text(nic.pcie_width, nic.pcie_speed), pcie_text(nic.pcie_width_max, nic.pcie_speed_max)
    yield "PCIe", f"{has} of {wants}" if has or wants else NOT_READ
    yield "NUMA node", _words(nic.numa_node)
    yield "receive queues", _words(nic.rx_queues)
    yield "rings", f"rx {_words(nic.ring_rx)} tx {_words(nic.ring_tx)}"
    yield "RSS", NOT_READ if nic.rss_fields is None else " ".join(nic.rss_fields) or "none"
    yield "RSS key", nic.rss_key or NOT_READ
    yield "offloads", NOT_READ if nic.offloads is None else " ".join(nic.offloads) or "none"
    yield "flow control", nic.flow_control or NOT_READ
    if nic.cpus_of_queue:
        yield "interrupts", " ".join(f"{queue}→CPU {cpus}" for queue, cpus in sorted(nic.cpus_of_queue.items()))
    if nic.steered_to:
        yield "steered (RPS)", " ".join(f"{queue}→CPU {cpus}" for queue, cpus in sorted(nic.steered_to.items()))


def pcie_text(width: int | None, speed: float | None) -> str:
    """``x8 8 GT/s``; what is not known is left out."""
    return " ".join([*([f"x{width}"] if width else []), *([f"{speed:g} GT/s"] if speed else [])])


def _words(number: int | None) -> str:
    return NOT_READ if number is None else f"{number}"


def short_facts(facts: RouterFacts) -> Mapping[str, str]:
    """The few facts for Allure's list of the environment; only those that were read."""
    cards = dict.fromkeys(f"{nic.model or nic.driver}" for nic in facts.nics if nic.model or nic.driver)
    found: dict[str, Any] = {
        "Router system": facts.os,
        "Router processor": facts.cpu,
        "Router workers": facts.workers,
        "Router cards": ", ".join(cards),
    }
    return {name: str(value) for name, value in found.items() if value}


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
    tables = "".join(map(_ledger_table, ledgers)) or "<p>no trial was bad</p>"
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


def _ledger_table(ledger: Ledger) -> str:
    ports = "".join(f"<th>{direction.tx_port} → {direction.rx_port}</th>" for direction in ledger.directions)
    rows = "\n".join(map(_ledger_line, ledger_rows(ledger)))
    reasons = "".join(f"<p>Also reported, not added: {escape(_reason_words(drop))}</p>" for drop in ledger.reasons)
    return (
        f"<p>{escape(f'{trial_span(ledger)}: {where_lost(ledger)}')}</p>\n"
        f'<div class="wide"><table><thead><tr><th class="item">frames</th>{ports}<th>all</th>'
        '<th class="note"></th></tr></thead>\n'
        f"<tbody>\n{rows}\n</tbody></table></div>{reasons}"
    )


def _ledger_line(line: LedgerRow) -> str:
    cells = "".join(f"<td>{escape(_frames_text(number))}</td>" for number in line.numbers)
    return (
        f'<tr class="{line.kind}"><td class="item {line.kind}">{escape(line.item)}</td>{cells}'
        f'<td class="note">{escape(line.note)}</td></tr>'
    )


def _reason_words(reason: Drop) -> str:
    return f"{reason.label}{f' ({reason.meaning})' if reason.meaning else ''}: {reason.frames:,}"


def _frames_text(number: int | None) -> str:
    return "" if number is None else f"{number:,}"
