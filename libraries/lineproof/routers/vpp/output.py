"""Parsers of ``vppctl`` output. Checked against VPP v26.10-rc0; column widths are those of v20.01 and later.

Traps: a wrong command exits 0 with its error on standard output; names are cut to their column and columns may touch;
``Clocks`` became ``Packet-Clocks`` in v26.02. A banner or prompt before an answer is removed by ``vpp.yaml``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from ...core.packet_cost import is_input
from ...core.router_facts import Placement
from ...core.telemetry import NodeRuntime
from ...errors import TestbedError
from ..shell_output import counter_value, figure, first_line

FREE_BUFFERS, FAILED_ALLOCATIONS = "free buffers of ", "failed allocations"
"""How a pool's reading in :attr:`UnderLoad.condition` and the meaning of reads that found no buffer begin."""

_REFUSED = re.compile(r"([a-z][a-z0-9 -]*): ")
_REFUSALS = ("unknown input ", "Invalid prefix len: ")
_THREAD = re.compile(
    r"(?:Thread \d+ (?P<name>\S+) \(lcore \d+\)\n)?Time (?P<time>[\d.e+-]+), .*\n"
    r" +vector rates in (?P<rate>\S+), out \S+, drop \S+, punt \S+\n"
    r" +Name .* Calls +Vectors +Suspends +(?:Packet-)?Clocks +Vectors/Call *\n(?P<rows>[\s\S]*)"
)
_NODE = re.compile(r"(?P<name>.{30})(?P<state>.{12})(.{16})(.{16})(.{16})(.{16})(.+)")
_PENDING = "events pending,"
"""Below the row of a process that has not handled its events yet (VPP's src/vlib/node_cli.c)."""
_QUEUE = re.compile(r"^Thread \d+ \((?P<thread>\S+)\):|^\s+(?P<name>\S.*?) queue (?P<queue>\d{1,6}) \(", re.MULTILINE)
_POOL = re.compile(
    r"^(?P<name>\S+) +\d+ +\d+ +\d+ +(?P<size>\d+) +(?P<total>\d{1,9}) +(?P<free>\d{1,9}) +(?P<cached>\d{1,9}) ",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class ThreadRuntime:
    """One block of ``show runtime``. ``time`` s since ``clear runtime`` (one decimal); rates in vectors/s."""

    thread: str
    time: float
    rate_in: float
    nodes: tuple[NodeRuntime, ...]

    @property
    def taken(self) -> int:
        """Frames that its input nodes took."""
        return sum(node.vectors for node in self.nodes if is_input(node))

    @property
    def seconds(self) -> float:
        """``time`` with more digits, from VPP's rate: it has five digits and was divided by the exact time."""
        exact = self.taken / self.rate_in if self.rate_in else self.time
        return exact if abs(exact - self.time) <= 0.06 else self.time


def refusal_by_vpp(command: str, output: str) -> str:
    """The line of *output* in which VPP refuses a ``vppctl …`` within the shell's *command*; "": it does not.

    It says so with exit status 0, as ``PATH: why``, where the command's words are PATH or abbreviate it, or as
    ``unknown input`` (VPP, src/vlib/cli.c, vlib_cli_dispatch_sub_commands), and of a prefix that is none as ``Invalid
    prefix len`` (src/vnet/ip/lookup.c).
    """
    for line in output.splitlines():
        found = _REFUSED.match(line)
        path = found[1].split() if found else []
        for after in re.split(r"\bvppctl\b", command)[1:]:
            words = re.sub(r"\A\s+-s\s*\S+", "", after).replace("'", " ").replace('"', " ").split()
            abbreviated = len(path) <= len(words) and all(map(str.startswith, path, words))
            if line.startswith(_REFUSALS) or (path and abbreviated):
                return line
    return ""


def parse_runtime(text: str) -> tuple[ThreadRuntime, ...]:
    """``show runtime``. Raises TestbedError for other text (also ``show runtime max`` and ``time``)."""
    try:
        return tuple(map(_parse_thread, re.split(r"^-{9,}\n", text, flags=re.MULTILINE)))
    except ValueError as error:
        raise TestbedError(f"'vppctl show runtime' was not understood: '{first_line(text)}'") from error


def _parse_thread(text: str) -> ThreadRuntime:
    found = _THREAD.fullmatch(text)
    if found is None:
        raise TestbedError(f"'vppctl show runtime' was not understood: '{first_line(text) or 'no output'}'")
    thread = found["name"] or "vpp_main"
    rows = [row for row in found["rows"].splitlines() if row.strip() not in ("", _PENDING)]
    nodes = tuple(_parse_node(row, thread) for row in rows)
    return ThreadRuntime(thread, figure(found["time"]), figure(found["rate"]), nodes)


def _parse_node(row: str, thread: str) -> NodeRuntime:
    try:
        name, state, *counts, clocks, per_call = (word.strip() for word in _NODE.fullmatch(row).groups())  # type: ignore[union-attr]
        calls, vectors, suspends = map(counter_value, counts)
        return NodeRuntime(thread, name, state.strip('"'), calls, vectors, suspends, figure(clocks), figure(per_call))
    except (ValueError, AttributeError):
        raise TestbedError(f"a row of 'show runtime' was not understood: '{row.strip()}'") from None


def parse_placement(text: str) -> tuple[Placement, ...]:
    """``show interface rx-placement``: each queue and the thread that serves it."""
    placement, thread = list[Placement](), ""
    for found in _QUEUE.finditer(text):
        if found["thread"]:
            thread = found["thread"]
        elif thread:
            placement.append(Placement(found["name"], int(found["queue"]), thread))
    return tuple(placement)


def parse_pools(text: str) -> list[Mapping[str, str]]:
    """``show buffers``: name, size (B), total, free and cached (in caches of threads) of each NUMA node's pool."""
    return [row.groupdict() for row in _POOL.finditer(text)]
