"""Tables as HTML without scripts: any result, trials, a router's facts, where frames went."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, TypeVar

from ..core.causes import Stage
from ..core.ledger import Drop, Ledger, sum_if_known
from ..core.router_facts import NicFacts, RouterFacts
from ..core.trial import Load, Trial
from ..core.verdict import where_lost
from ..methods.deviations import deviations_of
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


def html_page(title: str, fragment: str) -> str:
    """*fragment* as an HTML page of its own."""
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f"<style>body {{ margin: 0; background: #fff; }}</style></head>\n<body>{fragment}</body></html>\n"
    )


def html_fragment(title: str, body: str, simulated: bool = False, style: str = "") -> str:
    """*body* below its title for use inside another page, as Robot's log; the *style* applies to itself only."""
    marked = f'<div class="simulated">{SIMULATED}</div>' if simulated else ""
    return f'<style>{STYLE}{style}</style><div class="lr-trials">{marked}<h1>{escape(title)}</h1>{body}</div>'


def html_table(heads: str, body: str) -> str:
    """Rows of HTML below *heads*, cells of HTML."""
    return f'<div class="wide"><table><thead><tr>{heads}</tr></thead>\n<tbody>\n{body}\n</tbody></table></div>\n'


def _heads(columns: Iterable[tuple[str, str]]) -> str:
    return "".join(
        f"<th>{escape(name)}{f'<small>{escape(unit)}</small>' if unit else ''}</th>" for name, unit in columns
    )


NONE = "–"
"""The cell of what was not measured."""


def known(value: float | None, form: str) -> str:
    """Return *value* in the *form* of a format string; NONE of None."""
    return NONE if value is None else f"{value:{form}}"


def pps_text(load: Load | None) -> str:
    """Return a load in frames/s into each port; NONE of None."""
    return NONE if load is None else f"{load.pps:,.0f}"


def declared(results: Sequence[object]) -> list[str]:
    """Return each deviation of *results* once, as a note."""
    return [f"Deviation: {item}." for item in deviations_of(results)]


R = TypeVar("R")
Columns = Sequence[tuple[str, str, Callable[[R], str]]]
"""The name of each column, its unit ("": none), and what gives the cell of a result."""


@dataclass(frozen=True, slots=True)
class ResultTable:
    """``columns``: names and units ("": none); ``rows``: the cells; ``findings`` above the table, ``notes`` below."""

    title: str
    columns: tuple[tuple[str, str], ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()
    findings: tuple[str, ...] = ()
    simulated: bool = False

    @classmethod
    def of(
        cls,
        results: Iterable[R],
        columns: Columns[R],
        title: str,
        notes: Sequence[str] = (),
        findings: Sequence[str] = (),
        simulated: bool = False,
    ) -> ResultTable:
        """Return the table with a row for each of *results*."""
        rows = tuple(tuple(cell(result) for _, _, cell in columns) for result in results)
        heads = tuple((name, unit) for name, unit, _ in columns)
        return cls(title, heads, rows, tuple(notes), tuple(findings), simulated)

    def page(self) -> str:
        """The table as an HTML page without external resources; all text is escaped."""
        return html_page(self.title, self.fragment())

    def fragment(self) -> str:
        """The table for use inside another page; its style applies to itself only."""
        body = "\n".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in self.rows)
        above, below = ("".join(f"<p>{escape(words)}</p>" for words in each) for each in (self.findings, self.notes))
        return html_fragment(self.title, f"{above}\n{html_table(_heads(self.columns), body)}{below}", self.simulated)


def trials_fragment(
    trials: Sequence[Trial], traffic: TrafficFigures, link_bps: float, title: str = "", simulated: bool = False
) -> str:
    """The trials for use inside another page, as Robot's log: one row per trial and direction; all text is escaped.

    *link_bps* is the link speed of one direction in L1 bit/s.
    """
    body = []
    previous: Trial | None = None
    for row in direction_rows(trials, traffic, link_bps):
        body.append(_html_row(row, row.trial is not previous))
        previous = row.trial
    if not body:
        body.append(f'<tr><td class="note" colspan="{len(_COLUMNS)}">no trial was run</td></tr>')
    table = html_table(_heads((name, unit) for name, unit, *_ in _COLUMNS), "\n".join(body))
    return html_fragment(title or "Trials", f"<p>{escape(_caption(traffic, link_bps))}</p>\n{table}", simulated)


def _caption(traffic: TrafficFigures, link_bps: float) -> str:
    return (
        f"{traffic.name}: mean frame {traffic.mean_size:g} bytes with FCS, link {link_bps / 1e9:g} Gbit/s in each"
        " direction. lost = offered − forwarded; unsent = intended − offered: the generator's fault, not the router's."
    )


def _figure(value: float, decimals: int = 4) -> str:
    # two more decimals for small values
    return f"{value:.{decimals if value >= 0.1 or value == 0 else decimals + 2}f}"


def _state(row: DirectionRow) -> str:
    """Return what is wrong with the trial: once, with its first direction."""
    state, is_first = trial_state(row.trial), row.count is row.trial.outcome.directions[0]
    return " ".join(state.split()) if is_first or state in UNTROUBLED else "as above"


_COLUMNS: Columns[DirectionRow] = (
    ("trial", "", lambda row: trial_name(row.trial)),
    ("ports", "", lambda row: row.direction),
    ("intended", "frames", lambda row: f"{row.count.intended:,}"),
    ("offered", "frames", lambda row: f"{row.count.offered:,}"),
    ("unsent", "frames", lambda row: f"{row.count.unsent:,}"),
    ("forwarded", "frames", lambda row: f"{row.count.forwarded:,}"),
    ("lost", "frames", lambda row: f"{row.count.lost:,}"),
    ("loss ratio", "", lambda row: percent(row.count.loss_ratio)),
    ("forwarded", "Mpps", lambda row: _figure(row.forwarded.pps / 1e6)),
    ("forwarded", "Gbit/s L1", lambda row: _figure(row.forwarded.l1_bps / 1e9)),
    ("forwarded", "% of line", lambda row: _figure(row.forwarded.percent, 2)),
    ("elapsed", "s", lambda row: f"{row.trial.outcome.elapsed:.3f}"),
    ("trial is", "", _state),
)


def _html_row(row: DirectionRow, first: bool) -> str:
    names = [name for name, on in (("first", first), ("warm", not row.trial.number)) if on]
    if not row.trial.is_clean:
        names.append("doubtful")
    lost = "lost" if row.count.lost else ""
    marks = {"lost": lost, "loss ratio": lost, "trial is": "note"}
    cells = []
    for name, _, cell in _COLUMNS:
        text, mark = cell(row), marks.get(name, "")
        if mark == "note" and text == "clean":
            mark = "note good"
        cells.append(f'<td class="{mark}">{escape(text)}</td>' if mark else f"<td>{escape(text)}</td>")
    return f'<tr class="{" ".join(names)}">' + "".join(cells) + "</tr>"


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
    unread = "".join(
        f'<tr><td class="fact">{escape(command)}</td><td class="fact">{escape(why)}</td></tr>\n'
        for command, why in facts.unread.items()
    )
    missing = (
        f"<details><summary>commands without an answer: {len(facts.unread)}</summary><table>{unread}</table></details>"
        if unread
        else ""
    )
    body = f'\n<div class="wide"><table><tbody>\n{odd}{rows}</tbody></table></div>{missing}'
    return html_fragment(title or "The router", body, simulated, _STYLE)


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


def ledgers_fragment(ledgers: Sequence[Ledger], title: str = "", simulated: bool = False) -> str:
    """The ledgers for use inside another page, as Robot's log; all text is escaped."""
    tables = "".join(map(_ledger_table, ledgers)) or "<p>no trial was bad</p>"
    return html_fragment(title or "Where frames went", tables, simulated, _LEDGER_STYLE)


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
    heads = f'<th class="item">frames</th>{ports}<th>all</th><th class="note"></th>'
    where = escape(f"{trial_span(ledger)}: {where_lost(ledger)}")
    return f"<p>{where}</p>\n{html_table(heads, rows)}{reasons}"


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
