"""Compared runs as a document, with bars for the figures of each sentence; and ministat's own answer."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..stats import Summary, compare, dot_plot
from ..stats.intervals import confidence_text
from ..units import counted
from .bars import Range, range_bars
from .compared_runs import RELEVANT, CandidateChange, ComparedRuns, ComparedSentence, ComparisonRule, Proven
from .document import Cell, Code, Column, Document, Facts, Folded, Items, Mark, Note, Part, Section, Table, data_cells
from .sentence_rows import SentenceRow

_MARKS: dict[Proven, Mark] = {Proven.WORSE: "bad", Proven.BETTER: "good", Proven.UNSURE: "unsure"}


def comparison(compared: Sequence[ComparedRuns], problems: Sequence[str], rule: ComparisonRule) -> Document:
    """Return a section for each pair of runs. *problems*: why runs have no partner."""
    reasons = [words for pair in compared for words in pair.reasons]
    data = {
        "confidence": rule.confidence,
        "method": rule.method,
        "allowed_percent": 100 * rule.allowed,
        "runs": [{"reference": str(pair.before.path), "candidate": str(pair.after.path)} for pair in compared],
        "not_comparable": [*reasons, *problems],
        "differences": [words for pair in compared for words in pair.differences],
        "only_reference": [row.record.sentence for pair in compared for row in pair.only_before],
        "only_candidate": [row.record.sentence for pair in compared for row in pair.only_after],
        "worse": sum(pair.count(Proven.WORSE) for pair in compared),
    }
    first = Section("", [Facts({"rule": rule_text(rule)}), *map(_not_comparable, problems)])
    simulated = any(pair.simulated for pair in compared)
    return Document(headline(compared), [first, *map(_section, compared)], simulated, data)


def _not_comparable(words: str) -> Note:
    return Note(f"NOT COMPARABLE: {words}", strong=True)


def _section(pair: ComparedRuns) -> Section:
    only = [
        f"only in the {name}: {row.record.sentence}"
        for name, rows in (("reference", pair.only_before), ("candidate", pair.only_after))
        for row in rows
    ]
    parts: list[Part] = [
        *map(_not_comparable, pair.reasons),
        Items([f"differs: {words}" for words in pair.differences]),
    ]
    parts += [Table.of([_row(row) for row in pair.sentences], "sentences"), Items(only)]
    parts += [
        Folded(f"{row.after.record.sentence}: {change_text(row)}", bars(row)) for row in pair.sentences if row.change
    ]
    return Section(f"{pair.before.path.name} (reference) and {pair.after.path.name} (candidate)", parts)


def _row(row: ComparedSentence) -> dict[Column, Cell]:
    record = row.after.record
    people = {
        Column("sentence", left=True): Cell(record.sentence),
        Column("reference", left=True, only="people"): Cell(f"{figure_text(row.before)} ({row.before.record.verdict})"),
        Column("candidate", left=True, only="people"): Cell(f"{figure_text(row.after)} ({record.verdict})"),
        Column("proven", left=True, only="people"): Cell(proven_text(row), mark=_MARKS.get(row.state, "")),
    }
    return data_cells({"test": record.test}) | people | comparison_data(row)


def comparison_data(row: ComparedSentence) -> dict[Column, Cell]:
    """Return what a program is told of *row*: means in the sentence's unit, changes in per cent."""
    change = row.change or CandidateChange(None, None, of="")
    ends = {"low": change.low, "high": change.high, "estimate": change.estimate}
    return data_cells(
        {
            "unit": row.after.record.requirement.threshold.unit.value,
            "state": row.state.value,
            "proven": proven_text(row),
            "by": None if row.change is None else "margin" if row.by_margin else "sample",
            **{f"change_{name}_percent": _hundred(end) for name, end in ends.items()},
            "change_of": change.of,
            "change_confidence": change.confidence,
            **_side_data("reference", row.before),
            **_side_data("candidate", row.after),
        }
    )


def _side_data(name: str, side: SentenceRow) -> dict[str, object]:
    sample = [value for value in side.sample if math.isfinite(value)]
    known = Summary.of(sample) if sample else None
    found = {
        "verdict": side.record.verdict,
        "observations": len(side.sample),
        "mean": known and known.mean,
        "minimum": known and known.minimum,
        "median": known and known.median,
        "maximum": known and known.maximum,
        "margin_low_percent": side.search and _hundred(side.search.low),
        "margin_high_percent": side.search and _hundred(side.search.high),
    }
    return {f"{name}_{key}": value for key, value in found.items()}


def change_text(row: ComparedSentence) -> str:
    """By how much, with its interval: ``-2 % (-2.3 % to -1.7 %)``; empty where nothing was compared."""
    found = row.change
    if found is None:
        return ""
    of = "" if found.of == "the reference" else f" of {found.of}"
    if found.estimate is None:
        return _between(found)
    if found.low == found.high:
        least = f"{100 * max(row.rule.allowed, RELEVANT):g} %"
        return f"{_percent(found.estimate)}{of}; no spread in either run, so no test: counts from {least} on"
    sure = f"{_between(found)}, {confidence_text(float(f'{found.confidence:.4g}'))} confidence"
    return f"{_percent(found.estimate)}{of} ({sure})"


def figures_text(row: ComparedSentence) -> str:
    """Return what was measured, of the reference and then of the candidate."""
    old, new = figure_text(row.before), figure_text(row.after)
    return f"{old} in both" if old == new else f"{old} → {new}"


def proven_text(row: ComparedSentence) -> str:
    """Return what that proves, or why it proves nothing, in words."""
    allowed = f"{100 * row.rule.allowed:g} %"
    if not row.comparable:
        return "the runs are not comparable"
    verdicts = row.before.record.verdict, row.after.record.verdict
    if row.state in (Proven.WORSE, Proven.BETTER, Proven.UNSURE):
        if verdicts[0] != verdicts[1]:
            return f"{row.state.value}: {verdicts[0]} → {verdicts[1]}"
        return f"proven {row.state.value} by more than {allowed}"
    if row.change is None:
        return row.why_not
    return f"a difference, not proven to be more than {allowed}" if row.differs else "no difference proven"


def bars(row: ComparedSentence) -> list[Part]:
    """Return least, median and largest figure of reference and candidate as bars; [] where nothing was compared."""
    known = [found for each in (row.before, row.after) if (found := _range(each, row)) is not None]
    if row.change is None or len(known) < 2:
        return []
    sides = zip(("reference", "candidate"), range_bars(known), known, strict=True)
    return [Code("\n".join(f"{name} {bar} {_ends(found, row)}" for name, bar, found in sides))]


def headline(compared: Sequence[ComparedRuns]) -> str:
    """``1 of 9 sentences proven worse; 2 not compared``."""
    total, worse, unsure, left = (
        sum(len(pair.sentences) if state is None else pair.count(state) for pair in compared)
        for state in (None, Proven.WORSE, Proven.UNSURE, Proven.NOT_COMPARED)
    )
    more = f"; {unsure} with a verdict that became, or was, INCONCLUSIVE" if unsure else ""
    return f"{worse} of {counted(total, 'sentence')} proven worse{more}{f'; {left} not compared' if left else ''}"


def rule_text(rule: ComparisonRule) -> str:
    """How it is decided, in words."""
    return (
        f"allowed {100 * rule.allowed:g} %, {confidence_text(rule.confidence)} confidence in all sentences together"
        f" ({rule.method} t-test, Holm)"
    )


def ministat_text(compared: Sequence[ComparedRuns], confidence: float) -> str:
    """Picture, table and answer of ministat(1) for each sentence of which both runs have figures.

    As ministat does it: one test for each sentence, one variance for both samples, nothing allowed.
    """
    lines = []
    for pair in compared:
        for row in pair.sentences:
            old, new = ([value for value in each.sample if math.isfinite(value)] for each in (row.before, row.after))
            lines += ["", f"{row.after.record.sentence} [{row.before.record.requirement.threshold.unit.value}]"]
            if len(old) < 2 or len(new) < 2:
                lines.append(f"{len(old)} and {len(new)} figures, too few for ministat")
                continue
            lines += [f"x {pair.before.path.name}", f"+ {pair.after.path.name}", dot_plot(old, new)]
            lines.append(compare(old, new, confidence, "pooled").text())
    return "\n".join(lines)


def _hundred(ratio: float | None) -> float | None:
    return None if ratio is None else 100 * ratio


def figure_text(side: SentenceRow) -> str:
    """Return what was measured of a sentence."""
    if side.search is not None and side.record.requirement.quantity.threshold_is_load:
        return str(side.search)
    if side.measured is None:
        return "nothing measured"
    return side.record.requirement.text(side.measured.estimate)


def _percent(ratio: float) -> str:
    return f"{100 * ratio + 0.0:+.3g} %"


def _between(found: CandidateChange) -> str:
    if found.low is None or found.high is None:
        ends = [
            f"at {word} {_percent(end)}"
            for word, end in (("least", found.low), ("most", found.high))
            if end is not None
        ]
        return "".join(ends)  # none: both carry all that can be sent
    return f"{_percent(found.low)} to {_percent(found.high)}"


def _range(side: SentenceRow, row: ComparedSentence) -> Range | None:
    if row.by_margin and side.search is not None:
        scale = side.record.requirement.threshold.number
        return Range(side.search.low * scale, None, None if side.search.high is None else side.search.high * scale)
    sample = [value for value in side.sample if math.isfinite(value)]
    if not sample:
        return None
    known = Summary.of(sample)
    return Range(known.minimum, known.median, known.maximum)


def _ends(found: Range, row: ComparedSentence) -> str:
    text = row.after.record.requirement.text
    if found.high is None:
        return f"from {text(found.low)} on"
    if found.middle is None:
        return f"{text(found.low)} to {text(found.high)}"
    return " / ".join(dict.fromkeys((text(found.low), text(found.middle), text(found.high))))
