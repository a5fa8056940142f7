"""VPP on Linux, through ``vppctl``. Checked against v26.10-rc0; column widths are those of v20.01 and later.

Traps: a wrong command exits 0 with its error on standard output; names are cut to their column and columns may touch;
``Clocks`` became ``Packet-Clocks`` in v26.02. A banner or prompt before an answer is removed by ``vpp.yaml``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from ...command_values import counter_value, facts_as, facts_of, figure, matched, picked
from ...core.packet_cost import is_input, packet_costs
from ...core.router_facts import NicFacts, Placement, RouterFacts
from ...core.telemetry import NodeRuntime, Side, Telemetry, unsent_by_interface
from ...core.traffic.frame_kinds import FrameKind, FrameKinds
from ...core.under_load import FRAMES_TAKEN, NodeLoad, QueueLoad, UnderLoad, WorkerLoad
from ...errors import TestbedError
from ...system.command_line import Answers
from ...system.ssh_shell import first_line
from ..described import Router, Words, read_or_note
from ..linux import card_facts

_RUNTIME, _HARDWARE = "vppctl show runtime", "vppctl show hardware-interfaces"
_CPU, _PLACEMENT, _BUFFERS = "vppctl show cpu", "vppctl show interface rx-placement", "vppctl show buffers"
_VERSION, _THREADS, _CLEAR = "vppctl show version", "vppctl show threads", "vppctl clear runtime"

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


class Vpp(Router):
    """A :class:`~lineproof.routers.described.Router` that runs VPP."""

    client, has_runtime = "vppctl", True

    def refusal_in(self, command: str, output: str) -> str:
        """Return the line in which VPP refuses; see :meth:`.Router.refusal_in`."""
        why = refusal_by_vpp(command, self._commands.plain(output))
        return f"VPP refused '{command}': {why}" if why else ""

    def facts(self) -> RouterFacts:
        """Return its facts, see :meth:`.Router.facts`. The main thread is a worker where there is no other."""
        answers = Answers(self._commands, refusal_by_vpp)
        shown = answers.ask(_VERSION, _CPU, _THREADS, _PLACEMENT, _HARDWARE, _BUFFERS)
        machine = answers.facts(facts_of("linux", "machine"))
        hardware = dict(self.description.commands.tables["hardware"].blocks(shown[_HARDWARE]))
        placement, nics = _placement(shown[_PLACEMENT]), list[NicFacts]()
        queues = Counter(row.interface for row in placement)
        for name in self.interfaces:
            card = picked({_HARDWARE: hardware.get(name, "")}, facts_of("vpp", "card"))
            if address := card.get("pci_address", ""):
                # VPP prints 0000:03:00.00
                card["pci_address"] = address = re.sub(r"\.0(?=\d)", ".", address)
                if link := answers.facts(facts_of("linux", "link", folder=f"/sys/bus/pci/devices/{address}")):
                    card.pop("NUMA node", None)  # it says whether there are nodes
                    card |= link
            rx_queues = queues[name] or int(card.get("_rx queues", 0)) or None
            nics.append(card_facts(name, card, machine.get("_cards", ""), address, rx_queues=rx_queues))
        threads = re.findall(r"^\s*\d+\s+(vpp_\w+)", shown[_THREADS], re.MULTILINE)
        if pools := "; ".join("{name}: {total} of {size} B".format_map(pool) for pool in _pools(shown[_BUFFERS])):
            machine["buffers"] = pools
        return facts_as(
            *(RouterFacts, machine),
            cpu=machine.get("cpu") or matched(r"^Model name: +(.+)", shown[_CPU]),
            version=matched(r"\bvpp (v?\S+)", shown[_VERSION]),
            nics=tuple(nics),
            workers=(sum(name.startswith("vpp_wk") for name in threads) or 1) if threads else None,
            placement=tuple(row for row in placement if row.interface in self.interfaces),
            unread=answers.unread,
        )

    def work(self) -> Mapping[str, float]:
        """Return the frames taken by each thread, exact without a reset; see :meth:`.Router.work`."""
        taken = {block.thread: block.taken for block in parse_runtime(self._commands.show(_RUNTIME))}
        return {f"{FRAMES_TAKEN}{name}": frames for name, frames in taken.items() if frames or name != "vpp_main"}

    def under_load(self, wait: Callable[[], None]) -> UnderLoad:
        """Return how busy its threads are meanwhile; see :meth:`.Router.under_load`.

        The share of a core is cycles by its clock (``show cpu``). An input node's cycles are also those of polling
        empty queues: of them, *busy* takes the share of its calls that found frames, which is about what they cost at
        most loads.
        """
        answers = Answers(self._commands, refusal_by_vpp)
        first = read_or_note("counters before", self.read, answers.unread, Telemetry(None, {}))
        read_or_note(_CLEAR, self.clear, answers.unread, None)
        wait()
        shown = answers.ask(_RUNTIME, _BUFFERS, _PLACEMENT, _CPU)
        last = read_or_note("counters after", self.read, answers.unread, Telemetry(None, {}))
        seconds = (last.uptime or 0.0) - (first.uptime or 0.0)
        if not first.uptime or seconds <= 0:  # not read, or VPP was started again
            seconds = 0.0
        blocks = tuple[ThreadRuntime, ...]()
        if shown[_RUNTIME] and _CLEAR not in answers.unread:
            blocks = read_or_note(_RUNTIME, partial(parse_runtime, shown[_RUNTIME]), answers.unread, ())
        hertz = 1e9 * float(matched(r"^Base frequency: +(\d+\.\d+) GHz", shown[_CPU]) or 0)
        workers = tuple(load for block in blocks if (load := worker_load(block, hertz)) is not None)
        return UnderLoad(
            workers=workers,
            queues=tuple(self._queue_loads(_placement(shown[_PLACEMENT]), workers, first.raw, last.raw, seconds)),
            raw={command: text for command, text in {**last.raw, **shown}.items() if text},
            seconds=seconds or None,
            counters=self.rising(first, last, seconds),
            condition={
                FREE_BUFFERS + pool["name"]: "{free} of {total}, {cached} more in threads' caches".format_map(pool)
                for pool in _pools(shown[_BUFFERS])
            },
            unread=answers.unread,
        )

    def _queue_loads(
        self,
        placement: Sequence[Placement],
        workers: Sequence[WorkerLoad],
        first: Mapping[str, str],
        last: Mapping[str, str],
        seconds: float,
    ) -> Iterator[QueueLoad]:
        """Yield the frames of each queue as its card counts them (DPDK), by the outputs of two readings.

        Of another card: those of its worker, if that serves no other queue; none, if the worker received none.
        """
        of_worker = {worker.thread: worker.packets_per_s for worker in workers}
        served = Counter(row.worker for row in placement)
        before, after = (self.counts("hardware", dict(raw)) if raw else {} for raw in (first, last))
        for name in self.interfaces:
            new, old = after.get(name, {}), before.get(name)
            old = {} if old is None else {**dict.fromkeys(new, 0), **old}
            servers = {row.queue: row.worker for row in placement if row.interface == name}
            for load in self.description.commands.tables["hardware"].queue_loads(name, old, new, seconds, servers):
                alone = of_worker.get(load.worker_or_cpu)
                if load.packets_per_s is None and not (alone and served[load.worker_or_cpu] > 1):
                    load = replace(load, packets_per_s=alone)
                yield load

    def _why_not(self, kind: FrameKind, frames: FrameKinds) -> str:
        inner = [tag for stack in frames.tags for tag, _ in stack[1:]]
        if kind == "vlan" and (any(tag != 0x8100 for tag in inner) or any(len(stack) > 2 for stack in frames.tags)):
            return "VPP matches at most two tags, the inner one of 802.1Q"
        return super()._why_not(kind, frames)

    def contexts(self, scope: str, sides: Sequence[Side], frames: FrameKinds, given: Words) -> Iterator[Words]:
        """Yield also a stack's tags as VPP matches them, and where its routes are."""
        for words in super().contexts(scope, sides, frames, given):
            outer, _, inner = words.get("tags", "").partition(".")
            kind = "dot1ad" if outer.startswith("s") else "dot1q"
            match = f"{kind} {outer.lstrip('s')}" + (f" inner-dot1q {inner}" if inner else "")
            yield {"table": "0", **words, "match": match, "out": words["interface"] if words.get("within") else ""}

    def clear(self) -> None:
        """Run ``clear runtime``. Interface counters and errors go on: readers use differences."""
        self._commands.change(_CLEAR)

    def read(self) -> Telemetry:
        """Read counters and errors now. ``uptime`` is VPP's: its restart resets the counters."""
        reading = super().read()
        unsent = {name: unsent_by_interface(reading.causes, name) for name in reading.interfaces}
        sent = {
            name: replace(counts, tx_packets=max(0, counts.tx_packets - unsent[name]))
            for name, counts in reading.interfaces.items()
        }
        return replace(reading, interfaces=sent)

    def read_runtime(self) -> Telemetry:
        """Read calls and cycles of each graph node since :meth:`clear`."""
        text = self._commands.show(_RUNTIME)
        blocks = parse_runtime(text)
        since_clear = max(blocks, key=lambda block: block.rate_in).seconds
        nodes = tuple(node for block in blocks for node in block.nodes)
        return Telemetry(None, {}, runtime=nodes, raw={_RUNTIME: text}, since_clear=since_clear)


def worker_load(block: ThreadRuntime, hertz: float) -> WorkerLoad | None:
    """Return a thread's load by its clock of *hertz* (0: unknown); None: a main thread without frames."""
    handled, seconds = [node for node in block.nodes if node.vectors > 0], block.seconds
    if not block.thread.startswith("vpp_wk") and not handled:
        return None
    if seconds <= 0:
        return WorkerLoad(block.thread)
    most = max((node.calls for node in handled if not is_input(node)), default=0)
    cycles = sum(
        node.clocks * node.vectors * (min(1.0, most / node.calls) if is_input(node) else 1.0) for node in handled
    )
    cost = next(iter(packet_costs(Telemetry(None, {}, runtime=block.nodes))), None)
    nodes = [
        NodeLoad(
            node.name,
            node.vectors / seconds,
            node.clocks,
            node.vectors_per_call,
            min(1.0, node.clocks * node.vectors / (hertz * seconds)) if hertz else None,
        )
        for node in handled
    ]
    return WorkerLoad(
        block.thread,
        min(1.0, cycles / (hertz * seconds)) if hertz else None,
        block.taken / seconds,
        cost.vectors_per_call if cost else None,
        cost.total if cost else None,
        tuple(sorted(nodes, key=lambda node: -(node.share or 0.0))),
    )


# -- what vppctl prints


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
        """Return ``time`` with more digits, from VPP's rate, of five digits, which the exact time divided."""
        exact = self.taken / self.rate_in if self.rate_in else self.time
        return exact if abs(exact - self.time) <= 0.06 else self.time


def refusal_by_vpp(command: str, output: str) -> str:
    """Return the line in which VPP refuses a ``vppctl …`` of the shell's *command*; "": there is none.

    It says so with exit status 0, as ``PATH: why``, where the command's words are PATH or abbreviate it, or as
    ``unknown input`` (VPP, src/vlib/cli.c, vlib_cli_dispatch_sub_commands), and of a prefix that is none as ``Invalid
    prefix len`` (src/vnet/ip/lookup.c).
    """
    for line in output.splitlines():
        refusal = _REFUSED.match(line)
        path = refusal[1].split() if refusal else []
        for after in re.split(r"\bvppctl\b", command)[1:]:
            parts = re.sub(r"\A\s+-s\s*\S+", "", after).replace("'", " ").replace('"', " ").split()
            abbreviated = len(path) <= len(parts) and all(map(str.startswith, path, parts))
            if line.startswith(_REFUSALS) or (path and abbreviated):
                return line
    return ""


def parse_runtime(text: str) -> tuple[ThreadRuntime, ...]:
    """Read ``show runtime``. Raises TestbedError for other text (also ``show runtime max`` and ``time``)."""
    blocks = list[ThreadRuntime]()
    for part in re.split(r"^-{9,}\n", text, flags=re.MULTILINE):
        try:
            name, seconds, rate, table = _groups(_THREAD, part)
            times, thread = (figure(seconds), figure(rate)), name or "vpp_main"
        except ValueError:
            shown = first_line(part) or "no output"
            raise TestbedError(f"'{_RUNTIME}' was not understood: '{shown}'") from None
        nodes = (row for row in table.splitlines() if row.strip() not in ("", _PENDING))
        blocks.append(ThreadRuntime(thread, *times, tuple(_parse_node(row, thread) for row in nodes)))
    return tuple(blocks)


def _groups(pattern: re.Pattern[str], text: str) -> tuple[str, ...]:
    if (match := pattern.fullmatch(text)) is None:
        raise ValueError(text)
    return match.groups()


def _parse_node(row: str, thread: str) -> NodeRuntime:
    try:
        name, state, *counts, clocks, per_call = map(str.strip, _groups(_NODE, row))
        calls, vectors, suspends = map(counter_value, counts)
        return NodeRuntime(thread, name, state.strip('"'), calls, vectors, suspends, figure(clocks), figure(per_call))
    except ValueError:
        raise TestbedError(f"a row of 'show runtime' was not understood: '{row.strip()}'") from None


def _placement(text: str) -> tuple[Placement, ...]:
    """Read ``show interface rx-placement``: each queue and the thread that serves it."""
    placement, thread = list[Placement](), ""
    for match in _QUEUE.finditer(text):
        if match["thread"]:
            thread = match["thread"]
        elif thread:
            placement.append(Placement(match["name"], int(match["queue"]), thread))
    return tuple(placement)


def _pools(text: str) -> list[Mapping[str, str]]:
    """Read ``show buffers``: each NUMA node's pool, its size (B), total, free, and in threads' caches."""
    return [row.groupdict() for row in _POOL.finditer(text)]
