"""Reads what a TRex server and the libraries say: answers, events, errors as plain text, loads of the cores."""

from __future__ import annotations

import math
import re
import threading
import time
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ....core.counter_names import PORT_TOTALS
from ....visible import shortened
from .service import CounterReading, Refusal

CUT_SPEEDS = (100_000, 200_000)
"""Mbit/s, the highest speeds of TRex up to v3.02 and since: every higher one, and DPDK's "unknown" (4294967295), is cut
to them (src/trex_port_attr.h:50)."""

LARGEST_COUNT = 2**64 - 1

FLOW_CONTROL = {0: "off", 1: "rx", 2: "tx", 3: "rx and tx"}
"""DPDK's RTE_ETH_FC_*; TRex reports -1 where the driver cannot say."""


def port_facts(status: Mapping[str, Any], static: Mapping[str, Any]) -> dict[str, Any]:
    """Return MAC, speed in bit/s, link, driver and owner of a port, PCI address and description of its card.

    ``destination``: the MAC address that the port sends to; "" if unknown. ``measures``: what it can measure of
    received frames; None if unknown. ``numa``: the node of its card; None if unknown. ``cores`` that send for it.
    ``flow_control``: a value of FLOW_CONTROL; None if unknown.
    ``card_mac``: the card's own address; ``promiscuous``: None if unknown; ``is_virtual``: it receives in software.

    *status*: ``get_port_status``; *static*: the port's entry in ``get_system_info``.
    """
    attributes, pci = status["attr"], str(static.get("pci_addr", ""))
    ether = (attributes.get("layer_cfg") or {}).get("ether") or {}
    known = ether.get("state", "configured") == "configured"
    cores, mbps = static.get("cores"), round(1e3 * float(attributes["speed"]))
    # a driver that does not know its speed (virtio): TRex then reports its highest, which is not among the card's own
    cut = mbps in CUT_SPEEDS or mbps > max(CUT_SPEEDS)
    return {
        "mac": ether.get("src") or static.get("hw_mac", ""),
        "speed_bps": 1e6 * mbps if not cut or mbps in (static.get("supp_speeds") or ()) else 0.0,
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


def reading(
    totals: Mapping[str, Any],
    ports: Mapping[int, Mapping[str, Any]],
    earliest: Mapping[str, Any],
    latest: Mapping[str, Any],
    asked: float,
) -> CounterReading:
    """Return the counters of ``get_global_stats`` and, by port, ``get_port_stats``, read between two ``ping``.

    *asked*: when, s of this machine's steady clock. Raises Refusal for a counter that is missing or none, ValueError
    for a time that is none.
    """
    counters = {port: {name: _count(row, name, port) for name in PORT_TOTALS} for port, row in ports.items()}
    full, load = _number(totals.get("m_total_queue_full")), _number(totals.get("m_rx_cpu_util"))
    there = time.monotonic()
    return CounterReading(moment(earliest), moment(latest), counters, full, load, asked=asked, moment=there)


def _number(value: object) -> float | None:
    """Return *value* where it is a number, else None."""
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None


def _count(counters: Mapping[str, Any], name: str, port: int) -> int:
    """Return the counter *name* of *port*. Raises Refusal unless it is a whole number of a 64-bit counter."""
    value = counters.get(name)
    count = value if isinstance(value, int | float) and not isinstance(value, bool) else math.nan
    if not 0 <= count <= LARGEST_COUNT or count != int(count):
        raise Refusal("refused", f"its counter {name} of port {port} is {str(value)[:40]!r}; expected 0 to 2**64 - 1")
    return int(count)


def moment(answer: Mapping[str, Any]) -> float:
    """Return the server's own time, s, in its answer to ``ping`` or ``start_traffic``. Raises ValueError."""
    seconds = float(answer["ts"])
    if not math.isfinite(seconds):
        raise ValueError(f"its time is {seconds}")
    return seconds


JOB_DONE, ACQUIRED, ERROR, ATTRIBUTES, SERVER_STOPPED = 4, 5, 7, 8, 100
"""Types of ``trex-event`` messages."""

LONGEST_MESSAGE = 2000
"""Characters of a server's own words that a message repeats."""

MOST_COMPLAINTS = 20
"""Events of a trial that are repeated in words, the last ones."""

PORTS = range(256)
"""Numbers that a port may have."""


def plain_message(error: object) -> str:
    """Return an error or result of the library as one line. Its errors fail in ``str()`` and have colours."""
    text = getattr(error, "msg", None)
    if text is None and hasattr(error, "rc_list"):
        text = "; ".join(str(answer.data) for answer in error.rc_list if not answer.rc)
    if text is None:
        text = f"{type(error).__name__}: {error}" if isinstance(error, Exception) else str(error)
    text = re.sub(r"\x1b\[[0-9;]*m", "", str(text)).replace("***", "")
    lines = (" ".join(line.split()).replace(" : ", ": ") for line in text[: 2 * LONGEST_MESSAGE].splitlines())
    return shortened("; ".join(line for line in lines if line), LONGEST_MESSAGE)


def peak_load(cores: Iterable[Sequence[float]], seconds: float) -> float | None:
    """Return the highest load of a core in the last *seconds*, in per cent; None: not reported.

    At least the last whole second counts.

    *cores*: the load of each second, the latest first. A mean would hide a core that falls behind.
    """
    count = max(1, int(seconds))
    return max((load for core in cores for load in core[:count] if math.isfinite(load)), default=None)


def peak_load_during(cores: Iterable[Sequence[float]], ago: float, took: float, second: float) -> float | None:
    """Return the highest possible load of a core, in per cent, in *took* s that ended *ago* s ago; None: unknown.

    *cores*: the loads of periods of *second* s, the latest first, which ends now. Of a period that is partly outside
    of the time, as much work as possible counts.
    """

    def busy(core: Sequence[float]) -> float:
        within = (min((i + 1) * second, ago + took) - max(i * second, ago) for i in range(len(core)))
        return sum(min(load / 100 * second, max(0.0, time)) for load, time in zip(core, within, strict=True))

    return max((round(100 * busy(core) / took, 1) for core in cores if core), default=None)


class ServerEvents:
    """Events of the server since the trial began. A thread of the library may fill it."""

    def __init__(self, session_id: int) -> None:
        self._session_id = session_id
        self.changed = threading.Condition()
        self.clear()

    def clear(self) -> None:
        """Remove the events of the last trial."""
        self.ended: dict[int, float] = {}
        """When each port had sent all it was to send."""
        self.complaints = deque[str](maxlen=MOST_COMPLAINTS)
        self.refusal: Refusal | None = None
        """The event after which a trial is lost."""
        self.links_down: set[int] = set()
        """Ports whose link was down."""
        self.links_in_doubt = False
        """An attribute of a port has changed: links have to be checked."""

    def record_all(self, answer: Mapping[str, Any]) -> None:
        """Take the events in an answer to ``get_async_events``."""
        for message in answer.get("data") or ():
            if message.get("name") == "trex-event":
                self.record(int(message["type"]), message.get("data"))

    def record(self, kind: int, data: Any) -> None:
        """Take an event of type *kind*, whose *data* may be anything."""
        with self.changed:
            self._record(kind, data if isinstance(data, dict) else {})
            self.changed.notify_all()

    def _record(self, kind: int, data: Mapping[str, Any]) -> None:
        port = data.get("port_id")
        if not isinstance(port, int) or port not in PORTS:
            port = None
        if kind == JOB_DONE and port is not None:
            self.ended[port] = time.monotonic()
        elif kind == ACQUIRED and data.get("session_id") != self._session_id:
            self._complain(f"port {port} was taken by '{str(data.get('who'))[:80]}'", "taken")
        elif kind == ERROR:
            self._complain(f"port {port} reports an error")
        elif kind == ATTRIBUTES and port is not None:
            # some attribute has changed; the event has the link's current state
            link = data["attr"].get("link") if isinstance(data.get("attr"), dict) else None
            if isinstance(link, dict) and link.get("up") is False:
                self.links_down.add(port)
            self.links_in_doubt = True
        elif kind == SERVER_STOPPED:
            self._complain(f"the server was shut down ({str(data.get('cause'))[:200]})", "lost")

    def _complain(self, text: str, kind: str = "") -> None:
        self.complaints.append(plain_message(text))
        if kind:
            self.refusal = Refusal(kind, "; ".join(self.complaints))
