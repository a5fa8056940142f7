"""A Linux router: ``/proc``, ``ip`` and ``sysctl``.

How busy its processors and receive queues are is read from the same files twice, while traffic flows:

* ``/proc/stat``: ticks of each processor; *softirq* is where a kernel forwards, *busy* is all but idle and iowait. With
  *steal*, which the hypervisor withheld: there was work then, too.
* ``/proc/net/softnet_stat``: frames handled by each processor; the thirteenth word is its number (Linux 5.10).
* ``ethtool -S``: frames of each queue, by a name of each driver's own; names that are not known are not read.
* ``/proc/interrupts``: the processor whose count of a queue's interrupt rose most serves the queue.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from ...core.router_facts import RouterFacts
from ...core.telemetry import Telemetry
from ...core.traffic.frame_kinds import FrameKinds
from ...core.under_load import BUSY_SHARE, QueueLoad, UnderLoad, cpu_load, per_second, rates
from ..base import Side
from ..described import Router, Words
from ..fact_reading import Answers, matched, output_by_moment
from .losses import BACKLOG_FULL, parse_qdiscs
from .machine import interrupt_owners, interrupt_rows, queue_interrupts, read_linux_facts

_QDISCS = "tc -s qdisc show"
_UPTIME, _STAT, _INTERRUPTS = "/proc/uptime", "/proc/stat", "/proc/interrupts"
_SOFTNET = "/proc/net/softnet_stat"
_LOAD = (_STAT, _SOFTNET, "/proc/softirqs", _INTERRUPTS, _UPTIME)
_STATES = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")


def files_command(paths: Sequence[str]) -> str:
    """Return the command that shows the files at *paths*, as far as there are any; :func:`files_of` reads it."""
    return f"grep -sH . {' '.join(paths)}"


def files_of(text: str, paths: Sequence[str]) -> dict[str, str]:
    """Return the files at *paths* in the output of :func:`files_command`; "" for one that is not there."""
    found = dict.fromkeys(paths, "")
    for line in text.splitlines(keepends=True):
        if path := next((path for path in paths if line.startswith(f"{path}:")), ""):
            found[path] += line.removeprefix(f"{path}:")
    return found


class Linux(Router):
    """A :class:`~lineproof.routers.base.Router` that is a Linux kernel."""

    def facts(self) -> RouterFacts:
        """See :meth:`..base.Router.facts`."""
        return read_linux_facts(Answers(self._commands), self.interfaces)

    def work(self) -> Mapping[str, float]:
        """See :meth:`..base.Router.work`: seconds in interrupts, where a kernel handles packets."""
        ticks = _ticks(self._commands.show(f"cat {_STAT}"))
        return {f"{BUSY_SHARE}CPU {cpu}": (own["irq"] + own["softirq"]) / 100 for cpu, own in ticks.items()}

    def under_load(self, wait: Callable[[], None]) -> UnderLoad:
        """See :meth:`..base.Router.under_load`."""
        answers, interfaces = Answers(self._commands), self.interfaces
        ethtool = self.description.commands.tables["ethtool"]
        links = answers.ask(*(f"readlink /sys/class/net/{name}/device" for name in interfaces))
        commands = [files_command(_LOAD), *(f"ethtool -S {name}" for name in interfaces)]
        before = answers.ask(*commands)
        wait()
        after = answers.ask(*commands)
        old, new = (files_of(output[commands[0]], _LOAD) for output in (before, after))
        answers.unread |= {path: "no such file" for path, text in new.items() if not text and new[_UPTIME]}
        passed = _uptime(new[_UPTIME]) - _uptime(old[_UPTIME])
        seconds = passed if passed > 0 else None
        old_rows, new_rows = (_softnet(files[_SOFTNET]) for files in (old, new))
        counters = per_second(_problems(old_rows), _problems(new_rows), seconds)
        handled = [{f"{cpu}": row[0] for cpu, row in rows.items()} for rows in (old_rows, new_rows)]
        frames = rates(handled[0], handled[1], seconds)
        queues: list[QueueLoad] = []
        for name in interfaces:
            owners = interrupt_owners(name, links[f"readlink /sys/class/net/{name}/device"])
            servers = serving_cpus(old[_INTERRUPTS], new[_INTERRUPTS], owners)
            was, now = (ethtool.results(output[f"ethtool -S {name}"], name) for output in (before, after))
            queues += ethtool.queue_loads(name, was, now, seconds, servers)
            counters |= per_second(ethtool.labelled(was, name), ethtool.labelled(now, name), seconds)
        ticks = _ticks(old[_STAT])
        return UnderLoad(
            queues=tuple(queues),
            cpus=tuple(
                cpu_load(cpu, ticks.get(cpu, {}), own, frames.get(f"{cpu}")) for cpu, own in _ticks(new[_STAT]).items()
            ),
            raw=output_by_moment(before, after),
            seconds=seconds,
            counters=counters,
            unread=answers.unread,
        )

    def contexts(self, scope: str, sides: Sequence[Side], frames: FrameKinds, given: Words) -> Iterator[Words]:
        """Yield also what the kernel changes by itself where it begins to forward, and how ethtool names settings."""
        family, _, what = scope.partition(" ")
        if what in ("links", "switch"):
            yield from self._forwarding(family, what)
        elif option := {"queues": "-l", "offload": "-k"}.get(scope):
            for name in self.interfaces:
                text = self._commands.shown(f"ethtool {option} {name}")
                own = _queue_words(text) if scope == "queues" else _offload_words(given["key"], text)
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
            yield {"also": " ".join(filter(_IS_RESET.fullmatch, _assignments(listed)))}

    def read(self) -> Telemetry:
        """See :meth:`..base.Router.read`: also drops of queueing disciplines."""
        reading = super().read()
        shown = self._commands.shown(_QDISCS)
        causes = (*reading.causes, *parse_qdiscs(shown, self.interfaces))
        return replace(reading, causes=causes, raw={**reading.raw, _QDISCS: shown})

    def _require_interfaces(self, existing: Collection[str], hint: str = "") -> None:
        super()._require_interfaces(existing, " (Linux does not have what VPP holds: for that 'shell: vpp')")


_IS_RESET = re.compile(r".*/(?!all/)[^/]+/forwarding=[^0].*|.*/ipv4/conf/all/accept_redirects=0")

_OFFLOADS = {
    "lro": "large-receive-offload",
    "gro": "generic-receive-offload",
    "gso": "generic-segmentation-offload",
    "tso": "tcp-segmentation-offload",
}


def _queue_words(shown: str) -> Words:
    """Return how ``ethtool -L`` names receive queues: some cards have separate ones for each direction."""
    return {"kind": "combined" if re.search(r"^Combined:\s+[0-9]+\s*$", shown, re.MULTILINE) else "rx"}


def _offload_words(offload: str, shown: str) -> Words:
    """Return how ``ethtool -k`` names *offload*, and the words of ``ethtool -K`` that set what it has *shown*."""
    feature = _OFFLOADS[offload]
    # a card may have some parts of tso on and others off
    names = r"^\s+(tx-tcp[\w-]*)" if offload == "tso" else rf"^({feature})"
    parts = re.findall(rf"{names}: (on|off)(?! \[fixed\])", shown, re.MULTILINE)
    before = " ".join(f"{offload if name == feature else name} {value}" for name, value in parts)
    return {"feature": feature, "before": before}


def _assignments(shown: str) -> Iterator[str]:
    """``net.ipv4.conf.eth1/5.forwarding = 1`` as ``net/ipv4/conf/eth1.5/forwarding=1``."""
    for line in shown.splitlines():
        name, _, value = line.partition(" = ")
        yield f"{name.translate(str.maketrans('./', '/.'))}={value.strip()}"


def _ticks(text: str) -> dict[int, Mapping[str, int]]:
    """``/proc/stat``: ticks of 10 ms of each processor in each state; guests are in user and nice."""
    rows = re.finditer(r"^cpu(\d{1,5})((?: \d{1,19}){8,10})$", text, re.MULTILINE)
    return {int(row[1]): dict(zip(_STATES, map(int, row[2].split()), strict=False)) for row in rows}


def _problems(rows: Mapping[int, Sequence[int]]) -> dict[str, int]:
    """Return what went wrong on each processor, of *rows* of ``softnet_stat``."""
    names = {BACKLOG_FULL: 1, "softnet time squeeze": 2}
    return {f"{name} CPU {cpu}": row[at] for cpu, row in rows.items() for name, at in names.items()}


def _softnet(text: str) -> dict[int, Sequence[int]]:
    """Processor -> frames handled, dropped (backlog full), time squeezes, …; older kernels do not number the rows."""
    lines = re.findall(r"^[0-9a-f]{8}(?: [0-9a-f]{8}){2,}$", text, re.MULTILINE)
    rows = [[int(word, 16) for word in line.split()] for line in lines]
    return {(row[12] if len(row) > 12 else at): row for at, row in enumerate(rows)}


def _uptime(text: str) -> float:
    """``/proc/uptime``: s since boot; NaN if it was not read."""
    return float(matched(r"\A([0-9]+\.[0-9]+) [0-9]+\.[0-9]+\s*\Z", text) or "nan")


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
