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
from collections.abc import Callable, Iterator, Mapping, Sequence

from ...core.counter_names import pauses_of
from ...core.router_facts import RouterFacts
from ...core.telemetry import Telemetry
from ...core.traffic.frame_kinds import FrameKinds
from ...core.under_load import BUSY_SHARE, CpuLoad, QueueLoad, UnderLoad, by_queue, per_second, rates
from ...errors import TestbedError
from ...json_text import parse_json
from ..base import MAC, SPEED_BY_CONVENTION, LinkState, Side
from ..described import Router, Words
from ..fact_reading import Answers, output_by_moment
from ..shell_commands import whole
from ..shell_output import figure, first_line, parser
from .losses import BACKLOG_FULL, linux_causes, parse_ethtool, parse_links, parse_qdiscs, parse_snmp, suspects
from .machine import interrupt_owners, interrupt_rows, queue_interrupts, read_linux_facts

_LINKS, _QDISCS = "ip -j -s -s link show", "tc -s qdisc show"
_UPTIME, _STAT, _INTERRUPTS = "/proc/uptime", "/proc/stat", "/proc/interrupts"
_SNMP, _NETSTAT, _SOFTNET = "/proc/net/snmp", "/proc/net/netstat", "/proc/net/softnet_stat"
# the one that every kernel has is the last: where it was read, the answer is whole
_COUNTERS = (_SNMP, _NETSTAT, _SOFTNET, _UPTIME)
_LOAD = (_STAT, _SOFTNET, "/proc/softirqs", _INTERRUPTS, _UPTIME)
_QUEUE_PACKETS = re.compile(
    r"rx_queue_(\d{1,4})_packets|rx(\d{1,4})_packets|rx-(\d{1,4})\.(?:rx_)?packets|queue_(\d{1,4})_rx_cnt"
    r"|\[(\d{1,4})\]: rx_ucast_packets"
)
"""ixgbe, igb, ice, virtio_net; mlx5, virtio_net; i40e, iavf; ena; bnxt."""
_QUEUE_DROPS = re.compile(r"rx_queue_(\d{1,4})_drops|rx(\d{1,4})_drops|\[(\d{1,4})\]: rx_drops")


def files_command(paths: Sequence[str]) -> tuple[str, ...]:
    """Return the command that shows the files at *paths*, as far as there are any; :func:`files_of` reads it."""
    return ("grep", "-sH", ".", *paths)


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
        """See :meth:`..base.Router.work`."""
        return busy_seconds(self._commands.show(f"cat {_STAT}"))

    def _shown(self, paths: Sequence[str]) -> tuple[str, str]:
        """Return the command for the files at *paths*, and its output."""
        ((command, (text, _)),) = self._commands.try_all(files_command(paths)).items()
        return command, whole(command, text)

    def under_load(self, wait: Callable[[], None]) -> UnderLoad:
        """See :meth:`..base.Router.under_load`."""
        answers, interfaces = Answers(self._commands), self.interfaces
        links = answers.ask(*(("readlink", f"/sys/class/net/{name}/device") for name in interfaces))
        commands = [files_command(_LOAD), *(("ethtool", "-S", name) for name in interfaces)]
        before = answers.ask(*commands)
        wait()
        after = answers.ask(*commands)
        old, new = (files_of(output[" ".join(commands[0])], _LOAD) for output in (before, after))
        answers.unread |= {path: "no such file" for path, text in new.items() if not text and new[_UPTIME]}
        seconds = elapsed(old[_UPTIME], new[_UPTIME])
        old_rows, new_rows = (_softnet(answers, files[_SOFTNET]) for files in (old, new))
        counters = per_second(_problems(old_rows), _problems(new_rows), seconds)
        queues: list[QueueLoad] = []
        for name in interfaces:
            owners = interrupt_owners(name, links[f"readlink /sys/class/net/{name}/device"])
            servers = serving_cpus(old[_INTERRUPTS], new[_INTERRUPTS], owners)
            was, now = (parse_ethtool(output[f"ethtool -S {name}"]) for output in (before, after))
            queues += queue_loads(name, was, now, servers, seconds)
            lost = per_second(suspects(was), suspects(now), seconds)
            counters |= {f"ethtool {key} at {name}": rate for key, rate in lost.items()}
        return UnderLoad(
            queues=tuple(queues),
            cpus=cpu_loads(old[_STAT], new[_STAT], _frames(old_rows, new_rows, seconds)),
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
            shown = self._commands.show_all(f"ethtool {option} {name}" for name in self.interfaces)
            for name, text in zip(self.interfaces, shown.values(), strict=True):
                own = _queue_words(text or "") if scope == "queues" else _offload_words(given["key"], text or "")
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
        state, listed = (text or "" for text in self._commands.show_all((f"sysctl -n {switch}", listing)).values())
        listed = listed if state.strip() == "0" else ""
        if what == "links":
            yield from ({"link": name} for name in re.findall(r"^\d+: ([^:@\s]+)", listed, re.MULTILINE))
        else:
            yield {"also": " ".join(filter(_IS_RESET.fullmatch, _assignments(listed)))}

    def link_states(self) -> tuple[LinkState, ...]:
        """See :meth:`..base.Router.link_states`."""
        paths = [f"/sys/class/net/{name}/{file}" for name in self.interfaces for file in ("speed", "device/uevent")]
        states = parse_link_states(self._commands.show(_LINKS), files_of(self._shown(paths)[1], paths))
        self._require_interfaces(states)
        return tuple(states[name] for name in self.interfaces)

    def read(self) -> Telemetry:
        """Read counters now."""
        command, text = self._shown(_COUNTERS)
        files = files_of(text, _COUNTERS)
        helpful = {
            _QDISCS: tuple(_QDISCS.split()),
            **{f"ethtool -S {name}": ("ethtool", "-S", name) for name in self.interfaces},
        }
        output = self._commands.run_all({_LINKS: tuple(_LINKS.split()), **helpful}, optional=helpful)
        interfaces, causes = parse_links(output[_LINKS])
        self._require_interfaces(interfaces, hint=" (Linux does not have what VPP holds: for that 'shell: vpp')")
        drops = {**parse_snmp(files[_SNMP]), **parse_snmp(files[_NETSTAT], "IpExt")}
        if files[_SOFTNET]:
            drops[BACKLOG_FULL] = sum(row[1] for row in parse_softnet(files[_SOFTNET]).values())
        causes += parse_qdiscs(output[_QDISCS], self.interfaces)
        cards = {name: parse_ethtool(output[f"ethtool -S {name}"]) for name in self.interfaces}
        return Telemetry(
            parse_uptime(files[_UPTIME]),
            interfaces,
            drops,
            raw={command: text, **output},
            causes=(*causes, *linux_causes(drops, cards)),
            pauses={name: pauses_of(card) for name, card in cards.items()},
        )


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


@parser("'ip -j link show'")
def parse_link_states(text: str, files: Mapping[str, str]) -> dict[str, LinkState]:
    """Return the state of each interface. *files*: ``speed`` in Mbit/s and ``device/uevent`` of its card, by path."""
    found = {}
    for link in parse_json(text, strict=False):
        name, flags, path = link["ifname"], link["flags"], f"/sys/class/net/{link['ifname']}/speed"
        mac = link["address"].lower() if re.fullmatch(MAC, link.get("address", "")) else ""
        state = LinkState(name, mac, "UP" in flags, "NO-CARRIER" not in flags if "UP" in flags else None)
        # an interface without a card (veth, bridge, tap) has no 'device'
        driver = re.search(r"^DRIVER=(\S+)", files.get(f"/sys/class/net/{name}/device/uevent", ""), re.MULTILINE)
        mbps = re.fullmatch(r"([1-9][0-9]{0,6})\s*", files.get(path, ""))
        if driver and mbps and not SPEED_BY_CONVENTION.search(driver[1]):
            state = LinkState(name, mac, state.up, state.carrier, int(mbps[1]) * 1e6, path)
        found[name] = state
    return found


TICKS_BACK = 2
"""By so many the kernel may count back idle time and iowait (proc(5))."""

Rows = Mapping[int, Sequence[int]]


def _problems(rows: Rows) -> dict[str, int]:
    """Return what went wrong on each processor, by ``softnet_stat``."""
    return {
        f"{name} CPU {cpu}": row[at]
        for cpu, row in rows.items()
        for at, name in ((1, BACKLOG_FULL), (2, "softnet time squeeze"))
    }


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
    old = _ticks(before)
    return tuple(_cpu_load(cpu, old.get(cpu, ()), ticks, frames.get(cpu)) for cpu, ticks in _ticks(after).items())


def _cpu_load(cpu: int, before: Sequence[int], after: Sequence[int], frames: float | None) -> CpuLoad:
    used = [now - then for now, then in zip(after, before, strict=False)]
    if len(used) < 8 or sum(used) <= 0 or min(used) < -TICKS_BACK:
        return CpuLoad(cpu, packets_per_s=frames)
    used = [max(0, ticks) for ticks in used]
    user, nice, _, idle, waiting, irq, softirq, steal = (ticks / sum(used) for ticks in used)
    return CpuLoad(cpu, 1 - (idle + waiting), softirq, frames, irq=irq, steal=steal, user=user + nice)


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
    try:
        return parse_softnet(text)
    except TestbedError as error:
        answers.unread[_SOFTNET] = str(error)
        return {}


@parser(_UPTIME)
def parse_uptime(text: str) -> float:
    """``/proc/uptime``: s since boot."""
    found = re.match(r"\s*(\d+\.\d+)\s+\d+\.\d+\s*$", text)
    if not found:
        raise TestbedError(f"/proc/uptime was not understood: '{first_line(text) or 'empty'}'")
    return figure(found[1])


@parser(_SOFTNET)
def parse_softnet(text: str) -> Rows:
    """Processor -> frames handled, dropped (backlog full), time squeezes, …; older kernels do not number the rows."""
    rows = [[int(word, 16) for word in line.split()] for line in text.splitlines()]
    if rows and min(map(len, rows)) < 3:
        raise ValueError("a row is cut")
    return {(row[12] if len(row) > 12 else at): row for at, row in enumerate(rows)}
