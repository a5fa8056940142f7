"""A FreeBSD or pfSense router: ``netstat``, ``sysctl``, ``ifconfig``, ``route``, ``arp``, ``pfctl``."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from ...core.router_facts import RouterFacts
from ...core.telemetry import Telemetry
from ...core.traffic.frame_kinds import FrameKinds
from ...core.under_load import BUSY_SHARE, QueueLoad, UnderLoad, cpu_load, per_second
from ...errors import TestbedError
from ..base import Side
from ..described import Router, Words
from ..fact_reading import Answers, matched, output_by_moment
from ..journal import NONE
from ..shell_output import first_line
from .facts import described_facts, read_freebsd_facts, served_cpus, subtree, sysctl_of, sysctl_values
from .load import TIMES, TOP, busiest, interrupts, parse_top, processor_ticks, queue_cpus, seconds_between

_CLOCK, _HERTZ, _INTERRUPTS = "kern.clockrate", r"stathz = ([0-9]{1,9})\b", "vmstat -i"


class FreeBsd(Router):
    """A :class:`~lineproof.routers.base.Router` that is FreeBSD."""

    def identify(self) -> Mapping[str, str]:
        """Kernel; on pfSense also its version."""
        kernel = self._commands.show("uname -a")
        words = kernel.split()
        if len(words) < 3:
            raise TestbedError(f"'uname -a' was not understood: '{first_line(kernel) or 'no output'}'")
        facts = {"software": words[0], "kernel": kernel.strip(), "version": words[2]}
        command, pattern = described_facts("machine")["_pfsense"]
        if version := matched(pattern, self._commands.shown(command)):
            facts |= {"software": "pfSense", "version": version, "operating system": f"{words[0]} {words[2]}"}
        return facts

    def facts(self) -> RouterFacts:
        """See :meth:`..base.Router.facts`."""
        return read_freebsd_facts(Answers(self._commands), self.interfaces)

    def work(self) -> Mapping[str, float]:
        """See :meth:`..base.Router.work`: seconds in its kernel, whose threads handle packets, and in interrupts."""
        values = sysctl_values(self._commands.show(f"sysctl {_CLOCK} {TIMES}"))
        hertz = int(matched(_HERTZ, values.get(_CLOCK, "")) or 0)
        ticks = processor_ticks(values) if hertz else []
        return {f"{BUSY_SHARE}CPU {cpu}": (own["system"] + own["softirq"]) / hertz for cpu, own in enumerate(ticks)}

    def under_load(self, wait: Callable[[], None]) -> UnderLoad:
        """See :meth:`..base.Router.under_load`."""
        answers, sysctl = Answers(self._commands), sysctl_of(self.interfaces, _CLOCK, TIMES)
        before = answers.ask(sysctl, _INTERRUPTS)
        wait()
        after = answers.ask(sysctl, _INTERRUPTS, TOP)
        table, texts = self.description.commands.tables["sysctl"], (before[sysctl], after[sysctl])
        old, new = map(sysctl_values, texts)
        threads = parse_top(after[TOP])
        was, now = processor_ticks(old), processor_ticks(new)
        seconds = seconds_between(was, now, int(matched(_HERTZ, new.get(_CLOCK, "")) or 0))
        interrupted = interrupts(after[_INTERRUPTS])
        rising = per_second(interrupts(before[_INTERRUPTS]), interrupted, seconds)
        queues = list[QueueLoad]()
        for name in self.interfaces:
            first, last = (table.results(text, name) for text in texts)
            rising |= per_second(table.labelled(first, name), table.labelled(last, name), seconds)
            named = queue_cpus(name, sysctl_values(texts[1], name), threads, interrupted)
            cpus = {**named, **served_cpus(texts[1], name)}
            queues += table.queue_loads(
                name, first, last, seconds, {queue: f"CPU {cpu}" for queue, cpu in cpus.items()}
            )
        return UnderLoad(
            queues=tuple(queues),
            cpus=tuple(
                cpu_load(cpu, *ticks, threads=busiest(threads, cpu))
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
        """See :meth:`..described.Router.words`."""
        return {"trees": " ".join(filter(None, map(subtree, self.interfaces)))}

    def read(self) -> Telemetry:
        """Read counters now. ``uptime`` by its own clock, to the second."""
        now, boot = (self._commands.show(line) for line in ("date +%s", "sysctl -n kern.boottime"))
        reading, since = super().read(), re.search(r"sec = (\d{1,19})", boot)
        if since is None or not now.strip().isdecimal() or (uptime := int(now) - int(since[1])) < 0:
            shown = first_line(f"{boot}, {now}")
            raise TestbedError(f"kern.boottime was not understood: '{shown}'; expected what that system prints")
        return replace(reading, uptime=float(uptime), raw={"date +%s": now, "kern.boottime": boot, **reading.raw})
