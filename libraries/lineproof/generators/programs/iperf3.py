"""iperf3 with UDP: a flow from a socket, whose receiver is at the pair's other port, or a few, each on a core.

A frame's size gives the datagram's length; one that does not fit the interface is refused, because its fragments would
be more frames. A profile of the fragments themselves is sent as datagrams. iperf3 controls its receiver over TCP: on
namespaces that goes another way, else these few frames pass the router as well and are known by number.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from ipaddress import IPv4Address
from itertools import count
from typing import Any

from ...core.traffic.profiles import ETHERNET, IP, TRANSPORT, Flows, Profile
from ...errors import TestbedError
from ...units import FCS
from ..base import Direction, Generator
from ..kinds import GeneratorKind
from ..site import Site
from .agent import COMMAND_LIMIT, STOPPED, Agent, Launch
from .claiming import checked, claim_ports
from .counters import Span, read_facts, watch_sending, watched_span
from .driver import ABILITIES, LinuxPorts, Port, ProgramGenerator, longest
from .outcome import Sent
from .settings import ApartSettings, NetnsProgramSettings

HEADERS = ETHERNET + IP[4] + TRANSPORT["udp"]
"""Bytes before the datagram's own."""

LEAST_LENGTH = 16
"""Bytes of a datagram into which iperf3 writes its time and number."""

CONTROL_FRAMES = 200
"""Frames of TCP that a trial may have besides: connecting, parameters, results, one small report a second."""

GREETINGS = 2
"""Datagrams by which client and server greet each other before the first of a trial."""

STREAMS = 16
"""The most flows: each has a client and a server of its own, and the next port."""

CLOCKS = 0.002
"""Seconds by which its report of the sending's time may be wrong: the last datagrams on their way out."""

CONTROL, TABLE = "control", "7773"
"""The interface past the router, where the testbed has made one, and the routing table that leads there."""


@dataclass(frozen=True, slots=True)
class SocketPair:
    """Addresses and UDP ports of a flow; the second port is its server's for TCP, too."""

    source: str
    destination: str
    source_port: int
    port: int


@dataclass(frozen=True, slots=True)
class Datagram:
    """What is sent: bytes of the datagram, the ``frames`` that each takes, and their mean size in bytes with FCS."""

    length: int
    frames: int
    mean_size: int

    @classmethod
    def of(cls, profile: Profile) -> Datagram:
        """Of a profile of one size, or of the two fragments of a datagram."""
        length = profile.fragmented_datagram
        return cls(length or profile.frames[0].size - FCS - HEADERS, 2 if length else 1, round(profile.mean_size))


class Iperf3(LinuxPorts):
    """For each sending port a client of each flow, and their servers at the receiving port."""

    name = "iperf3"

    def __init__(self, ports: Mapping[int, Port], site: Site, passes_by: bool) -> None:
        super().__init__(ports)
        self._site, self._passes_by = site, passes_by
        self._datagram = Datagram(0, 1, 0)
        self._flows: dict[int, tuple[SocketPair, ...]] = {}
        self._cores: dict[int, tuple[int, ...]] = {}
        self._set: set[tuple[int, str, str]] = set()
        self._mtu: dict[int, str] = {}

    def check(self, profile: Profile, directions: Sequence[Direction]) -> None:
        """Raise TestbedError for what it cannot send."""
        if not 1 <= profile.flows.count <= STREAMS or profile.has_own_addresses:
            raise TestbedError(
                f"'{profile.name}': iperf3 sends one flow, or up to {STREAMS}; expected '1-flow' or '{STREAMS}-flows'"
            )
        if len(profile.frames) > 1 and not profile.fragmented_datagram:
            raise TestbedError(f"'{profile.name}': iperf3 sends datagrams of one length; expected frames of one size")
        datagram, size = Datagram.of(profile), profile.frames[0].size - FCS - ETHERNET
        if datagram.length < LEAST_LENGTH:
            raise TestbedError(f"'{profile.name}': iperf3's datagrams have at least {LEAST_LENGTH} bytes")
        for index in {direction.tx_port for direction in directions} if datagram.frames == 1 else ():
            agent = self.ports[index].agent
            mtu = self._mtu.get(index) or read_facts(agent)["mtu"]
            if mtu.isdecimal() and size > int(mtu):
                raise TestbedError(
                    f"'{profile.name}': a datagram of {datagram.length} bytes does not fit the MTU of {mtu} bytes of"
                    f" {agent.place.text}: it would be sent in fragments, which are more frames;"
                    " expected smaller frames, or a larger MTU"
                )

    def prepare(self, profile: Profile, directions: Sequence[Direction]) -> Mapping[str, Any]:
        """Give the ports the flows' addresses. Raises TestbedError."""
        found = {}
        self._flows, self._cores = {}, {}
        self._datagram = Datagram.of(profile)
        fragmenting = [direction.tx_port for direction in directions if self._datagram.frames > 1]
        self._let_fragment(fragmenting, max(frame.size for frame in profile.frames) - FCS - ETHERNET)
        for direction in directions:
            flows = profile.flows.of_pair(direction.pair)
            flows = flows.reversed() if direction.swapped else flows
            tx, rx = self.ports[direction.tx_port], self.ports[direction.rx_port]
            own = _flows(flows)
            for flow in own:
                for port, near, far in ((tx, flow.source, flow.destination), (rx, flow.destination, flow.source)):
                    if (port.index, near, far) not in self._set:
                        self._address(port, near, far)
                        self._set.add((port.index, near, far))
            self._flows[tx.index], self._cores[tx.index] = own, _cores(tx.agent) if len(own) > 1 else ()
            sent = [list(astuple(flow)) for flow in own]
            found[str(tx.index)] = {"program": "iperf3", "length": self._datagram.length, "flows": sent}
        return found

    def _let_fragment(self, ports: Sequence[int], mtu: int) -> None:
        """Let the kernel make fragments for *mtu* on *ports*; the others get their own back. Raises TestbedError."""
        for index, port in self.ports.items():
            agent, name = port.agent, port.agent.place.interface
            if index in ports and index not in self._mtu:
                self._mtu[index] = read_facts(agent)["mtu"]
                agent.undo(f"ip link set {name} mtu {self._mtu[index]}")
            if index in self._mtu:
                agent.ask(f"ip link set {name} mtu {mtu if index in ports else self._mtu[index]}")

    def _address(self, port: Port, own: str, other: str) -> None:
        """Let *port* have the address *own*, and reach *other* through the router."""
        agent, name = port.agent, port.agent.place.interface
        side = self._site.sides[self._site.endpoint.ports.index(port.index)]
        router, prefix = side.address.partition("/")[0], side.address.partition("/")[2]
        to = f"{other}/32 via {router} dev {name} src {own}"
        commands = [
            (f"ip addr replace {own}/32 dev {name}", f"ip addr del {own}/32 dev {name}"),
            (f"ip addr replace {side.peer}/{prefix} dev {name}", f"ip addr del {side.peer}/{prefix} dev {name}"),
            (f"ip route replace {to} onlink", f"ip route del {other}/32 dev {name}"),
        ]
        if port.router_mac:
            near = f"{router} lladdr {port.router_mac} nud permanent dev {name}"
            commands.append((f"ip neigh replace {near}", f"ip neigh del {router} dev {name}"))
        if self._passes_by:
            control = f"default dev {CONTROL} src {own} table {TABLE}"
            commands += [
                (f"ip route replace {control}", f"ip route flush table {TABLE}"),
                (
                    f"ip rule show | grep -q 'lookup {TABLE}' || ip rule add ipproto tcp lookup {TABLE}",
                    f"ip rule del ipproto tcp lookup {TABLE}",
                ),
            ]
        for do, undo in commands:
            agent.undo(undo)
            agent.ask(do)

    def ready(self, direction: Direction, frames: int, pps: float) -> Launch:
        """Start the servers, and watch the interface. Raises TestbedError."""
        flows, datagram = self._flows[direction.tx_port], self._datagram
        sender, limit = self.ports[direction.tx_port].agent, longest(frames / pps)
        server, whole = self.ports[direction.rx_port].agent, max(len(flows), frames // datagram.frames)
        # what a second of the load has, of each flow
        bits = max(1, round(8 * datagram.length * pps / datagram.frames / len(flows)))
        folder, clients = sender.ask('printf %s "$folder"').strip(), list[str]()
        for number, flow in enumerate(flows):
            server.ask(
                f"also server{number} {limit + 10:.0f} iperf3 -s -1 -p {flow.port} -B {flow.destination}\n"
                f"n=0; until grep ':{flow.port:04X} ' /proc/net/tcp | grep -q ' 0A '; do n=$((n + 1));"
                f' if [ "$n" -gt 250 ]; then cat "$folder/server{number}"; (exit 1); break; fi; sleep 0.02; done',
                COMMAND_LIMIT,
            )
            own = whole // len(flows) + (number < whole % len(flows))
            ends = f"-c {flow.destination} -B {flow.source} --cport {flow.source_port} -p {flow.port}"
            rate = f"-u -l {datagram.length} -k {own} -b {bits} --pacing-timer 200"
            core = f" -A {cores[number % len(cores)]}" if (cores := self._cores[direction.tx_port]) else ""
            clients.append(
                f'iperf3 {ends} {rate}{core} --connect-timeout 5000 --json >{folder}/stream{number} 2>&1 & p="$p $!";'
            )
        if self._is_watched(direction.tx_port):
            # a client greets, and the server beside it answers the other direction's
            greetings = len(flows) * (2 if direction.rx_port in self._flows else 1)
            others = greetings if self._passes_by else self._others(len(flows))
            watch_sending(sender, frames + others, 2 * frames / pps + 5, greetings if self._passes_by else 0)
        files = " ".join(f"{folder}/stream{number}" for number in range(len(flows)))
        # the shell is interrupted, too, maybe twice: the clients report then, and it waits for them
        ends = "for each in $p; do while kill -0 $each 2>/dev/null; do wait $each; done; done"
        return Launch(sender, ("sh", "-c", f"trap : INT; p=; {' '.join(clients)} {ends}; cat {files}"), limit)

    def _is_watched(self, port: int) -> bool:
        """Return whether the interface is asked when it sent: a client alone reports its seconds itself."""
        return len(self._flows) > 1 or len(self._flows[port]) > 1

    def _others(self, flows: int) -> int:
        return flows * (GREETINGS + (0 if self._passes_by else CONTROL_FRAMES))

    def finish(self, direction: Direction, limit: float) -> Sent:
        """Wait for the clients' end. Raises TestbedError."""
        agent, flows = self.ports[direction.tx_port].agent, len(self._flows[direction.tx_port])
        ran = agent.await_end(limit)
        reports = read_reports(ran.output, agent.place.text, ran.status, flows)
        frames, least = sum(report[0] for report in reports), max(report[1] for report in reports)
        most, span = least + CLOCKS, watched_span(agent) if self._is_watched(direction.tx_port) else None
        if span is not None:
            # the frames that control it are sent in it, too; several clients begin one after the other
            begins, ended = span.first[0], max(span.last[1], span.first[0] + least)
            span = Span((begins, ended - least), (begins + least, ended))
            most = most if flows == 1 else max(most, span.most)
        size = self._datagram.mean_size
        # several on one core share it
        cores = min(flows, len(self._cores[direction.tx_port]) or 1)
        return Sent(frames * self._datagram.frames, least, most, self._others(flows), size, span, ran.cpu, cores)


def read_reports(output: str, where: str, status: int, flows: int = 1) -> list[tuple[int, float]]:
    """Datagrams sent and the seconds that took, of each client's JSON. Raises TestbedError."""
    found, at = list[tuple[int, float]](), 0
    try:
        while len(found) < flows:
            # a warning may come before each
            report, at = json.JSONDecoder().raw_decode(output, output.index("{", at))
            if (words := report.get("error")) and status != STOPPED:
                raise TestbedError(f"iperf3 on {where}: {str(words)[:200]}")
            sent = report["end"]["sum_sent"]
            found.append((int(sent["packets"]), float(sent["seconds"])))
    except (ValueError, KeyError, TypeError, AttributeError):
        words = " ".join(output[at:].split())[-200:]
        raise TestbedError(f"iperf3 on {where} gave no report (status {status}): {words or 'nothing'}") from None
    for frames, seconds in found:
        if frames < 0 or not 0 < seconds < 1e6:
            raise TestbedError(f"iperf3 on {where} reports {frames} datagrams in {seconds} s")
    return found


def _flows(flows: Flows) -> tuple[SocketPair, ...]:
    ends = ((str(IPv4Address(flows.source.at(each))), str(IPv4Address(flows.destination.at(each)))) for each in count())
    ports = ((flows.source_port + each, flows.destination_port + each) for each in range(flows.count))
    return tuple(SocketPair(*own, *numbers) for numbers, own in zip(ports, ends, strict=False))


def _cores(agent: Agent) -> tuple[int, ...]:
    """The numbers of the processors that programs of *agent* may use, as "0-3,6" in proc(5). Raises TestbedError."""
    words = agent.ask("sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' /proc/self/status").strip()
    try:
        ranges = [[int(end) for end in word.split("-")] for word in words.split(",")]
    except ValueError:
        raise TestbedError(f"the processors of {agent.place.text} cannot be read: {words[:100]!r}") from None
    return tuple(core for item in ranges for core in range(item[0], item[-1] + 1))


def connect(site: Site) -> Generator:
    """Claim the ports, one flow from each. Raises TestbedError."""

    def claim() -> tuple[Iperf3, tuple[Port, ...]]:
        ports = claim_ports(site, ("iperf3", "ip", "timeout"))
        by_index = {port.index: port for port in ports}
        return Iperf3(by_index, site, bool(site.endpoint.places)), ports

    program, ports = claim()
    version = ports[0].agent.ask("iperf3 --version 2>&1 | head -n 1").split()
    return checked(ProgramGenerator(program, ports, {"iperf3": version[1] if len(version) > 1 else "?"}, claim), site)


IPERF3 = GeneratorKind(
    "iperf3 with UDP, from sockets of Linux hosts or namespaces",
    replace(ABILITIES, mixes=False, flows=False, headers=False, most_flows=STREAMS, fragments=True),
    ApartSettings,
    connect,
    NetnsProgramSettings,
    apart=True,
)
