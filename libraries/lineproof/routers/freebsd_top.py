"""Which kernel thread runs on which processor, by ``top -PHS`` of FreeBSD, and so which processor serves a queue.

A card's interrupt has a thread of its own (``intr{irq285: t5nex0:0a1}``), or its work is done by the thread of a
processor (``kernel{if_io_tqg_3}``: iflib; ``sysctl`` has its queues' processors). The names of threads are cut after
19 characters, those of ``vmstat -i`` are not: the number of the interrupt joins the two.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

TOP = ("top", "-b", "-P", "-H", "-S", "-d", "2", "-s", "1", "100")
"""Two displays with a second between them, of a hundred threads each; the first one's shares are older than that."""

LEAST_SHARE = 0.01
LONGEST_ROW = 300
_THREAD = re.compile(r" *\d+ \S.* (\d{1,4}) +(?:\d+:\d\d(?:\.\d+)?|[\d.]+H) +(\d{1,4}\.\d+)% +(\S.*?) *")


@dataclass(frozen=True, slots=True)
class Thread:
    """A thread, the processor it ran on last, and its share 0 to 1 of one."""

    name: str
    cpu: int
    share: float


def parse_top(text: str) -> tuple[Thread, ...]:
    """The threads of the last display but those that idle, the busiest first."""
    last = text[max(0, text.rfind("last pid:")) :]
    rows = (_THREAD.fullmatch(line) for line in last.splitlines() if len(line) <= LONGEST_ROW)
    found = [Thread(row[3], int(row[1]), min(1.0, float(row[2]) / 100)) for row in rows if row]
    return tuple(sorted((one for one in found if not re.match(r"\[?idle\b", one.name)), key=lambda one: -one.share))


def busiest(threads: Iterable[Thread], cpu: int) -> dict[str, float]:
    """Those of *threads* that took at least one per cent of processor *cpu*; several of a name together."""
    found: dict[str, float] = {}
    for one in threads:
        if one.cpu == cpu and one.share >= LEAST_SHARE:
            found[one.name] = min(1.0, found.get(one.name, 0.0) + one.share)
    return found


def interrupt_cpus(threads: Iterable[Thread], interrupts: Iterable[str]) -> dict[str, int]:
    """Interrupt -> the processor its thread ran on last. *interrupts*: by their names in ``vmstat -i``."""
    ran = {number[1]: one.cpu for one in threads if (number := re.match(r"\[?intr\{irq(\d{1,6}): ", one.name))}
    found = {}
    for name in interrupts:
        number = re.match(r"irq(\d{1,6}): (.+)", name)
        if number and number[1] in ran:
            found[number[2]] = ran[number[1]]
    return found


def queue_cpus(interface: str, device: Mapping[str, str], cpus: Mapping[str, int]) -> dict[int, int]:
    """Receive queue of *interface* -> processor, as *cpus* of :func:`interrupt_cpus` has it.

    *device*: its ``sysctl``, names without the subtree's. Most drivers name a queue's interrupt ``igb1:que 0``,
    ``igb0:rxq0``, ``bxe0:fp00``; cxgbe names it by card, port and number, both hexadecimal: ``t5nex0:0a1``.
    """
    pattern = rf"{re.escape(interface)}:(?:que |rxq|fp)(\d{{1,4}})(?::.*)?"
    port = re.search(r"\bport=(\d{1,2})\b", device.get("%location", ""))
    if port and re.fullmatch(r"t\dnex\d+", device.get("%parent", "")):
        hexadecimal = rf"{device['%parent']}:{int(port[1]):x}a([0-9a-f]{{1,3}})"
        rows = ((re.fullmatch(hexadecimal, name), cpu) for name, cpu in cpus.items())
        return {int(row[1], 16): cpu for row, cpu in rows if row}
    rows = ((re.fullmatch(pattern, name), cpu) for name, cpu in cpus.items())
    return {int(row[1]): cpu for row, cpu in rows if row}
