"""``python -m linerate compare RUN RUN``: what two runs of the same suite measured, sentence by sentence.

Each trial that says something of the router is one observation. Rates are frames/s as forwarded in the trial, latencies
the worse direction's mean in µs, losses ratios. Means are compared by Welch's t-test, or by ministat's pooled one.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from .errors import BenchError, ConfigError
from .evidence.records import RequirementRecord, TrialRecord
from .evidence.run import Run, read_run
from .stats import Comparison, Method, compare
from .trial import Trial
from .units import si


@dataclass(frozen=True)
class Observed:
    """One sentence in one run: its verdict, and what each trial measured (``unit``: pps, µs, s or loss ratio)."""

    test: str
    sentence: str
    verdict: str
    unit: str
    sample: tuple[float, ...]


@dataclass(frozen=True)
class Row:
    """A sentence in both runs. ``comparison`` None: too few observations for a test."""

    before: Observed
    after: Observed
    comparison: Comparison | None

    @property
    def worse(self) -> bool:
        """Proven worse: fewer frames forwarded, more lost, or later; or a PASS that is a FAIL now."""
        if (self.before.verdict, self.after.verdict) == ("PASS", "FAIL"):
            return True
        if self.comparison is None or not self.comparison.significant:
            return False
        return (self.comparison.difference < 0) is (self.before.unit == "pps")

    @property
    def better(self) -> bool:
        """Proven better."""
        return self.comparison is not None and self.comparison.significant and not self.worse


def observed(run: Run) -> list[Observed]:
    """The sentences of *run* with what their trials measured."""
    trials: dict[int, list[TrialRecord]] = {}
    for record in run.trials:
        if record.trial.number and record.trial.blames_router:
            trials.setdefault(record.requirement, []).append(record)
    return [_observed(record, trials.get(record.number, [])) for record in run.requirements]


def _observed(record: RequirementRecord, trials: Sequence[TrialRecord]) -> Observed:
    if any(item.trial.outcome.latency for item in trials):
        sample = [max(count.mean for count in item.trial.outcome.latency) for item in trials]
        return Observed(record.test, record.sentence, record.verdict, "µs", tuple(sample))
    if " recovers " in f" {record.sentence} ":
        known = [item.trial.outcome.readings for item in trials]
        sample = [found.get("recovery_high_s", found["recovery_low_s"]) for found in known if "recovery_low_s" in found]
        return Observed(record.test, record.sentence, record.verdict, "s", tuple(sample))
    if " forwards " in f" {record.sentence} ":
        sample = [_worse_rate(item.trial, record.sentence) for item in trials]
        return Observed(record.test, record.sentence, record.verdict, "pps", tuple(sample))
    sample = [item.trial.loss_ratio(" in total" in record.sentence) for item in trials]
    return Observed(record.test, record.sentence, record.verdict, "loss ratio", tuple(sample))


def _worse_rate(trial: Trial, sentence: str) -> float:
    rates = [direction.forwarded / trial.seconds for direction in trial.outcome.directions]
    return math.fsum(rates) if " in total" in sentence else min(rates)


def rows(before: Run, after: Run, confidence: float, method: Method) -> list[Row]:
    """The sentences that both runs have, in the order of the later one. Raises BenchError where there are none."""
    earlier: dict[tuple[str, str], list[Observed]] = {}
    for item in observed(before):
        earlier.setdefault((item.test, item.sentence), []).append(item)
    found = []
    for item in observed(after):
        same = earlier.get((item.test, item.sentence))
        if same:
            first = same.pop(0)
            enough = len(first.sample) > 1 and len(item.sample) > 1
            comparison = compare(first.sample, item.sample, confidence, method) if enough else None
            found.append(Row(first, item, comparison))
    if not found:
        raise BenchError(
            f"{before.path.name} and {after.path.name} have no sentence in common; right would be two runs of a suite"
        )
    return found


def report(before: Run, after: Run, table: Sequence[Row], confidence: float, method: Method) -> str:
    """The comparison as text: what took part, a line per sentence, what is proven."""
    lines = [
        f"{before.path.name} (reference) and {after.path.name}, {100 * confidence:g} % confidence, {method} t-test"
    ]
    lines += _differences(before, after)
    for row in table:
        change = (
            row.after.verdict
            if row.before.verdict == row.after.verdict
            else (f"{row.before.verdict} → {row.after.verdict}")
        )
        state = "WORSE " if row.worse else "better" if row.better else "      "
        lines.append(f"{state}  {row.after.sentence}: {_figures(row)}  [{change}]")
    worse = sum(row.worse for row in table)
    lines.append(f"{worse} of {len(table)} sentences proven worse")
    return "\n".join(lines)


def _differences(before: Run, after: Run) -> list[str]:
    one, two = before.environment, after.environment
    if one is None or two is None:
        return ["what took part in one of them is not known"]
    lines = []
    if one.simulated or two.simulated:
        lines.append("SIMULATED: nothing here is a measurement of a router")
    facts = [("testbed", one.testbed, two.testbed), ("platform", one.platform, two.platform)]
    facts += [("software", one.software, two.software)]
    facts += [(name, one.versions[name], two.versions[name]) for name in sorted(one.versions.keys() & two.versions)]
    return lines + [f"{name}: {old} → {new}" for name, old, new in facts if old != new]


def _figures(row: Row) -> str:
    if row.comparison is None:
        return f"{len(row.before.sample)} and {len(row.after.sample)} observations, too few to compare"
    found = row.comparison
    one, two = (_say(mean, row.before.unit) for mean in (found.reference.mean, found.candidate.mean))
    if not found.difference:
        return f"{one} in both"
    relative = ""
    if found.relative_percent is not None and found.relative_half_width_percent is not None:
        relative = f" ({found.relative_percent:+.3g} ± {found.relative_half_width_percent:.3g} %)"
    return f"{one} → {two}{relative}{'; ' + found.note if found.note else ''}"


def _say(value: float, unit: str) -> str:
    return si(value, "pps") if unit == "pps" else f"{value:.4g} {unit}"


def main(argv: Sequence[str] | None = None) -> int:
    """Print the comparison. 0: nothing proven worse, 1: something is. Raises LinerateError."""
    parser = argparse.ArgumentParser(
        prog="linerate compare",
        description="What two runs of a suite measured. Exit status 1: something is proven worse.",
    )
    parser.add_argument("reference", type=Path, help="folder of the earlier run: results/<run id>")
    parser.add_argument("candidate", type=Path, help="folder of the later run")
    parser.add_argument("--confidence", type=float, default=0.95, help="of the test, 0..1 (0.95)")
    parser.add_argument("--method", choices=("welch", "pooled"), default="welch", help="pooled is ministat's (welch)")
    arguments = parser.parse_args(argv)
    if not 0 < arguments.confidence < 1:
        raise ConfigError(f"--confidence is {arguments.confidence:g}; right would be more than 0 and less than 1")
    before, after = read_run(arguments.reference), read_run(arguments.candidate)
    table = rows(before, after, arguments.confidence, arguments.method)
    print(report(before, after, table, arguments.confidence, arguments.method))
    return int(any(row.worse for row in table))
