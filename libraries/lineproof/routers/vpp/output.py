"""Parsers of ``vppctl`` output. Checked against VPP v26.10-rc0; column widths are those of v20.01 and later.

Traps: a wrong command exits 0 with its error on standard output; a slow answer has the banner and the prompt before
its first line; names are cut to their column and columns may touch; ``Clocks`` became ``Packet-Clocks`` in v26.02.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ...core.telemetry import InterfaceCounters, NodeRuntime
from ...errors import TestbedError
from ..base import MAC, SPEED_BY_CONVENTION, LinkState
from ..shell_output import counter_value, figure, first_line, parser, plain_text

BLOCK_COUNTS = frozenset({"timed out block", "total received block"})
"""Rows of ``show errors`` that count blocks read by af-packet-input, not lost frames, whatever their severity."""

_BANNER_END = re.compile(r"^ */_/ /____\(_\)_/\\___/.*\n", re.MULTILINE)
_REFUSED = re.compile(r"([a-z][a-z0-9 -]*): ")
_REFUSALS = ("unknown input ", "Invalid prefix len: ")
_PROMPT = re.compile(r"\A\s*\S*vpp\S*# ?")
_CLOSED = re.compile(r"^Connection to \S+ closed\.\n?", re.MULTILINE)
"""The line that an OpenSSH client with a terminal adds."""
_THREAD = re.compile(r"Thread (?P<index>\d+) (?P<name>\S+) \(lcore \d+\)")
_TIME = re.compile(r"Time (?P<time>[\d.e+-]+), .*?(?:vector rate (?P<rate>[\d.e+-]+))")
_RATES = re.compile(r"vector rates in (?P<in>\S+), out \S+, drop \S+, punt \S+")
_CLOCK = re.compile(r"Time now (?P<seconds>[\d.]+)")
_COUNT = re.compile(r"\s*(\d+)")
_ERROR_ROW = re.compile(r"(?P<node>\S+)\s+(?P<reason>.*?)(?:\s+(?P<severity>error|warn|warning|info|none))?\s*")
_COUNTER = re.compile(r"(?P<name>.{16})\s*(?P<count>\d+)\s*")


_PENDING = "events pending,"
"""Below the row of a process that has not handled its events yet (VPP's src/vlib/node_cli.c)."""


@dataclass(frozen=True, slots=True)
class ThreadRuntime:
    """One block of ``show runtime``. ``time`` s since ``clear runtime`` (one decimal); rates in vectors/s."""

    thread: str
    time: float
    rate_in: float = 0.0
    nodes: tuple[NodeRuntime, ...] = ()

    @property
    def seconds(self) -> float:
        """``time`` with more digits, from VPP's rate: it has five digits and was divided by the exact time."""
        taken = sum(node.vectors for node in self.nodes if node.state.startswith(("polling", "interrupt")))
        exact = taken / self.rate_in if self.rate_in else self.time
        return exact if abs(exact - self.time) <= 0.06 else self.time


def strip_banner(text: str) -> str:
    """*text* of a one-shot ``vppctl`` without carriage returns, escapes, and a banner or prompt before it."""
    text = _CLOSED.sub("", plain_text(text))
    if "-- more --" in text:
        raise TestbedError("vppctl answered through its pager; run it without a terminal or 'set terminal pager off'")
    banner = _BANNER_END.search(text)
    if banner:
        # every configured prompt ends in '# '
        return re.sub(r"\A\s*\S*# ?", "", text[banner.end() :])
    return _PROMPT.sub("", text)


def refusal_by_vpp(command: str, output: str) -> str:
    """The line of *output* in which VPP refuses a ``vppctl …`` within the shell's *command*; "": it does not.

    It says so with exit status 0, as ``PATH: why``, where the command's words are PATH or abbreviate it, or as
    ``unknown input`` (VPP, src/vlib/cli.c, vlib_cli_dispatch_sub_commands), and of a prefix that is none as ``Invalid
    prefix len`` (src/vnet/ip/lookup.c).
    """
    for line in strip_banner(output).splitlines() if "vppctl" in command else ():
        found = _REFUSED.match(line)
        path = found[1].split() if found else []
        for after in re.split(r"\bvppctl\b", command)[1:]:
            words = re.sub(r"\A\s+-s\s*\S+", "", after).replace("'", " ").replace('"', " ").split()
            abbreviated = len(path) <= len(words) and all(map(str.startswith, path, words))
            if line.startswith(_REFUSALS) or (path and abbreviated):
                return line
    return ""


@parser("'vppctl show runtime'")
def parse_runtime(text: str) -> tuple[ThreadRuntime, ...]:
    """``show runtime``. Raises TestbedError for other text (also ``show runtime max`` and ``time``)."""
    blocks: list[ThreadRuntime] = []
    thread, columns = "vpp_main", -1
    for line in strip_banner(text).splitlines():
        if found := _THREAD.match(line):
            thread = found["name"]
        elif found := _TIME.match(line):
            blocks.append(ThreadRuntime(thread, figure(found["time"])))
            columns = -1
        elif (found := _RATES.search(line)) and blocks:
            blocks[-1] = replace(blocks[-1], rate_in=figure(found["in"]))
        elif line.lstrip().startswith("Name ") and blocks:
            if not re.search(r" (Packet-)?Clocks +Vectors/Call", line) or " Calls " not in line:
                raise TestbedError(f"'show runtime' has unknown columns: '{first_line(line)}'")
            # titles are centred in 16 characters: the column of 'Calls' begins six before it
            columns = line.index("Calls") - 6
        elif line.strip() == _PENDING:
            continue
        elif columns >= 0 and line.strip() and line.strip().strip("-"):
            blocks[-1] = replace(blocks[-1], nodes=(*blocks[-1].nodes, _parse_node(line, thread, columns)))
        elif line.strip() and not blocks:
            break
    if not blocks:
        raise TestbedError(
            f"'vppctl show runtime' was not understood: '{first_line(strip_banner(text)) or 'no output'}'"
        )
    return tuple(blocks)


def _parse_node(line: str, thread: str, start: int) -> NodeRuntime:
    fields = [line[at : at + 16].strip() for at in range(start, start + 80, 16)]
    try:
        calls, vectors, suspends = (counter_value(field) for field in fields[:3])
        clocks, per_call = figure(fields[3]), figure(fields[4])
    except (ValueError, IndexError):
        raise TestbedError(f"a row of 'show runtime' was not understood: '{line.strip()}'") from None
    state = line[start - 12 : start].strip().strip('"')
    return NodeRuntime(thread, line[: start - 12].strip(), state, calls, vectors, suspends, clocks, per_call)


def parse_interfaces(text: str) -> Mapping[str, InterfaceCounters]:
    """``show interface``: counters by interface. VPP leaves out counters that are 0."""
    return {
        name: InterfaceCounters(
            rx_packets=counts.get("rx packets", 0),
            rx_bytes=counts.get("rx bytes", 0),
            tx_packets=counts.get("tx packets", 0),
            tx_bytes=counts.get("tx bytes", 0),
            # 'drops': dropped by the graph, counted at the receiving interface
            rx_drops=counts.get("drops", 0) + counts.get("rx-miss", 0) + counts.get("rx-no-buf", 0),
            rx_errors=counts.get("rx-error", 0),
            tx_errors=counts.get("tx-error", 0),
        )
        for name, counts in parse_interface_rows(text).items()
    }


@parser("'vppctl show interface'")
def parse_interface_rows(text: str) -> Mapping[str, Mapping[str, int]]:
    """``show interface``: by interface the counters that VPP shows, under VPP's names."""
    text = strip_banner(text)
    lines = text.splitlines()
    head = next((line for line in lines if " Idx " in line and " Counter " in line), None)
    if head is None:
        raise TestbedError(f"'vppctl show interface' was not understood: '{first_line(text) or 'no output'}'")
    name_end, counter_start = head.index("Idx") - 1, head.index("Counter") - 5
    raw: dict[str, dict[str, int]] = {}
    current: dict[str, int] | None = None
    for line in lines[lines.index(head) + 1 :]:
        name = line[:name_end].strip()
        if name:
            current = raw.setdefault(name, {})
        rest = line[counter_start:]
        if not rest.strip():
            continue
        found = _COUNTER.fullmatch(rest)
        if not found or current is None:
            raise TestbedError(f"a row of 'show interface' was not understood: '{line.strip()}'")
        current[found["name"].strip()] = counter_value(found["count"])
    return raw


@parser("'vppctl show errors'")
def parse_errors(text: str) -> Mapping[str, int]:
    """``show errors``: counts of severity error by ``node: reason``, all threads together.

    Frames answered with an ICMP error are lost too, although VPP calls that information.
    """
    text = strip_banner(text)
    lines = text.splitlines()
    head = next((at for at, line in enumerate(lines) if line.split()[:3] == ["Count", "Node", "Reason"]), None)
    if head is None:
        raise TestbedError(f"'vppctl show errors' was not understood: '{first_line(text) or 'no output'}'")
    found: dict[str, int] = {}
    for line in lines[head + 1 :]:
        if not line.strip():
            continue
        counted = _COUNT.match(line)
        if not counted:
            raise TestbedError(f"a row of 'show errors' was not understood: '{line.strip()}'")
        node, reason, severity = _parse_error_row(line[counted.end() :])
        answered = node in ("ip4-icmp-error", "ip6-icmp-error")
        if (severity in ("error", "") or answered) and reason not in BLOCK_COUNTS:
            key = f"{node}: {reason}"
            found[key] = found.get(key, 0) + counter_value(counted[1])
    return found


def _parse_error_row(rest: str) -> tuple[str, str, str]:
    # columns of 35, 35 and 10 characters; a name or reason of 35 touches the next column
    if len(rest) > 70:
        return rest[:35].strip(), rest[35:70].strip(), rest[70:].split()[0] if rest[70:].strip() else ""
    found = _ERROR_ROW.fullmatch(rest.strip())
    if not found:
        raise TestbedError(f"a row of 'show errors' was not understood: '{rest.strip()}'")
    return found["node"], found["reason"], found["severity"] or ""


@parser("'vppctl show clock'")
def parse_clock(text: str) -> float:
    """``show clock``: s since VPP started."""
    found = _CLOCK.search(strip_banner(text))
    if not found:
        raise TestbedError(f"'vppctl show clock' was not understood: '{first_line(strip_banner(text)) or 'no output'}'")
    return figure(found["seconds"])


def route_hops(fib: str, network: str, table: int = 0) -> tuple[str, ...]:
    """The next hops that ``show ip fib PREFIX`` has for exactly this prefix: address or interface; none that drop.

    It also prints a covering prefix, and without ``table`` those of all tables.
    """
    tables = re.split(r"^(?=ipv[46]-VRF:)", strip_banner(fib), flags=re.MULTILINE)
    own = [text for text in tables if re.match(rf"ipv[46]-VRF:{table},", text)] or tables
    hops = []
    for entry in re.findall(rf"^{re.escape(network)} .*\n((?:[ \t]+.*\n|\n)*)", "".join(own) + "\n", re.MULTILINE):
        paths = re.split(r"^ +path:.*\n", entry.partition(" forwarding:")[0], flags=re.MULTILINE)
        # a path's next line: "via 203.0.113.9 in fib:0 …", "203.0.113.9 eth0", " eth0", "[@0]: dpo-drop ip4"
        found = [re.match(r"\s*(?:via )?([^\s\[]\S*)", path) for path in paths[1:] or paths]
        hops += [hop[1] for hop in found if hop]
    return tuple(hops)


def has_route(fib: str, network: str, peer: str, table: int = 0) -> bool:
    """Return whether ``show ip fib PREFIX`` has this prefix by *peer*. Raises TestbedError if by another way, too."""
    hops = route_hops(fib, network, table)
    if others := [hop for hop in hops if hop != peer]:
        raise TestbedError(
            f"VPP has a route to {network} via {', '.join(others)}, and would send a part of the traffic there; remove"
            f" it for the test ('ip route del {network} via {others[0]}'), or choose another 'network' of this side"
        )
    return bool(hops)


@parser("'vppctl show ip neighbors'")
def parse_neighbours(text: str) -> frozenset[tuple[str, str, str, bool]]:
    """``show ip neighbors``, of IPv4 and IPv6: (interface, address, MAC, static)."""
    found = set()
    for line in strip_banner(text).splitlines():
        row = re.match(r"\s*[\d.]+\s+([0-9a-f.:]+)\s+(?:([SDN]+)\s+)?([0-9a-f:]{17})\s+(\S+)", line)
        if row:
            found.add((row[4], row[1], row[3], "S" in (row[2] or "")))
    return frozenset(found)


@parser("'vppctl show version'")
def parse_version(text: str) -> str:
    """``show version``: the version, as ``v26.10-rc0~374-gb575ec2c56d``."""
    found = re.search(r"\bvpp (v?\S+)", strip_banner(text))
    if not found:
        raise TestbedError(
            f"'vppctl show version' was not understood: '{first_line(strip_banner(text)) or 'no output'}'"
        )
    return found[1]


@parser("'vppctl show hardware-interfaces'")
def parse_link_states(text: str, interfaces: Sequence[str]) -> tuple[LinkState, ...]:
    """``show hardware-interfaces``, which shows the link but not the administrative state."""
    found: dict[str, LinkState] = {}
    name, carrier = "", None
    conventional: set[str] = set()
    for line in text.splitlines():
        if row := re.match(r"(\S+)\s+\d+\s+(up|down)\b", line):
            name, carrier = row[1], row[2] == "up"
            found[name] = LinkState(name, carrier=carrier)
        elif name and (mac := re.search(rf"Ethernet address {MAC}", line)):
            found[name] = replace(found[name], mac=mac[1].lower())
        elif name and (speed := re.fullmatch(r"\s*Link speed: ([0-9]{1,7}(?:\.[0-9]+)?) ([GMK])bps\s*", line)):
            bps = float(speed[1]) * {"G": 1e9, "M": 1e6, "K": 1e3}[speed[2]]
            found[name] = replace(found[name], speed_bps=bps or None, speed_from="show hardware-interfaces")
        elif name and SPEED_BY_CONVENTION.search(line):
            conventional.add(name)
    for each in conventional:
        found[each] = replace(found[each], speed_bps=None, speed_from="")
    # VPP shortens long names in this table
    return tuple(found.get(name, found.get(name[:32], LinkState(name))) for name in interfaces)
