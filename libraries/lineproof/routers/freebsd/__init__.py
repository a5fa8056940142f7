"""A FreeBSD or pfSense router: ``netstat``, ``sysctl``, ``ifconfig``, ``route``, ``arp``, ``pfctl``.

How busy its processors, their threads and its receive queues are:

* ``kern.cp_times``: ticks of each processor (user, nice, system, interrupt, idle), ``stathz`` a second; also the clock.
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
from dataclasses import dataclass

from ...command_values import facts_as, facts_of, matched, members_in, picked
from ...core.router_facts import NicFacts, Placement, RouterFacts
from ...core.telemetry import Side
from ...core.traffic.frame_kinds import FrameKinds
from ...core.under_load import BUSY_SHARE, QueueLoad, UnderLoad, cpu_load, output_by_moment, per_second
from ...system.command_line import Answers
from ..described import Router, Words
from ..journal import NONE

_CLOCK, _HERTZ, _INTERRUPTS = "kern.clockrate", r"stathz = ([0-9]{1,9})\b", "vmstat --libxo json -i"
_TOP = "top -b -P -H -S -d 2 -s 1 100"
"""Two displays with a second between them, of a hundred threads each; the first one's shares are older than that."""

TIMES = "kern.cp_times"
_STATES = ("user", "nice", "system", "softirq", "idle")
_FLOW_CONTROL = {"0": "off", "1": "rx", "2": "tx", "3": "rx and tx"}


class FreeBsd(Router):
    """A :class:`~lineproof.routers.described.Router` that is FreeBSD, whose kernel forwards."""

    def identify(self) -> Mapping[str, str]:
        """Return the kernel; on pfSense also its version."""
        facts = {**super().identify()}
        command, pattern = facts_of("freebsd", "machine")["_pfsense"]
        if version := matched(pattern, self._commands.shown(command)):
            system = f"{facts['software']} {facts['version']}"
            facts |= {"software": "pfSense", "version": version, "operating system": system}
        return facts

    def facts(self) -> RouterFacts:
        """Return its facts, see :meth:`.Router.facts`. ``workers``: its processors."""
        answers, facts, trees = Answers(self._commands), facts_of("freebsd", "machine"), self.words["trees"]
        cards = {
            name: facts_of("freebsd", "card", trees=trees, interface=name, tree=_subtree(name) or "-")
            for name in self.interfaces
        }
        shown = answers.ask(*(command for own in (facts, *cards.values()) for command, _ in own.values()))
        machine, nics = picked(shown, facts), list[NicFacts]()
        for name, asked in cards.items():
            card = picked(shown, asked)
            if "_address" in card:
                card.setdefault("driver", name.rstrip("0123456789"))
            nic = facts_as(
                *(NicFacts, card),
                interface=name,
                model=card.get("model") or card.get("_description"),
                pci_address=pci_address(card.get("_location", "")) or pci_address(card.get("_address", "")),
                rx_queues=len(card.get("_queues", "").split()) or None,
                flow_control=_FLOW_CONTROL.get(card.get("_flow control", "")),
            )
            nics.append(nic)
        kernel, pfsense = machine.get("kernel"), machine.get("_pfsense")
        release = " ".join(filter(None, (machine.get("_system"), kernel))) or None
        filters = [("pf", "_pf", "Enabled"), ("ipfw", "_ipfw", "1")]
        on = [name for name, fact, value in filters if machine.get(fact) == value]
        # a filter that is not loaded is off
        is_off = machine.get("_pf") == "Disabled" and facts["_ipfw"][0] not in answers.unread
        return facts_as(
            *(RouterFacts, machine),
            os=f"pfSense {pfsense}{f' ({release})' if release else ''}" if pfsense else release,
            version=pfsense or kernel,
            nics=tuple(nics),
            placement=tuple(
                Placement(name, queue, f"CPU {cpu}")
                for name in self.interfaces
                for queue, cpu in sorted(_served_cpus(shown.get(f"sysctl -i {trees}", ""), name).items())
            ),
            firewall=f"on: {', '.join(on)}" if on else "off" if is_off else None,
            unread=answers.unread,
        )

    def work(self) -> Mapping[str, float]:
        """Return the seconds in its kernel, which handles packets in threads, and in interrupts."""
        values = sysctl_values(self._commands.show(f"sysctl {_CLOCK} {TIMES}"))
        hertz = int(matched(_HERTZ, values.get(_CLOCK, "")) or 0)
        ticks = processor_ticks(values) if hertz else []
        return {f"{BUSY_SHARE}CPU {cpu}": (own["system"] + own["softirq"]) / hertz for cpu, own in enumerate(ticks)}

    def under_load(self, wait: Callable[[], None]) -> UnderLoad:
        """Return how busy processors and queues are meanwhile; see :meth:`.Router.under_load`."""
        answers, sysctl = Answers(self._commands), f"sysctl -i {_CLOCK} {TIMES} {self.words['trees']}".rstrip()
        before = answers.ask(sysctl, _INTERRUPTS)
        wait()
        after = answers.ask(sysctl, _INTERRUPTS, _TOP)
        table, texts = self.description.commands.tables["sysctl"], (before[sysctl], after[sysctl])
        old, new = map(sysctl_values, texts)
        threads = parse_top(after[_TOP])
        was, now = processor_ticks(old), processor_ticks(new)
        seconds = seconds_between(was, now, int(matched(_HERTZ, new.get(_CLOCK, "")) or 0))
        interrupted = interrupts(after[_INTERRUPTS])
        rising = per_second(interrupts(before[_INTERRUPTS]), interrupted, seconds)
        queues = list[QueueLoad]()
        for name in self.interfaces:
            first, last = (table.results(text, name) for text in texts)
            rising |= per_second(table.labelled(first, name), table.labelled(last, name), seconds)
            named = queue_cpus(name, sysctl_values(texts[1], name), threads, interrupted)
            servers = {queue: f"CPU {cpu}" for queue, cpu in {**named, **_served_cpus(texts[1], name)}.items()}
            queues += table.queue_loads(name, first, last, seconds, servers)
        return UnderLoad(
            queues=tuple(queues),
            cpus=tuple(
                cpu_load(cpu, *ticks, threads=_busiest(threads, cpu))
                for cpu, ticks in enumerate(zip(was, now, strict=True) if len(was) == len(now) else ())
            ),
            raw=output_by_moment(before, after),
            seconds=seconds,
            counters=rising,
            unread=answers.unread,
        )

    def contexts(self, scope: str, sides: Sequence[Side], frames: FrameKinds, given: Words) -> Iterator[Words]:
        """Yield also networks and offloads as FreeBSD shows them."""
        if scope == "offload":
            name, on = given["key"], given["value"] == "on"
            for interface in self.interfaces:
                shown = self._commands.shown(f"ifconfig {interface}")
                options = "".join(re.findall(r"options=\w+<(\S*)>", shown)).lower()
                own = {"interface": interface, "name": name.upper(), "flag": name if on else f"-{name}"}
                before = " ".join(re.findall(rf"\b{name}[46]?\b", options)) or f"-{name}"
                yield {**given, **own, "shown": name.upper() if on else NONE, "before": before}
            return
        for words in super().contexts(scope, sides, frames, given):
            network = words.get("network", "")
            kind = "" if words.get("protocol") == "802.1Q" else "vlanproto 802.1ad"
            yield {**words, "route": "default" if network == "0.0.0.0/0" else network.removesuffix("/32"), "kind": kind}

    @property
    def words(self) -> Words:
        """Return the subtrees of ``sysctl`` that the interfaces under test have; see :attr:`.Router.words`."""
        return {"trees": " ".join(filter(None, map(_subtree, self.interfaces)))}


def _subtree(interface: str) -> str | None:
    """Return the ``sysctl`` subtree of *interface* (``ix0``: ``dev.ix.0``); None: its name has no number.

    mlxen's device is the card with all its ports, so its driver names a port's after the interface: ``hw.mlxen0``.
    """
    parts = re.fullmatch(r"([a-z][a-z0-9_]*?)(\d+)", interface)
    if not parts:
        return None
    return f"hw.{interface}" if parts[1] == "mlxen" else f"dev.{parts[1]}.{parts[2]}"


def sysctl_values(text: str, interface: str = "") -> dict[str, str]:
    """Return the values that ``sysctl`` shows by name, or those of *interface* without its subtree."""
    below = re.escape(f"{_subtree(interface)}.") if interface else ""
    return dict(re.findall(rf"^{below}([^\s:]+): *(.*?) *$", text, re.MULTILINE))


def _served_cpus(text: str, interface: str) -> dict[int, int]:
    """Return the processor of each receive queue of *interface* that iflib names in what ``sysctl`` shows."""
    pattern = rf"^{re.escape(_subtree(interface) or '-')}\.iflib\.rxq(\d{{1,4}})\.cpu: *(\d{{1,6}}) *$"
    return {int(queue): int(cpu) for queue, cpu in re.findall(pattern, text, re.MULTILINE)}


def pci_address(text: str) -> str | None:
    """Return the decimal address in ``ix0@pci0:3:0:0:`` or ``dbsf=pci0:3:0:0`` as Linux writes it."""
    parts = re.search(r"(?:^[a-z]\w*@|\bdbsf=)pci(\d{1,5}):(\d{1,3}):(\d{1,2}):([0-7])\b", text, re.MULTILINE)
    return None if parts is None else "{:04x}:{:02x}:{:02x}.{:x}".format(*map(int, parts.groups()))


# -- load

_THREAD = re.compile(r" *\d+ \S.* (\d{1,4}) +(?:\d+:\d\d(?:\.\d+)?|[\d.]+H) +(\d{1,4}\.\d+)% +(\S.*?) *")
_LONGEST_ROW = 300


@dataclass(frozen=True, slots=True)
class Thread:
    """A thread, the processor it ran on last, and its share 0 to 1 of one."""

    name: str
    cpu: int
    share: float


def parse_top(text: str) -> tuple[Thread, ...]:
    """Return the threads of the last display but those that idle, the busiest first."""
    last = text[max(0, text.rfind("last pid:")) :]
    matches = (_THREAD.fullmatch(line) for line in last.splitlines() if len(line) <= _LONGEST_ROW)
    threads = (Thread(row[3], int(row[1]), min(1.0, float(row[2]) / 100)) for row in matches if row)
    return tuple(sorted((one for one in threads if not re.match(r"\[?idle\b", one.name)), key=lambda one: -one.share))


def processor_ticks(values: Mapping[str, str]) -> list[Mapping[str, int]]:
    """Return the ticks of each processor by state, ``softirq`` for interrupts; nothing if they are others."""
    counts = values.get(TIMES, "").split()
    if len(counts) % len(_STATES) or not all(re.fullmatch(r"\d{1,19}", word) for word in counts):
        return []
    own = (map(int, counts[at : at + len(_STATES)]) for at in range(0, len(counts), len(_STATES)))
    return [dict(zip(_STATES, numbers, strict=True)) for numbers in own]


def seconds_between(
    before: Sequence[Mapping[str, int]], after: Sequence[Mapping[str, int]], hertz: int
) -> float | None:
    """Return the seconds between two readings of ticks, *hertz* a second; None: not read, or it went back."""
    passed = [sum(new.values()) - sum(old.values()) for old, new in zip(before, after, strict=False)]
    if not hertz or len(before) != len(after) or min(passed, default=0) < 0:
        return None
    return max(passed, default=0) / hertz or None


def _busiest(threads: Iterable[Thread], cpu: int) -> dict[str, float]:
    """Return the threads that took 1 % of processor *cpu* or more, those of one name added together."""
    shares: dict[str, float] = {}
    for one in threads:
        if one.cpu == cpu and one.share >= 0.01:
            shares[one.name] = min(1.0, shares.get(one.name, 0.0) + one.share)
    return shares


def interrupts(text: str) -> Mapping[str, int]:
    """Return the interrupts since boot that ``vmstat --libxo json -i`` shows, by name, as ``irq273: igb1:que 0``."""
    counted = members_in(text, "interrupt-statistics", "interrupt")
    return {f"{one.get('name')}".strip(): total for one in counted if isinstance(total := one.get("total"), int)}


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
    matches = (re.fullmatch(rf"irq(\d{{1,6}}): {queue}", name) for name in names)
    return {int(row[2], base): ran[row[1]] for row in matches if row and row[1] in ran}
