"""The part of ``lineproof doctor`` about the generator: host, cores, cards, flow control, noise."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from ..core.foreign import ForeignFrames
from ..core.frame_origin import origins
from ..core.router_facts import NicFacts, RouterFacts
from ..errors import TestbedError
from ..evidence.forms import known_rows, pcie_text
from ..generators.base import GeneratorPort
from ..generators.trex.driver import TrexGenerator
from ..session.links import dropped_by_card
from ..session.session import Session
from ..testbed.settings import HardwareSettings
from ..units import counted
from ..visible import shortened


class State(Enum):
    """The result of a check."""

    OK = "ok"
    WARNING = "warning"
    WRONG = "wrong"


@dataclass(frozen=True, slots=True)
class Check:
    """One line. ``finding``: what was found, and what to do if something is wrong.

    ``details``: what the line leaves out, as a figure's source; ``--json`` has it.
    """

    name: str
    state: State
    finding: str
    details: str = ""

    def __str__(self) -> str:
        return f"{self.state.value:<8} {self.name}: {self.finding}"


def ok(name: str, finding: str, details: object = "") -> Check:
    """Nothing to do."""
    return Check(name, State.OK, finding, str(details))


def warning(name: str, finding: str, details: object = "") -> Check:
    """A run is possible, and something should be fixed."""
    return Check(name, State.WARNING, finding, str(details))


def wrong(name: str, finding: object) -> Check:
    """A run would fail."""
    return Check(name, State.WRONG, str(finding))


def or_wrong(name: str, checks: Callable[[], list[Check]]) -> Iterator[Check]:
    """*checks*; a TestbedError of theirs is one that is wrong."""
    try:
        found = checks()
    except TestbedError as error:
        found = [wrong(name, error)]
    yield from found


LINE, SOME = 200, 3
"""Characters of facts on one line, and how many commands without an answer it names."""


def host_checks(session: Session) -> Iterator[Check]:
    """Yield what the generator's host showed before anything was started on it; nothing where there is no way to it."""
    host = session.testbed.host
    if host is None:
        return
    if host.problem:
        yield warning("generator host", f"what it is is not read: {host.problem}")
        return
    yield facts_check("generator host", host.facts)
    for nic in host.facts.nics:
        yield from pcie_checks("generator host", nic)


def facts_check(name: str, facts: RouterFacts, described: bool = False) -> Check:
    """The first facts of a machine, as many as one line takes; all are in the details.

    *described*: the commands without an answer are told elsewhere.
    """
    rows = [f"{fact}: {value}" for fact, value in known_rows(facts)]
    shown = [row for place, row in enumerate(rows) if len("; ".join(rows[: place + 1])) <= LINE]
    words = "; ".join(shown) or ("" if rows else "none")
    if more := len(rows) - len(shown):
        words += f"; {counted(more, 'more fact')} in --json" if words else f"{counted(more, 'fact')} in --json"
    unread = {} if described else facts.unread
    if unread:
        first = ", ".join(f"'{shortened(command, 40)}'" for command in list(unread)[:SOME])
        others = " and others" if len(unread) > SOME else ""
        words += f"; {counted(len(unread), 'command')} gave no answer ({first}{others}), which no verdict needs"
    silent = (f"no answer to '{command}': {why}" for command, why in unread.items())
    return ok(name, words, "\n".join((*rows, *silent)))


def place_checks(session: Session) -> Iterator[Check]:
    """The cores that send and the nodes of the cards, once the generator's ports are known."""
    ports, testbed = session.generator.ports, session.plan.testbed
    # neither a model nor frames from this machine say anything of cores
    if not isinstance(testbed, HardwareSettings) or testbed.trex is None or not any(port.cores for port in ports):
        return
    found = list(place_findings(ports, session.link_bps))
    for text in found:
        yield warning("cores", text)
    if not found:
        yield ok("cores", place_text(ports))


def pcie_checks(name: str, nic: NicFacts) -> Iterator[Check]:
    """A card whose PCIe link is narrower or slower than it can be."""
    pairs = ((nic.pcie_width, nic.pcie_width_max), (nic.pcie_speed, nic.pcie_speed_max))
    if any(has is not None and wants is not None and has < wants for has, wants in pairs):
        yield warning(
            name,
            f"{nic.interface} ({nic.model or 'card'}) runs at PCIe {pcie_text(nic.pcie_width, nic.pcie_speed)} and can"
            f" {pcie_text(nic.pcie_width_max, nic.pcie_speed_max)}; move it to another slot, or look at the slot's"
            " settings in the BIOS",
        )


def firmware_checks(session: Session) -> Iterator[Check]:
    """The firmware of the generator's cards, compared with what the card's file knows of it under this TRex."""
    host, known = session.testbed.host, session.generator.known_limits
    if host is None or known is None or known.card_file is None:
        return
    card = known.card_file.card
    nics = {nic.interface: nic for nic in host.facts.nics}
    for port in session.generator.ports:
        held = nics.get(port.pci.lower())
        if held is None:
            continue
        name, firmware = f"port {port.index}", held.firmware
        if firmware is None:
            if card.firmware:
                yield ok(
                    name,
                    f"the firmware of {held.interface} is not read: {held.driver or 'no driver'} holds the card, and"
                    " only Linux's own driver shows it (./dpdk_setup_ports.py -L gives the card back)",
                )
            continue
        facts = card.firmware_facts(firmware, known.server)
        for fact in facts:
            yield warning(name, f"firmware {firmware}: {fact.problem}; {fact.remedy}", fact.source)
        if not facts:
            yield ok(name, f"firmware {firmware}" + (": nothing is known against it" if card.firmware else ""))


FAST = 10e9
"""Link speed in bit/s from which one core is not enough: a port of 10 Gbit/s has 14.88 M frames/s of 64 bytes."""

PROPOSED, PROPOSED_ABOVE = 4, 8
"""Cores for a pair of ports of 10 Gbit/s, and of faster ones."""


def place_text(ports: Sequence[GeneratorPort]) -> str:
    """The cores and nodes of each pair of *ports*, in words."""
    return "; ".join(
        f"ports {first.index} and {second.index}: {_cores_text(first)}, {_nodes_text(first, second)}"
        for first, second in _pairs(ports)
    )


def place_findings(ports: Sequence[GeneratorPort], link_bps: float = 0.0) -> Iterator[str]:
    """Yield what is badly placed as the server reports it, a sentence each with what to do. *ports* in pairs.

    *link_bps*: line rate in bit/s, of ports whose driver does not report their speed.
    """
    for first, second in _pairs(ports):
        names = f"ports {first.index} and {second.index}"
        speed = max(first.speed_bps or link_bps, second.speed_bps or link_bps)
        if len(first.cores) == 1 and speed >= FAST:
            cores = PROPOSED if speed <= FAST else PROPOSED_ABOVE
            yield f"one core sends for {names}, which run at {speed / 1e9:g} Gbit/s; start TRex with -c {cores}"
        if None not in (first.numa, second.numa) and first.numa != second.numa:
            yield (
                f"{names} are cards on the NUMA nodes {first.numa} and {second.numa}, so that frames of one of them"
                " cross from node to node; put both cards into slots of one node, or pair ports of one card"
            )


def _pairs(ports: Sequence[GeneratorPort]) -> list[tuple[GeneratorPort, GeneratorPort]]:
    return list(zip(ports[::2], ports[1::2], strict=False))


def _cores_text(port: GeneratorPort) -> str:
    return f"{counted(len(port.cores), 'core')} for both" if port.cores else "cores not reported"


def _nodes_text(first: GeneratorPort, second: GeneratorPort) -> str:
    nodes = {port.numa for port in (first, second)}
    if nodes == {None}:
        return "no NUMA node reported"
    shown = " and ".join("none" if port.numa is None else f"{port.numa}" for port in (first, second))
    return f"NUMA node {shown}" if len(nodes) > 1 else f"NUMA node {first.numa}"


def latency_check(session: Session) -> Iterator[Check]:
    """Return whether TRex counts latency in fine histograms; nothing of another generator."""
    driver = session.generator.driver
    if not isinstance(driver, TrexGenerator):
        return
    try:
        fine = driver.has_fine_latency(session.plan.probe[0])
    except TestbedError as error:
        yield warning("latency", f"how finely it is counted is not known: {error}")
        return
    if fine:
        yield ok("latency", "counted in histograms of three digits")
    else:
        yield warning(
            "latency",
            "counted in histograms of one digit, so limits near a router's figure are INCONCLUSIVE: end TRex, and start"
            " it with --hdrh",
        )


LISTEN_SECONDS = 10.0
"""Seconds without traffic, of the testbed's clock: five of spanning tree's hellos, and some of most other talk."""

KEPT_FRAMES = 500
"""Frames of each port that are looked at."""

SWITCHED_BY_TREX = ("net_ixgbe", "net_e1000", "net_igc")
"""DPDK's drivers of which TRex can set flow control (``is_fc_supported``; src/drivers of TRex v3.08)."""

_REMEDIES = {
    "net_mlx5": "by 'ethtool -A DEV rx off tx off' on TRex's host, which keeps the interface: TRex cannot switch it",
    "net_bnxt": "with 'ethtool -A DEV rx off tx off' before the card is bound to DPDK: TRex cannot switch it",
}
_ELSEWHERE = "at the other end of the cable: TRex cannot switch it with this driver"


def noise_checks(session: Session, seconds: float) -> Iterator[Check]:
    """Yield what comes in *seconds* in which nothing is sent; 0: nobody listens."""
    if not seconds:
        return
    try:
        heard = session.traffic.listen(seconds, KEPT_FRAMES)
    except TestbedError as error:
        yield wrong("noise", error)
        return
    budget = ForeignFrames({port: one.frames for port, one in heard.items()}, seconds)
    for port, one in heard.items():
        if not one.frames:
            yield ok("noise", f"port {port}: no frame came in {seconds:g} s without traffic")
            continue
        named = origins(one.kept, seconds) or f"{one.frames} frames that were not captured"
        more = f", and more ({one.frames} frames in all)" if one.frames > len(one.kept) else ""
        expected = budget.budget(port, 10.0)
        yield warning(
            "noise",
            f"port {port}: {named}{more}; a trial of 10 s may count {expected} of them, and as many lost ones may hide"
            " behind them: silence the sender",
        )


def flow_control_check(port: GeneratorPort) -> Iterator[Check]:
    """Return whether *port* obeys or sends pause frames, as far as its driver can tell."""
    if port.flow_control in (None, "off"):
        return
    remedy = _REMEDIES.get(port.driver, _ELSEWHERE)
    if port.driver.startswith(SWITCHED_BY_TREX):
        remedy = f"in TRex's console: 'portattr -p {port.index} --fc none'"
    yield warning(f"port {port.index}", f"flow control is on ({port.flow_control}); switch it off {remedy}")


def filter_check(port: GeneratorPort, addressed: str) -> Iterator[Check]:
    """Return whether the card of *port* drops what the router sends to the MAC address *addressed*."""
    if words := dropped_by_card(port, addressed):
        yield warning(f"port {port.index}", words)


def router_flow_control(session: Session) -> Iterator[Check]:
    """The same of the router's cards."""
    for nic in session.router.facts.nics:
        if nic.flow_control in (None, "off"):
            continue
        yield warning(
            "router facts",
            f"{nic.interface}: flow control is on ({nic.flow_control}), and a trial with pause frames does not count;"
            f" switch it off: 'ethtool -A {nic.interface} autoneg off rx off tx off' (Linux), 'sysctl dev.ix.0.fc=0'"
            " (FreeBSD)",
        )
