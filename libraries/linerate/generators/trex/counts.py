"""The counts of a trial as the client's process answers them, made an outcome."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any

from ...counts.latency import LatencyCount
from ...counts.trial import DirectionCount, Fault, Load, Outcome, Problem
from ..base import Direction

CLOCK_JUMP = 0.5
"""Seconds by which the time of day may part from the steady clock in one trial (a set clock, a suspended machine)."""


def outcome(
    answer: Mapping[str, Any],
    load: Load,
    duration: float,
    directions: tuple[Direction, ...],
    clock_speed: float = 1.0,
    intended: Mapping[str, int] | None = None,
) -> Outcome:
    """The counts of a trial as the client's process answered them, with what they show to be wrong.

    *intended*: frames due by sending port, where they are not *load* x *duration*.

    ``elapsed`` is on the testbed's clock, but taken on the wall. It is known to lie within a range: sending began between
    the start's request and its answer, and ended before the message of its end came, by no more than that message took
    (the server's pause between two looks, and the way of a message as measured in this trial). Where *duration* lies in
    this range it is taken, else the middle. The truth is within ``elapsed`` +- the reading ``elapsed_uncertainty``,
    both s of the testbed's clock: on an idle machine some 20 ms x *clock_speed*.

    Readings: ``cpu_util`` per cent, the busiest that one of the generator's cores was in a second of sending;
    ``rx_cpu_util`` per cent, after sending;
    ``queue_full`` times that a transmit queue was full, which is no fault as long as all frames were sent;
    ``ierrors`` frames that receiving ports got with errors or missed, ``oerrors`` that sending ports failed to send;
    ``drain`` s of the testbed's clock.
    """
    before, after = answer["before"], answer["after"]
    least, most = (float(value) * clock_speed for value in answer["elapsed"])
    elapsed = duration if least <= duration <= most else (least + most) / 2
    problems = [Problem(Fault.GENERATOR, text) for text in answer["complaints"]]
    problems += [Problem(Fault.LINK_DOWN, f"generator port {port}") for port, up in answer["links"].items() if not up]

    def difference(port: int, name: str) -> int:
        found = int(after[str(port)][name]) - int(before[str(port)][name])
        if found < 0:
            problems.append(Problem(Fault.COUNTERS, f"{name} of generator port {port} fell by {-found}"))
        return max(0, found)

    counted = tuple(
        DirectionCount(
            tx_port=direction.tx_port,
            rx_port=direction.rx_port,
            intended=(intended or {}).get(str(direction.tx_port), round(load.pps * duration)),
            offered=difference(direction.tx_port, "opackets"),
            forwarded=difference(direction.rx_port, "ipackets"),
            offered_bytes=difference(direction.tx_port, "obytes"),
            forwarded_bytes=difference(direction.rx_port, "ibytes"),
        )
        for direction in directions
    )
    unsent = {direction.tx_port: difference(direction.tx_port, "oerrors") for direction in directions}
    for direction in directions:
        if failed := unsent[direction.tx_port]:
            problems.append(Problem(Fault.GENERATOR, f"port {direction.tx_port} failed to send {failed} frames"))
    missed = [difference(direction.rx_port, "ierrors") for direction in directions]
    lossy = [(item, count) for item, count in zip(counted, missed, strict=True) if item.lost]
    worst = max(lossy, key=lambda row: row[0].loss_ratio, default=None)
    if any(missed) and (worst is None or worst[0].lost <= worst[1]):
        # what the worst way lost the generator missed itself; beyond that, what is lost is the router's loss
        named = ", ".join(
            f"{count} at port {direction.rx_port}" for direction, count in zip(counted, missed, strict=True) if count
        )
        problems.append(Problem(Fault.GENERATOR, f"frames received with errors or missed at the generator: {named}"))
    queue_full = _global(after, "m_total_queue_full") - _global(before, "m_total_queue_full")
    if abs(float(answer.get("clock_jump", 0))) > CLOCK_JUMP:
        problems.append(Problem(Fault.CLOCK, f"it moved by {answer['clock_jump']:+.1f} s during the trial"))
    if not answer["finished"]:
        problems.append(Problem(Fault.STRETCHED, f"still sending after {elapsed:.1f} s, stopped"))
    return Outcome(
        load=load,
        duration=duration,
        elapsed=elapsed,
        started=float(answer["started"]),
        directions=counted,
        problems=tuple(problems),
        readings={
            "cpu_util": float(answer["cpu_util"]),
            "rx_cpu_util": float(answer["rx_cpu_util"]),
            "elapsed_uncertainty": max(elapsed - least, most - elapsed),
            "ierrors": float(sum(missed)),
            "oerrors": float(sum(unsent.values())),
            "queue_full": max(0.0, queue_full),
            "drain": float(answer["drained"]) * clock_speed,
        },
        latency=tuple(
            LatencyCount(**{**item, "histogram": {int(key): count for key, count in item["histogram"].items()}})
            for item in answer.get("latency", ())
        ),
    )


def _global(counters: Mapping[str, Any], name: str) -> float:
    with contextlib.suppress(KeyError, TypeError, ValueError):
        return float(counters["global"][name])
    return 0.0
