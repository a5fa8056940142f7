"""pkt-gen of netmap: one program sends from one host's card, another counts at a second host's.

Netmap takes the card away from its kernel, so no interface counts: the counts are the two programs' own, of their last
line (``tx_output`` in tools/tools/netmap/pkt-gen.c of FreeBSD's source). A switch between them can confirm them.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any

from pydantic import Field

from ...core.foreign import Heard
from ...core.traffic.profiles import Profile
from ...errors import TestbedError
from ...units import FCS
from ..base import Direction, Generator
from ..kinds import GeneratorKind
from ..site import Site
from .agent import STOPPED, Agent, Launch, Ran
from .claiming import checked, claim_ports
from .counters import read_facts
from .driver import ABILITIES, DRAIN, Port, ProgramGenerator, longest
from .outcome import Sent
from .settings import OwnMacSettings

RESOLUTION = 0.005
"""Seconds by which its report of the sending's time may be wrong: it has two decimals."""

READY = 1.0
"""Seconds for the receiver to open its card, beside the wait for the link."""

COUNTERS = ("opackets", "obytes", "ipackets", "ibytes", "ierrors", "oerrors")

END_LIMIT = 10.0
"""Seconds for the receiver to end, once it is asked to."""

_REPORT = re.compile(
    r"^(?P<what>Sent|Received) (?:nothing\.|(?P<frames>[0-9]{1,19}) packets (?P<bytes>[0-9]{1,19}) bytes [0-9]+ events"
    r" [0-9]+ bytes each in (?P<seconds>[0-9]{1,9}\.[0-9]{2}) seconds\.)",
    re.MULTILINE,
)


class PktGenSettings(OwnMacSettings):
    """``program``: its path on the hosts; ``link_wait``: s until a card that netmap has taken has its link again."""

    program: Annotated[str, Field(pattern=r"^[A-Za-z0-9_./-]{1,200}$")] = "pkt-gen"
    link_wait: Annotated[int, Field(ge=0, le=60)] = 4


class PktGen:
    """A sender at the first port of a direction, a receiver at the second."""

    name = "pkt-gen"

    def __init__(self, ports: Mapping[int, Port], program: str, link_wait: int) -> None:
        self._ports, self._program, self._link_wait = ports, program, link_wait
        self._flow: dict[int, tuple[str, ...]] = {}
        self._counts = {index: dict.fromkeys(COUNTERS, 0) for index in ports}

    def check(self, profile: Profile, directions: Sequence[Direction]) -> None:
        """Raise TestbedError for what it cannot send."""
        if len(directions) > 1 or len(profile.frames) > 1 or not profile.is_one_flow or profile.has_own_addresses:
            raise TestbedError(f"'{profile.name}': pkt-gen sends frames of one size in one flow and direction")

    def prepare(self, profile: Profile, directions: Sequence[Direction]) -> Mapping[str, Any]:
        """The flow as pkt-gen's arguments, by sending port."""
        found = {}
        for direction in directions:
            port = self._ports[direction.tx_port]
            flows = profile.flows.of_pair(direction.pair)
            flows = flows.reversed() if direction.swapped else flows
            self._flow[port.index] = (
                *("-l", str(profile.frames[0].size - FCS)),
                *("-s", f"{flows.source.first}:{flows.source_port}"),
                *("-d", f"{flows.destination.first}:{flows.destination_port}"),
                *("-S", port.mac, "-D", direction.destination or port.router_mac),
            )
            found[str(port.index)] = {"program": "pkt-gen", "arguments": list(self._flow[port.index])}
        return found

    def ready(self, direction: Direction, frames: int, pps: float) -> Launch:
        """Start the receiver, and wait until it is ready. Raises TestbedError."""
        seconds = frames / pps
        waits = self._link_wait + READY
        self._receive(self._ports[direction.rx_port].agent, longest(seconds) + 2 * waits + DRAIN + END_LIMIT)
        time.sleep(waits)
        sender = self._ports[direction.tx_port].agent
        fixed = (self._program, "-i", sender.place.interface, "-f", "tx", "-w", str(self._link_wait))
        load = ("-n", str(frames), "-R", str(max(1, round(pps))))
        return Launch(sender, (*fixed, *load, *self._flow[direction.tx_port]), longest(seconds) + waits)

    def _receive(self, agent: Agent, limit: float) -> None:
        agent.start((self._program, "-i", agent.place.interface, "-f", "rx", "-w", str(self._link_wait)), limit)

    def finish(self, direction: Direction, limit: float) -> Sent:
        """Wait for the sender's end, and for the last frames; then end the receiver. Raises TestbedError."""
        sender, receiver = self._ports[direction.tx_port], self._ports[direction.rx_port]
        ran = sender.agent.await_end(limit + 2 * (self._link_wait + READY))
        frames, octets, seconds = read_report(ran, "Sent", sender.agent.place.text)
        time.sleep(DRAIN)
        self._count_received(receiver)
        self._counts[sender.index]["opackets"] += frames
        self._counts[sender.index]["obytes"] += octets + FCS * frames
        return Sent(frames, max(0.0, seconds - RESOLUTION), seconds + RESOLUTION, cpu=ran.cpu)

    def _count_received(self, port: Port) -> int:
        port.agent.interrupt()
        found = read_report(port.agent.await_end(END_LIMIT), "Received", port.agent.place.text)
        self._counts[port.index]["ipackets"] += found[0]
        self._counts[port.index]["ibytes"] += found[1] + FCS * found[0]
        return found[0]

    def counters(self, port: Port) -> Mapping[str, int]:
        """Return what the programs counted at *port* so far."""
        return dict(self._counts[port.index])

    def facts(self, port: Port) -> Mapping[str, str]:
        """As :func:`.counters.read_facts`, of Linux or FreeBSD. Raises TestbedError."""
        return interface_facts(port.agent)

    def listen(self, seconds: float) -> Mapping[int, Heard]:
        """Return what each port receives in *seconds* without traffic. Raises TestbedError."""
        for port in self._ports.values():
            self._receive(port.agent, seconds + self._link_wait + READY + END_LIMIT)
        time.sleep(seconds + self._link_wait + READY)
        return {port.index: Heard(self._count_received(port)) for port in self._ports.values()}


def read_report(ran: Ran, what: str, where: str) -> tuple[int, int, float]:
    """Frames, their bytes without FCS, and seconds, of a program's last line. Raises TestbedError."""
    found = [match for match in _REPORT.finditer(ran.output) if match["what"] == what]
    if not found or ran.status not in (0, STOPPED):
        words = " ".join(ran.output.split())[-300:] or "nothing"
        raise TestbedError(f"pkt-gen on {where} gave no report '{what} …' (status {ran.status}): {words}")
    last = found[-1]
    return (int(last["frames"]), int(last["bytes"]), float(last["seconds"])) if last["frames"] else (0, 0, 0.0)


def interface_facts(agent: Agent) -> Mapping[str, str]:
    """``address``, ``carrier``, ``speed``, ``mtu`` and ``driver`` of an interface of Linux or FreeBSD ("": unknown)."""
    if agent.ask("uname -s").strip() != "FreeBSD":
        return read_facts(agent)
    text = agent.ask(f"ifconfig {agent.place.interface}")
    mac = re.search(r"^\s*(?:hwaddr|ether) ([0-9a-f:]{17})", text, re.MULTILINE)
    mtu = re.search(r"\bmtu ([0-9]+)", text)
    speed = re.search(r"\((?:autoselect )?<?(10+0?)(G?)base", text, re.IGNORECASE)
    mega = int(speed[1]) * (1000 if speed[2] else 1) if speed else 0
    return {
        "address": mac[1] if mac else "",
        "carrier": "1" if "status: active" in text else "0",
        "speed": str(mega) if mega else "",
        "mtu": mtu[1] if mtu else "",
        "driver": re.sub(r"[0-9]+$", "", agent.place.interface),
    }


def connect(site: Site) -> Generator:
    """Claim the ports: the first sends, the second receives. Raises TestbedError."""
    settings = site.endpoint.settings
    if not isinstance(settings, PktGenSettings):
        raise TestbedError("pkt-gen needs 'ports' in the testbed's file")

    def claim() -> tuple[PktGen, tuple[Port, ...]]:
        ports = claim_ports(site, (settings.program, "timeout"), interface_facts)
        return PktGen({port.index: port for port in ports}, settings.program, settings.link_wait), ports

    program, ports = claim()
    return checked(ProgramGenerator(program, ports, {"pkt-gen": ports[0].agent.ask("uname -sr").strip()}, claim), site)


PKTGEN = GeneratorKind(
    "pkt-gen of netmap, on cards of FreeBSD or Linux hosts",
    replace(ABILITIES, mixes=False, flows=False, headers=False, bidirectional=False, pairs=False),
    PktGenSettings,
    connect,
)
