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
from dataclasses import replace

from ...core.neighbours import NeighbourEntry
from ...core.router_facts import RouterFacts
from ...core.telemetry import Telemetry
from ...core.traffic.frame_kinds import FrameKinds
from ...core.under_load import BUSY_SHARE, CpuLoad, QueueLoad, UnderLoad, by_queue, per_second, rates
from ...errors import TestbedError
from ...visible import shortened
from ..base import MAC, SPEED_BY_CONVENTION, Entry, LinkState, Side, neighbour_of
from ..described import Router, Words
from ..fact_reading import Answers, kernel_facts, output_by_moment
from ..shell_output import counter_value, figure, first_line, parser
from .losses import (
    IP_DROPS,
    interface_counters,
    linux_causes,
    parse_ethtool,
    parse_ethtool_pauses,
    parse_links,
    parse_qdiscs,
)
from .machine import interrupt_owners, interrupt_rows, kernel_boot_id, queue_interrupts, read_linux_facts

_LINKS = ("ip", "-j", "-s", "-s", "link", "show")
_QUEUE_PACKETS = re.compile(
    r"rx_queue_(\d{1,4})_packets|rx(\d{1,4})_packets|rx-(\d{1,4})\.(?:rx_)?packets|queue_(\d{1,4})_rx_cnt"
    r"|\[(\d{1,4})\]: rx_ucast_packets"
)
"""ixgbe, igb, ice, virtio_net; mlx5, virtio_net; i40e, iavf; ena; bnxt."""
_QUEUE_DROPS = re.compile(r"rx_queue_(\d{1,4})_drops|rx(\d{1,4})_drops|\[(\d{1,4})\]: rx_drops")
_ROW = re.compile(r"\s+(\S.*?): (\d{1,20})")
_FILES = ("/proc/uptime", "/proc/stat", "/proc/net/softnet_stat", "/proc/softirqs", "/proc/interrupts")


class Linux(Router):
    """A :class:`~lineproof.routers.base.Router` that is a Linux kernel."""

    def identify(self) -> Mapping[str, str]:
        """Distribution and kernel."""
        output = self._commands.run_all({"kernel": ("uname", "-a"), "os": ("cat", "/etc/os-release")}, optional=("os",))
        facts = kernel_facts("Linux", output["kernel"])
        if found := re.search(r'^PRETTY_NAME="?([^"\n]*)', output["os"], re.MULTILINE):
            facts["operating system"] = found[1]
        return facts

    def boot_id(self) -> str:
        """See :meth:`..base.Router.boot_id`."""
        return kernel_boot_id(self._commands)

    def facts(self) -> RouterFacts:
        """See :meth:`..base.Router.facts`."""
        return read_linux_facts(Answers(self._commands), self.interfaces)

    def work(self) -> Mapping[str, float]:
        """See :meth:`..base.Router.work`."""
        return busy_seconds(self._commands.run("cat", "/proc/stat"))

    def under_load(self, wait: Callable[[], None]) -> UnderLoad:
        """See :meth:`..base.Router.under_load`."""
        answers, interfaces = Answers(self._commands), self.interfaces
        links = answers.ask(*(("readlink", f"/sys/class/net/{name}/device") for name in interfaces))
        commands = [("cat", file) for file in _FILES] + [("ethtool", "-S", name) for name in interfaces]
        before = answers.ask(*commands)
        wait()
        after = answers.ask(*commands)
        seconds = elapsed(before["cat /proc/uptime"], after["cat /proc/uptime"])
        old_rows, new_rows = (_softnet(answers, output["cat /proc/net/softnet_stat"]) for output in (before, after))
        counters = per_second(_problems(old_rows), _problems(new_rows), seconds)
        queues: list[QueueLoad] = []
        for name in interfaces:
            card = f"ethtool -S {name}"
            owners = interrupt_owners(name, links[f"readlink /sys/class/net/{name}/device"])
            servers = serving_cpus(before["cat /proc/interrupts"], after["cat /proc/interrupts"], owners)
            queues += queue_loads(name, _rows(before[card]), _rows(after[card]), servers, seconds)
            lost = per_second(parse_ethtool(before[card]), parse_ethtool(after[card]), seconds)
            counters |= {f"ethtool {key} at {name}": rate for key, rate in lost.items()}
        return UnderLoad(
            queues=tuple(queues),
            cpus=cpu_loads(before["cat /proc/stat"], after["cat /proc/stat"], _frames(old_rows, new_rows, seconds)),
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
        elif scope == "queues":
            shown = self._commands.show_all(f"ethtool -l {name}" for name in self.interfaces)
            for name, text in zip(self.interfaces, shown.values(), strict=True):
                # some cards have separate queues for each direction
                combined = re.search(r"^Combined:\s+[0-9]+\s*$", text or "", re.MULTILINE)
                yield {**given, "interface": name, "kind": "combined" if combined else "rx"}
        elif scope == "offload":
            shown = self._commands.show_all(f"ethtool -k {name}" for name in self.interfaces)
            for name, text in zip(self.interfaces, shown.values(), strict=True):
                yield {**given, "interface": name, **_offload_words(given["key"], text or "")}
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

    def neighbours(self, sides: tuple[Side, ...]) -> tuple[NeighbourEntry, ...]:
        """See :meth:`..base.Router.neighbours`."""
        output = self._commands.run_all({side.peer: ("ip", "neigh", "show", side.peer) for side in sides})
        return tuple(
            neighbour_of(
                side,
                parse_ip_neigh(output[side.peer]),
                f"ip neigh replace {side.peer} lladdr MAC nud permanent dev {side.interface}".split(),
            )
            for side in sides
        )

    def link_states(self) -> tuple[LinkState, ...]:
        """See :meth:`..base.Router.link_states`."""
        links = {name: ("ip", "link", "show", "dev", name) for name in self.interfaces}
        # an interface without a card (veth, bridge, tap) has no 'device'
        speeds, devices = (
            {f"{name} {file}": ("cat", f"/sys/class/net/{name}/{file}") for name in self.interfaces}
            for file in ("speed", "device/uevent")
        )
        shown = self._commands.run_all({**links, **speeds, **devices}, optional=(*speeds, *devices))
        return tuple(
            with_sysfs_speed(parse_ip_link(shown[name], name), shown[f"{name} speed"], shown[f"{name} device/uevent"])
            for name in self.interfaces
        )

    def read(self) -> Telemetry:
        """Read counters now."""
        cards = {name: ("ethtool", "-S", name) for name in self.interfaces}
        needed = [("cat", "/proc/uptime"), _LINKS]
        helpful: list[tuple[str, ...]] = [("cat", f"/proc/net/{name}") for name in ("snmp", "netstat", "softnet_stat")]
        helpful += [("tc", "-s", "qdisc", "show"), *cards.values()]
        commands = {" ".join(argv): argv for argv in (*needed, *helpful)}
        output = self._commands.run_all(commands, optional=[" ".join(argv) for argv in helpful])
        links = parse_links(output[" ".join(_LINKS)])
        interfaces = {name: interface_counters(link) for name, link in links.items()}
        self._require_interfaces(interfaces, hint=" (Linux does not have what VPP holds: for that 'shell: vpp')")
        ip = {**parse_snmp(output["cat /proc/net/snmp"]), **parse_snmp(output["cat /proc/net/netstat"], "IpExt")}
        drops = {f"ip {name}": count for name, count in ip.items()}
        softnet = output["cat /proc/net/softnet_stat"]
        if softnet:
            drops["softnet backlog full"] = sum(row[1] for row in parse_softnet(softnet))
        causes = linux_causes(
            links,
            ip,
            drops.get("softnet backlog full", 0),
            [row for row in parse_qdiscs(output["tc -s qdisc show"]) if row.interface in self.interfaces],
            {name: parse_ethtool(output[" ".join(argv)]) for name, argv in cards.items()},
        )
        pauses = {name: parse_ethtool_pauses(output[" ".join(argv)]) for name, argv in cards.items()}
        uptime = parse_uptime(output["cat /proc/uptime"])
        return Telemetry(uptime, interfaces, drops, (), output, causes=causes, pauses=pauses)


_IS_RESET = re.compile(r".*/(?!all/)[^/]+/forwarding=[^0].*|.*/ipv4/conf/all/accept_redirects=0")

_OFFLOADS = {
    "lro": "large-receive-offload",
    "gro": "generic-receive-offload",
    "gso": "generic-segmentation-offload",
    "tso": "tcp-segmentation-offload",
}


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


def with_sysfs_speed(state: LinkState, speed: str, device: str) -> LinkState:
    """*state* with the speed that Linux shows: *speed* in Mbit/s, and ``device/uevent`` of its card. "": not read."""
    driver = re.search(r"^DRIVER=(\S+)", device, re.MULTILINE)
    mbps = re.fullmatch(r"\s*([0-9]{1,7})\s*", speed)
    if driver is None or SPEED_BY_CONVENTION.search(driver[1]) or not mbps or not int(mbps[1]):
        return state
    return replace(state, speed_bps=int(mbps[1]) * 1e6, speed_from=f"/sys/class/net/{state.interface}/speed")


@parser("'ip link show'")
def parse_ip_link(text: str, interface: str) -> LinkState:
    """``ip link show dev X``. Raises TestbedError for other text."""
    flags = re.search(r"<([^>]*)>", text)
    if flags is None:
        raise TestbedError(f"'ip link show dev {interface}' was not understood: '{shortened(text.strip())}'")
    words, mac = flags[1].split(","), re.search(rf"link/ether {MAC}", text)
    up = "UP" in words
    return LinkState(interface, mac[1].lower() if mac else "", up, "NO-CARRIER" not in words if up else None)


_UNUSABLE = frozenset({"FAILED", "INCOMPLETE"})
_LASTING = frozenset({"PERMANENT", "NOARP"})


@parser("'ip neigh show'")
def parse_ip_neigh(text: str) -> list[Entry]:
    """Entries of ``ip neigh show ADDRESS`` that the kernel sends to, stale ones too."""
    found: list[Entry] = []
    for line in text.splitlines():
        name, mac = re.search(r"\bdev (\S+)", line), re.search(rf"\blladdr {MAC}", line)
        words = set(line.split())
        if name and mac and not words & _UNUSABLE:
            found.append((name[1], mac[1].lower(), bool(words & _LASTING)))
    return found


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
