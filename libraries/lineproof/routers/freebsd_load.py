"""How busy a FreeBSD router's processors and receive queues are: the same counters read twice, while traffic flows.

* ``kern.cp_times``: ticks of each processor (user, nice, system, interrupt, idle), ``stathz`` of them a second: they
  are also the clock, which ``date`` shows in whole seconds only.
* ``dev.<driver>.<unit>``: frames of each queue, under a name that each driver makes up; of names that are not known
  none is read. ``rxcsum`` of cxl counts the frames whose checksum the card has checked, as nic-queue-usage takes it.
* ``top`` after the second reading: the threads of each processor, and the queues' where the driver does not say. A
  card's interrupt has a thread of its own (``intr{irq285: t5nex0:0a1}``), or its work is done by the thread of a
  processor (``kernel{if_io_tqg_3}``: iflib; ``sysctl`` has its queues' processors). The names of threads are cut after
  19 characters, those of ``vmstat -i`` are not: the number of the interrupt joins the two.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from ..core.under_load import CpuLoad, QueueLoad, RouterLoad, per_second
from .fact_reading import Answers, counted
from .freebsd_losses import parse_device, sysctl_subtree

_QUEUE_PACKETS = re.compile(
    r"queue(\d{1,4})\.rx_packets|queue_rx_(\d{1,4})\.rx_packets|pf\.(?:que|rxq)(\d{1,4})\.(?:rx_)?packets"
    r"|rxq\.(\d{1,4})\.rxcsum|rxstat(\d{1,4})\.packets|queue\.(\d{1,4})\.rx_ucast_packets"
    r"|stat\.rx_ring(\d{1,4})\.packets|stats\.rx\.queue(\d{1,4})\.rx_pkts"
)
"""ix, igb; em; ixl; cxl; mce; bxe, mlxen and oce by ``bxe_add_sysctls``, ``mlx4_en_sysctl_stat`` and
``oce_add_stats_sysctls_…`` of FreeBSD's ``sys/dev/``: ``bxe/bxe.c``, ``mlx4/mlx4_en/mlx4_en_netdev.c``,
``oce/oce_sysctl.c``. bxe counts unicast frames alone."""
_CPU = re.compile(r"iflib\.rxq(\d{1,4})\.cpu")
_CLOCK, _TIMES = "sysctl -n kern.clockrate", "sysctl -n kern.cp_times"
STATES = 5
NOBODY: Mapping[int, int] = MappingProxyType({})


def freebsd_load(answers: Answers, interfaces: Sequence[str], wait: Callable[[], None]) -> RouterLoad:
    """Return what the kernel reports around *wait*. Never raises TestbedError: what cannot be read is in ``unread``."""
    devices = {name: device for name in interfaces if (device := sysctl_subtree(name))}
    commands = [tuple(_CLOCK.split()), tuple(_TIMES.split()), ("vmstat", "-i")]
    commands += [("sysctl", device) for device in devices.values()]
    before = answers.ask(*commands)
    wait()
    after = answers.ask(*commands, TOP)
    threads = parse_top(after[" ".join(TOP)])
    hertz = counted(r"stathz = (\d+)", after[_CLOCK])
    old, new = processor_ticks(before[_TIMES]), processor_ticks(after[_TIMES])
    seconds = elapsed(old, new, hertz)
    interrupted = interrupts(after["vmstat -i"])
    counters = per_second(interrupts(before["vmstat -i"]), interrupted, seconds)
    interrupted_cpus = interrupt_cpus(threads, interrupted)
    queues: list[QueueLoad] = []
    for name, device in devices.items():
        texts = before[f"sysctl {device}"], after[f"sysctl {device}"]
        lost = per_second(parse_device(texts[0], name), parse_device(texts[1], name), seconds)
        counters |= {f"sysctl {key} at {name}": rate for key, rate in lost.items()}
        rows = (line.removeprefix(f"{device}.").partition(": ") for line in texts[1].splitlines())
        servers = queue_cpus(name, {row[0]: row[2] for row in rows}, interrupted_cpus)
        queues += queue_loads(name, *texts, seconds, servers)
    return RouterLoad(
        queues=tuple(queues),
        cpus=tuple(replace(cpu, threads=busiest(threads, cpu.cpu)) for cpu in cpu_loads(old, new)),
        raw={
            f"{command} {moment}": text
            for moment, output in (("before", before), ("after", after))
            for command, text in output.items()
            if text
        },
        seconds=seconds,
        counters=counters,
        unread=answers.unread,
    )


def processor_ticks(text: str) -> tuple[tuple[int, ...], ...]:
    """``kern.cp_times``: five numbers of each processor; nothing if they are others."""
    words = text.split()
    if not words or len(words) % STATES or not all(re.fullmatch(r"\d{1,19}", word) for word in words):
        return ()
    numbers = tuple(map(int, words))
    return tuple(numbers[at : at + STATES] for at in range(0, len(numbers), STATES))


def elapsed(before: Sequence[Sequence[int]], after: Sequence[Sequence[int]], hertz: int | None) -> float | None:
    """Seconds between two readings of the processors' ticks; None if they were not read or went backwards."""
    if not hertz or not before or len(before) != len(after):
        return None
    passed = [sum(new) - sum(old) for old, new in zip(before, after, strict=True)]
    return max(passed) / hertz if min(passed) >= 0 and max(passed) > 0 else None


def cpu_loads(before: Sequence[Sequence[int]], after: Sequence[Sequence[int]]) -> tuple[CpuLoad, ...]:
    """Two readings of the processors' ticks."""
    if len(before) != len(after):
        return ()
    found = []
    for cpu, (old, new) in enumerate(zip(before, after, strict=True)):
        used = [now - then for now, then in zip(new, old, strict=True)]
        total = sum(used)
        whole = total > 0 and min(used) >= 0
        if not whole:
            found.append(CpuLoad(cpu))
            continue
        user = (used[0] + used[1]) / total
        found.append(CpuLoad(cpu, 1 - used[4] / total, used[3] / total, user=user))
    return tuple(found)


def queue_loads(
    interface: str, before: str, after: str, seconds: float | None, servers: Mapping[int, int] = NOBODY
) -> tuple[QueueLoad, ...]:
    """The receive queues of *interface* from two readings of its ``sysctl`` subtree.

    *servers*: queue -> processor, where the subtree has none.
    """
    old, new = (_queues(text, interface, _QUEUE_PACKETS) for text in (before, after))
    cpus = {**servers, **_queues(after, interface, _CPU)}
    rates: dict[int, float] = {}
    for queue, count in new.items():
        if seconds and old.get(queue, count + 1) <= count:
            rates[queue] = (count - old[queue]) / seconds
    return tuple(
        QueueLoad(interface, queue, f"CPU {cpus[queue]}" if queue in cpus else "", rates.get(queue))
        for queue in sorted({*new, *cpus})
    )


def _queues(text: str, interface: str, pattern: re.Pattern[str]) -> dict[int, int]:
    start = f"{sysctl_subtree(interface)}."
    found: dict[int, int] = {}
    for line in text.splitlines():
        name, _, value = line.partition(": ")
        queue = pattern.fullmatch(name.removeprefix(start)) if name.startswith(start) else None
        if queue and re.fullmatch(r"\d{1,20}", value):
            found[int(next(group for group in queue.groups() if group is not None))] = int(value)
    return found


def interrupts(text: str) -> Mapping[str, int]:
    """``vmstat -i``: interrupts since boot by name, as ``irq273: igb1:que 0``."""
    rows = re.finditer(r"^(\S[^\n]*?) +(\d{1,20}) +\d{1,12}$", text, re.MULTILINE)
    return {row[1]: int(row[2]) for row in rows if row[1] != "Total"}


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
    """Return those of *threads* that took at least one per cent of processor *cpu*; several of a name together."""
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
