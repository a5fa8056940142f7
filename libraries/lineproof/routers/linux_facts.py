"""Facts of a Linux machine and its cards, from ``/proc``, ``/sys``, ``lscpu``, ``lspci`` and ``ethtool``.

Nothing here changes anything: no command loads a kernel module either (``nft`` is asked only where its code is in the
kernel already).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from ..core.router_facts import NicFacts, Placement, RouterFacts
from .fact_reading import Answers, counted, matched, rows_of_files, summarised, without_missing

_DMI = "/sys/class/dmi/id"
_CPU = "/sys/devices/system/cpu"
_BOOST = "cpufreq/boost"
_MACHINE = (
    ("uname", "-r"),
    ("cat", "/etc/os-release"),
    ("lscpu",),
    ("grep", "-m1", "^microcode", "/proc/cpuinfo"),
    ("grep", "-rsH", ".", f"{_CPU}/cpufreq", "--include=scaling_governor"),
    ("grep", "-rsH", ".", f"{_CPU}/vulnerabilities"),
    ("grep", "-sH", ".", *(f"{_CPU}/{name}" for name in ("smt/active", "isolated", "intel_pstate/no_turbo", _BOOST))),
    ("grep", "-sH", ".", *(f"{_DMI}/{name}" for name in ("sys_vendor", "product_name", "bios_version", "bios_date"))),
    ("lspci", "-D"),
    ("cat", "/proc/cmdline"),
)
_NAMES, _CHAINS, _ROUTES = "cat /proc/net/ip_tables_names", "nft list chains", "wc -l /proc/net/route"
_FILTERS = ("grep", "-ohwE", "nft_do_chain|ipt_do_table", "/proc/kallsyms")
"""Which packet filters are in the kernel, built in or as a module."""


def read_linux_facts(answers: Answers, interfaces: Sequence[str]) -> RouterFacts:
    """The facts of a Linux router; the kernel forwards. ``workers``: its processors that are online."""
    machine = answers.ask(*_MACHINE)
    network = answers.ask(
        ("pgrep", "-x", "irqbalance"),
        ("cat", "/proc/net/ip_tables_names"),
        ("wc", "-l", "/proc/net/route"),
        _FILTERS,
    )
    loaded = network[" ".join(_FILTERS)]
    if "nft_do_chain" in loaded:
        network |= answers.ask(("nft", "list", "chains"))
    cards = answers.ask(*(command for name in interfaces for command in _card_commands(name)))
    table = answers.ask(("cat", "/proc/interrupts"))["cat /proc/interrupts"]
    irqs = {
        name: queue_interrupts(table, interrupt_owners(name, cards[f"readlink /sys/class/net/{name}/device"]))
        for name in interfaces
    }
    affinity = _affinity(answers, sorted({irq for found in irqs.values() for irq in found}))
    nics = tuple(_nic(name, cards, machine["lspci -D"], irqs[name], affinity) for name in interfaces)
    placement = tuple(
        Placement(nic.interface, queue, f"CPU {cpus}")
        for nic in nics
        for queue, cpus in sorted({**nic.cpus_of_queue, **nic.steered_to}.items())
        if cpus.isdigit()
    )
    return machine_facts(
        machine,
        nics=nics,
        placement=placement,
        workers=counted(r"^CPU\(s\): +(\d+)", machine["lscpu"]),
        irqbalance=_irqbalance(answers),
        firewall=_firewall(answers, loaded, network),
        # without its line of titles
        routes=None if (lines := counted(r"^ *(\d+) ", network[_ROUTES])) is None else max(0, lines - 1),
        unread=answers.unread,
    )


def read_machine(answers: Answers) -> dict[str, str]:
    """Return what :func:`machine_facts` needs, by command."""
    return answers.ask(*_MACHINE)


def machine_facts(machine: Mapping[str, str], **facts: object) -> RouterFacts:
    """Operating system, firmware and processor of a Linux machine, with other *facts*."""
    lscpu = machine["lscpu"]
    files: dict[str, str] = {}
    for command, text in machine.items():
        if command.startswith("grep -"):
            files |= rows_of_files(text)
    per_socket, sockets = counted(r"^Core\(s\) per socket: +(\d+)", lscpu), counted(r"^Socket\(s\): +(\d+)", lscpu)
    kernel = machine["uname -r"].strip() or None
    bios = [files.get(f"{_DMI}/{name}", "") for name in ("bios_version", "bios_date")]
    other = {
        "microcode": matched(r"^microcode\s*: *(\S+)", machine["grep -m1 ^microcode /proc/cpuinfo"]),
        "governor": summarised(text for path, text in files.items() if path.endswith("/scaling_governor")),
        "mitigations": summarised(
            f"{path.rpartition('/')[2]}: {text}"
            for path, text in sorted(files.items())
            if "/vulnerabilities/" in path and text != "Not affected"
        ),
        "hyper-threads": {"1": "on", "0": "off"}.get(files.get(f"{_CPU}/smt/active", "")),
        "isolated CPUs": files.get(f"{_CPU}/isolated"),
        "turbo": {"1": "off", "0": "on"}.get(files.get(f"{_CPU}/intel_pstate/no_turbo", ""))
        or {"0": "off", "1": "on"}.get(files.get(f"{_CPU}/{_BOOST}", "")),
        "kernel command line": " ".join(machine.get("cat /proc/cmdline", "").split()),
        "machine": " ".join(
            text for name in ("sys_vendor", "product_name") if (text := files.get(f"{_DMI}/{name}", ""))
        ),
        "hypervisor": matched(r"^Hypervisor vendor: +(.+)", lscpu),
        "NUMA nodes": matched(r"^NUMA node\(s\): +(\d+)", lscpu),
    }
    known: dict[str, object] = {
        "os": matched(r'^PRETTY_NAME="?([^"\n]*)', machine["cat /etc/os-release"]),
        "kernel": kernel,
        "version": kernel,
        "firmware": " of ".join(text for text in bios if text) or None,
        "cpu": matched(r"^Model name: +(.+)", lscpu),
        "cores": per_socket * sockets if per_socket and sockets else None,
        "threads_per_core": counted(r"^Thread\(s\) per core: +(\d+)", lscpu),
        "other": without_missing(other),
    }
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


def _card_commands(name: str) -> tuple[tuple[str, ...], ...]:
    folder = f"/sys/class/net/{name}"
    return (
        ("ethtool", "-i", name),
        ("ethtool", "-l", name),
        ("ethtool", "-g", name),
        ("ethtool", "-k", name),
        ("ethtool", "-a", name),
        ("ethtool", "-x", name),
        ("ethtool", "-n", name, "rx-flow-hash", "udp4"),
        ("readlink", f"{folder}/device"),
        ("ls", f"{folder}/queues"),
        ("grep", "-rsH", ".", f"{folder}/queues", "--include=rps_cpus"),
        ("grep", "-sH", ".", *(f"{folder}/device/{file}" for file in LINK_FILES)),
    )


def _nic(
    name: str, cards: Mapping[str, str], pci: str, irqs: Mapping[int, int], affinity: Mapping[int, str]
) -> NicFacts:
    info, folder = cards[f"ethtool -i {name}"], f"/sys/class/net/{name}/device/"
    channels = _current(cards[f"ethtool -l {name}"])
    sums = [number for key in ("RX", "Combined") if (number := counted(rf"^{key}:\s*(\d+)", channels)) is not None]
    folders = re.findall(r"^rx-\d+", cards[f"ls /sys/class/net/{name}/queues"], re.MULTILINE)
    rings = _current(cards[f"ethtool -g {name}"])
    text = cards[next(key for key in cards if key.startswith("grep -sH") and folder in key)]
    link = {path.removeprefix(folder): value for path, value in rows_of_files(text).items()}
    device = cards[f"readlink /sys/class/net/{name}/device"].strip().rpartition("/")[2]
    bus = matched(r"^bus-info: *(\S+)", info) or device
    found = NicFacts(
        interface=name,
        model=pci_model(pci, bus),
        driver=matched(r"^driver: *(\S+)", info),
        firmware=matched(r"^firmware-version: *(\S.*)", info),
        pci_address=bus if PCI_ADDRESS.fullmatch(bus) else None,
        numa_node=counted(r"^(\d+)$", link.get("numa_node", "")),
        rx_queues=sum(sums) if any(sums) else len(folders) or None,
        ring_rx=counted(r"^RX:\s*(\d+)", rings),
        ring_tx=counted(r"^TX:\s*(\d+)", rings),
        rss_fields=rss_fields(cards[f"ethtool -n {name} rx-flow-hash udp4"]),
        rss_key=matched(r"^RSS hash key:\n((?:[0-9a-f]{2}:)+[0-9a-f]{2})$", cards[f"ethtool -x {name}"]),
        offloads=tuple(re.findall(r"^(\S[^:\n]*): on\b", cards[f"ethtool -k {name}"], re.MULTILINE)) or None,
        flow_control=flow_control(cards[f"ethtool -a {name}"]),
        cpus_of_queue={queue: affinity[irq] for irq, queue in irqs.items() if irq in affinity},
        steered_to=steered(cards[f"grep -rsH . /sys/class/net/{name}/queues --include=rps_cpus"]),
    )
    return with_pcie(found, link)


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
"""Of a PCI device in ``/sys``."""


def with_pcie(nic: NicFacts, link: Mapping[str, str]) -> NicFacts:
    """*nic* with width and speed of its PCIe link, now and at most. *link*: the content of :data:`LINK_FILES`."""

    def width(key: str) -> int | None:
        found = counted(r"^(\d+)$", link.get(key, ""))
        return found if found not in (0, 255) else None  # what the kernel shows where it does not know

    def speed(key: str) -> float | None:
        found = matched(r"^(\d{1,3}(?:\.\d+)?) GT/s", link.get(key, ""))
        return float(found) if found else None

    return replace(
        nic,
        pcie_width=width("current_link_width"),
        pcie_speed=speed("current_link_speed"),
        pcie_width_max=width("max_link_width"),
        pcie_speed_max=speed("max_link_speed"),
    )


def rss_fields(text: str) -> tuple[str, ...] | None:
    """``ethtool -n … rx-flow-hash udp4``: the fields; none: ``()``."""
    head, colon, rest = text.partition("Hash flow key:\n")
    if not colon or "flows use these fields" not in head:
        return None
    fields = [line.strip() for line in rest.splitlines() if line.strip()]
    return () if fields == ["None"] else tuple(fields) or None


def _current(text: str) -> str:
    return text.partition("Current hardware settings:\n")[2]


def _irqbalance(answers: Answers) -> bool | None:
    status = answers.status.get("pgrep -x irqbalance")
    if status == 1:  # it looked, and found none
        answers.unread.pop("pgrep -x irqbalance", None)
    return {0: True, 1: False}.get(-1 if status is None else status)


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
