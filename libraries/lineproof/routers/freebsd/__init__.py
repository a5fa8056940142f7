"""A FreeBSD or pfSense router: ``netstat``, ``sysctl``, ``ifconfig``, ``route``, ``arp``, ``pfctl``."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from ...core.counter_names import pauses_of
from ...core.router_facts import RouterFacts
from ...core.telemetry import Telemetry
from ...core.traffic.frame_kinds import FrameKinds
from ...core.under_load import BUSY_SHARE, QueueLoad, UnderLoad, per_second
from ..base import Side
from ..described import Router, Words
from ..fact_reading import Answers, counted, kernel_facts, output_by_moment
from ..journal import NONE
from .facts import PFSENSE, counters, pfsense_version, read_freebsd_facts, subtree, sysctl_of, sysctl_values
from .load import TIMES, TOP, cpu_loads, interrupts, parse_top, processor_ticks, queue_cpus, queue_loads
from .losses import freebsd_causes, parse_boottime, parse_netstat, suspects

_CLOCK, _INTERRUPTS = "kern.clockrate", ("vmstat", "-i")


class FreeBsd(Router):
    """A :class:`~lineproof.routers.base.Router` that is FreeBSD."""

    def identify(self) -> Mapping[str, str]:
        """Kernel; on pfSense also its version."""
        output = self._commands.run_all({"kernel": ("uname", "-a"), "pfsense": PFSENSE}, optional=["pfsense"])
        facts = kernel_facts("FreeBSD", output["kernel"])
        if version := pfsense_version(output["pfsense"]):
            system = " ".join(facts["kernel"].split()[:3:2])
            facts |= {"software": "pfSense", "version": version, "operating system": system}
        return facts

    def facts(self) -> RouterFacts:
        """See :meth:`..base.Router.facts`."""
        return read_freebsd_facts(Answers(self._commands), self.interfaces)

    def work(self) -> Mapping[str, float]:
        """See :meth:`..base.Router.work`: seconds in its kernel, whose threads handle packets, and in interrupts."""
        values = sysctl_values(self._commands.run("sysctl", _CLOCK, TIMES))
        hertz = counted(r"stathz = (\d+)", values.get(_CLOCK, "")) or 0
        ticks = processor_ticks(values) if hertz else ()
        return {f"{BUSY_SHARE}CPU {cpu}": (own[2] + own[3]) / hertz for cpu, own in enumerate(ticks)}

    def under_load(self, wait: Callable[[], None]) -> UnderLoad:
        """See :meth:`..base.Router.under_load`."""
        answers, sysctl = Answers(self._commands), sysctl_of(self.interfaces, _CLOCK, TIMES)
        before = answers.ask(sysctl, _INTERRUPTS)
        wait()
        after = answers.ask(sysctl, _INTERRUPTS, TOP)
        old_text, text = (output[" ".join(sysctl)] for output in (before, after))
        old, new = sysctl_values(old_text), sysctl_values(text)
        threads = parse_top(after[" ".join(TOP)])
        hertz = counted(r"stathz = (\d+)", new.get(_CLOCK, "")) or 0
        cpus, seconds = cpu_loads(processor_ticks(old), processor_ticks(new), hertz, threads)
        interrupted = interrupts(after["vmstat -i"])
        rising = per_second(interrupts(before["vmstat -i"]), interrupted, seconds)
        queues = list[QueueLoad]()
        for name in self.interfaces:
            old, new = sysctl_values(old_text, name), sysctl_values(text, name)
            lost = per_second(suspects(old), suspects(new), seconds)
            rising |= {f"sysctl {key} at {name}": rate for key, rate in lost.items()}
            queues += queue_loads(name, old, new, seconds, queue_cpus(name, new, threads, interrupted))
        return UnderLoad(
            queues=tuple(queues),
            cpus=cpus,
            raw=output_by_moment(before, after),
            seconds=seconds,
            counters=rising,
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

    def read(self) -> Telemetry:
        """Read counters now. ``uptime`` to the second."""
        needed = [("date", "+%s"), ("sysctl", "-n", "kern.boottime"), ("netstat", "-ibndW")]
        helpful = [("netstat", "-s", "-f", "inet"), sysctl_of(self.interfaces)]
        output = self._commands.run_all(
            {" ".join(argv): argv for argv in (*needed, *helpful)}, optional=[" ".join(argv) for argv in helpful]
        )
        now, boot, links, protocols, sysctl = output.values()
        interfaces = parse_netstat(links)
        self._require_interfaces(interfaces)
        devices = {name: sysctl_values(sysctl, name) for name in self.interfaces if subtree(name)}
        causes = tuple(freebsd_causes(interfaces, protocols, devices))
        return Telemetry(
            uptime=parse_boottime(boot, now),
            interfaces=interfaces,
            raw=output,
            causes=causes,
            pauses={name: pauses_of(counters(device)) for name, device in devices.items()},
        )
