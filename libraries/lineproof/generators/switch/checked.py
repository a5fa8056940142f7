"""A generator whose counts a switch checks: its counters beside the generator's own, in each trial."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, Field, field_validator, model_validator

from ...command_values import GroupPattern, JsonPath, json_value, pattern_value
from ...config import Config, matching
from ...core.trial import HOST_COUNTS, During, Fault, Load, Outcome, Problem
from ...errors import TestbedError
from ...system.local_command import LIMIT, Command, Variable, run_here
from ...system.login import Secrets
from ...system.login_settings import HostSettings
from ...system.ssh import connect, run_ssh_command

SwitchPort = Annotated[
    str,
    matching("[A-Za-z0-9_./:-]{1,64}", "is no port of a switch; expected letters, digits and any of _ . / : -"),
]


def _as_list(value: Any) -> Any:
    return (value,) if isinstance(value, str) else value


_SOME = Field(min_length=1, max_length=10)


class CountPatterns(Config):
    """Expressions whose first groups, added, are the frames that a port received and sent."""

    received: Annotated[tuple[GroupPattern, ...], BeforeValidator(_as_list), _SOME]
    sent: Annotated[tuple[GroupPattern, ...], BeforeValidator(_as_list), _SOME]


class CountPaths(Config):
    """Paths whose numbers, added, are the frames that a port received and sent; with ``{port}`` for its name."""

    received: Annotated[tuple[JsonPath, ...], BeforeValidator(_as_list), _SOME]
    sent: Annotated[tuple[JsonPath, ...], BeforeValidator(_as_list), _SOME]


class SwitchSettings(HostSettings):
    """A command that shows the counters of a port of the switch: here, or over SSH with ``address`` and ``ssh``.

    ``run``: with ``{port}`` where the port's name stands. ``secrets``: environment variables of this machine that a
    command here gets. ``pattern`` or ``json_paths``: where the counts are in what it prints. ``ports`` of the switch,
    one for each of the generator's ports, in their order: those that its cables are in.

    ``tolerance``: the ratio of a trial's frames by which the counts may differ. ``settle``: s until its counters show
    what has passed (many switches read their hardware every second or so).
    """

    run: Command
    secrets: tuple[Variable, ...] = ()
    pattern: CountPatterns | None = None
    json_paths: CountPaths | None = None
    ports: Annotated[tuple[SwitchPort, ...], Field(max_length=64)]
    tolerance: Annotated[float, Field(ge=0, le=0.1)] = 0.0001
    settle: Annotated[float, Field(ge=0, le=60)] = 2.0

    @field_validator("ports", mode="before")
    @classmethod
    def _as_text(cls, value: object) -> object:
        return [str(each) if isinstance(each, int) else each for each in value] if isinstance(value, list) else value

    @model_validator(mode="after")
    def _check_keys(self) -> Self:
        if (self.pattern is None) == (self.json_paths is None):
            raise ValueError("expected one of 'pattern' and 'json_paths', each with 'received' and 'sent'")
        if self.secrets and self.ssh is not None:
            raise ValueError("'secrets' are for a command that runs here; expected none, or no 'address'")
        return self


SPARE_FRAMES = 5
"""Frames by which the counts may differ in any trial: protocols of the switch itself (LLDP, spanning tree)."""

SwitchCounts = Mapping[str, int]
"""``N.in`` and ``N.out`` by the generator's port: frames that the switch received from it, and sent to it."""


def switch_reader(settings: SwitchSettings, numbers: Sequence[int], secrets: Secrets) -> Callable[[], SwitchCounts]:
    """Return what reads the switch's counters for the generator's ports *numbers*. It raises TestbedError."""
    ports = dict(zip(numbers, settings.ports, strict=True))
    who = "the switch" if settings.address is None else f"the switch at {settings.address}"

    def read() -> SwitchCounts:
        counts: dict[str, int] = {}
        with _runner(settings, secrets, who) as run:
            for number, port in ports.items():
                output = run(settings.run.replace("{port}", port))
                for key, frames in _frames(settings, output, port, f"{who}, of port {port}").items():
                    counts[f"{number}.{key}"] = frames
        return counts

    return read


@contextlib.contextmanager
def _runner(settings: SwitchSettings, secrets: Secrets, who: str) -> Iterator[Callable[[str], str]]:
    """Yield what runs a command where the settings say, over one login."""
    if settings.ssh is None or settings.address is None:
        yield lambda command: run_here(command, settings.secrets, secrets, who)
        return
    client = connect(settings.ssh.login(settings.address, secrets), "the switch")

    def over_ssh(command: str) -> str:
        output, errors, _ = run_ssh_command(client, command, LIMIT)
        return (output + errors).decode(errors="replace")

    try:
        yield over_ssh
    finally:
        client.close()


def _frames(settings: SwitchSettings, output: str, port: str, who: str) -> dict[str, int]:
    """Return the frames that *port* received (``in``) and sent (``out``), by *output*. Raises TestbedError."""
    frames: dict[str, int] = {}
    for key, name in (("in", "received"), ("out", "sent")):
        if settings.json_paths is not None:
            paths = [path.replace("{port}", "{interface}") for path in getattr(settings.json_paths, name)]
            numbers = [json_value(output, path, who, port) for path in paths]
        else:
            numbers = [pattern_value(output, pattern, who) for pattern in getattr(settings.pattern, name)]
        numbers = [number.replace(",", "").strip() for number in numbers]
        if not all(number.isdecimal() for number in numbers):
            raise TestbedError(f"{who}: '{', '.join(numbers)[:100]}' is no count of frames ('{name}')")
        frames[key] = sum(map(int, numbers))
    return frames


class SwitchChecked:
    """*generator*, with the counts of a switch beside its own. All else is the generator's.

    A trial whose counts differ by more than the tolerance proves nothing; one where they agree carries the label that
    the generator's own counts could not.
    """

    def __init__(self, generator: Any, settings: SwitchSettings, read: Callable[[], SwitchCounts]) -> None:
        self._generator, self._settings, self._read = generator, settings, read
        read()  # a switch that does not answer is found before any traffic

    def __getattr__(self, name: str) -> Any:
        return getattr(self._generator, name)

    def measure(self, load: Load, duration: float, during: During | None = None, keep: int = 0) -> Outcome:
        """See :meth:`..base.Generator.measure`. Raises TestbedError."""
        return self._checked(lambda: self._generator.measure(load, duration, during, keep))

    def measure_rates(self, rates: Sequence[float], duration: float) -> Outcome:
        """See :meth:`..base.Generator.measure_rates`. Raises TestbedError."""
        return self._checked(lambda: self._generator.measure_rates(rates, duration))

    def _checked(self, measure: Callable[[], Outcome]) -> Outcome:
        before = self._read()
        outcome = measure()
        time.sleep(self._settings.settle)
        return with_switch(outcome, before, self._read(), self._settings.tolerance)


def with_switch(outcome: Outcome, before: SwitchCounts, after: SwitchCounts, tolerance: float) -> Outcome:
    """*outcome* with the switch's counts as evidence, and a problem for each that differs by more than *tolerance*."""
    problems = list(outcome.problems)
    for row in outcome.directions:
        ports = ((row.tx_port, row.rx_port),)
        pairs = (
            (f"{row.tx_port}.in", row.offered, f"sent by port {row.tx_port}"),
            (f"{row.rx_port}.out", row.forwarded, f"received by port {row.rx_port}"),
        )
        for key, own, words in pairs:
            counted = after[key] - before[key]
            if counted < 0:
                problems.append(Problem(Fault.COUNTERS, f"the switch's count of frames {words} fell", directions=ports))
            elif abs(counted - own) > SPARE_FRAMES + tolerance * max(own, counted):
                text = f"the switch counted {counted} frames {words}, the generator {own}"
                problems.append(Problem(Fault.MISCOUNTED, text, directions=ports))
    counters = {moment: dict(counts) for moment, counts in outcome.counters.items()}
    for moment, counts in (("before", before), ("after", after)):
        counters.setdefault(moment, {}).update({f"switch.{key}": count for key, count in counts.items()})
    readings = {**outcome.readings, HOST_COUNTS: 0.0}
    return replace(outcome, problems=tuple(problems), counters=counters, readings=readings)
