"""The counters of a Linux interface, and when it sent its first and last frame."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping

from ...errors import TestbedError
from .agent import Agent

NAMES = ("rx_packets", "rx_bytes", "tx_packets", "tx_bytes", "rx_errors", "rx_missed_errors", "tx_errors", "tx_dropped")
"""Of /sys/class/net/INTERFACE/statistics (Documentation/ABI/testing/sysfs-class-net-statistics of the kernel)."""

WATCH = """
import sys, time
name, frames, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
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
    before, now_count, after = time.monotonic(), count(), time.monotonic()
    if now_count != last:
        if first is None:
            first = (now, after)
        full, still, last = (now, after), after, now_count
    now = before
    if last - base >= frames or (first and after - still > 1.0):
        break
if first:
    print('sent', last - base, '%.6f' % max(0.0, full[0] - first[1]), '%.6f' % (full[1] - first[0]))
else:
    print('sent 0 0 0')
"""
"""A Python program that watches an interface: arguments interface, frames and seconds. It writes how many frames were
sent, and the least and the most seconds from the first to the last. It ends when all were, or none is for a second."""


def watch_sending(agent: Agent, frames: int, seconds: float) -> None:
    """Watch the interface from now on until it has sent *frames*, *seconds* at most. Raises TestbedError."""
    name = agent.place.interface
    watch = f"also watch {seconds + 5:.0f} python3 -c {shlex.quote(WATCH)} {name} {frames} {seconds:.3f}"
    agent.ask(
        f'rm -f "$folder/watch"; {watch}\n'
        'n=0; until [ -s "$folder/watch" ] || [ "$n" -gt 200 ]; do n=$((n + 1)); sleep 0.02; done'
    )


def watched_seconds(agent: Agent) -> tuple[float, float]:
    """The least and the most seconds that the interface took, of :func:`watch_sending`. Raises TestbedError."""
    seen = agent.ask(
        'n=0; until grep -q "^sent" "$folder/watch" || [ "$n" -gt 150 ]; do n=$((n + 1)); sleep 0.02; done;'
        ' cat "$folder/watch"'
    )
    found = re.search(r"^sent [0-9]+ ([0-9.]+) ([0-9.]+)$", seen, re.MULTILINE)
    if found is None:
        raise TestbedError(f"the watch on {agent.place.text} gave no answer: {seen.strip()[-200:]}")
    return float(found[1]), float(found[2])


def read_counters(agent: Agent) -> dict[str, int]:
    """The interface's counters now. Raises TestbedError."""
    text = agent.ask(f"cd /sys/class/net/{agent.place.interface}/statistics && cat {' '.join(NAMES)} && cd /")
    words = text.split()
    if len(words) != len(NAMES) or not all(word.isdecimal() for word in words):
        raise TestbedError(f"{agent.place.text}: its counters cannot be read: {text[:100]!r}")
    return dict(zip(NAMES, map(int, words), strict=True))


def read_facts(agent: Agent) -> Mapping[str, str]:
    """``address``, ``carrier``, ``speed`` (Mbit/s), ``mtu`` and ``driver`` of the interface; "" if not known."""
    name = agent.place.interface
    rows = " ".join(f'"$(cat {item} 2>/dev/null)"' for item in ("address", "carrier", "speed", "mtu"))
    text = agent.ask(
        f"[ -d /sys/class/net/{name} ] && cd /sys/class/net/{name} && printf '%s\\n' {rows}"
        ' "$(basename "$(readlink device/driver 2>/dev/null)")" && cd /'
    )
    found = dict(zip(("address", "carrier", "speed", "mtu", "driver"), text.split("\n"), strict=False))
    if not found["driver"]:
        # a virtual interface reports a speed that it does not have
        found["speed"] = ""
    return found
