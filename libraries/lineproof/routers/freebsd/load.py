"""How busy a FreeBSD kernel is: processors and their threads, and receive queues.

* ``kern.cp_times``: ticks of each processor (user, nice, system, interrupt, idle), ``stathz`` of them a second:
  they are also the clock, which ``date`` shows in whole seconds only.
* ``dev.<driver>.<unit>``: frames of each queue, under a name that each driver makes up; of names that are not known
  none is read. ``rxcsum`` of cxl counts frames whose checksum the card has checked, as nic-queue-usage takes it.
* ``top`` after the second reading: the threads of each processor, and the queues' where the driver does not say. A
  card's interrupt has a thread of its own (``intr{irq285: t5nex0:0a1}``), or its work is done by the thread of a
  processor (``kernel{if_io_tqg_3}``: iflib; ``sysctl`` has its queues' processors). The names of threads are cut
  after 19 characters, those of ``vmstat -i`` are not: the number of the interrupt joins the two.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

TOP = "top -b -P -H -S -d 2 -s 1 100"
"""Two displays with a second between them, of a hundred threads each; the first one's shares are older than that."""

TIMES = "kern.cp_times"
STATES = ("user", "nice", "system", "softirq", "idle")
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
    """Return the threads of the last display but those that idle, the busiest first."""
    last = text[max(0, text.rfind("last pid:")) :]
    rows = (_THREAD.fullmatch(line) for line in last.splitlines() if len(line) <= LONGEST_ROW)
    threads = (Thread(row[3], int(row[1]), min(1.0, float(row[2]) / 100)) for row in rows if row)
    return tuple(sorted((one for one in threads if not re.match(r"\[?idle\b", one.name)), key=lambda one: -one.share))


def processor_ticks(values: Mapping[str, str]) -> list[Mapping[str, int]]:
    """Return the ticks of each processor by state, ``softirq`` for interrupts; nothing if they are others."""
    words = values.get(TIMES, "").split()
    if len(words) % len(STATES) or not all(re.fullmatch(r"\d{1,19}", word) for word in words):
        return []
    own = (map(int, words[at : at + len(STATES)]) for at in range(0, len(words), len(STATES)))
    return [dict(zip(STATES, numbers, strict=True)) for numbers in own]


def seconds_between(
    before: Sequence[Mapping[str, int]], after: Sequence[Mapping[str, int]], hertz: int
) -> float | None:
    """Return the seconds between two readings of ticks, *hertz* a second; None: not read, or they went backwards."""
    passed = [sum(new.values()) - sum(old.values()) for old, new in zip(before, after, strict=False)]
    if not hertz or len(before) != len(after) or min(passed, default=0) < 0:
        return None
    return max(passed, default=0) / hertz or None


def busiest(threads: Iterable[Thread], cpu: int) -> dict[str, float]:
    """Return those of *threads* that took at least one per cent of processor *cpu*; several of a name together."""
    shares: dict[str, float] = {}
    for one in threads:
        if one.cpu == cpu and one.share >= LEAST_SHARE:
            shares[one.name] = min(1.0, shares.get(one.name, 0.0) + one.share)
    return shares


def interrupts(text: str) -> Mapping[str, int]:
    """Return the interrupts since boot that ``vmstat -i`` shows, by name, as ``irq273: igb1:que 0``."""
    rows = re.finditer(r"^(\S[^\n]*?) +(\d{1,20}) +\d{1,12}$", text, re.MULTILINE)
    return {row[1]: int(row[2]) for row in rows if row[1] != "Total"}


def queue_cpus(
    interface: str, device: Mapping[str, str], threads: Iterable[Thread], names: Iterable[str]
) -> dict[int, int]:
    """Return the processor that the thread of each receive queue's interrupt ran on last.

    *device*: its subtree of ``sysctl``; *names*: of interrupts. Most drivers name a queue's ``igb1:que 0``,
    ``igb0:rxq0``, ``bxe0:fp00``; cxgbe names it by card, port and number, both hexadecimal: ``t5nex0:0a1``.
    """
    ran = {number[1]: one.cpu for one in threads if (number := re.match(r"\[?intr\{irq(\d{1,6}): ", one.name))}
    queue, base = rf"{re.escape(interface)}:(?:que |rxq|fp)(\d{{1,4}})(?::.*)?", 10
    port = re.search(r"\bport=(\d{1,2})\b", device.get("%location", ""))
    if port and re.fullmatch(r"t\dnex\d+", device.get("%parent", "")):
        queue, base = rf"{device['%parent']}:{int(port[1]):x}a([0-9a-f]{{1,3}})", 16
    rows = (re.fullmatch(rf"irq(\d{{1,6}}): {queue}", name) for name in names)
    return {int(row[2], base): ran[row[1]] for row in rows if row and row[1] in ran}
