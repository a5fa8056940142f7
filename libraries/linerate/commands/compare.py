"""``linerate compare RUN RUN``: what two runs of the same suite measured, sentence by sentence.

Each trial of full duration that says something about the router is one observation, in the worse direction: frames/s
forwarded (``forwards``), the generator's mean latency or the upper bound of the packet delay variation in µs, the bound
of the recovery in s, cycles per packet, else the loss ratio. Means are compared by Welch's t-test, or by ministat's
pooled one; samples without any spread by their means alone, with RELEVANT as the least difference that counts.
"""

from __future__ import annotations

import argparse
import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..counts.latency import Statistic
from ..counts.trial import Fault, Trial
from ..errors import TestbedError
from ..evidence.records import EnvironmentRecord, RequirementRecord, TrialRecord
from ..evidence.run import RecordedRun, read_run
from ..methods.cost import READING_OF
from ..sla.requirement import Unit
from ..stats import Comparison, Method, compare
from ..units import counted, si
from ..visible import shortened
from .arguments import add_json, print_json

RELEVANT = 0.001
"""The least difference, as a ratio of the larger mean, that counts between samples without spread."""

_ROUNDING = 1e-9
"""Up to this ratio to the mean, a standard deviation comes from rounding."""

_DURATION_SLACK = 1e-9


@dataclass(frozen=True)
class ObservedSentence:
    """One sentence in one run: its verdict, and what each trial measured, in ``unit``."""

    test: str
    sentence: str
    verdict: str
    unit: str
    sample: tuple[float, ...]


@dataclass(frozen=True)
class ComparedSentence:
    """A sentence in both runs. ``comparison`` None: too few observations for a test.

    A verdict that became or was INCONCLUSIVE proves nothing by itself.
    """

    before: ObservedSentence
    after: ObservedSentence
    comparison: Comparison | None

    @property
    def worse(self) -> bool:
        """Proven worse: fewer frames forwarded, more lost, or later; or a PASS that is a FAIL now."""
        return self._turned("PASS", "FAIL") or (self._proven and self._declined and not self._turned("FAIL", "PASS"))

    @property
    def better(self) -> bool:
        """Proven better; or a FAIL that is a PASS now."""
        return self._turned("FAIL", "PASS") or (
            self._proven and not self._declined and not self._turned("PASS", "FAIL")
        )

    @property
    def unsure(self) -> bool:
        """The verdict changed from or to INCONCLUSIVE."""
        both = (self.before.verdict, self.after.verdict)
        return both[0] != both[1] and "INCONCLUSIVE" in both

    @property
    def still(self) -> bool:
        """Neither run's observations have any spread, so that no test applies."""
        found = self.comparison
        return found is not None and all(
            (sample.stddev or 0.0) <= _ROUNDING * abs(sample.mean) for sample in (found.reference, found.candidate)
        )

    def _turned(self, old: str, new: str) -> bool:
        return (self.before.verdict, self.after.verdict) == (old, new)

    @property
    def _proven(self) -> bool:
        found = self.comparison
        if found is None:
            return False
        if self.still:
            return abs(found.difference) > RELEVANT * max(abs(found.reference.mean), abs(found.candidate.mean))
        return found.significant

    @property
    def _declined(self) -> bool:
        more_is_better = self.before.unit in ("pps", Unit.VECTORS.value)
        return self.comparison is not None and (self.comparison.difference < 0) is more_is_better


def observed(run: RecordedRun) -> list[ObservedSentence]:
    """The sentences of *run* with what their trials measured."""
    trials: dict[int, list[TrialRecord]] = {}
    for record in run.trials:
        if record.trial.number and record.trial.blames_router:
            trials.setdefault(record.requirement, []).append(record)
    return [_observed(record, trials.get(record.number, [])) for record in run.requirements]


def _observed(record: RequirementRecord, trials: Sequence[TrialRecord]) -> ObservedSentence:
    words = record.sentence.split()
    unit, figure = next(
        (known for word, known in _QUANTITIES.items() if word in words),
        ("loss ratio", lambda trial, sentence: trial.loss_ratio(_in_total(sentence))),
    )
    if figure is _runtime:
        unit = _runtime_unit(record.sentence).value
    least = record.goal_terms.get("final_trial_duration", 0.0)
    whole = [item.trial for item in trials if item.trial.outcome.duration >= float(least) - _DURATION_SLACK]
    found = [value for trial in whole if (value := figure(trial, record.sentence)) is not None and math.isfinite(value)]
    return ObservedSentence(record.test, record.sentence, record.verdict, unit, tuple(found))


def _worse_rate(trial: Trial, sentence: str) -> float:
    rates = [direction.forwarded / trial.seconds for direction in trial.outcome.directions]
    return math.fsum(rates) if _in_total(sentence) else min(rates)


def _in_total(sentence: str) -> bool:
    """Whether its threshold (not its load) is of all directions together."""
    return " in total" in sentence.partition(" at ")[0]


def _latency(trial: Trial, sentence: str) -> float | None:
    return max((count.mean for count in trial.outcome.latency), default=None)


def _delay_variation(trial: Trial, sentence: str) -> float | None:
    """The upper bound of the sentence's statistic."""
    words = sentence.split()
    statistic = Statistic.read(words[words.index("pdv") + 1], variation=True)
    spreads = [count.spread(trial.seconds) for count in trial.outcome.latency]
    found = [bounds.high for spread in spreads if spread and (bounds := spread.bounds(statistic))]
    return max(found, default=None) if len(found) == len(spreads) else None


def _recovery(trial: Trial, sentence: str) -> float | None:
    """The upper bound; the lower one if loss did not end within the trial."""
    known = trial.outcome.readings
    return known.get("recovery_high_s", known.get("recovery_low_s"))


def _runtime(trial: Trial, sentence: str) -> float | None:
    stretched = any(problem.fault is Fault.STRETCHED for problem in trial.problems)
    return None if stretched else trial.outcome.readings.get(READING_OF[_runtime_unit(sentence)])


def _runtime_unit(sentence: str) -> Unit:
    if "gathers" in sentence:
        return Unit.VECTORS
    return Unit.CYCLES_WITHOUT_INPUT if "without input" in sentence else Unit.CYCLES


Figure = Callable[[Trial, str], float | None]

_QUANTITIES: dict[str, tuple[str, Figure]] = {
    "forwards": ("pps", _worse_rate),
    "costs": ("cycles/packet", _runtime),
    "gathers": ("vectors/call", _runtime),
    "latency": ("µs", _latency),
    "pdv": ("µs", _delay_variation),
    "recovers": ("s", _recovery),
}
"""The sentence's word for a quantity -> the unit of an observation, and how to get it from a trial."""


def rows(before: RecordedRun, after: RecordedRun, confidence: float, method: Method) -> list[ComparedSentence]:
    """The sentences that both runs have, in the order of the later one. Raises TestbedError if there are none."""
    earlier: dict[tuple[str, str], list[ObservedSentence]] = {}
    for item in observed(before):
        earlier.setdefault((item.test, item.sentence), []).append(item)
    found = []
    for item in observed(after):
        same = earlier.get((item.test, item.sentence))
        if same:
            first = same.pop(0)
            enough = len(first.sample) > 1 and len(item.sample) > 1
            comparison = compare(first.sample, item.sample, confidence, method) if enough else None
            found.append(ComparedSentence(first, item, comparison))
    if not found:
        raise TestbedError(
            f"{before.path.name} and {after.path.name} have no sentence in common; expected two runs of a suite"
        )
    return found


def only_in(run: RecordedRun, other: RecordedRun) -> list[str]:
    """Sentences of *run* that *other* lacks: nothing is known of them there."""
    missing = Counter((item.test, item.sentence) for item in run.requirements)
    missing -= Counter((item.test, item.sentence) for item in other.requirements)
    return [sentence for _, sentence in missing.elements()]


def report(
    before: RecordedRun, after: RecordedRun, table: Sequence[ComparedSentence], confidence: float, method: Method
) -> str:
    """The comparison as text: what differs between the testbeds, a line per sentence, what is proven."""
    lines = [
        f"{before.path.name} (reference) and {after.path.name}, {100 * confidence:g} % confidence, {method} t-test"
    ]
    lines += _differences(before, after)
    for row in table:
        was, now = row.before.verdict, row.after.verdict
        change = now if was == now else f"{was} → {now}"
        state = _state(row)
        lines.append(f"{state.upper() if row.worse else state:<6}  {row.after.sentence}: {_figures(row)}  [{change}]")
    for name, sentences in (("reference", only_in(before, after)), ("candidate", only_in(after, before))):
        lines += [f"only in the {name}: {sentence}" for sentence in sentences]
    worse = sum(row.worse for row in table)
    unsure = sum(row.unsure for row in table)
    more = f"; {unsure} with a verdict that became, or was, INCONCLUSIVE" if unsure else ""
    lines.append(f"{worse} of {counted(len(table), 'sentence')} proven worse{more}")
    return "\n".join(lines)


def _state(row: ComparedSentence) -> str:
    """``worse``, ``better``, ``unsure`` or nothing proven: empty."""
    return "worse" if row.worse else "better" if row.better else "unsure" if row.unsure else ""


def _differences(before: RecordedRun, after: RecordedRun) -> list[str]:
    one, two = before.environment, after.environment
    if one is None or two is None:
        return ["testbed and versions of one of them are not known"]
    lines = []
    if one.simulated or two.simulated:
        lines.append("SIMULATED: nothing here is a measurement of a router")
    facts = [("testbed", one.testbed, two.testbed), ("platform", one.platform, two.platform)]
    facts += [("software", one.software, two.software), ("goal", _goal(one), _goal(two))]
    facts += [(name, one.versions[name], two.versions[name]) for name in sorted(one.versions.keys() & two.versions)]
    return lines + [f"{name}: {old} → {new}" for name, old, new in facts if old != new]


def _goal(environment: EnvironmentRecord) -> str:
    return str(environment.extra.get("goal", {}).get("goal", "not known"))


def _figures(row: ComparedSentence) -> str:
    before, after, unit = row.before.sample, row.after.sample, row.before.unit
    if row.comparison is None:
        counts = f"{len(before)} and {len(after)} observations, too few to compare"
        if not before or not after:
            return counts
        one, two = math.fsum(before) / len(before), math.fsum(after) / len(after)
        change = f" ({100 * (two / one - 1):+.3g} %)" if one else ""
        how = "one figure each, no test" if len(before) == len(after) == 1 else counts
        return f"{_text(one, unit)} → {_text(two, unit)}{change}; {how}"
    found = row.comparison
    one, two = found.reference.mean, found.candidate.mean
    if row.still:
        quiet = "no spread in either run, so no test"
        if abs(one - two) <= _ROUNDING * max(abs(one), abs(two)):
            return f"{_text(one, unit)} in both; {quiet}"
        change = f" ({100 * (two / one - 1):+.3g} %)" if one else ""
        return f"{_text(one, unit)} → {_text(two, unit)}{change}; {quiet}: counts from {100 * RELEVANT:g} % on"
    relative = ""
    if found.relative_percent is not None and found.relative_half_width_percent is not None:
        relative = f" ({found.relative_percent:+.3g} ± {found.relative_half_width_percent:.3g} %)"
    return f"{_text(one, unit)} → {_text(two, unit)}{relative}{'; ' + found.note if found.note else ''}"


def _text(value: float, unit: str) -> str:
    return si(value, "pps") if unit == "pps" else f"{value:.4g} {unit}"


def document(
    before: RecordedRun, after: RecordedRun, table: Sequence[ComparedSentence], confidence: float, method: Method
) -> dict[str, Any]:
    """The comparison as data for ``--json``. Means are in ``unit``, differences in percent of the reference's mean."""
    return {
        "reference": str(before.path),
        "candidate": str(after.path),
        "confidence": confidence,
        "method": method,
        "simulated": before.simulated or after.simulated,
        "differences": _differences(before, after),
        "sentences": [_row_document(row) for row in table],
        "only_reference": only_in(before, after),
        "only_candidate": only_in(after, before),
        "worse": sum(row.worse for row in table),
    }


def _row_document(row: ComparedSentence) -> dict[str, Any]:
    def side(found: ObservedSentence) -> dict[str, Any]:
        sample = found.sample
        mean = math.fsum(sample) / len(sample) if sample else None
        return {"verdict": found.verdict, "observations": len(sample), "mean": mean}

    found: dict[str, Any] = {
        "test": row.after.test,
        "sentence": row.after.sentence,
        "unit": row.after.unit,
        "state": _state(row) or "nothing proven",
        "reference": side(row.before),
        "candidate": side(row.after),
    }
    if row.comparison is not None:
        found["difference_percent"] = row.comparison.relative_percent
        found["half_width_percent"] = row.comparison.relative_half_width_percent
    return found


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.description = "What two runs of a suite measured, sentence by sentence, and what is proven worse."
    parser.add_argument("reference", type=Path, help="folder of the earlier run: results/<run id>")
    parser.add_argument("candidate", type=Path, help="folder of the later run")
    parser.add_argument("--confidence", type=_confidence, default=0.95, help="of the test, between 0 and 1 (0.95)")
    parser.add_argument("--method", choices=("welch", "pooled"), default="welch", help="pooled is ministat's (welch)")
    add_json(parser)


def _confidence(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 1:
        raise argparse.ArgumentTypeError(
            f"'{shortened(text)}' is no confidence; expected a number between 0 and 1 with a decimal point, as 0.95"
        )
    return value


def run(arguments: argparse.Namespace) -> int:
    """Print the comparison. 0: nothing proven worse, 1: something is. Raises LinerateError."""
    before, after = read_run(arguments.reference), read_run(arguments.candidate)
    table = rows(before, after, arguments.confidence, arguments.method)
    if arguments.json:
        print_json(document(before, after, table, arguments.confidence, arguments.method))
    else:
        print(report(before, after, table, arguments.confidence, arguments.method))
    return int(any(row.worse for row in table))
