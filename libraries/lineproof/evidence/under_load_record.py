"""The router's reports under load and the reasons of a FAIL, as records, and a table of the former."""

from __future__ import annotations

import json
from collections.abc import Mapping
from html import escape
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from ..core.explanation import Why
from ..core.router_facts import RouterFacts
from ..core.under_load import UnderLoad
from ..units import si
from .json_fields import field_data
from .records import UNDER_LOAD
from .tables import SIMULATED, STYLE

KEPT_ELSEWHERE = ("raw", "sampled")
"""Fields of UnderLoad that are texts and a picture of their own."""

_MOST_NODES, _MOST_THREADS = 6, 4
_STYLE = ".lr-trials td.fact, .lr-trials th.fact { text-align: left; white-space: normal; }"


def under_load_data(
    found: UnderLoad, run: str, simulated: bool, requirement: int, sentence: str, flame_graph: str
) -> dict[str, Any]:
    """The record as JSON data (schema ``lineproof.under_load/1``); the raw output is in ``telemetry/``.

    *flame_graph*: the picture's file in the run's folder, or "".
    """
    head: Mapping[str, Any] = {"schema": UNDER_LOAD, "run": run, "simulated": simulated}
    figures = field_data(found, without=KEPT_ELSEWHERE)
    return {**head, "requirement": requirement, "sentence": sentence, **figures, "flame_graph": flame_graph}


def under_load_fragment(found: UnderLoad, title: str, simulated: bool = False) -> str:
    """The readings as an HTML table for Robot's log; all text is escaped."""
    marked = f'<div class="simulated">{SIMULATED}</div>' if simulated else ""
    seconds = "" if found.seconds is None else f", read over {found.seconds:.2f} s"
    rates = f"offered {si(found.offered_pps, 'pps')}, forwarded {si(found.forwarded_pps, 'pps')}{seconds}"
    parts = [
        _table(
            ("worker", "busy", "frames/s", "vectors/call", "cycles/packet", "nodes by share of the core"),
            [
                (
                    worker.thread,
                    _percent(worker.busy),
                    _rate(worker.packets_per_s),
                    _number(worker.vectors_per_call),
                    _number(worker.cycles_per_packet),
                    ", ".join(
                        f"{node.name} {_percent(node.share)} ({_number(node.clocks)} clocks)"
                        for node in worker.nodes[:_MOST_NODES]
                    ),
                )
                for worker in found.workers
            ],
        ),
        _table(
            ("processor", "busy", "in interrupts", "steal", "frames/s", "threads"),
            [
                (
                    f"CPU {cpu.cpu}",
                    _percent(cpu.busy),
                    _percent(cpu.on_packets),
                    _percent(cpu.steal),
                    _rate(cpu.packets_per_s),
                    ", ".join(f"{name} {_percent(share)}" for name, share in list(cpu.threads.items())[:_MOST_THREADS]),
                )
                for cpu in found.cpus
            ],
        ),
        _table(
            ("receive queue", "served by", "frames/s", "drops/s"),
            [
                (
                    f"{queue.interface} {queue.queue}",
                    queue.worker_or_cpu or "not read",
                    _rate(queue.packets_per_s),
                    _rate(queue.drops_per_s),
                )
                for queue in found.queues
            ],
        ),
        _table(("condition", "reading"), list(found.condition.items())),
        _table(("counter that rose", "per second"), [(name, _rate(rate)) for name, rate in found.counters.items()]),
        _table(("not read", "why"), list(found.unread.items())),
    ]
    return (
        f'<style>{STYLE}{_STYLE}</style><div class="lr-trials">{marked}<h1>{escape(title)}</h1>'
        f"<p>{escape(rates)}</p>{''.join(parts)}</div>"
    )


def _table(titles: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    if not rows:
        return ""
    head = "".join(f'<th class="fact">{escape(title)}</th>' for title in titles)
    body = "".join(
        "<tr>" + "".join(f'<td class="fact">{escape(cell)}</td>' for cell in row) + "</tr>\n" for row in rows
    )
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>\n{body}</tbody></table></div>'


def _percent(share: float | None) -> str:
    return "not read" if share is None else f"{100 * share:.1f} %"


def _rate(rate: float | None) -> str:
    return "not read" if rate is None else f"{rate:,.0f}"


def _number(value: float | None) -> str:
    return "not read" if value is None else f"{value:.4g}"


WHY, LOAD = "why", "load"
"""Keys in the extra data of a requirement's record, and in what is there."""

T = TypeVar("T")


def why_data(why: Why) -> dict[str, Any]:
    """*why* as JSON data. The router's own output is kept elsewhere."""
    load = None if why.load is None else field_data(why.load, without=KEPT_ELSEWHERE)
    return {"explanations": [found.to_json() for found in why.explanations], LOAD: load}


def recorded_load(extra: Mapping[str, Any]) -> UnderLoad | None:
    """The router's load of a requirement's *extra* data; None where it has none that can be read."""
    why = extra.get(WHY)
    return _read(UnderLoad, why.get(LOAD)) if isinstance(why, Mapping) else None


def recorded_facts(data: Any) -> RouterFacts | None:
    """The router's facts from their JSON *data*; None where these are none."""
    return _read(RouterFacts, data)


def _read(kind: type[T], data: Any) -> T | None:
    if not isinstance(data, Mapping):
        return None
    try:
        return TypeAdapter(kind).validate_json(json.dumps(data))
    except ValidationError:
        return None
