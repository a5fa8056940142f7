"""Facts of a Linux machine and its cards, from ``/proc``, ``/sys``, ``lscpu``, ``lspci`` and ``ethtool``.

Nothing here changes anything: no command loads a kernel module either (``nft`` is asked only where its code is in the
kernel already).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from ...core.router_facts import NicFacts, Placement, RouterFacts
from ..base import Shell
from ..fact_reading import Answers, Fact, ask_facts, matched, picked, rows_of_files, summarised
from ..shell_commands import ShellCommands

_CPU = "/sys/devices/system/cpu"
_LSCPU = ("lscpu",)
_MODES = ("smt/active", "isolated", "intel_pstate/no_turbo", "cpufreq/boost")
_POWER = ("grep", "-sH", ".", *(f"{_CPU}/{name}" for name in _MODES))
_NAMES_OF_DMI = ("sys_vendor", "product_name", "bios_version", "bios_date")
_DMI = ("grep", "-sH", ".", *(f"/sys/class/dmi/id/{name}" for name in _NAMES_OF_DMI))
_PCI = ("lspci", "-D")

MACHINE: Mapping[str, Fact] = {
    "kernel": (("uname", "-r"), r"^(\S+)$"),
    "os": (("cat", "/etc/os-release"), r'^PRETTY_NAME="?([^"\n]*)'),
    "cpu": (_LSCPU, r"^Model name: +(.+)"),
    "firmware": (_DMI, r"/bios_\w+:(.*)"),
    "processors": (_LSCPU, r"^CPU\(s\): +(\d+)"),
    "cores per socket": (_LSCPU, r"^Core\(s\) per socket: +(\d+)"),
    "threads per core": (_LSCPU, r"^Thread\(s\) per core: +(\d+)"),
    "hypervisor": (_LSCPU, r"^Hypervisor vendor: +(.+)"),
    "NUMA nodes": (_LSCPU, r"^NUMA node\(s\): +(\d+)"),
    "microcode": (("grep", "-m1", "^microcode", "/proc/cpuinfo"), r"^microcode\s*: *(\S+)"),
    "governor": (("grep", "-rsH", ".", f"{_CPU}/cpufreq", "--include=scaling_governor"), r"/scaling_governor:(.*)"),
    "mitigations": (("grep", "-rsH", ".", f"{_CPU}/vulnerabilities"), r"/vulnerabilities/(\w+:(?!Not affected).*)"),
    "SMT active": (_POWER, r"/smt/active:(\d)"),
    "isolated CPUs": (_POWER, r"/isolated:(.*)"),
    "no turbo": (_POWER, r"/no_turbo:(\d)"),
    "boost": (_POWER, r"/boost:(\d)"),
    "machine": (_DMI, r"/(?:sys_vendor|product_name):(.*)"),
    "kernel command line": (("cat", "/proc/cmdline"), r"(.+)"),
    "cards": (_PCI, r"(?s)(.+)"),
}
"""Commands that say what a Linux machine is; of the cards the list of ``lspci``."""

_NAMES, _CHAINS = "cat /proc/net/ip_tables_names", "nft list chains"
_FILTERS = ("grep", "-ohwE", "nft_do_chain|ipt_do_table", "/proc/kallsyms")
"""Which packet filters are in the kernel, built in or as a module."""


def read_linux_facts(answers: Answers, interfaces: Sequence[str]) -> RouterFacts:
    """The facts of a Linux router; the kernel forwards. ``workers``: its processors that are online."""
    machine = read_machine(answers)
    network = answers.ask(("pgrep", "-x", "irqbalance"), ("cat", "/proc/net/ip_tables_names"), _FILTERS)
    loaded = network[" ".join(_FILTERS)]
    if "nft_do_chain" in loaded:
        network |= answers.ask(("nft", "list", "chains"))
    cards = {name: card_facts(name) for name in interfaces}
    output = ask_facts(answers, [fact for facts in cards.values() for fact in facts.values()])
    table = answers.ask(("cat", "/proc/interrupts"))["cat /proc/interrupts"]
    known = {name: picked(output, facts) for name, facts in cards.items()}
    irqs = {name: queue_interrupts(table, interrupt_owners(name, known[name].get("device", ""))) for name in interfaces}
    affinity = _affinity(answers, sorted({irq for found in irqs.values() for irq in found}))
    nics = tuple(_nic(name, known[name], machine.get("cards", "")) for name in interfaces)
    placement = tuple(
        Placement(nic.interface, queue, f"CPU {cpus}")
        for nic in nics
        for queue, cpus in sorted(
            {**{queue: affinity.get(irq, "") for irq, queue in irqs[nic.interface].items()}, **nic.steered_to}.items()
        )
        if cpus.isdigit()
    )
    workers = machine.get("processors", "")
    facts = machine_facts(
        machine,
        nics=nics,
        placement=placement,
        workers=int(workers) if workers.isdigit() else None,
        firewall=_firewall(answers, loaded, network),
        unread=answers.unread,
    )
    balanced = {0: "running", 1: "not running"}.get(answers.status.get("pgrep -x irqbalance", -1))
    if balanced:
        # without output it looked, and found none
        answers.unread.pop("pgrep -x irqbalance", None)
    return replace(facts, other={**facts.other, **({"irqbalance": balanced} if balanced else {})})


def read_machine(answers: Answers) -> dict[str, str]:
    """Return :data:`MACHINE`, as far as it was read."""
    return picked(ask_facts(answers, MACHINE.values()), MACHINE)


def machine_facts(machine: Mapping[str, str], **facts: object) -> RouterFacts:
    """Operating system, firmware and processor of a Linux machine, with other *facts*."""
    own: dict[str, object] = {name: machine.get(name) for name in ("os", "kernel", "firmware", "cpu")}
    other = {name: value for name, value in machine.items() if name not in (*own, "processors", "cards")}
    known = {**own, "version": own["kernel"], "other": other}
    return RouterFacts(**{**known, **facts})  # type: ignore[arg-type]  # by name, each as it was read


def _firewall(answers: Answers, loaded: str, network: Mapping[str, str]) -> str | None:
    """``on`` with what filters, or ``off``; None where that was not read."""
    status = answers.status
    hooks = summarised(re.findall(r"\bhook (prerouting|forward|postrouting|ingress)\b", network.get(_CHAINS, "")))
    tables = summarised(network[_NAMES].split()) if status.get(_NAMES) == 0 else None
    found = [f"{name} ({what})" for name, what in (("nftables", hooks), ("iptables", tables)) if what]
    if found:
        return f"on: {', '.join(found)}"
    # nothing on standard output is an answer here
    needed = {_CHAINS: "nft_do_chain" in loaded, _NAMES: "ipt_do_table" in loaded}
    if status.get(" ".join(_FILTERS)) not in (0, 1) or any(status.get(name) for name, need in needed.items() if need):
        return None
    if any(name not in status for name, need in needed.items() if need):
        return None
    for name in (*needed, " ".join(_FILTERS)):
        answers.unread.pop(name, None)
    return "off"


def interrupt_owners(interface: str, device: str) -> tuple[str, ...]:
    """Names by which ``/proc/interrupts`` may call *interface*. *device*: the link ``/sys/class/net/…/device``."""
    name = device.strip().rpartition("/")[2]
    return (interface, name) if name else (interface,)


def interrupt_rows(text: str) -> tuple[tuple[int, ...], dict[int, tuple[tuple[int, ...], str]]]:
    """``/proc/interrupts``: the processors, and interrupt -> its counts and its name."""
    lines = text.splitlines()
    titles = lines[0].split() if lines else []
    if not titles or not all(re.fullmatch(r"CPU\d{1,6}", title) for title in titles):
        return (), {}
    cpus, found = tuple(int(title[3:]) for title in titles), {}
    for line in lines[1:]:
        irq, colon, rest = line.partition(":")
        words = rest.split()
        counts = words[: len(cpus)]
        if colon and re.fullmatch(r" *\d{1,9}", irq) and len(words) > len(cpus):
            if not all(re.fullmatch(r"\d{1,20}", word) for word in counts):
                continue
            found[int(irq)] = (tuple(map(int, counts)), words[-1])
    return cpus, found


def queue_interrupts(table: str, owners: Sequence[str]) -> dict[int, int]:
    """``/proc/interrupts``: interrupt -> receive queue of the card that drivers call by one of *owners*."""
    found: dict[int, int] = {}
    for irq, (_, name) in interrupt_rows(table)[1].items():
        for owner in owners:
            if queue := _queue_of(name, owner):
                found[irq] = int(queue)
    return found


def _queue_of(name: str, owner: str) -> str | None:
    """``ixgbe``: eth0-TxRx-3; ``i40e``: i40e-eth0-TxRx-3; ``virtio_net``: virtio2-input.3; ``mlx5``: by PCI address."""
    if mlx := re.fullmatch(r"mlx\d_comp(\d{1,4})@pci:(\S+)", name):
        return mlx[1] if mlx[2] == owner else None
    pattern = rf"(?:\w+-)?{re.escape(owner)}-(?:(?:tx-?rx|rx-?tx|rx|input|fp|queue|r)[-.]?)?(\d{{1,4}})"
    found = re.fullmatch(pattern, name, re.IGNORECASE)
    return found[1] if found else None


def card_facts(name: str) -> Mapping[str, Fact]:
    """Return what is asked of the card of one interface."""
    folder, current = f"/sys/class/net/{name}", r"(?s)Current hardware settings:.*?\n"
    information, rings = ("ethtool", "-i", name), ("ethtool", "-g", name)
    return {
        "driver": (information, r"^driver: *(\S+)"),
        "firmware": (information, r"^firmware-version: *(\S.*)"),
        "bus": (information, r"^bus-info: *(\S+)"),
        "rx channels": (("ethtool", "-l", name), rf"{current}RX:\s*(\d+)"),
        "channels": (("ethtool", "-l", name), rf"{current}Combined:\s*(\d+)"),
        "rx ring": (rings, rf"{current}RX:\s*(\d+)"),
        "tx ring": (rings, rf"{current}TX:\s*(\d+)"),
        "offloads": (("ethtool", "-k", name), r"^(\S[^:\n]*): on\b"),
        "pauses": (("ethtool", "-a", name), r"(?s)(.+)"),
        "RSS": (("ethtool", "-n", name, "rx-flow-hash", "udp4"), r"^(?!.*:)(\S.*)$"),
        "device": (("readlink", f"{folder}/device"), r"([^/\n]+)$"),
        "folders": (("ls", f"{folder}/queues"), r"^(rx-\d+)"),
        "steering": (("grep", "-rsH", ".", f"{folder}/queues", "--include=rps_cpus"), r"(?s)(.+)"),
        **link_facts(f"{folder}/device"),
    }


def _nic(name: str, known: Mapping[str, str], pci: str) -> NicFacts:
    bus = known.get("bus") or known.get("device", "")
    channels = sum(int(known.get(key, "0")) for key in ("rx channels", "channels"))
    shown = ("rx ring", "tx ring", "offloads", "RSS", "NUMA node")
    found = NicFacts(
        interface=name,
        model=pci_model(pci, bus),
        driver=known.get("driver"),
        firmware=known.get("firmware"),
        pci_address=bus if PCI_ADDRESS.fullmatch(bus) else None,
        rx_queues=channels or len(known.get("folders", "").split()) or None,
        flow_control=flow_control(known.get("pauses", "")),
        steered_to=steered(known.get("steering", "")),
        other={key: known[key] for key in shown if key in known},
    )
    return with_pcie(found, known)


def flow_control(text: str) -> str | None:
    """``ethtool -a``: which pause frames are on; None: the driver does not say."""
    on = [way.lower() for way in ("RX", "TX") if re.search(rf"^{way}:\s+on\b", text, re.MULTILINE)]
    known = re.search(r"^RX:\s+(on|off)\b", text, re.MULTILINE)
    return (" and ".join(on) or "off") if known else None


def steered(text: str) -> dict[int, str]:
    """``…/queues/rx-0/rps_cpus:00000000,00000006``: receive queue -> ``1,2``; none for one without steering."""
    found: dict[int, str] = {}
    for path, mask in rows_of_files(text).items():
        queue = re.search(r"/rx-(\d{1,4})/rps_cpus$", path)
        if queue and re.fullmatch(r"[0-9a-f,]{1,4096}", mask):
            bits = int(mask.replace(",", "") or "0", 16)
            cpus = [str(cpu) for cpu in range(bits.bit_length()) if bits >> cpu & 1]
            if cpus:
                found[int(queue[1])] = ",".join(cpus)
    return found


def pci_model(pci: str, address: str | None) -> str | None:
    """The name of the card at *address* in the list *pci* of ``lspci -D``."""
    return matched(rf"^{re.escape(address)} [^:\n]*: *(.+)", pci) if address else None


PCI_ADDRESS = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")

LINK_FILES = ("current_link_width", "current_link_speed", "max_link_width", "max_link_speed", "numa_node")
"""Files of a PCI device in ``/sys``."""


def link_facts(folder: str) -> Mapping[str, Fact]:
    """Return what is asked of the PCIe link of the device in *folder*; 0 and 255 lanes: the kernel does not know."""
    files = ("grep", "-sH", ".", *(f"{folder}/{name}" for name in LINK_FILES))
    widths = {name: (files, rf"^{re.escape(folder)}/{name}:(?!0$|255$)(\d{{1,3}})$") for name in LINK_FILES[:3:2]}
    speeds = {name: (files, rf"^{re.escape(folder)}/{name}:(\d{{1,3}}(?:\.\d+)?) GT/s") for name in LINK_FILES[1:4:2]}
    return {**widths, **speeds, "NUMA node": (files, rf"^{re.escape(folder)}/numa_node:(\d+)$")}


def with_pcie(nic: NicFacts, link: Mapping[str, str]) -> NicFacts:
    """*nic* with width and speed of its PCIe link, now and at most, as :func:`link_facts` found them."""
    numbers = [float(link[name]) if name in link else None for name in LINK_FILES[:4]]
    width, speed, most, fastest = numbers
    return replace(
        nic,
        pcie_width=None if width is None else int(width),
        pcie_speed=speed,
        pcie_width_max=None if most is None else int(most),
        pcie_speed_max=fastest,
    )


def _affinity(answers: Answers, irqs: Sequence[int]) -> dict[int, str]:
    """Processors that each interrupt goes to; where the kernel does not show it, those that it may go to."""
    found: dict[int, str] = {}
    names = ("effective_affinity_list", "smp_affinity_list")
    for start in range(0, len(irqs), 64):
        files = [f"/proc/irq/{irq}/{name}" for irq in irqs[start : start + 64] for name in names]
        rows = rows_of_files(answers.ask(("grep", "-sH", ".", *files)).popitem()[1])
        for irq in irqs[start : start + 64]:
            for name in names:
                if cpus := rows.get(f"/proc/irq/{irq}/{name}"):
                    found.setdefault(irq, cpus)
    return found


def kernel_boot_id(commands: ShellCommands) -> str:
    """See :meth:`..base.Router.boot_id`, of a Linux kernel (random(4))."""
    name = "/proc/sys/kernel/random/boot_id"
    found = commands.run_all({name: ("cat", name)}, optional=(name,))[name].strip()
    return found if re.fullmatch(r"[0-9a-f-]{36}", found) else ""


# -- a machine that is to run a program on DPDK: no rights, and no change

_DEVICES = "/sys/bus/pci/devices"
_DRIVERS = ("sh", "-c", f'grep -sHE "^(DRIVER|PCI_CLASS|PCI_ID)=" {_DEVICES}/*/uevent')
_PORTS = ("sh", "-c", f"ls -d {_DEVICES}/*/net/* {_DEVICES}/*/virtio*/net/*")

MOST_CARDS = 64
"""Functions whose details are read: a card with virtual functions may have hundreds."""

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,14}")


def read_host(shell: Shell) -> RouterFacts:
    """Return the facts of the machine behind *shell*, with every network card by its PCI address.

    Never raises: what is not read is missing, with the reason in ``unread``.
    """
    answers = Answers(ShellCommands(shell))
    machine = read_machine(answers)
    texts = answers.ask(_DRIVERS, _PORTS)
    if " ".join(_PORTS) in answers.status:
        # no card has a name: that is an answer, too
        answers.unread.pop(" ".join(_PORTS), None)
    nics = _nics(answers, _cards(texts[" ".join(_DRIVERS)]), _names(texts[" ".join(_PORTS)]), machine.get("cards", ""))
    return machine_facts(machine, version=None, nics=nics, unread=answers.unread)


def _cards(text: str) -> dict[str, dict[str, str]]:
    """Return the network cards' functions by address: the variables of their ``uevent``."""
    rows: dict[str, dict[str, str]] = {}
    for line in text.splitlines():
        row = re.fullmatch(rf"{_DEVICES}/([^/]+)/uevent:([A-Z_]+)=(.*)", line)
        if row and PCI_ADDRESS.fullmatch(row[1]):
            rows.setdefault(row[1], {})[row[2]] = row[3]
    # class 02: network controllers (PCI Code and ID Assignment, 1.3)
    cards = sorted(address for address, row in rows.items() if re.fullmatch(r"2[0-9A-F]{4}", row.get("PCI_CLASS", "")))
    return {address: rows[address] for address in cards[:MOST_CARDS]}


def _names(text: str) -> dict[str, list[str]]:
    """Return Linux's names of each card's ports, by address."""
    names: dict[str, list[str]] = {}
    for path in text.splitlines():
        if (parts := path.removeprefix(f"{_DEVICES}/").split("/")) and _NAME.fullmatch(parts[-1]):
            names.setdefault(parts[0], []).append(parts[-1])
    return names


def _nics(
    answers: Answers, cards: dict[str, dict[str, str]], names: dict[str, list[str]], pci: str
) -> tuple[NicFacts, ...]:
    links = {address: link_facts(f"{_DEVICES}/{address}") for address in cards}
    drivers = {name: ("ethtool", "-i", name) for address in cards for name in names.get(address, ())}
    commands = dict.fromkeys(command for facts in links.values() for command, _ in facts.values())
    texts = answers.ask(*commands, *drivers.values())
    nics = []
    for address, card in cards.items():
        link = picked(texts, links[address])
        information = [texts[" ".join(drivers[name])] for name in names.get(address, ())]
        nic = NicFacts(
            interface=address,
            model=pci_model(pci, address) or card.get("PCI_ID", "").lower() or None,
            driver=card.get("DRIVER"),
            firmware=summarised(matched(r"^firmware-version: *(\S.*)", text) or "" for text in information),
            other={"NUMA node": link["NUMA node"]} if "NUMA node" in link else {},
        )
        nics.append(with_pcie(nic, link))
    return tuple(nics)
