"""A generator whose counts a switch checks: its counters beside the generator's own, in each trial."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ...counts.trial import HOST_COUNTS, During, Fault, Load, Outcome, Problem
from ...errors import TestbedError
from ...expressions import compiled, search
from ...system.login import Login
from ...system.secrets import Secrets
from ...system.snmp import snmp_values
from ...system.ssh import connect
from ...system.ssh_command import run_ssh_command
from .settings import CommonSwitchSettings, ShellSwitchSettings, SnmpSwitchSettings

IF_MIB = {"in": (7, 8, 9), "out": (11, 12, 13)}
"""Columns of ifXTable (RFC 2863): ifHCInUcastPkts, …Multicast…, …Broadcast…; ifHCOutUcastPkts and so on."""

TABLE = "1.3.6.1.2.1.31.1.1.1"
"""ifXTable."""

SPARE_FRAMES = 5
"""Frames by which the counts may differ in any trial: protocols of the switch itself (LLDP, spanning tree)."""

SHELL_LIMIT = 15.0
"""Seconds for the switch's answer to a command."""

SwitchCounts = Mapping[str, int]
"""``N.in`` and ``N.out`` by the generator's port: frames that the switch received from it, and sent to it."""


def switch_reader(
    settings: CommonSwitchSettings, numbers: Sequence[int], secrets: Secrets
) -> Callable[[], SwitchCounts]:
    """What reads the switch's counters for the generator's ports *numbers*. It raises TestbedError."""
    ports = dict(zip(numbers, settings.ports, strict=True))
    if isinstance(settings, SnmpSwitchSettings):
        return lambda: _by_snmp(settings, ports, secrets)
    if isinstance(settings, ShellSwitchSettings):
        return lambda: _by_shell(settings, ports, settings.ssh.login(settings.address, secrets))
    raise TypeError(f"{type(settings).__name__} is no switch")


def _by_snmp(settings: SnmpSwitchSettings, ports: Mapping[int, str], secrets: Secrets) -> SwitchCounts:
    who, found = f"the switch at {settings.address}:{settings.port}", dict[str, int]()
    for number, index in ports.items():
        oids = [f"{TABLE}.{column}.{index}" for columns in IF_MIB.values() for column in columns]
        values = snmp_values(settings, oids, secrets, who, "a switch")
        if not all(value.isdecimal() for value in values):
            raise TestbedError(f"{who} has no 64-bit counters of port {index} (IF-MIB): {', '.join(values)[:100]}")
        counts = list(map(int, values))
        found |= {f"{number}.in": sum(counts[:3]), f"{number}.out": sum(counts[3:])}
    return found


def _by_shell(settings: ShellSwitchSettings, ports: Mapping[int, str], login: Login) -> SwitchCounts:
    who, found = f"the switch at {login.where}", dict[str, int]()
    client = connect(login, "the switch")
    try:
        for number, port in ports.items():
            command = settings.command.replace("{port}", port)
            output, errors, _ = run_ssh_command(client, command, SHELL_LIMIT)
            text = (output + errors).decode(errors="replace")
            for key, expression in (("in", settings.received), ("out", settings.sent)):
                match = search(compiled(expression), text)
                digits = match[1].replace(",", "").strip() if match else ""
                if not digits.isdecimal():
                    raise TestbedError(f"{who}: '{command}' shows no count of frames by '{expression}'")
                found[f"{number}.{key}"] = int(digits)
    finally:
        client.close()
    return found


class SwitchChecked:
    """*generator*, with the counts of a switch beside its own. All else is the generator's.

    A trial whose counts differ by more than the tolerance proves nothing; one where they agree carries the label that
    the generator's own counts could not.
    """

    def __init__(self, generator: Any, settings: CommonSwitchSettings, read: Callable[[], SwitchCounts]) -> None:
        self._generator, self._settings, self._read = generator, settings, read
        read()  # a switch that does not answer is found before any traffic

    def __getattr__(self, name: str) -> Any:
        return getattr(self._generator, name)

    def measure(self, load: Load, duration: float, during: During | None = None) -> Outcome:
        """See :meth:`..base.Generator.measure`. Raises TestbedError."""
        return self._checked(lambda: self._generator.measure(load, duration, during))

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
