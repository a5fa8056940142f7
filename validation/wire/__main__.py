"""``python -m validation.wire``: how fast, how exactly and how truthfully the netns bench sends.

Over one veth pair between two namespaces made for it, 64-byte frames (60 without FCS) are sent in turns by ``trafgen``
of netsniff-ng, by ``iperf3 -u`` and by the embedded server's wire backend, flat out, each with all CPUs it takes and on
one CPU; then by the backend at half of trafgen's rate; then in both directions at once. All counts are the kernel's.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from lineproof.commands.ending import finish
from lineproof.errors import TestbedError
from lineproof.system.children import find_program
from lineproof.system.cpu_steal import cpu_times, steal_percent, steal_text
from lineproof.system.network_namespace import inside
from lineproof.testbed.namespaces import Topology, build_topology, reason_against
from lineproof_bench.backend import PortCounters, StreamTraffic
from lineproof_bench.wire import WireBackend, WirePort

from .figures import FRAME, CpuTime, Sample, cpu_ratio, cpu_shared, fastest_sender, rate_ratio, table
from .rivals import LIMIT, Iperf3, Trafgen, run

LEAST_OF_BEST = 0.8
"""The least part of the best rival's rate that the backend has to reach."""

LEAST_ON_ONE_CPU = 1.0
"""The same for senders on one CPU."""

MOST_RATE_ERROR = 0.01
"""The most that a rate asked for may be missed by."""

FLAT_OUT = 100e6
"""Frames/s that no machine reaches."""

SETTLE = 0.3
"""Seconds that a sender runs before it is measured."""

EMBEDDED = "embedded server"

ONE_CPU = ", one CPU"
"""Suffix of the names of senders on one CPU."""

_ETHERNET_UDP = "0800 4500002e0000000040110abe1000000130000001 04010009001a0000"
"""IPv4 (RFC 791) from 16.0.0.1 to 48.0.0.1 with its checksum, UDP from 1025 to 9."""


_Sending = Callable[[], AbstractContextManager[int]]
"""Starts a sender; gives the process whose family sends."""


def main() -> int:
    """Print the tables; 0 when all bounds are kept, 1 when one is not, 2 when this machine cannot run it."""
    parser = argparse.ArgumentParser(prog="python -m validation.wire", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="rounds, each sender once in each (default 3)")
    parser.add_argument("--seconds", type=float, default=1.5, help="seconds of each measurement (default 1.5)")
    arguments = parser.parse_args()
    if not 1 <= arguments.rounds <= 100 or not 0.2 <= arguments.seconds <= 60:
        parser.error("expected 1 to 100 rounds of 0.2 to 60 s")
    if reason := reason_against():
        print(f"lineproof: the wire study cannot run: {reason}")
        return 2
    trafgen = find_program("trafgen")
    if trafgen is None:
        print("lineproof: the wire study cannot run: 'trafgen' is missing; install the package netsniff-ng")
        return 2
    with (
        tempfile.TemporaryDirectory() as folder,
        build_topology(folder=Path(folder)) as topology,
        contextlib.closing(_backend(topology)) as backend,
        contextlib.closing(_single(topology)) as single,
    ):
        return _Study(topology, backend, single, trafgen, Path(folder), arguments.seconds, arguments.rounds).run()


def _backend(topology: Topology) -> WireBackend:
    """Both ends of the first cable as ports of one backend."""
    cable = topology.cables[0]
    return WireBackend(
        (
            WirePort(0, cable.port, topology.generator, cable.port_mac, cable.router_mac),
            WirePort(1, cable.router_interface, topology.router, cable.router_mac, cable.port_mac),
        )
    )


def _one_cpu() -> int:
    """The CPU for the senders that get only one: the first, to which trafgen moves itself."""
    return min(os.sched_getaffinity(0))


def _single(topology: Topology) -> WireBackend:
    """The same with one sending process for each port, all on one CPU: they inherit the CPUs of their parent."""
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {_one_cpu()})
    try:
        return _backend(topology)
    finally:
        os.sched_setaffinity(0, allowed)


@dataclass(frozen=True, slots=True)
class _Kernel:
    """One interface as ``ip -s link`` reports it."""

    rx: int
    tx: int

    @classmethod
    def read(cls, namespace: str, interface: str) -> _Kernel:
        text = run((*inside(namespace), "ip", "-s", "-s", "-j", "link", "show", "dev", interface))
        stats = json.loads(text)[0]["stats64"]
        return cls(stats["rx"]["packets"], stats["tx"]["packets"])


class _Study:
    """The measurements over one cable."""

    def __init__(
        self,
        topology: Topology,
        backend: WireBackend,
        single: WireBackend,
        trafgen: str,
        folder: Path,
        seconds: float,
        rounds: int,
    ) -> None:
        self._topology, self._cable, self._backend, self._single = topology, topology.cables[0], backend, single
        self._seconds, self._rounds, self._folder, self._trafgen = seconds, rounds, folder, trafgen

    def run(self) -> int:
        """All of it, printed; the exit status."""
        before, load = cpu_times(), os.getloadavg()[0]
        senders = self._senders()
        samples: dict[str, list[Sample]] = {name: [] for name in senders}
        for turn in range(self._rounds):
            names = list(senders)
            for name in names[turn % len(names) :] + names[: turn % len(names)]:
                samples[name].append(self._sample(name, senders[name]))
        print(f"64-byte frames over one veth pair, {self._rounds} rounds of {self._seconds:g} s, millions per second\n")
        print("\n".join(table(samples)) + "\n")
        kept = self._compared(samples)
        rivals = [name for name in samples if name.startswith("trafgen")]
        fastest = max(statistics.median(sample.rate for sample in samples[name]) for name in rivals)
        kept += self._holds(fastest / 2)
        kept += self._counts()
        steal = steal_text(steal_percent(before, cpu_times()))
        print(f"\nCPU time stolen by the hypervisor meanwhile: {steal}; load average when it began: {load:.2f}")
        return 0 if all(kept) else 1

    def _senders(self) -> dict[str, _Sending]:
        """What is compared; each on one CPU as well."""
        lasting, one = SETTLE + self._seconds, _one_cpu()
        found: dict[str, _Sending] = {}
        trafgen = Trafgen(self._topology, self._cable, self._trafgen, self._frame(0), self._folder)
        found["trafgen"] = lambda: trafgen.sending(None)
        found["trafgen" + ONE_CPU] = lambda: trafgen.sending(one)
        if program := find_program("iperf3"):
            iperf3 = Iperf3(self._topology, self._cable, program)
            # its receiver is not what is measured: it gets a CPU of its own where there is one
            other = max(os.sched_getaffinity(0))
            found["iperf3 -u"] = lambda: iperf3.sending(lasting, None, None)
            found["iperf3 -u" + ONE_CPU] = lambda: iperf3.sending(lasting, one, other)
        else:
            print("left out: iperf3, which is not installed (Debian's package iperf3)\n")
        found[EMBEDDED] = lambda: self._flat_out(self._backend)
        found[EMBEDDED + ONE_CPU] = lambda: self._flat_out(self._single)
        return found

    def _compared(self, samples: dict[str, list[Sample]]) -> list[bool]:
        """The backend beside each rival: all CPUs with all CPUs, one with one. Bounds are for the fastest rival."""
        kept = []
        for end in ("", ONE_CPU):
            rivals = {name: found for name, found in samples.items() if name.endswith(ONE_CPU) == bool(end)}
            ours = rivals.pop(EMBEDDED + end)
            fastest = fastest_sender(rivals)
            for name, theirs in rivals.items():
                wall, each = rate_ratio(ours, theirs), cpu_ratio(ours, theirs)
                names = f"'{EMBEDDED}{end}' to '{name}'"
                text = f"{names}: {wall:.2f} of its frames/s, {each:.2f} of its frames per CPU second"
                share = LEAST_ON_ONE_CPU if end else LEAST_OF_BEST
                if name == fastest:
                    kept.append(_line(text, f"at least {share:g} of its frames/s", wall >= share))
                else:
                    print(f"      {text}")
        # iperf3 is not asked: it waits now and then by itself
        if cpu_shared(samples[name + ONE_CPU] for name in ("trafgen", EMBEDDED)):
            print("\n  other processes took a part of the CPU that each had to itself: repeat it on a quiet machine")
        return kept

    def _sample(self, name: str, sending: _Sending) -> Sample:
        """What leaves port 0 from SETTLE s after the start, for the seconds asked for."""
        with sending() as root:
            time.sleep(SETTLE)
            # over netlink: starting 'ip' takes milliseconds, at an unknown moment
            begin, first, used = time.monotonic(), self._backend.reading(0), CpuTime.read((root,))
            time.sleep(self._seconds)
            end, last, total = time.monotonic(), self._backend.reading(0), CpuTime.read((root,))
            cpu = total.sender - used.sender + total.kernel - used.kernel
            frames, octets = last.tx_packets - first.tx_packets, last.tx_bytes - first.tx_bytes
            return Sample(frames, octets, end - begin, cpu).checked(name)

    def _frame(self, port: int) -> bytes:
        ends = (self._cable.router_mac, self._cable.port_mac)
        to, source = ends if port == 0 else ends[::-1]
        return bytes.fromhex((to + source).replace(":", "") + _ETHERNET_UDP).ljust(FRAME, b"\0")

    def _kernel(self, port: int) -> _Kernel:
        if port == 0:
            return _Kernel.read(self._topology.generator, self._cable.port)
        return _Kernel.read(self._topology.router, self._cable.router_interface)

    def _rate(self) -> float:
        """Frames/s that leave port 0, from its counter after SETTLE s and *seconds* later."""
        time.sleep(SETTLE)
        begin, first = time.monotonic(), self._backend.reading(0).tx_packets
        time.sleep(self._seconds)
        end, last = time.monotonic(), self._backend.reading(0).tx_packets
        return (last - first) / (end - begin)

    def _streams(self, port: int, pps: float) -> tuple[StreamTraffic, ...]:
        return (StreamTraffic(1, self._frame(port), pps),)

    @contextlib.contextmanager
    def _flat_out(self, backend: WireBackend) -> Iterator[int]:
        backend.start({0: self._streams(0, FLAT_OUT)}, None)
        try:
            yield os.getpid()  # the only one whose descendants have anything to do now
        finally:
            backend.stop(0)

    def _holds(self, pps: float) -> list[bool]:
        """Half of trafgen's rate: over a window in the middle, and the frames of the whole trial."""
        duration, misses = self._seconds + SETTLE + 0.5, []
        wanted, sent = round(pps * duration), []
        for _ in range(self._rounds):
            before = self._kernel(0).tx
            self._backend.start({0: self._streams(0, pps)}, duration)
            misses.append(abs(self._rate() / pps - 1))
            self._wait(duration)
            sent.append(self._kernel(0).tx - before)
        print(f"\nasked for half of trafgen's rate, {pps / 1e6:.3f} Mpps, {wanted} frames in {duration:g} s\n")
        missed, short = statistics.median(misses), statistics.median(abs(frames / wanted - 1) for frames in sent)
        return [
            _line(
                f"rate missed by {100 * missed:.3f} % in mid-trial",
                f"at most {100 * MOST_RATE_ERROR:g} %",
                missed <= MOST_RATE_ERROR,
            ),
            _line(
                f"frames missed by {100 * short:.3f} %",
                f"at most {100 * MOST_RATE_ERROR:g} %",
                short <= MOST_RATE_ERROR,
            ),
        ]

    def _counts(self) -> list[bool]:
        """Both directions at once; the backend's counts beside the kernel's."""
        duration, pps = 1.0, 50_000.0
        claimed, kernel = self._readings()
        self._backend.start({port: self._streams(port, pps) for port in (0, 1)}, duration)
        self._wait(duration)
        claimed_after, kernel_after = self._readings()
        print("\ncounts of a second in both directions at 50 000 frames/s each\n")
        kept = []
        for port in (0, 1):
            pairs = {
                "tx": (
                    claimed_after[port].opackets - claimed[port].opackets,
                    kernel_after[port].tx - kernel[port].tx,
                ),
                "rx": (
                    claimed_after[port].ipackets - claimed[port].ipackets,
                    kernel_after[port].rx - kernel[port].rx,
                ),
            }
            for name, (ours, theirs) in pairs.items():
                good = ours == theirs and ours > 0
                kept.append(_line(f"port {port} {name}: backend {ours}, kernel {theirs}", "equal", good))
        return kept

    def _readings(self) -> tuple[list[PortCounters], list[_Kernel]]:
        return [self._backend.counters(port) for port in (0, 1)], [self._kernel(port) for port in (0, 1)]

    def _wait(self, duration: float) -> None:
        until = time.monotonic() + duration + LIMIT
        while any(self._backend.sending(port) for port in (0, 1)):
            if time.monotonic() > until:
                raise TestbedError(f"the backend still sends {LIMIT:g} s after the end of its trial")
            time.sleep(0.005)


def _line(text: str, bound: str, good: bool) -> bool:
    print(f"  {'ok ' if good else 'BAD'} {text} ({bound})")
    return good


if __name__ == "__main__":
    finish(main)
