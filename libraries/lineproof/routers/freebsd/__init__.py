"""A FreeBSD or pfSense router: ``netstat``, ``sysctl``, ``ifconfig``, ``route``, ``arp``, ``pfctl``.

How busy its processors and receive queues are, while traffic flows:

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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ...core.neighbours import NeighbourEntry
from ...core.router_facts import RouterFacts
from ...core.telemetry import InterfaceCounters, Telemetry
from ...core.traffic.frame_kinds import FrameKinds
from ...core.under_load import BUSY_SHARE, CpuLoad, QueueLoad, UnderLoad, by_queue, per_second, rates
from ...errors import TestbedError
from ...visible import shortened
from ..base import MAC, SPEED_BY_CONVENTION, Entry, LinkState, Side, neighbour_of
from ..described import Router, Words
from ..fact_reading import Answers, counted, kernel_facts, output_by_moment
from ..journal import NONE
from ..shell_output import counter_value, first_line, parser
from .facts import read_freebsd_facts
from .losses import freebsd_causes, parse_device, parse_device_pauses, parse_expired, parse_ip, sysctl_subtree


class FreeBsd(Router):
    """A :class:`~lineproof.routers.base.Router` that is FreeBSD."""

    def identify(self) -> Mapping[str, str]:
        """Kernel; on pfSense also its version."""
        output = self._commands.run_all(
            {"kernel": ("uname", "-a"), "platform": ("cat", "/etc/platform"), "version": ("cat", "/etc/version")},
            optional=("platform", "version"),
        )
        facts = kernel_facts("FreeBSD", output["kernel"])
        # pfSense 2.2 and later write their name here; a plain FreeBSD has no such file
        if output["platform"].strip().lower().startswith("pfsense"):
            system = " ".join(facts["kernel"].split()[:3:2])
            facts |= {"software": "pfSense", "version": output["version"].strip(), "operating system": system}
        return facts

    def facts(self) -> RouterFacts:
        """See :meth:`..base.Router.facts`."""
        return read_freebsd_facts(Answers(self._commands), self.interfaces)

    def work(self) -> Mapping[str, float]:
        """See :meth:`..base.Router.work`: seconds in its kernel, whose threads handle packets, and in interrupts."""
        output = self._commands.run_all({"rate": tuple(_CLOCK.split()), "times": tuple(_TIMES.split())})
        hertz = counted(r"stathz = (\d+)", output["rate"]) or 0
        ticks = processor_ticks(output["times"]) if hertz else ()
        return {f"{BUSY_SHARE}CPU {cpu}": (own[2] + own[3]) / hertz for cpu, own in enumerate(ticks)}

    def under_load(self, wait: Callable[[], None]) -> UnderLoad:
        """See :meth:`..base.Router.under_load`."""
        answers = Answers(self._commands)
        devices = {name: device for name in self.interfaces if (device := sysctl_subtree(name))}
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
        return UnderLoad(
            queues=tuple(queues),
            cpus=tuple(replace(cpu, threads=busiest(threads, cpu.cpu)) for cpu in cpu_loads(old, new)),
            raw=output_by_moment(before, after),
            seconds=seconds,
            counters=counters,
            unread=answers.unread,
        )

    def contexts(self, scope: str, sides: Sequence[Side], frames: FrameKinds, given: Words) -> Iterator[Words]:
        """Yield also networks and offloads as FreeBSD shows them."""
        if scope == "offload":
            name, on = given["key"], given["value"] == "on"
            shown = self._commands.show_all(f"ifconfig {interface}" for interface in self.interfaces)
            for interface, text in zip(self.interfaces, shown.values(), strict=True):
                options = "".join(re.findall(r"options=\w+<(\S*)>", text or "")).lower()
                own = {"interface": interface, "name": name.upper(), "flag": name if on else f"-{name}"}
                before = " ".join(re.findall(rf"\b{name}[46]?\b", options)) or f"-{name}"
                yield {**given, **own, "shown": name.upper() if on else NONE, "before": before}
            return
        for words in super().contexts(scope, sides, frames, given):
            network = words.get("network", "")
            kind = "" if words.get("protocol") == "802.1Q" else "vlanproto 802.1ad"
            yield {**words, "route": "default" if network == "0.0.0.0/0" else network.removesuffix("/32"), "kind": kind}

    def neighbours(self, sides: tuple[Side, ...]) -> tuple[NeighbourEntry, ...]:
        """See :meth:`..base.Router.neighbours`."""
        ipv6 = any(":" in side.peer for side in sides)
        output = self._commands.run(*(("ndp", "-an") if ipv6 else ("arp", "-an")))
        if ipv6 and not all(":" in side.peer for side in sides):
            output += self._commands.run("arp", "-an")
        return tuple(
            neighbour_of(side, parse_ndp(output, side.peer), f"ndp -s {side.peer} MAC".split())
            if ":" in side.peer
            else neighbour_of(side, parse_arp(output, side.peer), f"arp -S {side.peer} MAC".split())
            for side in sides
        )

    def link_states(self) -> tuple[LinkState, ...]:
        """See :meth:`..base.Router.link_states`."""
        shown = self._commands.run_all({name: ("ifconfig", name) for name in self.interfaces})
        return tuple(parse_ifconfig(shown[name], name) for name in self.interfaces)

    def read(self) -> Telemetry:
        """Read counters now. ``uptime`` to the second."""
        devices = {name: ("sysctl", device) for name in self.interfaces if (device := sysctl_subtree(name))}
        needed: list[tuple[str, ...]] = [("date", "+%s"), ("sysctl", "-n", "kern.boottime"), ("netstat", "-ibndW")]
        helpful: list[tuple[str, ...]] = [("netstat", "-s", "-p", name) for name in ("ip", "icmp")]
        helpful += devices.values()
        commands = {" ".join(argv): argv for argv in (*needed, *helpful)}
        output = self._commands.run_all(commands, optional=[" ".join(argv) for argv in helpful])
        interfaces = parse_netstat(output["netstat -ibndW"])
        self._require_interfaces(interfaces)
        ip = parse_ip(output["netstat -s -p ip"])
        return Telemetry(
            uptime=parse_boottime(output["sysctl -n kern.boottime"], output["date +%s"]),
            interfaces=interfaces,
            drops={f"ip {words}": count for words, count in ip.items()},
            raw=output,
            causes=freebsd_causes(
                interfaces,
                ip,
                parse_expired(output["netstat -s -p icmp"]),
                {name: parse_device(output[" ".join(argv)], name) for name, argv in devices.items()},
            ),
            pauses={name: parse_device_pauses(output[" ".join(argv)], name) for name, argv in devices.items()},
        )


@parser("kern.boottime")
def parse_boottime(boottime: str, now: str) -> float:
    """s since boot, from ``kern.boottime`` and the router's own ``date +%s``."""
    boot, clock = re.search(r"sec = (\d+)", boottime), now.strip()
    if not boot or not clock.isdigit():
        raise TestbedError(f"kern.boottime was not understood: '{first_line(boottime) or 'no output'}'")
    since = counter_value(clock) - counter_value(boot[1])
    if since < 0:
        raise ValueError("a boot in the future")
    return float(since)


@parser("'netstat -ibnd'")
def parse_netstat(text: str) -> Mapping[str, InterfaceCounters]:
    """``netstat -ibnd``: the link-level row of each interface. Columns are found by their titles, from the right.

    ``Idrop``: frames lost by the NIC's ring or the input queue; ``Drop``: by the output queue.
    """
    lines = text.splitlines()
    titles = lines[0].split() if lines else []
    if titles[:4] != ["Name", "Mtu", "Network", "Address"] or "Ibytes" not in titles:
        raise TestbedError(f"'netstat -ibnd' was not understood: '{first_line(text) or 'no output'}'")
    columns = titles[4:]
    found = {}
    for line in lines[1:]:
        words = line.split()
        # the address may be missing; rows of IP addresses repeat the interface with other counts
        if len(words) < 3 or not words[2].startswith("<Link#"):
            continue
        try:
            values = dict(zip(columns, map(counter_value, words[-len(columns) :]), strict=True))
        except ValueError:
            raise TestbedError(f"a row of 'netstat -ibnd' was not understood: '{line.strip()}'") from None
        found[words[0].rstrip("*")] = InterfaceCounters(
            rx_packets=values["Ipkts"],
            rx_bytes=values["Ibytes"],
            tx_packets=values["Opkts"],
            tx_bytes=values["Obytes"],
            rx_drops=values.get("Idrop", 0),
            tx_drops=values.get("Drop", 0),
            rx_errors=values["Ierrs"],
            tx_errors=values["Oerrs"],
        )
    return found


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
    interface: str, before: str, after: str, seconds: float | None, servers: Mapping[int, int] | None = None
) -> tuple[QueueLoad, ...]:
    """The receive queues of *interface* from two readings of its ``sysctl`` subtree.

    *servers*: queue -> processor, where the subtree has none.
    """
    old, new = (_numbers(text, interface) for text in (before, after))
    cpus = {**(servers or {}), **by_queue(_CPU, new)}
    counted, packets = by_queue(_QUEUE_PACKETS, new), by_queue(_QUEUE_PACKETS, rates(old, new, seconds))
    return tuple(
        QueueLoad(interface, queue, f"CPU {cpus[queue]}" if queue in cpus else "", packets.get(queue))
        for queue in sorted({*counted, *cpus})
    )


def _numbers(text: str, interface: str) -> dict[str, int]:
    rows = re.findall(rf"^{re.escape(f'{sysctl_subtree(interface)}')}\.(\S+): (\d{{1,20}})$", text, re.MULTILINE)
    return {name: int(value) for name, value in rows}


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


@parser("'ifconfig'")
def parse_ifconfig(text: str, interface: str) -> LinkState:
    """``ifconfig X``. Raises TestbedError for other text."""
    flags = re.search(r"flags=[0-9a-fA-F]+<([^>]*)>", text)
    if flags is None:
        raise TestbedError(f"'ifconfig {interface}' was not understood: '{shortened(text.strip())}'")
    mac, status = re.search(rf"\bether {MAC}", text), re.search(r"^\s*status: (.+?)\s*$", text, re.MULTILINE)
    up = "UP" in flags[1].split(",")
    carrier = status[1] == "active" if status and up else None
    state = LinkState(interface, mac[1].lower() if mac else "", up, carrier)
    media = re.search(r"^\s*media: (.+)$", text, re.MULTILINE)
    # what is in use is in brackets, after what was chosen
    words = re.search(r"\(([^)]*)\)", media[1]) if media else None
    shown = re.search(r"\b([0-9]{1,6}(?:\.[0-9])?)(G?)base", words[1] if words else media[1] if media else "", re.I)
    if shown is None or SPEED_BY_CONVENTION.match(interface):
        return state
    return replace(state, speed_bps=float(shown[1]) * (1e9 if shown[2] else 1e6), speed_from=f"ifconfig {interface}")


@parser("'arp -an'")
def parse_arp(text: str, address: str) -> list[Entry]:
    """Entries of ``arp -an`` for *address*; ``(incomplete)`` ones and expired ones are none."""
    rows = re.finditer(rf"^\S+ \({re.escape(address)}\) at {MAC} on (\S+)(.*)$", text, re.MULTILINE)
    return [(row[2], row[1].lower(), " permanent" in row[3]) for row in rows if " expired" not in row[3]]


@parser("'ndp -an'")
def parse_ndp(text: str, address: str) -> list[Entry]:
    """Entries of ``ndp -an`` for *address*; ``(incomplete)`` ones are none."""
    rows = re.finditer(rf"^{re.escape(address)}\s+{MAC}\s+(\S+)\s+(\S+)", text, re.MULTILINE)
    return [(row[2], row[1].lower(), row[3] == "permanent") for row in rows if row[3] != "expired"]
