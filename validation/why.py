"""Does the explanation of a failure name what limits the router? The rows of the published studies, overloaded.

Each row is offered a tenth more than the model carries, and all that the generator sends. What binds is the model's
(:mod:`.limits`); the explanation sees only what such a router shows (:mod:`.seen_router`). It is right when the limit
that it names binds, wrong when it names others only, silent when it names none. No traffic and no clock.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lineproof.commands.main import finish
from lineproof.core.under_load import Explanation, TriedLoad
from lineproof.project import Project
from lineproof.routers.why import explanation
from lineproof_bench.model.forwarding import forward
from support.published import ModelledVariant, loads_at, lossless_share, modelled_variants, published_studies

from .limits import Limit, binding_limits
from .population import table
from .seen_router import facts_of, ledger_of, load_of

LEAST_RIGHT = 0.95
"""The share of rows whose explanation must be right. None at all may be silent where it is not."""

ABOVE = 1.1
"""The milder overload: this times what the router carries."""

_NAMED = {
    "generator": {Limit.GENERATOR},
    "line": {Limit.LINE},
    "tx slots": {Limit.TX_SLOTS},
    "locks": {Limit.LOCK},
    "bus": {Limit.BUS},
    # one cannot see from outside whether a card's queue or its port is slow
    "card or bus": {Limit.QUEUE, Limit.PORT, Limit.BUS},
}


@dataclass(frozen=True, slots=True)
class ExplainedRow:
    """One row at one load (share of line rate per direction): the limits that bind, and the explanation."""

    name: str
    load: float
    limits: frozenset[Limit]
    explanation: Explanation | None

    @property
    def named(self) -> frozenset[Limit]:
        """The limits that the explanation names."""
        if self.explanation is None:
            return frozenset()
        if self.explanation.rule in _NAMED:
            return frozenset(_NAMED[self.explanation.rule])
        # "vpp_wk_0 is 100% busy, …: queue 0 of … and queue 1 of … are on one worker"
        several = " are " in self.explanation.words.partition(" busy")[0]
        return frozenset({Limit.WORKERS if several else Limit.ONE_WORKER})

    @property
    def outcome(self) -> str:
        """``right``, ``silent`` or ``wrong``."""
        if not self.named:
            return "silent"
        return "right" if self.named & self.limits else "wrong"


def explained_rows(project: Project) -> tuple[ExplainedRow, ...]:
    """All failing rows of rates without a firewall. Raises ConfigError for files that are not as they should be.

    Nothing that FreeBSD counts tells a core that waits for a firewall's lock from a busy one.
    """
    variants = (
        variant
        for variant in modelled_variants(project, published_studies(project))
        if variant.study.measures[variant.row].is_rate
        and "firewall" not in variant.study.variants[variant.variant].configured
    )
    return tuple(row for variant in variants for row in _explained(variant))


def _explained(variant: ModelledVariant) -> Iterator[ExplainedRow]:
    model, profile, directions = variant.model, variant.traffic.profile, 1 + variant.traffic.bidirectional
    software, most = variant.platform.software[variant.software], variant.model.ceiling
    at = loads_at(model, profile, variant.traffic.bidirectional)
    carried = lossless_share(model, at)
    line = profile.line_rate_pps(model.speeds[0]) * directions
    for share in sorted({min(most, ABOVE * carried), most}):
        loads = at(share)
        # all that the generator sends is what it sends of line rate
        asked = line if share == most else line * share
        limits = binding_limits(model, loads, asked)
        if not limits:
            continue  # nothing fails
        found = forward(model, loads)
        seen = load_of(model, software, loads, found, asked)
        facts = facts_of(model, software, variant.software)
        counted = not any("rdma" in (nic.driver or "") for nic in facts.nics)
        ledger = ledger_of(software, loads, found, counted)
        tried = TriedLoad(
            profile.mean_size,
            profile.flows.count or None,
            model.speeds[0],
            asked,
            seen.offered_pps,
            seen.forwarded_pps,
        )
        yield ExplainedRow(
            f"{variant.study.study} {variant.name}", share, limits, explanation(tried, ledger, facts, seen)
        )


def text_of(rows: Sequence[ExplainedRow]) -> str:
    """The rows as text."""
    head = ("row", "load", "binds", "rule", "confidence", "outcome")
    cells = [
        (
            row.name,
            f"{100 * row.load:.1f} %",
            ", ".join(sorted(limit.value for limit in row.limits)),
            row.explanation.rule if row.explanation else "",
            row.explanation.confidence.value if row.explanation else "",
            row.outcome if row.outcome == "right" else row.outcome.upper(),
        )
        for row in rows
    ]
    return table(head, cells)


def main() -> int:
    """Print the table; 0 when enough rows are right, else 1."""
    argparse.ArgumentParser(prog="python -m validation.why", description=__doc__).parse_args()
    rows = explained_rows(Project.find())
    print(text_of(rows))
    counts = Counter(row.outcome for row in rows)
    several = sum(len(row.named) > 1 and row.outcome == "right" for row in rows)
    print(
        f"\n{len(rows)} rows: {counts['right']} right ({several} of them name more limits than one),"
        f" {counts['silent']} silent, {counts['wrong']} wrong;"
        f" {100 * counts['right'] / max(1, len(rows)):.1f} % right, at least {100 * LEAST_RIGHT:g} % must be."
    )
    return int(counts["right"] < LEAST_RIGHT * max(1, len(rows)))


if __name__ == "__main__":
    finish(main)
