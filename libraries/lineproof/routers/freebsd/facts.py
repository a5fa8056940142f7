"""Facts of a FreeBSD machine and its cards, from ``sysctl``, ``pciconf``, ``pfctl``, ``kenv``: ``machine.yaml``."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from ...core.router_facts import NicFacts, Placement, RouterFacts
from ..fact_reading import Answers, facts_as, facts_of, picked

described_facts = functools.partial(facts_of, Path(__file__).parent)
_FLOW_CONTROL = {"0": "off", "1": "rx", "2": "tx", "3": "rx and tx"}


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
    facts, trees = described_facts("machine"), " ".join(filter(None, map(subtree, interfaces)))
    words = {name: {"interface": name, "tree": subtree(name) or "-"} for name in interfaces}
    cards = {name: described_facts("card", trees=trees, **own) for name, own in words.items()}
    shown = answers.ask(*(command for own in (facts, *cards.values()) for command, _ in own.values()))
    machine = picked(shown, facts)
    kernel, pfsense = machine.get("kernel"), machine.get("_pfsense")
    release = " ".join(filter(None, (machine.get("_system"), kernel))) or None
    served = {name: served_cpus(shown.get(f"sysctl -i {trees}", ""), name) for name in interfaces}
    return facts_as(
        *(RouterFacts, machine),
        os=f"pfSense {pfsense}{f' ({release})' if release else ''}" if pfsense else release,
        version=pfsense or kernel,
        nics=tuple(_nic(name, picked(shown, own)) for name, own in cards.items()),
        placement=tuple(
            Placement(name, queue, f"CPU {cpu}") for name, cpus in served.items() for queue, cpu in sorted(cpus.items())
        ),
        firewall=_firewall(machine.get("_pf"), machine.get("_ipfw"), facts["_ipfw"][0] in answers.unread),
        unread=answers.unread,
    )


def _nic(interface: str, known: Mapping[str, str]) -> NicFacts:
    own = {"driver": interface.rstrip("0123456789")} if "_address" in known else {}
    return facts_as(
        *(NicFacts, {**own, **known}),
        interface=interface,
        model=known.get("model") or known.get("_description"),
        pci_address=pci_address(known.get("_location", "")) or pci_address(known.get("_address", "")),
        rx_queues=len(known.get("_queues", "").split()) or None,
        flow_control=_FLOW_CONTROL.get(known.get("_flow control", "")),
    )


def served_cpus(text: str, interface: str) -> dict[int, int]:
    """Return the processor of each receive queue of *interface* that iflib names in what ``sysctl`` shows."""
    pattern = rf"^{re.escape(subtree(interface) or '-')}\.iflib\.rxq(\d{{1,4}})\.cpu: *(\d{{1,6}}) *$"
    return {int(queue): int(cpu) for queue, cpu in re.findall(pattern, text, re.MULTILINE)}


def pci_address(text: str) -> str | None:
    """Return the address in ``ix0@pci0:3:0:0:`` or ``dbsf=pci0:3:0:0`` (decimal numbers) as Linux writes it."""
    parts = re.search(r"(?:^[a-z]\w*@|\bdbsf=)pci(\d{1,5}):(\d{1,3}):(\d{1,2}):([0-7])\b", text, re.MULTILINE)
    return None if parts is None else "{:04x}:{:02x}:{:02x}.{:x}".format(*map(int, parts.groups()))


def _firewall(status: str | None, ipfw: str | None, ipfw_unread: bool) -> str | None:
    """Return ``on`` with what filters, or ``off``; None where it was not read. A filter that is not loaded is off."""
    filters = [name for name, on in (("pf", status == "Enabled"), ("ipfw", ipfw == "1")) if on]
    if filters:
        return f"on: {', '.join(filters)}"
    return "off" if status == "Disabled" and not ipfw_unread else None
