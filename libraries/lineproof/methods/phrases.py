"""Texts and figures that the methods share."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from ..core.goals import Goal
from ..core.requirement import Requirement
from ..core.trial import DirectionCount, Trial
from ..core.verdict import Evidence, EvidenceRule, Tally, forwarded_pps, offered_pps, on_the_whole
from ..units import Rate, si

NAMED_BACKLOG = 0.001
"""The smallest backlog that a PASS names, as a share of the load."""


def percent(ratio: float) -> str:
    """A ratio as per cent with three digits; a small loss is never shown as 0."""
    return f"{100 * ratio:.3g} %"


def rate_in_all_units(pps: float, requirement: Requirement, link_bps: float) -> str:
    """A rate in every unit, with the sentence's ``each way`` or ``in total``."""
    rate = Rate(pps, requirement.profile.mean_size, link_bps)
    scope = f" {requirement.scope.value}" if requirement.scope.value else ""
    return (
        f"{si(pps, 'pps')} ({si(rate.l1_bps, 'bit/s')} L1, {si(rate.l2_bps, 'bit/s')} L2,"
        f" {rate.percent:.4g} % line rate{scope})"
    )


def rate_figures(requirement: Requirement, trials: Sequence[Trial], link_bps: float) -> dict[str, float]:
    """Mean offered and forwarded rates in every unit, over the trials that the testbed did not spoil, if any."""
    usable = [trial for trial in trials if trial.blames_router] or list(trials)
    found: dict[str, float] = {}
    for name, pps_of in (("offered", offered_pps), ("forwarded", forwarded_pps)):
        mean = fmean(pps_of(trial, requirement) for trial in usable)
        rate = Rate(mean, requirement.profile.mean_size, link_bps)
        found |= {
            f"{name}_pps": rate.pps,
            f"{name}_l1_bps": rate.l1_bps,
            f"{name}_l2_bps": rate.l2_bps,
            f"{name}_percent_of_line": rate.percent,
        }
    return found | pair_figures(requirement, usable)


def _directions_by_pair(requirement: Requirement, trial: Trial) -> list[tuple[DirectionCount, ...]]:
    """The directions of each port pair."""
    directions = trial.outcome.directions
    each = len(directions) // requirement.pairs
    return [directions[start : start + each] for start in range(0, len(directions), each)] if each else []


def pair_figures(requirement: Requirement, trials: Sequence[Trial]) -> dict[str, float]:
    """Mean rates and lost frames of each port pair, both directions together, and their sums. Empty for one pair."""
    if requirement.pairs < 2 or not trials:
        return {}
    found: dict[str, float] = {}
    rows = [(max(trial.seconds, 1e-9), _directions_by_pair(requirement, trial)) for trial in trials]
    for number in range(requirement.pairs):
        counts, name = [(seconds, pairs[number]) for seconds, pairs in rows], f"pair_{number + 1}"
        found |= {
            f"{name}_offered_pps": fmean(sum(direction.offered for direction in pair) / s for s, pair in counts),
            f"{name}_forwarded_pps": fmean(sum(direction.forwarded for direction in pair) / s for s, pair in counts),
            f"{name}_lost_frames": float(sum(direction.lost for _, pair in counts for direction in pair)),
        }
    for name in ("offered_pps", "forwarded_pps", "lost_frames"):
        found[f"all_pairs_{name}"] = sum(found[f"pair_{number + 1}_{name}"] for number in range(requirement.pairs))
    return found


def forwarded_by_pair(requirement: Requirement, trials: Sequence[Trial]) -> str:
    """The mean forwarding rate of each port pair, and of all together, in words; "" for one pair."""
    found = pair_figures(requirement, trials)
    if not found:
        return ""
    named = []
    for number, directions in enumerate(_directions_by_pair(requirement, trials[0]), 1):
        ports = f"ports {directions[0].tx_port} and {directions[0].rx_port}"
        lost = f"{found[f'pair_{number}_lost_frames']:,.0f}".replace(",", " ")
        named.append(f"{ports} {si(found[f'pair_{number}_forwarded_pps'], 'pps')} ({lost} lost)")
    together = si(found["all_pairs_forwarded_pps"], "pps")
    return f"; forwarded per pair: {', '.join(named)}; by all pairs together {together}"


def lost_by_direction(trial: Trial) -> str:
    """The loss in each direction of a trial, in words; "" for one direction, or if they are alike."""
    directions = sorted(trial.outcome.directions, key=lambda direction: direction.loss_ratio, reverse=True)
    if len(directions) < 2 or directions[-1].loss_ratio > directions[0].loss_ratio / 2:
        return ""
    found = [
        f"{percent(direction.loss_ratio) if direction.lost else 'nothing'} from port {direction.tx_port}"
        f" to port {direction.rx_port}"
        for direction in directions
    ]
    return f"lost {', but '.join(found)}"


def forwarded_by_direction(trial: Trial) -> str:
    """The forwarding rate in each direction of a trial, in words; "" in the cases of :func:`lost_by_direction`."""
    directions = sorted(trial.outcome.directions, key=lambda direction: direction.forwarded)
    if len(directions) < 2 or directions[0].forwarded > directions[-1].forwarded / 2:
        return ""
    seconds = trial.seconds
    found = [
        f"{si(direction.forwarded / seconds, 'pps')} from port {direction.tx_port} to port {direction.rx_port}"
        for direction in directions
    ]
    return f"forwarded {', but '.join(found)}"


def excused_text(trials: Sequence[Trial]) -> str:
    """How many of the frames lost in *trials* do not count, in words; "": all count."""
    lost = sum(trial.lost for trial in trials)
    certain = sum(trial.certain_loss(row) for trial in trials for row in trial.outcome.directions)
    if certain >= lost:
        return ""
    return f" ({lost - certain:.0f} of them are explained by the testbed, or were offered beyond the load)"


def set_aside_text(trials: Sequence[Trial], evidence_of: EvidenceRule) -> str:
    """The trials that prove nothing, each with its problems and what it lost, for the message of a PASS; "": none."""
    found = [trial for trial in trials if on_the_whole(evidence_of(trial)) is Evidence.NONE]
    named = [
        f"trial {trial.number} ({_what_spoilt(trial)}; {trial.lost} of {trial.offered} frames lost)" for trial in found
    ]
    return f"; set aside: {', '.join(named)}" if named else ""


def foreign_frames_text(trials: Sequence[Trial]) -> str:
    """How many lost frames those of other origin may hide in *trials*, in words; "": none."""
    found = sum(row.foreign for trial in trials for row in trial.outcome.directions)
    if not found:
        return ""
    return f"; up to {found} frames of other origin may have come in, and hide as many lost ones"


def bad_by_direction(trials: Sequence[Trial], tally: Tally) -> str:
    """How many trials of each direction were bad, in words; "" where there is one, or all are judged together."""
    rows = trials[0].outcome.directions
    if len(rows) < 2 or len(tally.directions) != len(rows):
        return ""
    counted = zip(rows, tally.directions, strict=True)
    return " (" + ", ".join(f"{bad} from port {row.tx_port} to {row.rx_port}" for row, (_, bad) in counted) + ")"


def backlog_text(goal: Goal, trials: Sequence[Trial], pps: float) -> str:
    """The shortage that queues may hide in *trials* at *pps* frames/s, in words; "" for less than NAMED_BACKLOG."""
    rows = [(trial, row) for trial in trials for row in trial.outcome.directions]
    if any(row.backlog is None for _, row in rows):
        found = goal.hidden_shortage_text(pps)
        return f"; {found}" if found else ""
    share = max(((row.backlog or 0) / (pps * trial.outcome.duration) for trial, row in rows), default=0.0)
    if share < NAMED_BACKLOG:
        return ""
    return f"; up to {percent(share)} of the load was still under way near the end of a trial, and may hide a shortage"


def spoilt_trials_reason(trials: Sequence[Trial]) -> str:
    """Why the trials prove nothing: the problems of the last spoilt trial, and the fix."""
    spoilt = [trial for trial in trials if _what_spoilt(trial)]
    if not spoilt:
        return "the generator's load was too low to prove anything"
    text = _what_spoilt(spoilt[-1])
    slow = any(problem.fault.generator_too_slow for problem in spoilt[-1].problems)
    remedy = "; use a faster generator, or state a load it can send" if slow else "; fix the testbed and run again"
    return f"the testbed could not prove either: {text} ({len(spoilt)} of {len(trials)} trials){remedy}"


def _what_spoilt(trial: Trial) -> str:
    """Its problems, and the loss that others may hide, in words; "": nothing."""
    return "; ".join([*map(str, trial.problems), *filter(None, (trial.hidden_text,))])
