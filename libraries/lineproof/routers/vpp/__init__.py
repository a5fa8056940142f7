"""VPP on Linux, through ``vppctl``."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from ...core.causes import Cause, Role, Stage, unsent_by_interface
from ...core.counter_names import Pauses, pauses_of
from ...core.neighbours import NeighbourEntry
from ...core.packet_cost import is_input, packet_costs
from ...core.router_facts import NicFacts, Placement, RouterFacts
from ...core.telemetry import NodeRuntime, Telemetry
from ...core.traffic.frame_kinds import FrameKind, FrameKinds
from ...core.under_load import FRAMES_TAKEN, NodeLoad, QueueLoad, UnderLoad, WorkerLoad, per_second
from ...errors import TestbedError
from ..base import LinkState, Side, neighbour_of
from ..described import Router, Words
from ..fact_reading import Answers, ask_facts, counted, matched, picked
from ..linux.machine import kernel_boot_id, link_facts, machine_facts, pci_model, read_machine, with_pcie
from ..shell_output import counter_value, parser
from .losses import FREE_BUFFERS, parse_buffers, vpp_causes
from .output import (
    ThreadRuntime,
    has_route,
    parse_clock,
    parse_errors,
    parse_interface_rows,
    parse_interfaces,
    parse_link_states,
    parse_neighbours,
    parse_runtime,
    parse_version,
    refusal_by_vpp,
    strip_banner,
)


class Vpp(Router):
    """A :class:`~lineproof.routers.base.Router` that runs VPP."""

    client, has_runtime = "vppctl", True

    def identify(self) -> Mapping[str, str]:
        """VPP's version, the operating system, the CPU and the queues that each thread polls."""
        output = self._commands.run_all(
            {
                "version": ("vppctl", "show", "version"),
                "kernel": ("uname", "-a"),
                "os": ("cat", "/etc/os-release"),
                "cpu": ("vppctl", "show", "cpu"),
                "placement": ("vppctl", "show", "interface", "rx-placement"),
            },
            optional=("os", "cpu"),
        )
        facts = {"software": "VPP", "version": parse_version(output["version"]), "kernel": output["kernel"].strip()}
        if found := re.search(r'^PRETTY_NAME="?([^"\n]*)', output["os"], re.MULTILINE):
            facts["operating system"] = found[1]
        if found := re.search(r"Model name: *(.*\S)", strip_banner(output["cpu"])):
            facts["cpu"] = found[1]
        facts["rx placement"] = " ".join(strip_banner(output["placement"]).split())
        return facts

    def refusal_in(self, command: str, output: str) -> str:
        """See :meth:`..base.Router.refusal_in`."""
        refused = refusal_by_vpp(command, output)
        return f"VPP refused '{command}': {refused}" if refused else ""

    def boot_id(self) -> str:
        """See :meth:`..base.Router.boot_id`."""
        return kernel_boot_id(self._commands)

    def facts(self) -> RouterFacts:
        """See :meth:`..base.Router.facts`. The main thread is a worker where there is no other."""
        answers = Answers(self._commands)
        commands = {name: ("vppctl", "show", *name.split()) for name in _SHOW}
        output = answers.ask(*commands.values())

        def shown(name: str) -> str:
            try:
                text = strip_banner(output[" ".join(commands[name])])
            except TestbedError as error:
                answers.unread[" ".join(commands[name])] = str(error)
                return ""
            if refused := refusal_by_vpp(" ".join(commands[name]), text):
                answers.unread[" ".join(commands[name])] = refused
                return ""
            return text

        machine = read_machine(answers)
        hardware = parse_hardware(shown("hardware-interfaces"))
        blocks = {name: hardware.get(name, "") for name in self.interfaces}
        placement = parse_placement(shown("interface rx-placement"))
        threads = re.findall(r"^\s*\d+\s+(vpp_\w+)", shown("threads"), re.MULTILINE)
        workers = sum(name.startswith("vpp_wk") for name in threads)
        addresses = {name: address for name, block in blocks.items() if (address := pci_address(block))}
        links = {name: link_facts(f"/sys/bus/pci/devices/{address}") for name, address in addresses.items()}
        files = ask_facts(answers, [fact for facts in links.values() for fact in facts.values()]) if links else {}
        queues = Counter(row.interface for row in placement)
        facts = machine_facts(
            machine,
            version=matched(r"\bvpp (v?\S+)", shown("version")),
            nics=tuple(
                replace(
                    parse_card(name, block, picked(files, links.get(name, {}))),
                    pci_address=addresses.get(name),
                    model=pci_model(machine.get("cards", ""), addresses.get(name)) or _hardware_name(block),
                    rx_queues=queues[name] or counted(r"^\s+rx: queues (\d+)", block),
                )
                for name, block in blocks.items()
            ),
            workers=(workers or 1) if threads else None,
            placement=tuple(row for row in placement if row.interface in self.interfaces),
            unread=answers.unread,
        )
        pools = "; ".join(f"{pool.name}: {pool.total} of {pool.size} B" for pool in parse_buffers(shown("buffers")))
        cpu = matched(r"^Model name: +(.+)", shown("cpu"))
        return replace(facts, cpu=facts.cpu or cpu, other={**facts.other, **({"buffers": pools} if pools else {})})

    def work(self) -> Mapping[str, float]:
        """See :meth:`..base.Router.work`: frames, of which VPP's counters are exact without a reset."""
        blocks = parse_runtime(self._commands.run("vppctl", "show", "runtime"))
        taken = {block.thread: sum(node.vectors for node in block.nodes if is_input(node)) for block in blocks}
        return {f"{FRAMES_TAKEN}{name}": frames for name, frames in taken.items() if frames or name != "vpp_main"}

    def under_load(self, wait: Callable[[], None]) -> UnderLoad:
        """See :meth:`..base.Router.under_load`.

        The share of a core is cycles by its clock (``show cpu``). An input node's cycles are also those of polling
        empty queues: of them, *busy* takes the share of its calls that found frames, which is about what they cost at
        most loads.
        """
        answers = Answers(self._commands)
        first = answers.ask(*(("vppctl", "show", *name.split()) for name in _TWICE))
        cleared = True
        try:
            self.clear()
        except TestbedError as error:
            answers.unread["vppctl clear runtime"], cleared = str(error), False
        wait()
        last = answers.ask(*(("vppctl", "show", *name.split()) for name in reversed((*_TWICE, *_ONCE))))

        def of(output: Mapping[str, str], name: str, parse: Callable[[str], T]) -> T | None:
            command = f"vppctl show {name}"
            try:
                return parse(output[command]) if output[command] else None
            except TestbedError as error:
                answers.unread[command] = str(error)
                return None

        clocks = [of(output, "clock", parse_clock) for output in (first, last)]
        seconds = clocks[1] - clocks[0] if clocks[0] is not None and clocks[1] is not None else None
        if seconds is not None and seconds <= 0:  # VPP was started again
            seconds = None
        errors = [of(output, "errors", parse_errors) or {} for output in (first, last)]
        # a reason that did not occur before is not shown
        counters = per_second(
            {**dict.fromkeys(errors[1], 0), **errors[0]} if first["vppctl show errors"] else {}, errors[1], seconds
        )
        rows = [of(output, "interface", parse_interface_rows) for output in (first, last)]
        if rows[0] is not None and rows[1] is not None:
            for name in self.interfaces:
                old, new = rows[0].get(name, {}), rows[1].get(name, {})
                rates = per_second({**dict.fromkeys(new, 0), **old}, new, seconds)
                counters |= {f"{key} at {name}": rate for key, rate in rates.items()}
        hertz = clock_hz(of(last, "cpu", strip_banner) or "")
        blocks = (of(last, "runtime", parse_runtime) or ()) if cleared else ()
        workers = tuple(found for block in blocks if (found := worker_load(block, hertz)) is not None)
        placement = of(last, "interface rx-placement", parse_placement) or ()
        cards = [of(output, "hardware-interfaces", parse_hardware) or {} for output in (first, last)]
        return UnderLoad(
            workers=workers,
            queues=queue_loads(placement, self.interfaces, workers, cards[0], cards[1], seconds),
            raw={command: text for command, text in last.items() if text},
            seconds=seconds,
            counters=counters,
            condition={
                f"{FREE_BUFFERS}{pool.name}": f"{pool.available} of {pool.total}, {pool.cached} more in threads' caches"
                for pool in of(last, "buffers", parse_buffers) or ()
            },
            unread=answers.unread,
        )

    def _why_not(self, kind: FrameKind, frames: FrameKinds) -> str:
        inner = [tag for stack in frames.tags for tag, _ in stack[1:]]
        if kind == "vlan" and (any(tag != 0x8100 for tag in inner) or any(len(stack) > 2 for stack in frames.tags)):
            return "VPP matches at most two tags, the inner one of 802.1Q"
        return super()._why_not(kind, frames)

    def contexts(self, scope: str, sides: Sequence[Side], frames: FrameKinds, given: Words) -> Iterator[Words]:
        """Yield also a stack's tags as VPP matches them, and what has no route yet. Raises TestbedError for another."""
        of, _, what = scope.rpartition(" ")
        if what != "route":
            for words in super().contexts(scope, sides, frames, given):
                outer, _, inner = words.get("tags", "").partition(".")
                kind = "dot1ad" if outer.startswith("s") else "dot1q"
                yield {**words, "match": f"{kind} {outer.lstrip('s')}" + (f" inner-dot1q {inner}" if inner else "")}
            return
        commands = []
        contexts = list(super().contexts(of, sides, frames, given))
        for words in contexts:
            family = "ip6" if "network6" in words else "ip"
            network = words.get("network6", words["network"])
            commands.append(" ".join(f"vppctl show {family} fib {words['within']} {network}".split()))
        shown = self._commands.show_all(commands)
        for words, command in zip(contexts, commands, strict=True):
            network, peer = words.get("network6", words["network"]), words.get("peer6", words["peer"])
            if not has_route(shown[command] or "", network, peer, int(words.get("table", "0"))):
                yield {**words, "out": words["interface"] if words["within"] else ""}

    def clear(self) -> None:
        """``clear runtime``. Interface counters and errors go on: readers use differences."""
        self._commands.change("vppctl clear runtime")

    def neighbours(self, sides: tuple[Side, ...]) -> tuple[NeighbourEntry, ...]:
        """See :meth:`..base.Router.neighbours`."""
        entries = sorted(parse_neighbours(self._commands.run("vppctl", "show", "ip", "neighbors")))
        return tuple(
            neighbour_of(
                side,
                [(name, mac, static) for name, address, mac, static in entries if address == side.peer],
                f"vppctl set ip neighbor {side.interface} {side.peer} MAC static".split(),
            )
            for side in sides
        )

    def link_states(self) -> tuple[LinkState, ...]:
        """See :meth:`..base.Router.link_states`."""
        return parse_link_states(self._commands.run("vppctl", "show", "hardware-interfaces"), self.interfaces)

    def read(self) -> Telemetry:
        """Read counters, errors and runtime now. ``uptime`` is VPP's: its restart resets the counters."""
        output = self._commands.run_all(
            {
                "vppctl show clock": ("vppctl", "show", "clock"),
                "vppctl show runtime": ("vppctl", "show", "runtime"),
                # updates rx-miss, which VPP otherwise does every 10 s
                "vppctl show hardware-interfaces": ("vppctl", "show", "hardware-interfaces"),
                "vppctl show interface": ("vppctl", "show", "interface"),
                "vppctl show errors": ("vppctl", "show", "errors"),
            },
            optional=("vppctl show hardware-interfaces",),
        )
        interfaces = parse_interfaces(output["vppctl show interface"])
        self._require_interfaces(interfaces, "VPP")
        blocks = parse_runtime(output["vppctl show runtime"])
        errors = parse_errors(output["vppctl show errors"])
        causes = vpp_causes(parse_interface_rows(output["vppctl show interface"]), errors)
        causes = (*causes, *parse_hardware_errors(output["vppctl show hardware-interfaces"]))
        return Telemetry(
            uptime=parse_clock(output["vppctl show clock"]),
            interfaces={
                name: replace(counts, tx_packets=max(0, counts.tx_packets - unsent_by_interface(causes, name)))
                for name, counts in interfaces.items()
            },
            drops=errors,
            runtime=tuple(node for block in blocks for node in block.nodes),
            raw=output,
            since_clear=max(blocks, key=lambda block: block.rate_in).seconds,
            causes=causes,
            pauses=parse_hardware_pauses(output["vppctl show hardware-interfaces"]),
        )


T = TypeVar("T")

_TWICE = ("clock", "errors", "interface", "hardware-interfaces")
_ONCE = ("cpu", "interface rx-placement", "buffers", "runtime")
_XSTAT = re.compile(r"^\s+rx[_ ]q(\d{1,4})[_ ]?(packets|errors)\s+(\d{1,20})\s*$", re.MULTILINE)


def clock_hz(text: str) -> float | None:
    """``show cpu``: the frequency of the clock that VPP counts cycles by."""
    found = matched(r"^Base frequency: +(\d+\.\d+) GHz", text)
    return float(found) * 1e9 or None if found else None


def worker_load(block: ThreadRuntime, hertz: float | None) -> WorkerLoad | None:
    """A thread's block of ``show runtime``; None for a main thread that handled no frames."""
    seconds = block.seconds
    handled = [node for node in block.nodes if node.vectors > 0]
    if not block.thread.startswith("vpp_wk") and not handled:
        return None
    if seconds <= 0:
        return WorkerLoad(block.thread)
    inputs = [node for node in block.nodes if is_input(node)]
    costs = packet_costs(Telemetry(None, {}, runtime=block.nodes))
    cost = costs[0] if costs else None
    busy = None
    if hertz:
        graph_calls = max((node.calls for node in handled if not is_input(node)), default=0)
        cycles = sum(node.clocks * node.vectors for node in handled if not is_input(node))
        for node in inputs:
            if node.vectors and node.calls:
                cycles += node.clocks * node.vectors * min(1.0, graph_calls / node.calls)
        busy = min(1.0, cycles / (hertz * seconds))
    return WorkerLoad(
        block.thread,
        busy,
        sum(node.vectors for node in inputs) / seconds,
        cost.vectors_per_call if cost else None,
        cost.total if cost else None,
        tuple(sorted((_node(node, seconds, hertz) for node in handled), key=lambda node: -(node.share or 0.0))),
    )


def _node(node: NodeRuntime, seconds: float, hertz: float | None) -> NodeLoad:
    share = min(1.0, node.clocks * node.vectors / (hertz * seconds)) if hertz else None
    return NodeLoad(node.name, node.vectors / seconds, node.clocks, node.vectors_per_call, share)


def queue_loads(
    placement: Sequence[Placement],
    interfaces: Sequence[str],
    workers: Sequence[WorkerLoad],
    before: Mapping[str, str],
    after: Mapping[str, str],
    seconds: float | None,
) -> tuple[QueueLoad, ...]:
    """Frames of each queue as its card counts them (DPDK).

    Of another card: those of its worker, if that serves no other queue; none, if the worker received none.
    """
    of_worker = {worker.thread: worker.packets_per_s for worker in workers}
    served = [row.worker for row in placement]
    found = []
    for row in placement:
        if row.interface not in interfaces:
            continue
        rates = _card_rates(before.get(row.interface, ""), after.get(row.interface, ""), seconds)
        alone = of_worker.get(row.worker)
        if alone and served.count(row.worker) > 1:
            alone = None
        packets = rates.get(f"{row.queue} packets", alone)
        found.append(QueueLoad(row.interface, row.queue, row.worker, packets, rates.get(f"{row.queue} errors")))
    return tuple(found)


def _card_rates(before: str, after: str, seconds: float | None) -> dict[str, float]:
    # the card's zeros are not shown
    old, new = ({f"{row[1]} {row[2]}": int(row[3]) for row in _XSTAT.finditer(text)} for text in (before, after))
    return per_second({**dict.fromkeys(new, 0), **old}, new, seconds) if before else {}


_SHOW = ("version", "cpu", "threads", "interface rx-placement", "hardware-interfaces", "buffers")
_THREAD = re.compile(r"^Thread (\d+) \((\S+)\):")
_QUEUE = re.compile(r"^\s+(\S.*?) queue (\d{1,6}) \((\S+)\)\s*$")
_DAMAGED = re.compile(r"rx_\w*(?:crc|symbol|illegal_byte|align)\w*")
_EXTENDED = re.compile(r"^\s+(\w+)\s+(\d+)$", re.MULTILINE)
_BLOCK = re.compile(r"^(?P<name>\S.*?)\s+\d+\s+(?:up|down|unknown)\s+(?P<hardware>\S.*?)\s*$")


def parse_placement(text: str) -> tuple[Placement, ...]:
    """``show interface rx-placement``: each queue and the thread that serves it."""
    found: list[Placement] = []
    thread = ""
    for line in strip_banner(text).splitlines():
        if head := _THREAD.match(line):
            thread = head[2]
        elif (row := _QUEUE.match(line)) and thread:
            found.append(Placement(row[1], int(row[2]), thread))
    return tuple(found)


def parse_hardware(text: str) -> Mapping[str, str]:
    """``show hardware-interfaces``: the block of text of each interface, by its name."""
    found: dict[str, str] = {}
    name = ""
    for line in strip_banner(text).splitlines():
        if head := _BLOCK.match(line):
            # a long name is cut in the first column, and whole in the last
            name = head["hardware"]
            found.setdefault(name, "")
        elif name and (not line or line[0].isspace()):
            found[name] += f"{line}\n"
        else:
            name = ""
    return found


@parser("'vppctl show hardware-interfaces'")
def parse_hardware_pauses(text: str) -> Mapping[str, Pauses]:
    """``show hardware-interfaces``: by interface the pause frames in its extended counters, of which 0 is not shown."""
    return {
        name: pauses_of({row[1]: counter_value(row[2]) for row in _EXTENDED.finditer(block)})
        for name, block in parse_hardware(text).items()
    }


@parser("'vppctl show hardware-interfaces'")
def parse_hardware_errors(text: str) -> tuple[Cause, ...]:
    """``show hardware-interfaces``: receive errors among its extended counters, which ``rx-error`` counts together."""
    meaning = "its card took them for damaged: look at cable and transceivers"
    return tuple(
        Cause(Stage.ARRIVING, row[1], name, counter_value(row[2]), Role.REASON, meaning)
        for name, block in parse_hardware(text).items()
        for row in _EXTENDED.finditer(block)
        if _DAMAGED.fullmatch(row[1])
    )


def pci_address(block: str) -> str | None:
    """The address of a card of DPDK, as ``/sys`` writes it: VPP prints ``0000:03:00.00``."""
    found = re.search(r"^\s+pci: .*\baddress ([0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2})\.0?([0-7])\b", block, re.MULTILINE)
    return f"{found[1]}.{found[2]}" if found else None


def parse_card(interface: str, block: str, link: Mapping[str, str]) -> NicFacts:
    """The card of *interface* from its *block* of ``show hardware-interfaces``, and its PCIe *link*'s facts.

    ``RSS`` has DPDK's kinds of packets, as ``ipv4-tcp``.
    """
    other = {
        "rx ring": matched(r"^\s+rx: queues \d+ \(max \d+\), desc (\d+)", block),
        "tx ring": matched(r"^\s+tx: queues \d+ \(max \d+\), desc (\d+)", block),
        "NUMA node": link.get("NUMA node") if link else matched(r"^\s+pci: .*\bnuma (\d+)", block),
        "RSS": _words(block, "rss active"),
        "offloads": _words(block, "rx offload active"),
    }
    driver = matched(r"^  \S.*\((\w+)\)\s*$", block)
    found = NicFacts(interface, driver=driver, other={name: value for name, value in other.items() if value})
    return with_pcie(found, link)


def _words(block: str, title: str) -> str:
    """The words after *title* and a colon; they go on in lines that are indented further."""
    found = re.search(
        rf"^(?P<indent> +){title}: *(?P<words>[^\n]*(?:\n(?P=indent) {{4,}}\S[^:\n]*$)*)", block, re.MULTILINE
    )
    return " ".join(found["words"].split()) if found else ""


def _hardware_name(block: str) -> str | None:
    """The line below the MAC address, as ``Intel X553``."""
    name = matched(r"^  Ethernet address [^\n]*\n  (\S[^\n]*)$", block)
    return re.sub(r" *\(\w+\)$", "", name) if name else None
