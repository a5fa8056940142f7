"""Does the explanation of a failure name what limits the router? The rows of the published studies, overloaded.

Each row is offered a tenth more than the model carries, and all that the generator sends. What binds is the model's
(:mod:`.limits`); the explanation sees only what such a router shows (:mod:`.seen_router`). It is right when the limit
that it names binds, wrong when it names others only, silent when it names none. No traffic and no clock.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from lineproof.commands.main import finish
from lineproof.core.under_load import Explanation, TriedLoad
from lineproof.project import Project
from lineproof.routers.why import explanation
from lineproof_bench.model.forwarding import forward
from support.published import ModelledVariant, loads_at, lossless_share, modelled_variants, published_studies

from .limits import binding_limits
from .population import print_table
from .seen_router import facts_of, ledger_of, load_of

LEAST_RIGHT = 0.95
ABOVE = 1.1
"""The milder overload: this times what the router carries."""

NAMED = {
    "generator": {"generator"},
    "line": {"line"},
    "tx slots": {"tx slots"},
    "locks": {"lock"},
    "bus": {"bus"},
    # one cannot see from outside whether a card's queue or its port is slow
    "card or bus": {"card's queue", "port", "bus"},
}
"""The limits that a rule names; other rules name one worker or several."""


@dataclass(frozen=True, slots=True)
class ExplainedRow:
    """One row at one load (share of line rate per direction): the limits that bind, and the explanation."""

    name: str
    load: float
    limits: frozenset[str]
    explanation: Explanation | None

    @property
    def named(self) -> set[str]:
        """The limits that the explanation names."""
        if self.explanation is None:
            return set()
        # "vpp_wk_0 is 100% busy, …: queue 0 of … and queue 1 of … are on one worker"
        several = " are " in self.explanation.words.partition(" busy")[0]
        return NAMED.get(self.explanation.rule, {"several workers" if several else "one worker"})

    @property
    def outcome(self) -> str:
        """The judgement: ``right``, ``SILENT`` or ``WRONG``."""
        return "SILENT" if not self.named else "right" if self.named & self.limits else "WRONG"

    @property
    def line(self) -> list[str]:
        """The line in the table."""
        why, limits = self.explanation, ", ".join(sorted(self.limits))
        named = [why.rule, why.confidence.value] if why else ["", ""]
        return [self.name, f"{100 * self.load:.1f} %", limits, *named, self.outcome]


def explained_rows(project: Project) -> Iterator[ExplainedRow]:
    """Yield all failing rows of rates without a firewall. Raises ConfigError for files that are wrong.

    Nothing that FreeBSD counts tells a core that waits for a firewall's lock from a busy one.
    """
    for variant in modelled_variants(project, published_studies(project)):
        has_firewall = "firewall" in variant.study.variants[variant.variant].configured
        if variant.study.measures[variant.row].is_rate and not has_firewall:
            yield from _explained(variant)


def _explained(variant: ModelledVariant) -> Iterator[ExplainedRow]:
    model, profile, directions = variant.model, variant.traffic.profile, 1 + variant.traffic.bidirectional
    software, most = variant.platform.software[variant.software], variant.model.ceiling
    at = loads_at(model, profile, variant.traffic.bidirectional)
    line = profile.line_rate_pps(model.speeds[0])
    for share in sorted({min(most, ABOVE * lossless_share(model, at)), most}):
        loads = at(share)
        # all that the generator sends is what it sends of line rate
        asked = line * directions * (1 if share == most else share)
        limits = binding_limits(model, loads, asked)
        if not limits:
            continue  # nothing fails
        outcome = forward(model, loads)
        seen = load_of(model, software, loads, outcome, asked)
        facts = facts_of(model, software, variant.software)
        ledger = ledger_of(software, loads, outcome, counts_arrivals="rdma" not in variant.software)
        flows = profile.flows.count or None
        tried = TriedLoad(profile.mean_size, flows, model.speeds[0], asked, seen.offered_pps, seen.forwarded_pps)
        why = explanation(tried, ledger, facts, seen)
        yield ExplainedRow(f"{variant.study.study} {variant.name}", share, limits, why)


def main() -> int:
    """Print the table; 0 when enough rows are right, else 1."""
    argparse.ArgumentParser(prog="python -m validation.why", description=__doc__).parse_args()
    rows = list(explained_rows(Project.find()))
    head = ["row", "load", "binds", "rule", "confidence", "outcome"]
    print_table("Explanations of overloaded rows", head, [row.line for row in rows])
    counts = Counter(row.outcome for row in rows)
    several = sum(len(row.named) > 1 and row.outcome == "right" for row in rows)
    right = counts["right"] / max(1, len(rows))
    print(
        f"{len(rows)} rows: {counts['right']} right ({several} of them name more limits than one),"
        f" {counts['SILENT']} silent, {counts['WRONG']} wrong;"
        f" {100 * right:.1f} % right, at least {100 * LEAST_RIGHT:g} % must be."
    )
    return int(right < LEAST_RIGHT)


if __name__ == "__main__":
    finish(main)
