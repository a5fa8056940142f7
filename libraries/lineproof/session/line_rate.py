"""What "line rate" rests on: the speed of each link as its two ends report it, beside the platform's ``port_speed``."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..errors import TestbedError
from ..generators.base import GeneratorPort
from ..routers.link_state import LinkState
from ..units import si
from .generator import GeneratorConnection
from .links import LinkWait

LARGEST_DIFFERENCE = 0.01
"""The largest by which two figures of one speed may differ, as a ratio."""


def check_line_rate(cables: Sequence[tuple[LinkState, GeneratorPort | None]], link_bps: float, platform: str) -> str:
    """Return what has to be known of *link_bps*, the line rate in bit/s that *platform* says; "": each link shows it.

    *cables*: both ends of each, the generator's None where it is not known. Raises TestbedError where a router's
    interface certainly has another speed; a faster one behind a generator's port that shows *link_bps* by itself is
    none: a switch is between, and sends no faster.
    """
    notes, unseen = [], []
    for state, port in cables:
        own = port is not None and bool(port.speed_bps)
        if state.speed_bps is None:
            if not own:
                unseen.append(state.interface)
        elif abs(state.speed_bps - link_bps) > LARGEST_DIFFERENCE * link_bps:
            words = f"the router's {state.interface} runs at {si(state.speed_bps, 'bit/s')} ('{state.speed_from}')"
            if not own or state.speed_bps < link_bps:
                raise TestbedError(
                    f"{words}, and 'port_speed' of the platform '{platform}' says {si(link_bps, 'bit/s')}"
                    f"{_generators_words(port)}; fix 'port_speed' or the cabling"
                )
            notes.append(f"{words}; line rate is that of the generator's port, {si(link_bps, 'bit/s')}")
    if unseen:
        notes.append(
            f"'% line rate' is of the {si(link_bps, 'bit/s')} that 'port_speed' of the platform '{platform}' says:"
            f" neither end of {' and '.join(unseen)} shows the speed of its link"
        )
    return "; ".join(notes)


def _generators_words(port: GeneratorPort | None) -> str:
    if port is None:
        return ""
    return f"; the generator's port {port.index} runs at {port.speed_text}"


def note_line_rate(states: Sequence[LinkState], generator: GeneratorConnection) -> str:
    """:func:`check_line_rate` of a session's cables; *states*: of the router's interfaces, in their order."""
    plan, facts = generator.plan, generator.testbed.facts
    ports = {port.index: port for port in generator.ports}
    ends = [(state, ports.get(index)) for state, index in zip(states, facts.generator.ports, strict=True)]
    return check_line_rate(ends, facts.link_bps, plan.platform.platform)


def await_links(links: LinkWait, states: Callable[[], tuple[LinkState, ...]], generator: GeneratorConnection) -> str:
    """Wait for both ends of every cable; returns :func:`note_line_rate`. Raises TestbedError."""
    facts, last = generator.testbed.facts, list[LinkState]()

    def read() -> tuple[LinkState, ...]:
        last[:] = states()
        return tuple(last)

    def ports() -> dict[int, GeneratorPort]:
        return {port.index: port for port in generator.driver.ports}

    names = [side.interface for side in facts.sides]
    links.await_both(ports, read, dict(zip(facts.generator.ports, names, strict=True)))
    generator.check_links()
    return note_line_rate(last, generator)
