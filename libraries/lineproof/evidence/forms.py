"""The log's documents of one sentence and of its router: trials, ledgers, facts, its load."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from ..core.ledger import DirectionAccount, Ledger, sum_of
from ..core.phrases import percent
from ..core.router_facts import NicFacts, RouterFacts
from ..core.telemetry import Stage
from ..core.trial import DirectionCount, Fault, Trial
from ..core.under_load import UnderLoad
from ..core.verdict import where_lost
from ..documents.document import Cell, Column, Document, Facts, Folded, Mark, Note, Part, Row, Section, Table
from ..units import Rate, counted, si
from .records import RequirementRecord

# -- trials ------------------------------------------------------------------------------------------------------------


class _Direction(NamedTuple):
    """One direction of a trial, with the rate of the frames that it forwarded."""

    trial: Trial
    counts: DirectionCount
    forwarded: Rate


def trials_document(
    record: RequirementRecord, trials: Sequence[Trial], title: str, simulated: bool = False
) -> Document:
    """Return the *trials* of a sentence with a row for each direction."""
    size, link_bps = record.mean_size, record.link_bps
    directions = [
        _Direction(trial, count, Rate(count.forwarded / (trial.seconds.high or 1e-9), size, link_bps))
        for trial in trials
        for count in trial.outcome.directions
    ]
    unsent = any(row.counts.unsent for row in directions)
    blames = "; unsent = intended − offered: the generator's fault, not the router's" * unsent
    caption = (
        f"{record.profile}: mean frame {size:g} bytes with FCS, link {link_bps / 1e9:g} Gbit/s in each direction."
        f" lost = offered − forwarded{blames}."
    )
    texts = Counter(text for trial in trials for text in _problems(trial))
    notes = {text: f"note {number}" for number, text in enumerate(texts, 1)}
    shown: Mapping[Column, Callable[[_Direction], Cell | str]]
    shown = {column: cell for column, cell in _TRIALS.items() if column != _UNSENT or unsent}
    shown[Column("trial is", left=True)] = partial(_state, notes=notes)
    if any(row.counts.changed for row in directions):
        shown |= {Column("of those lost, came back changed", "frames"): lambda row: f"{row.counts.changed:,}"}
    lines = []
    for row in directions:
        mark: Mark = "unsure" if not row.trial.is_clean else "" if row.trial.number else "faint"
        lines.append(Row([cell(row) for cell in shown.values()], mark))
    below = [Note(f"{name}, in {counted(texts[text], 'trial')}: {text}") for text, name in notes.items()]
    return Document(title, [Section("", [Note(caption), Table(list(shown), lines), *below])], simulated)


def _lost(row: _Direction, text: str) -> Cell:
    return Cell(text, mark="bad" if row.counts.lost else "")


def _problems(trial: Trial) -> list[str]:
    """Return what is wrong with *trial*; that nobody watched the generator matters only where frames are missing."""
    problems = (problem for problem in trial.problems if trial.lost or problem.fault is not Fault.UNWATCHED)
    return list(dict.fromkeys(map(str, problems)))


def _state(row: _Direction, notes: Mapping[str, str]) -> Cell:
    """Return ``clean``, ``warm-up``, or the names of the *notes* below the table that say what is wrong with the trial.

    They are named once, with its first direction.
    """
    if not (problems := _problems(row.trial)):
        return Cell("clean", "good") if row.trial.number else Cell("warm-up")
    is_first = row.counts is row.trial.outcome.directions[0]
    return Cell(", ".join(notes[text] for text in problems) if is_first else "as above")


_UNSENT = Column("unsent", "frames")
"""It is left out where there are none."""

_TRIALS: Mapping[Column, Callable[[_Direction], Cell | str]] = {
    Column("trial"): lambda row: str(row.trial.number or "warm-up"),
    Column("ports"): lambda row: f"{row.counts.tx_port} → {row.counts.rx_port}",
    Column("intended", "frames"): lambda row: f"{row.counts.intended:,}",
    Column("offered", "frames"): lambda row: f"{row.counts.offered:,}",
    _UNSENT: lambda row: f"{row.counts.unsent:,}",
    Column("forwarded", "frames"): lambda row: f"{row.counts.forwarded:,}",
    Column("lost", "frames"): lambda row: _lost(row, f"{row.counts.lost:,}"),
    Column("loss ratio"): lambda row: _lost(row, percent(row.counts.loss_ratio)),
    Column("forwarded", "Mpps"): lambda row: f"{row.forwarded.pps / 1e6:.5g}",
    Column("forwarded", "Gbit/s L1"): lambda row: f"{row.forwarded.l1_bps / 1e9:.5g}",
    Column("forwarded", "% of line"): lambda row: f"{row.forwarded.percent:.4g}",
    Column("elapsed", "s"): lambda row: f"{row.trial.outcome.elapsed:.3f}",
}


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
    first, bad = ledger.first_trial, ledger.last_trial
    trials = f"trial {bad}" if first == bad else f"trials {first} to {bad} (of which {bad} is bad)"
    where = Note(f"{trials}: {where_lost(ledger)}")
    return Section("", [where, Table(heads, list(_ledger_rows(ledger))), *map(Note, reasons)])


def _ledger_rows(ledger: Ledger) -> Iterator[Row]:
    accounts = (*ledger.directions, ledger.whole)

    def count(point: str, name: str) -> Row:
        return _frames_row(point, [getattr(account, name) for account in accounts])

    def unexplained(place: str, of: Callable[[DirectionAccount], int | None], is_shared: bool = False) -> Row:
        # what may be of any direction is in the total only
        own = [None if is_shared and ledger.shared else of(direction) for direction in ledger.directions]
        numbers = [*own, of(ledger.whole)]
        return _frames_row(f"unexplained {place}", numbers, mark="unsure" if any(numbers) else "faint")

    def drops(stage: Stage) -> Iterator[Row]:
        """Yield what the router counts as dropped at *stage*: of each direction, then what may be of any."""
        for place, those in enumerate((*(row.drops for row in ledger.directions), ledger.shared)):
            for drop in (one for one in those if one.stage is stage):
                frames = sum_of([drop])
                own = [frames if place == at else None for at in range(len(ledger.directions))]
                yield _frames_row(drop.label, [*own, frames], drop.meaning, "bad")

    yield count("sent by the generator", "offered")
    if not ledger.missing:
        yield unexplained("before the router", lambda part: part.gaps[0])
        yield from drops(Stage.ARRIVING)
        yield count("received by the router", "router_rx")
        yield from drops(Stage.PASSING)
        yield from drops(Stage.LEAVING)
        yield unexplained("in the router", lambda part: part.gaps[1], is_shared=True)
        yield count("sent by the router", "router_tx")
        yield unexplained("behind the router", lambda part: part.gaps[2])
    yield count("back at the generator", "forwarded")
    yield count("lost", "lost")
    if not ledger.missing:
        yield count("of them explained by the router's counters", "explained")
        yield unexplained("in all", lambda part: part.unexplained, is_shared=True)


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
    parts: list[Part] = [*(Note(difference, strong=True) for difference in facts.differences), Facts(known)]
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
    known = {**_named(facts, _FACTS), **facts.other, **cards, "queues served by": served}
    return {name: value for name, value in known.items() if value}


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


# -- a router under load -----------------------------------------------------------------------------------------------

_MOST_NODES, _MOST_THREADS = 6, 4


def under_load_document(load: UnderLoad, title: str, simulated: bool = False) -> Document:
    """Return the router's readings around some seconds of traffic."""
    seconds = "" if load.seconds is None else f", read over {load.seconds:.2f} s"
    rates = f"offered {si(load.offered_pps, 'pps')}, forwarded {si(load.forwarded_pps, 'pps')}{seconds}"
    workers = [
        {
            Column("worker", left=True): worker.thread,
            Column("busy"): _share(worker.busy),
            Column("frames/s"): _read(worker.packets_per_s, ",.0f"),
            Column("vectors/call"): _read(worker.vectors_per_call, ".4g"),
            Column("cycles/packet"): _read(worker.cycles_per_packet, ".4g"),
            Column("nodes by share of the core", left=True): ", ".join(
                f"{node.name} {_share(node.share)} ({_read(node.clocks, '.4g')} clocks)"
                for node in worker.nodes[:_MOST_NODES]
            ),
        }
        for worker in load.workers
    ]
    cpus = [
        {
            Column("processor", left=True): f"CPU {cpu.cpu}",
            Column("busy"): _share(cpu.busy),
            Column("in interrupts"): _share(cpu.on_packets),
            Column("steal"): _share(cpu.steal),
            Column("frames/s"): _read(cpu.packets_per_s, ",.0f"),
            Column("threads", left=True): ", ".join(
                f"{name} {_share(share)}" for name, share in list(cpu.threads.items())[:_MOST_THREADS]
            ),
        }
        for cpu in load.cpus
    ]
    queues = [
        {
            Column("receive queue", left=True): f"{queue.interface} {queue.queue}",
            Column("served by", left=True): _read(queue.worker_or_cpu),
            Column("frames/s"): _read(queue.packets_per_s, ",.0f"),
            Column("drops/s"): _read(queue.drops_per_s, ",.0f"),
        }
        for queue in load.queues
    ]
    # as nic-queue-usage of the FreeBSD studies: all queues of an interface together
    for name in dict.fromkeys(queue.interface for queue in load.queues):
        own = [queue.packets_per_s for queue in load.queues if queue.interface == name]
        if len(own) > 1 and None not in own:
            total = sum(rate or 0.0 for rate in own)
            queues.append({Column("receive queue", left=True): f"{name} all", Column("frames/s"): _read(total, ",.0f")})
    rising = {name: _read(rate, ",.0f") for name, rate in load.counters.items()}
    more = {"Condition": load.condition, "Counters that rose, per second": rising, "Not read": load.unread}
    sections = [Section("", [Note(rates), *(Table.of(busy) for busy in (workers, cpus, queues) if busy)])]
    sections += [Section(name, [Facts(known)]) for name, known in more.items() if known]
    return Document(title, sections, simulated)


def _read(value: str | float | None, form: str = "") -> str:
    return "not read" if value is None or value == "" else f"{value:{form}}"


def _share(share: float | None) -> str:
    return _read(share, ".1%").replace("%", " %")
