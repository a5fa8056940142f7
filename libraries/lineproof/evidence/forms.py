"""The log's documents of one sentence and of its router: trials, ledgers, facts, the load on it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from ..core.causes import Stage
from ..core.ledger import Ledger, sum_if_known
from ..core.router_facts import NicFacts, RouterFacts
from ..core.trial import Trial
from ..core.under_load import CpuLoad, QueueLoad, UnderLoad, WorkerLoad
from ..core.verdict import where_lost
from ..units import si
from .document import Cell, Column, Document, Facts, Folded, Mark, Note, Part, Row, Section, Table
from .rates import UNTROUBLED, DirectionRow, direction_rows, percent, trial_name, trial_state
from .records import RequirementRecord

T = TypeVar("T")
Columns = Sequence[tuple[Column, Callable[[T], Cell | str]]]
"""Each column, with what gives its cell."""


def table_of(things: Iterable[T], columns: Columns[T], mark: Callable[[T], Mark] = lambda thing: "") -> Table:
    """Return the table with a row for each of *things*."""
    rows = [Row([cell(thing) for _, cell in columns], mark(thing)) for thing in things]
    return Table([column for column, _ in columns], rows)


# -- trials ------------------------------------------------------------------------------------------------------------


def trials_document(
    record: RequirementRecord, trials: Sequence[Trial], title: str, simulated: bool = False
) -> Document:
    """Return the *trials* of a sentence with a row for each direction."""
    size, link_bps = record.mean_size, record.link_bps
    caption = (
        f"{record.profile}: mean frame {size:g} bytes with FCS, link {link_bps / 1e9:g} Gbit/s in each"
        " direction. lost = offered − forwarded; unsent = intended − offered: the generator's fault, not the router's."
    )
    table = table_of(direction_rows(trials, size, link_bps), _TRIALS, _trial_mark)
    return Document(title, [Section("", [Note(caption), table])], simulated)


def _trial_mark(row: DirectionRow) -> Mark:
    return "unsure" if not row.trial.is_clean else "" if row.trial.number else "faint"


def _figure(value: float, decimals: int = 4) -> str:
    # two more decimals for small values
    return f"{value:.{decimals if value >= 0.1 or value == 0 else decimals + 2}f}"


def _lost(row: DirectionRow, text: str) -> Cell:
    return Cell(text, mark="bad" if row.count.lost else "")


def _state(row: DirectionRow) -> Cell:
    """Return what is wrong with the trial: once, with its first direction."""
    state, is_first = trial_state(row.trial), row.count is row.trial.outcome.directions[0]
    return Cell(state if is_first or state in UNTROUBLED else "as above", mark="good" if state == UNTROUBLED[0] else "")


_TRIALS: Columns[DirectionRow] = (
    (Column("trial"), lambda row: trial_name(row.trial)),
    (Column("ports"), lambda row: row.direction),
    (Column("intended", "frames"), lambda row: f"{row.count.intended:,}"),
    (Column("offered", "frames"), lambda row: f"{row.count.offered:,}"),
    (Column("unsent", "frames"), lambda row: f"{row.count.unsent:,}"),
    (Column("forwarded", "frames"), lambda row: f"{row.count.forwarded:,}"),
    (Column("lost", "frames"), lambda row: _lost(row, f"{row.count.lost:,}")),
    (Column("loss ratio"), lambda row: _lost(row, percent(row.count.loss_ratio))),
    (Column("forwarded", "Mpps"), lambda row: _figure(row.forwarded.pps / 1e6)),
    (Column("forwarded", "Gbit/s L1"), lambda row: _figure(row.forwarded.l1_bps / 1e9)),
    (Column("forwarded", "% of line"), lambda row: _figure(row.forwarded.percent, 2)),
    (Column("elapsed", "s"), lambda row: f"{row.trial.outcome.elapsed:.3f}"),
    (Column("trial is", left=True), _state),
)


# -- where frames went -------------------------------------------------------------------------------------------------


def ledgers_document(ledgers: Sequence[Ledger], title: str, simulated: bool = False) -> Document:
    """Return where the frames of bad trials went: each count is the one above it less the rows between them."""
    return Document(title, list(map(_ledger_section, ledgers)), simulated)


def _ledger_section(ledger: Ledger) -> Section:
    ports = [Column(f"{direction.tx_port} → {direction.rx_port}") for direction in ledger.directions]
    heads = [Column("frames", left=True), *ports, Column("all"), Column("", left=True)]
    reasons = (
        f"Also reported, not added: {drop.label}{f' ({drop.meaning})' if drop.meaning else ''}: {drop.frames:,}"
        for drop in ledger.reasons
    )
    where = Note(f"{_trial_span(ledger)}: {where_lost(ledger)}")
    return Section("", [where, Table(heads, list(_ledger_rows(ledger))), *map(Note, reasons)])


def _trial_span(ledger: Ledger) -> str:
    """Return ``trial 3``, or ``trials 1 to 3 (of which 3 is bad)``."""
    if ledger.first_trial == ledger.last_trial:
        return f"trial {ledger.last_trial}"
    return f"trials {ledger.first_trial} to {ledger.last_trial} (of which {ledger.last_trial} is bad)"


def _ledger_rows(ledger: Ledger) -> Iterator[Row]:
    def count(point: str, name: str) -> Row:
        numbers = [getattr(direction, name) for direction in ledger.directions]
        return _frames_row(point, [*numbers, sum_if_known(numbers)])

    def unexplained(place: str, name: str) -> Row:
        # what may be of any direction is in the total only
        only_total = ledger.shared and name in ("unexplained", "unexplained_rx_to_tx")
        own = [None if only_total else getattr(direction, name) for direction in ledger.directions]
        numbers = [*own, getattr(ledger, name)]
        return _frames_row(f"unexplained {place}", numbers, mark="unsure" if any(numbers) else "faint")

    yield count("sent by the generator", "offered")
    if not ledger.missing:
        yield unexplained("before the router", "unexplained_before_rx")
        yield from _drops(ledger, Stage.ARRIVING)
        yield count("received by the router", "router_rx")
        yield from _drops(ledger, Stage.PASSING)
        yield from _drops(ledger, Stage.LEAVING)
        yield unexplained("in the router", "unexplained_rx_to_tx")
        yield count("sent by the router", "router_tx")
        yield unexplained("behind the router", "unexplained_after_tx")
    yield count("back at the generator", "forwarded")
    yield count("lost", "lost")
    if not ledger.missing:
        explained = [*(direction.explained for direction in ledger.directions), ledger.explained]
        yield _frames_row("of them explained by the router's counters", explained)
        yield unexplained("in all", "unexplained")


def _drops(ledger: Ledger, stage: Stage) -> Iterator[Row]:
    """Yield what the router counts as dropped at *stage*: of each direction, then what may be of any."""
    count = len(ledger.directions)
    for number, direction in enumerate(ledger.directions):
        for drop in direction.drops_at(stage):
            own = [drop.frames if at == number else None for at in range(count)]
            yield _frames_row(drop.label, [*own, drop.frames], drop.meaning, "bad")
    for drop in ledger.shared:
        if drop.stage is stage:
            yield _frames_row(drop.label, [*[None] * count, drop.frames], drop.meaning, "bad")


def _frames_row(name: str, numbers: Sequence[int | None], note: str = "", mark: Mark = "") -> Row:
    return Row([name, *("" if number is None else f"{number:,}" for number in numbers), note], mark)


# -- what a machine is -------------------------------------------------------------------------------------------------

_FACTS = {
    "operating system": "os",
    "kernel": "kernel",
    "version": "version",
    "firmware": "firmware",
    "processor": "cpu",
    "workers": "workers",
    "firewall": "firewall",
}
_CARD = {
    "model": "model",
    "driver": "driver",
    "firmware": "firmware",
    "PCI address": "pci_address",
    "receive queues": "rx_queues",
    "flow control": "flow_control",
}


def machine_document(title: str, facts: RouterFacts, simulated: bool = False) -> Document:
    """Return what a router or a host is, what differs from the platform's file first, and what was not read."""
    unread = [name for name in _FACTS if not _named(facts, {name: _FACTS[name]})]
    known = {**known_facts(facts), **({"not read": ", ".join(unread)} if unread else {})}
    parts: list[Part] = [*(Note(words, strong=True) for words in facts.differences), Facts(known)]
    if facts.unread:
        parts.append(Folded(f"commands without an answer: {len(facts.unread)}", [Facts(facts.unread)]))
    return Document(title, [Section("", parts)], simulated)


def known_facts(facts: RouterFacts) -> Mapping[str, str]:
    """Return name and words of each fact that was read."""
    queues: dict[str, list[str]] = {}
    for row in facts.placement:
        queues.setdefault(row.worker, []).append(f"{row.interface} queue {row.queue}")
    served = "; ".join(f"{worker}: {', '.join(names)}" for worker, names in queues.items())
    cards = {f"card of {nic.interface}": ", ".join(map(" ".join, _card(nic).items())) for nic in facts.nics}
    found = {**_named(facts, _FACTS), **facts.other, **cards, "queues served by": served}
    return {name: words for name, words in found.items() if words}


def _named(thing: RouterFacts | NicFacts, fields: Mapping[str, str]) -> dict[str, str]:
    values = {name: getattr(thing, field) for name, field in fields.items()}
    return {name: str(value) for name, value in values.items() if value not in (None, "")}


def _card(nic: NicFacts) -> Mapping[str, str]:
    has, wants = pcie_text(nic.pcie_width, nic.pcie_speed), pcie_text(nic.pcie_width_max, nic.pcie_speed_max)
    link = {"PCIe": f"{has} of {wants}"} if has or wants else {}
    steered = " ".join(f"{queue}→CPU {cpus}" for queue, cpus in sorted(nic.steered_to.items()))
    return {**_named(nic, _CARD), **link, **nic.other, **({"steered (RPS)": steered} if steered else {})}


def pcie_text(width: int | None, speed: float | None) -> str:
    """Return ``x8 8 GT/s``; what is not known is left out."""
    return " ".join([*([f"x{width}"] if width else []), *([f"{speed:g} GT/s"] if speed else [])])


# -- the router under load ---------------------------------------------------------------------------------------------


def under_load_document(load: UnderLoad, title: str, simulated: bool = False) -> Document:
    """Return the router's readings around some seconds of traffic."""
    seconds = "" if load.seconds is None else f", read over {load.seconds:.2f} s"
    rates = f"offered {si(load.offered_pps, 'pps')}, forwarded {si(load.forwarded_pps, 'pps')}{seconds}"
    tables = table_of(load.workers, _WORKERS), table_of(load.cpus, _CPUS), table_of(load.queues, _QUEUES)
    sections = [Section("", [Note(rates), *(table for table in tables if table.rows)])]
    rising = {name: _read(rate, ",.0f") for name, rate in load.counters.items()}
    more = {"Condition": load.condition, "Counters that rose, per second": rising, "Not read": load.unread}
    sections += [Section(name, [Facts(known)]) for name, known in more.items() if known]
    return Document(title, sections, simulated)


def _read(value: str | float | None, form: str = "") -> str:
    return "not read" if value is None or value == "" else f"{value:{form}}"


def _share(share: float | None) -> str:
    return _read(share, ".1%").replace("%", " %")


_MOST_NODES, _MOST_THREADS = 6, 4


def _nodes(worker: WorkerLoad) -> str:
    nodes = worker.nodes[:_MOST_NODES]
    return ", ".join(f"{node.name} {_share(node.share)} ({_read(node.clocks, '.4g')} clocks)" for node in nodes)


def _threads(cpu: CpuLoad) -> str:
    return ", ".join(f"{name} {_share(share)}" for name, share in list(cpu.threads.items())[:_MOST_THREADS])


_WORKERS: Columns[WorkerLoad] = (
    (Column("worker", left=True), lambda worker: worker.thread),
    (Column("busy"), lambda worker: _share(worker.busy)),
    (Column("frames/s"), lambda worker: _read(worker.packets_per_s, ",.0f")),
    (Column("vectors/call"), lambda worker: _read(worker.vectors_per_call, ".4g")),
    (Column("cycles/packet"), lambda worker: _read(worker.cycles_per_packet, ".4g")),
    (Column("nodes by share of the core", left=True), _nodes),
)
_CPUS: Columns[CpuLoad] = (
    (Column("processor", left=True), lambda cpu: f"CPU {cpu.cpu}"),
    (Column("busy"), lambda cpu: _share(cpu.busy)),
    (Column("in interrupts"), lambda cpu: _share(cpu.on_packets)),
    (Column("steal"), lambda cpu: _share(cpu.steal)),
    (Column("frames/s"), lambda cpu: _read(cpu.packets_per_s, ",.0f")),
    (Column("threads", left=True), _threads),
)
_QUEUES: Columns[QueueLoad] = (
    (Column("receive queue", left=True), lambda queue: f"{queue.interface} {queue.queue}"),
    (Column("served by", left=True), lambda queue: _read(queue.worker_or_cpu)),
    (Column("frames/s"), lambda queue: _read(queue.packets_per_s, ",.0f")),
    (Column("drops/s"), lambda queue: _read(queue.drops_per_s, ",.0f")),
)
