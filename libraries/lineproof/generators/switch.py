"""A switch that checks a generator's counts: its counters stand beside the generator's own, in each trial."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated

from pydantic import Field

from ..command_values import GroupPattern
from ..config import Config
from ..core.trial import HOST_COUNTS, Fault, Outcome, Problem
from ..errors import TestbedError
from ..system.login import Command, Secrets, Variable, run_here
from ..visible import shortened

SPARE_FRAMES = 5
"""Frames by which the counts may differ in any trial: protocols of the switch itself (LLDP, spanning tree)."""


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


@dataclass(frozen=True)
class Switch:
    """A switch between router and generator, whose ports have these *numbers*."""

    settings: SwitchSettings
    numbers: Sequence[int]
    secrets: Secrets

    def read(self) -> Mapping[str, int]:
        """Return its counters: ``N.in`` and ``N.out``, frames received from and sent to a port. Raises TestbedError."""
        counts, settings = {}, self.settings
        for number, port in zip(self.numbers, settings.ports, strict=True):
            printed = run_here(settings.run.replace("{port}", str(port)), settings.secrets, self.secrets, "the switch")
            for way, pattern in (("in", settings.received), ("out", settings.sent)):
                match = re.search(pattern, printed, re.MULTILINE)
                frames = [str(group).replace(",", "") for group in match.groups()] if match else [""]
                if not all(count.isdecimal() for count in frames):
                    shown = shortened(printed.strip(), 80) or "nothing"
                    raise TestbedError(
                        f"the switch, of port {port}: its command prints '{shown}'; expected counts at"
                        f" '{shortened(pattern, 80)}' in it"
                    )
                counts[f"{number}.{way}"] = sum(map(int, frames))
        return counts

    def checked(self, outcome: Outcome, before: Mapping[str, int]) -> Outcome:
        """Return *outcome* with the switch's counts, which were so *before* its trial. Raises TestbedError.

        A trial whose counts differ by more than the tolerance proves nothing; one where they agree carries the label
        that the generator's own counts could not.
        """
        time.sleep(self.settings.settle)
        after, problems = self.read(), list(outcome.problems)
        for row in outcome.directions:
            for key, own, which in (
                (f"{row.tx_port}.in", row.offered, f"sent by port {row.tx_port}"),
                (f"{row.rx_port}.out", row.forwarded, f"received by port {row.rx_port}"),
            ):
                counted, ports = after[key] - before[key], ((row.tx_port, row.rx_port),)
                if counted < 0:
                    text = f"the switch's count of frames {which} fell"
                    problems.append(Problem(Fault.COUNTERS, text, directions=ports))
                elif abs(counted - own) > SPARE_FRAMES + self.settings.tolerance * max(own, counted):
                    text = f"the switch counted {counted} frames {which}, the generator {own}"
                    problems.append(Problem(Fault.MISCOUNTED, text, directions=ports))
        counters = {moment: dict(counts) for moment, counts in outcome.counters.items()}
        for moment, counts in (("before", before), ("after", after)):
            counters.setdefault(moment, {}).update({f"switch.{key}": count for key, count in counts.items()})
        readings = {**outcome.readings, HOST_COUNTS: 0.0}
        return replace(outcome, problems=tuple(problems), counters=counters, readings=readings)
