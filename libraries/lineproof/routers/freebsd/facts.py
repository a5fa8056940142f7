"""Facts of a FreeBSD machine and its cards, from ``sysctl``, ``pciconf``, ``pfctl``, ``kenv``."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from ...core.router_facts import NicFacts, Placement, RouterFacts
from ..fact_reading import Answers, counted, matched

PFSENSE = "cat /etc/platform /etc/version"
"""Files of pfSense 2.2 and later, with its name and version; a plain FreeBSD has neither."""

_OTHER = {
    "kern.smp.cores": "cores",
    "kern.smp.threads_per_core": "threads per core",
    "dev.cpu.0.freq": "MHz",
    "machdep.hyperthreading_allowed": "hyper-threads",
    "vm.pmap.pti": "page table isolation",
    "hw.ibrs_active": "IBRS",
    "hw.mds_disable_state": "MDS mitigation",
    "vm.ndomains": "NUMA domains",
    "net.isr.dispatch": "netisr dispatch",
    "net.inet.rss.enabled": "RSS in the kernel",
    "kern.ident": "kernel ident",
}
"""Facts that only people read, but for the last."""
_FIREWALL = "net.inet.ip.fw.enable"
_KERNEL = ("kern.ostype", "kern.osrelease", "hw.model", "hw.ncpu", "kern.vm_guest", _FIREWALL)
_SYSTEM, _PCI, _PF = f"sysctl -i {' '.join((*_KERNEL, *_OTHER))}", "pciconf -lvc", "pfctl -s info"

_FLOW_CONTROL = {"0": "off", "1": "rx", "2": "tx", "3": "rx and tx"}
"""``dev.ix.0.fc``, and so of em, igb and ixl (sys/dev/ixgbe/ixgbe_type.h, enum ixgbe_fc_mode)."""
_LINK = re.compile(r"link x(\d{1,2})\(x(\d{1,2})\)\s+(?:speed (\d+\.\d)\((\d+\.\d)\))?")
QUEUE_CPU = re.compile(r"iflib\.rxq(\d{1,4})\.cpu")
RX_QUEUE = re.compile(r"(?:iflib\.rxq|queue_rx_|pf\.rxq|rxq\.|rxstat|queue(?=\d+\.rx_)|rxq)0*(\d{1,4})\.")
"""How drivers name a receive queue: iflib's, em and igb's, ixl's, cxl's, mce's, ix's before iflib, oce's."""


def subtree(interface: str) -> str | None:
    """Return the ``sysctl`` subtree of *interface* (``ix0``: ``dev.ix.0``); None for a name without a number.

    mlxen's device is the card with all its ports, so its driver names a port's after the interface: ``hw.mlxen0``.
    """
    parts = re.fullmatch(r"([a-z][a-z0-9_]*?)(\d+)", interface)
    if not parts:
        return None
    return f"hw.{interface}" if parts[1] == "mlxen" else f"dev.{parts[1]}.{parts[2]}"


def sysctl_of(interfaces: Sequence[str], *names: str) -> str:
    """Return the command that shows the variables *names* and the subtree of each of *interfaces*."""
    return " ".join(("sysctl -i", *names, *filter(None, map(subtree, interfaces))))


def sysctl_values(text: str, interface: str = "") -> dict[str, str]:
    """Return the values that ``sysctl NAME …`` shows, by name; those of *interface* without its subtree in front."""
    below = re.escape(f"{subtree(interface)}.") if interface else ""
    return dict(re.findall(rf"^{below}([^\s:]+): *(.*?) *$", text, re.MULTILINE))


def read_freebsd_facts(answers: Answers, interfaces: Sequence[str]) -> RouterFacts:
    """Return the facts of a FreeBSD router. ``workers``: its processors."""
    trees = sysctl_of(interfaces)
    shown = answers.ask(_SYSTEM, PFSENSE, "kenv -q", trees, _PCI, _PF)
    values, environment = sysctl_values(shown[_SYSTEM]), shown["kenv -q"]
    cards = [parse_card(name, sysctl_values(shown[trees], name), shown[_PCI]) for name in interfaces]
    firmware, maker, product = (
        matched(rf'^smbios\.{name}="(.*)"$', environment) for name in ("bios.version", "system.maker", "system.product")
    )
    release = " ".join(filter(None, (values.get("kern.ostype"), values.get("kern.osrelease")))) or None
    pfsense = pfsense_version(shown[PFSENSE])
    other = {fact: values.get(name) for name, fact in _OTHER.items()}
    other["machine"] = " ".join(filter(None, (maker, product)))
    other["hypervisor"] = values.get("kern.vm_guest", "").removeprefix("none")
    return RouterFacts(
        os=f"pfSense {pfsense}{f' ({release})' if release else ''}" if pfsense else release,
        kernel=values.get("kern.osrelease"),
        version=pfsense or values.get("kern.osrelease"),
        firmware=firmware,
        cpu=values.get("hw.model"),
        nics=tuple(nic for nic, _ in cards),
        workers=counted(r"^(\d+)$", values.get("hw.ncpu", "")),
        placement=tuple(
            Placement(nic.interface, queue, f"CPU {cpu}") for nic, cpus in cards for queue, cpu in sorted(cpus.items())
        ),
        firewall=firewall(shown[_PF], values.get(_FIREWALL), _SYSTEM in answers.unread),
        other={name: value for name, value in other.items() if value},
        unread=answers.unread,
    )


def pfsense_version(files: str) -> str | None:
    """Return the version in what :data:`PFSENSE` shows; None where that is no pfSense."""
    return matched(r"(?i)^pfsense\s+(\S.*)", files)


def parse_card(interface: str, device: Mapping[str, str], pciconf: str) -> tuple[NicFacts, Mapping[int, int]]:
    """Return the card of *interface* by its subtree and ``pciconf -lvc``, and the processor of each receive queue."""
    block = re.search(rf"^{re.escape(interface)}@.*\n(?:[ \t].*\n)*", pciconf, re.MULTILINE)
    pci = block[0] if block else ""
    link = _LINK.search(pci)
    width, width_max, speed, speed_max = link.groups("0") if link else "0000"
    sizes = {"rx ring": ("iflib.override_nrxds", "qsize_rxq"), "tx ring": ("iflib.override_ntxds", "qsize_txq")}
    # iflib shows 0 where its own default is used
    rings = {
        ring: next((device[name] for name in names if re.fullmatch(r"[1-9]\d{0,18}", device.get(name, ""))), "")
        for ring, names in sizes.items()
    }
    other = {"NUMA node": device.get("%domain"), **rings}
    nic = NicFacts(
        interface=interface,
        model=matched(r"^\s+device\s+= '([^'\n]*)'", pci) or device.get("%desc") or None,
        driver=device.get("%driver") or matched(r"^([a-z][a-z0-9_]*?)\d+@pci", pci),
        firmware=device.get("fw_version") or device.get("firmware_version"),
        pci_address=pci_address(device.get("%location", "")) or pci_address(pci),
        pcie_width=int(width) or None,
        pcie_width_max=int(width_max) or None,
        pcie_speed=float(speed) or None,
        pcie_speed_max=float(speed_max) or None,
        rx_queues=len({int(queue[1]) for name in device if (queue := RX_QUEUE.match(name))}) or None,
        flow_control=_FLOW_CONTROL.get(device.get("fc", "")),
        other={name: value for name, value in other.items() if value},
    )
    return nic, served_cpus(device)


def served_cpus(device: Mapping[str, str]) -> dict[int, int]:
    """Return the processor of each receive queue that iflib names in a *device*'s subtree of ``sysctl``."""
    found = {queue[1]: cpu for name, cpu in device.items() if (queue := QUEUE_CPU.fullmatch(name))}
    return {int(queue): int(cpu) for queue, cpu in found.items() if re.fullmatch(r"\d{1,6}", cpu)}


def pci_address(text: str) -> str | None:
    """Return the address in ``ix0@pci0:3:0:0:`` or ``dbsf=pci0:3:0:0`` (decimal numbers) as Linux writes it."""
    parts = re.search(r"(?:^[a-z]\w*@|\bdbsf=)pci(\d{1,5}):(\d{1,3}):(\d{1,2}):([0-7])\b", text, re.MULTILINE)
    return None if parts is None else "{:04x}:{:02x}:{:02x}.{:x}".format(*map(int, parts.groups()))


def firewall(pf: str, ipfw: str | None, ipfw_unread: bool) -> str | None:
    """Return ``on`` with what filters, or ``off``; None where it was not read. A filter that is not loaded is off."""
    status = matched(r"^Status: (Enabled|Disabled)", pf)
    filters = [name for name, on in (("pf", status == "Enabled"), ("ipfw", ipfw == "1")) if on]
    if filters:
        return f"on: {', '.join(filters)}"
    return "off" if status == "Disabled" and not ipfw_unread else None
