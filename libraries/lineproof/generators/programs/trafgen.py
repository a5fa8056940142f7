"""trafgen (netsniff-ng): frames of any kind out of a Linux interface, paced by the kernel.

trafgen's own ``--rate`` sends a second's frames at once and then sleeps, and its ``--gap`` sleeps once a frame, which
takes longer than the gap (0.6.8). So a token bucket (tc-tbf(8)) on the interface paces it: ``--qdisc-path`` sends
through it, and ``--rate`` with more than any machine can send makes trafgen wait for room instead of giving up.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ...core.traffic.ip_header import ipv4_checksum
from ...core.traffic.profiles import Profile
from ...errors import TestbedError
from ..base import Direction, Generator
from ..kinds import GeneratorKind
from ..listing import listing
from ..site import Site
from ..streams import Stream, profile_streams
from .agent import COMMAND_LIMIT, STOPPED, Agent, Launch
from .claiming import checked, claim_ports
from .counters import watch_sending, watched_span
from .driver import ABILITIES, LinuxPorts, Port, ProgramGenerator, longest
from .outcome import Sent
from .settings import NetnsProgramSettings, OwnMacSettings

BURST = 0.005
"""Seconds of the load by which the token bucket, for a machine that comes late to it, may be ahead of the load."""

AT_ONCE = 0.001
"""Seconds of the load that it lets go back to back: the bucket is full when a trial begins."""

CATCHES_UP = 1.1
"""Times the load at which it lets go the rest of what it may be ahead."""

UNBOUND = "1000000000pps"
"""More than it can send."""

LONGEST_USUAL = 2000
"""Bytes of a frame beyond which trafgen needs room for longer ones (2048)."""

QUEUE = "64mb"
"""Bytes that may wait in the token bucket: more than a socket may hold, so that none is dropped there."""

_REPORT = re.compile(r"^\s*([0-9]+) packets outgoing", re.MULTILINE)


class Trafgen(LinuxPorts):
    """One trafgen on one core for each sending port. Its frames are listed once, and sent in turn."""

    name = "trafgen"

    def __init__(self, ports: Mapping[int, Port]) -> None:
        super().__init__(ports)
        self._longest: dict[int, int] = {}
        self._mean: dict[int, float] = {}

    def check(self, profile: Profile, directions: Sequence[Direction]) -> None:
        """Raise TestbedError for what it cannot send."""
        del directions
        if profile.program is not None:
            raise TestbedError(
                f"'{profile.name}': trafgen sends no streams of a file; expected a profile of frame sizes"
            )

    def prepare(self, profile: Profile, directions: Sequence[Direction]) -> Mapping[str, Any]:
        """Write the list of frames to each sending host. Raises TestbedError."""
        found = {}
        for direction in directions:
            port = self.ports[direction.tx_port]
            mac = direction.destination or port.router_mac
            try:
                frames = listed_frames(profile_streams(profile, direction), port.mac, mac)
            except ValueError as error:
                raise TestbedError(f"'{profile.name}': {error}") from None
            lines = "".join(f"{config_line(frame)}\n" for frame in frames)
            port.agent.ask(f"cat > \"$folder/frames.cfg\" <<'@@'\n{lines}@@", COMMAND_LIMIT + len(lines) / 1e5)
            self._longest[port.index] = max(map(len, frames))
            self._mean[port.index] = sum(map(len, frames)) / len(frames)
            found[str(port.index)] = {"program": "trafgen", "frames": len(frames), "first": frames[0].hex()}
        return found

    def ready(self, direction: Direction, frames: int, pps: float) -> Launch:
        """Pace the interface, and watch it. Raises TestbedError."""
        port = self.ports[direction.tx_port]
        agent, name = port.agent, port.agent.place.interface
        bits = round(8 * self._mean[port.index] * pps)
        burst, at_once = (max(2 * self._longest[port.index], round(bits / 8 * each)) for each in (BURST, AT_ONCE))
        agent.ask(
            f"tc qdisc replace dev {name} root tbf rate {max(8, bits)}bit burst {burst} limit {QUEUE}"
            f" peakrate {max(9, round(CATCHES_UP * bits))}bit mtu {at_once}"
        )
        watch_sending(agent, frames, 2 * frames / pps + 5)
        fixed = ("--no-sock-mem", "--cpus", "1", "--qdisc-path", "--rate", UNBOUND, "--num", str(frames))
        config = agent.ask('printf %s "$folder/frames.cfg"')
        longer = ("--jumbo-support",) if self._longest[port.index] > LONGEST_USUAL else ()
        argv = ("trafgen", "--dev", name, "--conf", config.strip(), *longer, *fixed)
        return Launch(agent, argv, longest(frames / pps))

    def finish(self, direction: Direction, limit: float) -> Sent:
        """Wait for its end. Raises TestbedError."""
        agent = self.ports[direction.tx_port].agent
        ran = agent.await_end(limit)
        found = _REPORT.findall(ran.output)
        if ran.status not in (0, STOPPED) or not found:
            words = " ".join(ran.output.split())[-300:] or "no reason given"
            raise TestbedError(f"trafgen on {agent.place.text} ended with status {ran.status}: {words}")
        span = watched_span(agent)
        return Sent(int(found[-1]), *((span.least, span.most) if span else (0.0, 0.0)), span=span, cpu=ran.cpu)


def check_discipline(agent: Agent) -> None:
    """Raise TestbedError for an interface with a queueing discipline that somebody has set: it would be lost.

    Those of a system's own come back by themselves (handle 0:).
    """
    rows = agent.ask(f"tc qdisc show dev {agent.place.interface} root").splitlines()
    if own := next((row for row in rows if not re.match(r"qdisc \S+ 0: ", row)), None):
        words = own.removeprefix("qdisc ").strip()
        raise TestbedError(
            f"{agent.place.text} has a queueing discipline of its own ({words}), and trafgen is paced by one; expected"
            f" none: remove it ('tc qdisc del dev {agent.place.interface} root'), or use another interface"
        )


def listed_frames(streams: Sequence[Stream], mac: str, router_mac: str) -> list[bytes]:
    """The frames of *streams*, each with all its flows, in an order in which every stream keeps its share.

    Raises ValueError where they are too many to be listed.
    """
    own = listing([stream.share for stream in streams], [_flows(stream) for stream in streams])
    weights = own.weights
    sent, found = [0] * len(streams), list[bytes]()
    for step in range(own.frames):
        due = [weight * (step + 1) / sum(weights) - count for weight, count in zip(weights, sent, strict=True)]
        place = due.index(max(due))
        found.append(_frame(streams[place], sent[place], mac, router_mac))
        sent[place] += 1
    return found


def _flows(stream: Stream) -> int:
    return (
        math.lcm(*(((item.maximum - item.minimum) // item.step) + 1 for item in stream.variables))
        if stream.variables
        else 1
    )


def _frame(stream: Stream, index: int, mac: str, router_mac: str) -> bytes:
    """Frame *index* of *stream*, with its MAC addresses, without FCS."""
    found = bytearray(bytes.fromhex(stream.frame))
    found[0:6], found[6:12] = bytes.fromhex(router_mac.replace(":", "")), bytes.fromhex(mac.replace(":", ""))
    for item in stream.variables:
        count = (item.maximum - item.minimum) // item.step + 1
        value = item.minimum + index % count * item.step
        found[item.offset : item.offset + item.size] = value.to_bytes(item.size, "big")
    if stream.fix_ipv4 is not None:
        head = stream.fix_ipv4
        found[head + 10 : head + 12] = b"\0\0"
        found[head + 10 : head + 12] = ipv4_checksum(bytes(found[head : head + 20])).to_bytes(2, "big")
    return bytes(found)


def config_line(frame: bytes) -> str:
    """*frame* in trafgen's language; what it ends with is written as a filling."""
    rest = len(frame) - len(frame.rstrip(frame[-1:]))
    head = ", ".join(f"0x{octet:02x}" for octet in frame[: len(frame) - rest])
    return f"{{ {head}, fill(0x{frame[-1]:02x}, {rest}) }}" if head else f"{{ fill(0x{frame[-1]:02x}, {rest}) }}"


def connect(site: Site) -> Generator:
    """Claim the ports, each of which trafgen sends from. Raises TestbedError."""

    def claim() -> tuple[Trafgen, tuple[Port, ...]]:
        ports = claim_ports(site, ("trafgen", "tc", "python3"))
        try:
            for port in ports:
                check_discipline(port.agent)
                port.agent.undo(f"tc qdisc del dev {port.agent.place.interface} root")
        except BaseException:
            for port in ports:
                port.agent.close()
            raise
        return Trafgen({port.index: port for port in ports}), ports

    program, ports = claim()
    version = ports[0].agent.ask("trafgen --version 2>&1 | head -n 1").split()
    return checked(ProgramGenerator(program, ports, {"trafgen": version[1] if len(version) > 1 else "?"}, claim), site)


TRAFGEN = GeneratorKind(
    "trafgen of netsniff-ng, on Linux interfaces",
    replace(ABILITIES, unlisted=False),
    OwnMacSettings,
    connect,
    NetnsProgramSettings,
)
