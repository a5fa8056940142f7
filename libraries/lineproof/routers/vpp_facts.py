"""Facts of a router that runs VPP: its threads, queues and cards from ``vppctl``, the machine from the Linux below."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from ..core.causes import Cause, Role, Stage
from ..core.pause_names import Pauses, pauses_of
from ..core.router_facts import NicFacts, Placement, RouterFacts
from ..errors import TestbedError
from .fact_reading import Answers, counted, matched, rows_of_files, without_missing
from .linux_facts import LINK_FILES, machine_facts, pci_model, read_machine, with_pcie
from .shell_output import counter_value, parser
from .vpp_losses import parse_buffers
from .vpp_output import refusal_by_vpp, strip_banner

_SHOW = ("version", "cpu", "threads", "interface rx-placement", "hardware-interfaces", "ip fib summary", "buffers")
_THREAD = re.compile(r"^Thread (\d+) \((\S+)\):")
_QUEUE = re.compile(r"^\s+(\S.*?) queue (\d{1,6}) \((\S+)\)\s*$")
_DAMAGED = re.compile(r"rx_\w*(?:crc|symbol|illegal_byte|align)\w*")
_EXTENDED = re.compile(r"^\s+(\w+)\s+(\d+)$", re.MULTILINE)
_BLOCK = re.compile(r"^(?P<name>\S.*?)\s+\d+\s+(?:up|down|unknown)\s+(?P<hardware>\S.*?)\s*$")


def read_vpp_facts(answers: Answers, interfaces: Sequence[str]) -> RouterFacts:
    """The facts of a VPP router. ``workers``: its worker threads; the main thread is one where there is no other."""
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
    cards = parse_hardware(shown("hardware-interfaces"))
    placement = parse_placement(shown("interface rx-placement"))
    threads = re.findall(r"^\s*\d+\s+(vpp_\w+)", shown("threads"), re.MULTILINE)
    workers = sum(name.startswith("vpp_wk") for name in threads)
    addresses = {name: found for name in interfaces if (found := pci_address(cards.get(name, "")))}
    files = _link_files(answers, addresses)
    queues = {name: sum(row.interface == name for row in placement) for name in interfaces}
    facts = machine_facts(
        machine,
        version=matched(r"\bvpp (v?\S+)", shown("version")),
        nics=tuple(
            replace(
                parse_card(name, cards.get(name, ""), _files_of(files, addresses.get(name))),
                pci_address=addresses.get(name),
                model=pci_model(machine["lspci -D"], addresses.get(name)) or _hardware_name(cards.get(name, "")),
                rx_queues=queues[name] or counted(r"^\s+rx: queues (\d+)", cards.get(name, "")),
            )
            for name in interfaces
        ),
        workers=(workers or 1) if threads else None,
        placement=tuple(row for row in placement if row.interface in interfaces),
        routes=parse_fib_summary(shown("ip fib summary")),
        unread=answers.unread,
    )
    other = without_missing(
        {
            "TSC": matched(r"^Base frequency: +(.+)", shown("cpu")),
            "buffers": "; ".join(
                f"{pool.name}: {pool.total} of {pool.size} B" for pool in parse_buffers(shown("buffers"))
            ),
        }
    )
    cpu = matched(r"^Model name: +(.+)", shown("cpu"))
    return replace(facts, cpu=facts.cpu or cpu, other={**facts.other, **other})


def parse_placement(text: str) -> tuple[Placement, ...]:
    """``show interface rx-placement``: each queue and the thread that serves it."""
    found: list[Placement] = []
    thread = ""
    for line in text.splitlines():
        if head := _THREAD.match(line):
            thread = head[2]
        elif (row := _QUEUE.match(line)) and thread:
            found.append(Placement(row[1], int(row[2]), thread))
    return tuple(found)


def parse_hardware(text: str) -> Mapping[str, str]:
    """``show hardware-interfaces``: the block of text of each interface, by its name."""
    found: dict[str, str] = {}
    name = ""
    for line in text.splitlines():
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
        for name, block in parse_hardware(strip_banner(text)).items()
    }


@parser("'vppctl show hardware-interfaces'")
def parse_hardware_errors(text: str) -> tuple[Cause, ...]:
    """``show hardware-interfaces``: receive errors among its extended counters, which ``rx-error`` counts together."""
    meaning = "its card took them for damaged: look at cable and transceivers"
    return tuple(
        Cause(Stage.ARRIVING, row[1], name, counter_value(row[2]), Role.REASON, meaning)
        for name, block in parse_hardware(strip_banner(text)).items()
        for row in _EXTENDED.finditer(block)
        if _DAMAGED.fullmatch(row[1])
    )


def pci_address(block: str) -> str | None:
    """The address of a card of DPDK, as ``/sys`` writes it: VPP prints ``0000:03:00.00``."""
    found = re.search(r"^\s+pci: .*\baddress ([0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2})\.0?([0-7])\b", block, re.MULTILINE)
    return f"{found[1]}.{found[2]}" if found else None


def parse_card(interface: str, block: str, link: Mapping[str, str]) -> NicFacts:
    """The card of *interface* from its *block* of ``show hardware-interfaces``, and its PCIe *link* files.

    ``rss_fields`` are DPDK's kinds of packets, as ``ipv4-tcp``.
    """
    rx, tx = (counted(rf"^\s+{side}: queues \d+ \(max \d+\), desc (\d+)", block) for side in ("rx", "tx"))
    rss, offloads = _words(block, "rss active"), _words(block, "rx offload active")
    numa = counted(r"^\s+pci: .*\bnuma (\d+)", block)
    return with_pcie(
        NicFacts(
            interface=interface,
            driver=matched(r"^  \S.*\((\w+)\)\s*$", block),
            ring_rx=rx,
            ring_tx=tx,
            numa_node=counted(r"^(\d+)$", link.get("numa_node", "")) if link else numa,
            rss_fields=rss,
            offloads=offloads,
        ),
        link,
    )


def _words(block: str, title: str) -> tuple[str, ...] | None:
    """The words after *title* and a colon; they go on in lines that are indented further."""
    found = re.search(
        rf"^(?P<indent> +){title}: *(?P<words>[^\n]*(?:\n(?P=indent) {{4,}}\S[^:\n]*$)*)", block, re.MULTILINE
    )
    if not found:
        return None
    words = tuple(found["words"].split())
    return () if words == ("none",) else words or None


def _hardware_name(block: str) -> str | None:
    """The line below the MAC address, as ``Intel X553``."""
    name = matched(r"^  Ethernet address [^\n]*\n  (\S[^\n]*)$", block)
    return re.sub(r" *\(\w+\)$", "", name) if name else None


def parse_fib_summary(text: str) -> int | None:
    """``show ip fib summary``: the prefixes of the first table."""
    table = text.partition("Prefix length")[2].partition("fib_index:")[0]
    rows = re.findall(r"^\s+\d{1,2}\s+(\d{1,12})\s*$", table, re.MULTILINE)
    return sum(map(int, rows)) if rows else None


def _link_files(answers: Answers, addresses: Mapping[str, str]) -> Mapping[str, str]:
    files = [f"/sys/bus/pci/devices/{address}/{name}" for address in addresses.values() for name in LINK_FILES]
    return rows_of_files("".join(answers.ask(("grep", "-sH", ".", *files)).values())) if files else {}


def _files_of(files: Mapping[str, str], address: str | None) -> dict[str, str]:
    start = f"/sys/bus/pci/devices/{address}/"
    return {path.removeprefix(start): text for path, text in files.items() if path.startswith(start)}
