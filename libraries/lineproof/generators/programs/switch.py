"""A generator whose counts a switch checks: its counters beside the generator's own, in each trial."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Annotated

from pydantic import Field

from ...command_values import GroupPattern
from ...config import Config
from ...core.trial import HOST_COUNTS, Fault, Outcome, Problem
from ...errors import TestbedError
from ...system.local_command import Command, run_here
from ...system.login import Secrets, Variable
from ...visible import shortened


class SwitchSettings(Config):
    """A command here that shows the counters of a port of the switch.

    ``run``: with ``{port}`` where the port's name stands. ``secrets``: environment variables of this machine that it
    gets. ``received``, ``sent``: expressions; the numbers of all their groups in what it prints, added, are the frames
    that the port received and sent. ``ports`` of the switch, one for each of the generator's ports, in their order:
    those that its cables are in.

    ``tolerance``: the ratio of a trial's frames by which the counts may differ. ``settle``: s until its counters show
    what has passed (many switches read their hardware every second or so).
    """

    run: Command
    secrets: tuple[Variable, ...] = ()
    received: GroupPattern
    sent: GroupPattern
    ports: Annotated[tuple[str | int, ...], Field(max_length=64)]
    tolerance: Annotated[float, Field(ge=0, le=0.1)] = 0.0001
    settle: Annotated[float, Field(ge=0, le=60)] = 2.0


SPARE_FRAMES = 5
"""Frames by which the counts may differ in any trial: protocols of the switch itself (LLDP, spanning tree)."""

SwitchCounts = Mapping[str, int]
"""``N.in`` and ``N.out`` by the generator's port: frames that the switch received from it, and sent to it."""


def read_switch(settings: SwitchSettings, numbers: Sequence[int], secrets: Secrets) -> SwitchCounts:
    """Return the switch's counters for the generator's ports *numbers*. Raises TestbedError."""
    counts = {}
    for number, port in zip(numbers, settings.ports, strict=True):
        printed = run_here(settings.run.replace("{port}", str(port)), settings.secrets, secrets, "the switch")
        for way, pattern in (("in", settings.received), ("out", settings.sent)):
            match = re.search(pattern, printed, re.MULTILINE)
            frames = [str(each).replace(",", "") for each in match.groups()] if match else [""]
            if not all(count.isdecimal() for count in frames):
                shown = shortened(printed.strip(), 80) or "nothing"
                raise TestbedError(
                    f"the switch, of port {port}: its command prints '{shown}'; expected counts at"
                    f" '{shortened(pattern, 80)}' in it"
                )
            counts[f"{number}.{way}"] = sum(map(int, frames))
    return counts


def checked_by_switch(
    measure: Callable[[], Outcome], read: Callable[[], SwitchCounts], tolerance: float, settle: float
) -> Outcome:
    """Return the outcome of *measure*, with the counts that *read* returns of a switch between generator and router.

    A trial whose counts differ by more than the *tolerance* proves nothing; one where they agree carries the label that
    the generator's own counts could not. *settle*: s until the switch shows what has passed. Raises TestbedError.
    """
    before = read()
    outcome = measure()
    time.sleep(settle)
    after, problems = read(), list(outcome.problems)
    for row in outcome.directions:
        tx, rx = row.tx_port, row.rx_port
        for key, own, words in (
            (f"{tx}.in", row.offered, f"sent by port {tx}"),
            (f"{rx}.out", row.forwarded, f"received by port {rx}"),
        ):
            counted = after[key] - before[key]
            if counted < 0:
                text = f"the switch's count of frames {words} fell"
                problems.append(Problem(Fault.COUNTERS, text, directions=((tx, rx),)))
            elif abs(counted - own) > SPARE_FRAMES + tolerance * max(own, counted):
                text = f"the switch counted {counted} frames {words}, the generator {own}"
                problems.append(Problem(Fault.MISCOUNTED, text, directions=((tx, rx),)))
    counters = {moment: dict(counts) for moment, counts in outcome.counters.items()}
    for moment, counts in (("before", before), ("after", after)):
        counters.setdefault(moment, {}).update({f"switch.{key}": count for key, count in counts.items()})
    readings = {**outcome.readings, HOST_COUNTS: 0.0}
    return replace(outcome, problems=tuple(problems), counters=counters, readings=readings)
