"""Reads the answers of a TRex server (API 5), without a library."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from typing import Any

CUT_SPEEDS = (100_000, 200_000)
"""Mbit/s, the highest speeds of TRex up to v3.02 and since: every higher one, and DPDK's "unknown" (4294967295), is cut
to them (src/trex_port_attr.h:50)."""


FLOW_CONTROL = {0: "off", 1: "rx", 2: "tx", 3: "rx and tx"}
"""DPDK's RTE_ETH_FC_*; TRex reports -1 where the driver cannot say."""


def port_facts(status: Mapping[str, Any], static: Mapping[str, Any]) -> dict[str, Any]:
    """MAC, speed in bit/s, link, driver and owner of a port, PCI address and description of its card.

    ``destination``: the MAC address that the port sends to; "" if unknown. ``measures``: what it can measure of
    received frames; None if unknown. ``numa``: the node of its card; None if unknown. ``cores`` that send for it.
    ``flow_control``: a value of FLOW_CONTROL; None if unknown.
    ``card_mac``: the card's own address; ``promiscuous``: None if unknown; ``is_virtual``: it receives in software.

    *status*: ``get_port_status``; *static*: the port's entry in ``get_system_info``.
    """
    attributes, pci = status["attr"], str(static.get("pci_addr", ""))
    ether = (attributes.get("layer_cfg") or {}).get("ether") or {}
    known = ether.get("state", "configured") == "configured"
    cores = static.get("cores")
    return {
        "mac": ether.get("src") or static.get("hw_mac", ""),
        "speed_bps": 1e6 * known_speed(1e3 * float(attributes["speed"]), static.get("supp_speeds") or ()),
        "link_up": bool(attributes["link"]["up"]),
        "driver": str(static.get("driver", "")),
        "owner": str(status.get("owner") or ""),
        "pci": pci if ":" in pci else "",
        "description": str(static.get("description", "")),
        "destination": str(ether.get("dst") or "") if known else "",
        "measures": (static.get("rx") or {}).get("caps"),
        "numa": node if isinstance(node := static.get("numa"), int) and node >= 0 else None,
        "flow_control": FLOW_CONTROL.get(attributes.get("fc", {}).get("mode")),
        "cores": [core for core in cores if isinstance(core, int)] if isinstance(cores, list) else [],
        "card_mac": str(static.get("hw_mac") or ""),
        "promiscuous": (attributes.get("promiscuous") or {}).get("enabled"),
        "is_virtual": static.get("is_virtual") is True,
    }


def known_speed(mbps: float, supported: Collection[int]) -> float:
    """The speed that a port reports, Mbit/s; 0 where its driver does not know it (virtio).

    Then TRex reports its highest, which is not among those that it says the card has.
    """
    cut = round(mbps) in CUT_SPEEDS or mbps > max(CUT_SPEEDS)
    return 0.0 if cut and round(mbps) not in supported else mbps


def destination_state(status: Mapping[str, Any]) -> str:
    """State of the MAC address that a port sends to: ``known``, ``unresolved`` (its next hop is asked) or ``none``.

    *status*: ``get_port_status``. Without a report it counts as known.
    """
    layers = status["attr"].get("layer_cfg") or {}
    if (layers.get("ipv4") or {}).get("state") == "unresolved":
        return "unresolved"
    return "none" if (layers.get("ether") or {}).get("state") == "unconfigured" else "known"


def flat_counters(
    whole: Mapping[str, Any],
    ports: Mapping[int, Mapping[str, Any]],
    earliest: Mapping[str, Any],
    latest: Mapping[str, Any],
) -> dict[str, Any]:
    """``get_global_stats`` and ``get_port_stats`` per port as one flat mapping, like API 4's ``trex-global``.

    *earliest* and *latest*: answers to ``ping`` before and after it. Raises ValueError for one without a time.
    """
    found = {**whole, "earliest": moment(earliest), "latest": moment(latest)}
    for port, counts in ports.items():
        found |= {f"{name}-{port}": value for name, value in counts.items()}
    return found


def moment(answer: Mapping[str, Any]) -> float:
    """The time by the server's own clock, s, in its answer to ``ping`` or ``start_traffic``. Raises ValueError."""
    found = float(answer["ts"])
    if not math.isfinite(found):
        raise ValueError(f"its time is {found}")
    return found


def core_loads(answer: Mapping[str, Any]) -> list[list[float]]:
    """Load of each sending core in per cent of each second, the latest first: ``get_utilization``."""
    return [[float(load) for load in core.get("history") or ()] for core in answer.get("cpu") or ()]


def events(answer: Mapping[str, Any]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Type and data of each event in the answer to ``get_async_events``, in order."""
    for message in answer.get("data") or ():
        if message.get("name") == "trex-event":
            data = message.get("data")
            yield int(message["type"]), data if isinstance(data, dict) else {}
