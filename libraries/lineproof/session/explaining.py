"""Joins a verdict to the rules that say why frames were lost (:mod:`lineproof.routers.why`)."""

from __future__ import annotations

from dataclasses import replace

from ..core.explanation import Why
from ..core.frame_sizes import frame_sizes
from ..core.router_facts import RouterFacts
from ..core.rule import Ruling
from ..core.trial import Trial
from ..core.under_load import UnderLoad
from ..core.verdict import Verdict
from ..generators.streams import sizes_sent
from ..routers.why import GENERATOR, explanations
from ..routers.why_evidence import TriedLoad

GROWN = 3.5
"""Bytes from which on frames came back longer: a tag or a label has 4, and less may come of a few frames of others."""


def explained(verdict: Verdict, facts: RouterFacts | None, load: UnderLoad | None) -> Verdict:
    """*verdict* with the explanations of its loss; it stays what it is otherwise.

    A FAIL that no loss made has none. An INCONCLUSIVE one proves nothing about the router: only the generator is named.
    *facts*, *load*: None where they were not read.
    """
    trial = _worst_trial(verdict)
    if trial is None or verdict.ruling is Ruling.PASS or trial.seconds.high <= 0:
        return verdict
    found = explanations(_tried(verdict, trial), verdict.worst_ledger, facts, load)
    if verdict.ruling is Ruling.INCONCLUSIVE:
        found = tuple(item for item in found if item.rule == GENERATOR)
    elif not _fails_by_loss(verdict, trial):
        found = ()
    return replace(verdict, why=Why(found, load))


def _fails_by_loss(verdict: Verdict, trial: Trial) -> bool:
    """Return whether *verdict* may be a FAIL because the router certainly lost frames in *trial*."""
    lost = any(trial.lost_frames(row).low > 0 for row in trial.outcome.directions)
    return lost and verdict.requirement.quantity.loss_explains


def _worst_trial(verdict: Verdict) -> Trial | None:
    """The trial that the worst ledger ends with; the last one where there is no ledger."""
    last = verdict.worst_ledger.last_trial if verdict.worst_ledger else None
    found = [trial for trial in verdict.trials if last in (None, trial.number)]
    return found[-1] if found else None


def _tried(verdict: Verdict, trial: Trial) -> TriedLoad:
    profile, seconds = verdict.requirement.profile, trial.seconds.high
    return TriedLoad(
        profile.mean_size,
        profile.flows.count or None,
        verdict.link_bps,
        trial.intended / seconds,
        trial.offered / seconds,
        trial.forwarded / seconds,
        _grown(verdict, trial),
    )


def _grown(verdict: Verdict, trial: Trial) -> dict[int, float]:
    """By receiving port the mean size of frames that came back longer, by the generator's counts of bytes.

    A card that counts no FCS of what it receives hides a tag.
    """
    profile = verdict.requirement.profile
    found = frame_sizes(trial.outcome.directions, *sizes_sent(profile, bool(trial.outcome.latency)))
    grown = {row.rx_port: row.received_bytes - row.sent_bytes for row in found if not row.explained}
    return {port: profile.mean_size + more for port, more in grown.items() if more > GROWN}
