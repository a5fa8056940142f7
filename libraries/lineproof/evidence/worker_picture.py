"""The picture of a router's workers: how busy each was, or how many frames it took, trial by trial."""

from __future__ import annotations

from collections.abc import Sequence

from ..core.trial import Trial
from ..core.under_load import BUSY_SHARE, FRAMES_TAKEN
from .chart import SIGNS, Chart, columns, linear, scaled


def workers_plot(trials: Sequence[Trial], title: str, simulated: bool = False) -> str:
    """Return the work of the busiest workers in each of *trials* as SVG; "": it was not read."""
    lines: dict[str, list[tuple[float, float]]] = {}
    judged = [trial for trial in trials if trial.number]
    for column, trial in enumerate(judged):
        for name, rate in trial.outcome.readings.items():
            if name.startswith((BUSY_SHARE, FRAMES_TAKEN)):
                lines.setdefault(name, []).append((float(column), rate))
    if not lines:
        return ""
    busiest = sorted(lines, key=lambda name: -max(rate for _, rate in lines[name]))[: len(SIGNS)]
    most = max(rate for name in busiest for _, rate in lines[name])
    is_share = busiest[0].startswith(BUSY_SHARE)
    up = linear("busy [%]", 1.0, size=0.01) if is_share else scaled("frames taken", "pps", 1.1 * most or 1.0)
    plot = Chart(title, columns("trial", [str(trial.number) for trial in judged]), up, simulated)
    for sign, name in zip(SIGNS, sorted(busiest), strict=False):
        plot.curve(lines[name], name.removeprefix(BUSY_SHARE).removeprefix(FRAMES_TAKEN), sign)
    return plot.svg()
