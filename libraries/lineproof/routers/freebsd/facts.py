"""Facts of a FreeBSD machine and its cards, from ``sysctl``, ``pciconf``, ``pfctl``, ``kenv``."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from ...core.router_facts import NicFacts, Placement, RouterFacts
from ..fact_reading import Answers, counted, matched
from .losses import sysctl_subtree

_SYSCTL = (
    *("kern.ostype", "kern.osrelease", "hw.model", "hw.ncpu", "kern.smp.cores", "kern.smp.threads_per_core"),
    *("kern.smp.cpus", "hw.clockrate", "machdep.hyperthreading_allowed", "dev.cpu.0.freq", "vm.pmap.pti"),
    *("hw.ibrs_active", "hw.mds_disable_state", "machdep.cpu_microcode", "kern.vm_guest", "vm.ndomains"),
    *("net.inet.ip.fw.enable", "net.inet.ip.forwarding", "net.isr.dispatch", "net.inet.rss.enabled"),
)
_FLOW_CONTROL = {"0": "off", "1": "rx", "2": "tx", "3": "rx and tx"}
"""``dev.ix.0.fc``, and so of em, igb and ixl (sys/dev/ixgbe/ixgbe_type.h, enum ixgbe_fc_mode)."""

_ASKED = ("sysctl", "-i", *_SYSCTL)
_KENV = {"smbios.bios.version": "firmware", "smbios.system.maker": "maker", "smbios.system.product": "product"}
_OTHER = {
    "cores": "kern.smp.cores",
    "threads per core": "kern.smp.threads_per_core",
    "MHz": "dev.cpu.0.freq",
    "hyper-threads": "machdep.hyperthreading_allowed",
    "page table isolation": "vm.pmap.pti",
    "IBRS": "hw.ibrs_active",
    "MDS mitigation": "hw.mds_disable_state",
    "NUMA domains": "vm.ndomains",
    "netisr dispatch": "net.isr.dispatch",
    "RSS in the kernel": "net.inet.rss.enabled",
}
"""Facts that only people read."""

_LINK = re.compile(r"link x(\d{1,2})\(x(\d{1,2})\)\s+(?:speed (\d+\.\d)\((\d+\.\d)\))?")


def read_freebsd_facts(answers: Answers, interfaces: Sequence[str]) -> RouterFacts:
    """The facts of a FreeBSD router. ``workers``: its processors."""
    system = answers.ask(
        _ASKED, ("cat", "/etc/platform"), ("cat", "/etc/version"), *(("kenv", "-q", name) for name in _KENV)
    )
    devices = {name: device for name in interfaces if (device := sysctl_subtree(name))}
    cards = answers.ask(
        *(("sysctl", device) for device in devices.values()), *(("pciconf", "-lvc", name) for name in devices)
    )
    network = answers.ask(("pfctl", "-s", "info"))
    values = sysctl_values(system[" ".join(_ASKED)])
    nics = tuple(
        parse_card(name, cards.get(f"sysctl {devices.get(name)}", ""), cards.get(f"pciconf -lvc {name}", ""))
        for name in interfaces
    )
    known = {role: system[f"kenv -q {name}"].strip() for name, role in _KENV.items()}
    release = " ".join(filter(None, (values.get("kern.ostype"), values.get("kern.osrelease")))) or None
    pfsense = system["cat /etc/platform"].strip().lower().startswith("pfsense")
    version = system["cat /etc/version"].strip() if pfsense else None
    other = {name: values.get(key) for name, key in _OTHER.items()}
    other["machine"] = " ".join(filter(None, (known["maker"], known["product"])))
    other["hypervisor"] = values.get("kern.vm_guest", "").removeprefix("none")
    return RouterFacts(
        os=" ".join(filter(None, ("pfSense", version, f"({release})" if release else None))) if pfsense else release,
        kernel=values.get("kern.osrelease"),
        version=version or values.get("kern.osrelease"),
        firmware=known["firmware"] or None,
        cpu=values.get("hw.model"),
        nics=tuple(nic for nic, _ in nics),
        workers=_number(values, "hw.ncpu"),
        placement=tuple(
            Placement(nic.interface, queue, f"CPU {cpu}") for nic, cpus in nics for queue, cpu in sorted(cpus.items())
        ),
        firewall=firewall(
            network["pfctl -s info"], values.get("net.inet.ip.fw.enable"), " ".join(_ASKED) in answers.unread
        ),
        other={name: value for name, value in other.items() if value},
        unread=answers.unread,
    )


def sysctl_values(text: str) -> dict[str, str]:
    """``sysctl NAME …``: the values by name."""
    rows = (line.partition(": ") for line in text.splitlines())
    return {name: value.strip() for name, colon, value in rows if colon and re.fullmatch(r"[\w.%]+", name)}


def _number(values: Mapping[str, str], name: str) -> int | None:
    return counted(r"^(\d+)$", values.get(name, ""))


def parse_card(interface: str, sysctl: str, pciconf: str) -> tuple[NicFacts, Mapping[int, str]]:
    """The card of *interface* from its ``sysctl`` subtree and ``pciconf -lvc``, and the processor of each queue."""
    start = re.escape(sysctl_subtree(interface) or interface)
    values = {name: value for name, value in sysctl_values(sysctl).items() if re.match(rf"{start}\.", name)}
    short = {name.split(".", 3)[3]: value for name, value in values.items()}
    queues = {int(found[1]) for name in short if (found := re.match(RX_QUEUE, name))}
    cpus = {
        int(found[1]): value
        for name, value in short.items()
        if (found := re.fullmatch(r"iflib\.rxq(\d{1,4})\.cpu", name)) and value.isdigit()
    }
    link = _LINK.search(pciconf)
    other = {
        "NUMA node": short.get("%domain"),
        "rx ring": _nonzero(short, ("iflib.override_nrxds", "qsize_rxq")),
        "tx ring": _nonzero(short, ("iflib.override_ntxds", "qsize_txq")),
    }
    nic = NicFacts(
        interface=interface,
        model=matched(r"^\s+device\s+= '([^'\n]*)'", pciconf) or (short.get("%desc") or None),
        driver=short.get("%driver") or matched(r"^([a-z][a-z0-9_]*?)\d+@pci", pciconf),
        firmware=short.get("fw_version") or short.get("firmware_version"),
        pci_address=pci_address(short.get("%location", "")) or pci_address(pciconf),
        pcie_width=_positive(link[1]) if link else None,
        pcie_width_max=_positive(link[2]) if link else None,
        pcie_speed=float(link[3]) or None if link and link[3] else None,
        pcie_speed_max=float(link[4]) or None if link and link[4] else None,
        rx_queues=len(queues) or None,
        flow_control=_FLOW_CONTROL.get(short.get("fc", "")),
        other={name: value for name, value in other.items() if value},
    )
    return nic, cpus


def pci_address(text: str) -> str | None:
    """The address in ``ix0@pci0:3:0:0:`` or ``dbsf=pci0:3:0:0`` (decimal numbers), as Linux writes it."""
    found = re.search(r"(?:^[a-z]\w*@|\bdbsf=)pci(\d{1,5}):(\d{1,3}):(\d{1,2}):([0-7])\b", text, re.MULTILINE)
    return None if found is None else "{:04x}:{:02x}:{:02x}.{:x}".format(*map(int, found.groups()))


RX_QUEUE = re.compile(r"(?:iflib\.rxq|queue_rx_|pf\.rxq|rxq\.|rxstat|queue(?=\d+\.rx_)|rxq)0*(\d{1,4})\.")
"""How drivers name a receive queue: iflib's, em and igb's, ixl's, cxl's, mce's, ix's before iflib, oce's."""


def _positive(text: str) -> int | None:
    return int(text) or None


def _nonzero(values: Mapping[str, str], names: Sequence[str]) -> str:
    # iflib shows 0 where its own default is used
    return next((values[name] for name in names if _number(values, name)), "")


def firewall(pf: str, ipfw: str | None, ipfw_unread: bool) -> str | None:
    """``on`` with what filters, or ``off``; None where it was not read. A filter that is not loaded is off."""
    status = matched(r"^Status: (Enabled|Disabled)", pf)
    found = [name for name, on in (("pf", status == "Enabled"), ("ipfw", ipfw == "1")) if on]
    if found:
        return f"on: {', '.join(found)}"
    return "off" if status == "Disabled" and not ipfw_unread else None
