"""trafgen (netsniff-ng): frames of any kind out of a Linux interface, paced by the kernel.

trafgen's own ``--rate`` sends a second's frames at once and then sleeps, and its ``--gap`` sleeps once a frame, which
takes longer than the gap (0.6.8). So a token bucket (tc-tbf(8)) on the interface paces it: ``--qdisc-path`` sends
through it, and ``--rate`` with more than any machine can send makes trafgen wait for room instead of giving up.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from ...errors import TestbedError
from ...traffic.ip_header import ipv4_checksum
from ...traffic.profiles import Profile
from ..abilities import Abilities
from ..base import Direction, Generator
from ..kinds import GeneratorKind
from ..site import Site
from ..streams import Stream, profile_streams
from .agent import COMMAND_LIMIT, STOPPED
from .claiming import checked, claim_ports
from .counters import watch_sending, watched_seconds
from .driver import LinuxPorts, Port, ProgramGenerator, Sent, longest
from .settings import NetnsProgramSettings, OwnMacSettings

MOST_FRAMES = 4096
"""Different frames that are written out for it: it sends them in turn."""

BURST = 0.005
"""Seconds of the load that the token bucket lets go at once: for a machine that comes late to it."""

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

    def start(self, direction: Direction, frames: int, pps: float) -> None:
        """Pace the interface, watch it, and send. Raises TestbedError."""
        port = self.ports[direction.tx_port]
        agent, name = port.agent, port.agent.place.interface
        bits = round(8 * self._mean[port.index] * pps)
        burst = max(2 * self._longest[port.index], round(bits / 8 * BURST))
        agent.ask(f"tc qdisc replace dev {name} root tbf rate {max(8, bits)}bit burst {burst} limit {QUEUE}")
        watch_sending(agent, frames, 2 * frames / pps + 5)
        fixed = ("--no-sock-mem", "--cpus", "1", "--qdisc-path", "--rate", UNBOUND, "--num", str(frames))
        config = agent.ask('printf %s "$folder/frames.cfg"')
        longer = ("--jumbo-support",) if self._longest[port.index] > LONGEST_USUAL else ()
        argv = ("trafgen", "--dev", name, "--conf", config.strip(), *longer, *fixed)
        agent.start(argv, longest(frames / pps))

    def finish(self, direction: Direction, limit: float) -> Sent:
        """Wait for its end. Raises TestbedError."""
        agent = self.ports[direction.tx_port].agent
        ran = agent.await_end(limit)
        found = _REPORT.findall(ran.output)
        if ran.status not in (0, STOPPED) or not found:
            words = " ".join(ran.output.split())[-300:] or "no reason given"
            raise TestbedError(f"trafgen on {agent.place.text} ended with status {ran.status}: {words}")
        return Sent(int(found[-1]), *watched_seconds(agent), cpu=ran.cpu)


def listed_frames(streams: Sequence[Stream], mac: str, router_mac: str) -> list[bytes]:
    """The frames of *streams*, each with all its flows, in an order in which every stream keeps its share.

    Raises ValueError where they are too many to be listed.
    """
    shares = [Fraction(stream.share).limit_denominator(1000) for stream in streams]
    whole = math.lcm(*(share.denominator for share in shares))
    weights = [int(share * whole) for share in shares]
    turns = [_flows(stream) for stream in streams]
    # a turn of all sizes, as often as every flow of each needs
    rounds = math.lcm(
        *(flows // math.gcd(flows, weight) for flows, weight in zip(turns, weights, strict=True) if weight)
    )
    if rounds * sum(weights) > MOST_FRAMES:
        raise ValueError(
            f"{rounds * sum(weights)} different frames are too many for a list; expected at most {MOST_FRAMES}, with"
            " fewer flows or sizes"
        )
    sent, found = [0] * len(streams), list[bytes]()
    for step in range(rounds * sum(weights)):
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
        for port in ports:
            port.agent.undo(f"tc qdisc del dev {port.agent.place.interface} root")
        return Trafgen({port.index: port for port in ports}), ports

    program, ports = claim()
    version = ports[0].agent.ask("trafgen --version 2>&1 | head -n 1").split()
    return checked(ProgramGenerator(program, ports, {"trafgen": version[1] if len(version) > 1 else "?"}, claim), site)


TRAFGEN = GeneratorKind(
    "trafgen of netsniff-ng, on Linux interfaces",
    Abilities(
        own_frames=False, latency=False, capture=False, live=False, bursts=False, own_counts=False, promiscuous=False
    ),
    OwnMacSettings,
    connect,
    NetnsProgramSettings,
)
