"""A FAIL of a router that the generator asked to wait: what it may have lost by that, and what it lost in any case."""

from __future__ import annotations

import math
from collections.abc import Mapping

from ..core.pause_names import Pauses, pause_seconds
from ..core.trial import Fault, Problem, Trial
from ..core.verdict import Ruling, Verdict
from .other_causes import fails_all_the_same


def why_paused(verdict: Verdict, paused: Mapping[str, Pauses], interfaces: Mapping[int, str]) -> str:
    """Why *verdict*, a FAIL, proves nothing about a router whose interfaces were *paused*. "" if the FAIL stands.

    *interfaces*: the router's, by the generator's port. An interface that received pause frames did not send: this
    concerns the directions that leave by it, and at most the frames that came during the pauses.
    """
    if verdict.ruling is not Ruling.FAIL:
        return ""
    rows = {(row.tx_port, row.rx_port) for trial in verdict.trials for row in trial.outcome.directions}
    received = {row: paused.get(interfaces.get(row[1], ""), Pauses()).received for row in rows}
    held = {row: pause_seconds(count, verdict.link_bps) for row, count in received.items() if count}

    def problems_of(trial: Trial) -> list[Problem]:
        pps = trial.outcome.load.pps
        return [
            Problem(Fault.PAUSING, "the router's interface was paused", math.ceil(seconds * pps), (row,))
            for row, seconds in held.items()
        ]

    if not held or fails_all_the_same(verdict, problems_of):
        return ""
    return "whether it lost frames because the generator stopped it is not known"
