"""How busy VPP's workers and nodes are: ``clear runtime``, some seconds of traffic, ``show runtime``.

The share of a core is cycles by its clock (``show cpu``). An input node's cycles are also those of polling empty
queues: of them, *busy* takes the share of its calls that found frames, which is about what they cost at most loads.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from ..core.packet_cost import is_input, packet_costs
from ..core.router_facts import Placement
from ..core.telemetry import NodeRuntime, Telemetry
from ..core.under_load import NodeLoad, QueueLoad, RouterLoad, WorkerLoad, per_second
from ..errors import TestbedError
from .fact_reading import Answers, matched
from .linux_load import THROTTLES, throttling
from .vpp_facts import parse_hardware, parse_placement
from .vpp_losses import FREE_BUFFERS, parse_buffers
from .vpp_output import ThreadRuntime, parse_clock, parse_errors, parse_interface_rows, parse_runtime, strip_banner

T = TypeVar("T")

_TWICE = ("clock", "errors", "interface", "hardware-interfaces")
_ONCE = ("cpu", "interface rx-placement", "buffers", "runtime")
_XSTAT = re.compile(r"^\s+rx[_ ]q(\d{1,4})[_ ]?(packets|errors)\s+(\d{1,20})\s*$", re.MULTILINE)


def vpp_load(
    answers: Answers, interfaces: Sequence[str], clear: Callable[[], None], wait: Callable[[], None]
) -> RouterLoad:
    """Return what VPP reports around *wait*. *clear*: ``clear runtime``. What cannot be read is in ``unread``."""
    first = answers.ask(THROTTLES, *(("vppctl", "show", *name.split()) for name in _TWICE))
    cleared = True
    try:
        clear()
    except TestbedError as error:
        answers.unread["vppctl clear runtime"], cleared = str(error), False
    wait()
    last = answers.ask(*(("vppctl", "show", *name.split()) for name in reversed((*_TWICE, *_ONCE))), THROTTLES)

    def of(output: Mapping[str, str], name: str, parse: Callable[[str], T]) -> T | None:
        command = f"vppctl show {name}"
        try:
            return parse(output[command]) if output[command] else None
        except TestbedError as error:
            answers.unread[command] = str(error)
            return None

    clocks = [of(output, "clock", parse_clock) for output in (first, last)]
    seconds = clocks[1] - clocks[0] if clocks[0] is not None and clocks[1] is not None else None
    if seconds is not None and seconds <= 0:  # VPP was started again
        seconds = None
    counters: dict[str, float] = {}
    errors = [of(output, "errors", parse_errors) or {} for output in (first, last)]
    # a reason that did not occur before is not shown
    counters |= per_second(
        {**dict.fromkeys(errors[1], 0), **errors[0]} if first["vppctl show errors"] else {}, errors[1], seconds
    )
    counters |= throttling(answers, first, last, seconds)
    rows = [of(output, "interface", parse_interface_rows) for output in (first, last)]
    if rows[0] is not None and rows[1] is not None:
        for name in interfaces:
            old, new = rows[0].get(name, {}), rows[1].get(name, {})
            rates = per_second({**dict.fromkeys(new, 0), **old}, new, seconds)
            counters |= {f"{key} at {name}": rate for key, rate in rates.items()}
    hertz = clock_hz(of(last, "cpu", strip_banner) or "")
    blocks = (of(last, "runtime", parse_runtime) or ()) if cleared else ()
    workers = tuple(found for block in blocks if (found := worker_load(block, hertz)) is not None)
    placement = of(last, "interface rx-placement", lambda text: parse_placement(strip_banner(text))) or ()
    cards = [
        of(output, "hardware-interfaces", lambda text: parse_hardware(strip_banner(text))) for output in (first, last)
    ]
    return RouterLoad(
        workers=workers,
        queues=queue_loads(placement, interfaces, workers, cards[0] or {}, cards[1] or {}, seconds),
        raw={command: text for command, text in last.items() if text},
        seconds=seconds,
        counters=counters,
        condition={
            f"{FREE_BUFFERS}{pool.name}": f"{pool.available} of {pool.total}, {pool.cached} more in threads' caches"
            for pool in of(last, "buffers", lambda text: tuple(parse_buffers(strip_banner(text)))) or ()
        },
        unread=answers.unread,
    )


def clock_hz(text: str) -> float | None:
    """``show cpu``: the frequency of the clock that VPP counts cycles by."""
    found = matched(r"^Base frequency: +(\d+\.\d+) GHz", text)
    return float(found) * 1e9 or None if found else None


def worker_load(block: ThreadRuntime, hertz: float | None) -> WorkerLoad | None:
    """A thread's block of ``show runtime``; None for a main thread that handled no frames."""
    seconds = block.seconds
    handled = [node for node in block.nodes if node.vectors > 0]
    if not block.thread.startswith("vpp_wk") and not handled:
        return None
    if seconds <= 0:
        return WorkerLoad(block.thread)
    inputs = [node for node in block.nodes if is_input(node)]
    costs = packet_costs(Telemetry(None, {}, runtime=block.nodes))
    cost = costs[0] if costs else None
    busy = None
    if hertz:
        graph_calls = max((node.calls for node in handled if not is_input(node)), default=0)
        cycles = sum(node.clocks * node.vectors for node in handled if not is_input(node))
        for node in inputs:
            if node.vectors and node.calls:
                cycles += node.clocks * node.vectors * min(1.0, graph_calls / node.calls)
        busy = min(1.0, cycles / (hertz * seconds))
    return WorkerLoad(
        block.thread,
        busy,
        sum(node.vectors for node in inputs) / seconds,
        cost.vectors_per_call if cost else None,
        cost.total if cost else None,
        tuple(sorted((_node(node, seconds, hertz) for node in handled), key=lambda node: -(node.share or 0.0))),
    )


def _node(node: NodeRuntime, seconds: float, hertz: float | None) -> NodeLoad:
    share = min(1.0, node.clocks * node.vectors / (hertz * seconds)) if hertz else None
    return NodeLoad(node.name, node.vectors / seconds, node.clocks, node.vectors_per_call, share)


def queue_loads(
    placement: Sequence[Placement],
    interfaces: Sequence[str],
    workers: Sequence[WorkerLoad],
    before: Mapping[str, str],
    after: Mapping[str, str],
    seconds: float | None,
) -> tuple[QueueLoad, ...]:
    """Frames of each queue as its card counts them (DPDK).

    Of another card: those of its worker, if that serves no other queue; none, if the worker received none.
    """
    of_worker = {worker.thread: worker.packets_per_s for worker in workers}
    served = [row.worker for row in placement]
    found = []
    for row in placement:
        if row.interface not in interfaces:
            continue
        rates = _card_rates(before.get(row.interface, ""), after.get(row.interface, ""), seconds)
        alone = of_worker.get(row.worker)
        if alone and served.count(row.worker) > 1:
            alone = None
        packets = rates.get(f"{row.queue} packets", alone)
        found.append(QueueLoad(row.interface, row.queue, row.worker, packets, rates.get(f"{row.queue} errors")))
    return tuple(found)


def _card_rates(before: str, after: str, seconds: float | None) -> dict[str, float]:
    # the card's zeros are not shown
    old, new = ({f"{row[1]} {row[2]}": int(row[3]) for row in _XSTAT.finditer(text)} for text in (before, after))
    return per_second({**dict.fromkeys(new, 0), **old}, new, seconds) if before else {}
