"""The counters of a Linux interface, and when it sent its first and last frame."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass

from ...errors import TestbedError
from ...visible import shortened, visible
from .agent import Agent

NAMES = ("rx_packets", "rx_bytes", "tx_packets", "tx_bytes", "rx_errors", "rx_missed_errors", "tx_errors", "tx_dropped")
"""Of /sys/class/net/INTERFACE/statistics (Documentation/ABI/testing/sysfs-class-net-statistics of the kernel)."""

WATCH = """
import sys, time
name, frames, seconds, before = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4])
f = open('/sys/class/net/%s/statistics/tx_packets' % name)
def count():
    f.seek(0)
    return int(f.read())
base = last = count()
sys.stdout.write('ready\\n')
sys.stdout.flush()
now = time.monotonic()
until, first, full, still = now + seconds, None, None, now
while now < until:
    time.sleep(0.0005)
    start, now_count, after = time.monotonic(), count(), time.monotonic()
    if now_count != last:
        if first is None and now_count - base > before:
            first = (now, after)
        full, still, last = (now, after), after, now_count
    now = start
    if last - base >= frames or (first and after - still > 1.0):
        break
day = time.time() - time.monotonic()
print('sent', last - base, *('%.6f' % (day + moment) for moment in (first or ()) + (full or () if first else ())))
"""
"""A Python program that watches an interface: arguments interface, frames, seconds, and how many frames come before
those of the trial. It writes how many were sent, and the earliest and the latest moment (Unix time, s) at which the
first of the trial can have been sent, and at which the last can. It ends when all were, or none is for a second."""


@dataclass(frozen=True, slots=True)
class Span:
    """When frames were sent: the earliest and the latest moment for the ``first``, and for the ``last``.

    Unix time in s, by the clock of the host.
    """

    first: tuple[float, float]
    last: tuple[float, float]

    @property
    def least(self) -> float:
        """The least seconds from the first to the last."""
        return max(0.0, self.last[0] - self.first[1])

    @property
    def most(self) -> float:
        """The most seconds from the first to the last."""
        return self.last[1] - self.first[0]

    def here(self, ahead: tuple[float, float]) -> Span:
        """By the clock of this machine, which the host's is *ahead* of by so many seconds, at least and at most."""
        least, most = ahead
        return Span((self.first[0] - most, self.first[1] - least), (self.last[0] - most, self.last[1] - least))


def watch_sending(agent: Agent, frames: int, seconds: float, before: int = 0) -> None:
    """Watch the interface from now on until it has sent *frames*, *seconds* at most. Raises TestbedError.

    *before*: so many of them come before those of the trial.
    """
    name = agent.place.interface
    watch = f"also watch {seconds + 5:.0f} python3 -c {shlex.quote(WATCH)} {name} {frames} {seconds:.3f} {before}"
    agent.ask(
        f'rm -f "$folder/watch"; {watch}\n'
        'n=0; until [ -s "$folder/watch" ] || [ "$n" -gt 200 ]; do n=$((n + 1)); sleep 0.02; done'
    )


def watched_span(agent: Agent) -> Span | None:
    """When the interface sent, of :func:`watch_sending`; None: it sent nothing. Raises TestbedError."""
    seen = agent.ask(
        'n=0; until grep -q "^sent" "$folder/watch" || [ "$n" -gt 150 ]; do n=$((n + 1)); sleep 0.02; done;'
        ' cat "$folder/watch"'
    )
    found = re.search(r"^sent [0-9]+((?: [0-9]+\.[0-9]{6}){4})?$", seen, re.MULTILINE)
    if found is None:
        raise TestbedError(f"the watch on {agent.place.text} gave no answer: {seen.strip()[-200:]}")
    if found[1] is None:
        return None
    begins, began, ends, ended = map(float, found[1].split())
    return Span((begins, began), (ends, ended))


def read_counters(agent: Agent) -> dict[str, int]:
    """The interface's counters now. Raises TestbedError."""
    text = agent.ask(f"cd /sys/class/net/{agent.place.interface}/statistics && cat {' '.join(NAMES)} && cd /")
    words = text.split()
    if len(words) != len(NAMES) or not all(word.isdecimal() for word in words):
        raise TestbedError(f"{agent.place.text}: its counters cannot be read: {text[:100]!r}")
    return dict(zip(NAMES, map(int, words), strict=True))


def read_facts(agent: Agent) -> Mapping[str, str]:
    """``address``, ``carrier``, ``speed`` (Mbit/s), ``mtu`` and ``driver`` of the interface; "" if not known.

    Raises TestbedError.
    """
    name = agent.place.interface
    missing, there = agent.result(f"[ -d /sys/class/net/{name} ] || {{ ls /sys/class/net; false; }}")
    if missing:
        where = agent.place.text.removeprefix(name)
        names = shortened(", ".join(visible(there).split()), 200)
        raise TestbedError(
            f"there is no interface '{name}'{where}; there are: {names}; fix 'interface' in 'ports' of the testbed's"
            " file"
        )
    rows = " ".join(f'"$(cat {item} 2>/dev/null)"' for item in ("address", "carrier", "speed", "mtu"))
    text = agent.ask(
        f"cd /sys/class/net/{name} && printf '%s\\n' {rows}"
        ' "$(basename "$(readlink device/driver 2>/dev/null)")" && cd /'
    )
    found = dict(zip(("address", "carrier", "speed", "mtu", "driver"), text.split("\n"), strict=False))
    if not found["driver"]:
        # a virtual interface reports a speed that it does not have
        found["speed"] = ""
    return found
