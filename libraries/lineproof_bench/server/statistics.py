"""The counters of a backend under the names that TRex gives them, and rates of the last moment derived from them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from lineproof.units import FCS

from ..backend import Backend, PortCounters
from .nic import Counted, ServerCard

INTERVAL = 0.2
"""Seconds of the bench's clock over which rates are taken."""
CPU_INTERVAL = 1.0
"""Seconds of the bench's clock over which the CPU's load is taken."""
CPU_HISTORY = 20
"""Loads that are reported."""

ZERO_RATES = (
    "m_active_flows",
    "m_open_flows",
    "m_socket_util",
    "m_tx_cps",
    "m_tx_expected_bps",
    "m_tx_expected_cps",
    "m_tx_expected_pps",
)
ZERO_COUNTS = (
    "m_total_alloc_error",
    "m_total_queue_drop",
    "m_total_clients",
    "m_total_servers",
    "m_active_sockets",
    "m_total_nat_time_out",
    "m_total_nat_time_out_wait_ack",
    "m_total_nat_no_fid",
    "m_total_nat_active",
    "m_total_nat_syn_wait",
    "m_total_nat_open",
    "m_total_nat_learn_error",
)


class Statistics:
    """Counts of *backend* as TRex reports them of *nic*; *now* is the bench's clock in s."""

    def __init__(self, backend: Backend, now: Callable[[], float], nic: ServerCard | None = None) -> None:
        self._backend, self._now, self._nic = backend, now, nic or ServerCard()
        self._read: dict[int, PortCounters] = {}
        """The card's counts when TRex read it last."""
        self._taken: dict[int, PortCounters] = {}
        """The counts that were read as extended counters instead."""
        self._before: dict[int, tuple[float, PortCounters]] = {}
        self._rates: dict[int, tuple[float, float, float, float]] = {}
        self._sampled = now()
        self._used = 0.0
        self._smooth = 0.0
        self._history: deque[float] = deque([0.0] * CPU_HISTORY, CPU_HISTORY)

    def _measure(self, port: int, counters: PortCounters) -> tuple[float, float, float, float]:
        """Tx frames/s, tx L2 bit/s, rx frames/s, rx L2 bit/s of the last INTERVAL or so."""
        now = self._now()
        then, before = self._before.setdefault(port, (now, counters))
        if (past := now - then) >= INTERVAL:
            self._before[port] = now, counters
            self._rates[port] = (
                (counters.opackets - before.opackets) / past,
                8 * (counters.obytes - before.obytes) / past,
                (counters.ipackets - before.ipackets) / past,
                8 * (counters.ibytes - before.ibytes) / past,
            )
        return self._rates.get(port, (0.0, 0.0, 0.0, 0.0))

    def sample_cpu(self) -> None:
        """Take the CPU's load if a second is over. To be called often; it is cheap."""
        if (now := self._now()) - self._sampled < CPU_INTERVAL:
            return
        self._sampled, self._used = now, self._backend.utilisation()
        self._history.appendleft(self._used)
        self._smooth = 0.75 * self._smooth + 0.25 * self._used  # TRex's own filter

    def port(self, port: int) -> dict[str, Any]:
        """The answer to ``get_port_stats``."""
        return self._port(port, self._counters(port))

    def _counters(self, port: int) -> PortCounters:
        """TRex's counters of *port*, which differ from what was really sent and received as the card's do."""
        found, taken, nic = self._backend.counters(port), self._taken.get(port, PortCounters()), self._nic
        self._read[port] = found
        missed = found.ierrors if nic.missed_received else 0
        return found._replace(
            opackets=found.opackets - taken.opackets,
            obytes=found.obytes - taken.obytes,
            ipackets=found.ipackets + missed,
            ibytes=found.ibytes
            - taken.ibytes
            + (missed * found.ibytes // found.ipackets if found.ipackets else 0)
            - (0 if nic.received_fcs else FCS * (found.ipackets + missed)),
            ierrors=found.ierrors * nic.missed_errors,
        )

    def _port(self, port: int, found: PortCounters) -> dict[str, Any]:
        tx_pps, tx_bps, rx_pps, rx_bps = self._measure(port, found)
        return {
            "opackets": found.opackets,
            "obytes": found.obytes,
            "ipackets": found.ipackets,
            "ibytes": found.ibytes,
            "ierrors": found.ierrors,
            "oerrors": found.oerrors,
            "m_total_tx_bps": tx_bps,
            "m_total_tx_pps": tx_pps,
            "m_total_rx_bps": rx_bps,
            "m_total_rx_pps": rx_pps,
            "m_cpu_util": self._smooth,
        }

    def overall(self) -> dict[str, Any]:
        """The answer to ``get_global_stats``."""
        return self._both()[0]

    def published(self) -> dict[str, Any]:
        """The data of ``trex-global``: all of it, the ports' with ``-N`` after the name."""
        found, rows = self._both()
        found["ts"] = {"value": int(self._now() * 1e9), "freq": 1_000_000_000}
        # flows by template: none in this mode
        found |= {"template": [0] * 32, "unknown": 0}
        for index, row in rows.items():
            found.update({f"{name}-{index}": value for name, value in row.items()})
        return found

    def _both(self) -> tuple[dict[str, Any], dict[int, dict[str, Any]]]:
        """The counts of all ports together, and of each."""
        with self._backend.frozen():
            counters = {port.index: self._counters(port.index) for port in self._backend.ports}
        rows = {index: self._port(index, counted) for index, counted in counters.items()}
        found: dict[str, Any] = dict.fromkeys(ZERO_RATES, 0.0) | dict.fromkeys(ZERO_COUNTS, 0)
        for direction, letter in (("tx", "o"), ("rx", "i")):
            found[f"m_{direction}_bps"] = sum(row[f"m_total_{direction}_bps"] for row in rows.values())
            found[f"m_{direction}_pps"] = sum(row[f"m_total_{direction}_pps"] for row in rows.values())
            found[f"m_total_{direction}_pkts"] = sum(row[f"{letter}packets"] for row in rows.values())
            found[f"m_total_{direction}_bytes"] = sum(row[f"{letter}bytes"] for row in rows.values())
        found |= {
            "m_cpu_util": self._smooth,
            "m_cpu_util_raw": self._used,
            # Gbit/s that a core would carry if it were busy all the time
            "m_bw_per_core": found["m_tx_bps"] / 1e9 / (self._smooth / 100) if self._smooth > 0.01 else 0.0,
            "m_rx_cpu_util": 0.0,
            "m_rx_core_pps": found["m_rx_pps"],
            "m_rx_drop_bps": max(0.0, found["m_tx_bps"] - found["m_rx_bps"]),
            "m_platform_factor": 1.0,
            "m_total_queue_full": sum(counted.queue_full for counted in counters.values()),
        }
        return found, rows

    def xstats(self, port: int) -> list[int]:
        """The card's extended counters, in the order of its names."""
        found = self._backend.counters(port)
        sent = self._take(port, found) if self._nic.xstats_take else found
        values: dict[Counted | None, int] = {
            None: 0,
            "received": found.ipackets,
            "sent": sent.opackets,
            "received_bytes": found.ibytes - FCS * found.ipackets,
            "sent_bytes": sent.obytes - FCS * sent.opackets,
            "missed": found.ierrors,
            "unsent": found.oerrors,
            "multicasts": found.multicasts,
            "pauses_received": found.pauses_received,
            "pauses_sent": found.pauses_sent,
        }
        return [values[counted] for _, counted in self._nic.xstats]

    def _take(self, port: int, found: PortCounters) -> PortCounters:
        """Read registers that TRex reads too, and that begin at zero then; returns all that was read so."""
        read, taken = self._read.get(port, PortCounters()), self._taken.get(port, PortCounters())
        self._read[port] = found
        self._taken[port] = taken = PortCounters(
            opackets=taken.opackets + found.opackets - read.opackets,
            obytes=taken.obytes + found.obytes - read.obytes,
            ibytes=taken.ibytes + found.ibytes - read.ibytes,
        )
        return taken

    def utilisation(self) -> dict[str, Any]:
        """The answer to ``get_utilization``: one core, its ports, whole per cents."""
        ports = [port.index for port in self._backend.ports]
        history = [round(load) for load in self._history]
        return {"cpu": [{"history": history, "ports": [*ports, -1, -1][:2]}], "mbuf_stats": {}}
