"""VPP on Linux, through ``vppctl``."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from ...core.packet_cost import is_input, packet_costs
from ...core.router_facts import NicFacts, Placement, RouterFacts
from ...core.telemetry import Telemetry, unsent_by_interface
from ...core.traffic.frame_kinds import FrameKind, FrameKinds
from ...core.under_load import FRAMES_TAKEN, NodeLoad, QueueLoad, UnderLoad, WorkerLoad, per_second
from ..base import Side
from ..described import Router, Words, read_or_note
from ..fact_reading import Answers, ask_facts, facts_as, facts_of, matched, picked
from ..linux.machine import card_facts, link_facts, read_machine
from ..queries import Counts
from .output import FREE_BUFFERS, ThreadRuntime, parse_placement, parse_pools, parse_runtime, refusal_by_vpp

_RUNTIME, _HARDWARE = "vppctl show runtime", "vppctl show hardware-interfaces"
_CPU, _PLACEMENT, _BUFFERS = "vppctl show cpu", "vppctl show interface rx-placement", "vppctl show buffers"
_VERSION, _THREADS, _CLEAR = "vppctl show version", "vppctl show threads", "vppctl clear runtime"


class Vpp(Router):
    """A :class:`~lineproof.routers.base.Router` that runs VPP."""

    client, has_runtime = "vppctl", True

    def refusal_in(self, command: str, output: str) -> str:
        """See :meth:`..base.Router.refusal_in`."""
        refused = refusal_by_vpp(command, self._commands.plain(output))
        return f"VPP refused '{command}': {refused}" if refused else ""

    def facts(self) -> RouterFacts:
        """See :meth:`..base.Router.facts`. The main thread is a worker where there is no other."""
        answers = Answers(self._commands)
        shown = _shown(answers, _VERSION, _CPU, _THREADS, _PLACEMENT, _HARDWARE, _BUFFERS)
        machine = read_machine(answers)
        hardware = dict(self.description.commands.tables["hardware"].blocks(shown[_HARDWARE]))
        described = facts_of(Path(__file__).parent, "card")
        cards = {name: picked({_HARDWARE: hardware.get(name, "")}, described) for name in self.interfaces}
        for card in cards.values():
            if "pci_address" in card:  # VPP prints 0000:03:00.00
                card["pci_address"] = re.sub(r"\.0(?=\d)", ".", card["pci_address"])
        links = {
            name: link_facts(f"/sys/bus/pci/devices/{address}")
            for name, card in cards.items()
            if (address := card.get("pci_address"))
        }
        known = ask_facts(answers, links)
        placement = parse_placement(shown[_PLACEMENT])
        queues = Counter(row.interface for row in placement)
        nics = (
            _nic(name, card, known.get(name, {}), machine.get("_cards", ""), queues[name])
            for name, card in cards.items()
        )
        threads = re.findall(r"^\s*\d+\s+(vpp_\w+)", shown[_THREADS], re.MULTILINE)
        if pools := "; ".join("{name}: {total} of {size} B".format_map(pool) for pool in parse_pools(shown[_BUFFERS])):
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
        """See :meth:`..base.Router.work`: frames, of which VPP's counters are exact without a reset."""
        taken = {block.thread: block.taken for block in parse_runtime(self._commands.show(_RUNTIME))}
        return {f"{FRAMES_TAKEN}{name}": frames for name, frames in taken.items() if frames or name != "vpp_main"}

    def under_load(self, wait: Callable[[], None]) -> UnderLoad:
        """See :meth:`..base.Router.under_load`.

        The share of a core is cycles by its clock (``show cpu``). An input node's cycles are also those of polling
        empty queues: of them, *busy* takes the share of its calls that found frames, which is about what they cost at
        most loads.
        """
        answers = Answers(self._commands)
        first = read_or_note("counters before", self.read, answers.unread, Telemetry(None, {}))
        read_or_note(_CLEAR, self.clear, answers.unread, None)
        wait()
        shown = _shown(answers, _RUNTIME, _BUFFERS, _PLACEMENT, _CPU)
        last = read_or_note("counters after", self.read, answers.unread, Telemetry(None, {}))
        seconds = (last.uptime or 0.0) - (first.uptime or 0.0)
        if not first.uptime or seconds <= 0:  # not read, or VPP was started again
            seconds = 0.0
        blocks = tuple[ThreadRuntime, ...]()
        if shown[_RUNTIME] and _CLEAR not in answers.unread:
            blocks = read_or_note(_RUNTIME, partial(parse_runtime, shown[_RUNTIME]), answers.unread, ())
        hertz = 1e9 * float(matched(r"^Base frequency: +(\d+\.\d+) GHz", shown[_CPU]) or 0)
        workers = tuple(load for block in blocks if (load := worker_load(block, hertz)) is not None)
        old, new = self._named(first), self._named(last)
        return UnderLoad(
            workers=workers,
            queues=tuple(self._queue_loads(parse_placement(shown[_PLACEMENT]), workers, first.raw, last.raw, seconds)),
            raw={command: text for command, text in {**last.raw, **shown}.items() if text},
            seconds=seconds or None,
            # VPP and its cards do not show counters while they are 0
            counters=per_second({**dict.fromkeys(new, 0), **old}, new, seconds),
            condition={
                FREE_BUFFERS + pool["name"]: "{free} of {total}, {cached} more in threads' caches".format_map(pool)
                for pool in parse_pools(shown[_BUFFERS])
            },
            unread=answers.unread,
        )

    def _named(self, reading: Telemetry) -> Counts:
        """Return the errors of a *reading*, and the counters of the interfaces under test, by their labels."""
        tables = [self.counts(key, dict(reading.raw)) for key in ("errors", "links")] if reading.raw else []
        return {
            f"{name} at {place}" if place else name: count
            for table in tables
            for place, own in table.items()
            if place in ("", *self.interfaces)
            for name, count in own.items()
        }

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
        """``clear runtime``. Interface counters and errors go on: readers use differences."""
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


def _shown(answers: Answers, *commands: str) -> Mapping[str, str]:
    """Return what each of *commands* shows; "" where VPP refuses it, which is noted."""
    shown = answers.ask(*commands)
    for command, text in shown.items():
        if refused := refusal_by_vpp(command, text):
            answers.unread[command], shown[command] = refused, ""
    return shown


def worker_load(block: ThreadRuntime, hertz: float) -> WorkerLoad | None:
    """Return the load of a thread by its clock of *hertz* (0: not known); None: a main thread that took no frames."""
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


def _nic(interface: str, card: Mapping[str, str], link: Mapping[str, str], pci: str, queues: int) -> NicFacts:
    """Return the facts of a *card* with those of its PCIe *link*, its name in the list *pci*, and its *queues* in use.

    ``RSS`` has DPDK's kinds of packets, as ``ipv4-tcp``.
    """
    # a link that is read says whether there are nodes
    own = {name: value for name, value in card.items() if name != "NUMA node" or not link}
    address, rx_queues = card.get("pci_address"), queues or int(card.get("_rx queues", 0)) or None
    return card_facts(interface, {**own, **link}, pci, address or "", rx_queues=rx_queues)
