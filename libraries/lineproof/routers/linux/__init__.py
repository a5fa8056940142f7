"""A Linux router: ``/proc``, ``ip`` and ``sysctl``.

How busy its processors and receive queues are is read from the same files twice, while traffic flows:

* ``/proc/stat``: ticks of each processor; *softirq* is where a kernel forwards, *busy* is all but idle and iowait. With
  *steal*, which the hypervisor withheld: there was work then, too.
* ``/proc/net/softnet_stat``: frames handled by each processor; the thirteenth word is its number (Linux 5.10).
* ``ethtool -S``: frames of each queue, by a name of each driver's own; names that are not known are not read.
* ``/proc/interrupts``: the processor whose count of a queue's interrupt rose most serves the queue.

``machine.yaml`` has the commands that show facts, and how they are read. They change nothing: none loads a kernel
module either (``nft`` is asked only where its code is in the kernel already).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ...command_values import facts_as, facts_of, flat, matched, members_in, summarised
from ...core.router_facts import NicFacts, Placement, RouterFacts
from ...core.telemetry import Cause, Side, Stage, Telemetry
from ...core.traffic.frame_kinds import FrameKinds
from ...core.under_load import BUSY_SHARE, QueueLoad, UnderLoad, cpu_load, output_by_moment, per_second, rates
from ...system.command_line import Answers
from ...visible import shortened
from ..described import Router, Words

_QDISCS = "tc -j -s qdisc show"
_UPTIME, _STAT, _INTERRUPTS, _SOFTNET = "/proc/uptime", "/proc/stat", "/proc/interrupts", "/proc/net/softnet_stat"
_LOAD = (_STAT, _SOFTNET, "/proc/softirqs", _INTERRUPTS, _UPTIME)
_CLOCK = r"\A([0-9]+\.[0-9]+) [0-9]+\.[0-9]+\s*\Z"
_HANDLED = "frames"
_STATES = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")


class Linux(Router):
    """A :class:`~lineproof.routers.described.Router` that is a Linux kernel, which forwards by itself."""

    def facts(self) -> RouterFacts:
        """Return its facts, see :meth:`.Router.facts`. ``workers``: its processors that are online."""
        answers = Answers(self._commands)
        machine = answers.facts(facts_of("linux", "machine"))
        form = "--json " if Answers(self._commands).ask(_FEATURES)[_FEATURES] else ""
        interrupts, affinity, _ = answers.ask(f"cat {_INTERRUPTS}", _AFFINITY, _IRQBALANCE).values()
        # processors that each interrupt goes to; where the kernel does not show it, those that it may go to
        affinities = re.findall(r"^/proc/irq/(\d+)/(effective|smp)_affinity_list:(.+)$", affinity, re.MULTILINE)
        cpus_of = {int(irq): cpus for irq, kind, cpus in sorted(affinities, key=lambda row: row[1], reverse=True)}
        nics, placement = list[NicFacts](), list[Placement]()
        for name in self.interfaces:
            card = answers.facts(facts_of("linux", "card", interface=name, form=form))
            card |= answers.facts(facts_of("linux", "link", folder=_device(name)))
            bus = card.get("_bus") or card.get("_device", "")
            channels = sum(int(card.get(key, "0")) for key in ("_rx channels", "_channels"))
            nic = card_facts(
                *(name, card, machine.get("_cards", ""), bus),
                pci_address=bus if re.fullmatch(PCI_ADDRESS, bus) else None,
                rx_queues=channels or len(card.get("_queues", "").split()) or None,
                flow_control=card.get("_pauses", "").replace(",", " and").lower() or card.get("_no pauses"),
                steered_to=_steered(card.get("_steering", "")),
            )
            nics.append(nic)
            irqs = queue_interrupts(interrupts, name, card.get("_device", ""))
            serving = {**{queue: cpus_of.get(irq, "") for irq, queue in irqs.items()}, **nic.steered_to}
            alone = sorted((queue, cpus) for queue, cpus in serving.items() if cpus.isdigit())
            placement += [Placement(name, queue, f"CPU {cpus}") for queue, cpus in alone]
        if balanced := {0: "running", 1: "not running"}.get(answers.status.get(_IRQBALANCE, -1)):
            # without output it looked, and found none
            answers.unread.pop(_IRQBALANCE, None)
            machine["irqbalance"] = balanced
        return facts_as(
            *(RouterFacts, machine),
            version=machine.get("kernel"),
            nics=tuple(nics),
            placement=tuple(placement),
            firewall=_firewall(answers),
            unread=answers.unread,
        )

    def work(self) -> Mapping[str, float]:
        """Return the seconds in interrupts, where a kernel handles packets; see :meth:`.Router.work`."""
        ticks = _ticks(self._commands.show(f"cat {_STAT}"))
        return {f"{BUSY_SHARE}CPU {cpu}": (own["irq"] + own["softirq"]) / 100 for cpu, own in ticks.items()}

    def under_load(self, wait: Callable[[], None]) -> UnderLoad:
        """Return how busy processors and queues are meanwhile; see :meth:`.Router.under_load`."""
        answers, interfaces = Answers(self._commands), self.interfaces
        ethtool = self.description.commands.tables["ethtool"]
        links = answers.ask(*(f"readlink {_device(name)}" for name in interfaces))
        # as far as there are any
        commands = [f"grep -sH . {' '.join(_LOAD)}", *(f"ethtool -S {name}" for name in interfaces)]
        before = answers.ask(*commands)
        wait()
        after = answers.ask(*commands)
        old, new = (_files(output[commands[0]]) for output in (before, after))
        answers.unread |= {path: "no such file" for path, text in new.items() if not text and new[_UPTIME]}
        started, ended = (float(matched(_CLOCK, files[_UPTIME]) or "nan") for files in (old, new))
        seconds = ended - started if ended > started else None
        softnet = rates(_softnet(old[_SOFTNET]), _softnet(new[_SOFTNET]), seconds)
        counters = {name: rate for name, rate in softnet.items() if rate > 0 and not name.startswith(_HANDLED)}
        queues: list[QueueLoad] = []
        for name in interfaces:
            irqs = queue_interrupts(new[_INTERRUPTS], name, links[f"readlink {_device(name)}"])
            servers = _serving_cpus(old[_INTERRUPTS], new[_INTERRUPTS], irqs)
            was, now = (ethtool.results(output[f"ethtool -S {name}"], name) for output in (before, after))
            queues += ethtool.queue_loads(name, was, now, seconds, servers)
            counters |= per_second(ethtool.labelled(was, name), ethtool.labelled(now, name), seconds)
        ticks = _ticks(old[_STAT])
        return UnderLoad(
            queues=tuple(queues),
            cpus=tuple(
                cpu_load(cpu, ticks.get(cpu, {}), own, softnet.get(f"{_HANDLED} CPU {cpu}"))
                for cpu, own in _ticks(new[_STAT]).items()
            ),
            raw=output_by_moment(before, after),
            seconds=seconds,
            counters=counters,
            unread=answers.unread,
        )

    def contexts(self, scope: str, sides: Sequence[Side], frames: FrameKinds, given: Words) -> Iterator[Words]:
        """Yield also words for changes that the kernel makes by itself, and for ethtool's settings."""
        family, _, what = scope.partition(" ")
        if what in ("links", "switch"):
            yield from self._forwarding(family, what)
        elif option := {"queues": "-l", "offload": "-k"}.get(scope):
            for name in self.interfaces:
                text = self._commands.shown(f"ethtool {option} {name}")
                # some cards have separate queues for each direction
                kind = "combined" if re.search(r"^Combined:\s+[0-9]+\s*$", text, re.MULTILINE) else "rx"
                own = {"kind": kind} if scope == "queues" else _offload_words(given["key"], text)
                yield {**given, "interface": name, **own}
        else:
            for words in super().contexts(scope, sides, frames, given):
                yield {**words, "onlink": "onlink" if words.get("within") else ""}

    def _forwarding(self, family: str, what: str) -> Iterator[Words]:
        """Yield what a switch of all interfaces changes beside itself where it is off.

        On, the kernel switches off what receives several frames as one (Linux, net/ipv4/devinet.c:
        ``inet_forward_change``) and leaves it so. Off, it leaves no interface that forwards, and redirects taken,
        whatever was there before (Documentation/networking/ip-sysctl.rst: ``ip_forward``).
        """
        switch = {"ipv4": "net/ipv4/ip_forward", "ipv6": "net/ipv6/conf/all/forwarding"}[family]
        listing = "ip -o link show" if what == "links" else f"sysctl net/{family}/conf"
        state, listed = map(self._commands.shown, (f"sysctl -n {switch}", listing))
        listed = listed if state.strip() == "0" else ""
        if what == "links":
            yield from ({"link": name} for name in re.findall(r"^\d+: ([^:@\s]+)", listed, re.MULTILINE))
        else:
            # 'net.ipv4.conf.eth1/5.forwarding = 1' is set by 'net/ipv4/conf/eth1.5/forwarding=1'
            settings = (line.partition(" = ") for line in listed.splitlines())
            assigned = (f"{name.translate(str.maketrans('./', '/.'))}={value.strip()}" for name, _, value in settings)
            yield {"also": " ".join(filter(_IS_RESET.fullmatch, assigned))}

    def read(self) -> Telemetry:
        """Return the counters, also drops of queueing disciplines; see :meth:`.Router.read`."""
        reading, shown = super().read(), self._commands.shown(_QDISCS)
        causes = (*reading.causes, *parse_qdiscs(shown, self.interfaces))
        return replace(reading, causes=causes, raw={**reading.raw, _QDISCS: shown})


_IS_RESET = re.compile(r".*/(?!all/)[^/]+/forwarding=[^0].*|.*/ipv4/conf/all/accept_redirects=0")

_OFFLOADS = {
    "lro": "large-receive-offload",
    "gro": "generic-receive-offload",
    "gso": "generic-segmentation-offload",
    "tso": "tcp-segmentation-offload",
}


def _offload_words(offload: str, shown: str) -> Words:
    """Return *offload*'s name in ``ethtool -k``, and the words of ``ethtool -K`` that restore *shown*."""
    feature = _OFFLOADS[offload]
    # a card may have some parts of tso on and others off
    names = r"^\s+(tx-tcp[\w-]*)" if offload == "tso" else rf"^({feature})"
    parts = re.findall(rf"{names}: (on|off)(?! \[fixed\])", shown, re.MULTILINE)
    before = " ".join(f"{offload if name == feature else name} {value}" for name, value in parts)
    return {"feature": feature, "before": before}


# -- load


def _files(text: str) -> dict[str, str]:
    """Return the files of _LOAD in grep's output, whose lines begin with a path; "": the file is missing."""
    return {path: "".join(re.findall(rf"^{path}:(.*\n?)", text, re.MULTILINE)) for path in _LOAD}


def _ticks(text: str) -> dict[int, Mapping[str, int]]:
    """Read ``/proc/stat``: ticks of 10 ms of each processor in each state; guests are in user and nice."""
    matches = re.finditer(r"^cpu(\d{1,5})((?: \d{1,19}){8,10})$", text, re.MULTILINE)
    return {int(row[1]): dict(zip(_STATES, map(int, row[2].split()), strict=False)) for row in matches}


def _softnet(text: str) -> dict[str, int]:
    """Return what each processor has counted, by name and processor; older kernels do not number the rows."""
    lines = re.findall(r"^[0-9a-f]{8}(?: [0-9a-f]{8}){2,}$", text, re.MULTILINE)
    counted = [[int(word, 16) for word in line.split()] for line in lines]
    names = _HANDLED, BACKLOG_FULL, "softnet time squeeze"
    numbered = [(row[12] if len(row) > 12 else at, row) for at, row in enumerate(counted)]
    return {f"{name} CPU {cpu}": row[at] for cpu, row in numbered for at, name in enumerate(names)}


def _interrupt_rows(text: str) -> tuple[tuple[int, ...], dict[int, tuple[tuple[int, ...], str]]]:
    """Read ``/proc/interrupts``: the processors, and interrupt -> its counts and its name."""
    title, _, rest = text.partition("\n")
    cpus = tuple(map(int, re.findall(r"\bCPU(\d{1,6})\b", title)))
    row = rf"^ *(\d{{1,9}}):((?: +\d{{1,20}}){{{len(cpus)}}}) +(?:.* )?(\S+)$"
    interrupts = re.findall(row, rest, re.MULTILINE)
    return cpus, {int(irq): (tuple(map(int, counts.split())), name) for irq, counts, name in interrupts}


def queue_interrupts(table: str, interface: str, device: str) -> dict[int, int]:
    """Read ``/proc/interrupts``: interrupt -> receive queue of *interface*; *device*: link or name.

    ``ixgbe``: eth0-TxRx-3; ``i40e``: i40e-eth0-TxRx-3; ``virtio_net``: virtio2-input.3; ``mlx5``: by PCI address.
    """
    owner = "|".join(re.escape(name) for name in (interface, device.strip().rpartition("/")[2]) if name)
    kind = r"(?i:(?:tx-?rx|rx-?tx|rx|input|fp|queue|r)[-.]?)?"
    name = re.compile(rf"mlx\d_comp(\d{{1,4}})@pci:(?:{owner})|(?:\w+-)?(?i:{owner})-{kind}(\d{{1,4}})")
    matched = ((irq, name.fullmatch(row)) for irq, (_, row) in _interrupt_rows(table)[1].items())
    return {irq: int(match[1] or match[2]) for irq, match in matched if match}


def _serving_cpus(before: str, after: str, queues: Mapping[int, int]) -> dict[int, str]:
    """Return for each queue the processor whose count of its interrupt rose most between two tables."""
    (former, old), (cpus, new), serving = _interrupt_rows(before), _interrupt_rows(after), dict[int, str]()
    for irq, queue in queues.items() if cpus == former else ():
        rises = [now - then for now, then in zip(new[irq][0], old.get(irq, ((), ""))[0], strict=False)]
        if rises and max(rises) > 0:
            serving[queue] = f"CPU {cpus[rises.index(max(rises))]}"
    return serving


# -- facts

_IRQBALANCE = "pgrep -x irqbalance"
_AFFINITY = "grep -rsH . /proc/irq --include=effective_affinity_list --include=smp_affinity_list"
_FILTERS = "grep -ohwE 'nft_do_chain|ipt_do_table' /proc/kallsyms"
"""Which packet filters are in the kernel, built in or as a module."""
_FEATURES, _TABLES, _CHAINS = "ethtool --json -k lo", "cat /proc/net/ip_tables_names", "nft list chains"
PCI_ADDRESS = r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]"


def _device(interface: str) -> str:
    return f"/sys/class/net/{interface}/device"


def card_facts(interface: str, known: Mapping[str, str], pci: str, address: str, **own: object) -> NicFacts:
    """Return the facts of the card at *address*, of those *known*; *pci*: the list of ``lspci -D``."""
    model = (matched(rf"^{re.escape(address)} [^:\n]*: *(.+)", pci) if address else None) or known.get("model")
    return facts_as(NicFacts, known, interface=interface, model=model, **own)


def _firewall(answers: Answers) -> str | None:
    """Return ``on`` with the names of the filters, or ``off``; None: not read."""
    loaded, tables = answers.ask(_FILTERS, _TABLES).values()
    chains = answers.ask(_CHAINS)[_CHAINS] if "nft_do_chain" in loaded else ""
    looked_at, tabled, chained = map(answers.status.get, (_FILTERS, _TABLES, _CHAINS))
    hooks = summarised(re.findall(r"\bhook (prerouting|forward|postrouting|ingress)\b", chains))
    known = {"nftables": hooks, "iptables": summarised(tables.split()) if tabled == 0 else None}
    if active := [f"{name} ({what})" for name, what in known.items() if what]:
        return f"on: {', '.join(active)}"
    is_unknown = ("nft_do_chain" in loaded and chained != 0) or ("ipt_do_table" in loaded and tabled != 0)
    if looked_at not in (0, 1) or is_unknown:
        return None
    for line in (_FILTERS, _TABLES, _CHAINS):
        answers.unread.pop(line, None)  # nothing on standard output is an answer here
    return "off"


def _steered(text: str) -> dict[int, str]:
    """Read ``rx-0/rps_cpus:00000000,00000006``: receive queue -> ``1,2``; none for one without steering."""
    masks: dict[int, str] = {}
    for queue, mask in re.findall(r"rx-(\d{1,4})/rps_cpus:([0-9a-f,]{1,4096}?)(?:, |$)", text):
        bits = int(mask.replace(",", "") or "0", 16)
        if cpus := [str(cpu) for cpu in range(bits.bit_length()) if bits >> cpu & 1]:
            masks[int(queue)] = ",".join(cpus)
    return masks


# -- lost frames: linux.yaml has the interfaces' and IP's

QDISC_DROPS, FILTER_DROPS, BACKLOG_FULL = "qdisc drops", "tc filter drops", "softnet backlog full"
"""Names of causes: dropped by a queueing discipline, by filters of ``tc``, waiting for a processor."""

_DISCIPLINE = "its queueing discipline "
_BY_CLASSES = ("htb", "hfsc", "cbq")
"""Their rates are in their classes, not in their own settings."""
_RATE = re.compile(r"\b((?:peak|max)?rate|bandwidth) (\d{1,20})\b")
_LIMITING = re.compile(r"(?:tbf|htb|hfsc|cbq)\b|.* (?:max)?rate \d|.* bandwidth \d")
"""Disciplines that send no faster than they are set to."""
_OF_THE_SYSTEM = re.compile(r"(?:mq|mqprio|pfifo_fast|fq_codel|fq|noqueue|multiq|cake)\b")
"""Disciplines that a system sets by itself: they are full where the card takes frames too slowly."""


def parse_qdiscs(text: str, interfaces: Collection[str]) -> list[Cause]:
    """Read ``tc -j -s qdisc show``: each interface's root, which counts all below it, and its filters.

    A discipline drops before the interface, whose counts have none of it. The one that limits is named: the first below
    the root that has a rate, else the one that dropped most. ``ingress`` and ``clsact``: what filters drop on arrival,
    after ``rx_packets``; ``clsact`` also on leaving, in one count. iproute2 < 7.0 breaks the JSON of ``multiq``.
    """
    causes, queues = list[Cause](), dict[str, list[Mapping[str, Any]]]()
    listed = (one for one in members_in(text) if one.get("dev") in interfaces and isinstance(one.get("drops"), int))
    for one in listed:
        kind, name = one.get("kind"), one["dev"]
        if kind in ("ingress", "clsact"):
            label, at = (FILTER_DROPS, name) if kind == "ingress" else (f"{FILTER_DROPS} at {name}", "")
            causes.append(Cause(Stage.PASSING, label, at, one["drops"], meaning=f"by filters of tc ({kind})"))
        else:
            queues.setdefault(name, []).append(one)
    for name, disciplines in queues.items():
        # of a root and its only child the child is named
        limit = max(disciplines[::-1], key=lambda one: (is_limiting(_discipline(one)), one["drops"]))
        roots, meaning = (one for one in disciplines if one.get("root")), f"{_DISCIPLINE}{_discipline(limit)}"
        causes += [Cause(Stage.LEAVING, QDISC_DROPS, name, one["drops"], meaning=meaning) for one in roots]
    return causes


def _discipline(one: Mapping[str, Any]) -> str:
    """Return a discipline with its settings: rates as ``tc`` writes them, others in frames, bytes or microseconds."""
    settings = flat(one.get("options", {})) if one.get("kind") not in _BY_CLASSES else ()
    shown = " ".join((f"{one.get('kind')}", *(f"{path.rpartition('.')[2]} {value}" for path, value in settings)))
    return shortened(_RATE.sub(lambda rate: f"{rate[1]} {int(rate[2]) * 8 / 1e6:g}Mbit", shown), 80)


def discipline_of(meaning: str) -> str:
    """Return the discipline that the *meaning* of :data:`QDISC_DROPS` names; "": none, or one that a system sets."""
    discipline = meaning.removeprefix(_DISCIPLINE)
    is_of_the_system = _OF_THE_SYSTEM.match(discipline) is not None and not is_limiting(discipline)
    return "" if discipline == meaning or is_of_the_system else discipline


def is_limiting(discipline: str) -> bool:
    """Return whether *discipline*, with its settings, sends no faster than it is set to."""
    return _LIMITING.match(discipline) is not None
