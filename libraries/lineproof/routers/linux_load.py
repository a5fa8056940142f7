"""How busy a Linux router's processors and receive queues are: the same files read twice, while traffic flows.

* ``/proc/stat``: ticks of each processor; *softirq* is where a kernel forwards, *busy* is all but idle and iowait. With
  *steal*, which the hypervisor withheld: there was work then, too.
* ``/proc/net/softnet_stat``: frames handled by each processor; the thirteenth word is its number (Linux 5.10).
* ``ethtool -S``: frames of each queue, by a name of each driver's own; names that are not known are not read.
* ``/proc/interrupts``: the processor whose count of a queue's interrupt rose most serves the queue.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from ..core.under_load import BUSY_SHARE, CpuLoad, QueueLoad, UnderLoad, by_queue, per_second, rates
from ..errors import TestbedError
from .fact_reading import Answers, output_by_moment
from .linux_facts import interrupt_owners, interrupt_rows, queue_interrupts
from .linux_losses import IP_DROPS, parse_ethtool
from .shell_output import counter_value, figure, first_line, parser

_QUEUE_PACKETS = re.compile(
    r"rx_queue_(\d{1,4})_packets|rx(\d{1,4})_packets|rx-(\d{1,4})\.(?:rx_)?packets|queue_(\d{1,4})_rx_cnt"
    r"|\[(\d{1,4})\]: rx_ucast_packets"
)
"""ixgbe, igb, ice, virtio_net; mlx5, virtio_net; i40e, iavf; ena; bnxt."""
_QUEUE_DROPS = re.compile(r"rx_queue_(\d{1,4})_drops|rx(\d{1,4})_drops|\[(\d{1,4})\]: rx_drops")
_ROW = re.compile(r"\s+(\S.*?): (\d{1,20})")
_FILES = ("/proc/uptime", "/proc/stat", "/proc/net/softnet_stat", "/proc/softirqs", "/proc/interrupts")


def linux_load(answers: Answers, interfaces: Sequence[str], wait: Callable[[], None]) -> UnderLoad:
    """Return what the kernel reports around *wait*. Never raises TestbedError: what cannot be read is in ``unread``."""
    commands = [("cat", file) for file in _FILES] + [("ethtool", "-S", name) for name in interfaces]
    links = answers.ask(*(("readlink", f"/sys/class/net/{name}/device") for name in interfaces))
    before = answers.ask(*commands)
    wait()
    after = answers.ask(*commands)
    seconds = elapsed(before["cat /proc/uptime"], after["cat /proc/uptime"])
    cards = {name: (_rows(before[f"ethtool -S {name}"]), _rows(after[f"ethtool -S {name}"])) for name in interfaces}
    servers = {
        name: serving_cpus(
            before["cat /proc/interrupts"],
            after["cat /proc/interrupts"],
            interrupt_owners(name, links[f"readlink /sys/class/net/{name}/device"]),
        )
        for name in interfaces
    }
    old_rows, new_rows = (_softnet(answers, output["cat /proc/net/softnet_stat"]) for output in (before, after))
    counters = per_second(_problems(old_rows), _problems(new_rows), seconds)
    for name in interfaces:
        old, new = (parse_ethtool(output[f"ethtool -S {name}"]) for output in (before, after))
        counters |= {f"ethtool {key} at {name}": rate for key, rate in per_second(old, new, seconds).items()}
    return UnderLoad(
        queues=tuple(queue for name in interfaces for queue in queue_loads(name, *cards[name], servers[name], seconds)),
        cpus=cpu_loads(before["cat /proc/stat"], after["cat /proc/stat"], _frames(old_rows, new_rows, seconds)),
        raw=output_by_moment(before, after),
        seconds=seconds,
        counters=counters,
        unread=answers.unread,
    )


TICKS_BACK = 2
"""By so many the kernel may count back idle time and iowait (proc(5))."""

Rows = Mapping[int, tuple[int, ...]]


def _problems(rows: Rows) -> dict[str, int]:
    """Return what went wrong on each processor, by ``softnet_stat``."""
    names = ("", "softnet backlog full", "softnet time squeeze")
    return {f"{names[at]} CPU {cpu}": row[at] for cpu, row in rows.items() for at in (1, 2)}


def _frames(before: Rows, after: Rows, seconds: float | None) -> dict[int, float]:
    """Frames/s handled on each processor; not where the count, which has 32 bits, began again."""
    return {
        cpu: (row[0] - before[cpu][0]) / seconds
        for cpu, row in after.items()
        if seconds and cpu in before and row[0] >= before[cpu][0]
    }


def elapsed(before: str, after: str) -> float | None:
    """Seconds between two readings of ``/proc/uptime``; None if one was not read, or the machine restarted."""
    try:
        found = parse_uptime(after) - parse_uptime(before)
    except TestbedError:
        return None
    return found if found > 0 else None


def cpu_loads(before: str, after: str, frames: Mapping[int, float]) -> tuple[CpuLoad, ...]:
    """Two readings of ``/proc/stat``. *frames*: frames/s that the kernel handled, by processor."""
    old, new = _ticks(before), _ticks(after)
    found = []
    for cpu, ticks in new.items():
        used = [now - then for now, then in zip(ticks, old.get(cpu, ()), strict=False)]
        total = sum(used)
        if len(used) < 8 or total <= 0 or min(used) < -TICKS_BACK:
            found.append(CpuLoad(cpu, packets_per_s=frames.get(cpu)))
            continue
        used = [max(0, each) for each in used]
        total = sum(used)
        user, irq, softirq, steal = (ticks / total for ticks in (used[0] + used[1], *used[5:8]))
        busy = 1 - (used[3] + used[4]) / total
        found.append(CpuLoad(cpu, busy, softirq, frames.get(cpu), irq=irq, steal=steal, user=user))
    return tuple(found)


def busy_seconds(text: str) -> dict[str, float]:
    """``/proc/stat``: seconds of each processor in interrupts, where it handles packets; a tick is 10 ms."""
    return {f"{BUSY_SHARE}CPU {cpu}": (ticks[5] + ticks[6]) / 100 for cpu, ticks in _ticks(text).items()}


def _ticks(text: str) -> dict[int, tuple[int, ...]]:
    """Processor -> user, nice, system, idle, iowait, irq, softirq, steal; guests are in user and nice."""
    rows = re.finditer(r"^cpu(\d{1,5})((?: \d{1,19}){8,10})$", text, re.MULTILINE)
    return {int(row[1]): tuple(map(int, row[2].split()[:8])) for row in rows}


def queue_loads(
    interface: str,
    before: Mapping[str, int],
    after: Mapping[str, int],
    servers: Mapping[int, str],
    seconds: float | None,
) -> tuple[QueueLoad, ...]:
    """The receive queues that the driver counts, and those whose interrupt came (*servers*: queue -> processor)."""
    risen = rates(before, after, seconds)
    packets, drops = by_queue(_QUEUE_PACKETS, risen), by_queue(_QUEUE_DROPS, risen)
    return tuple(
        QueueLoad(interface, queue, servers.get(queue, ""), packets.get(queue), drops.get(queue))
        for queue in sorted({*packets, *servers})
    )


def _rows(text: str) -> dict[str, int]:
    rows = (_ROW.fullmatch(line) for line in text.splitlines())
    return {row[1]: int(row[2]) for row in rows if row}


def serving_cpus(before: str, after: str, owners: Sequence[str]) -> dict[int, str]:
    """Receive queue -> the processor whose count of its interrupt rose most between two ``/proc/interrupts``."""
    cpus, new = interrupt_rows(after)
    former, old = interrupt_rows(before)
    found: dict[int, str] = {}
    if cpus != former:
        return found
    for irq, queue in queue_interrupts(after, owners).items():
        rises = [now - then for now, then in zip(new[irq][0], old.get(irq, ((), ""))[0], strict=False)]
        if rises and max(rises) > 0:
            found[queue] = f"CPU {cpus[rises.index(max(rises))]}"
    return found


def _softnet(answers: Answers, text: str) -> Rows:
    """Processor -> its row of ``softnet_stat``; older kernels do not number the rows, which may leave out some."""
    if not text:
        return {}
    try:
        rows = parse_softnet(text)
    except TestbedError as error:
        answers.unread["cat /proc/net/softnet_stat"] = str(error)
        return {}
    return {(row[12] if len(row) > 12 else at): row for at, row in enumerate(rows)}


@parser("/proc/uptime")
def parse_uptime(text: str) -> float:
    """``/proc/uptime``: s since boot."""
    found = re.match(r"\s*(\d+\.\d+)\s+\d+\.\d+\s*$", text)
    if not found:
        raise TestbedError(f"/proc/uptime was not understood: '{first_line(text) or 'empty'}'")
    return figure(found[1])


@parser("/proc/net/snmp or netstat")
def parse_snmp(text: str, protocol: str = "Ip") -> Mapping[str, int]:
    """The :data:`IP_DROPS` of ``/proc/net/snmp`` of this namespace; empty if the kernel does not show them.

    *protocol* ``IpExt`` is in ``/proc/net/netstat``.
    """
    rows = [line.split()[1:] for line in text.splitlines() if line.startswith(f"{protocol}:")]
    if len(rows) != 2:
        return {}
    values = dict(zip(*rows, strict=True))
    return {name: counter_value(values[name]) for name in IP_DROPS if name in values}


@parser("/proc/net/softnet_stat")
def parse_softnet(text: str) -> tuple[tuple[int, ...], ...]:
    """``/proc/net/softnet_stat``: per CPU frames processed, dropped (backlog full), time squeezes, …"""
    try:
        rows = tuple(tuple(int(word, 16) for word in line.split()) for line in text.splitlines() if line.strip())
    except ValueError:
        rows = ()
    if not rows or min(map(len, rows)) < 3:
        raise TestbedError(f"/proc/net/softnet_stat was not understood: '{first_line(text) or 'empty'}'")
    return rows
