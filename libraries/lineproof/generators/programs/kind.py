"""Programs as kinds of generators: the keys of a testbed's file, how their ports are claimed, and a switch beside them.

A switch checks a generator's counts: its counters stand beside the generator's own, in each trial.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Annotated, ClassVar, Self

from pydantic import Field, field_validator, model_validator

from ...command_values import GroupPattern
from ...config import Config, MacAddress
from ...core.traffic.profiles import PAIRS
from ...core.trial import HOST_COUNTS, Fault, Outcome, Problem
from ...errors import TestbedError
from ...system.login import Command, HostSettings, Secrets, Variable, run_here
from ...visible import shortened
from ..base import Abilities, Generator
from ..site import GeneratorEndpoint, GeneratorSettings, Place, SiteSide
from .description import Description
from .driver import ProgramGenerator


class ProgramPort(HostSettings):
    """A port: an ``interface``, in a network ``namespace`` of its host if it is in one.

    ``router_mac``: the MAC address that its frames go to, of the router's interface; a program that makes its frames
    itself needs it. ``address``, ``ssh``, ``sudo``: where it is, if it is not where the generator's other ports are.
    """

    sudo: bool = False
    interface: str
    namespace: str | None = None
    router_mac: MacAddress | None = None


class ProgramSettings(GeneratorSettings):
    """A program, on a testbed that makes its ports; so there are no keys."""

    description: ClassVar[Description]

    def connect(self, endpoint: GeneratorEndpoint, sides: Sequence[SiteSide]) -> Generator:
        """Claim the ports that the testbed has made. Raises TestbedError, with nothing left."""
        return ProgramGenerator(self.description, endpoint, sides, endpoint.places, self.description.program)


class HostProgramSettings(ProgramSettings, HostSettings):
    """A program whose ports are interfaces: ``ports`` in pairs, each cabled to the side at its position.

    ``address`` and ``ssh``: the generator's host. ``sudo``: put ``sudo -n`` before what needs root. ``program``: its
    path on the hosts. ``link_wait``: s until a card that it takes from the kernel has its link again. ``switch``: what
    counts the same frames between generator and router; None: the host's counts stand alone.
    """

    sudo: bool = False
    program: str | None = None
    link_wait: Annotated[int, Field(ge=0, le=60)] = 4
    ports: Annotated[tuple[ProgramPort, ...], Field(max_length=2 * PAIRS)]
    switch: SwitchSettings | None = None

    @field_validator("ports")
    @classmethod
    def _check_ports_in_pairs(cls, value: tuple[ProgramPort, ...]) -> tuple[ProgramPort, ...]:
        places = {(port.address, port.ssh and port.ssh.port, port.namespace, port.interface) for port in value}
        if not value or len(value) % 2 or len(places) < len(value):
            raise ValueError("must be pairs of different ports, the first cabled to the first side, and so on")
        return value

    @model_validator(mode="after")
    def _check_ports(self) -> Self:
        networks = [(self._host_of(port), port.namespace) for port in self.ports]
        for index, port in enumerate(self.ports):
            if not self.description.sockets and port.router_mac is None:
                raise ValueError(
                    f"port {index} ({port.interface}) has no 'router_mac', the MAC address of the router's interface at"
                    " the other end of its cable"
                )
            if self.description.sockets and networks[index] in networks[:index]:
                raise ValueError(
                    f"port {index} is in the same network as port {networks.index(networks[index])}, whose frames a"
                    " kernel delivers to itself; expected a 'namespace' for each port, or another host"
                )
        if self.switch is not None and len(self.switch.ports) != len(self.ports):
            raise ValueError(
                f"'switch' has {len(self.switch.ports)} 'ports'; expected one for each of {len(self.ports)}"
            )
        return self

    def _host_of(self, port: ProgramPort) -> str:
        """Return the host of *port* by its login: two may be behind one address."""
        host = self if port.address is None else port
        return f"{host.address}:{host.ssh.port}" if host.ssh else "this machine"

    @property
    def claimed(self) -> tuple[str, ...]:
        """Each port by its interface, namespace and host."""
        inside = [f"{port.interface}{f' in namespace {port.namespace}' * bool(port.namespace)}" for port in self.ports]
        return tuple(
            sorted(f"port {name} of {self._host_of(port)}" for name, port in zip(inside, self.ports, strict=True))
        )

    def connect(self, endpoint: GeneratorEndpoint, sides: Sequence[SiteSide]) -> Generator:
        """Claim the ports of the file; a switch checks their counts if there is one. Raises TestbedError."""
        places = []
        for port in self.ports:
            at = port if port.address is not None else self
            login = at.ssh.with_secrets(endpoint.secrets) if at.ssh else None
            sudo = port.sudo or self.sudo
            places.append(Place(port.interface, port.namespace or "", port.router_mac or "", login, sudo))
        checked, path = None, self.program or self.description.program
        if self.switch is not None:
            read = partial(read_switch, self.switch, endpoint.ports, endpoint.secrets)
            read()  # a switch that does not answer is found before any traffic
            checked = partial(checked_by_switch, read=read, tolerance=self.switch.tolerance, settle=self.switch.settle)
        return ProgramGenerator(self.description, endpoint, sides, tuple(places), path, self.link_wait, checked)


def described(description: Description) -> type[GeneratorSettings]:
    """Return the kind of generator that *description* makes."""
    abilities = Abilities(frozenset(description.can), description.most_flows, description.fragments)
    kind = {"description": description, "abilities": abilities, "__module__": __name__}
    # without the card the kernel of a namespace has no end of its cable
    on_netns = None if description.received else type("program on namespaces", (ProgramSettings,), kind)
    return type("program", (HostProgramSettings,), {**kind, "on_netns": on_netns})


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
