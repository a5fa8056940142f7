"""A router's facts as an HTML table and in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

from ..core.router_facts import NicFacts, RouterFacts
from .tables import SIMULATED, STYLE

NOT_READ = "not read"

_STYLE = """
.lr-trials td.fact, .lr-trials th.fact { text-align: left; white-space: normal; }
.lr-trials td.odd { color: #8a4b00; font-weight: 600; }
"""


def facts_fragment(facts: RouterFacts, simulated: bool = False, title: str = "") -> str:
    """The facts for use inside another page, as Robot's log; all text is escaped.

    *title*: of another machine, of which only what was read is shown.
    """
    shown = known_rows(facts) if title else fact_rows(facts)
    rows = "".join(
        f'<tr><td class="fact">{escape(name)}</td><td class="fact">{escape(value)}</td></tr>\n' for name, value in shown
    )
    odd = "".join(f'<tr><td class="fact odd" colspan="2">{escape(text)}</td></tr>\n' for text in facts.differences)
    marked = f'<div class="simulated">{SIMULATED}</div>' if simulated else ""
    unread = "".join(
        f'<tr><td class="fact">{escape(command)}</td><td class="fact">{escape(why)}</td></tr>\n'
        for command, why in facts.unread.items()
    )
    missing = (
        f"<details><summary>commands without an answer: {len(facts.unread)}</summary><table>{unread}</table></details>"
        if unread
        else ""
    )
    return (
        f'<style>{STYLE}{_STYLE}</style><div class="lr-trials">{marked}<h1>{escape(title or "The router")}</h1>\n'
        f'<div class="wide"><table><tbody>\n{odd}{rows}</tbody></table></div>{missing}</div>'
    )


def fact_rows(facts: RouterFacts) -> Iterator[tuple[str, str]]:
    """Name and value of each fact; what was not read is there too."""
    yield "operating system", facts.os or NOT_READ
    yield "kernel", facts.kernel or NOT_READ
    yield "version", facts.version or NOT_READ
    yield "firmware", facts.firmware or NOT_READ
    yield "processor", facts.cpu or NOT_READ
    yield "cores", _words(facts.cores)
    yield "threads per core", _words(facts.threads_per_core)
    yield "workers", _words(facts.workers)
    yield from facts.other.items()
    yield "irqbalance", {None: NOT_READ, True: "running", False: "not running"}[facts.irqbalance]
    yield "firewall", facts.firewall or NOT_READ
    yield "routes", _words(facts.routes)
    for nic in facts.nics:
        yield f"card of {nic.interface}", ", ".join(f"{name} {value}" for name, value in _card(nic))
    by_worker: dict[str, list[str]] = {}
    for row in facts.placement:
        by_worker.setdefault(row.worker, []).append(f"{row.interface} queue {row.queue}")
    placed = "; ".join(f"{worker}: {', '.join(queues)}" for worker, queues in by_worker.items())
    yield "queues served by", placed or NOT_READ


def known_rows(facts: RouterFacts) -> Iterator[tuple[str, str]]:
    """:func:`fact_rows` without what was not read."""
    for name, value in fact_rows(facts):
        known = ", ".join(part for part in value.split(", ") if NOT_READ not in part)
        if known:
            yield name, known


def _card(nic: NicFacts) -> Iterator[tuple[str, str]]:
    yield "model", nic.model or NOT_READ
    yield "driver", nic.driver or NOT_READ
    yield "firmware", nic.firmware or NOT_READ
    yield "PCI address", nic.pci_address or NOT_READ
    has, wants = pcie_text(nic.pcie_width, nic.pcie_speed), pcie_text(nic.pcie_width_max, nic.pcie_speed_max)
    yield "PCIe", f"{has} of {wants}" if has or wants else NOT_READ
    yield "NUMA node", _words(nic.numa_node)
    yield "receive queues", _words(nic.rx_queues)
    yield "rings", f"rx {_words(nic.ring_rx)} tx {_words(nic.ring_tx)}"
    yield "RSS", NOT_READ if nic.rss_fields is None else " ".join(nic.rss_fields) or "none"
    yield "RSS key", nic.rss_key or NOT_READ
    yield "offloads", NOT_READ if nic.offloads is None else " ".join(nic.offloads) or "none"
    yield "flow control", nic.flow_control or NOT_READ
    if nic.cpus_of_queue:
        yield "interrupts", " ".join(f"{queue}→CPU {cpus}" for queue, cpus in sorted(nic.cpus_of_queue.items()))
    if nic.steered_to:
        yield "steered (RPS)", " ".join(f"{queue}→CPU {cpus}" for queue, cpus in sorted(nic.steered_to.items()))


def pcie_text(width: int | None, speed: float | None) -> str:
    """``x8 8 GT/s``; what is not known is left out."""
    return " ".join([*([f"x{width}"] if width else []), *([f"{speed:g} GT/s"] if speed else [])])


def _words(number: int | None) -> str:
    return NOT_READ if number is None else f"{number}"


def short_facts(facts: RouterFacts) -> Mapping[str, str]:
    """The few facts for Allure's list of the environment; only those that were read."""
    cards = dict.fromkeys(f"{nic.model or nic.driver}" for nic in facts.nics if nic.model or nic.driver)
    found: dict[str, Any] = {
        "Router system": facts.os,
        "Router processor": facts.cpu,
        "Router workers": facts.workers,
        "Router cards": ", ".join(cards),
    }
    return {name: str(value) for name, value in found.items() if value}
