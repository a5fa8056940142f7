"""Compared runs as people and programs read them: text with bars, Markdown, JSON data, ministat's own answer."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from ..stats import Summary, compare, dot_plot
from ..stats.intervals import confidence_text
from ..units import counted
from ..visible import shortened
from .compared_runs import RELEVANT, CandidateChange, ComparedRuns, ComparedSentence, ComparisonRule, Proven
from .sentence_rows import SentenceRow
from .tables import SIMULATED
from .text_tables import Range, markdown_table, markdown_text, range_bars

_LONGEST = 400
"""Characters that are shown of a sentence, or of what a router said of itself."""


def change_text(row: ComparedSentence) -> str:
    """By how much, with its interval: ``-2 % (-2.3 % to -1.7 %)``; empty where nothing was compared."""
    found = row.change
    if found is None:
        return ""
    of = "" if found.of == "the reference" else f" of {found.of}"
    if found.estimate is None:
        return _between(found)
    if found.low == found.high:
        return f"{_percent(found.estimate)}{of}; no spread in either run, so no test: counts from {_least(row)} on"
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
    if row.state in (Proven.WORSE, Proven.BETTER):
        if verdicts[0] != verdicts[1]:
            return f"{row.state.value}: {verdicts[0]} → {verdicts[1]}"
        return f"proven {row.state.value} by more than {allowed}"
    if row.change is None:
        return row.why_not
    return f"a difference, not proven to be more than {allowed}" if row.differs else "no difference proven"


def bars(row: ComparedSentence) -> list[tuple[str, str]]:
    """A bar and its figures for the reference and for the candidate; empty where nothing was compared."""
    known = [found for each in (row.before, row.after) if (found := _range(each, row)) is not None]
    if row.change is None or len(known) < 2:
        return []
    return list(zip(range_bars(known), [_ends(each, row) for each in known], strict=True))


def report(compared: Sequence[ComparedRuns], problems: Sequence[str], rule: ComparisonRule) -> str:
    """Text for a terminal."""
    lines = []
    for pair in compared:
        lines.append(f"{pair.before.path.name} (reference) and {pair.after.path.name}, {rule_text(rule)}")
        lines += [SIMULATED] if pair.simulated else []
        lines += [f"NOT COMPARABLE: {line(words)}" for words in pair.reasons]
        lines += [f"differs: {line(words)}" for words in pair.differences]
        for row in pair.sentences:
            lines += _sentence_lines(row)
        for name, rows in (("reference", pair.only_before), ("candidate", pair.only_after)):
            lines += [f"only in the {name}: {line(row.record.sentence)}" for row in rows]
    lines += [f"NOT COMPARABLE: {line(words)}" for words in problems]
    return "\n".join([*lines, summary_line(compared)])


def summary_line(compared: Sequence[ComparedRuns]) -> str:
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


def line(words: object) -> str:
    """In one line, what does not print escaped."""
    return shortened(" ".join(str(words).split()), _LONGEST)


def _sentence_lines(row: ComparedSentence) -> Iterator[str]:
    state = {Proven.NOTHING_PROVEN: "", Proven.WORSE: "WORSE", Proven.NOT_COMPARED: "?"}.get(row.state, row.state.value)
    was, now = row.before.record.verdict, row.after.record.verdict
    verdict = now if was == now else f"{was} → {now}"
    words = [figures_text(row), change_text(row), proven_text(row)]
    yield f"{state:<6}  {line(row.after.record.sentence)}: {'; '.join(filter(None, words))}  [{verdict}]"
    for name, (bar, ends) in zip(("reference", "candidate"), bars(row), strict=False):
        yield f"        {name} {bar} {ends}"


def markdown(compared: Sequence[ComparedRuns], problems: Sequence[str], rule: ComparisonRule) -> str:
    """The same in Markdown, for a merge request."""
    lines = []
    for pair in compared:
        lines += [f"### {markdown_text(pair.before.path.name)} → {markdown_text(pair.after.path.name)}", ""]
        lines += [f"**{markdown_text(SIMULATED)}**", ""] if pair.simulated else []
        lines += [f"- **not comparable**: {markdown_text(line(words))}" for words in pair.reasons]
        lines += [f"- {markdown_text(line(words))}" for words in pair.differences]
        heads = ["sentence", "reference", "candidate", "change", "proven", "least, median, largest"]
        lines += ["", *markdown_table(heads, [_markdown_cells(row) for row in pair.sentences]), ""]
        for name, rows in (("reference", pair.only_before), ("candidate", pair.only_after)):
            lines += [f"- only in the {name}: {markdown_text(line(row.record.sentence))}" for row in rows]
    lines += [f"- **not comparable**: {markdown_text(line(words))}" for words in problems]
    return "\n".join([*lines, "", f"{summary_line(compared)}; {markdown_text(rule_text(rule))}"])


def markdown_bars(row: ComparedSentence) -> str:
    """The bars of *row* in one cell of a table."""
    return "<br>".join(f"`{bar}` {markdown_text(ends)}" for bar, ends in bars(row))


def _markdown_cells(row: ComparedSentence) -> list[str]:
    sides = [f"{figure_text(each)} ({each.record.verdict})" for each in (row.before, row.after)]
    words = [line(row.after.record.sentence), *sides, change_text(row), proven_text(row)]
    cells = [markdown_text(each) for each in words]
    if row.state is Proven.WORSE:
        cells[-1] = f"**{cells[-1]}**"
    return [*cells, markdown_bars(row)]


def ministat_text(compared: Sequence[ComparedRuns], confidence: float) -> str:
    """Picture, table and answer of ministat(1) for each sentence of which both runs have figures.

    As ministat does it: one test for each sentence, one variance for both samples, nothing allowed.
    """
    lines = []
    for pair in compared:
        for row in pair.sentences:
            old, new = ([value for value in each.sample if math.isfinite(value)] for each in (row.before, row.after))
            lines += ["", f"{line(row.after.record.sentence)} [{row.before.record.requirement.threshold.unit.value}]"]
            if len(old) < 2 or len(new) < 2:
                lines.append(f"{len(old)} and {len(new)} figures, too few for ministat")
                continue
            lines += [f"x {pair.before.path.name}", f"+ {pair.after.path.name}", dot_plot(old, new)]
            lines.append(compare(old, new, confidence, "pooled").text())
    return "\n".join(lines)


def document(compared: Sequence[ComparedRuns], problems: Sequence[str], rule: ComparisonRule) -> dict[str, Any]:
    """The same as data for ``--json``. Means are in ``unit``, differences in percent of the reference's mean."""
    pairs = [_pair_document(pair) for pair in compared]
    return {
        "reference": pairs[0]["reference"] if pairs else None,
        "candidate": pairs[0]["candidate"] if pairs else None,
        "runs": [
            {name: pair[name] for name in ("reference", "candidate", "simulated", "not_comparable")} for pair in pairs
        ],
        "confidence": rule.confidence,
        "method": rule.method,
        "allowed_percent": 100 * rule.allowed,
        "simulated": any(pair.simulated for pair in compared),
        "not_comparable": [words for pair in pairs for words in pair["not_comparable"]] + list(problems),
        "differences": [words for pair in pairs for words in pair["differences"]],
        "sentences": [item for pair in pairs for item in pair["sentences"]],
        "only_reference": [row.record.sentence for pair in compared for row in pair.only_before],
        "only_candidate": [row.record.sentence for pair in compared for row in pair.only_after],
        "worse": sum(pair.count(Proven.WORSE) for pair in compared),
    }


def _pair_document(pair: ComparedRuns) -> dict[str, Any]:
    return {
        "reference": str(pair.before.path),
        "candidate": str(pair.after.path),
        "simulated": pair.simulated,
        "not_comparable": list(pair.reasons),
        "differences": list(pair.differences),
        "sentences": [sentence_document(row) for row in pair.sentences],
    }


def sentence_document(row: ComparedSentence) -> dict[str, Any]:
    """One sentence of :func:`document`."""
    found: dict[str, Any] = {
        "test": row.after.record.test,
        "sentence": row.after.record.sentence,
        "unit": row.after.record.requirement.threshold.unit.value,
        "state": row.state.value,
        "proven": proven_text(row),
        "by": None if row.change is None else "margin" if row.by_margin else "sample",
        "reference": _side_document(row.before),
        "candidate": _side_document(row.after),
    }
    if (change := row.change) is not None:
        ends = {"low": change.low, "high": change.high, "estimate": change.estimate}
        found["change"] = {"of": change.of, **{name: _hundred(end) for name, end in ends.items()}}
        found["change"]["confidence"] = change.confidence
        if change.estimate is not None and change.high is not None and change.of == "the reference":
            found["difference_percent"] = 100 * change.estimate
            found["half_width_percent"] = 100 * (change.high - change.estimate)
    return found


def _side_document(side: SentenceRow) -> dict[str, Any]:
    sample = [value for value in side.sample if math.isfinite(value)]
    known = Summary.of(sample) if sample else None
    return {
        "verdict": side.record.verdict,
        "observations": len(side.sample),
        "mean": known and known.mean,
        "minimum": known and known.minimum,
        "median": known and known.median,
        "maximum": known and known.maximum,
        "margin": side.search and {"low_percent": 100 * side.search.low, "high_percent": _hundred(side.search.high)},
    }


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


def _least(row: ComparedSentence) -> str:
    return f"{100 * max(row.rule.allowed, RELEVANT):g} %"


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
